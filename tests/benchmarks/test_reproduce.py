import json

import pytest
from filelock import FileLock
from reproduce import cells_of, main, parse_args
from tables import Cell

CELL = 'springs_charges-fnri-learned-0'


@pytest.fixture(scope='module')
def places(tmp_path_factory):
    base = tmp_path_factory.mktemp('reproduce')
    return base, [
        '--scale', 'smoke', *(word for name in ('root', 'runs', 'results')
                              for word in (f'--{name}', str(base / name)))
    ]


@pytest.fixture(scope='module')
def result(places):
    """The file of a cell that has been run."""
    base, arguments = places
    main(['--cell', CELL, *arguments])
    return base / 'results' / 'smoke' / f'{CELL}.json'


def names(*arguments):
    return [cell.name for cell in cells_of(parse_args([*arguments]))]


def test_cells_of_tables_and_figures():
    assert len(names('--table', '1', '--scale', 'paper')) == 2 * 3 * 2 * 5
    # Once each, seed by seed.
    both = names('--table', '1', '2', '--seeds', '1', '0')
    assert len(both) == len({*both}) == 2 * 2 * 3 * 3
    assert [name[-1] for name in both] == ['0'] * 18 + ['1'] * 18
    assert names('--table', '3') == []
    assert len(names('--table', 'laws')) == 4 * 2 * 5
    assert names('--figure', 'trajectories') == [CELL]
    assert names('--figure', 'compression', '--seeds', '0') == [
        'springs_charges-fnri-split-0', 'springs_charges-fnri-unsplit-0'
    ]
    assert names('--table', '2', '--names', 'springs_charges', '--models',
                 'nri', '--regimes', 'true_graph', '--seeds',
                 '7') == ['springs_charges-nri-true_graph-7']


def test_list_prints_commands_that_name_the_same_cells(capsys):
    main(['--table', '1', '--scale', 'paper', '--list'])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 60
    words = lines[0].split()
    assert words[:2] == ['python', 'benchmarks/reproduce.py']
    args = parse_args(words[2:])
    assert args.scale == 'paper' and args.cell == [
        Cell('springs_charges', 'nri', 'learned', 0)
    ]


def test_a_cell_is_trained_and_measured(result):
    found = json.loads(result.read_text())
    assert found['cell'] == CELL and found['num_systems'] == [64, 32, 32]
    figures = found['figures']
    assert set(figures['rollout_mse']) == {'1', '10', '20'}
    assert 0 <= figures['edge_accuracy']['combined'] <= 1
    assert 'random_accuracy' in figures and found['minutes'] > 0


def test_what_is_there_is_not_run_again(result, places, capsys):
    before = result.stat().st_mtime_ns
    main([
        '--table', '1', '--figure', 'trajectories', '--names',
        'springs_charges', '--models', 'fnri', '--regimes', 'learned',
        *places[1]
    ])
    assert result.stat().st_mtime_ns == before
    table = (result.parent / 'table1.md').read_text()
    assert '| fnri (learned) |' in table and '| 94.0 |' in table
    picture = (result.parent / 'trajectories.png').read_bytes()
    assert picture.startswith(b'\x89PNG')


def test_a_run_that_was_stopped_goes_on(result, places, capsys):
    base, arguments = places
    result.unlink()
    checkpoint = base / 'runs' / 'smoke' / CELL / 'best.ckpt'
    before = checkpoint.stat().st_mtime_ns
    main(['--cell', CELL, *arguments])
    assert result.exists() and checkpoint.stat().st_mtime_ns == before


def test_another_process_is_left_alone(result, places, capsys):
    base, arguments = places
    with FileLock(f"{base / 'runs' / 'smoke' / CELL}.lock"):
        main(['--cell', CELL, '--again', *arguments])
    assert 'another process is at it' in capsys.readouterr().out
    assert result.exists()


def test_a_run_that_fails_does_not_stop_the_others(places, capsys):
    base, arguments = places
    other = 'springs_charges-fnri-true_graph-0'
    with pytest.raises(SystemExit, match='Failed: nowhere-nri-learned-0;'):
        main(['--cell', 'nowhere-nri-learned-0', other, *arguments])
    figures = json.loads(
        (base / 'results' / 'smoke' / f'{other}.json').read_text())['figures']
    assert 'rollout_mse' in figures and 'edge_accuracy' not in figures


@pytest.mark.parametrize('regime', ['unsplit', 'split'])
def test_errors_on_both_halves(places, regime):
    base, arguments = places
    cell = f'springs_charges-fnri-{regime}-0'
    main(['--cell', cell, *arguments])
    halves = json.loads((base / 'results' / 'smoke' /
                         f'{cell}.json').read_text())['figures']['halves']
    for half in ('observed', 'following'):
        assert set(halves[half]['rollout_mse']) == {'1', '5', '10', '20', '40'}
    assert halves['observed'] != halves['following']


@pytest.mark.slow
@pytest.mark.parametrize('regime', ['em', 'scratch'])
def test_cells_with_force_laws(places, regime):
    base, arguments = places
    main([
        '--table', 'laws', '--names', 'springs_charges', '--regimes', regime,
        *arguments
    ])
    cell = f'springs_charges-fnri-{regime}-0'
    figures = json.loads(
        (base / 'results' / 'smoke' / f'{cell}.json').read_text())['figures']
    assert 0 <= figures['refined']['edge_accuracy']['combined'] <= 1
    assert ('before' in figures) == (regime == 'em')
