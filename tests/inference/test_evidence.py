import pytest
import torch
from known_laws import assert_changes_agree
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.inference.evidence import DecoderEvidence, find_choices
from pyg_fnri.nn import (FNRI, LinearStep, OverLinearStep, RecurrentConv,
                         RecurrentDecoder, StandardScaling)

SIZES = 3, 5, 2, 4
GRAPHS = {
    'no edges': torch.empty(2, 0, dtype=torch.long),
    'unsorted, some one way': fully_connected(6)[:, [3, 29, 7, 0, 11, 5, 25]]
}


@pytest.fixture
def mixed_sizes(make_system):
    return Batch.from_data_list([make_system(n) for n in SIZES]).edge_index


@pytest.mark.parametrize('undirected', [True, False])
@pytest.mark.parametrize('name', [*GRAPHS, 'mixed sizes'])
def test_each_edge_is_one_choice_in_one_round(mixed_sizes, name, undirected):
    edge_index = GRAPHS.get(name, mixed_sizes)
    choices = find_choices(edge_index, undirected)
    edges = [{*pair}
             for pair in zip(choices.edge.tolist(), choices.reverse.tolist())]
    assert sorted(sum(map(list, edges), [])) == [*range(edge_index.size(1))]
    ends = list(map(tuple, edge_index.t().tolist()))
    for c, pair in enumerate(edges):
        sender, receiver = int(choices.sender[c]), int(choices.receiver[c])
        expected = {ends.index((sender, receiver))}
        if undirected and (receiver, sender) in ends:
            expected.add(ends.index((receiver, sender)))
        assert pair == expected
        assert bool(choices.mutual[c]) == (len(expected) == 2)
    members = sum((r.tolist() for r in choices.rounds), [])
    assert sorted(members) == [*range(len(edges))]
    # Those of a round act on different particles.
    for r in choices.rounds:
        touched = torch.cat(
            [choices.receiver[r], choices.sender[r][choices.mutual[r]]])
        assert touched.unique().numel() == touched.numel() > 0


@pytest.mark.parametrize('undirected, num_rounds', [(True, 5), (False, 4)])
def test_rounds_of_a_system_do_not_depend_on_its_batch(mixed_sizes, undirected,
                                                       num_rounds):
    choices, first = find_choices(mixed_sizes, undirected), 0
    assert len(choices.rounds) == num_rounds  # Systems are side by side.
    for n in SIZES:
        alone = find_choices(fully_connected(n), undirected)
        last = first + alone.edge.numel()
        rounds = [r[(r >= first) & (r < last)] - first for r in choices.rounds]
        rounds = [r.tolist() for r in rounds if r.numel()]
        assert rounds == [r.tolist() for r in alone.rounds]
        first = last


def fitted_model(x, recurrent=False):
    """The paper's decoders, with random weights, in the units of data."""
    model = FNRI(4, x.size(1), [2, 2], 8, scaling=StandardScaling(4))
    model.scaling.fit(x)
    if recurrent:
        model.decoder = RecurrentDecoder(RecurrentConv(4, 4, 4, 8), burn_in=2)
    return model


@pytest.mark.parametrize('undirected', [True, False])
def test_changes_agree_with_errors_anew(make_system, undirected):
    data = Batch.from_data_list([make_system(n, 5) for n in (2, 4, 3)])
    # Some of them without a reverse.
    edge_index = data.edge_index[:, torch.randperm(20)[:13]]
    choices = find_choices(edge_index, undirected)
    evidence = DecoderEvidence(fitted_model(data.x), data.x, edge_index,
                               choices)
    assert_changes_agree(evidence, choices, torch.rand(3, 4))


@pytest.mark.parametrize('recurrent', [False, True])
def test_errors_are_those_of_the_decoders_step(make_system, recurrent):
    data = make_system(4, 6)
    choices = find_choices(data.edge_index, undirected=True)
    model, channels = fitted_model(data.x, recurrent), torch.rand(6, 4)
    edge_attr = torch.empty(12, 4)
    edge_attr[choices.edge] = edge_attr[choices.reverse] = channels
    x = model.scaling(data.x)
    out = model.decoder(x, data.edge_index, edge_attr, pred_steps=1)
    evidence = DecoderEvidence(model, data.x, data.edge_index, choices)
    torch.testing.assert_close(evidence.errors(channels),
                               (x[:, 1:] - out) / LinearStep(4).fit(x).scale)
    # A linear step of the model's own has been fitted to more systems.
    if not recurrent:
        linear_step = LinearStep(4).fit(model.scaling(torch.randn(50, 9, 4)))
        model.decoder.layer = OverLinearStep(model.decoder.layer, linear_step)
        still = DecoderEvidence(model, 0 * data.x, data.edge_index, choices)
        assert torch.equal(still.scale, linear_step.scale)
        assert still.errors(channels).isfinite().all()
