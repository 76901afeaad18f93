"""The commands: `pyg-fnri NAME ...`."""
import sys
from importlib import import_module
from typing import Optional

from pyg_fnri import __version__

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
        home = name.replace('-', '_')
        import_module(f'{__name__}.{home}').main(words)
    else:
        print(f"pyg-fnri: '{name}' is no command\n\n{USAGE}", file=sys.stderr)
        sys.exit(2)
