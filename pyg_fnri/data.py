"""From arrays to PyG graphs: candidate edges, true edge types, trajectories.

The conventions of the library: `x` is `[N, T, F]`; `edge_index` holds senders
`j`, then receivers `i`; column `l` of `edge_label` holds the edge types of
layer-graph `l`, 0 meaning no interaction.
"""
from typing import Any, Optional, Union

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

Array = Union[Tensor, np.ndarray]
#: Fewer particles have no order; orders that neighbours are compared with.
FEW, NUM_ORDERS = 4, 8


def fully_connected(num_particles: int) -> Tensor:
    """Joins every particle to every other one, `edge_index`
    `[2, N * (N - 1)]` int64, sorted by receiver (row 1), then by sender."""
    receiver = torch.arange(num_particles).repeat_interleave(num_particles - 1)
    # Of the others, 0 .. N - 2, those from the receiver on are one further.
    sender = torch.arange(num_particles - 1).repeat(num_particles)
    return torch.stack([sender + (sender >= receiver), receiver])


def adjacency_to_edge_label(adjacency: Array, edge_index: Tensor) -> Tensor:
    """Reads `edge_label` `[E, L]` int64 off one adjacency matrix per layer:
    that of edge (sender `j`, receiver `i`) in layer `l` is `adjacency[l, i,
    j]`. Interactions of pairs that `edge_index` does not join are left out.

    Args:
        adjacency: Edge types, `[L, N, N]`, integer or bool, with a zero
            diagonal; need not be symmetric.
        edge_index: Candidate edges, `[2, E]`.
    """
    adjacency = _as_types(adjacency, 'adjacency')
    if adjacency.dim() != 3 or adjacency.size(1) != adjacency.size(2) or bool(
            adjacency.diagonal(dim1=1, dim2=2).any()):
        raise ValueError(f'The adjacency must be [num_layers, N, N] with a '
                         f'zero diagonal, but is {list(adjacency.shape)}.')
    check_edges(edge_index, adjacency.size(1))
    sender, receiver = edge_index
    return adjacency[:, receiver, sender].t().contiguous()


def from_trajectory(x: Array, edge_label: Optional[Array] = None,
                    edge_index: Optional[Array] = None,
                    mass: Optional[Array] = None,
                    axes: Optional[str] = None) -> Data:
    """Makes one system of an array of trajectories.

    Args:
        x: Trajectories `[N, T, F]` in physical units, floating point;
            positions first, then velocities (`F = 2 D`).
        edge_label: The true edge types, integer or bool, 0 = no interaction:
            one row per edge, `[E, L]`, or one adjacency matrix per layer,
            `[L, N, N]`, see :func:`adjacency_to_edge_label`.
        edge_index: Candidate edges `[2, E]`, in the order to keep; by default
            :func:`fully_connected`.
        mass: The mass of each particle, `[N]`, above 0, where known.
        axes: The order of those of `x`, by default `'NTF'`.

    Returns:
        Copies: `x` (float32), `edge_index` (int64) and, if given,
        `edge_label` (`[E, L]` int64) and `mass` (`[N]` float32).
    """
    x = _as_tensor(x, 'x', 'float', 'bfloat')
    if x.dim() != 3 or x.size(0) < 2 or x.numel() == 0:
        raise ValueError(f'x must be [N, T, F] of at least 2 particles, 1 step '
                         f'and 1 feature, but is {list(x.shape)}.')
    x = x.permute(axis_order(x.double().cpu().numpy(), axes))
    num_particles = x.size(0)
    if edge_index is None:
        edge_index = fully_connected(num_particles)
    else:
        edge_index = _as_tensor(edge_index, 'edge_index', 'int', 'uint').long()
        check_edges(edge_index, num_particles)
    data = Data(x=_in_single_precision(x), edge_index=edge_index)

    if edge_label is not None:
        label = _as_types(edge_label, 'edge_label')
        if label.dim() == 3 and label.size(1) == num_particles:
            label = adjacency_to_edge_label(label, edge_index)
        num_edges = edge_index.size(1)
        if label.dim() != 2 or len(label) != num_edges or label.size(1) == 0:
            raise ValueError(
                f'edge_label must be [{num_edges}, L] for as many '
                f'edges, or [L, {num_particles}, {num_particles}], '
                f'but is {list(label.shape)}.')
        data.edge_label = label
    if mass is not None:
        mass = _as_tensor(mass, 'mass', 'int', 'uint', 'float',
                          'bfloat').float()
        if mass.size() != (num_particles, ) or not bool(
            (mass.isfinite() & (mass > 0)).all()):
            raise ValueError(f'mass must be [{num_particles}] finite numbers '
                             f'above 0, but is {list(mass.shape)}, from '
                             f'{mass.min():g} to {mass.max():g} in float32.')
        data.mass = mass
    return data


