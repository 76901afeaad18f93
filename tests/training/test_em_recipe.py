import math
from types import SimpleNamespace

import pytest

from pyg_fnri.nn import FNRI
from pyg_fnri.recipes import QuickRecipe
from pyg_fnri.training import EMRecipe, EMSettings


def test_recipe_is_a_shorter_quick_one():
    recipe = EMRecipe(hidden_channels=8, num_distilled=5)
    assert isinstance(recipe, QuickRecipe) and isinstance(recipe, EMSettings)
    assert recipe.max_steps < QuickRecipe().max_steps
    assert recipe.tau == QuickRecipe().tau and recipe.num_distilled == 5
    assert 'num_fitted=1000' in repr(recipe)


def test_regimes_with_labels_are_refused():
    assert EMRecipe.defaults(FNRI, 'learned') == {}
    with pytest.raises(ValueError, match="must be 'learned', but is 'superv"):
        EMRecipe.defaults(FNRI, 'supervised')


@pytest.mark.parametrize('cls', [EMSettings, EMRecipe])
@pytest.mark.parametrize('name, value', [
    ('num_fitted', 0),
    ('num_fitted', 10.),
    ('num_distilled', -1),
    ('num_distilled', True),
    ('distilled_steps', 'many'),
    ('interval', 0),
    ('interval', math.nan),
    ('interval', '0.1 s'),
    ('half_width', -5.),
    ('half_width', math.inf),
])
def test_wrong_settings_are_told(cls, name, value):
    with pytest.raises(ValueError, match=f'^{name} must be .*{value!r}'):
        cls(**{name: value})


def test_wrong_options_of_the_quick_recipe_are_told_too():
    with pytest.raises(ValueError, match='tau must be'):
        EMRecipe(tau=0.)
    with pytest.raises(ValueError, match='focus must be'):
        EMRecipe(focus=1.)


def test_simulations_tell_their_walls_and_times(tiny_systems):
    train = tiny_systems('train')
    known = {'interval': pytest.approx(0.1), 'half_width': 5.}
    assert EMSettings().motion({}, train) == known
    told = EMSettings(interval=2., half_width=0).motion({}, train)
    assert told == {'interval': 2., 'half_width': None}


def test_own_data_have_no_walls_and_perhaps_no_times():
    table, arrays = ({'files': {'table': f}} for f in ('a.csv', 'a.npy'))
    data = SimpleNamespace(time_step=0.3)
    known = {'interval': 0.3, 'half_width': None}
    assert EMSettings().motion(table, data) == known
    with pytest.raises(ValueError, match='say it by .*interval=SECONDS'):
        EMSettings().motion(arrays, data)
    told = EMSettings(interval=0.2, half_width=3).motion(arrays, data)
    assert told == {'interval': 0.2, 'half_width': 3}
