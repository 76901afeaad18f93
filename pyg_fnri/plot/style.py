"""What all pictures share: colours, panels, legends, labels."""
import math
from collections.abc import Mapping
from typing import Any, Optional, Union

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from pyg_fnri.convert import readable

Array = Union[Tensor, np.ndarray]

# Okabe and Ito's palette, told apart with any colour vision; its yellow and
# sky blue are too pale for lines on white.
COLORS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#555555')
# Layers leave the reds to wrong edges.
LAYER_COLORS = ('#0072B2', '#E69F00', '#009E73', '#8A5FBF', '#555555')
WRONG = '#C1121F'
INK = '#333333'
PALE = '#B8B8B8'
DASHES = (0, (3, 2))


def to_array(values: Any) -> np.ndarray:
    return torch.as_tensor(values).detach().cpu().numpy()


#: Longer names stand beside their circles.
MOST_LETTERS = 3


def plain(name: Any) -> str:
    """A name as it is, dollars included, for Matplotlib."""
    return str(readable(str(name))).replace('$', r'\$')


def layer_color(layer: int) -> str:
    return LAYER_COLORS[layer % len(LAYER_COLORS)]


def make_panels(num_panels: int, width: float, height: Optional[float] = None,
                columns: Optional[int] = None) -> tuple[Figure, list[Axes]]:
    """Panels of a size in inches, by default square and four in a row."""
    columns = columns or min(4, num_panels)
    rows = math.ceil(num_panels / columns)
    size = (width * columns, (height or width) * rows + 0.4)
    figure = Figure(figsize=size, dpi=150, layout='constrained')
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in axes[num_panels:]:
        unused.remove()
    return figure, axes[:num_panels]


def add_legend(figure: Figure, styles: Mapping[str, Any]) -> None:
    """One legend below all panels, of lines of these styles."""
    figure.legend(
        handles=[Line2D([], [], label=k, **v) for k, v in styles.items()],
        loc='outside lower center', frameon=False, fontsize=9,
        ncols=max(1, min(len(styles), int(figure.get_figwidth() / 1.6))))


def label(ax: Axes, x: str = '', y: str = '') -> None:
    ax.set_xlabel(plain(x), fontsize=9, color=INK)
    ax.set_ylabel(plain(y), fontsize=9, color=INK)


def pale_ticks(ax: Axes) -> None:
    ax.spines[:].set_color(PALE)
    ax.tick_params(color=PALE, labelcolor=INK, labelsize=8)


def name_layer(ax: Axes, name: str, color: str) -> None:
    ax.set_title(plain(name), fontsize=12, color=color, fontweight='bold')


def fit_limits(ax: Axes, points: np.ndarray, margin: float = 0.04) -> None:
    """Square limits, close around points :obj:`[..., 2]`."""
    points = points.reshape(-1, 2)
    low, high = points.min(axis=0), points.max(axis=0)
    half = (0.5 + margin) * max((high - low).max(), 1e-6)
    center = (low + high) / 2
    ax.set_xlim(center[0] - half, center[0] + half)
    ax.set_ylim(center[1] - half, center[1] + half)
    ax.set_aspect('equal')
    pale_ticks(ax)
    ax.locator_params(nbins=5)


def write_in_circle(ax: Axes, point: np.ndarray, text: str, color: Any,
                    fontsize: float, lw: float = 0.) -> None:
    box = {'boxstyle': 'circle,pad=0.25', 'fc': 'white', 'ec': color, 'lw': lw}
    note = ax.annotate(plain(text), tuple(point), color=color, ha='center',
                       bbox=box)
    note.set(va='center', fontsize=fontsize, zorder=3 if lw == 0 else 4)


def write_name(ax: Axes, point: np.ndarray, name: str, color: Any,
               fontsize: float, lw: float = 1.) -> None:
    """A particle's name in a circle, or beside it, if it is long."""
    long = len(name) > MOST_LETTERS
    write_in_circle(ax, point, '  ' if long else name, color, fontsize, lw)
    if long:
        ax.annotate(plain(name), tuple(point), (0.8 * fontsize, 0), color=color,
                    textcoords='offset points', fontsize=fontsize, va='center',
                    zorder=5)
