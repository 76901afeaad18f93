import json

import pandas as pd
import pytest
from made_up_runs import ONE, TWO, make_runs

from pyg_fnri.experiments import selection_files
from pyg_fnri.experiments.selection import select
from pyg_fnri.experiments.selection_files import write_selection


def test_files_hold_the_comparison_and_how_it_was_made(tmp_path):
    runs = make_runs({ONE: 2., TWO: 1.})
    names = write_selection(str(tmp_path), select(runs), runs, split='val')
    assert {path.name for path in tmp_path.iterdir()} == set(names)
    found = json.loads((tmp_path / 'selection.json').read_text())
    assert found['recommended'] == [2, 2] and found['split'] == 'val'
    table = pd.read_csv(tmp_path / 'selection.csv', dtype={'candidate': str})
    assert table['candidate'].tolist() == ['2', '2,2']
    picture = (tmp_path / 'selection.png').read_bytes()
    assert picture.startswith(b'\x89PNG')


def test_no_file_is_replaced_without_the_others(tmp_path, monkeypatch):
    runs = make_runs({ONE: 2., TWO: 1.})
    names = write_selection(str(tmp_path), select(runs), runs)
    before = [(tmp_path / name).read_bytes() for name in names]
    monkeypatch.setattr(selection_files, 'selection_record',
                        lambda *_: {'nll': float('nan')})
    with pytest.raises(ValueError):
        write_selection(str(tmp_path), select(runs), runs)
    assert [(tmp_path / name).read_bytes() for name in names] == before
    assert len(list(tmp_path.iterdir())) == 3