def axis_order(x: np.ndarray, axes: Optional[str] = None) -> list[int]:
    """Where the axes S (systems), N (particles), T (times) and F (features) of
    an array are. If they are not named, makes sure that times are not where
    particles should be: neighbours on that axis would be far more alike than
    others are, which particles in any order are not."""
    names, shape = 'SNTF'[-x.ndim:], list(x.shape)
    if axes is not None:
        order = axes.upper().replace('D', 'F')
        if sorted(order) != sorted(names):
            raise ValueError(f"axes is '{axes}', but must name the {names} of "
                             f"{shape}, as {names.replace('NT', 'TN')}.")
        return [order.index(axis) for axis in 'SNTF' if axis in order]
    if x.ndim not in (3, 4) or min(x.shape) == 0 or x.shape[-3] < FEW:
        return [*range(x.ndim)]
    particle, time = (_roughness(np.moveaxis(x, axis, 0)) for axis in (-3, -2))
    # Of n points in a row, it is 3 / (n + 1).
    in_a_row = 3 / (x.shape[-3] + 1)
    if particle < (1 + in_a_row) / 2 and particle < 0.7 * time:
        one, other = shape[-3:-1]
        raise ValueError(
            f"An array {shape} is read as {names}, {one} particles at {other} "
            f"times, but seems to be {other} particles at {one} times, "
            f"{list(x.swapaxes(-3, -2).shape)}, with time first; name "
            f"axes='{names.replace('NT', 'TN')}', or axes='{names}' if it is "
            f"right.")
    return [*range(x.ndim)]


def _roughness(x: np.ndarray) -> float:
    """How far neighbours on the first axis are apart, over how far others
    are; about 1 in any order that says nothing, NaN where all are alike."""
    size, rng = len(x), np.random.default_rng(0)
    orders = [rng.permutation(size) for _ in range(NUM_ORDERS)]
    # One in so many meets itself.
    others = np.nanmean([np.nanmean(abs(x - x[order])) for order in orders])
    others *= size / max(1, size - 1)
    step = np.nanmean(abs(np.diff(x, axis=0))) if size > 1 else others
    return float(step / others) if others > 0 else np.nan


def check_edges(edge_index: Tensor, num_particles: int) -> None:
    """Makes sure that edges join two particles each, and none twice."""
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f'edge_index must be [2, num_edges], but is '
                         f'{list(edge_index.shape)}.')
    sender, receiver = edge_index
    number = receiver * num_particles + sender
    if bool(((edge_index < 0) | (edge_index >= num_particles)).any()) or bool(
        (sender == receiver).any()) or number.unique().numel() < number.numel():
        raise ValueError(f'edge_index must join different particles from 0 to '
                         f'{num_particles - 1}, none twice; remove the others.')


def _in_single_precision(x: Tensor) -> Tensor:
    """Trajectories as float32, if that leaves their motion as it is."""
    out = x.to(torch.float32)
    # Squares of distances beyond it are too large for float32.
    wrong = ~(out.abs() <= 1e15)
    if bool(wrong.any()):
        where = wrong.nonzero()[0].tolist()
        raise ValueError(
            f'x must hold finite float32 numbers of at most 1e15, but that at '
            f'[particle, step, feature] = {where} is {x[tuple(where)].item()}; '
            f'cut out missing numbers, or take a larger unit.')
    if x.dtype != torch.float64 or x.size(1) < 2:
        return out
    # Of all coordinates together: one of them may rest.
    positions = slice(None, x.size(2) // 2 if x.size(2) % 2 == 0 else None)
    path, rounded = x[..., positions], out[..., positions].double()
    step = path.diff(dim=1)
    lost = (rounded.diff(dim=1) - step).abs().mean((0, 1)).max()
    moved = step.abs().mean((0, 1)).max()
    spread = (path.amax((0, 1)) - path.amin((0, 1))).max()
    # 1 % of the motion, but not of particles that hardly move near the origin.
    if lost > 0.01 * moved and lost > 1e-5 * spread:
        raise ValueError(
            f'x holds positions of up to {path.abs().max().item():.10g} that '
            f'change by {moved.item():.3g} from one step to the next, of which '
            f'float32 keeps little; subtract their mean, say, from all '
            f'positions.')
    return out


def _as_types(value: Any, name: str) -> Tensor:
    types = _as_tensor(value, name, 'int', 'uint', 'bool').long()
    if bool((types < 0).any()):
        raise ValueError(f'{name} must hold edge types 0, 1, 2, ..., but the '
                         f'smallest one is {int(types.min())}.')
    return types


def _as_tensor(value: Any, name: str, *kinds: str) -> Tensor:
    """A copy as a tensor, if all numbers are there and of these kinds."""
    if not isinstance(value, Tensor):
        masked = np.ma.asarray(value)
        if np.ma.is_masked(masked):
            raise ValueError(f'{name} has masked numbers; fill or cut them.')
        array = np.asarray(masked)
        kind, size = array.dtype.kind, min(array.dtype.itemsize, 8)
        if kind in 'biuf':  # In the byte order and of a size that torch knows.
            array = array.astype(f'{kind}{size}', order='C')
        value = torch.from_numpy(array)
    if not str(value.dtype).removeprefix('torch.').startswith(kinds):
        raise TypeError(f'{name} must hold {" or ".join(kinds)}, but its dtype '
                        f'is {value.dtype}; convert it first.')
    return torch.clone(value.detach())
