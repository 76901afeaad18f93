"""How far force laws and graphs can be found from nothing: what is varied."""
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Union

from pyg_fnri.experiments.ablations import ABLATIONS, Method


@dataclass(frozen=True)
class Condition:
    """Systems of springs and charges (I+C), and how laws and graphs are
    found.

    Args:
        num_observed: Frames that a test system's graph is inferred from;
            training systems have as many, and as many again that follow.
        noise_percent: Standard deviation of the Gaussian noise on all
            frames, in per cent of each feature's own.
        num_training: Systems of 5 particles that laws are found on.
        num_particles: Particles of a test system.
        interval: Time between two frames, in second.
        num_test: Unseen systems whose graphs are inferred.
        method: How.
    """
    num_observed: int = 49
    noise_percent: float = 0.0
    num_training: int = 500
    num_particles: int = 5
    interval: float = 0.1
    num_test: int = 500
    method: Method = field(default_factory=Method)


class Curve(NamedTuple):
    """What is varied.

    Args:
        field: The :class:`Condition`'s field.
        title: Of a table.
        axis: What its values are, with their unit.
        sampled: Whether the posterior is sampled too: where the frames leave
            graphs uncertain.
    """
    field: str
    title: str
    axis: str
    sampled: bool = False


#: All curves; the ablations are measured likewise, by the name of each.
CURVES: dict[str, Curve] = {
    'frames':
    Curve('num_observed', 'Observed frames', 'observed frames', True),
    'noise':
    Curve('noise_percent', 'Observation noise',
          "noise (% of a feature's standard deviation)", True),
    'systems':
    Curve('num_training', 'Number of training systems', 'training systems'),
    'particles':
    Curve('num_particles', 'Particles of unseen systems, laws from those of 5',
          'particles'),
    'interval':
    Curve('interval', 'Interval between frames', 'interval (s)'),
}
ABLATION = Curve('method', 'Ablations', 'method')


class Point(NamedTuple):
    """One measurement; its name is that of a file.

    Args:
        curve: A key of :obj:`CURVES`, `ablation`, or `standard` where nothing
            differs, a point of all curves.
        value: What is varied, in words that a file's name can hold.
        seed: Of systems, initial weights and random starts.
        condition: All that it is measured under.
        sampled: Whether the posterior is sampled too.
    """
    curve: str
    value: str
    seed: int
    condition: Condition
    sampled: bool

    @property
    def name(self) -> str:
        """Such as `noise-0.5-seed0`."""
        parts = [self.curve, self.value, f'seed{self.seed}']
        return '-'.join(part for part in parts if part)


@dataclass(frozen=True)
class Study:
    """What is measured, and how far it goes.

    Args:
        name: What to call it.
        standard: What a curve varies.
        values: Of each curve.
        num_pilot: Systems that starts are tried on, at the most.
        max_starts: How many of these, at the most.
    """
    name: str
    standard: Condition
    values: Mapping[str, tuple[float, ...]]
    num_pilot: int = 100
    max_starts: int = 5

    def point(self, curve: str, value: Union[float, str], seed: int) -> Point:
        """The point of a curve, or the ablation of a name.

        Raises:
            KeyError: If there is none of that name.
        """
        if curve == 'ablation':
            assert isinstance(value, str)
            # What the scale has for all stays.
            taken = {
                key: getattr(ABLATIONS[value], key)
                for key in Method.__dataclass_fields__
                if getattr(ABLATIONS[value], key) != getattr(Method(), key)
            }
            changed: Any = replace(self.standard.method, **taken)
            what, text = ABLATION, value.replace(',', '').replace(' ', '_')
        else:
            what, changed, text = CURVES[curve], value, f'{value:g}'
        condition = replace(self.standard, **{what.field: changed})
        if condition == self.standard:
            return Point('standard', '', seed, condition, True)
        return Point(curve, text, seed, condition, what.sampled)

    def points(self, curves: Iterable[str], ablations: Iterable[str],
               seeds: Iterable[int]) -> list[Point]:
        """All that has to be measured, each once; those that share their laws
        follow each other."""
        asked: list[tuple[str, Any]] = [(curve, value) for curve in curves
                                        for value in self.values[curve]]
        asked += [('ablation', name) for name in ablations]
        points = [
            self.point(curve, value, seed) for seed in seeds
            for curve, value in asked
        ]
        laws = [(p.seed, self.laws_of(p.condition)) for p in points]
        order = sorted(range(len(points)), key=lambda i: laws.index(laws[i]))
        return list(dict.fromkeys(points[i] for i in order))

    def laws_of(self, condition: Condition) -> Condition:
        """What the laws depend on: the same for conditions that differ in the
        test systems and their search alone."""
        method = replace(condition.method,
                         num_restarts=self.standard.method.num_restarts)
        return replace(condition, method=method,
                       num_particles=self.standard.num_particles)


#: The figures, in about three quarters of an hour a seed; and seconds, to see
#: that all works.
STUDIES: dict[str, Study] = {
    'full':
    Study(
        'full', Condition(), {
            'frames': (10, 15, 20, 30, 49),
            'noise': (0, 0.5, 1, 2, 5),
            'systems': (10, 20, 50, 100, 500, 1_000, 5_000, 50_000),
            'particles': (3, 5, 8, 10, 15, 20),
            'interval': (0.05, 0.1, 0.2, 0.3, 0.5),
        }),
    'smoke':
    Study(
        'smoke',
        Condition(num_observed=6, num_training=6, num_test=3,
                  method=Method(num_restarts=1, num_stages=1)), {
                      'frames': (4, 6),
                      'noise': (0, 5),
                      'systems': (4, 6),
                      'particles': (3, 5),
                      'interval': (0.1, 0.2),
                  }, num_pilot=3, max_starts=2),
}
