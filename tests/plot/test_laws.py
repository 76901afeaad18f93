import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from pyg_fnri.plot import plot_laws
from pyg_fnri.plot.style import LAYER_COLORS

DISTANCE = torch.linspace(0.03, 12., 600)
TRUE = torch.stack([-0.1 * DISTANCE, 0.2 / DISTANCE**2])
# Most pairs are 0.3 to 5 m apart; a few came much closer.
SEEN = np.concatenate([np.linspace(0.3, 5., 2000), [0.05] * 8])


def draw(learned, true=None, seen=SEEN, **kwargs):
    return plot_laws(DISTANCE, learned, true, seen=[seen] * len(learned),
                     names=['spring', 'charge'], **kwargs)


def learned_lines(ax):
    """(colour, x, y) of the parts of the learned law."""
    return [(to_rgb(line.get_color()), *line.get_data()) for line in ax.lines
            if line.get_linewidth() == 4 and len(line.get_xdata()) > 1]


def test_laws_have_a_panel_and_a_colour_each(assert_saves, legend_texts):
    figure = draw((0.9 * TRUE).requires_grad_(), TRUE, errors=[0.004, 0.2],
                  unit='um', force_unit='pN')
    # In the corner that the law keeps off.
    texts = [('error 0.4 %', (1, 1)), ('error 20 %', (1, 1))]
    for k, ax in enumerate(figure.axes):
        assert ax.get_title() == ('spring', 'charge')[k]
        assert ax.title.get_color() == LAYER_COLORS[k]
        assert [(text.get_text(), text.xy) for text in ax.texts] == [texts[k]]
        assert ax.get_xlabel() == 'distance (um)'
        true, = [line for line in ax.lines if line.get_linestyle() == '--']
        assert np.allclose(true.get_xydata().T, [DISTANCE, TRUE[k]])
    assert figure.axes[0].get_ylabel() == 'force (pN), + repels'
    assert legend_texts(figure) == [
        'learned', 'extrapolated', 'true', 'distances seen'
    ]
    assert_saves(figure)
    ax, = draw(DISTANCE[None], errors=[0.]).axes
    assert ax.texts[0].xy == (0, 1)


def test_the_learned_law_is_pale_where_no_pair_was_seen(legend_texts):
    seen = np.linspace(1.005, 5., 500)
    figure = draw(TRUE[:1], seen=seen)
    assert legend_texts(figure) == ['learned', 'extrapolated', 'distances seen']
    below, above, between = learned_lines(figure.axes[0])
    color = to_rgb(LAYER_COLORS[0])
    assert between[0] == color
    assert below[0] == above[0] and sum(below[0]) > sum(color)
    # The parts meet where all but the most extreme of the seen distances
    # begin and end, on the law.
    low = np.quantile(seen, 0.01, method='lower')
    high = np.quantile(seen, 0.99, method='higher')
    for (_, x, y), ends in zip((below, between, above),
                               ([0.03, low], [low, high], [high, 12])):
        assert x[[0, -1]] == pytest.approx(ends)
        assert y == pytest.approx(-0.1 * x, abs=1e-6)
