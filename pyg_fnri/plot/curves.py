"""Curves: of training, of calibration, and force laws."""
from collections.abc import Mapping, Sequence
from itertools import cycle
from types import MappingProxyType
from typing import Any, Optional

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from pyg_fnri.laws import HALF_WIDTH
from pyg_fnri.laws.formulas import with_error
from pyg_fnri.metrics.errors import interpolate, supported_distances
from pyg_fnri.plot.style import (COLORS, DASHES, INK, PALE, Array, add_legend,
                                 label, layer_color, make_panels, name_layer,
                                 pale_ticks, plain, to_array)

#: What the names of columns hold, and what their panel is called.
PANELS = {
    'loss': 'loss',
    'cost': 'cost',
    'mse': 'mean squared error, 1e-5',
    'share': 'share',
    'accuracy': 'edge accuracy'
}
#: Bins of a smaller share of the edges are not drawn.
RARE = 1e-3
GROUND = '#DFDFDF'
#: Value and standard error by what they multiply, of each term.
Coefficients = Mapping[str, Mapping[str, tuple[float, float]]]


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
        if kind == 'accuracy':
            ax.set_ylim(min(0.5, history[names].min().min()), 1.01)
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        ax.grid(color='#E6E6E6')
        ax.spines[['top', 'right']].set_visible(False)
        ax.legend(frameon=False, fontsize=9)
    return figure


def plot_reliability(bins: Mapping[str, Mapping[str, Sequence[Any]]],
                     errors: Sequence[Optional[float]]) -> Figure:
    """Draw the accuracy of predictions over their confidence, a panel for each
    layer; the area of a mark is the share of edges in its bin, and bins of less
    than 0.1 % are left out.

    Args:
        bins: A :class:`~pyg_fnri.metrics.Reliability` by the name of its
            panel, as a mapping, with None in bins that are empty.
        errors: The expected calibration error of each panel, if there is one.
    """
    figure, axes = make_panels(len(bins), 3.)
    for index, (name, panel) in enumerate(bins.items()):
        layer, ax = index - ('combined' in bins), axes[index]
        color = INK if name == 'combined' else layer_color(layer)
        rows = pd.DataFrame(panel, dtype=float)
        number, error = rows['num_edges'].sum(), errors[index]
        rows = rows[rows['num_edges'] >= RARE * number]
        ax.axline((1, 1), slope=1, color=INK, lw=1., ls=DASHES, zorder=1)
        ax.plot(rows['confidence'], rows['accuracy'], color=color, lw=1.8)
        ax.scatter(rows['confidence'], rows['accuracy'], color=color, lw=0,
                   s=8 + 220 * rows['num_edges'] / number, alpha=0.75, zorder=4,
                   clip_on=False)
        low = min(0.5, rows[['confidence', 'accuracy']].min().min())
        ax.set(xlim=(low, 1), ylim=(low, 1))
        ax.grid(color='#EEEEEE')
        ax.spines[['top', 'right']].set_visible(False)
        pale_ticks(ax)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(PercentFormatter(1, 0))
        name_layer(ax, name, color)
        text = f'{int(number):,} edges'
        if error is not None:
            text += f'\ncalibration error {100 * error:.1f} %'
        ax.annotate(text, (0, 1), (6, -4), 'axes fraction', 'offset points',
                    ha='left', va='top', fontsize=9, color=INK)
        label(ax, 'probability of the predicted type',
              '' if index else 'edges predicted right')
    handles: dict[str, Any] = {
        'model (area: share of edges)': dict(color=INK, lw=1.8, marker='o',
                                             ms=6),
        'as often right as it says': dict(color=INK, lw=1., ls=DASHES)
    }
    add_legend(figure, handles)
    return figure


