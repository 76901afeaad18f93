import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from pyg_fnri.data import fully_connected
from pyg_fnri.datasets import NRIFolder
from pyg_fnri.transforms import NearestNeighbours

SIZES = {'train': 6, 'valid': 3, 'test': 2}
OURS = {'train': 'train', 'val': 'valid', 'test': 'test'}


def write(folder, suffix='', num_layers=None, values=(0.0, 1.0), seed=0,
          num_particles=4):
    """Writes a folder as the research code does; gives its arrays."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    arrays = {}
    for split, size in SIZES.items():
        steps = 9 if split == 'test' else 5
        for kind in ('loc', 'vel'):
            arrays[kind,
                   split] = rng.normal(size=(size, steps, 2, num_particles))
        shape = (size, num_layers or 1, num_particles, num_particles)
        lower = np.tril(rng.choice(values, shape), -1)
        edges = lower + np.swapaxes(lower, 2, 3)
        arrays['edges', split] = edges if num_layers else edges[:, 0]
    for (kind, split), array in arrays.items():
        np.save(folder / f'{kind}_{split}{suffix}.npy', array)
    return arrays


@pytest.fixture
def make(tmp_path):
    def make(*args, **kwargs):
        return NRIFolder(tmp_path / 'root', tmp_path / 'data', *args, **kwargs)

    return make


@pytest.mark.parametrize('num_layers', [None, 3])
def test_systems_keep_the_data_contract(make, tmp_path, num_layers):
    arrays = write(tmp_path / 'data', num_layers=num_layers)
    for split, theirs in OURS.items():
        dataset = make(split)
        assert len(dataset) == SIZES[theirs]
        assert dataset.num_edge_types == [2] * (num_layers or 1)
        edges = arrays['edges', theirs]
        edges = edges if num_layers else edges[:, None]
        for s, data in enumerate(dataset):
            assert type(data) is Data and data.validate()
            assert torch.equal(data.edge_index, fully_connected(4))
            assert data.x.shape == (4, 9 if split == 'test' else 5, 4)
            assert data.x.dtype == torch.float32
            for i in range(4):
                loc = arrays['loc', theirs][s, :, :, i].astype(np.float32)
                vel = arrays['vel', theirs][s, :, :, i].astype(np.float32)
                assert np.array_equal(data.x[i], np.concatenate([loc, vel], 1))
            for (j, i), label in zip(data.edge_index.t(), data.edge_label):
                assert label.tolist() == edges[s, :, i, j].tolist()


def test_directed_interactions_have_row_receiver(make, tmp_path):
    write(tmp_path / 'data')
    assert make().one_way == ''
    edges = np.zeros((6, 4, 4))
    edges[3, 2, 1] = 1
    np.save(tmp_path / 'data' / 'edges_train.npy', edges)
    data = make()[3]
    interacting = data.edge_index[:, data.edge_label[:, 0] == 1]
    assert interacting.t().tolist() == [[1, 2]]  # From 1 to 2.
    assert 'in 1 of 1 interactions, first in system 3' in make().one_way


def test_types_are_of_all_splits_and_of_each_layer(make, tmp_path):
    write(tmp_path / 'data', num_layers=2)
    for split, layers in (('train', (1, 0)), ('valid', (0.5, 0)), ('test',
                                                                   (0, 2))):
        edges = np.zeros((SIZES[split], 2, 4, 4))
        edges[:, 0, 1, 0], edges[:, 1, 1, 0] = layers
        np.save(tmp_path / 'data' / f'edges_{split}.npy', edges)
    for split, types in (('train', [2, 0]), ('val', [1, 0]), ('test', [0, 1])):
        dataset = make(split)
        assert dataset.edge_values == [[0, 0.5, 1], [0, 2]]
        assert dataset.num_edge_types == [3, 2]
        assert dataset.edge_label.max(0).values.tolist() == types


def test_negative_values_and_the_diagonal(make, tmp_path):
    # As NRI's charged particles: products of charges, also with themselves.
    write(tmp_path / 'data')
    for split, size in SIZES.items():
        charge = np.random.default_rng(1).choice([-1.0, 1.0], (size, 4, 1))
        np.save(tmp_path / 'data' / f'edges_{split}.npy',
                charge * charge.transpose(0, 2, 1))
    dataset = make()
    assert dataset.edge_values == [[-1, 1]]
    assert set(dataset.edge_label.flatten().tolist()) == {0, 1}
    # With 0 among them, that is no interaction.
    edges = np.zeros((6, 4, 4))
    edges[0, 0, 1], edges[0, 1, 0] = -1, 1
    np.save(tmp_path / 'data' / 'edges_train.npy', edges)
    assert make().edge_values == [[0, -1, 1]]
    assert make()[1].edge_label.eq(0).all()


def test_interactions_may_be_unknown(make, tmp_path):
    write(tmp_path / 'data')
    for split in SIZES:
        (tmp_path / 'data' / f'edges_{split}.npy').unlink()
    dataset = make()
    assert sorted(dataset[0].keys()) == ['edge_index', 'x']
    assert dataset.num_edge_types == [] and dataset.edge_values == []


def test_a_single_suffix_is_found(make, tmp_path):
    arrays = write(tmp_path / 'data', suffix='_springs5')
    dataset = make('val')
    assert dataset.suffix == '_springs5' and dataset.name == 'data_springs5'
    write(tmp_path / 'data', suffix='_charged5', seed=1)
    with pytest.raises(FileNotFoundError, match="'_charged5', '_springs5'"):
        make()
    x = make(suffix='_springs5')[0].x[0, :, :2]
    assert np.allclose(x, arrays['loc', 'train'][0, :, :, 0])
    assert not torch.equal(make(suffix='_charged5')[0].x[0, :, :2], x)
    (tmp_path / 'data').rename(tmp_path / 'a[1]')
    with pytest.raises(FileNotFoundError, match="'_charged5', '_springs5'"):
        NRIFolder(tmp_path / 'root', tmp_path / 'a[1]')


def spoil(kind, value):
    return lambda folder: np.save(folder / f'{kind}_train.npy', value)


@pytest.mark.parametrize(
    'change, error',
    [(lambda folder: (folder / 'vel_train.npy').unlink(), FileNotFoundError),
     (lambda folder: (folder / 'edges_train.npy').unlink(), FileNotFoundError),
     (spoil('loc', np.zeros((6, 5, 4))), ValueError),
     (spoil('loc', np.full((6, 5, 2, 4), np.nan)), ValueError),
     (spoil('edges', np.zeros((5, 4, 4))), ValueError),
     (spoil('edges', np.full((6, 4, 4), np.nan)), ValueError),
     (spoil('edges', np.zeros((6, 2, 4, 4))), ValueError),
     (spoil('edges', np.random.rand(60, 4, 4)), ValueError)])
def test_what_is_wrong_is_refused(make, tmp_path, change, error):
    write(tmp_path / 'data')
    change(tmp_path / 'data')
    with pytest.raises(error):
        make()


def test_names_are_numbers(make, tmp_path):
    edges = write(tmp_path / 'data')['edges', 'train']
    assert make('val')[[2, 0]].system_names == [2, 0]
    assert make('test').particle_names == [[0, 1, 2, 3]] * 2
    first = make().x[0, 0, 0]
    other = make(pre_filter=lambda data: data.x[0, 0, 0] != first)
    assert other.system_names == [1, 2, 3, 4, 5]
    with pytest.warns(UserWarning, match=f'of {edges.sum():.0f} true'):
        make(pre_transform=NearestNeighbours(1))
