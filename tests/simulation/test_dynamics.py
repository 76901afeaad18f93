import platform
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numba import config

from pyg_fnri.simulation import Charge, FiniteSpring, Force, Spring, simulate
from pyg_fnri.simulation.dynamics import (compile_force, compile_time_loop,
                                          in_threads)

REFERENCE = Path(__file__).parent.parent / 'reference' / 'simulations.npz'
I_C = [Spring(), Charge()]


@pytest.mark.parametrize('name, forces',
                         [('springs_charges', I_C),
                          ('springs_charges_fsprings', I_C + [FiniteSpring()])])
def test_equals_the_authors_simulator(name, forces):
    with np.load(REFERENCE) as file:
        reference = {
            key: np.stack([file[f'{name}/{s}/{key}'] for s in range(3)])
            for key in ('initial_position', 'initial_velocity', 'position',
                        'velocity', 'edges')
        }
    out = simulate(forces, 3, num_steps=3000, interactions=reference['edges'],
                   initial_position=reference['initial_position'],
                   initial_velocity=reference['initial_velocity'])
    # The state is float64 in both, ours is rounded to float32 at the end: by
    # at most 1.2e-7 for values between 2 and 4.
    for key, unit in (('position', 4.0), ('velocity', 2.0)):
        expected = reference[key].swapaxes(1, 2)
        assert np.abs(expected).max() < unit
        error = np.abs(getattr(out, key) - expected).max()
        assert error <= 2**-25 * unit + 1e-12
    assert (out.interactions == reference['edges']).all()


def test_shapes_and_frames():
    out = simulate(I_C, 3, 4, num_steps=50, step_size=0.01, sample_every=10)
    assert out.position.shape == out.velocity.shape == (3, 4, 4, 2)
    assert out.interactions.shape == (3, 2, 4, 4)
    assert np.allclose(out.time, [0.1, 0.2, 0.3, 0.4])
    fine = simulate(I_C, 3, 4, num_steps=50, step_size=0.01, sample_every=1)
    assert (out.velocity == fine.velocity[:, :, 9:40:10]).all()


def equal(first, second):
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second))


def test_same_seed_same_bytes_with_any_number_of_threads(monkeypatch):
    runs = []
    for seed, num_threads in ((5, 1), (5, 2), (6, 2)):
        monkeypatch.setattr(config, 'NUMBA_NUM_THREADS', num_threads)
        runs.append(simulate(I_C, 150, seed=seed, num_steps=2000))
    one, two, other = runs
    assert equal(one, two)
    assert (one.position != other.position).all()
    # The first of more are the same, also beside another run.
    with ThreadPoolExecutor(2) as pool:
        for few in pool.map(lambda n: simulate(I_C, n, seed=5, num_steps=2000),
                            (3, 70)):
            n = len(few.position)
            assert equal(few[:3], [array[:n] for array in one[:3]])


def test_energy_and_momenta_are_conserved_without_walls():
    # At small steps. All interact by springs, three particles are charged.
    charged = np.arange(5) < 3
    graphs = np.stack([np.ones((5, 5)), charged[:, None] & charged])
    graphs *= 1 - np.eye(5)
    out = simulate(I_C, 8, num_steps=40_000, step_size=1e-4,
                   box_half_width=None,
                   interactions=np.broadcast_to(graphs, (8, 2, 5, 5)))
    position, velocity = (a.astype(np.float64) for a in out[:2])
    i, j = np.tril_indices(5, -1)
    distance = np.linalg.norm(position[:, i] - position[:, j], axis=-1)
    spring, charge = out.interactions[:, :, i, j, None].swapaxes(0, 1)
    potential = (spring * 0.05 * distance**2 + charge * 0.2 / distance).sum(1)
    kinetic = 0.5 * (velocity**2).sum((1, 3))
    # Velocities lag half a step behind: 0.5 * step_size * power of the forces.
    assert np.ptp(kinetic, axis=1).min() > 0.1
    assert np.ptp(kinetic + potential, axis=1).max() < 1e-3
    assert np.ptp(velocity, axis=2).max((1, 2)).min() > 0.3
    assert np.ptp(velocity.sum(1), axis=1).max() < 1e-6
    angular = (position[..., 0] * velocity[..., 1] -
               position[..., 1] * velocity[..., 0])
    assert np.ptp(angular, axis=2).max(1).min() > 0.3
    assert np.ptp(angular.sum(1), axis=1).max() < 2e-6


