"""What the check of force laws reports where their assumptions fail.

    python benchmarks/outside_assumptions.py                   # 45 minutes
    python benchmarks/outside_assumptions.py --cell friction --scale smoke

Trains the quick recipe on systems that break one assumption of force laws each,
and on two that break none, puts force laws in the place of the networks and
checks them on held-out systems. Labels are used for accuracies alone.
"""
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np
import pandas as pd
import torch
from tables import MISSING, load, make_parser, publish, run_study

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.inference import find_motion, refine
from pyg_fnri.laws import check_laws, discover_force_laws
from pyg_fnri.loader import SystemLoader
from pyg_fnri.simulation import (Charge, Force, Kuramoto, Newtonian, SoftCharge,
                                 Spring, System)
from pyg_fnri.simulation.sampling import (draw_positions, draw_velocities,
                                          in_streams)
from pyg_fnri.training import Config, fit
from pyg_fnri.transforms import SplitTrajectory


class Moment(NamedTuple):
    """Of S systems, L layers, N particles, D dimensions."""
    force: np.ndarray  # The sum over pairs, [S, N, D].
    interacts: np.ndarray  # [S, L, N, N].
    position: np.ndarray  # [S, N, D].
    velocity: np.ndarray  # [S, N, D].
    trait: np.ndarray  # Uniform on [0, 1), [S, N].


@dataclass(frozen=True)
class Misspecified(Newtonian):
    """Springs and softened charges, and a term that no law of a distance can
    be, of :obj:`TERMS`. No walls; forces are not clamped."""
    forces: tuple[Force, ...] = (Spring(), SoftCharge(0.2, 0.2))
    step_size: float = 4e-3
    sample_every: int = 25
    num_steps: int = 2_500
    box_half_width: Optional[float] = None
    term: str = ''
    friction: float = 0.2  # In 1 / s.

    def simulate(self, edge_types: np.ndarray, seed: int,
                 progress: bool = False) -> np.ndarray:
        num_systems, _, num_particles, _ = edge_types.shape
        shape = (num_systems, num_particles, self.num_dimensions)
        start = (edge_types,
                 draw_positions(seed, shape, self.position_std, np.inf),
                 draw_velocities(seed, shape, self.speed),
                 in_streams(lambda rng, size: rng.random((size, num_particles)),
                            seed, 100, num_systems))
        # Side by side, as many as the cache holds.
        return np.concatenate([
            self._steps(*(part[first:first + 64] for part in start))
            for first in range(0, num_systems, 64)
        ])

    def _steps(self, interacts: np.ndarray, position: np.ndarray,
               velocity: np.ndarray, trait: np.ndarray) -> np.ndarray:
        def acceleration() -> np.ndarray:
            force = self.pairwise(interacts, position)
            if not self.term:
                return force
            now = Moment(force, interacts, position, velocity, trait)
            return force + TERMS[self.term][1](self, now)

        step, frames = self.step_size, []
        kick = step * acceleration()
        for number in range(1, self.num_steps):
            # Velocities are half a step behind, except in frames.
            velocity = velocity + kick
            position = position + step * velocity
            kick = step * acceleration()
            if number % self.sample_every == 0:
                now = velocity + kick / 2
                frames.append(np.concatenate([position, now], axis=-1))
        return np.stack(frames, axis=2).astype(np.float32)

    def pairwise(self, interacts: np.ndarray,
                 position: np.ndarray) -> np.ndarray:
        offset, distance = pair_offsets(position)
        magnitude = np.zeros_like(distance)
        for layer, force in enumerate(self.forces):
            magnitude += interacts[:, layer] * force.magnitude(distance)
        return np.einsum('sij,sijd->sid', magnitude / distance, offset)


