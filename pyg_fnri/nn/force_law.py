"""Force laws as functions of distance, and layers that apply them."""
import math
from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from pyg_fnri.nn.aggr import ScatterSum
from pyg_fnri.nn.linear_step import Walls
from pyg_fnri.nn.multiplex_conv import check_edge_attr
from pyg_fnri.nn.scaling import Scaling
from pyg_fnri.nn.terms import Central, NodeTerm, PairTerm, ParticleTerm, Term


class ForceLaw(torch.nn.Module):
    r"""A law per channel, :math:`f_k(r)`, read off a table of accelerations at
    distances equally spaced in :math:`\log r`. Cubic convolution between them,
    constant beyond the ends: *linear* in its parameters. Not in the paper.

    Args:
        min_distance, max_distance: Ends of the table in metre.
        num_knots: Number of distances, at least 4.
    """
    def __init__(self, num_channels: int, min_distance: float = 0.03,
                 max_distance: float = 15.0, num_knots: int = 26) -> None:
        super().__init__()
        self.num_channels = num_channels
        self._set_range(min_distance, max_distance)
        self.num_knots = num_knots
        #: Acceleration in m/s^2 at each knot, positive where repulsive.
        self.value = torch.nn.Parameter(torch.empty(num_channels, num_knots))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        torch.nn.init.zeros_(self.value)

    def rescale(self, factor: float) -> None:
        # Numbers that are round stay so, there and back by powers of ten.
        self._set_range(*(float(f'{factor * end:.12g}')
                          for end in (self.min_distance, self.max_distance)))

    @torch.no_grad()
    def resample(self, num_knots: int) -> None:
        """Replaces the table by one of so many distances, read off it."""
        other = type(self)(self.num_channels, self.min_distance,
                           self.max_distance, num_knots).to(self.value)
        self.value = torch.nn.Parameter(self(other.knots))
        self.num_knots = num_knots

    def _set_range(self, min_distance: float, max_distance: float) -> None:
        if not 0 < min_distance < max_distance < math.inf:
            raise ValueError(f"Expected finite 0 < min_distance < max_distance,"
                             f" but got {min_distance} and {max_distance}.")
        self.min_distance = min_distance
        self.max_distance = max_distance

    def get_extra_state(self) -> Tensor:
        """Both ends of the table: a buffer would lose digits in half."""
        return torch.tensor([self.min_distance, self.max_distance],
                            dtype=torch.double)

    def set_extra_state(self, state: Tensor) -> None:
        self._set_range(*state.tolist())

    @property
    def knots(self) -> Tensor:
        """The table's distances in metre."""
        return torch.logspace(math.log10(self.min_distance),
                              math.log10(self.max_distance), self.num_knots,
                              dtype=self.value.dtype, device=self.value.device)

    def forward(self, distance: Tensor) -> Tensor:
        """Accelerations :obj:`[num_channels, *]` in m/s^2, positive where
        repulsive, at distances :obj:`[*]` in metre."""
        first, weight = self.interpolation(distance)
        table = self.value.unfold(-1, 4, 1)  # [num_channels, num_knots - 3, 4]
        return torch.einsum('c...w,...w->c...', table[:, first], weight)

    def interpolation(self, distance: Tensor) -> tuple[Tensor, Tensor]:
        """The first :obj:`[*]` of the four entries of the table that a law
        depends on, and their weights :obj:`[*, 4]`."""
        place = self._place(distance)
        # NaN has a place in the table, but weights that are NaN.
        second = place.nan_to_num().floor().clamp(1, self.num_knots - 3)
        t = place - second
        # A blend of the parabolas through the first and the last three of the
        # entries at t = -1, 0, 1, 2. Between 0 and 1 that is Keys's (1981)
        # cubic; at the ends of the table one of them goes on alone.
        s = t.clamp(0, 1)
        weight = torch.stack([(1 - s) * t * (t - 1) / 2,
                              (1 - s) * (1 - t * t) + s * (t - 1) * (t - 2) / 2,
                              (1 - s) * t * (t + 1) / 2 + s * t *
                              (2 - t), s * t * (t - 1) / 2], dim=-1)
        return second.long() - 1, weight

    def _place(self, distance: Tensor) -> Tensor:
        """In the table, from 0 to the number of knots less 1."""
        step = math.log(
            self.max_distance / self.min_distance) / (self.num_knots - 1)
        return (distance.clamp(self.min_distance, self.max_distance) /
                self.min_distance).log() / step

    def extra_repr(self) -> str:
        return (f"{self.num_channels}, min_distance={self.min_distance}, "
                f"max_distance={self.max_distance}, num_knots={self.num_knots}")


