"""Measure what is meant to be fast, as ratios within one process.

    python scripts/benchmark.py                  # everything, a few minutes
    python scripts/benchmark.py --only loader    # one part

Times are the best of several runs; compare ratios between machines, not
seconds.
"""
import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, Optional

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch_geometric.loader import DataLoader
from torch_geometric.utils import scatter

from pyg_fnri.data import fully_connected
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.inference import refine
from pyg_fnri.loader import SystemLoader
from pyg_fnri.simulation import Charge, FiniteSpring, Spring, simulate
from pyg_fnri.training import Config, build_module
from pyg_fnri.transforms import SplitTrajectory

Row = tuple[str, float, str]


def best(run: Callable[[], Any], repeats: int = 5) -> float:
    """Seconds of the fastest of some runs, after one to warm up."""
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def simulation() -> list[Row]:
    """Systems of 5 particles and 10,000 steps a second, after compilation."""
    rows = []
    for name, forces in (('I+C', [Spring(), Charge()]),
                         ('I+C+F', [Spring(),
                                    Charge(),
                                    FiniteSpring()])):
        seconds = best(lambda: simulate(forces, 2_000), repeats=2)
        rows.append((name, 2_000 / seconds, 'systems/s'))
    return rows


def index_add(x: Tensor, index: Tensor, num_nodes: int) -> Tensor:
    return x.new_zeros(num_nodes, x.size(1)).index_add(0, index, x)


def scatter_add(x: Tensor, index: Tensor, num_nodes: int) -> Tensor:
    return scatter(x, index, 0, num_nodes, reduce='sum')


def segments(x: Tensor, index: Tensor, num_nodes: int) -> Tensor:
    """Only where receivers are sorted and have equally many senders."""
    receiver = torch.arange(num_nodes).unsqueeze(-1)
    assert torch.equal(receiver.expand(-1,
                                       len(index) // num_nodes),
                       index.view(num_nodes, -1))
    return x.unflatten(0, (num_nodes, -1)).sum(1)


def aggregation() -> list[Row]:
    """Ways to sum 256 channels of messages; `ScatterSum` takes the first."""
    rows = []
    for num_particles, num_systems in (5, 640), (300, 1):
        edge_index, n = fully_connected(num_particles), num_particles
        index = torch.cat([edge_index[1] + n * i for i in range(num_systems)])
        n *= num_systems
        x = torch.randn(len(index), 256)
        leaf, gradient = x.clone().requires_grad_(), torch.randn(n, 256)
        for add in (scatter_add, index_add, segments):
            label = f'{add.__name__}, {num_particles} particles'
            seconds = best(lambda: add(x, index, n), repeats=20)
            rows.append((f'{label}, forward', 1e3 * seconds, 'ms'))
            seconds = best(lambda: add(leaf, index, n).backward(gradient),
                           repeats=20)
            rows.append((f'{label}, and backward', 1e3 * seconds, 'ms'))
    return rows


def small_dataset(root: str, num_systems: int = 2_000,
                  num_particles: int = 5) -> ParticleSystems:
    """Enough I+C systems for the parts below."""
    return ParticleSystems(root, split='val', num_systems=(1, num_systems, 1),
                           num_particles=num_particles,
                           transform=SplitTrajectory(49))


def loader() -> list[Row]:
    """A batch of 64 systems, drawn at random."""
    with tempfile.TemporaryDirectory() as root:
        dataset = small_dataset(root)
        rows = []
        for cls in (SystemLoader, DataLoader):
            seconds = best(lambda: list(cls(dataset, 64, shuffle=True)),
                           repeats=2)
            rows.append((f'{cls.__module__}.{cls.__name__}',
                         1e3 * seconds / (2_000 / 64), 'ms'))
        return rows


def training() -> list[Row]:
    """A step of fNRI on I+C: forward, backward and the optimiser's."""
    with tempfile.TemporaryDirectory() as root:
        dataset = small_dataset(root)
        rows = []
        for recipe in ('quick', 'paper'):
            module = build_module(Config(4, 49, [2, 2], recipe=recipe))
            module.fit_units(dataset._data.x)
            module.log_dict = lambda *args, **kwargs: None  # No trainer.
            batch = next(iter(SystemLoader(dataset, module.recipe.batch_size)))
            optimizer = torch.optim.Adam(module.parameters(), fused=True)

            def step() -> None:
                loss = module.training_step(batch, 0)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

            rows.append((recipe, 1e3 * best(step), 'ms'))
        return rows


def refinement() -> list[Row]:
    """Refining I+C systems by force laws, restarts included."""
    module = build_module(Config(4, 49, [2, 2], laws={'half_width': 5.0}))
    law = module.model.decoder.layer.law
    with torch.no_grad():
        law.value[0] = -0.1 * law.knots
        law.value[1] = 0.2 / law.knots**2
    module.model.decoder.layer.scale.copy_(
        torch.tensor([8e-4, 8e-4, 0.015, 0.015]))
    rows = []
    for num_systems, num_particles in (1_000, 5), (50, 20), (10, 50):
        with tempfile.TemporaryDirectory() as root:
            dataset = small_dataset(root, num_systems, num_particles)
            module.fit_units(dataset._data.x)
            batch = next(iter(SystemLoader(dataset, num_systems)))
            seconds = best(lambda: refine(module.model, batch), repeats=1)
        rows.append(
            (f'{num_systems:,} of {num_particles} particles', seconds, 's'))
    return rows


PARTS = {
    part.__name__: part
    for part in (simulation, aggregation, loader, training, refinement)
}


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', choices=PARTS, help='a single part')
    parser.add_argument('--threads', type=int,
                        help="PyTorch's threads [as it decides]")
    args = parser.parse_args(argv)
    if args.threads is not None:
        if args.threads < 1:
            sys.exit(f'--threads is {args.threads}; expected at least 1.')
        torch.set_num_threads(args.threads)
    for name, part in PARTS.items():
        if args.only not in (None, name):
            continue
        rows = part()
        table = Table(title=f'{name}: {part.__doc__}', title_justify='left')
        for column in ('', rows[0][2], 'ratio to the first'):
            table.add_column(column, justify='right' if column else 'left')
        for label, value, _ in rows:
            table.add_row(label, f'{value:,.2f}', f'{value / rows[0][1]:.2f}')
        Console().print(table)


if __name__ == '__main__':
    main()
