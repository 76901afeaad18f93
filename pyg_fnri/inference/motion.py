"""Do positions move at the velocities given?"""
import torch
from torch import Tensor

from pyg_fnri.inference.single_steps import cauchy_width

#: How far the two may differ.
MAX_SLIP = 0.1


@torch.no_grad()
def velocity_slope(x: Tensor, interval: float) -> float:
    """The rate at which positions change in units of the velocities given, by
    robust least squares; 1 where features are what force laws take them for.

    Args:
        x: Trajectories in physical units, :obj:`[num_nodes, T, 2D]`, of at
            least two frames.
        interval: Time between two frames, in second.
    """
    position, velocity = x.double().chunk(2, dim=-1)
    change = position[:, 1:] - position[:, :-1]
    # Of both ends: what noise a velocity has at one of them hardly matters.
    expected = interval * (velocity[:, 1:] + velocity[:, :-1]) / 2
    # Of one size in any unit, as widths and sums have floors.
    unit = torch.maximum(change.abs().mean(), expected.abs().mean())
    unit = unit.clamp(min=torch.finfo(unit.dtype).tiny)
    change, expected = change / unit, expected / unit
    slope = change.new_ones(())
    for _ in range(20):
        error = change - slope * expected
        weight = 1 / (1 + (error / cauchy_width(error)).square())
        normal = (weight * expected.square()).sum().clamp(min=1e-30)
        slope = (weight * expected * change).sum() / normal
    return slope.item()


def check_motion(x: Tensor, interval: float) -> None:
    """Makes sure that trajectories are what force laws take them for, before
    any are fitted; arguments as for :func:`velocity_slope`.

    Raises:
        ValueError: If positions do not move at the velocities given.
    """
    slope = velocity_slope(x, interval)
    if slips(slope):
        raise ValueError(f"{slip_message(slope)} Force laws are not for such "
                         f"data.")


def slips(slope: float) -> bool:
    """Whether positions move at other velocities."""
    return not abs(slope - 1) <= MAX_SLIP


def slip_message(slope: float) -> str:
    """What that means, as a sentence."""
    return (f"Positions move at {slope:.2f} times the velocities given, so "
            f"features are no positions and velocities, or the interval "
            f"between two frames is another one.")
