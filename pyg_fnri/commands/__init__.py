"""The commands: `pyg-fnri NAME ...`."""
import ctypes
import sys
from contextlib import suppress
from importlib import import_module
from typing import Optional

from pyg_fnri import __version__

#: Numbers of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
COMMANDS = {
    'demo': 'discover springs and charges from motion alone, in minutes',
    'generate': 'make a data set of simulated systems, and print its card',
    'train': 'train a model, or find force laws, without labels',
    'evaluate': 'measure a trained model, and draw what it sees',
    'infer': 'infer the interaction graphs of trajectories',
    'select-layers': 'compare numbers of layers and types'
}
USAGE = '\n'.join([
    'usage: pyg-fnri COMMAND ...', '',
    *(f'  {name:15}{text}' for name, text in COMMANDS.items()), '',
    '`pyg-fnri COMMAND --help` explains a command, with examples.'
])


def keep_memory() -> None:
    """Has glibc keep the memory of large tensors for the next ones; to ask the
    system for it each time took a quarter of the time of `infer`."""
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for what in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            mallopt(what, 2**30)


def main(argv: Optional[list[str]] = None) -> None:
    name, *words = (sys.argv[1:] if argv is None else argv) or ['--help']
    if name in ('-h', '--help') or words and name == 'demo':
        print(USAGE)
    elif name == '--version':
        print(f'pyg-fnri {__version__}')
    elif name == 'demo':
        main(['train', '@demo.args'])
        main([
            'evaluate', '--refine', '--checkpoint', 'runs/demo/best.ckpt',
            '--num-systems', '2000'
        ])
    elif name in COMMANDS:
        keep_memory()
        home = name.replace('-', '_')
        import_module(f'{__name__}.{home}').main(words)
    else:
        print(f"pyg-fnri: '{name}' is no command\n\n{USAGE}", file=sys.stderr)
        sys.exit(2)
