import pytest

from pyg_fnri.experiments.candidate import Candidate


@pytest.mark.parametrize('name, types', [('2', (2, )), ('2,3', (2, 3)),
                                         ('2,2,2', (2, 2, 2))])
def test_names_go_both_ways(name, types):
    assert Candidate.from_name(name) == Candidate(types)
    assert Candidate(types).name == name


def test_order_is_by_interactions_then_combinations():
    names = ['2,2,2', '2,3', '2,2', '4', '3', '2']
    found = sorted(map(Candidate.from_name, names), key=lambda c: c.size)
    assert [c.name for c in found] == ['2', '3', '2,2', '4', '2,3', '2,2,2']


@pytest.mark.parametrize('name', ['', '2,', '2x2', '2, 2', '-2', '2.0'])
def test_other_notations_are_refused(name):
    with pytest.raises(ValueError, match='such as 2,3'):
        Candidate.from_name(name)


@pytest.mark.parametrize('name', ['1', '2,1', '0'])
def test_layers_without_interaction_are_refused(name):
    with pytest.raises(ValueError, match=f"2 types.*got '{name}'"):
        Candidate.from_name(name)
