"""Options of a command line, made of the fields of dataclasses."""
from __future__ import annotations

import argparse
import dataclasses
import inspect
import io
import logging
import os
import re
import signal
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import (TYPE_CHECKING, Any, NoReturn, Optional, Union, get_args,
                    get_origin, get_type_hints)

from pyg_fnri.datasets.options import SourceOptions
from pyg_fnri.training.recipes import Recipe

if TYPE_CHECKING:
    from pyg_fnri.datasets.spec import Systems

#: Files of arguments that come with the commands.
CONFIGS = Path(__file__).parent / 'configs'


@dataclass(frozen=True)
class SimulatedData:
    """Systems that are simulated when they are first asked for.

    Args:
        name: springs_charges (the paper's I+C), springs_charges_fsprings
            (I+C+F), nri_springs, nri_charged, nri_charged_clamped, kuramoto or
            linear_network.
        num_particles: Particles in a system.
        num_systems: Systems in each of the splits train, val and test.
        split_by: `system`; or `graph`: no two splits share a graph.
    """
    name: str = 'springs_charges'
    num_particles: int = 5
    num_systems: Sequence[int] = (50_000, 10_000, 10_000)
    split_by: str = 'system'


@dataclass(frozen=True)
class OwnData(SourceOptions):
    """A user's own trajectories, split 8 : 1 : 1 by system, or one in time.

    Args:
        data: A table .csv or .parquet, an array [S, N, T, F] of positions, then
            velocities, .npy or .npz, or a folder of the code of NRI or fNRI.
    """
    data: Optional[str] = None


@dataclass(frozen=True)
class Run:
    """What is looked at, where results go, and by what means.

    Args:
        num_observed: First frames, that the encoder sees; as many last ones
            are predicted; by default half of all, at most 49.
        directed: Infer each direction of a pair by itself, as `paper` does.
        out: The directory where results go.
        resume: Go on with the run in it.
        overwrite: Replace the run in it.
        threads: PyTorch's threads on the CPU; one is enough of a small model.
        accelerator: auto, cpu, gpu, ... as Lightning has it.
        devices: How many of them, or which ones: 2, or 0,3.
        precision: Of networks: 32, or bf16 where a GPU knows it.
        root: Where data sets are kept, or made.
        data_seed: Seed of the simulation, or of the split.
        num_val: Validation systems to look at.
        val_every: Steps between validations.
    """
    num_observed: Optional[int] = None
    directed: bool = False
    out: str = 'runs/train'
    resume: bool = False
    overwrite: bool = False
    threads: Optional[int] = None
    accelerator: str = 'auto'
    devices: str = 'auto'
    precision: str = '32'
    root: str = 'datasets'
    data_seed: int = 0
    num_val: int = 2_000
    val_every: int = 1_000

    def __post_init__(self) -> None:
        if min(self.num_val, self.val_every) < 1:
            raise ValueError(f'num_val is {self.num_val}, val_every '
                             f'{self.val_every}; both must be at least 1.')


