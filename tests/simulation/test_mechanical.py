from dataclasses import dataclass

import numpy as np
import pytest

from pyg_fnri.simulation import Mechanical, Spring, simulate


@dataclass(frozen=True)
class Pair(Mechanical):
    layers = {'spring': 2}

    def simulate(self, edge_types, seed, num_threads=None, progress=False):
        return self.move([Spring()], edge_types, seed, num_threads, progress)


GRAPHS = np.broadcast_to(1 - np.eye(2, dtype=np.int64), (3, 1, 2, 2))


def test_constants_are_those_of_the_simulation():
    constants = dict(num_dimensions=3, num_steps=60, step_size=0.01,
                     sample_every=20, box_half_width=0.4, position_std=0.2,
                     speed=0.7, max_kick=1e-4)
    x = Pair(**constants).simulate(GRAPHS, 5)
    run = simulate([Spring()], 3, 2, seed=5, interactions=GRAPHS, **constants)
    assert (x == np.concatenate([run.position, run.velocity], -1)).all()
    # Each of them makes a difference.
    for name, value in [('position_std', 0.3), ('speed', 0.8),
                        ('step_size', 0.02), ('box_half_width', None),
                        ('max_kick', 0.1)]:
        assert (Pair(**{
            **constants, name: value
        }).simulate(GRAPHS, 5) != x).any(), name


def test_the_defaults_are_the_papers():
    x = Pair().simulate(GRAPHS, 5)
    run = simulate([Spring()], 3, 2, seed=5, interactions=GRAPHS)
    assert (x == np.concatenate([run.position, run.velocity], -1)).all()
    assert Pair().frame_interval == 0.1
    assert Pair(step_size=0.01, sample_every=20).frame_interval == 0.2


def test_states_can_be_given():
    start = np.full((3, 2, 2), 0.25)
    x = Pair(num_steps=2, sample_every=1).simulate(GRAPHS, 0)
    given = Pair(num_steps=2,
                 sample_every=1).move([Spring()], GRAPHS, 0, None, False,
                                      initial_position=start)
    assert np.allclose(given[:, :, 0, :2], 0.25, atol=1e-3)
    assert not np.allclose(x, given)


def test_repr_holds_every_constant():
    assert repr(Pair()) == (
        'Pair(num_dimensions=2, num_steps=10000, step_size=0.001, '
        'sample_every=100, box_half_width=5.0, position_std=0.5, speed=0.5, '
        'max_kick=0.1)')


@pytest.mark.parametrize('constants, match', [
    (dict(step_size=np.nan), 'step_size is nan, expected a positive'),
    (dict(num_steps=150), 'num_steps is 150, expected twice'),
    (dict(position_std=-1.0), 'position_std is -1.0'),
])
def test_wrong_constants_are_named(constants, match):
    with pytest.raises(ValueError, match=match):
        Pair(**constants).simulate(GRAPHS, 0)
