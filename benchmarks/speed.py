"""Measure what is meant to be fast, as ratios within one process.

    python benchmarks/speed.py                  # everything, a few minutes
    python benchmarks/speed.py --only loader    # one part, the best of three
"""
import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch
from torch_geometric.loader import DataLoader
from torch_geometric.utils import scatter

from pyg_fnri.data import fully_connected
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.inference import refine
from pyg_fnri.loader import SystemLoader
from pyg_fnri.simulation import Charge, FiniteSpring, Spring, simulate
from pyg_fnri.training import Config, build_module
from pyg_fnri.transforms import SplitTrajectory

Runs = Iterator[tuple[str, Callable[[], Any]]]


def systems(num_systems: int = 2_000,
            num_particles: int = 5) -> ParticleSystems:
    """I+C systems, which stay in memory."""
    with tempfile.TemporaryDirectory() as root:
        return ParticleSystems(root, split='val',
                               num_systems=(1, num_systems, 1),
                               num_particles=num_particles,
                               transform=SplitTrajectory(49))


def simulation() -> Runs:
    """2,000 systems of 5 particles and 10,000 steps."""
    forces = [Spring(), Charge(), FiniteSpring()]
    yield 'I+C', lambda: simulate(forces[:2], 2_000)
    yield 'I+C+F', lambda: simulate(forces, 2_000)


def aggregation() -> Runs:
    """A sum of 256 channels of messages, forward, and with backward;
    `ScatterSum` takes the first way. Not measured on GPUs."""
    for n, num_systems in (5, 640), (300, 1):
        receiver, size = fully_connected(n)[1], n * num_systems
        index = torch.cat([receiver + n * i for i in range(num_systems)])
        x = torch.randn(index.numel(), 256)
        leaf, gradient = x.clone().requires_grad_(), torch.randn(size, 256)
        ways = dict(
            scatter=lambda x: scatter(x, index, 0, size),
            index_add=lambda x: x.new_zeros(size, 256).index_add(0, index, x),
            # Where receivers are sorted and have equally many senders.
            segments=lambda x: x.view(size, n - 1, 256).sum(1))
        for name, way in ways.items():
            name = f'{name}, {num_systems} of {n}'
            yield name, lambda: way(x)
            yield f'{name}, backward', lambda: way(leaf).backward(gradient)


def loader() -> Runs:
    """2,000 systems, in batches of 64 drawn at random."""
    dataset = systems()
    for cls in SystemLoader, DataLoader:
        yield cls.__name__, lambda: list(cls(dataset, 64, shuffle=True))


def training() -> Runs:
    """A step of fNRI on I+C: forward, backward and the optimiser's."""
    dataset = systems()
    for recipe in 'quick', 'paper':
        module = build_module(Config(4, 49, [2, 2], recipe=recipe))
        module.fit_units(dataset._data.x)
        module.log_dict = lambda *args, **kwargs: None  # No trainer.
        batch = next(iter(SystemLoader(dataset, module.recipe.batch_size)))
        optimizer = torch.optim.Adam(module.parameters(), fused=True)

        def step() -> None:
            optimizer.zero_grad()
            module.training_step(batch, 0).backward()
            optimizer.step()

        yield recipe, step


def refinement() -> Runs:
    """Refining I+C systems by force laws, restarts included."""
    module = build_module(Config(4, 49, [2, 2], laws={'half_width': 5.0}))
    layer = module.model.decoder.layer
    with torch.no_grad():
        layer.law.value[0] = -0.1 * layer.law.knots
        layer.law.value[1] = 0.2 / layer.law.knots**2
    layer.scale.copy_(torch.tensor([8e-4, 8e-4, 0.015, 0.015]))
    for size in (1_000, 5), (50, 20), (10, 50):
        dataset = systems(*size)
        module.fit_units(dataset._data.x)
        batch = next(iter(SystemLoader(dataset, len(dataset))))
        yield '{} of {}'.format(*size), lambda: refine(module.model, batch)


TIMED = (simulation, aggregation, loader, training, refinement)
PARTS = {part.__name__: part for part in TIMED}


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--only', choices=PARTS, help='a single part')
    only = parser.parse_args(argv).only
    for part in [PARTS[only]] if only else PARTS.values():
        print(f'{part.__name__}, ms, and ratio to the first: {part.__doc__}')
        first = None
        for name, run in part():
            seconds = []
            for _ in range(4):  # The first warms up.
                start = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - start)
            best = 1e3 * min(seconds[1:])
            first = first or best
            print(f'  {name:32} {best:12,.2f} {best / first:8.2f}', flush=True)


if __name__ == '__main__':
    main()
