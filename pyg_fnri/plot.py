r"""Pictures of trajectories, multiplex graphs and training curves.

Each function returns a :class:`matplotlib.figure.Figure` that belongs to no
global state and needs no display: ``figure.savefig('picture.png')`` writes it.
"""
from __future__ import annotations

import math
from functools import partial
from typing import Any, Optional, Sequence, Union

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

Systems = Union[Tensor, np.ndarray, Sequence[Union[Tensor, np.ndarray]]]

# Okabe and Ito's palette, told apart with any colour vision; its yellow and
# sky blue are too pale for lines on white.
COLORS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#555555')
# Layers leave the reds to wrong edges.
LAYER_COLORS = ('#0072B2', '#E69F00', '#009E73', '#8A5FBF', '#555555')
WRONG = '#C1121F'
INK = '#333333'
PALE = '#B8B8B8'
DASHES = (0, (4, 2.5))


def plot_trajectories(
    predicted: Systems,
    true: Systems,
    *,
    observed: Optional[Systems] = None,
    titles: Optional[Sequence[str]] = None,
    half_width: Optional[float] = None,
    unit: str = 'm',
) -> Figure:
    r"""Draw predicted (solid) over true (dashed) trajectories, a colour per
    particle that gets darker with time (figure "Trajectories" of the paper).

    Args:
        predicted (torch.Tensor or list of torch.Tensor): Predicted
            trajectories :obj:`[N, T, F]` of one or several systems. The first
            two features are the position.
        true (torch.Tensor or list of torch.Tensor): The true trajectories,
            of the same shapes.
        observed (torch.Tensor or list of torch.Tensor, optional): What was
            seen before, :obj:`[N, T', F]`, drawn as thin grey lines.
        titles (Sequence[str], optional): A title per system.
        half_width (float, optional): Half the side of the box; its walls are
            drawn where they are in view.
        unit (str): Unit of the positions. (default: :obj:`'m'`)

    Raises:
        ValueError: If shapes do not fit together or a value is not finite.
    """
    paths = _check_systems('predicted', predicted)
    truths = _check_systems('true', true)
    pasts = [] if observed is None else _check_systems('observed', observed)
    _check_counts('true', len(truths), len(paths))
    if pasts:
        _check_counts('observed', len(pasts), len(paths))
    if titles is not None:
        _check_counts('titles', len(titles), len(paths))
    for index, (path, truth) in enumerate(zip(paths, truths)):
        if path.shape != truth.shape:
            raise ValueError(
                f'System {index} has {list(path.shape[:2])} predicted and '
                f'{list(truth.shape[:2])} true particles and frames: expected '
                f'as many in both.')
        if pasts and len(pasts[index]) != len(path):
            raise ValueError(
                f'System {index} has {len(path)} predicted and '
                f'{len(pasts[index])} observed particles: expected as many in '
                f'both.')
    if half_width is not None and not half_width > 0:
        raise ValueError(f'half_width must be positive, got {half_width}.')

    figure, axes = _grid(len(paths), panel=3.2 if len(paths) > 1 else 4.2)
    for index, ax in enumerate(axes):
        shown = [paths[index], truths[index]] + pasts[index:index + 1]
        _frame(ax, np.concatenate([x.reshape(-1, 2) for x in shown]))
        if half_width is not None:
            corner, side = (-half_width, -half_width), 2 * half_width
            ax.add_patch(Rectangle(corner, side, side, fill=False, ec=INK))
        if pasts:
            lines = LineCollection(list(pasts[index]), colors=PALE, lw=0.9)
            ax.add_collection(lines, autolim=False)
        for particle in range(len(paths[index])):
            _draw_path(ax, paths[index], truths[index], particle)
        if titles is not None:
            ax.set_title(titles[index], fontsize=10, color=INK)
        ax.set_xlabel(f'x ({unit})', fontsize=9, color=INK)
        ax.set_ylabel(f'y ({unit})', fontsize=9, color=INK)
    handles = [
        Line2D([], [], color=INK, lw=3.2, alpha=0.5, label='predicted'),
        Line2D([], [], color=INK, lw=1.2, ls=(0, (3, 2)), label='true'),
        Line2D([], [],
               color=INK,
               lw=0,
               marker='o',
               ms=6,
               mfc='white',
               label='start')
    ]
    if pasts:
        handles.append(Line2D([], [], color=PALE, lw=0.9, label='observed'))
    _legend(figure, handles)
    return figure


