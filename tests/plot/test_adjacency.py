import numpy as np
import pytest
import torch

from pyg_fnri.plot import plot_adjacency

EDGE_INDEX = torch.tensor([[1, 2, 0], [0, 0, 2]])
PROBABILITY = torch.tensor([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])


def panels(figure):
    """The panels with a matrix, without the colour bar."""
    return [ax for ax in figure.axes if ax.images]


def test_rows_are_receivers_and_columns_senders(assert_saves):
    figure = plot_adjacency(EDGE_INDEX, PROBABILITY, names=['spring', 'charge'],
                            particles=['a', 'b', 'c'], label='how probable')
    first, second = panels(figure)
    assert first.get_title() == 'spring' and second.get_title() == 'charge'
    matrix = first.images[0].get_array().filled(np.nan)
    expected = np.full((3, 3), np.nan)
    expected[0, 1], expected[0, 2], expected[2, 0] = 0.1, 0.2, 0.3
    np.testing.assert_allclose(matrix, expected, rtol=1e-6)
    assert second.images[0].get_array()[2, 0] == pytest.approx(0.7)
    assert (first.get_xlabel(), first.get_ylabel()) == ('sender', 'receiver')
    assert [t.get_text() for t in first.get_yticklabels()] == ['a', 'b', 'c']
    assert first.images[0].get_clim() == (0, 1)
    assert figure.axes[-1].get_ylabel() == 'how probable'
    assert_saves(figure)


def test_particles_without_edges_are_shown():
    figure = plot_adjacency(EDGE_INDEX, PROBABILITY[:, :1], particles=range(5))
    ax, = panels(figure)
    assert ax.images[0].get_array().shape == (5, 5)
    assert ax.get_title() == 'layer 0'


def test_not_all_of_many_particles_are_named():
    figure = plot_adjacency(EDGE_INDEX, PROBABILITY, particles=range(50))
    assert len(panels(figure)[0].get_xticks()) == 17


@pytest.mark.parametrize('arguments, message', [
    ({
        'edge_index': EDGE_INDEX.float()
    }, 'non-negative integers'),
    ({
        'edge_index': EDGE_INDEX[:, :0]
    }, 'at least one edge'),
    ({
        'edge_index': EDGE_INDEX[[0, 0]]
    }, 'self loops'),
    ({
        'probability': PROBABILITY[:2]
    }, r'expected \[3, num_layers\]'),
    ({
        'probability': PROBABILITY + 0.5
    }, 'from 0 to 1'),
    ({
        'probability': PROBABILITY / 0
    }, 'NaN or infinite'),
    ({
        'names': ['spring']
    }, 'names is for 1 layers, expected 2'),
    ({
        'particles': ['a', 'b']
    }, 'particles has 2 names, but edge_index names particle 2'),
])
def test_what_does_not_fit_is_refused(arguments, message):
    arguments = {
        'edge_index': EDGE_INDEX,
        'probability': PROBABILITY,
        **arguments
    }
    with pytest.raises(ValueError, match=message):
        plot_adjacency(**arguments)
