"""Users' own data through the scripts, however they are written down."""
import numpy as np
import pandas as pd
import pytest

from pyg_fnri.datasets.spec import open_dataset
from pyg_fnri.nn import known_masses
from pyg_fnri.training import load_checkpoint

NAMES = {
    'system': 'flock',
    'time': 't',
    'particle': 'bird',
    'x': 'east',
    'y': 'north'
}
READING = [
    '--system', 'flock', '--time', 't', '--particle', 'bird', '--position',
    'east', 'north', '--max-gap', '1'
]


@pytest.fixture
def train(load_script, own_arguments, tmp_path):
    """Trains 3 steps on other data; gives the checkpoint."""
    def train(data, *arguments):
        load_script('train').main([
            *own_arguments, '--data',
            str(data), '--out',
            str(tmp_path / 'run'), '--overwrite', *arguments
        ])
        return str(tmp_path / 'run' / 'best.ckpt')

    return train


@pytest.fixture
def infer(load_script, own_root, tmp_path):
    """Infers the graphs of data; gives the edges."""
    def infer(checkpoint, data, *arguments):
        out = tmp_path / 'graphs'
        load_script('infer').main([
            '--root', own_root, '--checkpoint', checkpoint, '--data',
            str(data), '--out',
            str(out), '--overwrite', *arguments
        ])
        return pd.read_csv(out / 'edges.csv')

    return infer


@pytest.fixture
def birds(own_table, tmp_path):
    """The table with columns of other names, and a row missing."""
    frame = pd.read_csv(own_table).rename(columns=NAMES).drop(index=7)
    frame.to_csv(tmp_path / 'birds.csv', index=False)
    return tmp_path / 'birds.csv'


@pytest.fixture
def positions(tmp_path):
    """An array of positions alone."""
    path = tmp_path / 'pos.npy'
    np.save(path, np.random.default_rng(0).normal(size=(20, 3, 16, 2)))
    return path


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:Filled')
def test_columns_are_named_once(train, infer, birds, load_script, own_root,
                                own_table, tmp_path):
    checkpoint = train(birds, *READING)
    config = load_checkpoint(checkpoint).config
    assert config.data['time_step'] == pytest.approx(0.1)
    assert config.data['reading'] == {
        'system': 'flock',
        'time': 't',
        'particle': 'bird',
        'position': ['east', 'north'],
        'max_gap': 1
    }
    # Whoever opens the data again, or others, is not told.
    load_script('evaluate').main([
        '--root', own_root, '--checkpoint', checkpoint, '--out',
        str(tmp_path / 'evaluated')
    ])
    edges = infer(checkpoint, birds)
    assert {'s0', 's19'} <= set(edges.system)
    with pytest.raises(SystemExit, match="one column 't'.*by --time NAME"):
        infer(checkpoint, own_table)
    plain = infer(checkpoint, own_table, '--system', 'system', '--time', 'time',
                  '--particle', 'particle', '--position', 'x', 'y')
    assert plain[['sender', 'receiver']].equals(edges[['sender', 'receiver']])


@pytest.fixture
def weighed(own_table, tmp_path):
    """The table with a mass for each particle."""
    frame = pd.read_csv(own_table)
    frame['weight'] = 1 + 0.5 * frame.particle.str[1:].astype(int)
    frame.to_csv(tmp_path / 'weighed.csv', index=False)
    return tmp_path / 'weighed.csv'


@pytest.mark.slow
def test_masses_are_remembered(train, infer, weighed, own_root, own_table):
    checkpoint = train(weighed, '--mass', 'weight')
    config = load_checkpoint(checkpoint).config
    assert config.data['reading'] == {'mass': 'weight'}
    assert config.in_channels == 4
    val = open_dataset(config.data, own_root, 'val')
    assert known_masses(val[0]).tolist() == [1, 1.5, 2, 2.5, 3][:len(val[0].x)]
    assert len(infer(checkpoint, weighed, '--refine').system.unique()) == 20
    with pytest.raises(SystemExit, match="one column 'weight'.*--mass NAME"):
        infer(checkpoint, own_table)
    renamed = pd.read_csv(weighed).rename(columns={'weight': 'm'})
    renamed.to_csv(weighed, index=False)
    infer(checkpoint, weighed, '--mass', 'm')


