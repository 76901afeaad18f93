import pytest
import torch

from pyg_fnri.experiments import Cell, load_results, provenance, save_result
from pyg_fnri.experiments.results import of_row


def test_results_come_back_by_seed(make_result, tmp_path):
    names = [f'springs_charges-fnri-learned-{seed}' for seed in (10, 2, 0)]
    made = dict(map(make_result, names))
    for cell, result in made.items():
        save_result(str(tmp_path), cell, result)
    assert {path.name
            for path in tmp_path.iterdir()
            } == {f'{name}.json'
                  for name in names}
    found = load_results(str(tmp_path))
    assert found == made
    assert [cell.seed for cell in found] == [0, 2, 10]


def test_other_files_are_no_results(make_result, tmp_path):
    folder = tmp_path / 'laptop [old]*'  # No pattern, but a name.
    folder.mkdir()
    (folder / 'compression.json').write_text('{}')
    (folder / 'springs_charges-fnri-learned-0.json.part').write_text('{"ce')
    assert load_results(str(folder)) == {}
    save_result(str(folder), *make_result('springs_charges-nri-learned-1'))
    assert len(load_results(str(folder))) == 1


@pytest.mark.parametrize('content, message', [
    ('{"cell": "spr', 'not the result'),
    ('[]', 'not the result'),
    ('{"cell": "springs_charges-fnri-learned-1"}', 'it lacks'),
])
def test_broken_result_is_told(content, message, tmp_path):
    path = tmp_path / 'springs_charges-fnri-learned-0.json'
    path.write_text(content)
    with pytest.raises(ValueError, match=f'{message}.*delete it'):
        load_results(str(tmp_path))


def test_result_of_another_cell_is_told(make_result, tmp_path):
    cell, result = make_result('springs_charges-fnri-learned-1')
    other = Cell('springs_charges', 'fnri', 'learned', 0)
    save_result(str(tmp_path), other, result)
    with pytest.raises(ValueError, match='it is of springs_charges-fnri-.*-1'):
        load_results(str(tmp_path))


def test_result_is_whole_or_not_there(make_result, tmp_path):
    cell, result = make_result('springs_charges-fnri-learned-1')
    save_result(str(tmp_path), cell, result)
    with pytest.raises(TypeError):
        save_result(str(tmp_path), cell, {**result, 'minutes': object()})
    assert load_results(str(tmp_path)) == {cell: result}


def test_rows_hold_all_seeds_of_one_kind(make_result):
    results = dict(
        make_result(name) for name in ('springs_charges-fnri-learned-0',
                                       'springs_charges-fnri-learned-3',
                                       'springs_charges-nri-learned-0',
                                       'springs_charges-fnri-supervised-0'))
    assert list(of_row(results, 'springs_charges', 'fnri', 'learned')) == [0, 3]


def test_provenance_tells_versions_and_machine():
    found = provenance()
    assert found['torch'] == torch.__version__
    assert found['num_threads'] == torch.get_num_threads()
    assert found['processor'] and found['pyg_fnri']
    assert ('gpu' in found) == torch.cuda.is_available()
