import pytest
import torch
from small_training import (
    assert_same_state,
    build,
    fit,
    is_same_state,
    make_config,
)

from pyg_fnri.nn import FNRI, NRI, SFNRI, ForceLawDecoder, ResidualForceLaws
from pyg_fnri.training import (
    MODELS,
    RECIPES,
    EMRecipe,
    PaperRecipe,
    QuickRecipe,
)

pytestmark = pytest.mark.filterwarnings('ignore:.*no `val_dataloader`.*',
                                        'ignore:.*LeafSpec.*')


def test_names_of_models_and_recipes():
    assert MODELS == {'nri': NRI, 'fnri': FNRI, 'sfnri': SFNRI}
    assert RECIPES == {
        'quick': QuickRecipe,
        'paper': PaperRecipe,
        'em': EMRecipe
    }


@pytest.mark.parametrize('change, message', [
    (dict(model='gcn'), "Unknown model 'gcn'; expected one of 'nri', 'fnri'"),
    (dict(regime='taught'), "Unknown regime 'taught'; expected one of 'lear"),
    (dict(recipe='slow'), "Unknown recipe 'slow'; expected one of 'quick'"),
    (dict(options={'size': 3}), "option of the recipe 'quick' 'size'; .*'tau'"),
    (dict(recipe='paper', options={'num_frames': 3}), "'paper' 'num_frames'"),
])
def test_unknown_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        make_config(**change)


@pytest.mark.parametrize('kwargs', [{}, {'laws': {}, 'residual': 8}])
def test_weights_come_from_the_seed_alone(kwargs):
    before = torch.get_rng_state()
    states = []
    for seed in (1, 1, 2):
        model = make_config(seed=seed, **kwargs).build_model()
        assert torch.get_rng_state().equal(before)
        states.append(model.state_dict())
        torch.manual_seed(99)
        before = torch.get_rng_state()
    assert_same_state(states[0], states[1])
    decoders = [{
        key: value
        for key, value in state.items() if 'decoder' in key
    } for state in states]
    assert not is_same_state(decoders[0], decoders[2])


def test_laws_may_have_a_residual():
    layers = [
        make_config(laws={
            'interval': 0.2
        }, residual=residual).build_model().decoder.layer
        for residual in (None, 16)
    ]
    assert [type(layer)
            for layer in layers] == [ForceLawDecoder, ResidualForceLaws]
    assert layers[1].network.hidden_channels == 16
    assert layers[1].interval == 0.2
    with pytest.raises(ValueError, match='size 16.* but there are none'):
        make_config(residual=16)


def test_options_go_before_the_defaults_of_a_regime():
    assert make_config(regime='supervised').build_recipe().symmetries
    recipe = make_config(regime='supervised', options={
        'symmetries': False
    }).build_recipe()
    assert not recipe.symmetries


def test_paper_regularises_as_the_paper_does():
    def recipe(model, regime):
        return make_config(model=model, regime=regime,
                           recipe='paper').build_recipe()

    for model in MODELS:
        assert recipe(model, 'supervised').dropout == 0.5
        assert recipe(model, 'learned').dropout == 0.0
    assert recipe('sfnri', 'learned').l2 == 5e-8
    assert recipe('sfnri', 'supervised').l2 == 2e-5
    assert recipe('fnri', 'learned').l2 == recipe('nri', 'supervised').l2 == 0


@pytest.mark.parametrize('recipe', ['quick', 'paper'])
@pytest.mark.parametrize('model', MODELS)
@pytest.mark.parametrize('options', [
    {
        'encoder': 'cnn'
    },
    {
        'decoder': 'gru',
        'burn_in': 3
    },
])
def test_other_encoders_and_decoders_train(train, val, recipe, model, options):
    module = build(train, model=model, recipe=recipe, options=options)
    trainer = fit(module, train, max_steps=1)
    assert trainer.callback_metrics['train_loss'].isfinite()
    module.eval()
    data = val[0]
    assert module.model.predict(data).shape == (20, 1 if model == 'nri' else 2)
    future = module.model.predict_trajectory(data, 7)
    assert future.shape == (5, 7, 4) and future.isfinite().all()