def plot_multiplex(
    edge_index: Union[Tensor, np.ndarray],
    edge_type: Union[Tensor, np.ndarray],
    edge_label: Optional[Union[Tensor, np.ndarray]] = None,
    *,
    names: Optional[Sequence[str]] = None,
    probability: Optional[Union[Tensor, np.ndarray]] = None,
    position: Optional[Union[Tensor, np.ndarray]] = None,
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
    edges = _check_edge_index(edge_index)
    inferred = _check_edge_types('edge_type', edge_type, len(edges))
    true = None
    if edge_label is not None:
        true = _check_edge_types('edge_label', edge_label, len(edges))
        _check_counts('edge_label', true.shape[1], inferred.shape[1], 'layers')
    num_layers = inferred.shape[1]
    if names is None:
        names = [f'layer {layer}' for layer in range(num_layers)]
    _check_counts('names', len(names), num_layers, 'layers')
    opacity = np.ones(inferred.shape)
    if probability is not None:
        opacity = _check_probability(probability, inferred.shape)
    place = _check_position(position, int(edges.max()) + 1)

    num_rows = 1 if true is None else 2
    scale = min(1., math.sqrt(12 / len(place)))  # many particles: finer lines
    figure, axes = _grid(num_rows * num_layers,
                         panel=2.5 / scale,
                         columns=num_layers)
    for layer in range(num_layers):
        color = LAYER_COLORS[layer % len(LAYER_COLORS)]
        axes[layer].set_title(names[layer],
                              fontsize=12,
                              color=color,
                              fontweight='bold')
        ax = axes[(num_rows - 1) * num_layers + layer]
        found = inferred[:, layer]
        truth = found if true is None else true[:, layer]
        draw = partial(_draw_edges,
                       place=place,
                       scale=scale,
                       numbered=bool(max(found.max(), truth.max()) > 1))
        if true is not None:
            draw(axes[layer], edges, truth, color)
            ax.set_xlabel(f'{(found == truth).mean():.0%} right', color=INK)
        for wrong in (False, True):
            part = (found != truth) == wrong
            draw(ax,
                 edges[part],
                 found[part],
                 WRONG if wrong else color,
                 opacity=opacity[part, layer],
                 crossed=wrong)
        missed = (found == 0) & (truth > 0)
        draw(ax, edges[missed], truth[missed], WRONG, linestyle=DASHES)
    for ax in axes:
        _draw_particles(ax, place, scale)
    axes[-num_layers].set_ylabel('inferred', fontsize=12, color=INK)
    if true is not None:
        axes[0].set_ylabel('true', fontsize=12, color=INK)
        _legend(figure, [
            Line2D([], [],
                   color=WRONG,
                   lw=1.8,
                   marker='X',
                   ms=7,
                   mec='white',
                   label='inferred, not true'),
            Line2D([], [], color=WRONG, lw=1.8, ls=DASHES, label='missed')
        ])
    return figure


def plot_curves(history: pd.DataFrame) -> Figure:
    r"""Draw losses and edge accuracies over training.

    Args:
        history (pandas.DataFrame): A row per log entry. Columns with "loss"
            in their name share one panel, those with "accuracy" another; the
            horizontal axis is the first there is of :obj:`minutes`,
            :obj:`step` and :obj:`epoch`. Empty cells are skipped, as entries
            rarely fill every column.

    Raises:
        TypeError: If the history is no data frame.
        ValueError: If there is nothing to draw.
    """
    if not isinstance(history, pd.DataFrame):
        raise TypeError(f'history must be a pandas.DataFrame, got '
                        f'{type(history).__name__}.')
    axis = next(
        (name for name in ('minutes', 'step', 'epoch') if name in history),
        None)
    columns = {
        kind: [
            name for name in history
            if kind in str(name) and history[name].notna().any()
        ]
        for kind in ('loss', 'accuracy')
    }
    kinds = [kind for kind, names in columns.items() if names]
    if axis is None or not kinds:
        raise ValueError(
            f'history has the columns {list(history)}: expected one of '
            f'minutes, step and epoch, and one with "loss" or "accuracy" in '
            f'its name that is not empty.')
    figure, axes = _grid(len(kinds), panel=4.2, height=3.)
    for kind, ax in zip(kinds, axes):
        for index, name in enumerate(columns[kind]):
            curve = history[[axis, name]].dropna()
            ax.plot(curve[axis],
                    curve[name],
                    label=name,
                    lw=1.8,
                    color=COLORS[index % len(COLORS)])
        ax.set_xlabel(axis)
        ax.set_ylabel('edge accuracy' if kind == 'accuracy' else kind)
        ax.grid(color='#E6E6E6')
        ax.spines[['top', 'right']].set_visible(False)
        ax.legend(frameon=False, fontsize=9)
    return figure


def _grid(num_panels: int,
          panel: float,
          height: Optional[float] = None,
          columns: Optional[int] = None) -> tuple[Figure, list[Axes]]:
    """A figure of panels in rows of at most four, square if not told."""
    columns = columns or min(4, num_panels)
    rows = math.ceil(num_panels / columns)
    size = (panel * columns, (height or panel) * rows + 0.4)
    figure = Figure(figsize=size, dpi=150, layout='constrained')
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in axes[num_panels:]:
        unused.remove()
    return figure, axes[:num_panels]


def _legend(figure: Figure, handles: list[Line2D]) -> None:
    figure.legend(handles=handles,
                  loc='outside lower center',
                  ncols=len(handles) if figure.get_figwidth() > 4 else 1,
                  frameon=False,
                  fontsize=9)


def _frame(ax: Axes, points: np.ndarray, margin: float = 0.04) -> None:
    """Square limits, equal on both axes, close around the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    half = (0.5 + margin) * max((high - low).max(), 1e-6)
    center = (low + high) / 2
    ax.set_xlim(center[0] - half, center[0] + half)
    ax.set_ylim(center[1] - half, center[1] + half)
    ax.set_aspect('equal')
    ax.spines[:].set_color(PALE)
    ax.tick_params(color=PALE, labelcolor=INK, labelsize=8)
    ax.locator_params(nbins=5)


def _draw_path(ax: Axes, predicted: np.ndarray, true: np.ndarray,
               particle: int) -> None:
    path = predicted[particle]
    color = np.array(to_rgb(COLORS[particle % len(COLORS)]))
    pieces = np.stack([path[:-1], path[1:]], axis=1)
    time = (np.arange(len(pieces)) + 0.5) / len(pieces)
    shades = _shade(time, 0.3 * color + 0.7, color)
    lines = LineCollection(list(pieces), colors=shades, lw=3.2)
    lines.set_capstyle('round')
    ax.add_collection(lines, autolim=False)
    span = ax.get_xlim()[1] - ax.get_xlim()[0]
    dashes, time = _cut_dashes(true[particle], period=span / 40)
    # Darker and thinner than the prediction, so both show where they agree.
    shades = _shade(time, 0.8 * color, 0.3 * color)
    lines = LineCollection(dashes, colors=shades, lw=1.2, zorder=2.5)
    ax.add_collection(lines, autolim=False)
    _write(ax, path[0], str(particle), tuple(0.8 * color), fontsize=6, lw=1.)


def _shade(time: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Colours from the first at time 0 to the last at time 1: [T, 3]."""
    return first + time[:, None] * (last - first)


def _cut_dashes(path: np.ndarray,
                period: float) -> tuple[list[np.ndarray], np.ndarray]:
    """Dashes of equal length along a path and the time (0 to 1) of each.
    Matplotlib's own dashes start anew in every coloured piece."""
    step = np.linalg.norm(np.diff(path, axis=0), axis=1)
    arc = np.concatenate([[0.], step.cumsum()])
    frame = np.arange(len(path))
    dashes, times = [], []
    period = max(period, arc[-1] / 500)  # a wild path is not worth more
    for start in np.arange(0., max(arc[-1], 1e-12), period):
        end = min(start + 0.6 * period, arc[-1])
        inside = (arc > start) & (arc < end)
        at = np.concatenate([[start], arc[inside], [end]])
        dashes.append(np.stack([np.interp(at, arc, x) for x in path.T], axis=1))
        times.append(np.interp(start, arc, frame) / frame[-1])
    return dashes, np.array(times)


def _draw_edges(ax: Axes,
                edges: np.ndarray,
                types: np.ndarray,
                color: str,
                *,
                place: np.ndarray,
                scale: float,
                numbered: bool,
                opacity: Optional[np.ndarray] = None,
                linestyle: Any = '-',
                crossed: bool = False) -> None:
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
            FancyArrowPatch(place[j],
                            place[i],
                            arrowstyle='-' if both else '-|>',
                            connectionstyle=f'arc3,rad={bend}',
                            mutation_scale=11 * scale,
                            shrinkA=9 * scale,
                            shrinkB=9 * scale,
                            lw=2.2 * scale,
                            ls=linestyle,
                            color=color,
                            alpha=(alpha + back_alpha) / 2 if both else alpha))
        text = '\u2716' * crossed + str(kind) * numbered
        if text:
            across = (place[i] - place[j])[::-1] * [1, -1]
            middle = (place[i] + place[j] + bend * across) / 2
            _write(ax, middle, text, color, fontsize=9 * scale, lw=0.)


