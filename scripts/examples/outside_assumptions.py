"""What happens where force laws do not hold? It must be said, and why.

    python scripts/examples/outside_assumptions.py

Simulates systems that break one assumption of force laws each, and two that
break none, trains the quick recipe on each, puts force laws in the place of
the networks (as scripts/em.py does) and checks them on held-out systems:
pyg_fnri.laws.check. Labels are looked at by nobody but the column of
accuracies. Each system leaves a JSON file in --out, and is not run again while
that is there; table.md is made of all of them. A run takes some minutes on two
cores; name some of the systems to run those only:

    python scripts/examples/outside_assumptions.py friction walls
"""
import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Optional

import torch

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.datasets.stored import check_writable, written_whole
from pyg_fnri.experiments.misspecified import (
    Friction,
    Lawful,
    Magnetic,
    OneWay,
    Transverse,
    Trap,
    UnequalMasses,
)
from pyg_fnri.experiments.report import MISSING, Report, Table
from pyg_fnri.experiments.results import provenance
from pyg_fnri.inference import check_motion, refine
from pyg_fnri.inference.likelihood import Estimate
from pyg_fnri.laws import LawCheck, check_laws, discover_force_laws
from pyg_fnri.laws.check import clearly_above
from pyg_fnri.loader import SystemLoader
from pyg_fnri.simulation import Charge, Kuramoto, Newtonian, Spring, System
from pyg_fnri.training import Config, RelationalInference, fit
from pyg_fnri.transforms import SplitTrajectory

NUM_OBSERVED = 49


@dataclass(frozen=True)
class Case:
    """A kind of system, and what the laws are told.

    Args:
        system: What is simulated.
        what: What it breaks, in words.
        holds: Whether force laws are right for it.
        half_width: Where the laws believe the walls to be.
    """
    system: System
    what: str
    holds: bool = False
    half_width: Optional[float] = None


_BOX = Newtonian((Spring(), Charge()), box_half_width=2.5)
CASES: dict[str, Case] = {
    'lawful': Case(Lawful(), 'nothing; no walls', True),
    'told_walls': Case(_BOX, 'nothing; walls known', True, 2.5),
    'walls': Case(_BOX, 'walls that are not told'),
    'friction': Case(Friction(), 'friction'),
    'magnetic': Case(Magnetic(), 'force across the velocity'),
    'transverse': Case(Transverse(), 'force across the line of a pair'),
    'trap': Case(Trap(), 'force from outside'),
    'one_way': Case(OneWay(), 'springs that one end feels'),
    'masses': Case(UnequalMasses(), 'masses of 0.5 to 2 kg'),
    'kuramoto': Case(Kuramoto(), 'no mechanics at all'),
}


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cases', nargs='*', metavar='SYSTEM',
                        help=f"of {', '.join(CASES)} [all of them]")
    parser.add_argument('--root', default='datasets', metavar='DIR',
                        help='where data sets are kept, or made [%(default)s]')
    parser.add_argument('--runs', default='runs/outside_assumptions',
                        metavar='DIR', help='where runs are kept [%(default)s]')
    parser.add_argument('--out', default='results/outside_assumptions',
                        metavar='DIR', help='where results go [%(default)s]')
    parser.add_argument('--num-systems', type=int, default=5_000,
                        help='training systems [%(default)s]')
    parser.add_argument(
        '--num-fitted', type=int, default=1_000,
        help='training systems that laws are fitted on '
        '[%(default)s]')
    parser.add_argument('--num-checked', type=int, default=200,
                        help='held-out systems [%(default)s]')
    parser.add_argument('--max-steps', type=int, default=2_500,
                        help='steps of training [%(default)s]')
    parser.add_argument('--hidden-channels', type=int, default=64,
                        help='size of the networks [%(default)s]')
    parser.add_argument('--batch-size', type=int, default=64,
                        help='systems in a batch [%(default)s]')
    parser.add_argument('--seed', type=int, default=0,
                        help='seed of all randomness [%(default)s]')
    parser.add_argument('--threads', type=int,
                        help="PyTorch's threads [as PyTorch decides]")
    args = parser.parse_args(argv)
    for name in args.cases:
        if name not in CASES:
            parser.error(f"there is no system '{name}', but "
                         f"{', '.join(CASES)}")
    return args


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    try:
        check_writable(args.out)
        for name in args.cases or CASES:
            path = os.path.join(args.out, f'{name}.json')
            if not os.path.exists(path):
                print(f'{name}: breaks {CASES[name].what}', flush=True)
                result = run(name, args)
                with written_whole(path) as part:
                    with open(part, 'w') as file:
                        json.dump(result, file, indent=2)
                        file.write('\n')
                print(f"{name}: {result['verdict']}", flush=True)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        sys.exit(str(error))
    table = os.path.join(args.out, 'table.md')
    with written_whole(table) as part:
        with open(part, 'w') as file:
            file.write(report(read(args.out)).markdown())
    print(f'written: {table}')


