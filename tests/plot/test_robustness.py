import math

import pandas as pd
import pytest

from pyg_fnri.plot import plot_robustness

FRAME = pd.DataFrame({
    'value': [10, 10, 49],
    'accuracy': [0.5, 0.7, 1.],
    'accuracy_spring': [0.6, 0.8, 1.],
    'law_error_spring': [0.2, 0.4, 0.01],
})


def curve(line):
    return line.get_xydata().tolist()


def test_a_line_through_means_and_a_dot_for_each_run(assert_saves,
                                                     legend_texts):
    figure = plot_robustness({'observed frames': FRAME}, 'some systems')
    assert figure.get_suptitle() == 'some systems'
    above, below = figure.axes
    assert above.get_ylabel() == 'edge accuracy (%)'
    assert below.get_xlabel() == 'observed frames'
    assert curve(above.lines[0]) == [[10, pytest.approx(60)], [49, 100]]
    assert curve(above.lines[1]) == [[10, 50], [10, 70], [49, 100]]
    assert curve(below.lines[0]) == [[10, pytest.approx(30)], [49, 1]]
    assert below.get_yscale() == 'log' and above.get_yscale() == 'linear'
    assert legend_texts(figure) == ['combined', 'spring']
    assert_saves(figure)


def test_quantities_have_columns_with_the_same_limits():
    other = FRAME.assign(value=[10, 100, 5_000], accuracy=[0.1, 0.2, 0.3])
    figure = plot_robustness({'frames': FRAME, 'systems': other})
    first, second, third, fourth = figure.axes
    assert first.get_ylim() == second.get_ylim()
    assert first.get_ylim()[0] < 10 and first.get_ylim()[1] > 100
    assert third.get_ylim() == fourth.get_ylim()
    assert second.get_xscale() == fourth.get_xscale() == 'log'
    assert first.get_xscale() == 'linear'
    assert [t.get_text()
            for t in second.get_xticklabels()] == ['10', '100', '5k']


def test_failed_runs_are_marked(legend_texts, assert_saves):
    frame = pd.DataFrame({'value': [3, 5], 'accuracy': [math.nan, 0.9]})
    figure = plot_robustness({'particles': frame})
    for ax in figure.axes:
        marks = [line for line in ax.lines if line.get_marker() == 'x']
        assert [line.get_xdata().tolist() for line in marks] == [[3]]
    assert legend_texts(figure)[-1] == 'failed'
    assert_saves(figure)


@pytest.mark.parametrize('panels', [
    {},
    {
        'frames': pd.DataFrame({
            'value': [],
            'accuracy': []
        })
    },
    {
        'frames': pd.DataFrame({'value': [1]})
    },
])
def test_nothing_to_draw_is_told(panels):
    with pytest.raises(ValueError, match='must hold at least one data frame'):
        plot_robustness(panels)
