"""The paper's own recipe."""
import math
from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, StepLR
from torch_geometric.data import Data

from pyg_fnri.losses import gaussian_nll
from pyg_fnri.nn import (
    NRI,
    SFNRI,
    MinMaxScaling,
    RelationalAutoEncoder,
    Scaling,
)
from pyg_fnri.recipes.recipe import Recipe


@dataclass(frozen=True)
class PaperRecipe(Recipe):
    r"""The paper's experimental section: 500 epochs of 10-step rollouts.

    Adam at 5e-4, halved every 200 epochs; batches of 128; :math:`\tau = 0.5`;
    Gaussian likelihood of variance 5e-5 in min-max units; a true state every
    :math:`M = 10` steps.

    Args:
        variance: :math:`\sigma^2` of the likelihood, in min-max units squared.
        pred_steps: :math:`M`.
    """
    max_epochs: int = 500
    variance: float = 5e-5
    pred_steps: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.variance < math.inf:
            raise ValueError(f"variance must be a number above 0, but is "
                             f"{self.variance}.")
        if self.pred_steps < 1:
            raise ValueError(f"pred_steps must be at least 1, but is "
                             f"{self.pred_steps}.")

    @classmethod
    def defaults(cls, model: type[NRI], regime: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        supervised = regime == 'supervised'
        if supervised:
            out['dropout'] = 0.5
        if issubclass(model, SFNRI):
            out['l2'] = 2e-5 if supervised else 5e-8
        return out

    def scaling(self, in_channels: int) -> Scaling:
        return MinMaxScaling(in_channels)

    def fit_units(self, model: RelationalAutoEncoder, x: Tensor) -> None:
        model.scaling.fit(x)

    def reconstruction(
        self,
        model: RelationalAutoEncoder,
        data: Data,
        edge_attr: Tensor,
        generator: Optional[torch.Generator] = None,
    ) -> Tensor:
        y = model.scaling(data.y)
        out = model.decoder(y, data.edge_index, edge_attr, self.pred_steps)
        return gaussian_nll(out, y[:, 1:], self.variance)

    def schedule(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        scheduler: LRScheduler = StepLR(optimizer, step_size=200, gamma=0.5)
        return {'scheduler': scheduler, 'interval': 'epoch'}
