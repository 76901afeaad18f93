import math

import numpy as np
import pandas as pd
import pytest
import torch

from pyg_fnri.metrics import reliability
from pyg_fnri.plot import plot_curves, plot_laws, plot_reliability


def labels(ax):
    return [line.get_label() for line in ax.lines]


def test_curves_skip_empty_cells(assert_saves):
    history = pd.DataFrame({
        'step': [100, 200, 300],
        'train_loss': [3., 2., 1.],
        'val_loss': [2.5, math.nan, 1.5],
        'val_rollout_mse': [90., 9., 0.9],
        'val_accuracy': [math.nan, 0.5, 0.9],
        'accuracy_unknown': [math.nan] * 3
    })
    figure = plot_curves(history)
    loss, mse, accuracy = figure.axes
    assert labels(loss) == ['train_loss', 'val_loss']
    assert loss.lines[1].get_xydata().tolist() == [[100, 2.5], [300, 1.5]]
    assert labels(accuracy) == ['val_accuracy']
    assert (loss.get_xlabel(), mse.get_yscale()) == ('step', 'log')
    assert_saves(figure)


def test_accuracies_of_em_are_beside_the_cost(assert_saves):
    history = pd.DataFrame({
        'iteration': [1, 2, 3],
        'changed': [0.5, 0.2, 0.1],
        'cost': [3., 1., 0.2],
        'accuracy': [0.5, 0.9, 0.99],
        'accuracy_spring': [0.6, 0.95, 1.]
    })
    figure = plot_curves(history)
    cost, accuracy = figure.axes
    assert cost.lines[0].get_xydata().tolist() == [[1, 3], [2, 1], [3, 0.2]]
    assert labels(accuracy) == ['accuracy', 'accuracy_spring']
    assert cost.get_xlabel() == 'iteration'
    assert_saves(figure)
    history['accuracy'] = history['accuracy_spring'] = math.nan
    assert len(plot_curves(history).axes) == 1


def test_reliability_has_a_panel_for_each_layer(assert_saves):
    confidence = 0.5 + 0.5 * torch.rand(5000)
    bins = reliability(confidence, torch.rand(5000) < confidence)
    panel = {key: value.tolist() for key, value in bins._asdict().items()}
    figure = plot_reliability({
        'combined': panel,
        'spring': panel
    }, [0.012, None])
    assert [ax.texts[0].get_text() for ax in figure.axes[:2]
            ] == ['5,000 edges\ncalibration error 1.2 %', '5,000 edges']
    for ax in figure.axes:
        diagonal, line = ax.lines
        assert diagonal.get_slope() == 1
        used = [b for b in zip(*panel.values()) if b[2] > 0]
        assert line.get_xydata().tolist() == [[c, a] for c, a, _ in used]
        shares = (ax.collections[0].get_sizes() - 8) / 220
        assert shares.tolist() == pytest.approx([b[2] / 5000 for b in used])
    assert_saves(figure)


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
        x = band.get_paths()[0].vertices[:, 0]
        assert 0.28 < x.min() < x.max() < 5.1  # Where pairs were seen.
    texts = [text.get_text() for text in terms.texts]
    assert texts == ['drag', 'v', '-0.200(10)', '|v| v', '0']
    assert 'interval of 90 %' in legend_texts(figure)
    assert_saves(figure)
