import math

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch

from pyg_fnri.plot import (plot_adjacency, plot_changes, plot_multiplex,
                           plot_trajectories)
from pyg_fnri.plot.style import LAYER_COLORS, WRONG


def trajectories(num_particles=3):
    return torch.randn(num_particles, 12, 4).cumsum(dim=1)


def lines(ax):
    return [x for x in ax.collections if isinstance(x, LineCollection)]


def test_trajectories_of_several_systems(assert_saves, legend_texts):
    systems = [trajectories(n) for n in (2, 3, 5)]
    figure = plot_trajectories(systems, [x + 0.1 for x in systems],
                               observed=[x[:, :7] for x in systems],
                               titles=list('abc'))
    assert [ax.get_title() for ax in figure.axes] == list('abc')
    for ax, system in zip(figure.axes, systems):
        assert len(lines(ax)) == 1 + len(system) == 1 + len(ax.lines)
    assert legend_texts(figure) == ['predicted', 'true', 'start', 'observed']
    assert_saves(figure)


def test_what_diverges_is_drawn_as_far_as_it_is_finite(assert_saves):
    x = trajectories()
    wild = x.clone()
    wild[1, 6:] = math.nan
    figure = plot_trajectories(wild, x)
    predicted = lines(figure.axes[0])[1]
    drawn = [piece for piece in predicted.get_segments() if len(piece) == 2]
    assert len(drawn) == 5  # Between six frames.
    assert_saves(plot_trajectories(0 * x, 0 * x))  # At rest.


PAIRS = [(0, 1), (0, 2), (1, 2)]
EDGE_INDEX = torch.tensor(PAIRS + [(i, j) for j, i in PAIRS]).T


def undirected(types):
    """[num_pairs, L] -> [E, L] for EDGE_INDEX."""
    return torch.tensor(types).repeat(2, 1)


def edges(ax):
    """(colour, dashed, directed, alpha) of the edges drawn."""
    arrows = [x for x in ax.patches if isinstance(x, FancyArrowPatch)]
    return [(x.get_edgecolor()[:3], x.get_linestyle() != '-',
             type(x.get_arrowstyle()).__name__ != 'Curve', x.get_alpha())
            for x in arrows]


def test_multiplex_marks_wrong_edges(assert_saves, legend_texts):
    true = undirected([[1, 0], [1, 1], [0, 0]])
    inferred = undirected([[1, 1], [0, 1], [0, 0]])
    figure = plot_multiplex(EDGE_INDEX, inferred, true,
                            names=['spring', 'charge'])
    true_spring, true_charge, spring, charge = figure.axes
    assert true_spring.get_title() == 'spring'
    blue, orange, red = map(to_rgb, (*LAYER_COLORS[:2], WRONG))
    right, other = (blue, False, False, 1.), (orange, False, False, 1.)
    assert edges(true_spring) == [right] * 2 and edges(true_charge) == [other]
    assert edges(spring) == [right, (red, True, False, 1.)]  # missed
    assert edges(charge) == [other, (red, False, False, 1.)]  # not true
    assert spring.get_xlabel() == charge.get_xlabel() == '67% right'
    assert legend_texts(figure) == ['inferred, not true', 'missed']
    assert_saves(figure)


@pytest.mark.filterwarnings('ignore:Glyph')
def test_names_are_no_formulas(assert_saves):
    names = ['$100% of $200', r'\$_{$\alpha$', '_a\0\x1b名']
    types = torch.ones(6, 2, dtype=torch.long)
    figure = plot_multiplex(EDGE_INDEX, types, names=names, particles=names)
    assert_saves(figure)
    figure.draw_without_rendering()
    title = figure.axes[0].title
    assert title._preprocess_math(title.get_text()) == (names[0], False)
    assert_saves(plot_adjacency(EDGE_INDEX, types.float(), names))
    rows = [('r', name, 'b', 0, 0.5, 0.1) for name in names]
    columns = ['recording', 'sender', 'receiver', 'layer', 0, 10]
    assert_saves(plot_changes(pd.DataFrame(rows, columns=columns)))
    named = pd.DataFrame(rows, columns=columns).assign(layer='spring')
    assert plot_changes(named).axes[0].get_title() == 'spring'
    # Neither are there edges in every system.
    nothing = np.zeros((2, 0), dtype=int), np.zeros((0, 1), dtype=int)
    assert_saves(plot_multiplex(*nothing, particles=['a', 'b']))


def test_one_way_edges_are_arrows_from_sender_to_receiver():
    types = torch.zeros(6, 1, dtype=torch.long)
    types[0] = 1  # 0 -> 1
    ax, = plot_multiplex(EDGE_INDEX, types).axes
    assert edges(ax) == [(to_rgb(LAYER_COLORS[0]), False, True, 1.)]
    arrow, = [x for x in ax.patches if isinstance(x, FancyArrowPatch)]
    assert np.allclose(arrow._posA_posB, [[0, 1], [0.75**0.5, -0.5]])


def test_rows_are_receivers_and_columns_senders(assert_saves):
    edge_index = torch.tensor([[1, 2, 0], [0, 0, 2]])
    probability = torch.tensor([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    figure = plot_adjacency(edge_index, probability, ['a', 'b', 'c'])
    first, second = [ax for ax in figure.axes if ax.images]
    expected = np.full((2, 3, 3), np.nan)
    share = probability.numpy()
    expected[:, 0, 1], expected[:, 0, 2], expected[:, 2, 0] = share
    for ax, values in zip((first, second), expected):
        matrix = ax.images[0].get_array().filled(np.nan)
        np.testing.assert_allclose(matrix, values, rtol=1e-6)
    assert (first.get_xlabel(), first.get_ylabel()) == ('sender', 'receiver')
    assert [t.get_text() for t in first.get_yticklabels()] == ['a', 'b', 'c']
    assert_saves(figure)
