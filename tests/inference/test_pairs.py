import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.inference.evidence import all_types, find_choices
from pyg_fnri.nn import CategoricalLatent, SigmoidLatent

GRAPHS = {
    'two particles': fully_connected(2),
    'five': fully_connected(5),
    'six': fully_connected(6),
    'no edges': torch.empty(2, 0, dtype=torch.long),
    'one way': torch.tensor([[0, 1, 2], [1, 2, 0]]),
    'a star': torch.tensor([[0, 0, 0, 1, 2], [1, 2, 3, 0, 0]]),
    'unsorted, some one way': fully_connected(6)[:, [3, 29, 7, 0, 11, 5, 25]],
}


def mixed_sizes(make_system):
    return Batch.from_data_list([make_system(n) for n in (3, 5, 2, 4)])


@pytest.fixture(params=[*GRAPHS, 'mixed sizes'])
def edge_index(request, make_system):
    if request.param == 'mixed sizes':
        return mixed_sizes(make_system).edge_index
    return GRAPHS[request.param]


def particles(choices, c):
    """The particles that a choice acts on."""
    receiver, sender = int(choices.receiver[c]), int(choices.sender[c])
    return {receiver, sender} if choices.mutual[c] else {receiver}


@pytest.mark.parametrize('undirected', [True, False])
def test_each_edge_belongs_to_one_choice(edge_index, undirected):
    choices = find_choices(edge_index, undirected)
    edges = [
        set(pair)
        for pair in zip(choices.edge.tolist(), choices.reverse.tolist())
    ]
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
        assert int(choices.edge[c]) in expected


@pytest.mark.parametrize('undirected', [True, False])
def test_each_choice_is_in_one_round(edge_index, undirected):
    choices = find_choices(edge_index, undirected)
    members = [c for r in choices.rounds for c in r.tolist()]
    assert sorted(members) == list(range(choices.edge.numel()))
    assert all(r.numel() for r in choices.rounds)


@pytest.mark.parametrize('undirected', [True, False])
def test_choices_of_a_round_act_on_different_particles(edge_index, undirected):
    choices = find_choices(edge_index, undirected)
    for members in choices.rounds:
        touched = [p for c in members.tolist() for p in particles(choices, c)]
        assert len(touched) == len(set(touched))


@pytest.mark.parametrize('undirected, num_rounds', [(True, 5), (False, 4)])
def test_batches_of_one_size_need_no_more_rounds_than_one(
        make_system, undirected, num_rounds):
    batch = Batch.from_data_list([make_system(5) for _ in range(7)])
    choices = find_choices(batch.edge_index, undirected)
    assert len(choices.rounds) == num_rounds
    assert len(find_choices(fully_connected(5),
                            undirected).rounds) == (num_rounds)
    sizes = {r.numel() for r in choices.rounds}
    assert sizes == {7 * (2 if undirected else 5)}


@pytest.mark.parametrize('undirected, num_rounds', [(True, 5), (False, 4)])
def test_rounds_of_a_system_do_not_depend_on_its_batch(make_system, undirected,
                                                       num_rounds):
    batch = mixed_sizes(make_system)
    choices = find_choices(batch.edge_index, undirected)
    # Systems are worked on side by side.
    assert len(choices.rounds) == num_rounds
    first = 0
    for n in (3, 5, 2, 4):
        alone = find_choices(fully_connected(n), undirected)
        last = first + alone.edge.numel()
        rounds = [r[(r >= first) & (r < last)] - first for r in choices.rounds]
        rounds = [r.tolist() for r in rounds if r.numel()]
        assert rounds == [r.tolist() for r in alone.rounds]
        first = last


@pytest.mark.parametrize('undirected', [True, False])
def test_choices_among_some_systems_are_those_of_these_alone(
        make_system, undirected):
    batch = mixed_sizes(make_system)
    choices = find_choices(batch.edge_index, undirected)
    kept = (batch.batch == 1) | (batch.batch == 3)
    part = choices.among(kept)
    alone = Batch.from_data_list([make_system(n) for n in (5, 4)])
    expected = find_choices(alone.edge_index, undirected)
    for name in ('sender', 'receiver', 'mutual'):
        assert torch.equal(getattr(part.choices, name), getattr(expected, name))
    assert ([r.tolist() for r in part.choices.rounds
             if r.numel()] == [r.tolist() for r in expected.rounds])
    # They are the same edges.
    ends = part.particle[alone.edge_index[:, expected.edge]]
    assert torch.equal(batch.edge_index[:, part.choices.edge], ends)
    for name in ('edge', 'reverse'):
        assert torch.equal(getattr(part.choices, name),
                           getattr(choices, name)[part.choice])


def test_all_systems_are_the_choices_themselves(edge_index):
    choices = find_choices(edge_index, True)
    part = choices.among(torch.ones(6 * 14, dtype=torch.bool))
    assert part.choices is choices
    assert torch.equal(choices.edge[part.choice], choices.edge)


def test_all_types_are_all_combinations():
    types = all_types(CategoricalLatent([2, 3]))
    assert types.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert all_types(CategoricalLatent([4])).tolist() == [[0], [1], [2], [3]]
    assert all_types(SigmoidLatent([2, 2, 2])).shape == (8, 3)
