"""Accuracies and errors of laws against what makes them hard to find."""
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, NullFormatter, NullLocator

from pyg_fnri.plot.style import (
    INK,
    LAYER_COLORS,
    WRONG,
    add_legend,
    make_panels,
)

#: From which ratio of largest to smallest value on an axis is logarithmic.
WIDE = 50


def plot_robustness(panels: Mapping[str, pd.DataFrame],
                    title: str = '') -> Figure:
    """Draw edge accuracies above, relative errors of force laws below, a
    column of panels per quantity; lines through means over runs, and a dot
    for each run.

    Args:
        panels (mapping): What is varied, with its unit, to a data frame of a
            row per run: its :obj:`value`; :obj:`accuracy`, of all layers
            together, missing if the run failed; :obj:`accuracy_NAME` and
            :obj:`law_error_NAME` of each layer, as shares. A law error is
            missing where no law stands for a layer's force.
        title: What systems and metric they are of.

    Raises:
        ValueError: If there is nothing to draw.
    """
    if not panels or not all(
            len(frame) and {'value', 'accuracy'} <= {*frame.columns}
            for frame in panels.values()):
        raise ValueError('panels must hold at least one data frame, each with '
                         'the columns value and accuracy, and a row at least.')
    num_columns = len(panels)
    layers = list(
        dict.fromkeys(
            name.split('_', 1)[1] for frame in panels.values()
            for name in map(str, frame) if name.startswith('accuracy_')))
    figure, axes = make_panels(2 * num_columns, 2.9, height=2.6,
                               columns=num_columns)
    above, below = axes[:num_columns], axes[num_columns:]
    failed = False
    for upper, lower, (axis, frame) in zip(above, below, panels.items()):
        _draw(upper, frame, 'accuracy', INK, lw=2.4)
        for layer, color in zip(layers, _colors(layers)):
            _draw(upper, frame, f'accuracy_{layer}', color)
            _draw(lower, frame, f'law_error_{layer}', color)
        missing = frame.loc[frame['accuracy'].isna(), 'value']
        failed |= bool(len(missing))
        for ax in (upper, lower):
            for value in missing.unique():
                ax.plot([value], [0.02], color=WRONG, marker='x', ls='', ms=7,
                        transform=ax.get_xaxis_transform(), clip_on=False)
            _set_axis(ax, frame['value'].unique())
        lower.set_xlabel(axis, fontsize=9, color=INK)
    _share_limits(above)
    low, _ = above[0].get_ylim()
    for ax in above:  # Nothing is above 100 %; at least some per cent below.
        ax.set_ylim(min(low, 95.0), 100.3)
    for ax in below:
        ax.set_yscale('log')
    _share_limits(below)
    above[0].set_ylabel('edge accuracy (%)', fontsize=9, color=INK)
    below[0].set_ylabel('law error (%)', fontsize=9, color=INK)
    handles = [Line2D([], [], color=INK, lw=2.4, label='combined')]
    handles += [
        Line2D([], [], color=color, lw=1.6, label=layer)
        for layer, color in zip(layers, _colors(layers))
    ]
    if failed:
        handles.append(
            Line2D([], [], color=WRONG, marker='x', ls='', label='failed'))
    add_legend(figure, handles)
    if title:
        figure.suptitle(title, fontsize=10, color=INK)
    return figure


def _colors(layers: list[str]) -> list[str]:
    return [LAYER_COLORS[i % len(LAYER_COLORS)] for i in range(len(layers))]


def _draw(ax: Axes, frame: pd.DataFrame, name: str, color: Any,
          lw: float = 1.6) -> None:
    if name not in frame:
        return
    runs = frame[['value', name]].dropna()
    mean = 100 * runs.groupby('value')[name].mean()
    ax.plot(mean.index, mean, color=color, lw=lw)
    ax.plot(runs['value'], 100 * runs[name], color=color, marker='o', ms=3.5,
            ls='', alpha=0.7)


def _set_axis(ax: Axes, values: np.ndarray) -> None:
    if values.min() > 0 and values.max() >= WIDE * values.min():
        ax.set_xscale('log')
    thousands = EngFormatter(sep='')  # 5k.
    ax.set_xticks(values, [
        thousands(value) if value >= 1_000 else f'{value:g}' for value in values
    ])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(labelsize=8 if len(values) < 7 else 7, labelcolor=INK)
    ax.grid(color='#E6E6E6')
    ax.spines[['top', 'right']].set_visible(False)


def _share_limits(axes: list[Axes]) -> None:
    """The same in all panels."""
    limits = [ax.get_ylim() for ax in axes]
    if axes[0].get_yscale() == 'log':  # Where there is nothing, it has 0.
        limits = [pair for pair in limits if pair[0] > 0] or [(0.1, 100.)]
    for ax in axes:
        ax.set_ylim(min(low for low, _ in limits),
                    max(high for _, high in limits))