def _draw_particles(ax: Axes, place: np.ndarray, scale: float) -> None:
    _frame(ax, place, margin=0.12)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    for particle, point in enumerate(place):
        _write(ax, point, str(particle), INK, fontsize=9 * scale, lw=scale)


def _write(ax: Axes, point: np.ndarray, text: str, color: Any, fontsize: float,
           lw: float) -> None:
    """Text in a white circle with a line of that width around it."""
    box = {'boxstyle': 'circle,pad=0.25', 'fc': 'white', 'ec': color, 'lw': lw}
    note = ax.annotate(text, tuple(point), color=color, ha='center', bbox=box)
    note.set(va='center', fontsize=fontsize, zorder=3 if lw == 0 else 4)


def _check_counts(name: str,
                  count: int,
                  expected: int,
                  what: str = 'systems') -> None:
    if count != expected:
        raise ValueError(f'{name} is for {count} {what}, expected {expected}.')


def _check_numbers(name: str, values: Any, shape: Sequence[Optional[int]],
                   layout: str) -> np.ndarray:
    """Finite values as an array, None in the shape standing for any size."""
    array = torch.as_tensor(values).detach().cpu().numpy()
    if array.ndim != len(shape) or any(
            size not in (None, found)
            for size, found in zip(shape, array.shape)):
        raise ValueError(f'{name} has shape {list(array.shape)}, expected '
                         f'{layout}.')
    if not np.isfinite(array).all():
        raise ValueError(f'{name} holds NaN or infinite values: expected '
                         f'finite numbers.')
    return array


