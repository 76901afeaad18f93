import math

import pandas as pd
import pytest

from pyg_fnri.plot import plot_curves


def test_curves_skip_empty_cells(assert_saves):
    history = pd.DataFrame({
        'epoch': [0, 0, 1],
        'step': [100, 200, 300],
        'train_loss': [3., 2., 1.],
        'val_loss': [2.5, math.nan, 1.5],
        'val_accuracy': [math.nan, 0.5, 0.9],
        'accuracy_unknown': [math.nan] * 3,
    })
    figure = plot_curves(history)
    loss, accuracy = figure.axes
    assert [x.get_label() for x in loss.lines] == ['train_loss', 'val_loss']
    assert loss.lines[1].get_xydata().tolist() == [[100, 2.5], [300, 1.5]]
    assert accuracy.lines[0].get_xydata().tolist() == [[200, 0.5], [300, 0.9]]
    assert len(accuracy.lines) == 1
    assert loss.get_xlabel() == 'step'
    assert accuracy.get_ylabel() == 'edge accuracy'
    assert_saves(figure)


def test_curves_without_truth_have_no_accuracy_panel():
    figure = plot_curves(pd.DataFrame({'epoch': [0, 1], 'loss': [1., 0.5]}))
    ax, = figure.axes
    assert ax.get_xlabel() == 'epoch' and ax.get_ylabel() == 'loss'


def test_errors_and_shares_have_panels_of_their_own():
    figure = plot_curves(
        pd.DataFrame({
            'step': [1, 2],
            'val_loss': [3., 2.],
            'val_rollout_mse': [90., 9.],
            'val_static_mse': [200., 200.],
            'val_entropy_share': [1., 0.5],
        }))
    assert [[x.get_label() for x in ax.lines] for ax in figure.axes] == [
        ['val_loss'],
        ['val_rollout_mse', 'val_static_mse'],
        ['val_entropy_share'],
    ]
    assert [ax.get_yscale()
            for ax in figure.axes] == ['linear', 'log', 'linear']


@pytest.mark.parametrize('columns', [
    dict(loss=[1., 2.]),
    dict(step=[1, 2], speed=[1., 2.]),
    dict(step=[1, 2], loss=[math.nan, math.nan]),
])
def test_curves_with_nothing_to_draw_are_refused(columns):
    with pytest.raises(ValueError, match='history has the columns'):
        plot_curves(pd.DataFrame(columns))
    with pytest.raises(TypeError, match='pandas.DataFrame'):
        plot_curves(columns)
