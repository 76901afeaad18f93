"""Systems: predicted over true trajectories, multiplex graphs, heat maps."""
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Optional, Union

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

from pyg_fnri.plot.style import (COLORS, DASHES, INK, PALE, WRONG, Array,
                                 add_legend, fit_limits, label, layer_color,
                                 make_panels, name_layer, pale_ticks, plain,
                                 to_array, write_in_circle, write_name)

Systems = Union[Array, Sequence[Array]]
MISSED = (0, (4, 2.5))
#: Where there is no candidate edge; no shade of the map is like it.
NO_EDGE = '#F3E9DC'
#: With more particles, only some of them are named at the axes.
MOST_NAMES = 20


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


def plot_multiplex(edge_index: Array, edge_type: Array,
                   edge_label: Optional[Array] = None, *,
                   names: Optional[Sequence[str]] = None,
                   probability: Optional[Array] = None,
                   particles: Optional[Sequence[Any]] = None) -> Figure:
    r"""Draw the inferred multiplex graph of one system, a column per layer,
    below the true one; wrong edges are red. Two directions that agree are one
    line, others arrows from sender to receiver, with the number of the type
    where a layer has several.

    Args:
        edge_index: Candidate edges :obj:`[2, E]`.
        edge_type: Inferred types :obj:`[E, L]`, after a
            :class:`~pyg_fnri.metrics.Relabelling` if unsupervised.
        edge_label: True types :obj:`[E, L]`.
        names: A name per layer.
        probability: Of the inferred type, :obj:`[E, L]`; doubtful edges are
            pale.
        particles: A name per particle, by default its number.
    """
    edges, inferred = to_array(edge_index).T, to_array(edge_type)
    true = None if edge_label is None else to_array(edge_label)
    num_layers = inferred.shape[1]
    names = names or [f'layer {layer}' for layer in range(num_layers)]
    opacity = np.ones(inferred.shape)
    if probability is not None:  # Even a doubtful edge stays visible.
        opacity = 0.15 + 0.85 * to_array(probability)
    num_particles = edges.max(
        initial=-1) + 1 if particles is None else len(particles)
    particles = range(num_particles) if particles is None else particles
    angle = np.pi / 2 - 2 * np.pi * np.arange(num_particles) / num_particles
    place = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    num_rows = 1 if true is None else 2
    scale = min(1., math.sqrt(12 / len(place)))  # many particles: finer lines
    figure, axes = make_panels(num_rows * num_layers, 2.5 / scale,
                               columns=num_layers)
    for layer in range(num_layers):
        color = layer_color(layer)
        name_layer(axes[layer], names[layer], color)
        ax = axes[(num_rows - 1) * num_layers + layer]
        found = inferred[:, layer]
        truth = found if true is None else true[:, layer]
        draw = partial(
            _draw_edges, place=place, scale=scale,
            numbered=bool(max(found.max(initial=0), truth.max(initial=0)) > 1))
        if true is not None:
            draw(axes[layer], edges, truth, color)
            ax.set_xlabel(f'{(found == truth).mean():.0%} right', color=INK)
        for wrong in (False, True):
            part = (found != truth) == wrong
            draw(ax, edges[part], found[part], WRONG if wrong else color,
                 opacity=opacity[part, layer], crossed=wrong)
        missed = (found == 0) & (truth > 0)
        draw(ax, edges[missed], truth[missed], WRONG, linestyle=MISSED)
    for ax in axes:
        fit_limits(ax, place, margin=0.12)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        for name, point in zip(particles, place):
            write_name(ax, point, str(name), INK, 9 * scale, scale)
    axes[-num_layers].set_ylabel('inferred', fontsize=12, color=INK)
    if true is not None:
        axes[0].set_ylabel('true', fontsize=12, color=INK)
        crossed = dict(color=WRONG, lw=1.8, marker='X', ms=7, mec='white')
        missing = dict(color=WRONG, lw=1.8, ls=MISSED)
        add_legend(figure, {'inferred, not true': crossed, 'missed': missing})
    elif probability is not None:
        add_legend(
            figure, {
                'interaction': dict(color=INK, lw=2.2),
                'doubtful': dict(color=INK, lw=2.2, alpha=0.3)
            })
    return figure


