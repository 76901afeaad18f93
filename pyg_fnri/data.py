"""From arrays to PyG graphs: candidate edges, true edge types, trajectories.

Every other part of the library agrees with the conventions set here: `x` is
`[N, T, F]`, node first; `edge_index[0]` holds the senders `j` and
`edge_index[1]` the receivers `i`; column `l` of `edge_label` holds the edge
types of layer-graph `l`, 0 meaning no interaction.
"""
from typing import Optional, Union

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

Array = Union[Tensor, np.ndarray]

#: The most of the typical motion in a step that float32 may take away.
MAX_LOST = 0.01
#: If it also takes this share of the size of the system, which then is far from
#: the origin; else particles hardly move.
FAR_OFF = 1e-5
#: Beyond it, squares of distances are too large for float32.
MAX_SIZE = 1e15


def fully_connected(num_particles: int) -> Tensor:
    """Returns the graph that joins every particle to every other one.

    Edges are sorted by receiver (row 1), then by sender (row 0). The messages
    to one particle are therefore contiguous and of equal number, which lets
    an aggregation add them up without an index.

    Args:
        num_particles (int): The number `N` of particles, at least 2.

    Returns:
        `edge_index`, `[2, N * (N - 1)]` int64, without self loops.

    Raises:
        ValueError: If there are fewer than two particles.
    """
    if num_particles < 2:
        raise ValueError(
            f'A graph of interactions needs at least 2 particles, but '
            f'num_particles is {num_particles}.')
    receiver = torch.arange(num_particles).repeat_interleave(num_particles - 1)
    # Counting the other particles 0 .. N - 2, those from the receiver on are
    # one further than their count says.
    sender = torch.arange(num_particles - 1).repeat(num_particles)
    return torch.stack([sender + (sender >= receiver), receiver])


def adjacency_to_edge_label(adjacency: Array, edge_index: Tensor) -> Tensor:
    """Reads the type of every edge off one adjacency matrix per layer.

    The label of edge (sender `j`, receiver `i`) in layer `l` is
    `adjacency[l, i, j]`: row = receiver, column = sender. Matrices need not
    be symmetric. Interactions between pairs that `edge_index` does not join
    are left out.

    Args:
        adjacency (Tensor or ndarray): Edge types, `[L, N, N]`, integer or
            bool, with a zero diagonal; 0 = no interaction.
        edge_index (Tensor): Candidate edges, `[2, E]`.

    Returns:
        `edge_label`, `[E, L]` int64.

    Raises:
        TypeError: If the entries are neither integer nor bool.
        ValueError: If the shape is not `[L, N, N]`, an entry is negative, a
            particle acts on itself, or `edge_index` does not fit.
    """
    adjacency = _as_label(adjacency, 'The adjacency')
    if adjacency.dim() != 3 or adjacency.size(1) != adjacency.size(2):
        raise ValueError(f'The adjacency must be [num_layers, N, N], but its '
                         f'shape is {list(adjacency.shape)}.')
    if bool(adjacency.diagonal(dim1=1, dim2=2).any()):
        raise ValueError('The adjacency has entries on its diagonal, but a '
                         'particle cannot interact with itself; set them '
                         'to 0.')
    edge_index = _check_edge_index(edge_index, adjacency.size(1))
    sender, receiver = edge_index
    return adjacency[:, receiver, sender].t().contiguous()


