import math

import pandas as pd
import pytest
import torch

from pyg_fnri.metrics import reliability
from pyg_fnri.plot import plot_curves, plot_em, plot_reliability


def labels(ax):
    return [line.get_label() for line in ax.lines]


def test_curves_skip_empty_cells(assert_saves):
    history = pd.DataFrame({
        'epoch': [0, 0, 1],
        'step': [100, 200, 300],
        'train_loss': [3., 2., 1.],
        'val_loss': [2.5, math.nan, 1.5],
        'val_rollout_mse': [90., 9., 0.9],
        'val_entropy_share': [1., 0.5, 0.2],
        'val_accuracy': [math.nan, 0.5, 0.9],
        'accuracy_unknown': [math.nan] * 3
    })
    figure = plot_curves(history)
    loss, mse, share, accuracy = figure.axes
    assert labels(loss) == ['train_loss', 'val_loss']
    assert loss.lines[1].get_xydata().tolist() == [[100, 2.5], [300, 1.5]]
    assert accuracy.lines[0].get_xydata().tolist() == [[200, 0.5], [300, 0.9]]
    assert (mse.get_yscale(), share.get_yscale()) == ('log', 'linear')
    assert labels(accuracy) == ['val_accuracy']
    assert loss.get_xlabel() == 'step'
    assert accuracy.get_ylabel() == 'edge accuracy'
    assert_saves(figure)
    ax, = plot_curves(pd.DataFrame({'epoch': [0, 1], 'loss': [1., 0.5]})).axes
    assert ax.get_xlabel() == 'epoch' and ax.get_ylabel() == 'loss'


def test_accuracies_of_em_are_dashed_and_beside_the_cost(assert_saves):
    history = pd.DataFrame({
        'iteration': [1, 2, 3],
        'changed': [0.5, 0.2, 0.1],
        'cost': [3., 1., 0.2],
        'accuracy': [0.5, 0.9, 0.99],
        'accuracy_spring': [0.6, 0.95, 1.]
    })
    figure = plot_em(history)
    cost, accuracy = figure.axes
    assert cost.lines[0].get_xydata().tolist() == [[1, 3], [2, 1], [3, 0.2]]
    assert cost.get_yscale() == 'log' and cost.get_legend() is None
    assert labels(accuracy) == ['combined', 'spring']
    assert accuracy.lines[0].get_linestyle() != '-'
    assert cost.lines[0].get_linestyle() == '-'
    assert_saves(figure)
    history['accuracy'] = history['accuracy_spring'] = math.nan
    assert len(plot_em(history).axes) == 1


def bins(num_edges=5000):
    confidence = 0.5 + 0.5 * torch.rand(num_edges)
    found = reliability(confidence, torch.rand(num_edges) < confidence)
    return {key: value.tolist() for key, value in found._asdict().items()}


def test_reliability_has_a_panel_for_each_layer(assert_saves, legend_texts):
    panels = {name: bins() for name in ('combined', 'spring', 'charge')}
    figure = plot_reliability(panels, [0.012, 0.2, None])
    top, bottom = figure.axes[:3], figure.axes[3:]
    assert [ax.get_title() for ax in top] == list(panels)
    assert [ax.texts[0].get_text() for ax in top] == [
        '5,000 edges\ncalibration error 1.2 %',
        '5,000 edges\ncalibration error 20.0 %', '5,000 edges'
    ]
    for ax, below, panel in zip(top, bottom, panels.values()):
        diagonal, line = ax.lines
        assert (diagonal.get_xdata() == diagonal.get_ydata()).all()
        used = [b for b in zip(*panel.values()) if b[2] > 0]
        assert line.get_xydata().tolist() == [[c, a] for c, a, _ in used]
        assert ax.get_xlim() == ax.get_ylim() == top[0].get_xlim()
        heights = [5000 * bar.get_height() for bar in below.patches]
        assert heights == pytest.approx(panel['num_edges'])
    assert legend_texts(figure)[1] == 'as often right as it says'
    assert_saves(figure)
