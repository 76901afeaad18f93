"""Force laws, and a network for what they miss."""
from typing import Any

import torch
from torch import Tensor

from pyg_fnri.nn.force_law import ForceLaw
from pyg_fnri.nn.force_law_decoder import ForceLawDecoder
from pyg_fnri.nn.multiplex_conv import MultiplexConv
from pyg_fnri.nn.scaling import Scaling


class ResidualForceLaws(ForceLawDecoder):
    r"""Adds to the change of state by force laws what a network of messages
    over the same graph corrects,

    .. math::
        \Delta \mathbf{x} = \Delta \mathbf{x}_{laws} + \mathbf{s} \odot
        f_{net}(\mathbf{x}, \mathbf{z}),

    in units :math:`\mathbf{s}` of the change that forces typically make
    (:obj:`scale`). Friction, fields and other terms that are no law of a
    distance have a place there. The network is a :class:`MultiplexConv` whose
    last layer starts at zero: before it is trained, this layer is the laws,
    exactly. Not in the paper.

    Predictions are what it makes better. Laws are fitted and graphs refined as
    without it, by the laws alone.

    Args:
        law (ForceLaw): As for :class:`ForceLawDecoder`.
        scaling (Scaling): Likewise.
        hidden_channels (int, optional): Size of the network's hidden layers.
            (default: :obj:`64`)
        **kwargs (optional): Further arguments of :class:`ForceLawDecoder`.

    Shapes:
        As :class:`ForceLawDecoder`.
    """
    def __init__(
        self,
        law: ForceLaw,
        scaling: Scaling,
        hidden_channels: int = 64,
        **kwargs: Any,
    ) -> None:
        super().__init__(law, scaling, **kwargs)
        num_features = scaling.num_features
        self.network = MultiplexConv(num_features, num_features,
                                     law.num_channels, hidden_channels)
        self._silence()

    def reset_parameters(self) -> None:
        """Sets all laws to zero, and draws a new network that is silent."""
        super().reset_parameters()
        self.network.reset_parameters()
        self._silence()

    def forward(self, x: Tensor, edge_index: Tensor,
                edge_attr: Tensor) -> Tensor:
        """The change of each state in one interval; arguments and errors as
        for :meth:`ForceLawDecoder.forward`."""
        out = super().forward(x, edge_index, edge_attr)
        unit = self.scale / self.scaling.scale
        return out + unit * self.network(x, edge_index, edge_attr)

    def _silence(self) -> None:
        for parameter in self.network.node_mlp[-1].parameters():
            torch.nn.init.zeros_(parameter)

    def __repr__(self) -> str:
        return (f"{super().__repr__()[:-1]}, "
                f"hidden_channels={self.network.hidden_channels})")
