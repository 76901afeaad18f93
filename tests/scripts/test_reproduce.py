import json

import pytest
from short_discovery import shorten

from pyg_fnri.experiments import Cell, load_results

FNRI = 'springs_charges-fnri-learned-0'


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('reproduce')


@pytest.fixture
def places(tmp_path):
    return [
        '--root',
        str(tmp_path / 'data'), '--runs',
        str(tmp_path / 'runs'), '--results',
        str(tmp_path / 'results')
    ]


@pytest.fixture
def fake_runs(script, monkeypatch):
    """Puts something else in the place of runs; returns the cells run."""
    cells = []

    def replace(run):
        def note(runner, cell, again=False):
            cells.append(cell.name)
            return run(runner, cell, again)

        monkeypatch.setattr(script.Runner, 'run', note)
        return cells

    return replace


@pytest.fixture(scope='module')
def smoke(script, tiny_root, tmp_path_factory):
    """Two tables, two figures, all that goes into them; once, really run."""
    folder = tmp_path_factory.mktemp('reproduced')
    script.main([
        '--table', '2', '3', '--figure', 'trajectories', 'compression',
        '--scale', 'smoke', '--seeds', '0', '--names', 'springs_charges',
        '--models', 'fnri', '--root', tiny_root, '--runs',
        str(folder / 'runs'), '--results',
        str(folder / 'results')
    ])
    return folder


def listed(script, capsys, *arguments):
    script.main([*arguments, '--list'])
    return capsys.readouterr().out.splitlines()


@pytest.mark.slow
def test_smoke_leaves_results_tables_and_figures(smoke):
    results = smoke / 'results' / 'smoke'
    cells = {
        f'springs_charges-fnri-{regime}-0'
        for regime in ('learned', 'true_graph', 'split', 'unsplit')
    }
    assert {path.name
            for path in results.iterdir()} == {
                *(f'{name}.json' for name in cells), 'table2.md', 'table3.md',
                'trajectories.png', 'compression.png', 'compression.md',
                'compression.json'
            }
    for name in ('trajectories.png', 'compression.png'):
        assert (results / name).read_bytes().startswith(b'\x89PNG')
    for name in cells:
        assert (smoke / 'runs' / 'smoke' / name / 'best.ckpt').exists()


@pytest.mark.slow
def test_smoke_shows_what_was_measured(smoke):
    results = smoke / 'results' / 'smoke'
    found = load_results(str(results))
    text = (results / 'table2.md').read_text()
    for regime in ('learned', 'true_graph'):
        result = found[Cell('springs_charges', 'fnri', regime, 0)]
        assert result['num_systems'] == [64, 32, 32]
        assert result['figures']['num_systems'] == 32
        assert result['commands'][0] in text.replace('$SEED', '0')
        assert 1e5 * result['figures']['rollout_mse']['1'] > 1
    assert 'Scale: smoke' in text and '2 runs' in text
    assert '711,174' in (results / 'table3.md').read_text()
    curves = json.loads((results / 'compression.json').read_text())
    assert [title.split(';')[0] for title in curves
            ] == ['trained with the split', 'trained without the split']


LAWS = [
    '--table', 'laws', '--scale', 'smoke', '--seeds', '0', '--names',
    'springs_charges'
]


@pytest.fixture(scope='module')
def laws(script, tiny_root, tmp_path_factory):
    """The table of laws from nothing; once, really run, if not to their
    end."""
    folder = tmp_path_factory.mktemp('laws')
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        script.main([
            *LAWS, '--regimes', 'nothing', '--root', tiny_root, '--runs',
            str(folder / 'runs'), '--results',
            str(folder / 'results')
        ])
    return folder


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:Of . starts, one alone')
def test_laws_from_nothing_have_a_table(laws):
    results = laws / 'results' / 'smoke'
    name = 'springs_charges-fnri-nothing-0'
    assert {path.name
            for path in results.iterdir()} == {f'{name}.json', 'laws.md'}
    figures = load_results(str(results))[Cell.from_name(name)]['figures']
    text = (results / 'laws.md').read_text()
    combined = figures['refined']['edge_accuracy']['combined']
    assert f'| laws from nothing, refined | {100 * combined:.1f} |' in text
    assert 'paper, learned' in text and '| em: ' not in text
    assert [line for line in text.splitlines()
            if line.startswith('## ')] == ['## I+C']
    run = laws / 'runs' / 'smoke' / name
    assert {'check.txt', 'quick', 'test'} <= {p.name for p in run.iterdir()}
    assert (run / 'test' / 'laws.png').exists()
    # A step of training is no training.
    assert '--max-steps 1' in (run / 'command.txt').read_text()


