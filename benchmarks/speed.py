"""Measure what is meant to be fast, as ratios within one process.

    python benchmarks/speed.py                  # everything, a few minutes
    python benchmarks/speed.py --only loader    # one part

Times are the best of several runs; compare ratios between machines, not
seconds.
"""
import argparse
import tempfile
import time
from collections.abc import Callable
from typing import Any, Optional

import torch
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

Figures = dict[str, float]


def best(run: Callable[[], Any], repeats: int = 5) -> float:
    """Milliseconds of the fastest of some runs, after one to warm up."""
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return 1e3 * min(seconds)


def systems(num_systems: int = 2_000,
            num_particles: int = 5) -> ParticleSystems:
    """Enough I+C systems for the parts below."""
    with tempfile.TemporaryDirectory() as root:  # They stay in memory.
        return ParticleSystems(root, split='val',
                               num_systems=(1, num_systems, 1),
                               num_particles=num_particles,
                               transform=SplitTrajectory(49))


def simulation() -> Figures:
    """ms for 2,000 systems of 5 particles and 10,000 steps."""
    ic = [Spring(), Charge()]
    return {
        name: best(lambda: simulate(forces, 2_000), repeats=2)
        for name, forces in (('I+C', ic), ('I+C+F', [*ic, FiniteSpring()]))
    }


def aggregation() -> Figures:
    """ms for a sum of 256 channels of messages, forward, and with backward;
    `ScatterSum` takes the first way. Not measured on GPUs."""
    out = {}
    for n, num_systems in (5, 640), (300, 1):
        receiver, size = fully_connected(n)[1], n * num_systems
        index = torch.cat([receiver + n * i for i in range(num_systems)])
        x = torch.randn(index.numel(), 256)
        leaf, gradient = x.clone().requires_grad_(), torch.randn(size, 256)
        ways: dict[str, Callable[[Tensor], Tensor]] = {
            'scatter': lambda x: scatter(x, index, 0, size),
            'index_add':
            lambda x: x.new_zeros(size, 256).index_add(0, index, x),
            # Where receivers are sorted and have equally many senders.
            'segments': lambda x: x.view(size, n - 1, 256).sum(1)
        }
        for name, way in ways.items():
            label = f'{name}, {num_systems} of {n}'
            out[label] = best(lambda: way(x), 20)
            out[f'{label}, backward'] = best(
                lambda: way(leaf).backward(gradient), 20)
    return out


def loader() -> Figures:
    """ms for 2,000 systems, in batches of 64 drawn at random."""
    dataset = systems()
    return {
        cls.__name__: best(lambda: list(cls(dataset, 64, shuffle=True)), 2)
        for cls in (SystemLoader, DataLoader)
    }


def training() -> Figures:
    """ms for a step of fNRI on I+C: forward, backward and the optimiser's."""
    dataset, out = systems(), {}
    for recipe in ('quick', 'paper'):
        module = build_module(Config(4, 49, [2, 2], recipe=recipe))
        module.fit_units(dataset._data.x)
        module.log_dict = lambda *args, **kwargs: None  # No trainer.
        batch = next(iter(SystemLoader(dataset, module.recipe.batch_size)))
        optimizer = torch.optim.Adam(module.parameters(), fused=True)

        def step() -> Tensor:
            loss = module.training_step(batch, 0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        out[recipe] = best(step)
    return out


def refinement() -> Figures:
    """ms for refining I+C systems by force laws, restarts included."""
    module = build_module(Config(4, 49, [2, 2], laws={'half_width': 5.0}))
    layer = module.model.decoder.layer
    with torch.no_grad():
        layer.law.value[0] = -0.1 * layer.law.knots
        layer.law.value[1] = 0.2 / layer.law.knots**2
    layer.scale.copy_(torch.tensor([8e-4, 8e-4, 0.015, 0.015]))
    out = {}
    for size in (1_000, 5), (50, 20), (10, 50):
        dataset = systems(*size)
        module.fit_units(dataset._data.x)
        batch = next(iter(SystemLoader(dataset, len(dataset))))
        out['{:,} of {} particles'.format(*size)] = best(
            lambda: refine(module.model, batch), repeats=1)
    return out


PARTS = {
    part.__name__: part
    for part in (simulation, aggregation, loader, training, refinement)
}


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', choices=PARTS, help='a single part')
    parser.add_argument('--threads', type=int, default=torch.get_num_threads())
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    for name in [args.only] if args.only else PARTS:
        figures = PARTS[name]()
        print(f'{name}: {PARTS[name].__doc__}')
        first = next(iter(figures.values()))
        for label, value in figures.items():
            print(f'  {label:32} {value:12,.2f} {value / first:8.2f}')


if __name__ == '__main__':
    main()
