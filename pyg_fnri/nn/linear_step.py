"""The least-squares linear step, its walls, and layers for what both leave."""
import math
from collections.abc import Callable
from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.inits import reset

from pyg_fnri.nn.encoders import (EquivariantEncoder, check_trajectories,
                                  signed_log)
from pyg_fnri.nn.scaling import split_quantities

#: A few thousand particles settle the 24 numbers of a linear step.
NUM_FITTED = 5_000
#: Fewer crossings than this could be chance, and decide about no wall.
MIN_CROSSINGS = 10


class Walls(torch.nn.Module):
    r"""Folds states back into a box, axis by axis: at a wall :math:`b`,
    infinite where there is none, :math:`(x, v) \leftarrow (2b - x, -v)`. An odd
    number of features has no walls. Not in the paper."""
    lower: Tensor
    upper: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_axes = 0 if num_features % 2 else num_features // 2
        self.register_buffer('lower', torch.full((self.num_axes, ), -torch.inf))
        self.register_buffer('upper', torch.full((self.num_axes, ), torch.inf))

    def forward(self, x: Tensor) -> Tensor:
        if self.num_axes == 0:
            return x
        position, velocity = x.chunk(2, dim=-1)
        above, below = position > self.upper, position < self.lower
        wall = torch.where(above, self.upper, self.lower)
        outside = above | below
        # Chosen before it is folded: infinity minus a number is no gradient.
        folded = 2 * torch.where(outside, wall, 0.0) - position
        return torch.cat([
            torch.where(outside, folded, position),
            torch.where(outside, -velocity, velocity)
        ], dim=-1)

    def reflect(self, position: Tensor,
                velocity: Tensor) -> tuple[Tensor, Tensor]:
        """As the simulation does: velocities then point inwards."""
        inside = position.clamp(self.lower, self.upper)
        beyond = position - inside
        velocity = torch.where(beyond != 0, -velocity.abs() * beyond.sign(),
                               velocity)
        return inside - beyond, velocity

    @torch.no_grad()
    def fit(self, free: Tensor, target: Tensor) -> 'Walls':
        """Finds walls in states :obj:`[K, num_features]` that were predicted
        :obj:`free` of walls, and those seen, :obj:`target`: where those faster
        than half of all turn round further out than nine in ten positions, in
        the median, if folding there halves the squared error of velocities."""
        for axis in range(self.num_axes):
            place, true_place = free[:, axis], target[:, axis]
            speed, true_speed = (state[:, self.num_axes + axis]
                                 for state in (free, target))
            turns = (true_speed + speed).abs() < (true_speed - speed).abs() / 2
            # Slow ones also turn where nothing is in their way.
            turns &= speed.abs() > true_speed.abs().median()
            for wall, sign in ((self.lower, -1), (self.upper, 1)):
                wall[axis] = sign * torch.inf
                # Also where noise shows positions beyond a wall.
                middle = sign * (place + true_place) / 2
                rank = math.ceil(0.9 * len(true_place))
                far = middle > (sign * true_place).kthvalue(rank).values
                there = middle[turns & far & (sign * speed > 0)]
                if there.numel() < MIN_CROSSINGS:
                    continue
                out = sign * place > there.median()
                onwards = (true_speed - speed)[out].square().mean()
                back = (true_speed + speed)[out].square().mean()
                if bool(back < onwards / 2):
                    wall[axis] = sign * there.median()
        return self


