"""Predicted over true trajectories."""
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from pyg_fnri.plot.style import (COLORS, DASHES, INK, PALE, Array, add_legend,
                                 fit_limits, label, make_panels, plain,
                                 to_array, write_name)

Systems = Union[Array, Sequence[Array]]


def plot_trajectories(predicted: Systems, true: Systems, *,
                      observed: Optional[Systems] = None,
                      titles: Optional[Sequence[str]] = None,
                      particles: Optional[Sequence[Sequence[Any]]] = None,
                      half_width: Optional[float] = None,
                      unit: str = 'm') -> Figure:
    r"""Draw predicted (solid) over true (dashed) trajectories, a colour per
    particle that gets darker with time (figure "Trajectories" of the paper).
    A prediction that diverges is drawn as far as it is finite.

    Args:
        predicted: Of one or several systems, :obj:`[N, T, F]`, positions first.
        true: The true trajectories, of the same shapes.
        observed: What was seen before, :obj:`[N, T', F]`, as thin grey lines.
        titles: A title per system.
        particles: The names of its particles, by default numbers.
        half_width: Half the side of the box.
        unit: Unit of the positions.
    """
    paths, truths = _positions(predicted), _positions(true)
    pasts = [] if observed is None else _positions(observed)
    if [x.shape for x in paths] != [x.shape for x in truths]:
        raise ValueError(f'predicted has the shapes {[x.shape for x in paths]} '
                         f'and true {[x.shape for x in truths]}; give as many '
                         f'systems, particles and frames in both.')
    figure, axes = make_panels(len(paths), 3.2 if len(paths) > 1 else 4.2)
    for index, (ax, path, truth) in enumerate(zip(axes, paths, truths)):
        shown = [truth, *pasts[index:index + 1]]
        if np.isfinite(path).all():
            shown.append(path)
        else:  # Not to infinity, which would be far away.
            path = np.where(
                np.abs(path) < 100 * np.abs(truth).max(), path, np.nan)
        fit_limits(ax, np.concatenate(shown, axis=1))
        if half_width is not None:
            corner, side = (-half_width, -half_width), 2 * half_width
            ax.add_patch(Rectangle(corner, side, side, fill=False, ec=INK))
        if pasts:
            lines = LineCollection(list(pasts[index]), colors=PALE, lw=0.9)
            ax.add_collection(lines, autolim=False)
        names = range(len(path)) if particles is None else particles[index]
        for number, pair in enumerate(zip(path, truth)):
            _draw_path(ax, *pair, number, str(names[number]))
        if titles is not None:
            ax.set_title(plain(titles[index]), fontsize=10, color=INK)
        label(ax, f'x ({unit})', f'y ({unit})')
    handles: dict[str, Any] = {
        'predicted': dict(color=INK, lw=3.2, alpha=0.5),
        'true': dict(color=INK, lw=1.2, ls=DASHES),
        'start': dict(color=INK, lw=0, marker='o', ms=6, mfc='white')
    }
    if pasts:
        handles['observed'] = dict(color=PALE, lw=0.9)
    add_legend(figure, handles)
    return figure


def _positions(systems: Systems) -> list[np.ndarray]:
    if isinstance(systems, (Tensor, np.ndarray)):
        systems = [systems]
    return [to_array(system)[..., :2].astype(float) for system in systems]


def _draw_path(ax: Axes, predicted: np.ndarray, true: np.ndarray, number: int,
               name: str) -> None:
    color = np.array(to_rgb(COLORS[number % len(COLORS)]))
    pieces = np.stack([predicted[:-1], predicted[1:]], axis=1)
    time = (np.arange(len(pieces)) + 0.5)[:, None] / len(pieces)
    shades = 0.3 * color + 0.7 + time * 0.7 * (color - 1)  # Pale at first.
    lines = LineCollection(list(pieces), colors=shades, lw=3.2)
    lines.set_capstyle('round')
    ax.add_collection(lines, autolim=False)
    # Darker and thinner than the prediction, so both show where they agree.
    ax.plot(*true.T, color=tuple(0.4 * color), lw=1.2, ls=DASHES, zorder=2.5,
            scalex=False, scaley=False)
    write_name(ax, true[0], name, tuple(0.8 * color), 6)
