import math

import pandas as pd
import pytest

from pyg_fnri.plot import plot_selection


@pytest.fixture
def table():
    return pd.DataFrame({
        'candidate': ['2', '2,2', '2,2,2', '3,3'],
        'recommended': [False, True, False, False],
        'ratio_to_best': [1.4, 1.02, 1., math.inf],
        'ratio_to_best_se': [0.1, 0.03, 0., math.nan],
        'ratio_to_linear': [0.7, 0.51, 0.5, math.inf],
        'agreement': [0.9, 0.8, 0.4, 0.2],
        'agreement_by_chance': [0.5, 0.25, 0.15, 0.12],
    })


def test_errors_have_bars_and_agreement_a_floor(table, assert_saves):
    figure = plot_selection(table, 10)
    errors, agreement = figure.axes
    assert errors.get_ylabel() == 'error over 10 steps (best = 1)'
    assert 'linear step: 2.00' in errors.get_title()
    drawn = [bar.lines[0].get_xydata().tolist() for bar in errors.containers]
    assert drawn == [[[0, 1.4]], [[1, 1.02]], [[2, 1.]]]
    bars = [
        bar.lines[2][0].get_segments()[0][:, 1].tolist()
        for bar in errors.containers
    ]
    assert bars[0] == pytest.approx([1.3, 1.5])
    assert [text.get_text() for text in errors.texts] == ['diverges']
    # The linear step is out of sight, rather than the bars too small to see.
    low, high = errors.get_ylim()
    assert 0.9 < low < 1 and 1.5 < high < 1.7

    assert [bar.get_height()
            for bar in agreement.patches] == pytest.approx([90, 80, 40, 20])
    assert [line.get_ydata()[0]
            for line in agreement.lines] == pytest.approx([50, 25, 15, 12])
    assert_saves(figure)


def test_recommended_candidate_stands_out(table):
    for ax in plot_selection(table, 10).axes:
        assert [label.get_fontweight() for label in ax.get_xticklabels()
                ] == ['normal', 'bold', 'normal', 'normal']
    colors = [bar.get_facecolor() for bar in ax.patches]
    assert colors[1] != colors[0] == colors[2] == colors[3]


def test_one_seed_has_nothing_to_agree_with(table, assert_saves):
    table[['agreement', 'agreement_by_chance']] = math.nan
    figure = plot_selection(table, 10)
    assert 'not known' in figure.axes[1].get_title()
    assert_saves(figure)


def test_nothing_to_draw_is_told(table):
    with pytest.raises(ValueError, match=r"lacks the columns \['agreement'\]"):
        plot_selection(table.drop(columns='agreement'), 10)
    with pytest.raises(ValueError, match='table has 0 rows'):
        plot_selection(table[:0], 10)
    with pytest.raises(ValueError, match='No ratio_to_best is finite'):
        plot_selection(table[3:], 10)
