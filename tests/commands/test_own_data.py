"""Users' own data through the commands, however they are written down."""
import numpy as np
import pandas as pd
import pytest
import torch
from verdicts import Kind, pull

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
    'east', 'north', '--option', 'max_gap=1'
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
def infer(load_script, tmp_path):
    """Infers the graphs of data; gives the edges."""
    def infer(checkpoint, data, *arguments):
        out = tmp_path / 'graphs'
        load_script('infer').main([
            str(data), '--checkpoint', checkpoint, '--out',
            str(out), '--overwrite', *arguments
        ])
        return pd.read_csv(out / 'edges.csv')

    return infer


@pytest.fixture
def birds(own_table, tmp_path):
    """The table with columns of other names, masses, and a row missing."""
    frame = pd.read_csv(own_table).rename(columns=NAMES)
    frame['weight'] = 1 + 0.5 * frame.bird.str[1:].astype(int)
    frame.drop(index=7).to_csv(tmp_path / 'birds.csv', index=False)
    return tmp_path / 'birds.csv'


def test_own_truth_is_measured_against(train, own_table, own_root, tmp_path,
                                       load_script, capsys):
    truth = tmp_path / 'truth.csv'
    truth.write_text(
        'sender,receiver,type,layer\np0,p1,1,[/x]\np1,p0,1,$1 δ$\n',
        encoding='utf-8')
    with pytest.raises(SystemExit, match='direct'):  # One direction alone.
        train(own_table, '--interactions', str(truth))
    train(own_table, '--interactions', str(truth), '--directed', '--option',
          'neighbours=2')
    history = pd.read_csv(tmp_path / 'run' / 'metrics.csv')
    assert history['val_accuracy_[/x]'].dropna().between(0, 1).all()
    module = load_checkpoint(str(tmp_path / 'run' / 'best.ckpt'))
    assert not module.model.latent.undirected
    assert module.config.data['directed']
    assert module.config.data['neighbours'] == 2
    load_script('evaluate').main([
        '--checkpoint',
        str(tmp_path / 'run' / 'best.ckpt'), '--root', own_root, '--num-drawn',
        '1'
    ])
    assert {'[/x]', '$1 δ$'
            } <= {*capsys.readouterr().out.replace('┃', '  ').split('  ')}


@pytest.mark.filterwarnings('ignore:Filled')
def test_columns_and_masses_are_named_once(train, infer, birds, own_root,
                                           own_table):
    checkpoint = train(birds, *READING, '--option', 'mass=weight')
    config = load_checkpoint(checkpoint).config
    assert config.in_channels == 4
    assert config.data['time_step'] == pytest.approx(0.1)
    assert config.data['reading'] == {
        'system': ['flock'],
        'time': ['t'],
        'particle': ['bird'],
        'position': ['east', 'north'],
        'max_gap': 1,
        'mass': 'weight'
    }
    # Whoever opens the data again, or others, is not told.
    val = open_dataset(config.data, own_root, 'val')
    assert known_masses(val[0]).tolist() == [1, 1.5, 2, 2.5, 3][:len(val[0].x)]
    edges = infer(checkpoint, birds)
    assert {'s0', 's19'} <= set(edges.system)
    with pytest.raises(SystemExit, match='column'):
        infer(checkpoint, own_table)


@pytest.mark.slow
def test_one_recording_needs_no_options(load_script, infer, own_root, tmp_path):
    system = Kind((pull, ), interval=0.2).systems(1, 3, 0.0)
    x = torch.cat([system.x, system.y], 1).numpy()
    time, particle = np.indices(x.shape[1::-1]).reshape(2, -1)
    table = pd.DataFrame(
        x.swapaxes(0, 1).reshape(-1, 4), columns=['x', 'y', 'vx', 'vy'])
    table = table.assign(time=0.2 * time, particle=particle)
    path = tmp_path / 'one.csv'
    table.to_csv(path, index=False)
    script = load_script('train')
    script.main([
        '--recipe', 'laws', '--data',
        str(path), '--num-edge-types', '2', '--out',
        str(tmp_path / 'run'), '--option', f'root={own_root}', '--option',
        'terms='
    ])
    checkpoint = str(tmp_path / 'run' / 'best.ckpt')
    module = load_checkpoint(checkpoint)
    assert module.verdict.startswith('The force laws hold')
    edges = infer(checkpoint, path)  # By all frames.
    found = edges.sort_values(['receiver', 'sender']).type
    assert found.tolist() == system.edge_label[:, 0].tolist()
    # Graphs of windows may change; smoothed, these do not.
    infer(checkpoint, path, '--window', '49', '--stay', '0.9')
    changes = pd.read_csv(tmp_path / 'graphs' / 'changes.csv')
    assert changes.columns[-2:].tolist() == ['0', '49'] and len(changes) == 20
    assert (tmp_path / 'graphs' / 'changes.png').exists()
