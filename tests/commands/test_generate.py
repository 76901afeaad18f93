import numpy as np
import pytest

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.simulation import SignedCharges


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('generate')


@pytest.mark.parametrize('split_by', ['system', 'graph'])
def test_card_shows_the_data_set(script, tiny_root, capsys, split_by):
    sizes = (64, 32, 32)
    script.main([
        '--root', tiny_root, '--split-by', split_by, '--num-systems',
        *map(str, sizes)
    ])
    card = capsys.readouterr().out
    assert 'Spring(stiffness=0.1), Charge(strength=0.2)' in card
    splits = [
        ParticleSystems(tiny_root, split=split, num_systems=sizes,
                        split_by=split_by) for split in ('train', 'val', 'test')
    ]
    for dataset in splits:
        assert dataset.processed_dir in card
        assert script.checksum(dataset)[:16] in card
        for share in script.interacting_share(dataset).values():
            assert f'{share:.3f}' in card
    for error in script.static_error(splits[0], splits[2]).values():
        assert f'{1e5 * error:.1f}' in card
    # The paper's error at 20 steps is that of a random split.
    assert ('783.0' in card) == (split_by == 'system')


def test_share_is_of_each_type_where_there_are_more(script, tmp_path,
                                                    monkeypatch):
    monkeypatch.setattr(
        SignedCharges, 'simulate', lambda self, types, *args, **kw: np.zeros(
            (len(types), 5, 99, 4), np.float32))
    dataset = ParticleSystems(tmp_path, 'nri_charged', num_systems=(6, 2, 2))
    share = script.interacting_share(dataset)
    assert list(share) == ['charge, type 1', 'charge, type 2']
    assert sum(share.values()) == pytest.approx(1)
    label = dataset.edge_label
    assert share['charge, type 2'] == pytest.approx(
        (label == 2).sum().item() / label.numel())