class ForceLawDecoder(MessagePassing):
    r"""A layer for :class:`RolloutDecoder`: Newton's equations with one central
    law per channel and further terms, by velocity Verlet between two frames.
    Not in the paper.

    .. math::
        m_i \ddot{\mathbf{r}}_i = \sum_{j \neq i} \sum_k z_{ij,k}
        f_k(r_{ij}) \frac{\mathbf{r}_i - \mathbf{r}_j}{r_{ij}} + \ldots

    Masses come with the graph, :math:`z_{ij,k} / m_i`, see :func:`per_mass`.

    Args:
        scaling: Units of the model that the layer is part of.
        interval: Time between two frames, in second.
        num_substeps: Steps of the integrator per interval.
        half_width: Distance of walls from the origin in metre, if known.
        terms: Names of further :class:`Term` classes.
        **kwargs: Arguments of :class:`torch_geometric.nn.MessagePassing`.
    """
    #: Of the derivative by time that laws and terms add up to.
    order = 2
    #: Whether the position is an angle.
    circle = False
    scale: Tensor
    spread: Tensor

    def __init__(self, law: ForceLaw, scaling: Scaling, interval: float = 0.1,
                 num_substeps: int = 2, half_width: Optional[float] = None,
                 terms: Sequence[str] = (), **kwargs: Any) -> None:
        kwargs.setdefault('aggr', ScatterSum())
        super().__init__(node_dim=0, **kwargs)
        nowhere, _ = self.split(torch.zeros(scaling.num_features))
        if not 0 < interval < math.inf or num_substeps < 1:
            raise ValueError(f"Expected a positive interval and at least one "
                             f"substep, but got {interval} and {num_substeps}.")
        if half_width is not None and not half_width > 0:
            raise ValueError(
                f"Expected a positive half_width, but got {half_width}.")
        self.law = law
        self.scaling = scaling
        self.interval = interval
        self.num_substeps = num_substeps
        self.walls = Walls(scaling.num_features)
        if half_width is not None:
            self.walls.lower.fill_(-half_width)
            self.walls.upper.fill_(half_width)
        #: Typical change of a free particle's state by forces in an interval.
        self.register_buffer('scale', torch.ones(self.order * len(nowhere)))
        #: How far a group of systems less moves all laws, by channel, and all
        #: coefficients, :obj:`[num_groups, num_unknowns]`: their squares add up
        #: to variances. Of no group where errors are unknown.
        self.register_buffer('spread', torch.zeros(0, 0))
        #: Further laws :obj:`[num_channels * P, num_knots]` of pair terms and
        #: coefficients :obj:`[P]` of node terms, by name.
        self.laws = torch.nn.ModuleDict()
        self.coefficients = torch.nn.ParameterDict()
        self.terms: list[str] = []
        for name in terms:
            self.add_term(name)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.spread = self.spread[:0, :0]
        for table in self.tables():
            table.reset_parameters()
        for value in self.coefficients.values():
            torch.nn.init.zeros_(value)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Positions, and what terms know as velocities, of features."""
        if x.size(-1) % 2:
            raise ValueError(f"Expected positions and as many velocities, but "
                             f"got {x.size(-1)} features.")
        position, velocity = x.chunk(2, dim=-1)
        return position, velocity

    def candidates(self) -> list[str]:
        """Names of the terms that laws of this order can have."""
        nowhere = self.split(torch.zeros(self.scaling.num_features))
        terms: Any = Term.known
        return [
            name for name, term in terms.items()
            if self.order in term.orders and (issubclass(term, ParticleTerm) or
                                              term().vectors(*nowhere).size(-1))
        ]

    def add_term(self, name: str) -> None:
        """Adds a term whose law or coefficients are zero."""
        if name not in Term.known:
            raise ValueError(f"There is no term {name!r}; take some of "
                             f"{', '.join(Term.known)}.")
        term, law = Term.known[name](), self.law
        if isinstance(term, (PairTerm, NodeTerm)):
            nowhere = self.split(law.value.new_zeros(self.scaling.num_features))
            width = term.vectors(*nowhere).size(-1)
            if isinstance(term, PairTerm):
                table = type(law)(law.num_channels * width, law.min_distance,
                                  law.max_distance, law.num_knots)
                self.laws[name] = table.to(law.value)
            else:
                self.coefficients[name] = torch.nn.Parameter(
                    law.value.new_zeros(width))
        self.terms.append(name)
        self.spread = self.spread[:0, :0]

    def drop_term(self, name: str) -> None:
        self.terms.remove(name)
        self.spread = self.spread[:0, :0]
        for values in (self.laws, self.coefficients):
            if name in values:
                del values[name]

    def resample(self, num_knots: int) -> None:
        """Gives all tables so many distances."""
        for table in self.tables():
            table.resample(num_knots)
        self.spread = self.spread[:0, :0]

    def pair_terms(self) -> list[tuple[PairTerm, ForceLaw]]:
        """Terms of pairs with their laws, the central ones first."""
        others: Any = [(Term.known[name](), table)
                       for name, table in self.laws.items()]
        return [(Central(), self.law), *others]

    def node_terms(self) -> list[tuple[NodeTerm, Tensor]]:
        """Terms of particles with their coefficients."""
        out: list[Any] = [(Term.known[name](), value)
                          for name, value in self.coefficients.items()]
        return out

    def tables(self) -> list[ForceLaw]:
        return [table for _, table in self.pair_terms()]

    def law_spread(self, law: ForceLaw) -> Tensor:
        """That of one of the :meth:`tables`, :obj:`[num_groups, *]` of it."""
        if not len(self.spread):
            return law.value.new_zeros(0, *law.value.size())
        num_channels = self.law.num_channels
        sizes = [
            table.num_knots * table.num_channels // num_channels
            for table in self.tables()
        ]
        tables = self.spread[:, :num_channels * sum(sizes)]
        number = [table is law for table in self.tables()].index(True)
        parts = tables.unflatten(1, (num_channels, -1)).split(sizes, -1)
        own: Tensor = parts[number]
        return own.reshape(-1, *law.value.size())

    def coefficient_errors(self) -> dict[str, Tensor]:
        """Standard errors of coefficients, where they are known."""
        if not len(self.spread):
            return {}
        sizes = [len(value) for value in self.coefficients.values()]
        error = self.spread[:, self.spread.size(1) - sum(sizes):].norm(dim=0)
        return dict(zip(self.coefficients, error.split(sizes)))

    def forward(self, x: Tensor, edge_index: Tensor,
                edge_attr: Tensor) -> Tensor:
        """The change of states :obj:`[num_nodes, (num_steps,) 2D]`, in the
        model's units, by weights :obj:`[num_edges, num_channels]`."""
        check_edge_attr(edge_attr, edge_index, self.law.num_channels)
        position, velocity = self.split(self.scaling.inverse(x))
        step = self.interval / self.num_substeps
        force = self._force(position, velocity, edge_index, edge_attr)
        for _ in range(self.num_substeps):
            velocity = velocity + step / 2 * force
            position = position + step * velocity
            position, velocity = self.walls.reflect(position, velocity)
            # Where forces depend on velocity, the last one tells it at the end.
            force = self._force(position, velocity + step / 2 * force,
                                edge_index, edge_attr)
            velocity = velocity + step / 2 * force
        return torch.sub(self.scaling(torch.cat([position, velocity], -1)), x)

    def _force(self, position: Tensor, velocity: Tensor, edge_index: Tensor,
               edge_attr: Tensor) -> Tensor:
        # propagate_type: (position: Tensor, velocity: Tensor,
        # edge_attr: Tensor)
        out: Tensor = self.propagate(edge_index, position=position,
                                     velocity=velocity, edge_attr=edge_attr)
        for term, value in self.node_terms():
            out = out + term.vectors(position, velocity) @ value
        return out

    def between(self, receiver: Tensor, sender: Tensor) -> Tensor:
        """From sender to receiver; on the circle, the shorter way."""
        return wrapped(receiver - sender) if self.circle else receiver - sender

    def message(self, position_i: Tensor, position_j: Tensor,
                velocity_i: Tensor, velocity_j: Tensor,
                edge_attr: Tensor) -> Tensor:
        offset = self.between(position_i, position_j)  # [num_edges, (T,) D]
        # As good as 0 in any unit, but gradients stay finite.
        least = self.law.min_distance / 3e4
        distance = offset.norm(dim=-1).clamp(min=least)
        weight = edge_attr.t()[(..., ) + (None, ) * (distance.dim() - 1)]
        # Central forces need no vectors of length one.
        force = (weight * self.law(distance)).sum(0)  # [num_edges, (T,)]
        out: Tensor = (force / distance).unsqueeze(-1) * offset
        for term, table in self.pair_terms()[1:]:
            apart = position_j if term.of_sender else offset
            law = table(apart.norm(dim=-1)).unflatten(0, (len(weight), -1))
            force = (weight.unsqueeze(1) * law).sum(0).movedim(0, -1)
            vectors = term.vectors(apart, velocity_i - velocity_j)
            out = out + (vectors @ force.unsqueeze(-1)).squeeze(-1)
        return out

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *args:
                              Any) -> None:
        spread = state.setdefault(f'{prefix}spread', self.spread[:0, :0])
        self.spread = self.spread.new_zeros(spread.size())
        super()._load_from_state_dict(state, prefix, *args)


def wrapped(angle: Tensor) -> Tensor:
    """From minus pi to pi."""
    return torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
