"""How a user's own trajectories are read, on the command line."""
import argparse
import os
import re
from collections.abc import Mapping
from typing import Any

from pyg_fnri.datasets.reading import is_array

#: The arguments of :class:`~pyg_fnri.datasets.TrajectoryTable` that have an
#: option: what it takes, what it means, and what is taken without it.
READING: dict[str, tuple[dict[str, Any], str, str]] = {
    'system': ({
        'metavar': 'COLUMN'
    }, 'column of systems', 'system, if there is one'),
    'time': ({
        'metavar': 'COLUMN'
    }, 'column of times, numbers or dates', 'time'),
    'particle': ({
        'metavar': 'COLUMN'
    }, 'column of particles', 'particle'),
    'position': ({
        'nargs': '+',
        'metavar': 'NAME'
    }, 'columns of positions; of an array, the numbers of these features, '
                 'such as 0 1', 'x, y, z, if they are there; of an array, the '
                 'first half of 4, 6, ... features'),
    'velocity': ({
        'nargs': '+',
        'metavar': 'NAME'
    }, 'columns of velocities, one for each position; of an array with '
                 '--position, numbers of features',
                 'vx, vy, vz, if they are there, or the other half of an '
                 "array's features; otherwise derived from the positions by "
                 'central differences'),
    'mass': ({
        'metavar': 'NAME'
    }, "column of the particles' masses, which never change; of an array, the "
             'number of this feature', 'none, as if all were the same'),
    'time_step': ({
        'type': float,
        'metavar': 'DT'
    }, 'time from one frame to the next', 'the most common one; of an array, '
                  '1'),
    'max_gap': ({
        'type': int,
        'metavar': 'N'
    }, 'interpolate linearly over up to so many frames in a row of a '
                'particle that are missing; a warning says how many were', '0'),
}


def add_reading_arguments(group: Any, again: bool = False) -> None:
    """Adds the options to a parser or to a group of one.

    Args:
        group (ArgumentParser or group): What to add them to.
        again (bool): Whether a checkpoint tells what is taken without them.
            (default: `False`)
    """
    for name, (how, text, default) in READING.items():
        if again:
            default = 'as in training'
        group.add_argument(f"--{name.replace('_', '-')}",
                           help=f'{text} [{default}]', **how)


def reading_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Those that were given, as takes
    :func:`~pyg_fnri.datasets.spec.describe_files`
    them.

    Raises:
        ValueError: If the features of an array are not numbers.
    """
    out = {
        name: getattr(args, name)
        for name in READING if getattr(args, name) is not None
    }
    if not os.path.isdir(args.data) and is_array(args.data):
        for name in {'position', 'velocity', 'mass'} & out.keys():
            alone = isinstance(out[name], str)
            features = [out[name]] if alone else out[name]
            for feature in features:
                if not feature.isdecimal():
                    raise ValueError(f"--{name} names features of the array "
                                     f"'{args.data}' by their numbers, 0, 1, "
                                     f"..., but one is '{feature}'.")
            numbers = [int(feature) for feature in features]
            out[name] = numbers[0] if alone else numbers
    return out


def check_masses(trained: Mapping[str, Any], data: str,
                 reading: Mapping[str, Any]) -> None:
    """Makes sure that a model that knows masses from training is told those of
    other particles: without, it would take all for alike, and its forces for
    accelerations.

    Args:
        trained (mapping): The description of its training data.
        data (str): The other trajectories.
        reading (mapping): How they are read.

    Raises:
        ValueError: If their masses are not read.
    """
    mass = trained.get('reading', {}).get('mass')
    if mass is not None and reading.get('mass') is None:
        raise ValueError(f"The model was trained on particles whose masses "
                         f"are known, by mass={mass}, and those of '{data}' "
                         f"are not; say which feature holds them by "
                         f"mass=NAME, in a table or an array.")


def as_options(message: str) -> str:
    """A message about the user's data, with options of the command line in
    the place of Python's arguments: `--max-gap 2` of `max_gap=2`."""
    names = '|'.join([*READING, 'window', 'stride', 'edges', 'interactions'])
    value = r"\[[^\]]*\]|[^\s,;]+?(?=[.,;:)]*(?:\s|$))"

    def option(match: re.Match) -> str:
        words = re.sub(r"[\[\]',]", '', match[2])
        return f"--{match[1].replace('_', '-')} {words}"

    message = re.sub(rf'\b({names})=({value})', option, message)
    # Nothing else is written with an underscore.
    return re.sub(r'(?<![\w-])(max_gap|time_step)\b',
                  lambda match: f"--{match[1].replace('_', '-')}", message)
