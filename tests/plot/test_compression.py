import math

import pytest

from pyg_fnri.plot.compression import plot_compression

PANELS = {
    'with': {
        'seen': {
            1: 1.,
            10: 5.
        },
        'that follow': {
            1: 2.,
            10: 9.
        },
        'static, seen': {
            1: 20.,
            10: 900.
        },
    },
    'without': {
        'seen': {
            1: 0.1,
            10: 0.4
        },
        'that follow': {
            1: 30.,
            10: 2000.
        },
    },
}


def test_panels_share_their_axes_and_show_every_curve(assert_saves,
                                                      legend_texts):
    figure = plot_compression(PANELS)
    assert [ax.get_title() for ax in figure.axes] == ['with', 'without']
    for ax, curves in zip(figure.axes, PANELS.values()):
        assert [line.get_xydata().tolist() for line in ax.lines
                ] == [[list(point) for point in curve.items()]
                      for curve in curves.values()]
        assert ax.get_yscale() == ax.get_xscale() == 'log'
        low, high = ax.get_ylim()
        assert low < 0.1 and high > 2000
    first, second = figure.axes
    assert first.get_ylim() == second.get_ylim()
    assert legend_texts(figure) == ['seen', 'that follow', 'static, seen']
    assert_saves(figure)


def test_floors_are_dashed_in_the_colour_of_what_they_are_for():
    seen, follow, static = plot_compression(PANELS).axes[0].lines
    assert static.get_color() == seen.get_color() != follow.get_color()
    assert static.get_linestyle() != seen.get_linestyle()


@pytest.mark.parametrize('panels', [{}, {'empty': {}}])
def test_nothing_to_draw_is_told(panels):
    with pytest.raises(ValueError, match='panels must hold at least one'):
        plot_compression(panels)


@pytest.mark.parametrize('curve', [{}, {1: 0.}, {1: math.nan}, {1: math.inf}])
def test_errors_without_a_place_on_the_axis_are_told(curve):
    with pytest.raises(ValueError, match="'seen' of 'with' holds"):
        plot_compression({'with': {'seen': curve}})
