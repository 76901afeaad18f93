"""Train NRI, fNRI or sfNRI on trajectories; without labels, unless told to.

The main job, minutes on two cores: a start by the quick recipe, then force
laws and far better graphs, as scripts/em.py finds them from any checkpoint:

    python scripts/train.py @scripts/configs/demo.args

Networks alone:

    python scripts/train.py --out runs/quick

The paper's setting, days on two cores:

    python scripts/train.py --recipe paper --out runs/paper

Your own trajectories, a table with the columns time, particle, x, y and, where
there are several systems, system; cut into windows, of which the first 25
frames are observed and the last 25 predicted:

    python scripts/train.py --data my.csv --num-edge-types 2 2 \\
        --window 50 --num-observed 25 --out runs/mine

Columns of other names, and one missing row here and there:

    python scripts/train.py --data birds.csv --system flock --time t \\
        --particle bird --position east north --max-gap 1 --batch-size 16

Particles of unequal mass, which a column holds:

    python scripts/train.py --data birds.csv --mass weight --recipe em

An array of positions alone, [S, N, T, 2], from which velocities are derived:

    python scripts/train.py --data pos.npy --position 0 1 --time-step 0.1

Writes into --out: best.ckpt (lowest validation loss), last.ckpt, metrics.csv
and curves.png; logs to TensorBoard too where that is installed. The recipe em
writes these into OUT/quick; laws.ckpt, em.csv and em.png when it has found
laws; its second training into OUT/distilled; and best.ckpt in the end.
A directory that holds a run is left alone unless --overwrite or --resume is
given. Look at the result with scripts/evaluate.py; get graphs with
scripts/infer.py.
"""
import argparse
import os
import sys
import time
from typing import Any, Optional

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from pyg_fnri.datasets.spec import (
    Systems,
    check_directions,
    describe_files,
    frame_interval,
    open_dataset,
)
from pyg_fnri.training import (
    Config,
    EMRecipe,
    ExpectationMaximisation,
    build_module,
    check_burn_in,
    check_run,
    checkpoint_to_resume,
    fit,
    load_checkpoint,
    make_trainer,
    quiet_lightning,
    start_run,
)
from pyg_fnri.training.arguments import (
    add_data_arguments,
    add_model_arguments,
    add_run_arguments,
    check_together,
    recipe_options,
)
from pyg_fnri.training.reading_arguments import as_options, reading_arguments
from pyg_fnri.transforms import ReconstructTrajectory, SplitTrajectory


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        fromfile_prefix_chars='@')
    parser.convert_arg_line_to_args = str.split  # type: ignore[assignment]
    add_data_arguments(parser)
    add_model_arguments(parser)
    add_run_arguments(parser)
    args = parser.parse_args(argv)
    check_together(parser, args)
    return args


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    quiet_lightning()
    # Of several stages, the first one has a directory of its own.
    stage = 'quick' if args.recipe == 'em' else ''
    out, em = os.path.join(args.out, stage), None
    try:
        own = (args.data, args.edges, args.interactions)
        check_run(args.out, args.resume, args.overwrite, stage,
                  [path for path in own if path is not None])
        data = describe_data(args)
        transform = (ReconstructTrajectory
                     if args.unsplit else SplitTrajectory)(args.num_observed)
        train, val = (open_dataset(data, args.root, name, transform)
                      for name in ('train', 'val'))
        check_length(args.num_observed, train, val)
        val = val[:args.num_val]
        module = build_module(make_config(args, data, train))
        if not train._data.edge_index.numel():
            raise ValueError("No pair of particles is a candidate edge, so "
                             "there is nothing to infer; raise --radius or "
                             "--neighbours, or mend --edges.")
        check_burn_in(module, val)
        if args.regime != 'true_graph':  # Which infers none.
            check_directions(train, module.model.latent.undirected)
        last = None
        if args.resume:
            last = checkpoint_to_resume(args.out, module.config, stage)
        trainer = make_trainer(module, len(train), out, args.val_every,
                               args.accelerator, last)
        if isinstance(module.recipe, EMRecipe):
            em = ExpectationMaximisation(module.config, module.recipe, train,
                                         val, args.out, args.val_every,
                                         args.accelerator)
        if not args.resume:
            arguments = sys.argv[1:] if argv is None else argv
            start_run(args.out, ['python', 'scripts/train.py', *arguments])
        module.fit_units(train._data.x)
    except (ImportError, MisconfigurationException, OSError, RuntimeError,
            TypeError, ValueError) as error:
        sys.exit(as_options(str(error)))
    print(f'{module.model}\n{module.recipe}\n{len(train)} training systems, '
          f'results in {args.out}')
    try:
        minutes = fit(trainer, module, train, val, out, last)
    except ValueError as error:
        sys.exit(as_options(str(error)))
    best = os.path.join(out, 'best.ckpt')
    print(f'{trainer.global_step} steps in {minutes:.1f} minutes; best '
          f'checkpoint: {best}')
    if em is not None:
        go_on(em, best, args)