def run(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Trains, fits laws and checks them."""
    start, case = time.monotonic(), CASES[name]
    train, val = (ParticleSystems(
        args.root, f'outside_{name}', split, system=case.system,
        num_systems=(args.num_systems, max(args.num_checked, 2), 1),
        seed=args.seed, transform=SplitTrajectory(NUM_OBSERVED))
                  for split in ('train', 'val'))
    systems = next(iter(SystemLoader(train, args.num_fitted)))
    held_out = next(iter(SystemLoader(val, args.num_checked)))
    out: dict[str, Any] = {'what': case.what, 'right': case.holds}
    try:
        check_motion(systems.x, train.frame_interval)
        networks = trained(os.path.join(args.runs, name), train, val, args)
        laws = networks.with_laws(interval=train.frame_interval,
                                  half_width=case.half_width)
        generator = torch.Generator().manual_seed(args.seed)
        discover_force_laws(laws.model, systems, generator)
        check = check_laws(laws.model, networks.model, held_out,
                           networks.linear_step, networks.units)
    except ValueError as refusal:
        out.update(holds=False, verdict=f'No laws are fitted: {refusal}')
    else:
        guess, _ = networks.model.infer(held_out)
        refined = refine(laws.model, held_out).edge_type
        out.update(
            holds=check.holds, verdict=str(check), check=plain(check),
            encoder_accuracy=networks.accuracies(guess, held_out)['accuracy'],
            refined_accuracy=laws.accuracies(refined, held_out)['accuracy'])
    out['minutes'] = (time.monotonic() - start) / 60
    out['arguments'] = {
        key: value
        for key, value in vars(args).items()
        if key not in ('cases', 'root', 'runs', 'out')
    }
    out['provenance'] = provenance()
    return out


def trained(out: str, train: ParticleSystems, val: ParticleSystems,
            args: argparse.Namespace) -> RelationalInference:
    """The quick recipe, trained without labels."""
    config = Config(
        in_channels=train.num_node_features, num_observed=NUM_OBSERVED,
        num_edge_types=train.num_edge_types, names=train.names, options={
            'max_steps': args.max_steps,
            'hidden_channels': args.hidden_channels,
            'batch_size': args.batch_size,
        }, seed=args.seed)
    return fit(config, train, val, out, overwrite=True)


def plain(check: LawCheck) -> dict[str, Any]:
    """A check as JSON has it."""
    return {
        **asdict(check), 'findings': [{
            'name': finding.name,
            'size': finding.size,
            'gain': finding.gain
        } for finding in check.findings]
    }


def read(directory: str) -> dict[str, dict[str, Any]]:
    """The results that are there, by name."""
    results = {}
    for name in CASES:
        path = os.path.join(directory, f'{name}.json')
        if os.path.exists(path):
            with open(path) as file:
                results[name] = json.load(file)
    return results


def report(results: dict[str, dict[str, Any]]) -> Report:
    """A row for each system."""
    rows = [row(name, result) for name, result in results.items()]
    right = sum(r['holds'] == r['right'] for r in results.values())
    minutes = sum(r['minutes'] for r in results.values())
    notes = [
        f'The verdict is right for {right} of {len(results)} systems; '
        f'{minutes:.0f} minutes in all. Made by `python '
        f'scripts/examples/outside_assumptions.py`.',
        'Scores are negative log-likelihoods of held-out single steps, in nat '
        'a feature; less is better. The laws\' lead is that of the networks '
        'minus that of the laws, with its standard error, paired by system. '
        'Accuracies, which no verdict looks at, are strict: of the encoder '
        'alone, and of graphs refined by the laws.',
    ]
    notes += [
        f"**{name}.** " + ' '.join(result['verdict'].split())
        for name, result in results.items()
    ]
    columns = [
        'system', 'breaks', 'laws hold?', 'networks', 'laws', "laws' lead",
        'found', 'encoder, %', 'refined, %', 'minutes'
    ]
    return Report('Outside the assumptions of force laws',
                  [Table('Verdicts', columns, rows)], notes)


def row(name: str, result: dict[str, Any]) -> Sequence[str]:
    """The cells of a system."""
    check = result.get('check')
    figures = [MISSING] * 4
    if check is not None:
        lead, error = check['behind']
        figures = [
            f"{check['networks'][0]:.2f}", f"{check['laws'][0]:.2f}",
            f'{-lead:.2f} ± {error:.2f}', ', '.join(found(check)) or MISSING
        ]
    verdict = 'yes' if result['holds'] else 'no'
    if check is None:
        verdict = 'refused'
    return [
        name, result['what'], verdict, *figures,
        *(MISSING if result.get(key) is None else f'{100 * result[key]:.1f}'
          for key in ('encoder_accuracy', 'refined_accuracy')),
        f"{result['minutes']:.1f}"
    ]


def found(check: dict[str, Any]) -> list[str]:
    """What seems to be broken, in a few words each."""
    of_their_own = [('at_walls', 'walls'), ('one_way', 'one way')]
    return [
        word for key, word in of_their_own
        if check.get(key) and clearly_above(Estimate(*check[key]))
    ] + [f"{f['name']} ({f['size']:.0%})" for f in check['findings']]


if __name__ == '__main__':
    main()
