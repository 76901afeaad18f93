"""Terms of the additive model of motion: what acts on particles and pairs.

.. math::
    m_i \\ddot{\\mathbf{r}}_i = \\sum_{j, k, l} z_{ij,k} f_{kl}(r_{ij})
    \\mathbf{u}_l(\\mathbf{r}_{ij}, \\dot{\\mathbf{r}}_{ij})
    + m_i \\sum_n \\theta_n \\boldsymbol{\\psi}_n(\\mathbf{r}_i,
    \\dot{\\mathbf{r}}_i)

A term of one's own is a subclass with a name and its ``vectors``.
"""
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, ClassVar

import torch
from torch import Tensor


class Term:
    """What can act on particles, besides forces along the line of a pair.

    Class attributes: its :obj:`name`; :obj:`what` a finding of it says."""
    name: ClassVar[str] = ''
    what: ClassVar[str] = ''
    #: Orders of the dynamics that it can be part of.
    orders: ClassVar[tuple[int, ...]] = (1, 2)
    #: All terms by their names, the user's own among them.
    known: ClassVar[dict[str, type['Term']]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.name:
            Term.known[cls.name] = cls


class PairTerm(Term):
    """A law of the distance, for each channel, times vectors of the pair."""
    #: Whether it acts on the sender by the opposite of what the receiver feels.
    odd: ClassVar[bool] = True
    #: Whether law and vectors are those of the sender's position, in place of
    #: the offset.
    of_sender: ClassVar[bool] = False
    #: Whether :meth:`vectors` looks at velocities.
    uses_velocity: ClassVar[bool] = False

    def vectors(self, offset: Tensor, velocity: Tensor) -> Tensor:
        """Vectors :obj:`[*, D, P]` that laws in m/s^2 multiply, from receiver
        minus sender: :obj:`offset` in m and :obj:`velocity` in m/s,
        :obj:`[*, D]` each."""
        raise NotImplementedError


class NodeTerm(Term):
    """Accelerations by a particle's own state, linear in coefficients."""
    def vectors(self, position: Tensor, velocity: Tensor) -> Tensor:
        """Vectors :obj:`[*, D, P]` that coefficients multiply, from positions
        in m and velocities in m/s, :obj:`[*, D]` each."""
        raise NotImplementedError

    def labels(self, axes: Sequence[str]) -> list[str]:
        """Of the vectors, in words, by the names of D axes; of numbers alone if
        there are none."""
        return []


class ParticleTerm(Term):
    """A factor of each particle, inferred along with the graph."""


class Central(PairTerm):
    """Forces along the line of a pair: the model without further terms."""
    def vectors(self, offset: Tensor, velocity: Tensor) -> Tensor:
        return (offset / _length(offset)).unsqueeze(-1)


class Transverse(PairTerm):
    """Across the line of a pair, to its left; in 3-D, about each axis."""
    name = 'transverse'
    what = 'forces point across the line of a pair'

    def vectors(self, offset: Tensor, velocity: Tensor) -> Tensor:
        return turned(offset / _length(offset))


class Alignment(PairTerm):
    """Along the relative velocity, like friction within pairs."""
    name = 'alignment'
    orders = (2, )
    what = 'forces depend on velocities, like friction within pairs'
    uses_velocity = True

    def vectors(self, offset: Tensor, velocity: Tensor) -> Tensor:
        return velocity.unsqueeze(-1)


class Input(PairTerm):
    """By the sender's own state, as in networks :math:`\\dot{x} = A x`."""
    name = 'input'
    what = 'particles act by their state, not by differences'
    orders = (1, )
    odd = False
    of_sender = True

    def vectors(self, offset: Tensor, velocity: Tensor) -> Tensor:
        return (offset / _length(offset)).unsqueeze(-1)


class Even(PairTerm):
    """The same on both ends, such as a coupling of phases with a lag."""
    name = 'even'
    what = 'both ends of a pair are pushed the same way'
    orders = (1, )
    odd = False

    def vectors(self, offset: Tensor, velocity: Tensor) -> Tensor:
        # On a line; elsewhere, nothing tells the direction.
        ones = torch.ones_like(offset).unsqueeze(-1)
        return ones[..., :ones.size(-2) == 1]


class Drag(NodeTerm):
    r""":math:`\mathbf{v}, |\mathbf{v}| \mathbf{v}, |\mathbf{v}|^2 \mathbf{v}`:
    friction or a drive."""
    name = 'drag'
    orders = (2, )
    what = 'forces depend on velocity, like friction or a drive'

    def vectors(self, position: Tensor, velocity: Tensor) -> Tensor:
        speed = _length(velocity)
        return torch.stack([velocity, speed * velocity, speed**2 * velocity],
                           dim=-1)

    def labels(self, axes: Sequence[str]) -> list[str]:
        return ['v', '|v| v', '|v|^2 v']


class Turning(NodeTerm):
    """Across the velocity, in each plane, like a magnetic field."""
    name = 'turning'
    orders = (2, )
    what = 'forces act across the velocity, like a magnetic field'

    def vectors(self, position: Tensor, velocity: Tensor) -> Tensor:
        return turned(velocity)

    def labels(self, axes: Sequence[str]) -> list[str]:
        planes = combinations(axes, 2)
        return [f'v turned from {a} to {b}' for a, b in planes]


class Field(NodeTerm):
    r"""From outside: constant, linear in the position, :math:`|\mathbf{r}|^2
    \mathbf{r}`."""
    name = 'field'
    what = 'a force acts from outside, depending on position alone'

    def vectors(self, position: Tensor, velocity: Tensor) -> Tensor:
        axes = torch.eye(position.size(-1)).to(position)
        linear = position[..., None, None, :] * axes.unsqueeze(-1)
        return torch.cat([
            axes.expand(*position.size()[:-1], *axes.size()),
            linear.flatten(-2), (_length(position)**2 * position).unsqueeze(-1)
        ], dim=-1)

    def labels(self, axes: Sequence[str]) -> list[str]:
        linear = [f'{b} e_{a}' for a, b in product(axes, repeat=2)]
        return [*(f'e_{a}' for a in axes), *linear, '|r|^2 r']


class Drive(NodeTerm):
    """Rates of its own, which constants among the features tell."""
    name = 'drive'
    what = 'particles move by themselves at the rates given'
    orders = (1, )

    def vectors(self, position: Tensor, velocity: Tensor) -> Tensor:
        axes = torch.eye(position.size(-1)).to(position)
        return (axes.unsqueeze(-1) * velocity[..., None, None, :]).flatten(-2)


class OwnRate(ParticleTerm):
    """A constant rate of each particle, whatever the others do."""
    name = 'own-rate'
    what = 'particles move by themselves at different rates'
    orders = (1, )


class Response(ParticleTerm):
    """One over the mass: what forces of pairs do to a particle."""
    name = 'response'
    what = 'particles respond differently to the same force'


class Gravity(ParticleTerm):
    """Both masses, which are given, multiply what a pair does to each other."""
    name = 'gravity'
    what = 'forces grow with the masses of both particles'
    orders = ()  # Tried where masses are given, in either.


def turned(vector: Tensor) -> Tensor:
    """Vectors :obj:`[*, D]` under each generator of rotations, :obj:`[*, D,
    P]`; none on a line."""
    out = [vector.new_zeros(*vector.size(), 0)]
    for a, b in combinations(range(vector.size(-1)), 2):
        part = torch.zeros_like(vector)
        part[..., a], part[..., b] = -vector[..., b], vector[..., a]
        out.append(part.unsqueeze(-1))
    return torch.cat(out, dim=-1)


def _length(vector: Tensor) -> Tensor:
    least = torch.finfo(vector.dtype).tiny**0.5
    return torch.clamp(vector.norm(dim=-1, keepdim=True), min=least)
