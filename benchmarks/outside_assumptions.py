"""Whether terms, graphs and laws are found that central forces alone lack.

    python benchmarks/outside_assumptions.py                   # four hours
    python benchmarks/outside_assumptions.py --cell 'friction-0' --scale smoke

Finds laws and terms from scratch for systems that differ in one thing, or in
several, from central forces between equal particles, and for sparse graphs and
steep laws. Graphs are then inferred for other systems, on which laws are also
checked. Labels are used for the figures alone. A cell is KIND-SEED.
"""
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np
import pandas as pd
import torch
from tables import MISSING, load, make_parser, mean_text, publish, run_study
from torch import Tensor
from torch_geometric.data import Batch
from torchmetrics.functional.classification import binary_auroc
from verdicts import (TWO, Kind, Law, State, make_model, masses, pair_offsets,
                      plus, pull, push, turned)

from pyg_fnri.inference import refine
from pyg_fnri.laws import check_laws, discover_force_laws
from pyg_fnri.metrics import EdgeAccuracy, relative_law_error
from pyg_fnri.nn import RelationalAutoEncoder
from pyg_fnri.simulation import LinearNetwork


@dataclass(frozen=True)
class Sparse(Kind):
    """So many of the pairs interact, in each layer."""
    density: float = 0.1

    def draw_edge_types(self, seed: int, num_systems: int,
                        num_particles: int) -> np.ndarray:
        shape = (num_systems, len(self.laws), num_particles, num_particles)
        rank = np.random.default_rng([seed, 2]).random(shape)
        interacts = np.tril(rank < self.density, -1).astype(np.int64)
        return interacts + interacts.swapaxes(-1, -2)


@dataclass(frozen=True)
class OneWay(Kind):
    """In the first layer, one particle of a pair feels the other alone."""
    def draw_edge_types(self, seed: int, num_systems: int,
                        num_particles: int) -> np.ndarray:
        graphs = super().draw_edge_types(seed, num_systems, num_particles)
        shape = (num_systems, num_particles, num_particles)
        first = np.tril(np.random.default_rng([seed, 3]).random(shape) < 0.5)
        feels = first | (~first.swapaxes(-1, -2)
                         & ~np.tri(*shape[1:], dtype=bool))
        graphs[:, 0] *= feels
        return graphs


@dataclass(frozen=True)
class Apart(Kind):
    """No two particles start within each other's core, 0.9 m."""
    def draw_positions(self, seed: int, shape: Any) -> np.ndarray:
        rng = np.random.default_rng([seed, 4])
        out = rng.uniform(-1.8, 1.8, shape)
        while True:
            apart = pair_offsets(out)[1] + 9 * np.eye(shape[1])
            near = np.argwhere(np.tril(apart < 0.9).any(2))
            if not len(near):
                return out
            out[tuple(near.T)] = rng.uniform(-1.8, 1.8, (len(near), shape[2]))


@dataclass(frozen=True)
class Linear(Kind):
    """Of first order, with one feature; by the sender's state."""
    def draw_edge_types(self, *args: Any) -> np.ndarray:
        return LinearNetwork().draw_edge_types(*args)

    def simulate(self, *args: Any) -> np.ndarray:
        return LinearNetwork().simulate(*args)


class Case(NamedTuple):
    """A kind of system, the terms that it has besides central laws (one-way
    among them) with what is known of their coefficients, the half width that
    laws are told of walls, and the share of systems that do for large ones."""
    kind: Kind
    terms: dict[str, Sequence[float]] = {}
    half_width: Optional[float] = None
    share: float = 1.0


def transverse(now: State) -> np.ndarray:
    """Springs also push by 0.1 N to the left of the line of the pair."""
    offset, distance = pair_offsets(now.position)
    unit = now.interacts[:, 0] / distance
    return 0.1 * turned(np.einsum('sij,sijd->sid', unit, offset))


def unknown_masses(laws: Sequence[Law], now: State) -> np.ndarray:
    return now.pairs(laws) / masses(now.trait)[..., None]


def gravity(laws: Sequence[Law], now: State) -> np.ndarray:
    mass = masses(now.trait)
    return now.pairs(laws, mass[:, :, None] * mass[:, None])


def drag(now: State) -> np.ndarray:
    return -0.2 * now.velocity


def lennard_jones(distance: Any) -> Any:
    """With its core; of 0.05 J at a distance of 1 m."""
    ratio = 0.9 / np.maximum(distance, 0.45)
    return 0.3 * (2 * ratio**13 - ratio**7)


def soft(distance: Any) -> Any:
    return -push(distance)


def step(distance: Any) -> Any:
    return -0.3 * (distance < 1.5)


def sine(distance: Any) -> Any:
    """Three periods in 6 m."""
    return 0.3 * np.sin(np.pi * distance)


