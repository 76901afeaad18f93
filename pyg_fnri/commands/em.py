"""Discover the force laws, and far better graphs, from a trained model.

    pyg-fnri em --checkpoint runs/demo/best.ckpt --out runs/laws

Laws and graphs of some training systems are fitted in turn, from the encoder's
guesses and without labels; then the encoder learns the graphs that the laws
lead to. pyg-fnri train --recipe em does the same from scratch.

Writes into --out: best.ckpt, whose decoder is made of the laws; em.csv and
em.png, a row per iteration; laws.ckpt, the model before the encoder has
learned; and distilled, the log of its learning.
docs/explanation/recipes.md says what is taken for granted.
"""
import argparse
import os
import time
from dataclasses import replace
from typing import Optional

from pyg_fnri.training import Config, EMSettings
from pyg_fnri.training.cli import OptionParser, Run, errors_in_one_line, given


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = OptionParser('pyg-fnri em', __doc__)
    parser.add_argument('--checkpoint', required=True, metavar='FILE',
                        help='written by pyg-fnri train')
    parser.add_argument('--out', required=True, metavar='DIR',
                        help='where results go; made if need be')
    parser.add_argument('--data', metavar='FILE',
                        help='where the trajectories are, if they were moved')
    parser.add_fields('expectation-maximisation', EMSettings,
                      list(EMSettings.__dataclass_fields__))
    parser.add_fields('run', Run, ['root', 'threads'], ['num_val', 'val_every'])
    parser.add_fields('model', Config, ['seed'], [])
    return parser.parse_args(argv)


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    start = time.monotonic()
    with errors_in_one_line():
        import torch

        from pyg_fnri.datasets.spec import open_dataset
        from pyg_fnri.training import ExpectationMaximisation, load_checkpoint
        from pyg_fnri.training.run import alone_in
        from pyg_fnri.transforms import SplitTrajectory
        run = Run(**given(args, Run))
        if run.threads is not None:
            torch.set_num_threads(run.threads)
        guess = load_checkpoint(args.checkpoint)
        guess.require('encoder')
        check_out(args.out, args.checkpoint)
        config = guess.config = replace(guess.config,
                                        seed=vars(args).get('seed', 0))
        split = SplitTrajectory(config.num_observed)
        train, val = (open_dataset(config.data, run.root, name, split,
                                   args.data) for name in ('train', 'val'))
        em = ExpectationMaximisation(config,
                                     EMSettings(**given(args, EMSettings)),
                                     train, val[:run.num_val], run.out,
                                     val_every=run.val_every)
        with alone_in(run.out):
            em.run(guess)
    minutes = (time.monotonic() - start) / 60
    print(f'{minutes:.1f} minutes; look at the result with\n    python '
          f'pyg-fnri evaluate --refine --checkpoint {run.out}/best.ckpt')


def check_out(out: str, checkpoint: str) -> None:
    """Makes sure, before the work, that results can be written, and to a
    place where they replace no training run."""
    from pyg_fnri.datasets.stored import check_writable
    result = os.path.join(out, 'best.ckpt')
    if os.path.exists(result) and os.path.samefile(result, checkpoint):
        raise ValueError(f"The result would replace '{checkpoint}' that it "
                         f"comes from; name another directory as out.")
    if os.path.exists(os.path.join(out, 'command.txt')):
        raise ValueError(f"'{out}' holds a training run, which the result "
                         f"would replace in part; name another directory as "
                         f"out.")
    check_writable(out)
