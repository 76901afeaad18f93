"""Measure what is meant to be fast, as ratios within one process.

    python benchmarks/speed.py                    # everything, ten minutes
    python benchmarks/speed.py --only refinement  # one part
    python benchmarks/speed.py --compare results/speed.json

Each part runs in a process of its own, and writes a row for each way or size:
milliseconds, the ratio to the part's first row, and the process's peak memory
so far. --compare names the rows that have become more than 10 % slower than in
an earlier file, by ratios, which hardly depend on the machine.
"""
import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Optional

import tables
import torch
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader
from torch_geometric.utils import scatter

from pyg_fnri.data import fully_connected
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.inference import refine
from pyg_fnri.laws import discover_force_laws
from pyg_fnri.loader import SystemLoader
from pyg_fnri.simulation import Charge, FiniteSpring, Spring, simulate
from pyg_fnri.training import Config, build_module
from pyg_fnri.transforms import SplitTrajectory

Runs = Iterator[tuple[str, Callable[[], Any]]]
#: Seconds after which a run is not repeated; a ratio that has grown by more.
ENOUGH, SLOWER = 10.0, 1.1


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
    for cls in DataLoader, SystemLoader:
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
    """Refining I+C systems by force laws, restarts included; a sparse system
    has 10 candidates for each particle."""
    module = build_module(
        Config(4, 49, [2, 2], recipe='laws', laws={'half_width': 5.0}))
    layer = module.model.decoder.layer
    with torch.no_grad():
        layer.law.value[0] = -0.1 * layer.law.knots
        layer.law.value[1] = 0.2 / layer.law.knots**2
    layer.scale.copy_(torch.tensor([8e-4, 8e-4, 0.015, 0.015]))
    sizes = ((1_000, 5), (50, 20), (10, 50), (91, 11), (182, 11), (455, 11),
             (1, 200))
    for number, num_particles in sizes:
        dataset = systems(number, num_particles)
        module.fit_units(dataset._data.x)
        batch: Any = next(iter(SystemLoader(dataset, number)))
        name = f'{number} of {num_particles}'
        if num_particles == 11:  # As one system.
            batch = Batch(x=batch.x, edge_index=batch.edge_index)
            name = f'1 of {len(batch.x)}, sparse'
        yield name, lambda: refine(module.model, batch)
        if num_particles == 5:
            yield f'{name}, relaxed once', lambda: module.infer(batch)


def laws() -> Runs:
    """Force laws from scratch on 500 systems of 5 particles."""
    dataset = systems(500)
    batch = next(iter(SystemLoader(dataset, 500)))
    for label, terms in ('central laws', []), ('and further terms', 'auto'):
        module = build_module(Config(4, 49, [2, 2], recipe='laws'))
        module.fit_units(dataset._data.x)
        module = module.with_laws(half_width=5.0, interval=0.1)
        yield label, lambda: discover_force_laws(
            module.model, batch,
            torch.Generator().manual_seed(0), terms=terms)


def start() -> Runs:
    """Processes of their own, beside one that imports PyG's layers."""
    for code in ('import torch_geometric.nn', 'import pyg_fnri',
                 'import pyg_fnri.nn', 'import pyg_fnri.datasets',
                 'from pyg_fnri.commands import main; main(["--help"])'):
        command = [sys.executable, '-c', code]
        yield code, partial(subprocess.run, command, check=True,
                            stdout=subprocess.DEVNULL)


TIMED = (simulation, aggregation, loader, training, refinement, laws, start)
PARTS = {part.__name__: part for part in TIMED}


def measure(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for label, run in PARTS[name]():
        seconds: list[float] = []
        # The first warms up.
        while len(seconds) < 4 and sum(seconds) < ENOUGH:
            begin = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - begin)
        best = 1e3 * min(seconds[1:] or seconds)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        first = rows[0]['ms'] if rows else best
        rows.append(dict(name=label, ms=best, ratio=best / first, peak_mb=peak))
        print(f'  {label:56} {best:12,.2f} {best / first:8.2f} {peak:8,.0f}',
              flush=True)
    return rows


def compare(parts: dict[str, Any], old: dict[str, Any]) -> list[str]:
    """The rows whose ratios have grown."""
    out = []
    for part, rows in parts.items():
        known = {row['name']: row['ratio'] for row in old.get(part, [])}
        for row in rows:
            before = known.get(row['name'], row['ratio'])
            if row['ratio'] > SLOWER * before:
                out.append(f"{part}, {row['name']}: {before:.2f} -> "
                           f"{row['ratio']:.2f}")
    return out


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('--only', choices=PARTS, help='a single part')
    add('--compare', type=Path, help='an earlier file')
    add('--out', type=Path, help='the file to write')
    args = parser.parse_args(argv)
    parts = {}
    for name in [args.only] if args.only else PARTS:
        print(f'{name}, ms, ratio to the first, MB: {PARTS[name].__doc__}')
        with get_context('spawn').Pool(1) as pool:
            parts[name] = pool.apply(measure, [name])
    if args.out:
        text = json.dumps(dict(provenance=tables.provenance(), parts=parts),
                          indent=1)
        args.out.write_text(f'{text}\n')
    if args.compare:
        old = json.loads(args.compare.read_text())['parts']
        slower = compare(parts, old)
        print('\n'.join(slower) or 'Nothing has become slower.')
        sys.exit(bool(slower))


if __name__ == '__main__':
    main()
