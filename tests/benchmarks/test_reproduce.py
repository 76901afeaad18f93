import json
import shutil
from pathlib import Path

import pytest
from reproduce import LAYERS, PARAMETERS, PARTS, cells_of, load_results, main

from pyg_fnri.nn import FNRI, NRI, SFNRI

RESULTS = Path(__file__).parents[2] / 'results' / 'laptop'
CELL = 'springs_charges-fnri-learned-0'


@pytest.fixture(scope='module')
def places(tmp_path_factory):
    base = tmp_path_factory.mktemp('reproduce')
    return base, [
        '--scale', 'smoke', *(word for name in ('root', 'runs', 'results')
                              for word in (f'--{name}', str(base / name)))
    ]


@pytest.fixture(scope='module')
def run(places):
    """Runs a cell, and reads its result."""
    base, arguments = places

    def run(cell, *further):
        main(['--cell', cell, *further, *arguments])
        path = base / 'results' / 'smoke' / f'{cell}.json'
        return path, json.loads(path.read_text())

    return run


def test_cells_of_tables_and_figures():
    assert len(cells_of(['1'], 'paper')) == 2 * 3 * 2 * 5
    # Once each, seed by seed.
    both = cells_of(['1', '2'], 'laptop')
    assert len(both) == len({*both}) == 2 * 3 * 3 * 3
    assert [name[-1] for name in both] == ['0'] * 18 + ['1'] * 18 + ['2'] * 18
    assert cells_of(['3'], 'laptop') == []
    assert len(cells_of(['laws'], 'laptop')) == 4 * 3
    assert [
        name.split('-')[1] for name in cells_of(['trajectories'], 'laptop')
    ] == ['nri', 'fnri', 'sfnri']
    assert {path.stem
            for path in RESULTS.glob('*-*-*-*.json')
            } <= {*cells_of(PARTS, 'laptop')}


def test_curves_over_minutes_of_either_recipe(tmp_path):
    for scale, steps in (('laptop', [999, 1999]), ('paper', [389])):
        run = tmp_path / 'runs' / scale / CELL
        run.mkdir(parents=True)
        rows = [f'{step},{-step},0.9,{step / 10}' for step in steps]
        head = 'step,val_loss,val_accuracy,val_rollout_mse'
        (run / 'metrics.csv').write_text('\n'.join([head, *rows, '2500,,,']))
        (tmp_path / 'results' / scale).mkdir(parents=True)
    results = tmp_path / 'results'
    (results / 'laptop' / f'{CELL}.json').write_text('{"minutes": 8}')
    (results / 'paper' / f'{CELL}.minutes').write_text('23')  # It is stopped.
    main([
        '--figure', 'curves', '--scale', 'paper', '--report-only', '--runs',
        str(tmp_path / 'runs'), '--results',
        str(results)
    ])
    lines = (results / 'paper' / 'curves.md').read_text().splitlines()
    assert '| 4.0 | -0.4997 | 0.9 | 99.9 |' in lines
    assert '| 23.0 | -1.0 | 0.9 | 38.9 |' in lines
    assert (results / 'paper' / 'curves.png').exists()


@pytest.mark.slow
def test_a_cell_is_trained_and_measured_once(run, places, capsys):
    base, arguments = places
    path, found = run(CELL)
    assert found['cell'] == CELL and found['num_systems'] == [64, 32, 32]
    figures = found['figures']
    assert set(figures['rollout_mse']) == {'1', '10', '20'}
    assert 0 <= figures['edge_accuracy']['combined'] <= 1
    assert 'random_accuracy' in figures and found['minutes'] > 0
    before = path.stat().st_mtime_ns
    main([
        '--table', '1', '--figure', 'trajectories', '--cell', CELL, *arguments
    ])
    assert path.stat().st_mtime_ns == before
    table = (path.parent / 'table1.md').read_text()
    assert '| fnri (learned) |' in table and '| 94.0 |' in table
    picture = (path.parent / 'trajectories.png').read_bytes()
    assert picture.startswith(b'\x89PNG')
    # A run that was stopped goes on.
    path.unlink()
    checkpoint = base / 'runs' / 'smoke' / CELL / 'best.ckpt'
    before = checkpoint.stat().st_mtime_ns
    assert run(CELL)[0].exists() and checkpoint.stat().st_mtime_ns == before


def test_errors_on_both_halves(run):
    _, found = run('springs_charges-fnri-unsplit-0')
    halves = found['figures']['halves']
    for half in ('observed', 'following'):
        assert set(halves[half]['rollout_mse']) == {'1', '5', '10', '20', '40'}
    assert halves['observed'] != halves['following']


@pytest.mark.slow
def test_cells_with_force_laws(run):
    _, found = run('springs_charges-fnri-scratch-0', '--table', 'laws')
    for figures in (found['figures'], found['figures']['refined']):
        assert 0 <= figures['edge_accuracy']['combined'] <= 1


def test_tables_of_committed_results(tmp_path):
    shutil.copytree(RESULTS, tmp_path / 'laptop')
    names = {path.stem for path in RESULTS.glob('*-*-*-*.json')}
    cells = load_results(RESULTS)[['dataset', 'model', 'regime', 'seed']]
    assert {'-'.join(map(str, row)) for row in cells.to_numpy()} == names
    main([
        '--table', '1', '2', '3', 'laws', 'nri', '--figure', 'compression',
        '--report-only', '--results',
        str(tmp_path)
    ])
    made = [*(tmp_path / 'laptop').glob('*.md')]
    assert len(made) == 6
    for path in made:
        assert path.read_text() == (RESULTS / path.name).read_text()


@pytest.mark.parametrize('dataset', LAYERS)
@pytest.mark.parametrize('name, model', [('nri', NRI), ('fnri', FNRI),
                                         ('sfnri', SFNRI)])
def test_parameters_of_table_3_are_those_of_our_models(dataset, name, model):
    model = model(4, 49, [2] * len(LAYERS[dataset]))
    assert PARAMETERS[dataset][name] == tuple(
        sum(weight.numel() for weight in part.parameters())
        for part in (model.encoder, model.decoder))
