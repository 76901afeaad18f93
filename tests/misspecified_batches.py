"""A few systems outside the assumptions of force laws, for tests."""
from dataclasses import dataclass
from functools import cache

import outside_assumptions as outside
from verdicts import TWO, Kind, plus, turned

from pyg_fnri.simulation import SoftCharge, Spring


@dataclass(frozen=True)
class Misspecified:
    """Springs and softened charges, and a term of a name."""
    term: str = ''
    friction: float = 0.2
    forces = (Spring(), SoftCharge(0.2, 0.2))

    @property
    def kind(self):
        acts = {
            '': None,
            'friction': plus(lambda now: -self.friction * now.velocity),
            'magnetic': plus(lambda now: 0.2 * turned(now.velocity)),
            'transverse': plus(outside.transverse),
            'trap': plus(lambda now: -0.05 * now.position),
            'masses': outside.unknown_masses
        }
        return Kind(TWO, acts[self.term])


@cache
def batches(system, num_systems=32):
    """Systems to fit laws to, and others."""
    return tuple(system.kind.systems(num_systems, seed, 0.0) for seed in (1, 2))