def test_masses_that_change_are_refused(train, weighed):
    frame = pd.read_csv(weighed)
    frame.loc[3, 'weight'] = 7.0
    frame.to_csv(weighed, index=False)
    with pytest.raises(
            SystemExit, match="1.0 of system 's0', particle 'p0', "
            "time 0, row 0, and 7.0 of .* row 3") as error:
        train(weighed, '--mass', 'weight')
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('left_out, message', [
    (0, "two rows of one particle.*--system NAME"),
    (2, "one column 'time'.*by --time NAME"),
    (4, "one column 'particle'.*by --particle NAME"),
    (6, 'none of the columns x, y and z.*by --position NAMES'),
    (9, 'missing .* by --max-gap 1, now 0'),
])
def test_errors_name_the_option(train, birds, left_out, message):
    # An option without its values.
    end = left_out + (3 if READING[left_out] == '--position' else 2)
    with pytest.raises(SystemExit, match=message) as error:
        train(birds, *READING[:left_out], *READING[end:])
    assert '\n' not in str(error.value)


@pytest.mark.slow
def test_positions_alone_are_never_taken_for_velocities(train, infer, positions,
                                                        tmp_path):
    with pytest.raises(SystemExit, match='2 features.*--position 0 1, and vel'):
        train(positions)
    checkpoint = train(positions, '--position', '0', '1', '--time-step', '0.1')
    config = load_checkpoint(checkpoint).config
    assert config.in_channels == 4 and config.data['time_step'] == 0.1
    edges = infer(checkpoint, positions)
    # The same features, all in one array.
    x = np.load(positions)
    v = np.gradient(x, 0.1, axis=2, edge_order=2)
    np.save(tmp_path / 'full.npy', np.concatenate([x, v], axis=-1))
    full = infer(checkpoint, tmp_path / 'full.npy', '--position', '0', '1',
                 '--velocity', '2', '3')
    np.testing.assert_allclose(full.probability, edges.probability, rtol=1e-4)
    with pytest.raises(SystemExit, match='0.5 apart, but .* trained on 0.1'):
        infer(checkpoint, positions, '--time-step', '0.5')


@pytest.mark.slow
def test_windows_may_overlap(train, infer, own_table):
    with pytest.raises(SystemExit, match='2'):
        train(own_table, '--stride', '2')
    checkpoint = train(own_table, '--window', '16', '--stride', '2')
    config = load_checkpoint(checkpoint).config
    assert (config.data['window'], config.data['stride']) == (16, 2)
    edges = infer(checkpoint, own_table, '--window', '16', '--stride', '4')
    assert set(
        edges.system[edges.system.str.startswith('s0/')]) == {'s0/0', 's0/4'}


@pytest.fixture
def one_way(tmp_path):
    """A truth that lists one direction only."""
    path = tmp_path / 'truth.csv'
    path.write_text('sender,receiver,type,layer\np0,p1,1,a\np1,p2,0,b\n')
    return str(path)


def test_truth_of_one_direction_asks_for_directed_graphs(
        train, own_table, one_way, tmp_path):
    for regime in ('learned', 'supervised'):
        with pytest.raises(SystemExit, match='20 of 20 .*--directed'):
            train(own_table, '--interactions', one_way, '--regime', regime)
        assert not list((tmp_path / 'run').iterdir())
    train(own_table, '--interactions', one_way, '--directed')


def test_truth_is_looked_at_before_models_are_compared(load_script, own_table,
                                                       own_root, one_way,
                                                       tmp_path):
    with pytest.raises(SystemExit, match='20 of 20 .*--directed'):
        load_script('select_layers').main([
            '--root', own_root, '--data', own_table, '--interactions', one_way,
            '--out',
            str(tmp_path / 'layers')
        ])
    assert not (tmp_path / 'layers' / 'runs').exists()


@pytest.mark.slow
def test_folders_of_the_research_code_are_data(train, infer, load_script,
                                               own_root, tmp_path, capsys):
    folder = tmp_path / 'theirs'
    folder.mkdir()
    rng = np.random.default_rng(0)
    for split, size in (('train', 8), ('valid', 3), ('test', 2)):
        for kind in ('loc', 'vel'):
            np.save(folder / f'{kind}_{split}_springs4.npy',
                    rng.normal(size=(size, 16, 2, 4)))
        edges = np.tril(rng.integers(2, size=(size, 2, 4, 4)), -1)
        np.save(folder / f'edges_{split}_springs4.npy',
                edges + edges.swapaxes(2, 3))
    checkpoint = train(folder)
    load_script('evaluate').main([
        '--root', own_root, '--checkpoint', checkpoint, '--out',
        str(tmp_path / 'evaluated')
    ])
    edges = infer(checkpoint, folder)
    assert set(edges.system) == {0, 1}
    assert "2 systems of the split 'test'" in capsys.readouterr().out
    with pytest.raises(SystemExit, match='is a folder.*leave out --window 9'):
        train(folder, '--window', '9')
    with pytest.raises(SystemExit, match='2'):
        load_script('select_layers').main(['--data', str(folder)])
    assert 'which may hold the truth' in capsys.readouterr().err
