import json
import math
import shutil
from pathlib import Path

import pandas as pd
import pytest
from reproduce import main
from tables import Cell, load_results, markdown, mean_text, means, save_json

RESULTS = Path(__file__).parents[2] / 'results' / 'laptop'


@pytest.mark.parametrize('values, decimals, text', [
    ([94.], 1, '94.0'),
    ([93., 94., 95.], 1, '94.0 ± 0.6'),
    ([math.nan], 1, '–'),
    ([843.2], None, '843'),
    ([0.0812], None, '0.081'),
    ([3.541], None, '3.54'),
    ([math.inf], None, 'inf'),
])
def test_means_with_their_standard_error(values, decimals, text):
    assert mean_text(pd.Series(values), decimals) == text


def test_a_line_for_each_label():
    table = means(
        pd.DataFrame({
            'label': ['b', 'a', 'b'],
            'seed': [0, 0, 1],
            'combined': [50., 20., 70.]
        }), 'label', ['combined', 'charges'])
    assert markdown(table).splitlines() == [
        '| label | combined | seeds |', '| --- | ---: | ---: |',
        '| b | 60.0 ± 10.0 | 0 1 |', '| a | 20.0 | 0 |'
    ]


def test_files_are_whole_or_not_there(tmp_path):
    path = tmp_path / 'new' / 'a.json'
    save_json(path, {'path': tmp_path, 'value': 1.5})
    assert json.loads(path.read_text()) == {'path': str(tmp_path), 'value': 1.5}
    with pytest.raises(ValueError, match='Circular'):
        circle = []
        circle.append(circle)
        save_json(path, circle)
    assert json.loads(path.read_text())['value'] == 1.5


def test_committed_results_are_read():
    frame = load_results(RESULTS)
    cells = {
        Cell(*row)
        for row in frame[list(Cell._fields)].itertuples(index=False)
    }
    assert {cell.name
            for cell in cells
            } == {path.stem
                  for path in RESULTS.glob('*-*-*-*.json')}


@pytest.fixture
def tables(tmp_path):
    """Makes tables of the committed results."""
    shutil.copytree(RESULTS, tmp_path / 'laptop')

    def make(*arguments):
        main([*arguments, '--report-only', '--results', str(tmp_path)])
        return {
            p.stem: p.read_text()
            for p in (tmp_path / 'laptop').glob('*.md')
        }

    return make


def test_tables_of_committed_results(tables):
    found = tables('--table', '1', '2', '3', 'laws', '--figure', 'compression')
    assert ('| fnri (learned) | 94.9 ± 0.2 | 96.0 ± 0.1 | 98.8 ± 0.1 |'
            in found['table1'])
    assert '| 0 1 2 | 94.0 | 98.0 | 95.8 |' in found['table1']
    assert '| random | 25.1 | 50.0 | 50.2 |' in found['table1']
    assert '| static | 22.5 | 311 | 843 |' in found['table2']
    assert '| nri | 4 | 710660 | 406020 | 710660 | 406020 |' in found['table3']
    assert '## nri_charged' in found['laws']
    assert '| em: refined | 100.0 ± 0.0 |' in found['laws']
    row, = [
        line for line in found['compression'].splitlines()
        if line.startswith('| with the split, following')
    ]
    assert '| 269 |' in row
