"""The least-squares linear step, and what it leaves over: the interactions."""
from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.nn.inits import reset

from pyg_fnri.nn.encoder import MLPEncoder, check_trajectories
from pyg_fnri.nn.scaling import split_quantities


class LinearStep(torch.nn.Module):
    r"""The best prediction of a state's change without any interaction,

    .. math::
        \mathbf{x}^{t+1} - \mathbf{x}^t \approx \mathbf{A} \mathbf{x}^t +
        \mathbf{b},

    by least squares, and a robust scale :math:`\mathbf{s}` of its residuals.
    Fitted once, by :meth:`fit`, and saved with the model. Not in the paper.

    With inertia removed, what is left *is* the interaction, and in units of
    :math:`\mathbf{s}` it is of order one: the problem becomes well
    conditioned for encoder and decoder alike.

    Args:
        num_features (int): Number of features of a particle.
    """
    weight: Tensor
    bias: Tensor
    scale: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.register_buffer('weight', torch.zeros(num_features, num_features))
        self.register_buffer('bias', torch.zeros(num_features))
        self.register_buffer('scale', torch.ones(num_features))

    def forward(self, x: Tensor) -> Tensor:
        """The change of each state, :obj:`[..., num_features]`."""
        return torch.nn.functional.linear(x, self.weight, self.bias)

    def residual(self, x: Tensor) -> Tensor:
        """What the step leaves over along trajectories :obj:`[num_nodes, T,
        num_features]`, in units of its scale, :obj:`[num_nodes, T - 1,
        num_features]`."""
        state = x[:, :-1]
        return (x[:, 1:] - state - self(state)) / self.scale

    @torch.no_grad()
    def fit(self, x: Tensor) -> 'LinearStep':
        r"""Fits the step and the scale of its residuals.

        The scale is 1.48 times the median absolute residual (the standard
        deviation of a Gaussian), since a few close encounters leave residuals
        hundreds of times the typical one. The position features share one,
        and so do the velocity features, as in :class:`Scaling`. A quantity
        that the step predicts up to rounding, such as positions that are
        sums of velocities, has the scale of that rounding.

        Args:
            x: Trajectories of the training split in the model's units,
                :obj:`[num_nodes, T, num_features]` with T >= 2.

        Raises:
            ValueError: If the trajectories have another shape, are not
                finite, or leave nothing over but rounding.
        """
        if x.dim() != 3 or x.size(1) < 2 or x.size(2) != self.num_features:
            raise ValueError(
                f"Expected trajectories of shape [num_nodes, T, "
                f"{self.num_features}] with at least T = 2 frames, but got "
                f"{list(x.size())}.")
        if not bool(x.isfinite().all()):
            raise ValueError("Expected finite trajectories to fit a linear "
                             "step to, but some values are NaN or infinite.")
        state = x[:, :-1].flatten(0, 1).double()
        change = x[:, 1:].flatten(0, 1).double() - state
        ones = state.new_ones(state.size(0), 1)
        rounding = torch.finfo(x.dtype).eps * state.abs()
        state = torch.cat([state, ones], dim=-1)
        solution = torch.linalg.lstsq(state, change).solution
        residual = (change - state @ solution).abs()
        scale = 1.4826 * _shared(residual, torch.median)
        rounding = _shared(rounding, torch.mean)
        if not bool((scale > rounding).any()):
            raise ValueError(
                "A linear step predicts these trajectories exactly, so there "
                "are no interactions to learn; check that the particles "
                "interact and that positions and velocities are not constant.")
        self.weight.copy_(solution[:-1].t())
        self.bias.copy_(solution[-1])
        self.scale.copy_(scale.maximum(rounding))
        return self

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.num_features})"


class OverLinearStep(torch.nn.Module):
    r"""A decoder's layer that predicts what a linear step leaves over, in
    units of its scale:

    .. math::
        f(\mathbf{x}, \mathbf{z}) = \mathbf{A} \mathbf{x} + \mathbf{b} +
        \mathbf{s} \odot f_{layer}(\mathbf{x}, \mathbf{z})

    It cannot do well and ignore the graph, even on predictions of one step.

    Args:
        layer (torch.nn.Module): Any layer that is called as
            :obj:`layer(x, edge_index, edge_attr)` and keeps the shape of
            :obj:`x`.
        linear_step (LinearStep): The linear step, fitted.
    """
    def __init__(self, layer: torch.nn.Module, linear_step: LinearStep) -> None:
        super().__init__()
        self.layer = layer
        self.linear_step = linear_step

    def reset_parameters(self) -> None:
        """Draws new weights for the layer; the linear step is kept."""
        reset(self.layer)

    def forward(self, x: Tensor, edge_index: Tensor,
                edge_attr: Tensor) -> Tensor:
        """The change of each state; shapes as the layer's."""
        out = self.layer(x, edge_index, edge_attr)
        step = self.linear_step
        return torch.addcmul(step(x), out, step.scale)


class ResidualEncoder(torch.nn.Module):
    r"""Shows an encoder each state together with what a linear step leaves
    over from it, :math:`[\mathbf{x}^t, \mathrm{sgn}(\mathbf{r}^t) \log (1 +
    |\mathbf{r}^t|)]`.

    The residual :math:`\mathbf{r}^t` is the sum of the forces on a particle
    up to a factor; the logarithm keeps it as it is where small and tames close
    encounters.

    Args:
        encoder (MLPEncoder): An encoder for one frame less and twice as
            many features.
        linear_step (LinearStep): The linear step, fitted.
    """
    def __init__(
        self,
        encoder: MLPEncoder,
        linear_step: LinearStep,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.linear_step = linear_step

    def reset_parameters(self) -> None:
        """Draws new weights for the encoder; the linear step is kept."""
        reset(self.encoder)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits :obj:`[num_edges, num_logits]` from trajectories
        :obj:`[num_nodes, num_steps, num_features]`.

        Raises:
            ValueError: If :obj:`x` has another shape.
        """
        check_trajectories(x, self.encoder.num_steps + 1,
                           self.linear_step.num_features)
        residual = self.linear_step.residual(x)
        residual = residual.abs().log1p().copysign(residual)
        return self.encoder(torch.cat([x[:, :-1], residual], -1), edge_index)


def _shared(x: Tensor, statistic: Callable[[Tensor], Tensor]) -> Tensor:
    # One number per quantity, repeated for each of its features.
    return torch.cat([
        statistic(quantity).expand(quantity.size(-1))
        for quantity in split_quantities(x)
    ])
