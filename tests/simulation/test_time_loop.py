import platform
import re
from dataclasses import dataclass

import numpy as np
import pytest

from pyg_fnri.simulation import Charge, FiniteSpring, Force, Spring, simulate
from pyg_fnri.simulation.time_loop import compile_force, compile_time_loop


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
        for power in self.powers:
            out += distance**power
        return out


@pytest.mark.parametrize('force', [
    Spring(),
    Charge(3),
    FiniteSpring(length=0.7),
    Tabulated(np.array([0.0, 1.0, 4.0]), np.array([1.0, -1.0, 2.0])),
])
def test_compiled_magnitude_equals_python(force):
    compiled = compile_force(force)
    for distance in (0.3, 1.0, 2.5):
        out = compiled.magnitude(compiled.parameters, distance)
        assert np.isclose(out, force.magnitude(distance), rtol=1e-14)


def test_divergence():
    @dataclass(frozen=True)
    class Refuses(Force):
        def magnitude(self, distance):
            if distance <= 0:
                raise ValueError('no distance')
            return 1.0

    assert compile_force(Charge()).diverges()
    assert compile_force(Refuses()).diverges()
    assert not compile_force(Spring()).diverges()
    assert not compile_force(FiniteSpring()).diverges()


def test_new_constants_do_not_compile_again():
    arguments = dict(num_systems=2, num_steps=20, sample_every=10)
    simulate([Spring(0.1), Charge(0.2)], **arguments)
    run = compile_time_loop((Spring, Charge), 2, 1)
    count = len(run.signatures)
    simulate([Spring(0.3), Charge(0.4)], **arguments)
    assert compile_time_loop((Spring, Charge), 2, 1) is run
    assert len(run.signatures) == count


@pytest.mark.skipif(platform.machine() not in ('x86_64', 'AMD64'),
                    reason='reads the assembly of x86')
def test_time_loop_is_vectorised():
    simulate([Spring(), Charge()], 16, num_steps=20, sample_every=10)
    run = compile_time_loop((Spring, Charge), 2, 64)
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


@dataclass(frozen=True)
class OpensFile(Force):
    def magnitude(self, distance):
        return float(open('law.txt').read())


@dataclass(frozen=True)
class Private(Force):
    _scale: float = 1.0

    def magnitude(self, distance):
        return self._scale * distance


@dataclass(frozen=True)
class ReturnsNothing(Force):
    def magnitude(self, distance):
        pass


@dataclass(frozen=True)
class ReturnsList(Force):
    def magnitude(self, distance):
        return [distance]


@dataclass(frozen=True)
class TakesNothing(Force):
    def magnitude(self):
        return 1.0


class Undecorated(Force):
    def magnitude(self, distance):
        return 1.0


@pytest.mark.parametrize('force, match', [
    (CallsMethod(), r"cannot compile CallsMethod.magnitude \(Unknown attribute "
     r"'law'.*\): write it as a function of the distance and of the fields of "
     r"CallsMethod \(scale\) with numbers"),
    (OpensFile(), r"OpensFile.magnitude \(Untyped global name 'open'"),
    (Private(), 'Field names cannot start with an underscore'),
    (ReturnsNothing(), 'returns none, expected a real number'),
    (ReturnsList(), 'returns list.*, expected a real number'),
    (TakesNothing(), 'cannot compile TakesNothing.magnitude'),
    (Undecorated(), r'not a dataclass: decorate it with @dataclass\(frozen'),
])
def test_a_magnitude_that_cannot_be_compiled_says_why(force, match):
    with pytest.raises(TypeError, match=match) as error:
        simulate([Spring(), force], 2)
    assert '\n' not in str(error.value)
