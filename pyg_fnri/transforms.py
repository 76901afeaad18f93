"""Transforms that turn a stored system into what a model is trained on."""
import copy
from typing import Any, Optional

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform

from pyg_fnri.candidates import nearest_neighbours, within_radius


class SplitTrajectory(BaseTransform):
    r"""Splits a trajectory into what is observed and what is to be predicted.

    The paper (section 3, "compression models") shows the first half of a
    trajectory to the encoder and lets the decoder predict the second half:

    - `x` becomes the **first** `num_observed` frames,
    - `y` becomes the **last** `num_predicted` frames.

    Frames between the two are dropped: of 99 frames,
    :obj:`SplitTrajectory(49)` keeps frames 0 to 48 in `x` and 50 to 98 in `y`.
    The two halves never overlap.

    It treats every particle alike, so it can also be applied to a whole
    :class:`~torch_geometric.data.Batch`, which `batchwise` declares.

    Args:
        num_observed (int): The number of frames the encoder sees.
        num_predicted (int, optional): The number of frames of the
            continuation. (default: `num_observed`)

    Shapes:
        - **input:** `x` :math:`(|\mathcal{V}|, T, F)`
        - **output:** `x` :math:`(|\mathcal{V}|, T_{observed}, F)`,
          `y` :math:`(|\mathcal{V}|, T_{predicted}, F)`
    """
    #: Transforming a batch equals batching the transformed systems.
    batchwise = True

    def __init__(
        self,
        num_observed: int,
        num_predicted: Optional[int] = None,
    ) -> None:
        if num_predicted is None:
            num_predicted = num_observed
        for name, value in [('num_observed', num_observed),
                            ('num_predicted', num_predicted)]:
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f'{name} must be an integer, not {value!r}.')
            if value < 1:
                raise ValueError(f'{name} must be at least 1, not {value}.')
        self.num_observed = num_observed
        self.num_predicted = num_predicted

    def forward(self, data: Any) -> Data:
        x = data.x if 'x' in data else None
        if x is None or x.dim() != 3:
            found = 'missing' if x is None else f'{list(x.shape)}'
            raise ValueError(f'{self} needs trajectories x of shape '
                             f'[num_particles, num_steps, num_features], but '
                             f'x is {found}.')
        num_steps = x.size(1)
        if num_steps < self.num_observed + self.num_predicted:
            raise ValueError(
                f'{self} needs trajectories of at least '
                f'{self.num_observed + self.num_predicted} steps, but these '
                f'have {num_steps}; ask for fewer frames.')
        data.x = x[:, :self.num_observed]
        data.y = x[:, num_steps - self.num_predicted:]
        return data

    def __repr__(self) -> str:
        return (f'{self.__class__.__name__}({self.num_observed}, '
                f'num_predicted={self.num_predicted})')


class ReconstructTrajectory(SplitTrajectory):
    r"""Lets a model reconstruct what it observes, rather than predict: both
    `x` and `y` become the first `num_observed` frames, as in NRI's training.

    Graphs may then come to compress trajectories instead of meaning
    interactions (section 3 of the paper).

    Args:
        num_observed (int): The number of frames.
    """
    def __init__(self, num_observed: int) -> None:
        super().__init__(num_observed)

    def forward(self, data: Any) -> Data:
        data = super().forward(data)
        data.y = data.x
        return data

    def __repr__(self) -> str:
        return f'{self.__class__.__name__}({self.num_observed})'


class NearestNeighbours(BaseTransform):
    r"""Keeps the candidate edges from the particles that come closest to each
    receiver, :func:`~pyg_fnri.candidates.nearest_neighbours`.

    True edge types and all else that belongs to an edge are kept with it. To
    do this once and not on each access, pass it as a data set's
    `pre_transform`.

    Args:
        num_neighbours (int): The number of senders of each receiver.
        num_observed (int, optional): Frames to look at, from the first on;
            those that a model is to predict are none of them.
            (default: all frames in `x`)
        num_dims (int, optional): The number of features that are positions.
            (default: the first half of them)
        force_undirected (bool): Whether to keep the reverse of each edge too.
            (default: `False`)
    """
    def __init__(
        self,
        num_neighbours: int,
        num_observed: Optional[int] = None,
        num_dims: Optional[int] = None,
        force_undirected: bool = False,
    ) -> None:
        if num_neighbours < 1:
            raise ValueError(f'num_neighbours must be at least 1, not '
                             f'{num_neighbours}.')
        self.num_neighbours = num_neighbours
        self.num_observed = num_observed
        self.num_dims = num_dims
        self.force_undirected = force_undirected

    def forward(self, data: Any) -> Data:
        _check_one_system(self, data)
        return _keep_edges(
            data,
            nearest_neighbours(data.x, self.num_neighbours, self.num_observed,
                               self.num_dims, self.force_undirected))

    def __repr__(self) -> str:
        return (f'{self.__class__.__name__}({self.num_neighbours}, '
                f'num_observed={self.num_observed}, '
                f'num_dims={self.num_dims}, '
                f'force_undirected={self.force_undirected})')