def _check_systems(name: str, systems: Systems) -> list[np.ndarray]:
    """The positions of each system, [N, T, 2]."""
    if isinstance(systems, (Tensor, np.ndarray)):
        systems = [systems]
    if not len(systems):
        raise ValueError(f'{name} holds no systems: expected at least one.')
    paths = []
    for index, system in enumerate(systems):
        path = _check_numbers(f'{name}[{index}]', system, (None, None, None),
                              '[num_particles, num_frames, num_features]')
        if path.shape[0] < 1 or path.shape[1] < 2 or path.shape[2] < 2:
            raise ValueError(
                f'{name}[{index}] has shape {list(path.shape)}: expected at '
                f'least 1 particle, 2 frames and 2 features (the position).')
        paths.append(path[..., :2].astype(float))
    return paths


def _check_edge_index(edge_index: Any) -> np.ndarray:
    """The edges as rows (sender, receiver), [E, 2]."""
    edges = _check_numbers('edge_index', edge_index, (2, None),
                           '[2, num_edges]').T
    if edges.dtype.kind not in 'iu' or not edges.size or edges.min() < 0:
        raise ValueError('edge_index must hold at least one edge of '
                         'non-negative integers.')
    if (edges[:, 0] == edges[:, 1]).any():
        raise ValueError('edge_index holds self loops: expected edges between '
                         'different particles.')
    return edges


def _check_edge_types(name: str, types: Any, num_edges: int) -> np.ndarray:
    array = _check_numbers(name, types, (num_edges, None),
                           f'[{num_edges}, num_layers]')
    if array.dtype.kind not in 'iu':
        raise TypeError(f'{name} must hold integer edge types, got '
                        f'{array.dtype}.')
    if not array.size or array.min() < 0:
        raise ValueError(f'{name} must hold types 0, 1, ... of at least one '
                         f'layer.')
    return array


def _check_probability(probability: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = _check_numbers('probability', probability, shape, f'{list(shape)}')
    if array.min() < 0 or array.max() > 1:
        raise ValueError(f'probability must be between 0 and 1, got '
                         f'{array.min():.3g} to {array.max():.3g}.')
    return 0.15 + 0.85 * array  # even a doubtful edge stays visible


def _check_position(position: Any, num_particles: int) -> np.ndarray:
    if position is not None:
        return _check_numbers('position', position, (num_particles, 2),
                              f'[{num_particles}, 2]')
    angle = np.pi / 2 - 2 * np.pi * np.arange(num_particles) / num_particles
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