class LinearStep(torch.nn.Module):
    r"""The best prediction without interactions, :math:`\mathbf{x}^{t+1} -
    \mathbf{x}^t \approx \mathbf{A} \mathbf{x}^t + \mathbf{b}`, by least
    squares, folded back by :class:`Walls`, and a robust scale
    :math:`\mathbf{s}` of its residuals. Not in the paper."""
    weight: Tensor
    bias: Tensor
    scale: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.register_buffer('weight', torch.zeros(num_features, num_features))
        self.register_buffer('bias', torch.zeros(num_features))
        self.register_buffer('scale', torch.ones(num_features))
        self.walls = Walls(num_features)

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        """The next states; a :obj:`residual`, in units of the scale, is added
        before walls act."""
        out: Tensor = x + F.linear(x, self.weight, self.bias)
        if residual is not None:
            out = torch.addcmul(out, residual, self.scale)
        out = self.walls(out)
        return out

    def residual(self, x: Tensor) -> Tensor:
        """What the step leaves over, in units of its scale, :obj:`[num_nodes,
        T - 1, num_features]`."""
        return torch.sub(x[:, 1:], self(x[:, :-1])) / self.scale

    @torch.no_grad()
    def fit(self, x: Tensor) -> 'LinearStep':
        """Fits step, walls and scale to :obj:`[num_nodes, T, num_features]` in
        the model's units. The scale, one of positions and one of velocities, is
        1.48 times the median absolute residual of axes that are not predicted
        exactly, as constants are; at least that of rounding."""
        state = x[:NUM_FITTED, :-1].flatten(0, 1)
        target = x[:NUM_FITTED, 1:].flatten(0, 1)
        walls = Walls(self.num_features).to(x.device, x.dtype)
        inside = torch.ones_like(state[:, 0], dtype=torch.bool)
        # States that a wall turns back bend the line, until it is known which
        # they are; three rounds settle that.
        for _ in range(3):
            weight, bias = _least_squares(state[inside], target[inside])
            free = state + torch.addmm(bias, state.double(), weight)
            walls.fit(free, target)
            inside = (walls(free) == free).all(-1)
        state, target = state[inside], target[inside]
        residual = (target.double() - state -
                    torch.addmm(bias, state.double(), weight))
        residual = residual.abs()
        rounding = torch.finfo(x.dtype).eps * state.abs().double()
        exact = residual.median(0).values <= rounding.mean(0)
        scale = 1.4826 * _shared(residual.masked_fill(exact, torch.nan),
                                 torch.nanmedian)
        rounding = _shared(rounding, torch.mean)
        if not bool((scale > rounding).any()):
            raise ValueError(
                "There are no interactions to learn, since a linear step "
                "predicts these trajectories exactly; check the data.")
        self.weight.copy_(weight.t())
        self.bias.copy_(bias)
        self.walls.load_state_dict(walls.state_dict())
        self.scale.copy_(scale.fmax(rounding))
        return self


class OverLinearStep(torch.nn.Module):
    r"""Has a decoder's layer predict what a linear step leaves over, so that it
    cannot do well and ignore the graph:

    .. math::
        f(\mathbf{x}, \mathbf{z}) = \mathrm{fold} \big( \mathbf{x} +
        \mathbf{A} \mathbf{x} + \mathbf{b} + \mathbf{s} \odot
        f_{layer}(\mathbf{x}, \mathbf{z}) \big) - \mathbf{x}
    """
    def __init__(self, layer: torch.nn.Module, linear_step: LinearStep) -> None:
        super().__init__()
        self.layer = layer
        self.linear_step = linear_step

    def reset_parameters(self) -> None:
        reset(self.layer)

    def forward(self, x: Tensor, *args: Any) -> Any:
        out = self.layer(x, *args)
        if isinstance(out, tuple):
            return self.linear_step(x, out[0]) - x, *out[1:]
        return self.linear_step(x, out) - x


class ResidualEncoder(torch.nn.Module):
    r"""Shows an encoder, for a frame less and twice the features, each state
    with the linear step's residual, about the sum of the forces:
    :math:`[\mathbf{x}^t, \mathrm{sgn}(\mathbf{r}^t) \log (1 +
    |\mathbf{r}^t|)]`. An :class:`EquivariantEncoder` sees positions and the
    residual of velocities as they are."""
    def __init__(self, encoder: torch.nn.Module,
                 linear_step: LinearStep) -> None:
        super().__init__()
        self.encoder = encoder
        self.linear_step = linear_step

    def reset_parameters(self) -> None:
        reset(self.encoder)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        # An encoder that takes trajectories of any length has no number.
        num_steps = getattr(self.encoder, 'num_steps', x.size(1) - 1) + 1
        check_trajectories(x, num_steps, self.linear_step.num_features)
        residual = self.linear_step.residual(x)
        x = x[:, :-1]
        if isinstance(self.encoder, EquivariantEncoder):
            (x, _), (_, residual) = x.chunk(2, -1), residual.chunk(2, -1)
        else:
            residual = signed_log(residual)
        x = self.encoder(torch.cat([x, residual], -1), edge_index)
        return x


def _least_squares(state: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The affine map from states to their change, in double."""
    device = state.device
    # On a GPU, no driver takes matrices without full rank.
    state, target = state.double().cpu(), target.double().cpu()
    # Of the change, which is small: rounding loses none of it.
    problem = F.pad(state, (0, 1), value=1.0), target - state
    found = torch.linalg.lstsq(*problem)
    if found.rank < problem[0].size(1):
        # Without full rank, the default driver's solution varies by chance.
        found = torch.linalg.lstsq(*problem, driver='gelsd')
    solution = found.solution.to(device)
    return solution[:-1], solution[-1]


def _shared(x: Tensor, statistic: Callable[[Tensor], Tensor]) -> Tensor:
    """One number per quantity, repeated for each of its features."""
    return torch.cat([
        statistic(quantity).expand(quantity.size(-1))
        for quantity in split_quantities(x)
    ])
