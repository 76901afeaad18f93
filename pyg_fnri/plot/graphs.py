"""Multiplex graphs, as nodes and edges or as a matrix per layer."""
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Optional

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from pyg_fnri.plot.style import (INK, WRONG, Array, add_legend, fit_limits,
                                 label, layer_color, make_panels, name_layer,
                                 pale_ticks, plain, to_array, write_in_circle,
                                 write_name)

MISSED = (0, (4, 2.5))
#: Where there is no candidate edge; no shade of the map is like it.
NO_EDGE = '#F3E9DC'
#: With more particles, only some of them are named at the axes.
MOST_NAMES = 20


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
    num_particles = edges.max() + 1 if particles is None else len(particles)
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
    for ax, (layer, rows) in zip(axes, changes.groupby('layer', sort=False)):
        values = rows.iloc[:, 4:]
        spread = values.std(axis=1).fillna(0).sort_values(kind='stable')
        kept = spread.index[-MOST_NAMES:].sort_values()
        values = values.loc[kept]
        image = ax.imshow(values, cmap='Blues', vmin=0, vmax=1, aspect='auto',
                          interpolation='none')
        ax.set_facecolor(NO_EDGE)
        name_layer(ax, f'layer {layer}', layer_color(int(layer)))
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
