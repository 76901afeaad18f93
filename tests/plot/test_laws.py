import numpy as np
import torch

from pyg_fnri.plot import plot_laws

DISTANCE = torch.linspace(0.03, 12., 600)
TRUE = torch.stack([-0.1 * DISTANCE, 0.2 / DISTANCE**2])
# Most pairs are 0.3 to 5 m apart; a few came much closer.
SEEN = np.concatenate([np.linspace(0.3, 5., 2000), [0.05] * 8])


def draw(learned, true=None, seen=SEEN, **kwargs):
    return plot_laws(DISTANCE, learned, true, seen=[seen] * len(learned),
                     names=['spring', 'charge'], **kwargs)


def test_laws_have_a_panel_and_a_colour_each(assert_saves, legend_texts):
    figure = draw((0.9 * TRUE).requires_grad_(), TRUE, errors=[0.004, 0.2],
                  unit='um', force_unit='pN')
    texts = ['error 0.4 %', 'error 20 %']
    for k, ax in enumerate(figure.axes):
        assert ax.get_title() == ('spring', 'charge')[k]
        assert [text.get_text() for text in ax.texts] == [texts[k]]
        assert ax.get_xlabel() == 'distance (um)'
        true, = [line for line in ax.lines if line.get_linestyle() == '--']
        assert np.allclose(true.get_xydata().T, [DISTANCE, TRUE[k]])
        # Neither the twelve metre of the table nor the 80 N of few pairs.
        assert 5 < ax.get_xlim()[1] < 6 and ax.get_ylim()[1] < 3
    assert legend_texts(figure) == [
        'learned', 'extrapolated', 'true', 'distances seen'
    ]
    assert_saves(figure)


def test_intervals_and_coefficients_are_drawn(assert_saves, legend_texts):
    figure = draw(
        TRUE, half_width=0.1 + 0 * TRUE, words={'spring': '-0.1 r'},
        coefficients={'drag': {
            'v': (-0.2, 0.01),
            '|v| v': (0.0, np.nan)
        }})
    *laws, terms = figure.axes
    assert len(laws) == 2
    for k, ax in enumerate(laws):
        band, = [part for part in ax.collections if part.get_alpha() == 0.3]
        low, high = band.get_paths()[0].vertices[:, 0].min(), band.get_paths(
        )[0].vertices[:, 0].max()
        # Where pairs were seen.
        assert 0.28 < low < high < 5.1
    texts = [text.get_text() for text in terms.texts]
    assert texts == ['drag', 'v', '-0.200(10)', '|v| v', '0']
    assert 'interval of 90 %' in legend_texts(figure)
    assert_saves(figure)