def go_on(em: ExpectationMaximisation, guess: str,
          args: argparse.Namespace) -> None:
    """From the end of the quick recipe to force laws."""
    start = time.monotonic()
    try:
        em.run(load_checkpoint(guess), args.resume)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        sys.exit(str(error))
    minutes = (time.monotonic() - start) / 60
    print(f'Laws in {minutes:.1f} minutes; look at the result with\n    python '
          f'scripts/evaluate.py --refine --checkpoint {args.out}/best.ckpt')


def describe_data(args: argparse.Namespace) -> dict[str, Any]:
    """The data set, as the checkpoint will name it."""
    if args.data is not None:
        return describe_files(args.data, args.edges, args.interactions,
                              num_observed=args.num_observed,
                              window=args.window, stride=args.stride,
                              neighbours=args.neighbours, radius=args.radius,
                              directed=args.directed, seed=args.data_seed,
                              reading=reading_arguments(args))
    return {
        'name': args.name,
        'num_particles': args.num_particles,
        'num_systems': args.num_systems,
        'seed': args.data_seed,
        'split_by': args.split_by,
    }


def check_length(num_observed: int, *splits: Systems) -> None:
    """Makes sure that there are frames to observe, and as many to predict.

    Raises:
        ValueError: If there are not.
    """
    for dataset in splits:
        num_steps = dataset._data.x.size(1)
        if num_steps < 2 * num_observed:
            raise ValueError(
                f"--num-observed is {num_observed}, which takes systems of at "
                f"least {2 * num_observed} steps, but these have {num_steps}; "
                f"lower it.")


def num_edge_types(args: argparse.Namespace, dataset: Systems) -> list[int]:
    """The truth's, or those asked for where there is none.

    Raises:
        ValueError: If there are none, or both and they differ.
    """
    true, asked = dataset.num_edge_types, args.num_edge_types
    if not true and asked is None:
        raise ValueError("How many layers and types to look for is not known "
                         "of these data; say it with --num-edge-types, e.g. "
                         "2 2 for two layers of interaction or none.")
    if true and asked is not None and asked != true:
        raise ValueError(f"--num-edge-types is {asked}, but the truth has "
                         f"{true}; leave it out, or the truth.")
    return true or asked


def make_config(args: argparse.Namespace, data: dict[str, Any],
                dataset: Systems) -> Config:
    """The configuration that the checkpoint will hold."""
    if args.data is not None:
        data = {**data, 'time_step': frame_interval(data, dataset)}
    return Config(
        in_channels=dataset.num_node_features,
        num_observed=args.num_observed,
        num_edge_types=num_edge_types(args, dataset),
        names=dataset.names,
        model=args.model,
        regime=args.regime,
        recipe=args.recipe,
        options=recipe_options(args),
        unsplit=args.unsplit,
        seed=args.seed,
        data=data,
    )


if __name__ == '__main__':
    main()