def test_walls_reflect():
    rng = np.random.default_rng(0)
    start = rng.uniform(-2, 2, (4, 3, 2))
    velocity = rng.uniform(-9, 9, (4, 3, 2))
    out = simulate(I_C, 4, 3, box_half_width=2.0, interactions=np.zeros(
        (4, 2, 3, 3)), initial_position=start, initial_velocity=velocity)
    # A free particle between two mirrors: unfold its path.
    path = start[:, :, None] + velocity[:, :, None] * out.time[:, None]
    phase = (path + 2) % 8
    expected = np.where(phase < 4, phase - 2, 6 - phase)
    direction = np.where(phase < 4, 1, -1)
    assert np.abs(path).max() > 50
    assert np.abs(out.position).max() <= 2
    assert np.allclose(out.position, expected, atol=1e-6)
    assert np.allclose(out.velocity, direction * velocity[:, :, None])


@dataclass(frozen=True)
class Yukawa(Force):
    strength: float = 0.2
    screening_length: float = 1.0

    def magnitude(self, distance):
        decay = np.exp(-distance / self.screening_length)
        return self.strength * decay / distance**2


def plain_loop(forces, graphs, x, v, num_steps, step_size, max_kick, b):
    """One system, as one would write the equations in numpy."""
    for _ in range(num_steps):
        total = np.zeros_like(x)
        for force, graph in zip(forces, graphs):
            for i, j in np.argwhere(graph):
                r = np.linalg.norm(x[i] - x[j])
                total[i] += force.magnitude(r) * (x[i] - x[j]) / r
        limit = max_kick / step_size
        v = v + step_size * total.clip(-limit, limit)
        x = x + step_size * v
        v = np.where(x > b, -np.abs(v), np.where(x < -b, np.abs(v), v))
        x = np.where(x > b, 2 * b - x, np.where(x < -b, -2 * b - x, x))
    return x, v


def test_a_users_force_equals_a_plain_loop():
    rng = np.random.default_rng(1)
    forces = [Yukawa(strength=0.5), Spring(2.0)]
    x, v = rng.uniform(-0.5, 0.5, (2, 2, 4, 3))
    out = simulate(forces, 2, 4, num_dimensions=3, num_steps=400,
                   sample_every=200, step_size=5e-3, max_kick=0.002,
                   box_half_width=0.5, initial_position=x, initial_velocity=v)
    assert out.interactions.any((2, 3)).all()
    for system in range(2):
        arguments = (forces, out.interactions[system], x[system], v[system])
        position, velocity = plain_loop(*arguments, 200, 5e-3, 0.002, 0.5)
        unclamped, _ = plain_loop(*arguments, 200, 5e-3, np.inf, 0.5)
        assert np.abs(position - unclamped).max() > 1e-3
        assert np.allclose(out.position[system, :, 0], position, atol=1e-6)
        assert np.allclose(out.velocity[system, :, 0], velocity, atol=1e-6)


@pytest.mark.parametrize(
    'forces, wrong, match',
    [([Spring(1e9), Charge()], dict(max_kick=np.inf,
                                    box_half_width=None), 'left the range'),
     (I_C, dict(speed=1e5), 'system 0 left the box'),
     (I_C, dict(initial_position=np.zeros((70, 5, 2))), 'the range')])
