"""The decoder with a memory, for motion that its last state does not fix."""
import operator
from typing import Optional

import torch
from torch import Tensor

from pyg_fnri.nn.decoder import Decoder, check_history, check_rollout


class RecurrentDecoder(Decoder):
    r"""Predicts trajectories by a step that remembers those before it (NRI,
    https://arxiv.org/abs/1802.04687, section 3.1),

    .. math::
        \Delta^t, \mathbf{h}^{t+1} &= f(\mathbf{x}^t, \mathbf{h}^t,
        \mathbf{z}) \\
        \boldsymbol{\mu}^{t+1} &= \mathbf{x}^t + \Delta^t

    The hidden state starts at zero and runs on through all frames. During
    burn-in, the first :obj:`burn_in` frames, :math:`\mathbf{x}^t` is the true
    state; after the last of them only every :obj:`pred_steps`-th is, and the
    others are the decoder's own predictions. With a burn-in of one frame,
    :class:`RolloutDecoder` looks at the same frames.

    Args:
        layer (torch.nn.Module): Predicts the change of the state in one step:
            any layer that is called as :obj:`layer(x, h, edge_index,
            edge_attr)`, with None for :obj:`h` at the start, and gives a
            tensor like :obj:`x` and the new :obj:`h`, such as
            :class:`RecurrentConv`.
        burn_in (int): Number of first frames whose true states are looked at,
            at least one.

    Raises:
        TypeError: If :obj:`burn_in` is no integer.
        ValueError: If :obj:`burn_in` is not positive.
    """
    def __init__(self, layer: torch.nn.Module, burn_in: int) -> None:
        super().__init__(layer)
        if burn_in < 1:
            raise ValueError(f"Expected a burn_in of at least 1 frame, with "
                             f"which every prediction starts, but got "
                             f"{burn_in}.")
        self.burn_in = operator.index(burn_in)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor,
        pred_steps: int = 1,
    ) -> Tensor:
        """As :meth:`Decoder.forward`. The true states that it looks at are
        frames :obj:`0, ..., burn_in - 1`, and then :obj:`burn_in - 1 +
        pred_steps`, :obj:`burn_in - 1 + 2 * pred_steps`, ...

        Raises:
            ValueError: Also if burn-in leaves no frame to predict without a
                look at the one before, though :obj:`pred_steps` asks for it.
        """
        check_rollout(x, pred_steps)
        if pred_steps > 1 and self.burn_in >= x.size(1) - 1:
            raise ValueError(
                f"A burn_in of {self.burn_in} frames leaves nothing to predict "
                f"over {pred_steps} steps of trajectories of {x.size(1)} "
                f"frames; pass longer ones, shorten the burn-in, or take "
                f"pred_steps=1.")
        looks = range(self.burn_in - 1, x.size(1), pred_steps)
        h, out, state = None, [], x[:, 0]
        for t, truth in enumerate(x[:, :-1].unbind(1)):
            if t < self.burn_in or t in looks:
                state = truth
            state, h = self._step(state, h, edge_index, edge_attr)
            out.append(state)
        return torch.stack(out, dim=1)

    def one_step(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor,
        frame: Optional[Tensor] = None,
    ) -> Tensor:
        # The memory of a frame is made by all frames before.
        out = self(x, edge_index, edge_attr, pred_steps=1)
        return out if frame is None else out.index_select(1, frame)

    def predict(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor,
        num_steps: int,
    ) -> Tensor:
        check_history(x, num_steps)
        h = None
        for truth in x.unbind(1):
            state, h = self._step(truth, h, edge_index, edge_attr)
        out = [state]
        for _ in range(num_steps - 1):
            state, h = self._step(state, h, edge_index, edge_attr)
            out.append(state)
        return torch.stack(out, dim=1)

    def _step(
        self,
        x: Tensor,
        h: Optional[Tensor],
        edge_index: Tensor,
        edge_attr: Tensor,
    ) -> tuple[Tensor, Tensor]:
        change, h = self.layer(x, h, edge_index, edge_attr)
        return x + change, h

    def extra_repr(self) -> str:
        return f"burn_in={self.burn_in}"
