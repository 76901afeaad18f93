import pytest
import torch

from pyg_fnri.plot.edges import edge_rows


def test_edges_are_rows():
    assert edge_rows(torch.tensor([[1, 0], [0, 2]])).tolist() == [[1, 0],
                                                                  [0, 2]]


@pytest.mark.parametrize('edge_index, message', [
    ([[0, 1]], r'shape \[1, 2\], expected \[2, num_edges\]'),
    ([[0.], [1.]], 'non-negative integers'),
    ([[0], [-1]], 'non-negative integers'),
    ([[], []], 'at least one edge'),
    ([[0, 2], [1, 2]], 'self loops'),
])
def test_what_are_no_edges_is_refused(edge_index, message):
    with pytest.raises(ValueError, match=message):
        edge_rows(edge_index)