def test_motion_that_steps_cannot_follow_is_an_error(forces, wrong, match):
    with pytest.raises(ValueError, match=match):
        simulate(forces, 70, num_steps=200, **wrong)


def test_springs_and_neutral_particles_may_start_on_one_spot():
    graphs = np.tile(1 - np.eye(5), (3, 2, 1, 1))
    graphs[:, 1] = 0
    out = simulate(I_C, 3, num_steps=200, interactions=graphs,
                   initial_position=np.zeros((3, 5, 2)))
    assert np.isfinite(out.position).all()


@pytest.mark.parametrize('name, value',
                         [('forces', [Spring]), ('forces', [Spring()] * 64),
                          ('num_steps', 250), ('box_half_width', np.nan),
                          ('interactions', np.full((2, 2, 5, 5), 2)),
                          ('initial_position', np.full((2, 5, 2), 6.0)),
                          ('initial_velocity', np.zeros((1, 5, 2)))])
def test_arguments_that_would_give_wrong_numbers(name, value):
    arguments = dict(forces=I_C, num_systems=2, num_steps=200)
    with pytest.raises(ValueError, match=name):
        simulate(**{**arguments, name: value})


@dataclass(frozen=True)
class Tabulated(Force):
    distances: np.ndarray
    values: np.ndarray
    powers: tuple = (2, 3)
    cutoff: int = 2

    def magnitude(self, distance):
        if distance > self.cutoff:
            return 0
        out = 0.0
        for at, value in zip(self.distances, self.values):
            out += value * np.exp(-(distance - at)**2)
        return out + distance**self.powers[1]


def test_compiled_magnitude_equals_python():
    force = Tabulated(np.array([0.0, 1.0, 4.0]), np.array([1.0, -1.0, 2.0]))
    magnitude, constants = compile_force(force)
    for distance in (0.3, 1.0, 2.5):
        assert np.isclose(magnitude(constants, distance),
                          force.magnitude(distance), rtol=1e-14)


def test_new_constants_do_not_compile_again():
    for constant in (0.1, 0.3):
        simulate([Spring(constant), Charge(0.2)], 2, num_steps=200)
    assert len(compile_time_loop((Spring, Charge), 2).signatures) == 1


G = 0.1


@dataclass(frozen=True)
class Pull(Force):
    def magnitude(self, distance):
        return -G * distance


def test_constants_of_a_module_may_change(monkeypatch):
    assert compile_force(Pull())[0]((), 2.0) == -0.2
    compile_time_loop((Pull, ), 2)
    monkeypatch.setitem(globals(), 'G', 1.0)
    assert compile_force(Pull())[0]((), 2.0) == -2.0
    assert compile_time_loop.cache_info().currsize == 0


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != 'x86_64', reason='assembly of x86')
def test_time_loop_is_vectorised():
    simulate([Spring(), Charge()], 2, num_steps=200)
    run = compile_time_loop((Spring, Charge), 2)
    assembly, = run.inspect_asm().values()
    for packed in ('sqrtpd', 'divpd', 'mulpd'):
        assert re.search(packed, assembly), packed


@dataclass(frozen=True)
class CallsMethod(Force):
    scale: float = 1.0

    def magnitude(self, distance):
        return self.law(distance)

    def law(self, distance):
        return self.scale * distance


def test_a_magnitude_that_numba_cannot_compile_says_why():
    with pytest.raises(TypeError, match="attribute 'law'.*'scale'") as error:
        simulate([Spring(), CallsMethod()], 2)
    assert '\n' not in str(error.value)


def test_calls_run_beside_each_other(monkeypatch):
    monkeypatch.setattr(config, 'NUMBA_NUM_THREADS', 2)
    # Passes only once two threads wait at it together.
    barrier, called = threading.Barrier(2, timeout=10), []

    def call(start):
        called.append(start)
        barrier.wait()

    in_threads(call, range(0, 16, 4), False)
    assert sorted(called) == [0, 4, 8, 12]
