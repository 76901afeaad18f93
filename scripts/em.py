"""Discover the force laws, and far better graphs, from a trained model.

    python scripts/em.py --checkpoint runs/demo/best.ckpt --out runs/laws

Starts from the encoder's guesses and looks at no label. Laws and graphs of
some training systems are fitted in turn (expectation-maximisation); then the
encoder learns the graphs that the laws lead to. scripts/train.py --recipe em
does the same from scratch, and can be resumed.

Writes into --out: best.ckpt, whose decoder is made of the laws; em.csv and
em.png, a row per iteration; laws.ckpt, the model before the encoder has
learned; and distilled, the log of its learning. Look at the result with
scripts/evaluate.py --refine.

What it takes for granted, and the paper's decoder does not: forces act along
the line between two particles, depend on their distance alone, and accelerate
all particles alike, unless their masses are known (--mass of scripts/train.py).
"""
import argparse
import os
import sys
import time
from dataclasses import replace
from typing import Optional

import torch

from pyg_fnri.datasets.spec import open_dataset
from pyg_fnri.datasets.stored import check_writable
from pyg_fnri.training import (
    EMSettings,
    ExpectationMaximisation,
    load_checkpoint,
    quiet_lightning,
)
from pyg_fnri.training.arguments import positive
from pyg_fnri.transforms import SplitTrajectory


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
        '--num-systems', type=positive, default=EMSettings.num_fitted,
        help='training systems that laws and graphs are '
        'fitted on [%(default)s]')
    parser.add_argument(
        '--num-distilled', type=int, default=EMSettings.num_distilled,
        help='training systems whose graphs the encoder '
        'learns; 0 leaves it as it is [%(default)s]')
    parser.add_argument('--distilled-steps', type=positive,
                        default=EMSettings.distilled_steps,
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
        '--threads', type=positive,
        help="PyTorch's threads; see scripts/train.py [as "
        'PyTorch decides]')
    return parser.parse_args(argv)


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    quiet_lightning()
    start = time.monotonic()
    try:
        if args.threads is not None:
            torch.set_num_threads(args.threads)
        guess = load_checkpoint(args.checkpoint)
        guess.require('encoder')
        check_out(args.out, args.checkpoint)
        settings = EMSettings(args.num_systems, args.num_distilled,
                              args.distilled_steps, args.interval,
                              args.half_width)
        guess.config = replace(guess.config, seed=args.seed)
        split = SplitTrajectory(guess.config.num_observed)
        train, val = (open_dataset(guess.config.data, args.root, name, split)
                      for name in ('train', 'val'))
        ExpectationMaximisation(guess.config, settings, train, val[:2_000],
                                args.out).run(guess)
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        sys.exit(str(error))
    minutes = (time.monotonic() - start) / 60
    print(f'{minutes:.1f} minutes; look at the result with\n    python '
          f'scripts/evaluate.py --refine --checkpoint {args.out}/best.ckpt')


def check_out(out: str, checkpoint: str) -> None:
    """Makes sure, before the work, that results can be written, and to a
    place where they replace no training run."""
    result = os.path.join(out, 'best.ckpt')
    if os.path.exists(result) and os.path.samefile(result, checkpoint):
        raise ValueError(f"The result would replace '{checkpoint}' that it "
                         f"comes from; name another directory with --out.")
    if os.path.exists(os.path.join(out, 'command.txt')):
        raise ValueError(f"'{out}' holds a run of scripts/train.py, which the "
                         f"result would replace in part; name another "
                         f"directory with --out.")
    check_writable(out)


if __name__ == '__main__':
    main()