def from_trajectory(
    x: Array,
    edge_label: Optional[Array] = None,
    edge_index: Optional[Array] = None,
    mass: Optional[Array] = None,
) -> Data:
    """Makes one system of an array of trajectories.

    Args:
        x (Tensor or ndarray): Trajectories `[N, T, F]` in physical units,
            floating point; positions first, then velocities (`F = 2 D`),
            where a model is to know which is which.
        edge_label (Tensor or ndarray, optional): The true edge types, either
            one row per edge, `[E, L]`, or one adjacency matrix per layer,
            `[L, N, N]`, see :func:`adjacency_to_edge_label`. Integer or bool,
            0 = no interaction. Leave out where the truth is not known.
        edge_index (Tensor or ndarray, optional): Candidate edges `[2, E]`,
            row 0 senders, row 1 receivers; their order is kept. By default
            every ordered pair of particles, :func:`fully_connected`.
        mass (Tensor or ndarray, optional): The mass of each particle, `[N]`,
            above 0. Leave out where they are not known, or all the same.

    Returns:
        A :class:`~torch_geometric.data.Data` with `x` (float32),
        `edge_index` (int64) and, if given, `edge_label` (`[E, L]` int64) and
        `mass` (`[N]` float32).

    Raises:
        TypeError: If an input is no array or its dtype is of the wrong kind.
        ValueError: If a shape does not fit, a number is not finite or too
            large for float32, in which little is left of motion far from the
            origin, a mass is not above 0, or an edge is out of range, a self
            loop or given twice.
    """
    x = _as_tensor(x, 'x')
    if not x.is_floating_point():
        raise TypeError(f'x must hold floating point numbers, but its dtype '
                        f'is {x.dtype}; convert it first.')
    if x.dim() != 3:
        raise ValueError(f'x must be [num_particles, num_steps, '
                         f'num_features], but its shape is {list(x.shape)}.')
    num_particles, num_steps, num_features = x.shape
    if num_particles < 2 or num_steps < 1 or num_features < 1:
        raise ValueError(
            f'A system needs at least 2 particles, 1 step and 1 feature, but '
            f'the shape of x, [num_particles, num_steps, num_features], is '
            f'{list(x.shape)}.')
    x = _in_single_precision(x)

    if edge_index is None:
        edge_index = fully_connected(num_particles)
    else:
        edge_index = _check_edge_index(edge_index, num_particles)
    data = Data(x=x, edge_index=edge_index)

    if edge_label is not None:
        label = _as_label(edge_label, 'edge_label')
        if label.dim() == 3:
            if label.size(1) != num_particles:
                raise ValueError(
                    f'The adjacency in edge_label must be [num_layers, '
                    f'{num_particles}, {num_particles}] for '
                    f'{num_particles} particles, but its shape is '
                    f'{list(label.shape)}.')
            label = adjacency_to_edge_label(label, edge_index)
        elif label.dim() != 2 or label.size(0) != edge_index.size(1):
            raise ValueError(
                f'edge_label must be [num_edges, num_layers] with '
                f'{edge_index.size(1)} edges or [num_layers, N, N], but its '
                f'shape is {list(label.shape)}.')
        if label.size(1) == 0:
            raise ValueError('edge_label has no layers; leave it out where '
                             'the truth is not known.')
        data.edge_label = label
    if mass is not None:
        data.mass = _check_mass(mass, num_particles)
    return data


def check_edges(edge_index: Tensor, num_particles: int) -> None:
    """Makes sure that candidate edges `[2, num_edges]` join two particles
    each, and none twice: what both directions of a pair, and sums of forces,
    rely on.

    Raises:
        ValueError: If an edge is out of range, a self loop or given twice.
    """
    if edge_index.numel() == 0:
        return
    if int(edge_index.min()) < 0 or int(edge_index.max()) >= num_particles:
        raise ValueError(
            f'edge_index must name particles 0 to {num_particles - 1}, but '
            f'it reaches from {int(edge_index.min())} to '
            f'{int(edge_index.max())}.')
    sender, receiver = edge_index
    if bool((sender == receiver).any()):
        loop = int(sender[sender == receiver][0])
        raise ValueError(f'edge_index joins particle {loop} to itself; remove '
                         f'the self loops.')
    if (receiver * num_particles + sender).unique().numel() < sender.numel():
        raise ValueError('edge_index holds an edge twice; remove the '
                         'duplicates, e.g. with torch_geometric.utils.'
                         'coalesce.')