class OptionParser(argparse.ArgumentParser):
    """Options made of the fields of dataclasses, with the texts of their
    docstrings. What is not given is missing in the result. `@FILE` reads
    arguments from a file, here or in :obj:`CONFIGS`."""
    def __init__(self, prog: str, description: Optional[str]) -> None:
        super().__init__(prog, description=description,
                         fromfile_prefix_chars='@',
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        self._kinds: dict[str, tuple[Any, bool]] = {}
        self._lines: list[str] = []
        self.add_argument('--option', action='append', default=[],
                          metavar='NAME=VALUE',
                          help='anything else; may be given more than once')
        self.add_argument('--help-options', action='store_true',
                          help='show what else there is, and exit')

    def convert_arg_line_to_args(self, arg_line: str) -> list[str]:
        return arg_line.split()

    def add_fields(self, title: str, cls: type, shown: Sequence[str] = (),
                   others: Optional[Sequence[str]] = None) -> None:
        """Adds fields that `--help` shows, and others, by default all."""
        texts, hints = _docstring_args(cls), get_type_hints(cls)
        fields = {field.name: field for field in dataclasses.fields(cls)}
        group, lines = self.add_argument_group(title), [f'{title}:']
        others = list(fields) if others is None else others
        for name in dict.fromkeys([*shown, *others]):
            default, text = _show(fields[name].default), texts[name]
            kind, several = _kind(hints[name])
            how: dict[str, Any] = {'type': kind, 'help': argparse.SUPPRESS}
            if several:
                how['nargs'] = '+'
            elif kind is _yes:
                how.update(nargs='?', const=True)
            if name in shown:
                if issubclass(cls, Recipe):
                    default = "the recipe's"
                text += f' [{default}]' * bool(default)
                how.update(help=text.replace('%', '%%'),
                           metavar=kind.__name__.strip('_').upper())
            else:
                text = textwrap.indent(textwrap.fill(text, 73), ' ' * 6)
                lines.append(f'  {name}={default}\n{text}')
            if name not in self._kinds:
                self._kinds[name] = kind, several
                group.add_argument(f"--{name.replace('_', '-')}",
                                   default=argparse.SUPPRESS, **how)
        new = [line for line in lines if line not in self._lines]
        self._lines += new if len(new) > 1 else []

    def add_data(self) -> None:
        """Adds what says which data are meant."""
        self.add_fields('simulated data', SimulatedData, ['name'])
        self.add_fields('data of your own', OwnData, [
            'data', 'system', 'time', 'particle', 'position', 'time_step',
            'window', 'interactions'
        ])

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = [
            f'@{CONFIGS / word[1:]}'
            if word[:1] == '@' and not os.path.exists(word[1:]) and
            (CONFIGS / word[1:]).is_file() else word
            for word in (sys.argv[1:] if args is None else args)
        ]
        out = super().parse_args(words, namespace)
        if vars(out).pop('help_options'):
            print(*self._lines, sep='\n')
            self.exit()
        for option in vars(out).pop('option'):
            name, _, text = option.partition('=')
            try:
                kind, several = self._kinds[name]
                values = re.findall(r"[^\s,()\[\]'\"]+", text)
                value = list(map(kind, values)) if several else kind(text)
                setattr(out, name, value)
            except (KeyError, ValueError):
                self.error(f"--option is '{option}'; see --help-options")
        return out


def given(args: argparse.Namespace, *classes: type) -> dict[str, Any]:
    """What was given of the fields of dataclasses."""
    names = {field.name for c in classes for field in dataclasses.fields(c)}
    return {name: v for name, v in vars(args).items() if name in names}


def describe_data(args: argparse.Namespace) -> dict[str, Any]:
    """What :func:`~pyg_fnri.datasets.spec.open_dataset` takes."""
    own, simulated = given(args, OwnData), given(args, SimulatedData)
    run = Run(**given(args, Run))
    misplaced = own if 'data' not in own else simulated
    if misplaced:
        kind = 'own' if misplaced is own else 'simulated'
        raise ValueError(f"{min(misplaced)} is for {kind} data alone; leave "
                         f"it out, or say by data whose they are.")
    if not own:
        return {**vars(SimulatedData(**simulated)), 'seed': run.data_seed}
    from pyg_fnri.datasets.spec import describe_files
    return describe_files(num_observed=run.num_observed, directed=run.directed,
                          seed=run.data_seed, **own)


def open_splits(run: Run, data: dict[str, Any], *splits: str,
                unsplit: bool = False) -> tuple[int, list[Systems]]:
    """How many frames are observed, and data sets of these and others."""
    from pyg_fnri.datasets.spec import first_half, open_dataset
    from pyg_fnri.transforms import ReconstructTrajectory, SplitTrajectory
    systems = [open_dataset(data, run.root, name) for name in splits]
    num_observed = run.num_observed
    if num_observed is None:
        num_observed = first_half(systems[0])
    transform = ReconstructTrajectory if unsplit else SplitTrajectory
    for of in systems:
        of.transform = transform(num_observed)
    return num_observed, systems


class _Lines(logging.Handler):
    """Prints what the library logs, above progress bars; of processes that
    share a run, the first one does."""
    def emit(self, record: logging.LogRecord) -> None:
        if os.environ.get('LOCAL_RANK', '0') == '0':
            print(self.format(record), flush=True)


@contextmanager
def errors_in_one_line(
    go_on: Callable[[],
                    str] = lambda: 'start the command again') -> Iterator[None]:
    """Prints what the library logs, and ends the program with one line: the
    message of an error of data or settings; or, where the user or the system
    stops it, how to go on."""
    def stop(number: int, _: Any) -> NoReturn:
        raise KeyboardInterrupt(128 + number)

    def stop_later(lost: Any) -> None:
        # Raised where Python drops what is raised, as in weak references.
        if isinstance(lost.exc_value, KeyboardInterrupt):
            number = lost.exc_value.args[0] - 128
            Timer(0.05, signal.raise_signal, [number]).start()
        else:
            sys.__unraisablehook__(lost)

    if isinstance(sys.stdout, io.TextIOWrapper):  # Of any encoding.
        sys.stdout.reconfigure(errors='backslashreplace')
    log, lines = logging.getLogger('pyg_fnri'), _Lines()
    log.setLevel(logging.INFO)
    log.addHandler(lines)
    handlers = {
        number: signal.signal(number, stop)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    hook, sys.unraisablehook = sys.unraisablehook, stop_later
    form = warnings.formatwarning
    warnings.formatwarning = lambda text, *_, **__: f'warning: {text}\n'
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as error:
        # Lightning makes the latter of the former.
        cause = error.__context__ if error.args == (1, ) else error
        if not isinstance(cause, KeyboardInterrupt):
            raise
        print(f'stopped; {go_on()}', file=sys.stderr)
        sys.exit(*cause.args)
    except Exception as error:
        # Lightning has one of its own, but is not imported by each command.
        of_settings = type(error).__name__ == 'MisconfigurationException'
        if of_settings or isinstance(
                error,
            (ImportError, OSError, RuntimeError, TypeError, ValueError)):
            sys.exit(str(error))
        raise
    finally:
        log.removeHandler(lines)
        sys.unraisablehook, warnings.formatwarning = hook, form
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _kind(hint: Any) -> tuple[Any, bool]:
    """What reads a value of a field's type, and whether it has several."""
    several = False
    while parts := [k for k in get_args(hint) if k is not type(None)]:
        several |= get_origin(hint) not in (Union, types.UnionType)
        hint = parts[-1]
    return _yes if hint is bool else hint, several


def _yes(text: str) -> bool:
    if text not in ('yes', 'no', 'True', 'False'):
        raise ValueError(text)
    return text in ('yes', 'True')


def _show(value: Any) -> str:
    """A default as one would write it."""
    if value is None or value is dataclasses.MISSING:
        return ''
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return ' '.join(map(str, value)) if isinstance(value, tuple) else str(value)


def _docstring_args(cls: type) -> dict[str, str]:
    """The section `Args:` of a class and of those it derives from."""
    texts = (inspect.cleandoc(c.__doc__ or '') for c in reversed(cls.__mro__))
    args = '\n'.join(text.partition('\nArgs:\n')[2] for text in texts)
    args = re.sub(r'(?::\w+:)?`~?([^`]*)`', r'\1', args)
    found = re.findall(r'^ {4}(\w+): (.*(?:\n {8}.*)*)', args, re.MULTILINE)
    return {name: ' '.join(words.split()) for name, words in found}
