import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.inference import Stage
from pyg_fnri.inference.em import EM_ANNEALING
from pyg_fnri.inference.law_fit import LawFit, State, blind


@pytest.fixture
def make_fit(make_model):
    def make(batch, **kwargs):
        return LawFit(make_model(batch.edge_label, **kwargs), batch)

    return make


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_cost_of_a_system_does_not_depend_on_the_others(systems, make_fit):
    whole = make_fit(Batch.from_data_list(systems[:4])).cost(0.002)
    alone = [
        make_fit(Batch.from_data_list([data])).cost(0.002)
        for data in systems[:4]
    ]
    torch.testing.assert_close(whole, torch.cat(alone))
    assert whole.size() == (4, )


def test_cost_is_a_mean_over_transitions_that_say_something(systems, make_fit):
    fit = make_fit(systems[0])
    fit.flights.valid[:, ::3] = False
    errors = fit.evidence().errors(fit.search.channels)[fit.flights.valid]
    expected = (errors.square() / 0.1).log1p().mean()
    assert fit.cost(0.1).item() == pytest.approx(expected.item(), rel=1e-5)


def test_right_graphs_and_laws_cost_least(batch, make_fit):
    fit = make_fit(batch)
    right = fit.cost(0.002)
    fit.search.choice = (fit.search.choice + 1) % 4
    assert (fit.cost(0.002) > 5 * right).all()


def test_laws_and_graphs_can_be_put_aside(batch, make_fit):
    fit = make_fit(batch)
    kept, cost = fit.state, fit.cost(0.002)
    fit.randomise(generator())
    assert not fit.layer.law.value.any()
    assert fit.search.choice.unique().tolist() == [0, 1, 2, 3]
    assert (fit.cost(0.002) > cost).all()
    # What was put aside has not changed with it.
    fit.state = kept
    assert torch.equal(fit.cost(0.002), cost)
    fit.maximise(Stage(0.1, 0.0), generator())
    assert not torch.equal(fit.state.laws, kept.laws)
    assert isinstance(kept, State) and kept.laws.size() == (2, 26)


def test_random_graphs_are_those_of_the_generator(batch, make_fit):
    fit, drawn = make_fit(batch), []
    for seed in (3, 3, 4):
        fit.randomise(generator(seed))
        drawn.append(fit.search.choice)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_frames_observed_and_to_come(systems, make_fit):
    data = systems[0].clone()
    fit = make_fit(data)
    assert fit.num_observed == 48 and fit.flights.change.size(1) == 96
    data.y = None
    assert make_fit(data).flights.change.size(1) == 48


def test_blind_stages_do_not_ask_the_encoder():
    stages = blind(EM_ANNEALING)
    assert [s.tolerance for s in stages] == [s.tolerance for s in EM_ANNEALING]
    assert {s.prior_weight for s in stages} == {0.0}


def test_any_other_decoder_has_no_laws(batch, make_fit):
    with pytest.raises(TypeError, match='is a MultiplexConv; .*with_laws'):
        make_fit(batch, laws=None)
