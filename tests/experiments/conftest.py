"""Made-up results, with figures that can be checked by hand."""
import pytest

from pyg_fnri.experiments import Cell


@pytest.fixture
def make_result():
    """Makes the result of a cell."""
    def make(name, accuracy=(0.9, 0.95, 0.92), errors=(1e-5, 4e-5, 1e-4),
             minutes=3., **figures):
        cell = Cell.from_name(name)
        combined, *layers = accuracy
        return cell, {
            'cell':
            name,
            'scale':
            'laptop',
            'commands': [
                f'python scripts/train.py --seed {cell.seed} --out runs/{name}',
                f'python scripts/evaluate.py --checkpoint runs/{name}/best.ckpt'
            ],
            'num_systems': [500, 100, 200],
            'figures': {
                'num_systems': 200,
                'split': 'test',
                'edge_accuracy': {
                    'combined': combined,
                    'layers': layers
                },
                'rollout_mse': dict(zip(('1', '10', '20'), errors)),
                'static_mse': {
                    '1': 2.25e-4,
                    '10': 3.11e-3,
                    '20': 8.43e-3
                },
                **figures
            },
            'minutes':
            minutes,
            'provenance': {
                'pyg_fnri': '0.2.0',
                'torch': '2.9',
                'num_threads': 1,
                'processor': 'Abacus 3'
            },
        }

    return make


@pytest.fixture
def read_row():
    """A row of a Markdown document: of the given table, by its first cell."""
    def read(markdown, title, label):
        section = markdown.split(f'## {title}\n')[1].split('\n## ')[0]
        rows = [[cell.strip() for cell in line.strip('|').split('|')]
                for line in section.splitlines() if line.startswith('|')]
        heads, _, *body = rows
        found = [
            dict(zip(heads[1:], row[1:])) for row in body if row[0] == label
        ]
        assert len(found) == 1, label
        return found[0]

    return read
