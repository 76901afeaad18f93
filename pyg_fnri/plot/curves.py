"""Curves of training and of expectation-maximisation, and of calibration."""
import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, Optional

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pyg_fnri.plot.style import (COLORS, DASHES, INK, add_legend, label,
                                 layer_color, make_panels, name_layer,
                                 pale_ticks, plain)

#: What the names of columns hold, and what their panel is called.
PANELS = {
    'loss': 'loss',
    'mse': 'mean squared error, 1e-5',
    'share': 'share',
    'accuracy': 'edge accuracy'
}
#: Bins of a smaller share of the edges are in the histogram only.
RARE = 1e-3
PERCENT = FuncFormatter(lambda value, _: f'{100 * value:g} %')


def plot_curves(history: pd.DataFrame) -> Figure:
    """Draw training from a table with a row per log entry: columns with "loss"
    in their name share one panel, and so do those with "mse", on a logarithmic
    axis, "share" and "accuracy"; the horizontal axis is :obj:`step`, or
    :obj:`epoch` where there is none. Empty cells are skipped."""
    axis = 'step' if 'step' in history else 'epoch'
    history = history.dropna(axis=1, how='all')
    kinds = [kind for kind in PANELS if any(kind in name for name in history)]
    figure, axes = make_panels(len(kinds), 4.2, height=3.)
    for kind, ax in zip(kinds, axes):
        names = [name for name in history if kind in name]
        for name, color in zip(names, cycle(COLORS)):
            _draw_curve(ax, history, axis, name, name, color)
        ax.set_ylabel(PANELS[kind])
        if kind == 'mse':
            ax.set_yscale('log')
        ax.legend(frameon=False, fontsize=9)
    return figure


def plot_em(history: pd.DataFrame) -> Figure:
    """Draw expectation-maximisation from a table with a row per
    :obj:`iteration`: the :obj:`cost`, which needs no labels, and, where they
    are known, :obj:`accuracy` and :obj:`accuracy_NAME`, dashed."""
    history = history.dropna(axis=1, how='all')
    accuracies = [name for name in history if name.startswith('accuracy')]
    figure, axes = make_panels(1 + bool(accuracies), 4.2, height=3.)
    marks = {'marker': 'o', 'ms': 3}
    _draw_curve(axes[0], history, 'iteration', 'cost', 'cost', COLORS[0],
                **marks)
    axes[0].set_yscale('log')
    axes[0].set_title('without labels', fontsize=9, color=INK)
    axes[0].set_ylabel('cost')
    for index, name in enumerate(accuracies):
        label = name.removeprefix('accuracy').removeprefix('_') or 'combined'
        color = layer_color(index - 1) if index else INK
        _draw_curve(axes[-1], history, 'iteration', name, label, color,
                    ls=DASHES, **marks)
        axes[-1].set_title('labels, for information only', fontsize=9,
                           color=INK)
        axes[-1].set_ylabel('edge accuracy')
    for ax in axes:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if len(ax.lines) > 1:
            ax.legend(frameon=False, fontsize=9)
    return figure


def _draw_curve(ax: Axes, history: pd.DataFrame, x: str, y: str, label: str,
                color: str, **style: Any) -> None:
    curve = history[[x, y]].dropna()
    style.setdefault('marker', '.' if len(curve) == 1 else '')
    ax.plot(curve[x], curve[y], label=plain(label), color=color, lw=1.8,
            **style)
    ax.set_xlabel(x)
    ax.grid(color='#E6E6E6')
    ax.spines[['top', 'right']].set_visible(False)


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
