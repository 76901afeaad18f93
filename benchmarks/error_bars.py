"""How often intervals of 90 % of laws and coefficients hold the truth.

    python benchmarks/error_bars.py                   # half an hour
    python benchmarks/error_bars.py --scale smoke

On 50 systems of springs and charges with drag, a magnetic field and a trap,
laws and terms are fitted along with graphs, which start from the true ones, for
40 seeds. Intervals of laws are looked at where 90 % of the pairs are.
"""
import math
from pathlib import Path
from typing import Any, Optional

import numpy as np
import pandas as pd
import torch
from tables import load, make_parser, publish, run_study
from torch_geometric.data import Batch
from verdicts import pair_offsets, turned

from pyg_fnri.data import from_trajectory
from pyg_fnri.laws import HALF_WIDTH, fit_force_laws, law_covariance
from pyg_fnri.simulation import SoftCharge, Spring
from pyg_fnri.simulation.forces import draw_positions, draw_velocities
from pyg_fnri.training import Config, build_module

FORCES = Spring(), SoftCharge(0.2, 0.2)
#: Coefficients of the terms, in m and s; those not named are zero.
TRUTH = {
    'drag': [-0.1, -0.05, 0],
    'turning': [0.2],
    'field': [0, 0, -0.05, 0, 0, -0.05, 0]
}
SIZES = dict(laptop=(50, 98, 40), smoke=(4, 20, 2))
NOISE = (0, 2)
INTERVAL, SUBSTEPS = 0.1, 20


def main(argv: Optional[list[str]] = None) -> None:
    args = make_parser(__doc__, 'error_bars', SIZES).parse_args(argv)
    smoke = 'smoke' * (args.scale == 'smoke')
    out = Path(args.results, smoke, 'error_bars')
    *size, seeds = SIZES[args.scale]
    cells = {
        f'noise-{noise:g}-seed{seed}': (noise, seed)
        for noise in NOISE
        for seed in range(seeds)
    }
    run_study(cells, lambda name: measure(*cells[name], *size),
              lambda: report(out), out, args)


def simulate(seed: int, num_systems: int, num_frames: int) -> Batch:
    """By the Runge-Kutta method of fourth order."""
    rng, shape = np.random.default_rng(seed), (num_systems, 5, 2)
    joined = np.triu(rng.random((num_systems, 2, 5, 5)) < 0.5, 1)
    joined = joined + joined.swapaxes(2, 3)
    x = np.concatenate([
        draw_positions(seed, shape, 0.5, math.inf),
        draw_velocities(seed, shape, 0.5)
    ], axis=-1)

    def slope(x: np.ndarray) -> np.ndarray:
        position, velocity = np.split(x, 2, axis=-1)
        offset, distance = pair_offsets(position)
        pull = sum(joined[:, k] * force.magnitude(distance)
                   for k, force in enumerate(FORCES)) / distance
        speed = np.linalg.norm(velocity, axis=-1, keepdims=True)
        force = np.einsum('sij,sijd->sid', pull,
                          offset) + 0.2 * turned(velocity)
        force = force - (0.1 + 0.05 * speed) * velocity - 0.05 * position
        return np.concatenate([velocity, force], axis=-1)

    frames, step = [x], INTERVAL / SUBSTEPS
    for number in range(SUBSTEPS * (num_frames - 1)):
        a = slope(x)
        b = slope(x + step / 2 * a)
        c = slope(x + step / 2 * b)
        x = x + step / 6 * (a + 2 * b + 2 * c + slope(x + step * c))
        if (number + 1) % SUBSTEPS == 0:
            frames.append(x)
    return Batch.from_data_list(
        list(map(from_trajectory, np.stack(frames, axis=2), joined)))


def measure(noise: float, seed: int, num_systems: int,
            num_frames: int) -> dict[str, Any]:
    data = simulate(seed, num_systems, num_frames)
    generator = torch.Generator().manual_seed(seed)
    spread = noise / 100 * data.x.flatten(0, 1).std(0)
    data.x = data.x + spread * torch.randn(data.x.size(), generator=generator)
    module = build_module(Config(4, num_frames, (2, 2), seed=seed))
    module.fit_units(data.x)
    model = module.with_laws(interval=INTERVAL, terms=[*TRUTH]).model.eval()
    logits = torch.nn.functional.one_hot(data.edge_label, 2).flatten(1)
    model.encoder.forward = lambda *_: 4. * logits
    fit_force_laws(model, data, generator)
    layer: Any = model.decoder.layer
    sender, receiver = data.edge_index
    apart = data.x[sender, :, :2] - data.x[receiver, :, :2]
    low, high = apart.norm(dim=-1).flatten()[::97].quantile(
        torch.tensor([0.05, 0.95])).tolist()
    distance = torch.linspace(low, high, 40)
    error = law_covariance(layer, layer.law, distance).diagonal(dim1=1, dim2=2)
    true = torch.from_numpy(
        np.stack([force.magnitude(distance.numpy()) for force in FORCES]))
    off = {'law': (layer.law(distance) - true) / error.sqrt()}
    errors = layer.coefficient_errors()
    for name, value in layer.coefficients.items():
        off[name] = (value - value.new_tensor(TRUTH[name])) / errors[name]
    return dict(noise=noise, seed=seed, off={
        k: v.tolist()
        for k, v in off.items()
    })


def report(out: Path) -> None:
    """A row for each law and term, over seeds, distances and coefficients."""
    rows = []
    for result in load(out).values():
        off = result['off']
        laws = dict(zip(('spring', 'charge'), off.pop('law')))
        for name, part in (laws | off).items():
            square = np.square(part)
            held = 100 * np.mean(square < HALF_WIDTH**2)
            rows.append((f"{result['noise']:g} %", name, held, square.mean()))
    frame = pd.DataFrame(rows, columns=['noise', 'of', 'held', 'square'])
    groups = frame.groupby(['noise', 'of'], sort=False)
    table = pd.DataFrame({
        'hold the truth (%)':
        groups['held'].mean().round(1),
        'errors / standard errors':
        groups['square'].mean().pow(0.5).round(2),
        'seeds':
        groups.size()
    })
    note = (
        'Of distances where 90 % of the pairs are, and of all coefficients. '
        'Errors over standard errors are root mean squares. Made by '
        '`python benchmarks/error_bars.py`.')
    publish(out / 'table.md', 'Intervals of 90 % of laws and terms',
            {'With noise': table.reset_index('of')}, [note])


if __name__ == '__main__':
    main()
