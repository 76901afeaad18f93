"""The inferred multiplex graph beside the true one."""
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Optional, Union

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from torch import Tensor

from pyg_fnri.plot.arrays import check_count, finite_array
from pyg_fnri.plot.edges import edge_rows
from pyg_fnri.plot.style import (
    INK,
    LAYER_COLORS,
    WRONG,
    add_legend,
    fit_limits,
    make_panels,
    write_in_circle,
)

Array = Union[Tensor, np.ndarray]

DASHES = (0, (4, 2.5))


def plot_multiplex(
    edge_index: Array,
    edge_type: Array,
    edge_label: Optional[Array] = None,
    *,
    names: Optional[Sequence[str]] = None,
    probability: Optional[Array] = None,
    position: Optional[Array] = None,
) -> Figure:
    r"""Draw the inferred multiplex graph of one system, a column and a colour
    per layer, below the true one; wrong edges are red.

    Two directions of a pair that agree are drawn as one line, others as
    arrows from sender to receiver. Where a layer has several types of
    interaction, their numbers stand beside the edges.

    Args:
        edge_index (torch.Tensor): Candidate edges :obj:`[2, E]`.
        edge_type (torch.Tensor): Inferred types :obj:`[E, L]`, 0 for no
            interaction, in the meaning of :obj:`edge_label` (translate an
            unsupervised model's with the
            :class:`~pyg_fnri.metrics.Relabelling` found).
        edge_label (torch.Tensor, optional): True types :obj:`[E, L]`.
        names (Sequence[str], optional): A name per layer.
        probability (torch.Tensor, optional): Probability :obj:`[E, L]` of
            the inferred type; the paler an edge, the less certain it is.
        position (torch.Tensor, optional): Where to draw the particles,
            :obj:`[N, 2]`. (default: on a circle)

    Raises:
        TypeError: If types are not integers.
        ValueError: If shapes do not fit together, a type is negative or a
            value is not finite.
    """
    edges = edge_rows(edge_index)
    inferred = _check_edge_types('edge_type', edge_type, len(edges))
    true = None
    if edge_label is not None:
        true = _check_edge_types('edge_label', edge_label, len(edges))
        check_count('edge_label', true.shape[1], inferred.shape[1], 'layers')
    num_layers = inferred.shape[1]
    if names is None:
        names = [f'layer {layer}' for layer in range(num_layers)]
    check_count('names', len(names), num_layers, 'layers')
    opacity = np.ones(inferred.shape)
    if probability is not None:
        opacity = _check_probability(probability, inferred.shape)
    place = _check_position(position, int(edges.max()) + 1)

    num_rows = 1 if true is None else 2
    scale = min(1., math.sqrt(12 / len(place)))  # many particles: finer lines
    figure, axes = make_panels(num_rows * num_layers, 2.5 / scale,
                               columns=num_layers)
    for layer in range(num_layers):
        color = LAYER_COLORS[layer % len(LAYER_COLORS)]
        axes[layer].set_title(names[layer], fontsize=12, color=color,
                              fontweight='bold')
        ax = axes[(num_rows - 1) * num_layers + layer]
        found = inferred[:, layer]
        truth = found if true is None else true[:, layer]
        draw = partial(_draw_edges, place=place, scale=scale,
                       numbered=bool(max(found.max(), truth.max()) > 1))
        if true is not None:
            draw(axes[layer], edges, truth, color)
            ax.set_xlabel(f'{(found == truth).mean():.0%} right', color=INK)
        for wrong in (False, True):
            part = (found != truth) == wrong
            draw(ax, edges[part], found[part], WRONG if wrong else color,
                 opacity=opacity[part, layer], crossed=wrong)
        missed = (found == 0) & (truth > 0)
        draw(ax, edges[missed], truth[missed], WRONG, linestyle=DASHES)
    for ax in axes:
        _draw_particles(ax, place, scale)
    axes[-num_layers].set_ylabel('inferred', fontsize=12, color=INK)
    if true is not None:
        axes[0].set_ylabel('true', fontsize=12, color=INK)
        add_legend(figure, [
            Line2D([], [], color=WRONG, lw=1.8, marker='X', ms=7, mec='white',
                   label='inferred, not true'),
            Line2D([], [], color=WRONG, lw=1.8, ls=DASHES, label='missed'),
        ])
    return figure


def _draw_edges(
    ax: Axes,
    edges: np.ndarray,
    types: np.ndarray,
    color: str,
    *,
    place: np.ndarray,
    scale: float,
    numbered: bool,
    opacity: Optional[np.ndarray] = None,
    linestyle: Any = '-',
    crossed: bool = False,
) -> None:
    """Lines for pairs that agree in both directions, arrows for others."""
    alphas = np.ones(len(edges)) if opacity is None else opacity
    drawn = {
        (int(j), int(i)): (int(kind), alpha)
        for (j, i), kind, alpha in zip(edges, types, alphas) if kind > 0
    }
    for (j, i), (kind, alpha) in drawn.items():
        back, back_alpha = drawn.get((i, j), (0, 0.))
        both = back == kind
        if both and j > i:
            continue
        bend = 0. if both else 0.15
        ax.add_patch(
            FancyArrowPatch(place[j], place[i],
                            arrowstyle='-' if both else '-|>',
                            connectionstyle=f'arc3,rad={bend}',
                            mutation_scale=11 * scale, shrinkA=9 * scale,
                            shrinkB=9 * scale, lw=2.2 * scale, ls=linestyle,
                            color=color,
                            alpha=(alpha + back_alpha) / 2 if both else alpha))
        text = '\u2716' * crossed + str(kind) * numbered
        if text:
            across = (place[i] - place[j])[::-1] * [1, -1]
            middle = (place[i] + place[j] + bend * across) / 2
            write_in_circle(ax, middle, text, color, 9 * scale)


def _draw_particles(ax: Axes, place: np.ndarray, scale: float) -> None:
    fit_limits(ax, place, margin=0.12)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    for particle, point in enumerate(place):
        write_in_circle(ax, point, str(particle), INK, 9 * scale, lw=scale)


def _check_edge_types(name: str, types: Any, num_edges: int) -> np.ndarray:
    array = finite_array(name, types, (num_edges, None),
                         f'[{num_edges}, num_layers]')
    if array.dtype.kind not in 'iu':
        raise TypeError(f'{name} must hold integer edge types, got '
                        f'{array.dtype}.')
    if not array.size or array.min() < 0:
        raise ValueError(f'{name} must hold types 0, 1, ... of at least one '
                         f'layer.')
    return array


def _check_probability(probability: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = finite_array('probability', probability, shape, f'{list(shape)}')
    if array.min() < 0 or array.max() > 1:
        raise ValueError(f'probability must be between 0 and 1, got '
                         f'{array.min():.3g} to {array.max():.3g}.')
    return 0.15 + 0.85 * array  # even a doubtful edge stays visible


def _check_position(position: Any, num_particles: int) -> np.ndarray:
    if position is not None:
        return finite_array('position', position, (num_particles, 2),
                            f'[{num_particles}, 2]')
    angle = np.pi / 2 - 2 * np.pi * np.arange(num_particles) / num_particles
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
