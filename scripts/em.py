"""Discover the force laws, and far better graphs, from a trained model.

    python scripts/em.py --checkpoint runs/demo/best.ckpt --out runs/laws

Starts from the encoder's guesses and looks at no label. Laws and graphs of
some training systems are fitted in turn (expectation-maximisation); then the
encoder learns the graphs that the laws lead to. Writes into --out: best.ckpt,
whose decoder is made of the laws, and em.csv, a row per iteration. Look at
the result with scripts/evaluate.py --refine.

What it takes for granted, and the paper's decoder does not: forces act along
the line between two particles, depend on their distance alone, and accelerate
all particles alike.
"""
import argparse
import os
import sys
import time
from dataclasses import replace
from typing import Any, Optional

import pandas as pd
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import RichProgressBar
from rich.progress import track

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.inference import Progress, fit_force_laws, with_inferred_graphs
from pyg_fnri.loader import SystemLoader
from pyg_fnri.opening import Systems, frame_interval, open_dataset
from pyg_fnri.training import (
    RelationalInference,
    SupervisedInference,
    ValidationLines,
    load_checkpoint,
    quiet_lightning,
    save_checkpoint,
)
from pyg_fnri.transforms import SplitTrajectory
from pyg_fnri.writing import check_writable, written_whole


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--checkpoint', required=True, metavar='FILE',
                        help='written by scripts/train.py')
    parser.add_argument('--out', required=True, metavar='DIR',
                        help='where results go; made if need be')
    parser.add_argument('--root', default='datasets', metavar='DIR',
                        help='where data sets are kept [%(default)s]')
    parser.add_argument(
        '--num-systems', type=int, default=1_000,
        help='training systems that laws and graphs are '
        'fitted on [%(default)s]')
    parser.add_argument(
        '--num-taught', type=int, default=20_000,
        help='training systems whose graphs the encoder '
        'learns; 0 leaves it as it is [%(default)s]')
    parser.add_argument('--taught-steps', type=int, default=4_000,
                        help='steps in which it does [%(default)s]')
    parser.add_argument(
        '--interval', type=float,
        help='seconds between two frames [as the data tell; '
        'arrays of your own do not]')
    parser.add_argument(
        '--half-width', type=float,
        help='metres from the origin to a wall; 0 where there '
        'is none, or none known [as the simulation has it, 0 for '
        'your own data]')
    parser.add_argument('--seed', type=int, default=0,
                        help='seed of all randomness [%(default)s]')
    parser.add_argument(
        '--threads', type=int,
        help="PyTorch's threads; see scripts/train.py [as "
        'PyTorch decides]')
    return parser.parse_args(argv)


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    quiet_lightning()
    start = time.monotonic()
    try:
        guess = load_checkpoint(args.checkpoint)
        guess.require('encoder')
        check_args(guess, args)
        if args.threads is not None:
            torch.set_num_threads(args.threads)
        split = SplitTrajectory(guess.config.num_observed)
        train, val = (open_dataset(guess.config.data, args.root, name, split)
                      for name in ('train', 'val'))
        module = guess.with_laws(**known_of_motion(guess, train, args))
        find_laws(module, train, args)
        if args.num_taught:
            module = teach(module, train, val, args)
        save_checkpoint(module, os.path.join(args.out, 'best.ckpt'))
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        sys.exit(str(error))
    minutes = (time.monotonic() - start) / 60
    print(f'{minutes:.1f} minutes; look at the result with\n    python '
          f'scripts/evaluate.py --refine --checkpoint {args.out}/best.ckpt')


def check_args(module: RelationalInference, args: argparse.Namespace) -> None:
    """Makes sure, before the work, that it can be done and written."""
    batch_size = module.recipe.batch_size
    for name, minimum in (('num_systems', 1), ('taught_steps', 1), ('threads',
                                                                    1),
                          ('num_taught', batch_size if args.num_taught else 0)):
        value = getattr(args, name)
        if value is not None and value < minimum:
            raise ValueError(f"--{name.replace('_', '-')} must be at least "
                             f"{minimum}, but is {value}.")
    result = os.path.join(args.out, 'best.ckpt')
    if os.path.exists(result) and os.path.samefile(result, args.checkpoint):
        raise ValueError(f"The result would replace '{args.checkpoint}' that "
                         f"it comes from; name another directory with --out.")
    check_writable(args.out)


def known_of_motion(module: RelationalInference, dataset: Systems,
                    args: argparse.Namespace) -> dict[str, Optional[float]]:
    """Time between frames, and walls: asked for, or those of the data."""
    interval, half_width = args.interval, args.half_width
    if interval is None:
        interval = frame_interval(module.config.data, dataset)
    if interval is None:
        raise ValueError("Arrays do not tell the time between two frames, "
                         "which forces depend on; say it with --interval.")
    if half_width is None and isinstance(dataset, ParticleSystems):
        half_width = getattr(dataset.system, 'box_half_width', None)
    return {'interval': interval, 'half_width': half_width or None}


def find_laws(module: RelationalInference, train: Systems,
              args: argparse.Namespace) -> None:
    """Expectation-maximisation, in place, with a line per iteration."""
    systems = next(iter(SystemLoader(train, args.num_systems)))
    print(f'Laws and graphs of {systems.num_graphs} training systems '
          f'(accuracies for information only):')
    rows: list[dict[str, float]] = []

    def on_iteration(progress: Progress) -> None:
        rows.append({
            'iteration': progress.iteration,
            'changed': progress.changed,
            'cost': progress.cost,
            **module.accuracies(progress.edge_type, systems)
        })
        print('   '.join(f'{k} {v:.4g}' for k, v in rows[-1].items()),
              flush=True)

    generator = torch.Generator().manual_seed(args.seed)
    fit_force_laws(module.model, systems, generator, on_iteration=on_iteration)
    with written_whole(os.path.join(args.out, 'em.csv')) as path:
        pd.DataFrame(rows).to_csv(path, index=False)


def teach(module: RelationalInference, train: Systems, val: Systems,
          args: argparse.Namespace) -> Any:
    """Trains the encoder on the graphs that the laws lead to."""
    first = train[:args.num_taught]
    batches = SystemLoader(first, 500)
    taught = with_inferred_graphs(module.model, train,
                                  track(batches, 'inferring', transient=True))
    pupil = SupervisedInference(
        module.model, replace(module.recipe, max_steps=args.taught_steps),
        module.config, target='edge_target')
    pupil.units, pupil.linear_step = module.units, module.linear_step
    print(f'The encoder learns the graphs of {len(taught)} training systems:')
    trainer = pl.Trainer(
        max_steps=args.taught_steps, logger=False,
        val_check_interval=min(1_000, args.taught_steps),
        check_val_every_n_epoch=None, num_sanity_val_steps=0,
        enable_checkpointing=False, enable_model_summary=False,
        callbacks=[RichProgressBar(refresh_rate=20),
                   ValidationLines()])
    generator = torch.Generator().manual_seed(args.seed)
    trainer.fit(
        pupil,
        SystemLoader(taught, module.recipe.batch_size, shuffle=True,
                     drop_last=True, generator=generator),
        SystemLoader(val[:2_000], 500))
    return pupil.eval()


if __name__ == '__main__':
    main()
