import numpy as np
import pytest

from pyg_fnri.simulation import (
    Charge,
    FiniteSpring,
    Newtonian,
    NRISprings,
    Spring,
    simulate,
)


def test_it_is_the_simulation_of_its_forces():
    forces = [Spring(), Charge()]
    system = Newtonian(forces)
    graphs = system.draw_edge_types(3, 20, 5)
    run = simulate(forces, 20, 5, seed=3)
    assert (graphs == run.interactions).all()
    x = system.simulate(graphs, 3)
    assert x.tobytes() == np.concatenate([run.position, run.velocity],
                                         -1).tobytes()


def test_layers_are_named_after_forces():
    assert Newtonian([Spring(), Charge(), FiniteSpring()]).layers == {
        'spring': 2,
        'charge': 2,
        'finite_spring': 2
    }
    names = list(Newtonian([Spring(), Charge(), Spring(2.0)]).layers)
    assert names == ['spring_1', 'charge', 'spring_2']


def test_systems_compare_by_value():
    assert Newtonian([Spring()]) == Newtonian((Spring(), ))
    assert Newtonian([Spring()]) != Newtonian([Spring(0.2)])
    assert Newtonian([Spring()]) != Newtonian([Spring()], speed=1.0)
    assert Newtonian([Spring()]) != NRISprings()
    assert 'forces=(Spring(stiffness=0.1),)' in repr(Newtonian([Spring()]))


@pytest.mark.parametrize('forces, error', [
    ([], ValueError),
    (Spring(), TypeError),
    ([Spring], TypeError),
])
def test_wrong_forces_are_refused_at_once(forces, error):
    with pytest.raises(error, match='forces '):
        Newtonian(forces)


@pytest.mark.parametrize('change, error, match', [
    (lambda g: g + 1.0, TypeError, 'edge_types has the type float64'),
    (lambda g: 2 * g, ValueError, 'types 0 to 2 in layer 0, expected 0 to 1'),
    (lambda g: g[:, :, :4], ValueError, r'has the shape \(6, 1, 4, 5\)'),
    (lambda g: np.tril(g), ValueError, 'not symmetric'),
])
def test_wrong_graphs_are_refused(change, error, match):
    system = NRISprings()
    with pytest.raises(error, match=match):
        system.simulate(change(system.draw_edge_types(0, 6, 5)), 0)


def test_nris_springs_are_there_or_not_by_themselves():
    system = NRISprings()
    assert system.layers == {'spring': 2}
    count = np.tril(system.draw_edge_types(0, 4000, 5)).sum((1, 2, 3))
    # Binomial over 10 pairs, where the paper's is uniform (variance 10).
    assert abs(count.mean() - 5) < 0.1
    assert abs(count.var() - 2.5) < 0.2
    paper = np.tril(Newtonian([Spring()]).draw_edge_types(0, 4000, 5)).sum(
        (1, 2, 3))
    assert abs(paper.var() - 10) < 0.5
