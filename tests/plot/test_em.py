import math

import pandas as pd
import pytest

from pyg_fnri.plot import plot_em


def labels(ax):
    return [line.get_label() for line in ax.lines]


def test_accuracies_are_dashed_and_beside_the_cost(assert_saves):
    history = pd.DataFrame({
        'iteration': [1, 2, 3],
        'changed': [0.5, 0.2, 0.1],
        'cost': [3., 1., 0.2],
        'accuracy': [0.5, 0.9, 0.99],
        'accuracy_spring': [0.6, 0.95, 1.],
    })
    figure = plot_em(history)
    cost, accuracy = figure.axes
    assert cost.lines[0].get_xydata().tolist() == [[1, 3], [2, 1], [3, 0.2]]
    assert cost.get_yscale() == 'log' and cost.get_legend() is None
    assert labels(accuracy) == ['combined', 'spring']
    assert not accuracy.lines[0].get_linestyle() == cost.lines[0].get_linestyle(
    ) == '-'
    assert 'information only' in accuracy.get_title()
    assert_saves(figure)


def test_without_truth_there_is_no_accuracy():
    ax, = plot_em(pd.DataFrame({'iteration': [1, 2], 'cost': [2., 1.]})).axes
    assert ax.get_ylabel() == 'cost'


def test_other_columns_are_left_out():
    history = pd.DataFrame({
        'iteration': [1, 2],
        'start': [1, 2],
        'cost': [3., math.nan],
        'accuracy': [math.nan] * 2,
    })
    ax, = plot_em(history).axes
    line, = ax.lines
    assert line.get_xydata().tolist() == [[1, 3]]


@pytest.mark.parametrize('columns', [
    dict(cost=[1., 2.]),
    dict(iteration=[1, 2], accuracy=[0.5, 0.6]),
    dict(iteration=[1, 2], cost=[math.nan, math.nan]),
])
def test_nothing_to_draw_is_told(columns):
    with pytest.raises(ValueError, match='history has the columns'):
        plot_em(pd.DataFrame(columns))
