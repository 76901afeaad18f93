"""Units: physical ones outside a model, scaled ones inside; known masses."""
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.data import Data

#: Typical masses that networks and fits can work with, and their inverses.
MAX_MASS = 1e4


class Scaling(torch.nn.Module, ABC):
    r"""Maps physical units to a model's, :math:`(x - \text{offset}) /
    \text{scale}`, and back. Positions, the first half of the features, share
    one offset and scale, and so do velocities; of an odd number, each feature
    has its own."""
    offset: Tensor
    scale: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.register_buffer('offset', torch.zeros(num_features))
        self.register_buffer('scale', torch.ones(num_features))

    @abstractmethod
    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Offset and scale, both scalars, of a quantity's values."""

    @torch.no_grad()
    def fit(self, x: Tensor) -> 'Scaling':
        """Sets both by trajectories :obj:`[num_nodes, T, num_features]`."""
        self._check(x)
        offsets: list[Tensor] = []
        scales: list[Tensor] = []
        for quantity in split_quantities(x):
            offset, scale = self.statistics(quantity)
            size = quantity.size(-1)
            if not (offset.isfinite() and scale.isfinite() and scale > 0):
                raise ValueError(
                    f"Features {len(offsets)} to {len(offsets) + size - 1} are "
                    f"constant or not finite; remove or mend them.")
            offsets += [offset] * size
            scales += [scale] * size
        self.offset.copy_(torch.stack(offsets))
        self.scale.copy_(torch.stack(scales))
        return self

    def forward(self, x: Tensor) -> Tensor:
        """From physical units."""
        self._check(x)
        return (x - self.offset) / self.scale

    def inverse(self, x: Tensor) -> Tensor:
        """Back to physical units."""
        return x * self.scale + self.offset

    def _check(self, x: Tensor) -> None:
        # A single feature would otherwise be spread over all of them.
        if x.size(-1) != self.num_features:
            raise ValueError(f"Expected {self.num_features} features per "
                             f"particle, but got the shape {list(x.size())}.")


class MinMaxScaling(Scaling):
    """Extremes to -1 and 1: the units of the paper's tables."""
    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        low, high = x.aminmax()
        return (high + low) / 2, (high - low) / 2


class StandardScaling(Scaling):
    """Mean 0 and standard deviation 1: better conditioned for training."""
    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        # Batched sums in double: millions of values.
        std, mean = torch.std_mean(x.double())
        return mean.to(x.dtype), std.to(x.dtype)


def split_quantities(x: Tensor) -> Sequence[Tensor]:
    """Positions and velocities; of an odd number, each feature by itself."""
    num_features = x.size(-1)
    return torch.split(x, num_features // 2 if num_features % 2 == 0 else 1, -1)


def known_masses(data: Data) -> Optional[Tensor]:
    """The masses :obj:`data.mass`, :obj:`[num_nodes]`, or None where not given.
    In kg, laws are in N; in units of a typical mass, in which networks learn
    best, they are accelerations of a typical particle."""
    mass: Optional[Tensor] = data.get('mass')
    if mass is None:
        return None
    if mass.size() != data.x.size()[:1]:
        # One mass would otherwise be spread over all particles.
        raise ValueError(f"Expected a mass for each of the {data.x.size(0)} "
                         f"particles, but got the shape {list(mass.size())}.")
    # Not finite, either, if any mass is not both finite and above 0.
    typical = mass.double().log().mean().exp().item()
    if not 1 / MAX_MASS <= typical <= MAX_MASS:
        raise ValueError(f"Expected masses above 0, in units of a typical one, "
                         f"but they are {mass.min():.3g} to {mass.max():.3g}.")
    return mass.to(data.x.dtype)


def per_mass(edge_attr: Tensor, data: Data,
             terms: Sequence[str] = ()) -> Tensor:
    """Weights :obj:`[num_edges, num_channels]` over the receiver's mass,
    :math:`z_{ij,k} / m_i`, or, with the term gravity, times the sender's;
    unchanged where :obj:`data` has no :obj:`mass`."""
    mass = known_masses(data)
    if mass is None:
        return edge_attr
    if 'gravity' in terms:
        return edge_attr * mass[data.edge_index[0]].unsqueeze(-1)
    return edge_attr / mass[data.edge_index[1]].unsqueeze(-1)
