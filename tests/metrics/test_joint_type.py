import pytest
import torch

from pyg_fnri.metrics.joint_type import (
    all_joint_types,
    check_sizes,
    check_types,
    joint_type,
)


@pytest.mark.parametrize('sizes', [[2], [2, 2], [3, 2], [2, 4, 3]])
def test_joint_types_are_numbered_in_order(sizes):
    types = all_joint_types(sizes)
    assert types.tolist() == sorted(types.tolist())
    assert len(set(map(tuple, types.tolist()))) == len(types)
    assert joint_type(types, sizes).equal(torch.arange(len(types)))


def test_last_layer_counts_fastest():
    types = torch.tensor([[0, 0], [0, 2], [1, 0], [1, 1]])
    assert joint_type(types, [2, 3]).tolist() == [0, 2, 3, 4]


def test_sizes_become_plain_integers():
    sizes = check_sizes('sizes', torch.tensor([2, 3]).numpy())
    assert sizes == (2, 3) and all(type(size) is int for size in sizes)


@pytest.mark.parametrize('sizes', [[], [2, 1], [2., 2.], 4, None])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match=r'such as \[2, 2\]\), got'):
        check_sizes('num_edge_types', sizes)


def test_types_must_come_as_a_tensor():
    with pytest.raises(TypeError, match='must be a tensor, got list'):
        check_types('edge_type', [[0, 1]], [2, 2])