def _draw_edges(ax: Axes, edges: np.ndarray, types: np.ndarray, color: str, *,
                place: np.ndarray, scale: float, numbered: bool,
                opacity: Optional[np.ndarray] = None, linestyle: Any = '-',
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


def plot_adjacency(edge_index: Array, probability: Array,
                   particles: Sequence[Any]) -> Figure:
    r"""Draw how probable interactions of one system are, a heat map per layer;
    pairs without a candidate edge are beige.

    Args:
        edge_index: Candidate edges :obj:`[2, E]`.
        probability: Of a type other than 0, :obj:`[E, L]`.
        particles: A name per particle.
    """
    (sender, receiver), values = to_array(edge_index), to_array(probability)
    num_layers, num_particles = values.shape[1], len(particles)
    matrix = np.full((num_layers, num_particles, num_particles), np.nan)
    matrix[:, receiver, sender] = values.T
    ticks = range(0, num_particles, -(-num_particles // MOST_NAMES))
    texts = [plain(particles[tick]) for tick in ticks]
    upright = max(map(len, texts)) <= 3
    figure, axes = make_panels(num_layers, 3.2)
    for layer, ax in enumerate(axes):
        image = ax.imshow(matrix[layer], cmap='Blues', vmin=0, vmax=1)
        ax.set_facecolor(NO_EDGE)
        name_layer(ax, f'layer {layer}', layer_color(layer))
        ax.set_xticks(ticks, texts, rotation=0 if upright else 90)
        ax.set_yticks(ticks, texts)
        label(ax, 'sender', 'receiver')
        pale_ticks(ax)
    _add_scale(figure, axes, image)
    return figure


def plot_changes(changes: pd.DataFrame) -> Figure:
    """Draw how probable interactions are in each window, a heat map per layer,
    of the pairs that change most.

    Args:
        changes: As :func:`~pyg_fnri.convert.to_changes` makes it.
    """
    ends = zip(changes['sender'].astype(str), changes['receiver'].astype(str))
    changes = changes.assign(pair=[' '.join(sorted(pair)) for pair in ends])
    # Both directions of a pair, where they are alike, are one row.
    rows = changes.drop_duplicates(
        [*changes.columns.drop(['sender', 'receiver'])])
    between = ' \u2013 ' if len(rows) < len(changes) else ' \u2192 '
    changes = rows.drop(columns='pair')
    figure, axes = make_panels(changes['layer'].nunique(), 4.0)
    layers = changes.groupby('layer', sort=False)
    for number, (ax, (layer, rows)) in enumerate(zip(axes, layers)):
        values = rows.iloc[:, 4:]
        spread = values.std(axis=1).fillna(0).sort_values(kind='stable')
        kept = spread.index[-MOST_NAMES:].sort_values()
        values = values.loc[kept]
        image = ax.imshow(values, cmap='Blues', vmin=0, vmax=1, aspect='auto',
                          interpolation='none')
        ax.set_facecolor(NO_EDGE)
        name = layer if isinstance(layer, str) else f'layer {layer}'
        name_layer(ax, name, layer_color(number))
        pairs = rows.loc[kept, ['sender', 'receiver']].astype(str)
        texts = pairs.agg(between.join, axis=1).map(plain)
        ax.set_yticks(range(len(kept)), texts)
        ticks = range(0, values.shape[1], -(-values.shape[1] // 4))
        ax.set_xticks(ticks, [str(values.columns[tick]) for tick in ticks])
        label(ax, 'first frame of the window')
        pale_ticks(ax)
    _add_scale(figure, axes, image)
    return figure


def _add_scale(figure: Figure, axes: Sequence[Axes], image: Any) -> None:
    bar = figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label('probability of a type other than 0', fontsize=9, color=INK)
    pale_ticks(bar.ax)
    add_legend(figure, {'no candidate edge': dict(color=NO_EDGE, lw=8)})
