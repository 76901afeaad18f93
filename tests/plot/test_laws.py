import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from pyg_fnri.metrics import relative_law_error
from pyg_fnri.plot import plot_laws
from pyg_fnri.plot.style import LAYER_COLORS

DISTANCE = torch.linspace(0.03, 12., 600)
TRUE = torch.stack([-0.1 * DISTANCE, 0.2 / DISTANCE**2, 0.1 - 0.1 * DISTANCE])
# Most pairs are 0.3 to 5 m apart; a few came much closer.
SEEN = np.concatenate([np.linspace(0.3, 5., 2000), [0.05] * 8])


def learned_lines(ax):
    """(colour, x, y) of the parts of the learned law."""
    return [(to_rgb(line.get_color()), *line.get_data()) for line in ax.lines
            if line.get_linewidth() == 4 and len(line.get_xdata()) > 1]


def dashed_lines(ax):
    return [line for line in ax.lines if line.get_linestyle() == '--']


def shown(ax, y):
    low, high = ax.get_ylim()
    return (low < y) & (y < high)


def test_laws_have_a_panel_and_a_colour_each(assert_saves, legend_texts):
    names = ['spring', 'charge', 'finite spring']
    learned = (TRUE * torch.tensor([[1.], [1.004], [0.8]])).requires_grad_()
    figure = plot_laws(DISTANCE, learned, TRUE, names=names, seen=SEEN)
    errors = [
        100 * x for x in relative_law_error(DISTANCE, learned, TRUE, SEEN)
    ]
    assert errors == pytest.approx([0, 0.4, 20], rel=1e-3, abs=1e-3)
    texts = ['error 0.0 %', 'error 0.4 %', 'error 20 %']
    for k, ax in enumerate(figure.axes):
        assert ax.get_title() == names[k]
        assert ax.title.get_color() == LAYER_COLORS[k]
        assert [text.get_text() for text in ax.texts] == [texts[k]]
        assert ax.get_xlabel() == 'distance (m)'
        true, = dashed_lines(ax)
        assert np.allclose(true.get_xydata().T, [DISTANCE, TRUE[k]])
        assert ax.get_xscale() == ax.get_yscale() == 'linear'
    assert figure.axes[0].get_ylabel() == 'force (N), + repels'
    assert legend_texts(figure) == [
        'learned', 'extrapolated', 'true', 'distances seen'
    ]
    assert_saves(figure)


def test_the_learned_law_is_pale_where_no_pair_was_seen():
    seen = np.linspace(1.005, 5., 500)
    ax, = plot_laws(DISTANCE, TRUE[:1], seen=seen).axes
    below, above, between = learned_lines(ax)
    color = to_rgb(LAYER_COLORS[0])
    assert between[0] == color
    assert below[0] == above[0] and sum(below[0]) > sum(color)
    # The parts meet where all but the most extreme of the seen distances
    # begin and end, on the law.
    low = np.quantile(seen, 0.01, method='lower')
    high = np.quantile(seen, 0.99, method='higher')
    assert 1.005 < low < 1.1 and 4.9 < high < 5.
    for (_, x, y), ends in zip((below, between, above),
                               ([0.03, low], [low, high], [high, 12])):
        assert x[[0, -1]] == pytest.approx(ends)
        assert y == pytest.approx(-0.1 * x, abs=1e-6)


def test_the_panel_shows_a_spring_whole_and_most_of_a_charge():
    spring, charge, _ = plot_laws(DISTANCE, TRUE, seen=SEEN).axes
    for ax in (spring, charge):
        assert 5 < ax.get_xlim()[1] < 6  # not the twelve metre of the table
        assert shown(ax, 0.)
    assert shown(spring, -0.1 * SEEN).all()
    force = 0.2 / SEEN**2  # up to 80 N, at most 1 N in 95 % of pairs
    assert 0.9 < shown(charge, force).mean() < 1
    assert charge.get_ylim()[1] < 3


@pytest.mark.parametrize('sign, right', [(1, False), (-1, True)])
def test_the_error_is_in_the_corner_that_the_law_keeps_off(sign, right):
    law = sign * DISTANCE[None]
    ax, = plot_laws(DISTANCE, law, law, seen=SEEN).axes
    assert ax.texts[0].xy == (int(right), 1)


def test_a_law_of_zero_can_be_drawn(assert_saves):
    figure = plot_laws(DISTANCE, 0 * TRUE[:1], seen=SEEN)
    assert shown(figure.axes[0], 0.)
    assert_saves(figure)


def test_each_law_may_have_distances_of_its_own():
    middle = float(np.median(SEEN))
    near, far = SEEN[SEEN < middle], SEEN[SEEN > middle]
    wrong = TRUE[:2].clone()
    wrong[:, DISTANCE > middle] *= 1.1
    first, second = plot_laws(DISTANCE, wrong, TRUE[:2], seen=[near, far]).axes
    texts = [ax.texts[-1].get_text() for ax in (first, second)]
    assert texts[0].startswith('error 0.') and texts[1] == 'error 10 %'
