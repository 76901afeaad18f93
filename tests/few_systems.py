"""Small data sets of particle systems."""
import torch

from pyg_fnri.datasets import ParticleSystems

SIZES = (7, 4, 3)


def systems(root, split='train', **kwargs):
    return ParticleSystems(root, split=split, **{
        'num_systems': SIZES,
        **kwargs
    })


def assert_equal(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other):
        assert a.keys() == b.keys()
        for key, value in a.to_dict().items():
            assert torch.equal(value, b[key]), key