@pytest.mark.slow
def test_laws_of_both_regimes(script, tiny_root, tmp_path):
    script.main([
        *LAWS, '--root', tiny_root, '--runs',
        str(tmp_path / 'runs'), '--results',
        str(tmp_path / 'results')
    ])
    text = (tmp_path / 'results' / 'smoke' / 'laws.md').read_text()
    for row in ('laws from nothing, refined', 'em: refined',
                'em: encoder at the start, one pass',
                'em: encoder taught, one pass'):
        assert f'| {row} | ' in text
    assert '2 runs' in text and '--refine' in text


def test_laws_need_five_seeds_of_four_data_sets(script, capsys):
    lines = listed(script, capsys, '--table', 'laws', '--scale', 'laptop')
    cells = [Cell.from_name(line.split()[3]) for line in lines]
    assert len(cells) == len(set(cells)) == 4 * 2 * 5
    assert {cell.model for cell in cells} == {'fnri'}
    assert {cell.regime for cell in cells} == {'em', 'nothing'}


@pytest.mark.parametrize('how', ['--list', '--report-only'])
def test_runs_that_the_scale_has_not_are_told_before_the_work(
        script, places, tmp_path, how):
    with pytest.raises(SystemExit, match="no runs 'em' at the scale paper"):
        script.main(['--table', 'laws', '--scale', 'paper', how, *places])
    assert not (tmp_path / 'results').exists()


@pytest.mark.slow
def test_what_has_run_is_not_run_again(script, smoke, tiny_root, fake_runs,
                                       capsys):
    def fail(runner, cell, again):
        raise AssertionError('it was run again')

    arguments = [
        '--scale', 'smoke', '--root', tiny_root, '--runs',
        str(smoke / 'runs'), '--results',
        str(smoke / 'results')
    ]
    before = (smoke / 'results' / 'smoke' / f'{FNRI}.json').read_bytes()
    script.main(['--cell', FNRI, *arguments])
    text = capsys.readouterr().out.replace('\n', '')
    assert f'{FNRI}.json is there already' in text
    assert 'other settings' not in text
    fake_runs(fail)
    script.main(['--table', '1', '--report-only', *arguments])
    assert 'fNRI (learned)' in (smoke / 'results' / 'smoke' /
                                'table1.md').read_text()
    (smoke / 'results' / 'smoke' / 'table1.md').unlink()
    assert (smoke / 'results' / 'smoke' / f'{FNRI}.json').read_bytes() == before


def test_tables_need_all_models_regimes_and_seeds(script, capsys):
    first = listed(script, capsys, '--table', '1', '--scale', 'paper')
    assert len(first) == len(set(first)) == 2 * 3 * 2 * 5
    assert first[0] == ('python scripts/reproduce.py --cell '
                        'springs_charges-nri-learned-0 --scale paper')
    both = listed(script, capsys, '--table', '1', '2', '--scale', 'paper')
    assert len(both) == len(set(both)) == 2 * 3 * 3 * 5  # Learned, once.
    seeds = [int(line.split()[3].rpartition('-')[2]) for line in both]
    assert seeds == sorted(seeds)
    assert len(listed(script, capsys, '--table', '2')) == 2 * 3 * 2 * 3


def test_grid_can_be_narrowed(script, capsys):
    lines = listed(script, capsys, '--table', '1', '--names', 'springs_charges',
                   '--models', 'nri', 'fnri', '--regimes', 'supervised',
                   '--seeds', '7', '8', '--scale', 'laptop')
    assert [line.split()[3] for line in lines] == [
        f'springs_charges-{model}-supervised-{seed}' for seed in (7, 8)
        for model in ('nri', 'fnri')
    ]


def test_figures_need_fnri_on_springs_and_charges(script, capsys):
    lines = listed(script, capsys, '--figure', 'trajectories')
    assert [line.split()[3] for line in lines] == [FNRI]
    lines = listed(script, capsys, '--figure', 'compression', '--seeds', '3')
    assert [line.split()[3] for line in lines] == [
        'springs_charges-fnri-split-3', 'springs_charges-fnri-unsplit-3'
    ]
    lines = listed(script, capsys, '--figure', 'compression', '--models', 'nri',
                   '--scale', 'paper')
    assert [line.split()[3] for line in lines[:2]] == [
        'springs_charges-nri-learned-0', 'springs_charges-nri-unsplit-0'
    ]


def test_listed_commands_say_where_things_are_and_are_understood(
        script, places, capsys):
    line, = listed(script, capsys, '--cell', FNRI, '--scale', 'smoke', *places)
    args = script.parse_args(line.split()[2:])
    assert args.cell == [Cell.from_name(FNRI)] and args.scale == 'smoke'
    for option, value in zip(places[::2], places[1::2]):
        assert getattr(args, option[2:]) == value


