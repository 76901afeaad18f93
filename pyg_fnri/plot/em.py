"""Costs and accuracies over the iterations of expectation-maximisation."""
import itertools
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .style import COLORS, INK, LAYER_COLORS, make_panels

DASHES = (0, (3, 2))


def plot_em(history: pd.DataFrame) -> Figure:
    """Draw how laws and graphs find each other: what can be known without
    labels in full lines; accuracies, where they are known, dashed, for
    information only.

    Args:
        history (pandas.DataFrame): A row per iteration, with the columns
            :obj:`iteration` and :obj:`cost`, and perhaps :obj:`start`, of
            which each has a colour of its own; other costs, with "cost" in
            their names, and :obj:`accuracy`, :obj:`accuracy_NAME`.

    Raises:
        ValueError: If there is nothing to draw.
    """
    costs = [
        name for name in history
        if 'cost' in str(name) and history[name].notna().any()
    ]
    accuracies = [
        name for name in history
        if str(name).startswith('accuracy') and history[name].notna().any()
    ]
    if 'iteration' not in history or not costs:
        raise ValueError(f'history has the columns {list(history)}: expected '
                         f'iteration, and cost that is not empty.')
    starts = [(None, history)]
    if 'start' in history and history['start'].nunique() > 1:
        starts = list(history.groupby('start'))
        accuracies = accuracies[:1]  # Layers would be too many lines.
    figure, axes = make_panels(len(costs) + bool(accuracies), 4.2, height=3.)
    for name, ax in zip(costs, axes):
        _draw(ax, starts, [name], [COLORS[0]], '-')
        ax.set_yscale('log')
        ax.set_title('without labels', fontsize=9, color=INK)
        ax.set_ylabel(str(name).replace('_', ' '))
    if accuracies:
        colors = [
            INK, *itertools.islice(itertools.cycle(LAYER_COLORS),
                                   len(accuracies) - 1)
        ]
        _draw(axes[-1], starts, accuracies, colors, DASHES)
        axes[-1].set_title('labels, for information only', fontsize=9,
                           color=INK)
        axes[-1].set_ylabel('edge accuracy')
    return figure


def _draw(ax: Axes, starts: Sequence[tuple[Any, pd.DataFrame]],
          names: Sequence[str], colors: Sequence[str], ls: Any) -> None:
    """Columns of one start in their colours, or one of several starts."""
    for index, (start, rows) in enumerate(starts):
        for name, color in zip(names, colors):
            label = str(name).removeprefix('accuracy_')
            if start is not None:
                color, label = COLORS[index % len(COLORS)], f'start {start:g}'
            elif label == 'accuracy':
                label = 'combined'
            curve = rows[['iteration', name]].dropna()
            ax.plot(curve['iteration'], curve[name], label=label, color=color,
                    lw=1.8, marker='o', ms=3, ls=ls)
    if len(ax.lines) > 1:
        ax.legend(frameon=False, fontsize=9)
    ax.set_xlabel('iteration')
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(color='#E6E6E6')
    ax.spines[['top', 'right']].set_visible(False)
