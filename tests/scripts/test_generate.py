import numpy as np
import pytest

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.simulation import Kuramoto, Newtonian, SignedCharges

SIZES = ['18', '16', '17']


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('generate')


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    return str(tmp_path_factory.mktemp('datasets'))


@pytest.fixture
def random_motion(monkeypatch):
    """Motion that needs no compiling, of systems of any kind."""
    def draw(self, edge_types, seed, progress=False):
        num_systems, _, num_particles, _ = edge_types.shape
        return np.random.default_rng(seed).standard_normal(
            (num_systems, num_particles, 99, 4), np.float32)

    for system in (Newtonian, SignedCharges, Kuramoto):
        monkeypatch.setattr(system, 'simulate', draw)


def split(root, name):
    return ParticleSystems(root, split=name,
                           num_systems=[int(size) for size in SIZES])


def test_card_shows_the_data_set(script, root, capsys):
    script.main(['--root', root, '--num-systems', *SIZES])
    card = capsys.readouterr().out
    train, test = split(root, 'train'), split(root, 'test')
    assert 'Spring(stiffness=0.1), Charge(strength=0.2)' in card
    for dataset in (train, split(root, 'val'), test):
        assert dataset.processed_dir in card
        assert script.checksum(dataset)[:16] in card
        for share in script.interacting_share(dataset).values():
            assert f'{share:.3f}' in card
    assert '783.0' in card  # The paper's error at 20 steps.
    for error in script.static_error(train, test).values():
        assert f'{1e5 * error:.1f}' in card


def test_share_is_of_each_type_where_there_are_more(script, tmp_path,
                                                    random_motion):
    dataset = ParticleSystems(tmp_path, 'nri_charged', num_systems=(6, 2, 2))
    share = script.interacting_share(dataset)
    assert list(share) == ['charge, type 1', 'charge, type 2']
    assert sum(share.values()) == pytest.approx(1)
    label = dataset.edge_label
    assert share['charge, type 2'] == pytest.approx(
        (label == 2).sum().item() / label.numel())


@pytest.mark.parametrize('arguments, message',
                         [(['--name', 'none'], 'none'),
                          (['--num-systems', '3', '0', '3'], 'num_systems'),
                          (['--root', '/dev/null'], 'Cannot write')])
def test_wrong_arguments_end_in_one_sentence(script, tmp_path, arguments,
                                             message):
    with pytest.raises(SystemExit, match=message):
        script.main(['--root', str(tmp_path), *arguments])
