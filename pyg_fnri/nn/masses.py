"""Known masses of particles: what makes accelerations of forces."""
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.data import Data

#: Typical masses that networks and fits can work with, and their inverses.
MAX_MASS = 1e4


def known_masses(data: Data) -> Optional[Tensor]:
    """The masses :obj:`data.mass` of all particles, :obj:`[num_nodes]`, in
    the dtype of the trajectories; None where they are not given, which means
    that all particles have the same.

    In kg, force laws are in N; in units of a typical mass, they are the
    accelerations of a typical particle. Networks take weights over masses for
    what they are, and learn best where these are about 1.

    Args:
        data: Systems with trajectories :obj:`x`.

    Raises:
        TypeError: If the masses are no tensor of real numbers.
        ValueError: If there is not one for each particle, or one is not above
            0 or not finite, or they are nowhere near 1.
    """
    mass = data.get('mass')
    if mass is None:
        return None
    if (not isinstance(mass, Tensor) or mass.is_complex()
            or mass.dtype == torch.bool):
        kind = mass.dtype if isinstance(mass, Tensor) else type(mass).__name__
        raise TypeError(f"Expected masses as a tensor of real numbers, one for "
                        f"each particle, but got {kind}.")
    if mass.size() != data.x.size()[:1]:
        # One mass would otherwise be spread over all particles.
        raise ValueError(f"Expected a mass for each of the {data.x.size(0)} "
                         f"particles, of shape [{data.x.size(0)}], but got "
                         f"the shape {list(mass.size())}.")
    wrong = ~(mass.isfinite() & (mass > 0))
    if bool(wrong.any()):
        where = int(wrong.nonzero()[0])
        raise ValueError(f"Expected masses above 0 and finite, but that of "
                         f"particle {where} is {mass[where].item()}; leave "
                         f"mass out where it is not known.")
    typical = mass.double().log().mean().exp().item()
    if not 1 / MAX_MASS <= typical <= MAX_MASS:
        raise ValueError(f"Expected masses in a unit in which they are about "
                         f"1, but they are about {typical:.3g}; divide all by "
                         f"that of a typical particle. Force laws are then "
                         f"those on that particle.")
    return mass.to(data.x.dtype)


def per_mass(edge_attr: Tensor, data: Data) -> Tensor:
    r"""A graph as decoders take it where masses are known: the weights of all
    edges to a particle over its mass, :math:`z_{ij,k} / m_i`, so that what
    adds up to a force comes out as an acceleration.

    Args:
        edge_attr: Weights of the edges, :obj:`[num_edges, num_channels]`.
        data: The systems, with :obj:`mass` where it is known; without it, the
            weights stay as they are.

    Raises:
        As :func:`known_masses`.
    """
    mass = known_masses(data)
    if mass is None:
        return edge_attr
    return edge_attr / mass[data.edge_index[1]].unsqueeze(-1)
