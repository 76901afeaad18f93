"""How often predictions of one confidence are right."""
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from pyg_fnri.plot.arrays import check_count
from pyg_fnri.plot.style import INK, LAYER_COLORS, PALE

#: Bins of a smaller share of the edges are in the histogram only.
RARE = 1e-3

DASHES = (0, (3, 2))
PERCENT = FuncFormatter(lambda value, _: f'{100 * value:g} %')


def plot_reliability(
    reliability: Mapping[str, Sequence[Any]],
    errors: Optional[Sequence[Optional[float]]] = None,
) -> Figure:
    r"""Draw the accuracy of predictions over their confidence, a panel and a
    colour for each layer-graph, above a histogram of the confidence.

    On the dashed diagonal a model is as often right as it says. The area of a
    mark is the share of edges in its bin: small ones say little, and bins of
    less than 0.1 % of the edges are left to the histogram.

    Args:
        reliability (Mapping[str, Sequence]): For each panel's name
            :obj:`(confidence, accuracy, num_edges)`, such as a
            :class:`~pyg_fnri.metrics.Reliability`: of each bin between 0 and
            1, bins of equal width, the mean confidence, the share of right
            predictions and the number of predictions.
        errors (Sequence[float], optional): The expected calibration error of
            each panel.

    Raises:
        ValueError: If there are no panels or no predictions, or shapes or
            numbers do not fit.
    """
    if not reliability:
        raise ValueError('There is no reliability to draw.')
    panels = {
        name: _check_bins(name, *bins)
        for name, bins in reliability.items()
    }
    if errors is None:
        errors = [None] * len(panels)
    check_count('errors', len(errors), len(panels), 'panels')
    figure = Figure(figsize=(3. * len(panels), 4.3), dpi=150,
                    layout='constrained')
    rows = figure.subplots(2, len(panels), squeeze=False,
                           gridspec_kw={'height_ratios': [3, 1]})
    # One lower end for all, so that panels can be compared.
    low = min(_lower_end(*bins[1:]) for bins in panels.values())
    for index, (name, bins) in enumerate(panels.items()):
        color = INK
        if name != 'combined':
            layer = index - ('combined' in panels)
            color = LAYER_COLORS[layer % len(LAYER_COLORS)]
        top, bottom = rows[:, index]
        _draw_marks(top, *bins, low, color)
        _draw_histogram(bottom, bins[2], low, color)
        top.set_title(name, fontsize=12, color=color, fontweight='bold')
        text, error = f'{int(bins[2].sum()):,} edges', errors[index]
        if error is not None:
            text += f'\ncalibration error {100 * error:.1f} %'
        top.annotate(text, (0, 1), (6, -4), 'axes fraction', 'offset points',
                     ha='left', va='top', fontsize=9, color=INK)
        bottom.set_xlabel('probability of the predicted type', fontsize=9,
                          color=INK)
    rows[0, 0].set_ylabel('edges predicted right', fontsize=9, color=INK)
    rows[1, 0].set_ylabel('share of edges', fontsize=9, color=INK)
    handles = [
        Line2D([], [], color=INK, lw=1.8, marker='o', ms=6,
               label='model (area: share of edges)'),
        Line2D([], [], color=INK, lw=1., ls=DASHES,
               label='as often right as it says')
    ]
    figure.legend(handles=handles, loc='outside lower center',
                  ncols=2 if len(panels) > 1 else 1, frameon=False, fontsize=9)
    return figure


def _check_bins(name: str, confidence: Any, accuracy: Any,
                num_edges: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bins as arrays; NaN where there are no predictions."""
    arrays = [
        np.array(
            [np.nan if value is None else float(value) for value in values])
        for values in (confidence, accuracy, num_edges)
    ]
    count = arrays[2]
    if any(array.ndim != 1 or array.shape != count.shape for array in arrays):
        raise ValueError(f"The bins of '{name}' have the shapes "
                         f'{[list(array.shape) for array in arrays]}: '
                         f'expected [num_bins] for each.')
    if not (count >= 0).all() or not count.sum() > 0:
        raise ValueError(f"The bins of '{name}' hold {count} predictions: "
                         f'expected numbers >= 0, not all of them 0.')
    for array in arrays[:2]:
        values = array[count > 0]
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"The bins of '{name}' hold {values}: expected "
                             f'confidences and accuracies between 0 and 1.')
    return arrays[0], arrays[1], count


def _lower_end(accuracy: np.ndarray, num_edges: np.ndarray) -> float:
    """Where a panel may begin: the left edge of the first bin that is used,
    or below it where accuracies are lower still."""
    first = (num_edges > 0).argmax() / len(num_edges)
    shown = num_edges >= RARE * num_edges.sum()
    lowest = min(first, accuracy[shown].min())
    return float(max(0., np.floor(10 * lowest) / 10))


def _draw_marks(ax: Axes, confidence: np.ndarray, accuracy: np.ndarray,
                num_edges: np.ndarray, low: float, color: str) -> None:
    share = num_edges / num_edges.sum()
    shown = share >= RARE
    ax.plot([low, 1], [low, 1], color=INK, lw=1., ls=DASHES, zorder=1)
    ax.plot(confidence[shown], accuracy[shown], color=color, lw=1.8, zorder=3)
    ax.scatter(confidence[shown], accuracy[shown], s=8 + 220 * share[shown],
               color=color, alpha=0.75, lw=0, zorder=4, clip_on=False)
    ax.set_ylim(low, 1.)
    ax.locator_params(nbins=6)
    ax.yaxis.set_major_formatter(PERCENT)
    _style(ax, low)
    ax.tick_params(labelbottom=False)


def _draw_histogram(ax: Axes, num_edges: np.ndarray, low: float,
                    color: str) -> None:
    share = num_edges / num_edges.sum()
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
    _style(ax, low)


def _style(ax: Axes, low: float) -> None:
    ax.set_xlim(low, 1.)
    ax.grid(color='#EEEEEE')
    ax.set_axisbelow(True)
    ax.spines[['top', 'right']].set_visible(False)
    ax.spines[['left', 'bottom']].set_color(PALE)
    ax.tick_params(color=PALE, labelcolor=INK, labelsize=8)