def straight(distance: Any) -> Any:
    return 0.4 * distance


def magnetic(now: State) -> np.ndarray:
    return 0.2 * turned(now.velocity)


def trap(now: State) -> np.ndarray:
    return -0.05 * now.position


def rubbed(laws: Sequence[Law], now: State) -> np.ndarray:
    return unknown_masses(laws, now) + drag(now)


#: Terms and what is known of their coefficients.
DRAG, TURNING = {'drag': [-0.2, 0, 0]}, {'turning': [0.2]}
RESPONSE, ONE_WAY = {'response': []}, {'one-way': []}
TRAP = {'field': [0, 0, -0.05, 0, 0, -0.05, 0]}
INPUT = {'input': [], 'field': [0, -1, 0], **ONE_WAY}
CASES: dict[str, Case] = {
    'lawful': Case(Kind(TWO)),
    'told_walls': Case(Kind(TWO, box=2.5), half_width=2.5),
    'walls': Case(Kind(TWO, box=2.5)),
    'friction': Case(Kind(TWO, plus(drag)), DRAG),
    'magnetic': Case(Kind(TWO, plus(magnetic)), TURNING),
    'transverse': Case(Kind(TWO, plus(transverse)), {'transverse': []}),
    'trap': Case(Kind(TWO, plus(trap)), TRAP),
    'one_way': Case(OneWay(TWO), ONE_WAY),
    'masses': Case(Kind(TWO, unknown_masses), RESPONSE),
    'gravity': Case(Kind((soft, ), gravity, masses=True), {'gravity': []}),
    'friction_masses_one_way': Case(OneWay(TWO, rubbed), DRAG | RESPONSE
                                    | ONE_WAY),
    'charges_magnetic_trap': Case(
        Kind((push, ), plus(lambda now: magnetic(now) + trap(now))),
        TURNING | TRAP),
    'sparse_5_5': Case(Sparse(TWO, density=0.05)),
    'sparse_5_10': Case(Sparse(TWO, density=0.1)),
    'sparse_10_5': Case(Sparse(TWO, density=0.05, num_particles=10)),
    'sparse_10_10': Case(Sparse(TWO, density=0.1, num_particles=10)),
    'lennard_jones': Case(Apart((lennard_jones, ), box=2.0), half_width=2.0),
    'step': Case(Kind((step, push), box=2.5), half_width=2.5),
    'sine': Case(Kind((sine, ), box=3.0), half_width=3.0),
    'linear_15': Case(Linear((straight, ), num_particles=15), INPUT, share=0.2),
    'springs_15': Case(Kind((pull, ), num_particles=15), share=0.2),
    'springs_50': Case(Sparse((pull, ), num_particles=50), share=0.05)
}  # yapf: disable
SCALES: dict[str, dict[str, int]] = dict(
    laptop=dict(num_fitted=300, num_checked=200, num_tested=2_000),
    smoke=dict(num_fitted=8, num_checked=4, num_tested=4))


def main(argv: Optional[list[str]] = None) -> None:
    args = make_parser(__doc__, 'outside_assumptions', SCALES).parse_args(argv)
    smoke = 'smoke' * (args.scale == 'smoke')
    out = Path(args.results, smoke, 'outside_assumptions')
    cells = [f'{name}-{seed}' for seed in range(3) for name in CASES]
    run_study(cells, lambda cell: run(*cell.rsplit('-', 1), args.scale),
              lambda: report(out), out, args)


def run(name: str, seed: str, scale: str) -> dict[str, Any]:
    """Finds laws, and measures and checks them on other systems."""
    kind, terms, half_width, share = CASES[name]
    size = {
        key: max(4, round(share * number))
        for key, number in SCALES[scale].items()
    }
    fitted, checked, tested = (kind.systems(number, 10 * int(seed) + part, 0.0)
                               for part, number in enumerate(size.values()))
    model = make_model(kind, fitted, half_width=half_width)
    found = discover_force_laws(model, fitted,
                                torch.Generator().manual_seed(int(seed)))
    check = check_laws(model, checked)
    few = round(share * 500)
    batches = [
        tested[first:first + few] for first in range(0, len(tested), few)
    ]
    figures = measure(model, kind, terms,
                      list(map(Batch.from_data_list, batches)),
                      true_masses(10 * int(seed) + 2, len(tested)))
    return dict(
        cell=name, seed=int(seed), arguments=size, confirmed=found.confirmed,
        path=[
            f'{s.term} {s.lead}{"" if s.kept else " (left out)"}'
            for s in found.steps
        ], holds=check.holds, verdict=str(check), **figures)


def true_masses(seed: int, num_systems: int) -> Tensor:
    """Of the particles of systems with a seed, five each."""
    trait = np.random.default_rng(seed).random((num_systems, 5))
    return torch.from_numpy(masses(trait)).flatten()