def plot_laws(distance: Array, learned: Array, true: Optional[Array] = None, *,
              names: Sequence[str], seen: Sequence[Array],
              errors: Optional[Sequence[float]] = None,
              half_width: Optional[Array] = None,
              words: Mapping[str, str] = MappingProxyType({}),
              coefficients: Coefficients = MappingProxyType({}),
              unit: str = 'm', force_unit: str = 'N') -> Figure:
    r"""Draw learned (solid) over true (dashed) force laws, a panel each; where
    hardly a pair was seen, a learned law is pale.

    Args:
        distance: Where the laws are given, increasing, :obj:`[K]`.
        learned: Forces on unit mass, positive where repulsive, :obj:`[R, K]`.
        true: The true laws, :obj:`[C, K]`, of the first ones.
        names: A name per law.
        seen: Distances of pairs in the data for each law, :obj:`[*]`.
        errors: The :func:`~pyg_fnri.metrics.relative_law_error` of each true
            law.
        half_width: Of the interval around a law, :obj:`[R, K]`.
        words: What laws are, below their names.
        coefficients: Of each term, with standard errors, in a panel.
        unit: Unit of the distances.
        force_unit: Unit of the laws.
    """
    at, laws = to_array(distance), to_array(learned)
    truths = laws[:0] if true is None else to_array(true)
    widths = None if half_width is None else to_array(half_width)
    supports = [supported_distances(at, sight) for sight in seen]
    num_panels = len(laws) + bool(coefficients)
    width = {1: 5.2, 2: 4.5}.get(num_panels, 3.6)
    figure, axes = make_panels(num_panels, width,
                               height=2.8 + 0.2 * bool(words))
    if coefficients:
        _draw_coefficients(axes[-1], coefficients)
    rights = [min(1.08 * support.max(), at[-1]) for support in supports]
    for number, (ax, support, right) in enumerate(zip(axes, supports, rights)):
        color, curves = layer_color(number), laws[[number]]
        name_layer(ax, names[number], color)
        if names[number] in words:
            name_layer(ax, f'{names[number]}\n', color)
            ax.annotate(plain(words[names[number]]), (0.5, 1), (0, 5),
                        'axes fraction', 'offset points', ha='center',
                        fontsize=9, color=INK)
        if number < len(truths):
            curves = np.stack([laws[number], truths[number]])
            dark = tuple(0.3 * np.array(to_rgb(color)))
            ax.plot(at, truths[number], color=dark, lw=1.3, ls=DASHES, zorder=4)
        values = interpolate(at, curves, support)
        _set_limits(ax, right, values)
        _draw_density(ax, to_array(seen[number]), right)
        ax.axhline(0, color=INK, lw=0.8, zorder=1)
        _draw_law(ax, at, laws[number], support, color,
                  4 if widths is None else 2.6)
        if widths is not None:
            inside = (at >= support.min()) & (at <= support.max())
            low, high = (laws[number] + sign * widths[number]
                         for sign in (-1, 1))
            ax.fill_between(at[inside], low[inside], high[inside], color=color,
                            alpha=0.3, lw=0, zorder=2)
        if errors is not None and number < len(errors):
            # In the upper corner that the law keeps off.
            first, last = values[0, [support.argmin(), support.argmax()]]
            x, side = (0, 'left') if last > first else (1, 'right')
            error = f'{100 * errors[number]:.{int(errors[number] <= 0.1)}f}'
            ax.annotate(f'error {error} %', (x, 1), (6 - 12 * x, -4),
                        'axes fraction', 'offset points', ha=side, va='top',
                        fontsize=10, color=INK)
        label(ax, f'distance ({unit})',
              '' if number else f'force ({force_unit}), + repels')
    handles: dict[str, Any] = {'learned': dict(color=INK, lw=4, alpha=0.65)}
    if widths is not None:
        handles['interval of 90 %'] = dict(color=INK, lw=8, alpha=0.3,
                                           solid_capstyle='butt')
    if any(
            max(s.min() - at[0], right - s.max()) > 0.01 * right
            for s, right in zip(supports, rights)):
        handles['extrapolated'] = dict(color=_pale(INK), lw=4)
    if len(truths):
        handles['true'] = dict(color=INK, lw=1.3, ls=DASHES)
    handles['distances seen'] = dict(color=GROUND, lw=8, solid_capstyle='butt')
    add_legend(figure, handles)
    return figure


def _set_limits(ax: Axes, right: float, values: np.ndarray) -> None:
    """For the values at supported distances, above room for the density."""
    # The most extreme values in full, unless they are far off the others: at
    # close encounters a charge's force is a hundred times the usual.
    least, low, high, most = np.quantile(values, [0., 0.05, 0.95, 1.])
    low, high = min(low, 0.), max(high, 0.)
    reach = 2 * (high - low) or np.inf
    low = least if low - reach < least < low else low
    high = most if high < most < high + reach else high
    span = (high - low) or 1.
    ax.set_xlim(0, right)
    ax.set_ylim(low - 0.29 * span, high + 0.15 * span)
    ticks = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    near = (ticks > low - 0.04 * span) & (ticks < high + 0.1 * span)
    ax.set_yticks(ticks[near])
    ax.spines[['top', 'right']].set_visible(False)
    pale_ticks(ax)


def _draw_density(ax: Axes, seen: np.ndarray, right: float) -> None:
    bins = right / 200 * np.arange(221)  # some beyond the right end
    count, _ = np.histogram(seen, bins)
    kernel = np.exp(-np.linspace(-2.5, 2.5, 15)**2 / 2)
    density = np.convolve(count, kernel, mode='same')
    ax.fill_between((bins[1:] + bins[:-1]) / 2, 0.16 * density / density.max(),
                    transform=ax.get_xaxis_transform(), color=GROUND, lw=0,
                    zorder=0)


def _draw_law(ax: Axes, distance: np.ndarray, law: np.ndarray,
              support: np.ndarray, color: str, lw: float) -> None:
    low, high = support.min(), support.max()
    at = np.union1d(distance, [low, high])  # the parts meet exactly
    law = np.interp(at, distance, law)
    ax.fill_between(at, law, color=color, alpha=0.08, lw=0, zorder=0.5)
    for part, shade in [(at <= low, _pale(color)), (at >= high, _pale(color)),
                        ((at >= low) & (at <= high), color)]:
        ax.plot(at[part], law[part], color=shade, lw=lw, zorder=3,
                solid_capstyle='butt')


def _draw_coefficients(ax: Axes, terms: Coefficients) -> None:
    """A line each: what it multiplies, its interval in units of the number
    itself, the number."""
    lines = sum(len(parts) + 1.3 for parts in terms.values())
    step, y = min(1 / lines, 0.1), 1.0
    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.plot([0.47, 0.47], [1 - step * (lines - 1.3), 1], color=PALE, lw=0.8)
    text: dict[str, Any] = dict(fontsize=min(9, 120 * step), color=INK,
                                va='center')
    for term, parts in terms.items():
        ax.text(0, y, plain(term), **text, fontweight='bold')
        for name, (value, error) in parts.items():
            y -= step
            reach = HALF_WIDTH * np.nan_to_num(error)
            unit = 0.13 / max(abs(value) + reach, 1e-300)
            ax.errorbar(0.47 + unit * value, y, xerr=unit * reach, fmt='o',
                        ms=4, color=COLORS[0] if abs(value) > reach else PALE,
                        capsize=2.5)
            ax.text(0.03, y, name, **text)
            ax.text(0.64, y, with_error(value, error), **text)
        y -= 1.3 * step


def _pale(color: str) -> Any:
    return tuple(0.3 * np.array(to_rgb(color)) + 0.7)
