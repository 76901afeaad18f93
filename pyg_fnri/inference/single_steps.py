"""Scores of single-step predictions, comparable between decoders."""
import math
from typing import NamedTuple

from torch import Tensor


class Estimate(NamedTuple):
    """A mean, such as one over systems, and its standard error."""
    mean: float
    error: float


def mean_of_systems(values: Tensor) -> Estimate:
    """The mean of a value per system, :obj:`[num_systems]`.

    Raises:
        ValueError: If there are fewer than two systems.
    """
    if values.numel() < 2:
        raise ValueError(f"A standard error takes at least two systems, but "
                         f"there is {values.numel()}.")
    values = values.double()
    error = values.std() / math.sqrt(values.numel())
    return Estimate(values.mean().item(), error.item())


def cauchy_nll(errors: Tensor, width: Tensor) -> Tensor:
    r"""The negative log-likelihood of each error, in nat,

    .. math::
        \log (\pi s) + \log (1 + e^2 / s^2).

    Args:
        errors: What predictions miss, of any shape.
        width: :math:`s`.
    """
    return (math.pi * width).log() + (errors / width).square().log1p()


def cauchy_width(errors: Tensor, floor: float = 1e-7) -> Tensor:
    """The width under which errors are most likely.

    Args:
        errors: What predictions miss, of any shape but not empty, in a unit
            that is typical of what they predict.
        floor: The least width, such as that of rounding.
    """
    square = errors.double().square()
    # The mean of e^2 / (e^2 + s^2) is 1/2 at the maximum; a fixed point.
    width = square.median().clamp(min=floor**2)
    for _ in range(50):
        width = width * 2 * (square / (square + width)).mean()
        width = width.clamp(min=floor**2)
    return width.sqrt().to(errors.dtype)
