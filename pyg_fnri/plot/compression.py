"""Errors on frames that were seen and on those that follow."""
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, NullLocator

from pyg_fnri.plot.style import COLORS, INK, add_legend, make_panels

Curves = Mapping[str, Mapping[int, float]]


def plot_compression(
    panels: Mapping[str, Curves],
    unit: str = '1e-5, min-max units',
) -> Figure:
    """Draw errors of rollouts over their length, a panel per model, with the
    same axes in all (section 3.1 of the paper).

    Args:
        panels (mapping): Title to label to number of steps to error. Labels
            that start with "static" are drawn as dashes, in the colour of the
            label of the same place among the others.
        unit (str): Unit of the errors.

    Raises:
        ValueError: If there is nothing to draw, or an error is not a finite
            number above 0, which has no place on a logarithmic axis.
    """
    if not panels or not all(panels.values()):
        raise ValueError('panels must hold at least one, each with at least '
                         'one curve.')
    for title, curves in panels.items():
        for label, curve in curves.items():
            errors = np.array(list(curve.values()), dtype=float)
            if not errors.size or not (np.isfinite(errors) &
                                       (errors > 0)).all():
                raise ValueError(
                    f"The curve '{label}' of '{title}' holds "
                    f"{errors.tolist()}: expected at least one error, each a "
                    f"finite number above 0.")
    figure, axes = make_panels(len(panels), 4.2, height=3.2, columns=2)
    handles: dict[str, Line2D] = {}
    for ax, (title, curves) in zip(axes, panels.items()):
        count = {False: 0, True: 0}
        for label, curve in curves.items():
            static = label.startswith('static')
            color = COLORS[count[static] % len(COLORS)]
            count[static] += 1
            line, = ax.plot(list(curve), list(curve.values()), color=color,
                            lw=1.2 if static else 2.,
                            ls=(0, (3, 2)) if static else '-',
                            marker='' if static else 'o', ms=5)
            handles.setdefault(
                label,
                Line2D([], [], color=color, lw=line.get_linewidth(),
                       ls=line.get_linestyle(), marker=line.get_marker(), ms=5,
                       label=label))
        ax.set(xscale='log', yscale='log', xlabel='steps of the rollout')
        ticks = sorted({h for curve in curves.values() for h in curve})
        ax.set_xticks(ticks, [str(h) for h in ticks])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_title(title, fontsize=10, color=INK)
        ax.grid(color='#E6E6E6')
        ax.spines[['top', 'right']].set_visible(False)
    low = min(ax.get_ylim()[0] for ax in axes)
    high = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(low, high)
    axes[0].set_ylabel(f'mean squared error ({unit})')
    add_legend(figure, list(handles.values()))
    return figure
