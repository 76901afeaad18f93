"""The paper's figures, as files beside the results that they are made of."""
import json
import os
from collections.abc import Sequence
from pathlib import Path

from pyg_fnri.datasets.spec import open_dataset
from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.experiments.cell import MODELS, Cell
from pyg_fnri.experiments.compression import (
    compression_curves,
    compression_report,
)
from pyg_fnri.experiments.publish import publish
from pyg_fnri.experiments.results import load_results
from pyg_fnri.experiments.runner import Runner
from pyg_fnri.experiments.trajectories import draw_continuations
from pyg_fnri.plot import plot_compression
from pyg_fnri.training import load_checkpoint
from pyg_fnri.transforms import SplitTrajectory


def write_trajectories(runner: Runner, cells: Sequence[Cell],
                       directory: str) -> None:
    """Writes and tells of a picture for each cell; usually there is one.

    Args:
        runner: Knows where the runs are.
        cells: Trained ones.
        directory: Where pictures go.

    Raises:
        FileNotFoundError: If one has not been trained.
    """
    for cell in cells:
        module = load_checkpoint(runner.checkpoint(cell))
        # The last 50 of 99 frames: they follow the 49 observed ones.
        dataset = open_dataset(module.config.data, runner.root, 'test',
                               SplitTrajectory(module.config.num_observed, 50))
        name = 'trajectories.png'
        if len(cells) > 1:
            name = f'trajectories-{cell.name}.png'
        path = os.path.join(directory, name)
        with written_whole(path) as part:
            draw_continuations(module, dataset).savefig(part, format='png')
        print(f'written into {path}: 50 steps of each of the first four test '
              f'systems, predicted in one go from the last of the 49 frames '
              f'that the encoder of {cell.name} saw')


def write_compression(runner: Runner, cells: Sequence[Cell],
                      directory: str) -> None:
    """Writes and tells of the table and the picture of section 3.1, and of
    the curves in it.

    Args:
        runner: Knows the scale.
        cells: Those asked for; all seeds with a result are drawn.
        directory: Where results are, and pictures go.

    Raises:
        ValueError: If none of them has a result.
    """
    scale, found = runner.scale, load_results(directory)
    command = ('python scripts/reproduce.py --figure compression --scale '
               f'{scale.name}')
    publish(compression_report(found, scale.compression, scale.name, command),
            os.path.join(directory, 'compression.md'))
    pairs = dict.fromkeys((cell.dataset, cell.model) for cell in cells)
    curves = {}
    for dataset, model in pairs:
        panels = compression_curves(found, scale.compression, dataset, model)
        prefix = f'{MODELS[model]}, {dataset}, ' if len(pairs) > 1 else ''
        curves.update({prefix + title: c for title, c in panels.items()})
    if not curves:
        raise ValueError('None of the runs that the figure of compression '
                         'needs has a result yet; leave out --report-only.')
    with written_whole(os.path.join(directory, 'compression.json')) as part:
        Path(part).write_text(json.dumps(curves, indent=2) + '\n')
    path = os.path.join(directory, 'compression.png')
    with written_whole(path) as part:
        plot_compression(curves).savefig(part, format='png')
    print(f'written into {path}')
