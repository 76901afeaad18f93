import numpy as np
import pytest

from pyg_fnri.plot.style import fit_limits, make_panels


@pytest.mark.parametrize('num_panels, rows, columns', [(1, 1, 1), (3, 1, 3),
                                                       (4, 1, 4), (6, 2, 4)])
def test_panels_fill_rows_of_four(num_panels, rows, columns):
    figure, axes = make_panels(num_panels, width=2.)
    assert axes == figure.axes and len(axes) == num_panels
    grid = axes[0].get_gridspec()
    assert (grid.nrows, grid.ncols) == (rows, columns)
    assert figure.get_size_inches().tolist() == [2 * columns, 2 * rows + 0.4]
    places = [ax.get_subplotspec().num1 for ax in axes]
    assert places == list(range(num_panels))


def test_limits_hold_points_of_any_layout_in_a_square():
    _, (ax, ) = make_panels(1, width=2.)
    points = np.array([[[0., 1.], [4., 1.]], [[2., 2.], [2., 1.]]])
    fit_limits(ax, points, margin=0.1)
    assert ax.get_xlim() == pytest.approx((-0.4, 4.4))
    assert ax.get_ylim() == pytest.approx((-0.9, 3.9))
