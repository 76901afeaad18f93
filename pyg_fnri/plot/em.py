"""Costs and accuracies over the iterations of expectation-maximisation."""
import itertools
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pyg_fnri.plot.style import COLORS, INK, LAYER_COLORS, make_panels

DASHES = (0, (3, 2))


def plot_em(history: pd.DataFrame) -> Figure:
    """Draw how laws and graphs find each other: what can be known without
    labels in full lines; accuracies, where they are known, dashed, for
    information only.

    Args:
        history (pandas.DataFrame): A row per iteration, with the columns
            :obj:`iteration` and :obj:`cost`, and perhaps :obj:`accuracy`,
            :obj:`accuracy_NAME`.

    Raises:
        ValueError: If there is nothing to draw.
    """
    accuracies = [
        name for name in history
        if str(name).startswith('accuracy') and history[name].notna().any()
    ]
    if ('iteration' not in history or 'cost' not in history
            or history['cost'].isna().all()):
        raise ValueError(f'history has the columns {list(history)}: expected '
                         f'iteration, and cost that is not empty.')
    figure, axes = make_panels(1 + bool(accuracies), 4.2, height=3.)
    _draw(axes[0], history, ['cost'], [COLORS[0]], '-')
    axes[0].set_yscale('log')
    axes[0].set_title('without labels', fontsize=9, color=INK)
    axes[0].set_ylabel('cost')
    if accuracies:
        colors = [
            INK, *itertools.islice(itertools.cycle(LAYER_COLORS),
                                   len(accuracies) - 1)
        ]
        _draw(axes[-1], history, accuracies, colors, DASHES)
        axes[-1].set_title('labels, for information only', fontsize=9,
                           color=INK)
        axes[-1].set_ylabel('edge accuracy')
    return figure


def _draw(ax: Axes, history: pd.DataFrame, names: Sequence[str],
          colors: Sequence[str], ls: Any) -> None:
    """Columns in their colours."""
    for name, color in zip(names, colors):
        label = str(name).removeprefix('accuracy_')
        if label == 'accuracy':
            label = 'combined'
        curve = history[['iteration', name]].dropna()
        ax.plot(curve['iteration'], curve[name], label=label, color=color,
                lw=1.8, marker='o', ms=3, ls=ls)
    if len(ax.lines) > 1:
        ax.legend(frameon=False, fontsize=9)
    ax.set_xlabel('iteration')
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(color='#E6E6E6')
    ax.spines[['top', 'right']].set_visible(False)
