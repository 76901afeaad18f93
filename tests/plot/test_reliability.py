import math

import pytest
import torch

from pyg_fnri.metrics import reliability
from pyg_fnri.plot import plot_reliability


def bins(num_edges=5000):
    confidence = 0.5 + 0.5 * torch.rand(num_edges)
    return reliability(confidence, torch.rand(num_edges) < confidence)


def test_a_panel_for_each_layer(assert_saves, legend_texts):
    panels = {name: bins() for name in ('combined', 'spring', 'charge')}
    figure = plot_reliability(panels, [0.012, 0.2, None])
    assert len(figure.axes) == 6
    top, bottom = figure.axes[:3], figure.axes[3:]
    assert [ax.get_title() for ax in top] == list(panels)
    texts = [ax.texts[0].get_text() for ax in top]
    assert texts == [
        '5,000 edges\ncalibration error 1.2 %',
        '5,000 edges\ncalibration error 20.0 %', '5,000 edges'
    ]
    for ax, panel in zip(top, panels.values()):
        diagonal, line = ax.lines
        assert (diagonal.get_xdata() == diagonal.get_ydata()).all()
        used = panel.num_edges > 0
        assert torch.tensor(line.get_xdata()).equal(panel.confidence[used])
        assert torch.tensor(line.get_ydata()).equal(panel.accuracy[used])
        assert ax.get_xlim() == ax.get_ylim() == top[0].get_xlim()
    for ax, panel in zip(bottom, panels.values()):
        heights = [bar.get_height() for bar in ax.patches]
        assert heights == pytest.approx((panel.num_edges / 5000).tolist())
        assert 'probability' in ax.get_xlabel()
    assert legend_texts(figure)[1] == 'as often right as it says'
    assert_saves(figure)


def test_rare_bins_are_in_the_histogram_only():
    figure = plot_reliability(
        {'spring': ([0.05, 0.75, 0.95], [1., 0.8, 0.9], [1, 2000, 3000])})
    ax, histogram = figure.axes
    assert ax.lines[1].get_xdata().tolist() == [0.75, 0.95]
    assert len([b for b in histogram.patches if b.get_height() > 0]) == 3


def test_empty_bins_of_a_report_are_none(assert_saves):
    figure = plot_reliability({'spring': ([None, 0.8], [None, 0.7], [0, 12])})
    line = figure.axes[0].lines[1]
    assert line.get_xydata().tolist() == [[0.8, 0.7]]
    assert_saves(figure)


@pytest.mark.parametrize('panel, message', [
    (([0.5], [0.5, 0.6], [3, 4]), r'shapes \[\[1\], \[2\], \[2\]\]'),
    (([0.5, 1.2], [0.5, 0.6], [3, 4]), 'between 0 and 1'),
    (([0.5, 0.7], [0.5, math.nan], [3, 4]), 'between 0 and 1'),
    (([0.5, 0.7], [0.5, 0.7], [0, 0]), 'not all of them 0'),
    (([0.5, 0.7], [0.5, 0.7], [-1, 3]), 'expected numbers >= 0'),
])
def test_what_is_no_reliability_is_refused(panel, message):
    with pytest.raises(ValueError, match=message):
        plot_reliability({'spring': panel})


def test_panels_must_fit():
    with pytest.raises(ValueError, match='no reliability'):
        plot_reliability({})
    with pytest.raises(ValueError, match='errors is for 2 panels, expected 1'):
        plot_reliability({'spring': bins()}, [0.1, 0.2])
