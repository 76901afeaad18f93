import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.inference.evidence import (
    DecoderEvidence,
    all_types,
    find_choices,
)
from pyg_fnri.nn import (
    FNRI,
    CategoricalLatent,
    LinearStep,
    OverLinearStep,
    RecurrentConv,
    RecurrentDecoder,
    StandardScaling,
)

SIZES = 3, 5, 2, 4
GRAPHS = {
    'six': fully_connected(6),
    'no edges': torch.empty(2, 0, dtype=torch.long),
    'one way': torch.tensor([[0, 1, 2], [1, 2, 0]]),
    'a star': torch.tensor([[0, 0, 0, 1, 2], [1, 2, 3, 0, 0]]),
    'unsorted, some one way': fully_connected(6)[:, [3, 29, 7, 0, 11, 5, 25]],
    'mixed sizes': None,
}


def mixed_sizes(make_system):
    return Batch.from_data_list([make_system(n) for n in SIZES]).edge_index


@pytest.mark.parametrize('undirected', [True, False])
@pytest.mark.parametrize('name', GRAPHS)
def test_each_edge_is_one_choice_in_one_round(make_system, name, undirected):
    edge_index = GRAPHS[name]
    if edge_index is None:
        edge_index = mixed_sizes(make_system)
    choices = find_choices(edge_index, undirected)
    edges = [{*pair}
             for pair in zip(choices.edge.tolist(), choices.reverse.tolist())]
    assert sorted(e for pair in edges
                  for e in pair) == list(range(edge_index.size(1)))
    ends = list(map(tuple, edge_index.t().tolist()))
    for c, pair in enumerate(edges):
        sender, receiver = int(choices.sender[c]), int(choices.receiver[c])
        expected = {ends.index((sender, receiver))}
        if undirected and (receiver, sender) in ends:
            expected.add(ends.index((receiver, sender)))
        assert pair == expected
        assert bool(choices.mutual[c]) == (len(expected) == 2)
    members = [c for r in choices.rounds for c in r.tolist()]
    assert sorted(members) == list(range(len(edges)))
    # Those of a round act on different particles.
    for r in choices.rounds:
        touched = torch.cat(
            [choices.receiver[r], choices.sender[r][choices.mutual[r]]])
        assert touched.unique().numel() == touched.numel() > 0


@pytest.mark.parametrize('undirected, num_rounds', [(True, 5), (False, 4)])
def test_rounds_of_a_system_do_not_depend_on_its_batch(make_system, undirected,
                                                       num_rounds):
    choices = find_choices(mixed_sizes(make_system), undirected)
    assert len(choices.rounds) == num_rounds  # Systems are side by side.
    first = 0
    for n in SIZES:
        alone = find_choices(fully_connected(n), undirected)
        last = first + alone.edge.numel()
        rounds = [r[(r >= first) & (r < last)] - first for r in choices.rounds]
        assert ([r.tolist() for r in rounds
                 if r.numel()] == [r.tolist() for r in alone.rounds])
        first = last


def test_all_types_are_all_combinations():
    types = all_types(CategoricalLatent([2, 3]))
    assert types.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert all_types(CategoricalLatent([4])).tolist() == [[0], [1], [2], [3]]


def fitted_model(x):
    """The paper's decoder, with random weights, in the units of data."""
    model = FNRI(4, x.size(1), [2, 2], 8, scaling=StandardScaling(4))
    model.scaling.fit(x)
    return model


def recurrent_model(x):
    model = fitted_model(x)
    model.decoder = RecurrentDecoder(RecurrentConv(4, 4, 4, 8), burn_in=2)
    return model


@pytest.mark.parametrize('undirected', [True, False])
def test_changes_agree_with_errors_anew(some_graph, assert_changes_agree,
                                        undirected):
    x, edge_index = some_graph
    choices = find_choices(edge_index, undirected)
    evidence = DecoderEvidence(fitted_model(x), x, edge_index, choices)
    assert_changes_agree(evidence, choices, torch.rand(3, 4))


@pytest.mark.parametrize('make', [fitted_model, recurrent_model])
def test_errors_are_those_of_the_decoders_step(make_system, make):
    data = make_system(4, 6)
    choices = find_choices(data.edge_index, undirected=True)
    model, channels = make(data.x), torch.rand(6, 4)
    edge_attr = torch.empty(12, 4)
    edge_attr[choices.edge] = edge_attr[choices.reverse] = channels
    x = model.scaling(data.x)
    out = model.decoder(x, data.edge_index, edge_attr, pred_steps=1)
    evidence = DecoderEvidence(model, data.x, data.edge_index, choices)
    torch.testing.assert_close(evidence.errors(channels),
                               (x[:, 1:] - out) / LinearStep(4).fit(x).scale)
    # A linear step of the model's own has been fitted to more systems.
    if make is fitted_model:
        linear_step = LinearStep(4).fit(model.scaling(torch.randn(50, 9, 4)))
        model.decoder.layer = OverLinearStep(model.decoder.layer, linear_step)
        still = DecoderEvidence(model, 0 * data.x, data.edge_index, choices)
        assert torch.equal(still.scale, linear_step.scale)
        assert still.errors(channels).isfinite().all()