def test_failing_cell_does_not_stop_the_others(script, places, fake_runs,
                                               capsys, tmp_path):
    def fail(runner, cell, again):
        if cell.model == 'nri':
            raise RuntimeError('out of memory')
        if cell.model == 'fnri':
            raise SystemExit('no such recipe')
        return True

    cells = fake_runs(fail)
    with pytest.raises(SystemExit) as stop:
        script.main([
            '--table', '1', '--scale', 'smoke', '--names', 'springs_charges',
            '--regimes', 'supervised', '--seeds', '0', *places
        ])
    names = [
        f'springs_charges-{m}-supervised-0' for m in ('nri', 'fnri', 'sfnri')
    ]
    assert cells == names
    # A message: Python prints it, and exits with 1.
    assert stop.value.code.startswith(f'Failed: {names[0]}, {names[1]};')
    output = capsys.readouterr()
    assert 'out of memory' in output.err and 'no such recipe' in output.out
    assert (tmp_path / 'results' / 'smoke' / 'table1.md').exists()


@pytest.mark.parametrize('stop', [KeyboardInterrupt(), SystemExit(1)])
def test_interruption_stops_everything(script, places, fake_runs, stop):
    def interrupt(runner, cell, again):
        raise stop

    cells = fake_runs(interrupt)
    with pytest.raises(type(stop)):
        script.main(['--table', '1', '--scale', 'smoke', *places])
    assert len(cells) == 1


def test_cell_of_another_process_is_skipped(script, places, fake_runs, capsys):
    def taken(runner, cell, again):
        raise script.Timeout('lock')

    fake_runs(taken)
    script.main(['--cell', FNRI, '--scale', 'smoke', *places])
    assert 'another process is at it' in capsys.readouterr().out


def test_again_is_handed_on(script, places, fake_runs):
    told = []
    fake_runs(lambda runner, cell, again: told.append(again) or True)
    script.main(['--cell', FNRI, '--scale', 'smoke', '--again', *places])
    script.main(['--cell', FNRI, '--scale', 'smoke', *places])
    assert told == [True, False]


def test_parameters_need_no_runs(script, places, fake_runs, tmp_path, capsys):
    cells = fake_runs(lambda runner, cell, again: True)
    script.main(['--table', '3', '--scale', 'paper', *places])
    assert cells == []
    text = (tmp_path / 'results' / 'paper' / 'table3.md').read_text()
    assert text.count('710,660') == 4
    assert '337,924' in capsys.readouterr().out


def test_figures_of_nothing_are_told(script, places, capsys, tmp_path):
    with pytest.raises(SystemExit, match='figure trajectories, figure compr'):
        script.main([
            '--figure', 'trajectories', 'compression', '--scale', 'smoke',
            '--report-only', *places
        ])
    text = capsys.readouterr().out
    assert 'There is no checkpoint' in text
    assert 'leave out --report-only' in ' '.join(text.split())
    assert not list((tmp_path / 'results').glob('*/*.png'))


def test_broken_result_is_told(script, places, tmp_path):
    folder = tmp_path / 'results' / 'smoke'
    folder.mkdir(parents=True)
    (folder / f'{FNRI}.json').write_text('{')
    with pytest.raises(SystemExit, match='is not the result of the cell'):
        script.main(
            ['--table', '1', '--scale', 'smoke', '--report-only', *places])


def test_results_that_cannot_be_written_are_told_before_the_work(
        script, places, fake_runs, tmp_path):
    cells = fake_runs(lambda runner, cell, again: True)
    (tmp_path / 'results').touch()
    with pytest.raises(SystemExit, match='Cannot write to .* --results'):
        script.main(['--table', '1', '--scale', 'smoke', *places])
    assert cells == []


@pytest.mark.parametrize('arguments, message', [
    ([], 'say what to reproduce'),
    (['--table', '4'], "invalid choice: '4'"),
    (['--figure', 'laws'], "invalid choice: 'laws'"),
    (['--table', '1', '--scale', 'moon'], "invalid choice: 'moon'"),
    (['--table', '1', '--seeds', '-1'], 'at least 0, not -1'),
    (['--cell', 'springs'], 'DATASET-MODEL-REGIME-SEED'),
    (['--table', '1', '--again', '--list'], '--again is for running'),
])
def test_wrong_arguments_are_told_at_once(script, capsys, arguments, message):
    with pytest.raises(SystemExit, match='2'):
        script.main(arguments)
    assert message in ' '.join(capsys.readouterr().err.split())


def test_grid_without_cells_is_told(script, places):
    with pytest.raises(SystemExit, match='None of the runs'):
        script.main(['--table', '1', '--regimes', 'true_graph', *places])


def test_help_teaches(script, capsys):
    with pytest.raises(SystemExit, match='0'):
        script.main(['--help'])
    text = capsys.readouterr().out
    for part in ('python scripts/reproduce.py --table 1 2 3 --scale smoke',
                 '--list', 'DATASET-MODEL-REGIME-SEED', 'compression'):
        assert part in text
