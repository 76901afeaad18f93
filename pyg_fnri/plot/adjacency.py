"""How probable each interaction is, as a matrix per layer."""
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from pyg_fnri.plot.arrays import check_count, finite_array
from pyg_fnri.plot.edges import edge_rows
from pyg_fnri.plot.style import INK, LAYER_COLORS, PALE, make_panels

Array = Union[Tensor, np.ndarray]

#: Where there is no candidate edge; no shade of the map is like it.
NO_EDGE = '#F3E9DC'
#: With more particles, only some of them are named at the axes.
MOST_NAMES = 20


def plot_adjacency(
    edge_index: Array,
    probability: Array,
    *,
    names: Optional[Sequence[str]] = None,
    particles: Optional[Sequence[Any]] = None,
    label: str = 'probability',
) -> Figure:
    r"""Draw a heat map per layer of one system: the row is the receiver, the
    column the sender, as in :func:`~pyg_fnri.convert.to_adjacency`. Pairs
    without a candidate edge are beige.

    Args:
        edge_index (torch.Tensor): Candidate edges :obj:`[2, E]`.
        probability (torch.Tensor): Probability of each edge and layer,
            :obj:`[E, L]`, such as that of any interaction, 1 minus that of
            type 0.
        names (Sequence[str], optional): A name per layer.
        particles (Sequence, optional): A name per particle.
            (default: 0, 1, ..., as many as the edges ask for)
        label (str): What the shades mean. (default: :obj:`'probability'`)

    Raises:
        ValueError: If shapes do not fit together, an edge is out of range or
            a self loop, or a value is not between 0 and 1.
    """
    edges = edge_rows(edge_index)
    num_edges, least = len(edges), int(edges.max()) + 1
    values = finite_array('probability', probability, (num_edges, None),
                          f'[{num_edges}, num_layers]')
    if not values.size or values.min() < 0 or values.max() > 1:
        raise ValueError('probability must hold numbers from 0 to 1 of at '
                         'least one layer.')
    num_layers = values.shape[1]
    if names is None:
        names = [f'layer {layer}' for layer in range(num_layers)]
    check_count('names', len(names), num_layers, 'layers')
    if particles is None:
        particles = range(least)
    num_particles = len(particles)
    if num_particles < least:
        raise ValueError(f'particles has {num_particles} names, but '
                         f'edge_index names particle {least - 1}.')

    matrix = np.full((num_layers, num_particles, num_particles), np.nan)
    matrix[:, edges[:, 1], edges[:, 0]] = values.T
    step = -(-num_particles // MOST_NAMES)
    ticks = range(0, num_particles, step)
    texts = [str(particles[tick]) for tick in ticks]
    upright = max(map(len, texts)) <= 3
    figure, axes = make_panels(num_layers, 3.2)
    for layer, ax in enumerate(axes):
        image = ax.imshow(matrix[layer], cmap='Blues', vmin=0, vmax=1)
        ax.set_facecolor(NO_EDGE)
        ax.set_title(names[layer], fontsize=12, fontweight='bold',
                     color=LAYER_COLORS[layer % len(LAYER_COLORS)])
        ax.set_xticks(ticks, texts, rotation=0 if upright else 90)
        ax.set_yticks(ticks, texts)
        ax.set_xlabel('sender', fontsize=9, color=INK)
        ax.set_ylabel('receiver', fontsize=9, color=INK)
        ax.tick_params(color=PALE, labelcolor=INK, labelsize=8)
        ax.spines[:].set_color(PALE)
    bar = figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label(label, fontsize=9, color=INK)
    bar.ax.tick_params(color=PALE, labelcolor=INK, labelsize=8)
    bar.outline.set_edgecolor(PALE)
    return figure