def pair_offsets(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From each particle j to each i, :obj:`[S, N, N, D]`, and how far it is,
    1 from a particle to itself."""
    offset = position[:, :, None] - position[:, None]
    square = np.einsum('sijd,sijd->sij', offset, offset)
    return offset, np.sqrt(square + np.eye(position.shape[1]))


def turned(vector: np.ndarray) -> np.ndarray:
    """Vectors :obj:`[*, 2]` by a quarter turn to the left."""
    return np.stack([-vector[..., 1], vector[..., 0]], axis=-1)


def transverse(_: Misspecified, now: Moment) -> np.ndarray:
    """Springs also push by 0.1 N to the left of the line of the pair."""
    offset, distance = pair_offsets(now.position)
    unit = now.interacts[:, 0] / distance
    return 0.1 * turned(np.einsum('sij,sijd->sid', unit, offset))


def one_way(system: Misspecified, now: Moment) -> np.ndarray:
    """Of two particles with a spring, the one of the greater trait feels it
    alone, as a pursuer does. Labels name both directions all the same."""
    pursued = now.trait[:, :, None] < now.trait[:, None]
    springs = now.interacts * [[[[1]], [[0]]]]
    return -system.pairwise(springs * pursued[:, None], now.position)


#: What each breaks, and the accelerations that come on top, [S, N, D].
TERMS: dict[str, tuple[str, Callable[[Misspecified, Moment], np.ndarray]]] = {
    'friction': ('friction', lambda kind, now: -kind.friction * now.velocity),
    'magnetic': ('force across the velocity',
                 lambda _, now: 0.2 * turned(now.velocity)),  # 0.2 rad / s.
    'transverse': ('force across the line of a pair', transverse),
    'trap': ('force from outside', lambda _, now: -0.05 * now.position),
    'one_way': ('springs that one end feels', one_way),
    'masses': ('masses of 0.5 to 2 kg', lambda _, now: now.force *
               (2 / 4**now.trait[..., None] - 1))
}


class Case(NamedTuple):
    """A kind of system, what it breaks, whether force laws are right for it,
    and where they are told the walls to be."""
    system: System
    what: str
    holds: bool = False
    half_width: Optional[float] = None


_BOX = Newtonian((Spring(), Charge()), box_half_width=2.5)
_MISSING = {
    term: Case(Misspecified(term=term), what)
    for term, (what, _) in TERMS.items()
}
CASES: dict[str, Case] = {
    'lawful': Case(Misspecified(), 'nothing; no walls', True),
    'told_walls': Case(_BOX, 'nothing; walls known', True, 2.5),
    'walls': Case(_BOX, 'walls that are not told'),
    **_MISSING, 'kuramoto': Case(Kuramoto(), 'no mechanics at all')
}
SCALES: dict[str, dict[str, int]] = dict(
    laptop=dict(num_systems=5_000, num_fitted=1_000, num_checked=200,
                max_steps=2_500, hidden_channels=64, batch_size=64),
    smoke=dict(num_systems=16, num_fitted=16, num_checked=8, max_steps=2,
               hidden_channels=4, batch_size=8))


def main(argv: Optional[list[str]] = None) -> None:
    args = make_parser(__doc__, 'outside_assumptions', SCALES).parse_args(argv)
    smoke = 'smoke' * (args.scale == 'smoke')
    out = Path(args.results, smoke, 'outside_assumptions')
    runs = Path(args.runs, args.scale)
    run_study(CASES, lambda name: run(name, args.scale, runs / name, args.root),
              lambda: report(out), out, args)


def run(name: str, scale: str, place: Path, root: str) -> dict[str, Any]:
    """Trains, fits laws and checks them."""
    case, size = CASES[name], SCALES[scale]
    train, val = (ParticleSystems(
        root, f'outside_{name}', split, system=case.system,
        num_systems=(size['num_systems'], size['num_checked'], 1),
        transform=SplitTrajectory(49)) for split in ('train', 'val'))
    systems = next(iter(SystemLoader(train, size['num_fitted'])))
    held_out = next(iter(SystemLoader(val, size['num_checked'])))
    out = dict(what=case.what, right=case.holds, arguments=size)
    options = {
        key: size[key]
        for key in ('max_steps', 'hidden_channels', 'batch_size')
    }
    try:
        motion = find_motion(systems.x, train.frame_interval)
        config = Config.for_dataset(train, 49, options=options)
        networks = fit(config, train, val, str(place), overwrite=True)
        laws = networks.with_laws(interval=train.frame_interval,
                                  half_width=case.half_width, **motion)
        discover_force_laws(laws.model, systems,
                            torch.Generator().manual_seed(0))
        check = check_laws(laws.model, held_out, networks.model)
        guess, _ = networks.model.infer(held_out)
        refined = refine(laws.model, held_out).edge_type
    except ValueError as refusal:
        return dict(out, holds=False, verdict=f'No laws are fitted: {refusal}')
    return dict(
        out, holds=check.holds, verdict=str(check), numbers=check.numbers,
        encoder_accuracy=networks.accuracies(guess, held_out)['accuracy'],
        refined_accuracy=laws.accuracies(refined, held_out)['accuracy'])


def report(out: Path) -> None:
    """A row for each system that has a result."""
    found = load(out)
    results = {name: found[name] for name in CASES if name in found}
    rows = pd.DataFrame(map(row_of, results.values()),
                        pd.Index(results, name='system'))
    right = sum(r['holds'] == r['right'] for r in results.values())
    notes = [
        f'The verdict is right for {right} of {len(results)} systems. Made by '
        f'`python benchmarks/outside_assumptions.py`. Scores are negative '
        f"log-likelihoods of held-out single steps, in nat a feature; laws' "
        f'lead: networks minus laws, with its standard error. Accuracies (%), '
        f'which no verdict uses, are strict.',
        *(f"**{name}.** {' '.join(result['verdict'].split())}"
          for name, result in results.items())
    ]
    publish(out / 'table.md', 'Outside the assumptions of force laws',
            {'Verdicts': rows.fillna(MISSING)}, notes)


def row_of(result: dict[str, Any]) -> dict[str, Any]:
    row = {'breaks': result['what'], 'laws hold?': 'refused'}
    if 'numbers' in result:
        scores = ('networks', 'laws')
        row |= {'laws hold?': 'yes' if result['holds'] else 'no'}
        row |= {name: f"{result['numbers'][name]:.2f}" for name in scores}
        return row | {
            'encoder': f"{100 * result['encoder_accuracy']:.1f}",
            'refined': f"{100 * result['refined_accuracy']:.1f}",
            'minutes': f"{result['minutes']:.1f}"
        }
    if 'check' not in result:
        return row
    check = result['check']
    found = [f"{f['name']} ({f['size']:.0%})" for f in check['findings']]
    for key in ('at_walls', 'one_way'):
        size, error = check.get(key) or (0, 0)
        found += [key] * (size > max(2 * error, 0.02))
    lead, error = check['behind']
    return row | {
        'laws hold?': 'yes' if result['holds'] else 'no',
        'networks': f"{check['networks'][0]:.2f}",
        'laws': f"{check['laws'][0]:.2f}",
        "laws' lead": f'{-lead:.2f} ± {error:.2f}',
        'found': ', '.join(found),
        'encoder': f"{100 * result['encoder_accuracy']:.1f}",
        'refined': f"{100 * result['refined_accuracy']:.1f}",
        'minutes': f"{result['minutes']:.1f}"
    }


if __name__ == '__main__':
    main()
