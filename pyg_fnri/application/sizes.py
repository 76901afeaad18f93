"""Are other trajectories of the size of those that a model has seen?"""
import warnings

import torch
from torch import Tensor

from pyg_fnri.nn import Scaling
from pyg_fnri.nn.scaling import split_quantities

#: How many times larger or smaller they may be.
MAX_RATIO = 20.
#: How many numbers are looked at.
NUM_LOOKED_AT = 1_000_000


def check_sizes(units: Scaling, x: Tensor) -> None:
    """Warns of trajectories that are far larger or smaller than those of
    training, as they are in another unit: graphs would be wrong, and nothing
    else would tell.

    Args:
        units: Fitted to the trajectories of training, such as
            :attr:`RelationalInference.units`.
        x: The others, :obj:`[num_nodes, T, num_features]`.
    """
    halves = split_quantities(units(x))
    names = ('Positions', 'Velocities') if len(halves) == 2 else [
        f'Feature {i}' for i in range(len(halves))
    ]
    for name, values in zip(names, halves):
        some = values.flatten()[::max(1, values.numel() // NUM_LOOKED_AT)]
        low, high = some.quantile(torch.tensor([0.01, 0.99])).tolist()
        ratio = (high - low) / 2  # Of those of training, -1 to 1.
        if not 1 / MAX_RATIO <= ratio <= MAX_RATIO:
            warnings.warn(
                f"{name} spread {ratio:.3g} times as far as those that the "
                f"model was trained on; if they are in another unit, its "
                f"graphs are wrong: convert the data.", stacklevel=2)