def _in_single_precision(x: Tensor) -> Tensor:
    """Trajectories as float32, if that leaves their motion as it is."""
    out = x.to(torch.float32)
    if not bool(out.isfinite().all()):
        where = (~out.isfinite()).nonzero()[0].tolist()
        raise ValueError(
            f'x must hold finite float32 numbers, but the one at [particle, '
            f'step, feature] = {where} is {out[tuple(where)].item()}.')
    if bool((out.abs() > MAX_SIZE).any()):
        raise ValueError(
            f'x holds numbers of up to {out.abs().max().item():.3g}, whose '
            f'squares are too large for float32; take a unit in which they '
            f'are nearer to 1.')
    if x.dtype != torch.float64 or x.size(1) < 2:
        return out
    # Of all coordinates together: one of them may rest.
    positions = slice(None, x.size(2) // 2 if x.size(2) % 2 == 0 else None)
    path, rounded = x[..., positions], out[..., positions].double()
    step = path.diff(dim=1)
    lost = (rounded.diff(dim=1) - step).abs().mean((0, 1)).max()
    moved = step.abs().mean((0, 1)).max()
    spread = (path.amax((0, 1)) - path.amin((0, 1))).max()
    if lost > MAX_LOST * moved and lost > FAR_OFF * spread:
        raise ValueError(
            f'x holds positions of up to {path.abs().max().item():.10g} that '
            f'change by {moved.item():.3g} from one step to the next: in '
            f'float32, which keeps 7 digits, little is left of that. Subtract '
            f'one offset, such as their mean, from the positions of all '
            f'particles.')
    return out


def _as_tensor(value: Array, name: str) -> Tensor:
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in 'biuf':
            raise TypeError(f'{name} must hold numbers, but its dtype is '
                            f'{value.dtype}.')
        # A copy: the system must not change when the user's array does.
        return torch.tensor(value)
    if isinstance(value, Tensor):
        return value.detach().clone()
    raise TypeError(f'{name} must be a tensor or a numpy array, not '
                    f'{type(value).__name__}.')


def _as_label(value: Array, name: str) -> Tensor:
    label = _as_tensor(value, name)
    if label.is_floating_point() or label.is_complex():
        raise TypeError(f'{name} must hold integer edge types, but its dtype '
                        f'is {label.dtype}; convert it first.')
    label = label.to(torch.int64)
    if bool((label < 0).any()):
        raise ValueError(f'{name} must hold edge types 0, 1, 2, ..., but the '
                         f'smallest one is {int(label.min())}.')
    return label


def _check_mass(value: Array, num_particles: int) -> Tensor:
    mass = _as_tensor(value, 'mass')
    if mass.dtype == torch.bool or mass.is_complex():
        raise TypeError(f'mass must hold real numbers, but its dtype is '
                        f'{mass.dtype}.')
    if mass.size() != (num_particles, ):
        raise ValueError(f'mass must be [{num_particles}], one number for each '
                         f'particle, but its shape is {list(mass.shape)}.')
    mass = mass.to(torch.float32)
    wrong = ~(mass.isfinite() & (mass > 0))
    if bool(wrong.any()):
        where = int(wrong.nonzero()[0])
        raise ValueError(
            f'mass must hold finite float32 numbers above 0, but that of '
            f'particle {where} is {mass[where].item()}; leave masses out where '
            f'they are not known.')
    return mass


def _check_edge_index(value: Array, num_particles: int) -> Tensor:
    edge_index = _as_tensor(value, 'edge_index')
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise TypeError(f'edge_index must hold integers (int64 or int32), but '
                        f'its dtype is {edge_index.dtype}.')
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f'edge_index must be [2, num_edges], but its shape '
                         f'is {list(edge_index.shape)}.')
    edge_index = edge_index.to(torch.int64)
    check_edges(edge_index, num_particles)
    return edge_index