class WithinRadius(BaseTransform):
    r"""Keeps the candidate edges between particles that come within a radius
    of each other, :func:`~pyg_fnri.candidates.within_radius`.

    True edge types and all else that belongs to an edge are kept with it. To
    do this once and not on each access, pass it as a data set's
    `pre_transform`.

    Args:
        radius (float): The radius, in the unit of the positions.
        num_observed (int, optional): Frames to look at, from the first on;
            those that a model is to predict are none of them.
            (default: all frames in `x`)
        num_dims (int, optional): The number of features that are positions.
            (default: the first half of them)
    """
    def __init__(
        self,
        radius: float,
        num_observed: Optional[int] = None,
        num_dims: Optional[int] = None,
    ) -> None:
        if not radius > 0:
            raise ValueError(f'radius must be above 0, not {radius}.')
        self.radius = radius
        self.num_observed = num_observed
        self.num_dims = num_dims

    def forward(self, data: Any) -> Data:
        _check_one_system(self, data)
        return _keep_edges(
            data,
            within_radius(data.x, self.radius, self.num_observed,
                          self.num_dims))

    def __repr__(self) -> str:
        return (f'{self.__class__.__name__}({self.radius}, '
                f'num_observed={self.num_observed}, '
                f'num_dims={self.num_dims})')


def _check_one_system(transform: BaseTransform, data: Any) -> None:
    if isinstance(data, Batch):
        raise ValueError(f'{transform} measures distances within one system, '
                         f'but was given a batch of them; apply it to each '
                         f'system, as a transform of its data set.')
    if data.get('x') is None:
        raise ValueError(f'{transform} needs trajectories x, but the system '
                         f'has none.')


def _keep_edges(data: Data, edge_index: Tensor) -> Data:
    """The system with those of its edges that are also in `edge_index`."""
    if data.get('edge_index') is None:
        data.edge_index = edge_index
        return data
    num_nodes = data.x.size(0)
    number, other = (edge[1] * num_nodes + edge[0]
                     for edge in (data.edge_index, edge_index))
    return data.edge_subgraph(torch.isin(number, other))


def random_symmetries(data: Data, generator: torch.Generator) -> Data:
    """Turns and mirrors each system at random, by one of the symmetries of a
    square or cube around the origin: axes change places and signs. Forces that
    point along the line of a pair, and walls around the origin, stay what they
    are; gravity and the like do not.

    Args:
        data (Data): Systems with trajectories `x`, and `y` where there is
            one, of positions, then velocities, in D dimensions each,
            `[num_nodes, T, 2 D]`.
        generator (torch.Generator): Source of randomness.

    Returns:
        A copy that shares all other tensors.

    Raises:
        ValueError: If the number of features is odd.
    """
    num_features = data.x.size(-1)
    if num_features % 2:
        raise ValueError(f'Systems can be turned if their features are '
                         f'positions, then as many velocities, but they have '
                         f'{num_features} features.')
    device, num_dims = data.x.device, num_features // 2
    batch = data.batch if 'batch' in data else None
    num_systems = 1 if batch is None else data.num_graphs
    axis = torch.rand(num_systems, num_dims, generator=generator,
                      device=device).argsort(-1)
    sign = torch.randint(2, axis.size(), generator=generator, device=device)
    sign = 1 - 2 * sign.to(data.x.dtype)
    # Velocities as positions, [S, 1, 2 D].
    axis = torch.cat([axis, axis + num_dims], dim=-1).unsqueeze(1)
    sign = torch.cat([sign, sign], dim=-1).unsqueeze(1)
    if batch is not None:
        axis, sign = axis[batch], sign[batch]
    out = copy.copy(data)
    for name in ('x', 'y'):
        if name in data:
            value = data[name]
            out[name] = sign * value.gather(-1, axis.expand_as(value))
    return out
