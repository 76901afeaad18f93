"""Transforms that turn a stored system into what a model is trained on."""
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform


@dataclass(eq=False)
class SplitTrajectory(BaseTransform):
    """Splits a trajectory into what is observed, the **first** frames (`x`),
    and what is to be predicted, the **last** ones (`y`; by default as many), as
    in section 3 of the paper ("compression models"). Frames between the two are
    dropped: of 99, :obj:`SplitTrajectory(49)` keeps 0 to 48 and 50 to 98."""
    num_observed: int
    num_predicted: Optional[int] = None
    #: Transforming a batch equals batching the transformed systems.
    batchwise = True

    def __post_init__(self) -> None:
        if self.num_predicted is None:
            self.num_predicted = self.num_observed
        if min(self.num_observed, self.num_predicted) < 1:
            raise ValueError(f'{self} must keep 1 frame of each half or more.')

    def forward(self, data: Any) -> Data:
        x, num_predicted = data.x, self.num_predicted or self.num_observed
        least = self.num_observed + num_predicted
        if x.dim() != 3 or x.size(1) < least:
            raise ValueError(f'{self} needs [num_particles, num_steps, '
                             f'num_features] of at least {least} steps, but x '
                             f'is {list(x.shape)}; ask for fewer frames.')
        data.x = x[:, :self.num_observed]
        data.y = x[:, x.size(1) - num_predicted:]
        return data


class ReconstructTrajectory(SplitTrajectory):
    """Makes both `x` and `y` the first `num_observed` frames, as in NRI's
    training: graphs may then only compress (section 3 of the paper)."""
    def forward(self, data: Any) -> Data:
        data = super().forward(data)
        data.y = data.x
        return data


class NearPairs(BaseTransform):
    """Keeps the candidate edges between particles that come close, and what
    belongs to them; as a data set's `pre_transform`, once and for all.

    Args:
        num_observed: First frames of `x` to look at; by default all of them.
        num_dims: Features that are positions; by default the first half.
    """
    num_observed: Optional[int]
    num_dims: Optional[int]

    @abstractmethod
    def join(self, distance: Tensor) -> Tensor:
        """Joined receivers (rows) and senders (columns), `[N, N]` bool."""

    def forward(self, data: Any) -> Data:
        if isinstance(data, Batch):
            raise ValueError(f'{self} is for single systems: make it the '
                             f'transform of a data set.')
        joined = self.join(self._closest_approach(data.x))
        if data.edge_index is None:
            data.edge_index = joined.nonzero().flip(1).t().contiguous()
        sender, receiver = data.edge_index
        return data.edge_subgraph(joined[receiver, sender])

    def _closest_approach(self, x: Tensor) -> Tensor:
        """`[N, N]`, infinite on the diagonal."""
        num_particles, num_steps, num_features = x.shape
        num_observed, num_dims = self.num_observed, self.num_dims
        if num_observed is None:
            num_observed = num_steps
        if num_dims is None:
            num_dims, odd = divmod(num_features, 2)
            if odd:
                raise ValueError(f'x has {num_features} features: say by '
                                 f'num_dims how many are positions.')
        if not (1 <= num_observed <= num_steps
                and 1 <= num_dims <= num_features):
            raise ValueError(f'{self} must look at 1 to {num_steps} frames, 1 '
                             f'to {num_features} features of x.')
        closest = x.new_full((num_particles, num_particles), float('inf'))
        # By frame: no more than N x N numbers at a time.
        for frame in x[:, :num_observed, :num_dims].unbind(1):
            # Plain differences: by products, near distances lose their digits.
            distance = torch.cdist(frame, frame,
                                   compute_mode='donot_use_mm_for_euclid_dist')
            closest = torch.minimum(closest, distance)
        return closest.fill_diagonal_(float('inf'))


@dataclass(eq=False)
class NearestNeighbours(NearPairs):
    """Keeps the candidate edges from the `num_neighbours` particles that come
    closest to each receiver, and with `force_undirected` the reverse of each;
    of equally close ones the first. Others as with :class:`NearPairs`."""
    num_neighbours: int
    num_observed: Optional[int] = None
    num_dims: Optional[int] = None
    force_undirected: bool = False

    def __post_init__(self) -> None:
        if self.num_neighbours < 1:
            raise ValueError(f'{self} needs at least 1 neighbour.')

    def join(self, distance: Tensor) -> Tensor:
        # Stable: ties go to the lower number. The last is the particle itself.
        order = distance.sort(dim=1, stable=True).indices[:, :-1]
        joined = torch.zeros_like(distance, dtype=torch.bool)
        joined.scatter_(1, order[:, :self.num_neighbours], True)
        return joined | joined.t() if self.force_undirected else joined


@dataclass(eq=False)
class WithinRadius(NearPairs):
    """Keeps the candidate edges between particles that come within a radius,
    in the unit of the positions; the others as with :class:`NearPairs`."""
    radius: float
    num_observed: Optional[int] = None
    num_dims: Optional[int] = None

    def __post_init__(self) -> None:
        if not self.radius > 0:
            raise ValueError(f'{self} needs a radius above 0.')

    def join(self, distance: Tensor) -> Tensor:
        return distance <= self.radius
