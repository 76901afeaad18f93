import platform
import re
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from numba import config

from pyg_fnri.simulation import Charge, Force, Spring, simulate
from pyg_fnri.simulation.time_loop import (compile_force, compile_time_loop,
                                           in_threads)


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