def measure(model: RelationalAutoEncoder, kind: Kind,
            terms: dict[str, Sequence[float]], batches: Sequence[Batch],
            true_mass: Tensor) -> dict[str, Any]:
    """Strict edge accuracy, F1 and AUROC of interactions, and relative errors
    of laws, of coefficients and of masses, with what terms there are."""
    layer: Any = model.decoder.layer
    accuracy = EdgeAccuracy(model.latent.num_edge_types)
    found, apart, mass = list[Tensor](), list[Tensor](), list[Tensor]()
    score = list[Tensor]()
    for batch in batches:
        graph = refine(model, batch)
        accuracy.update(graph.edge_type, batch.edge_label)
        score.append(1 - torch.stack([q[:, 0] for q in graph.posterior]))
        found.append(
            torch.stack([graph.edge_type.any(-1),
                         batch.edge_label.any(-1)]))
        sender, receiver = batch.edge_index
        position = batch.x[..., :kind.num_dimensions]
        apart.append((position[receiver] - position[sender]).norm(dim=-1))
        mass += [] if graph.mass is None else [graph.mass]
    ours, theirs = torch.cat(found, 1)
    names = {*layer.terms, *['one-way'] * (not model.latent.undirected)}
    out: dict[str, Any] = dict(
        edge_accuracy=accuracy.compute().combined.item(), f1=2 *
        (ours & theirs).sum().item() / (ours.sum() + theirs.sum()).item(),
        terms=sorted(names), right_terms=names == {*terms})
    label = torch.cat([batch.edge_label for batch in batches])
    there, seen = label.t(), torch.cat(score, 1)
    out['auroc'] = max(
        min(binary_auroc(p, t).item() for p, t in zip(seen[[*order]], there))
        for order in itertools.permutations(range(len(seen))))
    distance = torch.linspace(0.05, 10, 2_000)
    law = layer.laws['input'] if 'input' in layer.laws else layer.law
    learned = law(distance).detach()
    errors = [[
        relative_law_error(distance, learned[[channel]],
                           law(distance.numpy())[None],
                           torch.cat(apart)[own == 1]).item()
        for channel in range(len(learned))
    ] for law, own in zip(kind.laws, label.unbind(-1))]
    orders = itertools.permutations(range(len(learned)))
    out['law_errors'] = min(([row[k] for row, k in zip(errors, order)]
                             for order in orders), key=max)
    off = [
        np.abs(layer.coefficients[name].detach().numpy() - values).max() /
        np.abs(values).max() for name, values in terms.items()
        if len(values) and name in names
    ]
    out['coefficient_error'] = float(max(off)) if off else None
    if mass and 'response' in terms:
        ratio = torch.cat(mass) / true_mass
        ratio = ratio / ratio.log().mean().exp()
        out['mass_error'] = (ratio - 1).abs().median().item()
    return out


def report(out: Path) -> None:
    """A row for each kind, means over seeds."""
    results = pd.DataFrame(load(out, '*-*').values())
    if not len(results):
        return
    rows: dict[str, dict[str, Any]] = {}
    for name in CASES:
        of = results[results['cell'] == name]
        if not len(of):
            continue
        errors = of['law_errors'].map(max)
        rows[name] = {
            'terms': ', '.join(CASES[name].terms) or 'none',
            'found': f"{of['right_terms'].sum()} of {len(of)}",
            'holds': f"{of['holds'].sum()} of {len(of)}",
            'edges': mean_text(100 * of['edge_accuracy'], 2),
            'F1': mean_text(of['f1'], 3),
            'AUROC': mean_text(100 * of['auroc'], 2),
            'worst law': mean_text(100 * errors, 1),
        } | {
            title: mean_text(100 * of[key].astype(float), 1)
            for title, key in (('coefficients', 'coefficient_error'),
                               ('masses', 'mass_error')) if key in of
        } | {
            'minutes': mean_text(of['minutes'], 1)
        }
    wrong = results[~(results['holds'] & results['right_terms'])]
    notes = [
        'Made by `python benchmarks/outside_assumptions.py`. Means over seeds '
        '(± standard errors): strict edge accuracy (%), F1 and AUROC (%, of '
        'the worst layer) of interactions '
        'in systems that laws were not fitted to; relative errors (%) of the '
        'worst law, of the worst coefficient and, the median, of masses. How '
        'often exactly the terms were found that there are, and how often the '
        'laws were said to hold. Where either was wrong:',
        *(f"**{row.cell}, seed {row.seed}.** Terms: {', '.join(row.terms)}; "
          f"{' '.join(row.verdict.split())}" for row in wrong.itertuples())
    ]
    publish(out / 'table.md', 'Outside the assumptions of central forces',
            {'Kinds': pd.DataFrame(rows).T.fillna(MISSING)}, notes)


if __name__ == '__main__':
    main()
