"""A decoder's layer that knows what a force is."""
import math
from typing import Any, Optional

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from pyg_fnri.nn.aggr import ScatterSum
from pyg_fnri.nn.force_law import ForceLaw
from pyg_fnri.nn.scaling import Scaling


class ForceLawDecoder(MessagePassing):
    r"""Newton's equations with one central pairwise law per channel,

    .. math::
        m_i \ddot{\mathbf{r}}_i = \sum_{j \neq i} \sum_k z_{ij,k}
        f_k(r_{ij}) \frac{\mathbf{r}_i - \mathbf{r}_j}{r_{ij}},

    integrated over the interval between two frames by velocity Verlet. Takes
    the place of :class:`MultiplexConv` inside a :class:`RolloutDecoder`. Not
    in the paper: it knows that positions are followed by velocities, and that
    forces are central and depend on distance alone; the paper's decoder has
    to learn all of that.

    Masses :math:`m_i`, where they are known, come with the graph: edge
    attributes are then :math:`z_{ij,k} / m_i`, see
    :func:`~pyg_fnri.nn.per_mass`. Otherwise all are alike, and laws are
    accelerations.

    Args:
        law (ForceLaw): The laws, one per channel of the latent graph.
        scaling (Scaling): Units of the model that the layer is part of.
        interval (float, optional): Time between two frames, in second.
            (default: :obj:`0.1`)
        num_substeps (int, optional): Steps of the integrator per interval.
            (default: :obj:`2`)
        half_width (float, optional): Where walls reflect, in metre from the
            origin along each axis, if there are any known.
            (default: :obj:`None`)
        **kwargs (optional): Arguments of
            :class:`torch_geometric.nn.MessagePassing`.

    Raises:
        ValueError: If the features are not positions and as many velocities,
            or an argument is out of range.

    Shapes:
        - **input:** states :math:`(|\mathcal{V}|, 2D)` or
          :math:`(|\mathcal{V}|, T, 2D)` in the model's units, edge indices
          :math:`(2, |\mathcal{E}|)`, edge attributes
          :math:`(|\mathcal{E}|, C)`
        - **output:** the change of each state, as the input
    """
    scale: Tensor

    def __init__(
        self,
        law: ForceLaw,
        scaling: Scaling,
        interval: float = 0.1,
        num_substeps: int = 2,
        half_width: Optional[float] = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault('aggr', ScatterSum())
        super().__init__(node_dim=0, **kwargs)
        if scaling.num_features % 2:
            raise ValueError(
                f"ForceLawDecoder needs positions followed by as many "
                f"velocities, but particles have {scaling.num_features} "
                f"features.")
        if not 0 < interval < math.inf or num_substeps < 1:
            raise ValueError(f"Expected a positive interval and at least one "
                             f"substep, but got {interval} and "
                             f"{num_substeps}.")
        if half_width is not None and not half_width > 0:
            raise ValueError(f"Expected walls at a positive half_width, but "
                             f"got {half_width}; leave it out where there are "
                             f"none.")
        self.law = law
        self.scaling = scaling
        self.interval = interval
        self.num_substeps = num_substeps
        self.half_width = half_width
        self.edge_dim = law.num_channels
        #: Typical change of a free particle's state by forces in an interval.
        self.register_buffer('scale', torch.ones(scaling.num_features))

    def reset_parameters(self) -> None:
        """Sets all laws to zero."""
        super().reset_parameters()
        self.law.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor,
                edge_attr: Tensor) -> Tensor:
        """The change of each state in one interval.

        Args:
            x: States in the model's units, :obj:`[num_nodes, 2D]` or
                :obj:`[num_nodes, num_steps, 2D]`.
            edge_index: :obj:`[2, num_edges]`.
            edge_attr: Weight of each edge in each channel, :obj:`[num_edges,
                num_channels]`.

        Raises:
            ValueError: If the shapes do not fit.
        """
        num_features, num_channels = self.scaling.num_features, self.edge_dim
        if x.dim() not in (2, 3) or x.size(-1) != num_features:
            raise ValueError(f"Expected states of shape [num_nodes, "
                             f"{num_features}] or [num_nodes, num_steps, "
                             f"{num_features}], but got {list(x.size())}.")
        if edge_attr.size() != (edge_index.size(1), num_channels):
            # One row would otherwise be spread over all edges.
            raise ValueError(
                f"Expected edge attributes of shape [num_edges, "
                f"{num_channels}] (one row per edge, one weight per law), but "
                f"got {list(edge_attr.size())} for {edge_index.size(1)} "
                f"edges.")
        position, velocity = self.scaling.inverse(x).chunk(2, dim=-1)
        step = self.interval / self.num_substeps
        force = self._force(position, edge_index, edge_attr)
        for _ in range(self.num_substeps):
            velocity = velocity + step / 2 * force
            position = position + step * velocity
            if self.half_width is not None:
                position, velocity = reflect(position, velocity,
                                             self.half_width)
            force = self._force(position, edge_index, edge_attr)
            velocity = velocity + step / 2 * force
        return self.scaling(torch.cat([position, velocity], dim=-1)) - x

    def _force(self, position: Tensor, edge_index: Tensor,
               edge_attr: Tensor) -> Tensor:
        # propagate_type: (position: Tensor, edge_attr: Tensor)
        return self.propagate(edge_index, position=position,
                              edge_attr=edge_attr)

    def message(self, position_i: Tensor, position_j: Tensor,
                edge_attr: Tensor) -> Tensor:
        """The acceleration of receivers by senders."""
        offset = position_i - position_j  # [num_edges, (T,) D]
        # Nothing in any unit, but enough for gradients not to explode.
        nothing = self.law.min_distance / 3e4
        distance = offset.norm(dim=-1).clamp(min=nothing)
        law = self.law(distance)  # [C, num_edges, (T,)]
        weight = edge_attr.t().view(edge_attr.t().size() + (1, ) *
                                    (distance.dim() - 1))
        force = (weight * law).sum(0)
        return (force / distance).unsqueeze(-1) * offset

    def __repr__(self) -> str:
        return (f"{self.__class__.__name__}({self.law}, "
                f"interval={self.interval}, num_substeps={self.num_substeps}, "
                f"half_width={self.half_width})")


def reflect(position: Tensor, velocity: Tensor,
            half_width: float) -> tuple[Tensor, Tensor]:
    """Reflects what is beyond the walls, as the simulation does."""
    inside = position.clamp(-half_width, half_width)
    beyond = position != inside
    velocity = torch.where(beyond, -velocity.abs() * position.sign(), velocity)
    return 2 * inside - position, velocity
