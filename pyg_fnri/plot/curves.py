"""Curves of training, and of calibration."""
import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, Optional

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from pyg_fnri.plot.style import (COLORS, DASHES, INK, add_legend, label,
                                 layer_color, make_panels, name_layer,
                                 pale_ticks, plain)

#: What the names of columns hold, and what their panel is called.
PANELS = {
    'loss': 'loss',
    'cost': 'cost',
    'mse': 'mean squared error, 1e-5',
    'share': 'share',
    'accuracy': 'edge accuracy'
}
#: Bins of a smaller share of the edges are in the histogram only.
RARE = 1e-3
PERCENT = FuncFormatter(lambda value, _: f'{100 * value:g} %')


def plot_curves(history: pd.DataFrame) -> Figure:
    """Draw training, or expectation-maximisation, from a table with a row per
    log entry: columns with "loss" in their name share one panel, and so do
    those with "mse" and "cost", on logarithmic axes, "share" and "accuracy";
    the horizontal axis is :obj:`step`, :obj:`iteration` or :obj:`epoch`. Empty
    cells are skipped."""
    axis = next(of for of in ('step', 'iteration', 'epoch') if of in history)
    history = history.dropna(axis=1, how='all')
    kinds = [kind for kind in PANELS if any(kind in name for name in history)]
    figure, axes = make_panels(len(kinds), 4.2, height=3.)
    for kind, ax in zip(kinds, axes):
        names = [name for name in history if kind in name]
        for name, color in zip(names, cycle(COLORS)):
            curve = history[[axis, name]].dropna()
            ax.plot(curve[axis], curve[name], label=plain(name), color=color,
                    lw=1.8, marker='.' if len(curve) == 1 else '')
        ax.set(xlabel=axis, ylabel=PANELS[kind],
               yscale='log' if kind in ('mse', 'cost') else 'linear')
        ax.grid(color='#E6E6E6')
        ax.spines[['top', 'right']].set_visible(False)
        ax.legend(frameon=False, fontsize=9)
    return figure


def plot_reliability(bins: Mapping[str, Mapping[str, Sequence[Any]]],
                     errors: Sequence[Optional[float]]) -> Figure:
    """Draw the accuracy of predictions over their confidence, a panel for each
    layer, above a histogram of the confidence. Bins of less than 0.1 % of the
    edges are left to the histogram.

    Args:
        bins: A :class:`~pyg_fnri.metrics.Reliability` by the name of its
            panel, as a mapping, with None in bins that are empty.
        errors: The expected calibration error of each panel, if there is one.
    """
    panels = [pd.DataFrame(panel, dtype=float) for panel in bins.values()]
    low = 1.  # One lower end for all, so that panels can be compared.
    for panel in panels:
        share = panel['share'] = panel['num_edges'] / panel['num_edges'].sum()
        first = (share > 0).argmax() / len(panel)  # The first bin in use.
        low = min(low, first, panel['accuracy'][share >= RARE].min())
    low = max(0., math.floor(10 * low) / 10)
    figure = Figure(figsize=(3. * len(panels), 4.3), dpi=150,
                    layout='constrained')
    rows = figure.subplots(2, len(panels), squeeze=False,
                           gridspec_kw={'height_ratios': [3, 1]})
    for index, (name, panel) in enumerate(zip(bins, panels)):
        layer = index - ('combined' in bins)
        color = INK if name == 'combined' else layer_color(layer)
        top, bottom = rows[:, index]
        _draw_marks(top, panel[panel['share'] >= RARE], low, color)
        _draw_histogram(bottom, panel['share'], color)
        for ax in (top, bottom):
            ax.set_xlim(low, 1.)
            ax.grid(color='#EEEEEE')
            ax.set_axisbelow(True)
            ax.spines[['top', 'right']].set_visible(False)
            pale_ticks(ax)
        name_layer(top, name, color)
        text, error = f"{int(panel['num_edges'].sum()):,} edges", errors[index]
        if error is not None:
            text += f'\ncalibration error {100 * error:.1f} %'
        top.annotate(text, (0, 1), (6, -4), 'axes fraction', 'offset points',
                     ha='left', va='top', fontsize=9, color=INK)
        label(top, y='' if index else 'edges predicted right')
        label(bottom, 'probability of the predicted type',
              '' if index else 'share of edges')
    handles: dict[str, Any] = {
        'model (area: share of edges)': dict(color=INK, lw=1.8, marker='o',
                                             ms=6),
        'as often right as it says': dict(color=INK, lw=1., ls=DASHES)
    }
    add_legend(figure, handles)
    return figure


def _draw_marks(ax: Axes, shown: pd.DataFrame, low: float, color: str) -> None:
    ax.plot([low, 1], [low, 1], color=INK, lw=1., ls=DASHES, zorder=1)
    ax.plot(shown['confidence'], shown['accuracy'], color=color, lw=1.8,
            zorder=3)
    ax.scatter(shown['confidence'], shown['accuracy'],
               s=8 + 220 * shown['share'], color=color, alpha=0.75, lw=0,
               zorder=4, clip_on=False)
    ax.set_ylim(low, 1.)
    ax.locator_params(nbins=6)
    ax.yaxis.set_major_formatter(PERCENT)
    ax.tick_params(labelbottom=False)


def _draw_histogram(ax: Axes, share: pd.Series, color: str) -> None:
    width = 1 / len(share)
    ax.bar(width * np.arange(len(share)), share, width=0.9 * width,
           align='edge', color=color, alpha=0.75)
    # A confident model puts nearly all edges in one bin.
    ax.set_yscale('log')
    ax.set_ylim(RARE / 3, 1.)
    ax.set_yticks([RARE, 0.01, 0.1, 1.])
    ax.set_yticks([], minor=True)
    ax.yaxis.set_major_formatter(PERCENT)
    ax.xaxis.set_major_formatter(PERCENT)
