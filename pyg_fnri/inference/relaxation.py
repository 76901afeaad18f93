"""A start near the best graph: interactions of any strength, made discrete."""
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.inference.search import NOT_FINITE, GraphSearch
from pyg_fnri.inference.sweep import Objective

#: Variance of a channel that is as good as known: others still move it.
LEAST_VARIANCE = 1e-2

#: Entries of the matrices that are inverted side by side.
NUM_ENTRIES = 4_000_000

#: Channels of all pairs of a system whose matrix is worth inverting: those of
#: 45 particles under two forces.
MAX_UNKNOWNS = 2_000

#: Entries of the matrices of all particles of a batch, a matrix each.
MAX_ENTRIES = 100_000_000

#: Last stages that are also swept over, one pair at a time.
NUM_SWEPT = 3


def relax_and_sweep(
    search: GraphSearch,
    evidence: ImpulseEvidence,
    annealing: Sequence[Objective],
    start: Optional[Tensor] = None,
    members: Optional[Tensor] = None,
) -> None:
    """Has graphs found by :func:`relax`, and sweeps over them with the last
    stages; with all stages, where one of the systems is too large to relax.
    Arguments are as there."""
    if _is_small(search, members):
        search.choice = relax(search, evidence, annealing, start, members)
        annealing = annealing[-NUM_SWEPT:]
    for stage in annealing:
        search.sweep(evidence, stage)


def relax(
    search: GraphSearch,
    evidence: ImpulseEvidence,
    annealing: Sequence[Objective],
    start: Optional[Tensor] = None,
    members: Optional[Tensor] = None,
) -> Tensor:
    r"""The most probable graphs where interactions may be of any strength,
    and come to be those of a type: expectation propagation.

    What force laws leave unexplained is linear in the channels
    :math:`\mathbf{z}_p` of all pairs of a system. With a robust cost replaced
    by the parabolas that touch it at the present errors, and with a Gaussian
    of each pair's channels in place of its types, all pairs of a system follow
    at once from one linear system of equations. From its solution, without the
    pair's own Gaussian, come the probabilities of the pair's types, and the
    mean and the variance of the channels under these are the pair's next
    Gaussian. Changing one pair at a time
    (:func:`~pyg_fnri.inference.sweep.sweep`) gets stuck the sooner the more
    particles there are; this hardly does. Not in the paper.

    Args:
        search: Knows the choices, the options and the encoder's posterior.
        evidence: The errors of force laws.
        annealing: One iteration each, with its own cost.
        start: Probabilities of the options, :obj:`[V, M]`; by default, as the
            encoder's word weighs in the first stage.
        members: Which choices to look at, :obj:`[v]`: all of a system or none;
            all by default.

    Returns:
        The most probable options, :obj:`[V]`; others keep the present ones.

    Raises:
        ValueError: If forces are not finite, or too large to compute with.
    """
    choice = search.choice.clone()
    if members is None:
        members = torch.arange(choice.numel(), device=choice.device)
    if not annealing or not members.numel():
        return choice
    if not bool(evidence.effect[members].isfinite().all()):
        raise ValueError(NOT_FINITE)
    if start is None:
        start = (annealing[0].prior_weight * search.log_prior).softmax(-1)
    options = search.options.double()
    for part in _parts(search, members):
        system = _Systems.of(search, evidence, part)
        log_prior = search.log_prior[part].double()
        q = start[part].double()
        channels = q @ options
        for stage in annealing:
            mean = q @ options
            spread = (options - mean.unsqueeze(1)).square()
            variance = torch.einsum('vm,vmc->vc', q, spread)
            precision = 1 / variance.clamp(min=LEAST_VARIANCE)
            channels, covariance = system.solve(
                *system.parabolas(channels, stage), mean, precision)
            # What all others say of a pair: without its own Gaussian.
            own = covariance.inverse()
            slope = torch.einsum('vcd,vd->vc', own, channels) - precision * mean
            own = own - torch.diag_embed(precision)
            bend = torch.einsum('mc,vcd,md->vm', options, own, options)
            score = slope @ options.t() - bend / 2
            q = (score + stage.prior_weight * log_prior).softmax(-1)
        if not bool(q.isfinite().all()):
            raise ValueError(NOT_FINITE)
        choice[part] = q.argmax(-1)
    return choice


def _is_small(search: GraphSearch, members: Optional[Tensor]) -> bool:
    """Whether matrices of the systems, and of their particles, are small."""
    choices, num_channels = search.choices, search.options.size(1)
    if members is None:
        members = torch.arange(choices.edge.numel(), device=choices.edge.device)
    if not members.numel():
        return True
    receiver, sender = choices.receiver[members], choices.sender[members]
    particle = torch.cat([receiver, sender[choices.mutual[members]]])
    _, degree = particle.unique(return_counts=True)
    unknowns = num_channels * int(search.system[receiver].bincount().max())
    entries = degree.numel() * (num_channels * int(degree.max()))**2
    return unknowns <= MAX_UNKNOWNS and entries <= MAX_ENTRIES


class _Systems(NamedTuple):
    """Systems of equations side by side, padded to D unknowns each: the
    channels of their pairs.

    Args:
        effect: What each unknown adds to a particle's changes, :obj:`[n, K,
            T * F]`; K unknowns at the most act on a particle.
        change: What forces have to explain, :obj:`[n, T, F]`.
        valid: Whether they can, :obj:`[n, T]`.
        row: The system of each particle, :obj:`[n]`.
        column: The unknown that acts on it, D for none, :obj:`[n, K]`.
        pair_row: The system of each pair, :obj:`[v]`.
        pair_column: Its unknowns, :obj:`[v, C]`.
        size: Number of systems S and of unknowns D.
    """
    effect: Tensor
    change: Tensor
    valid: Tensor
    row: Tensor
    column: Tensor
    pair_row: Tensor
    pair_column: Tensor
    size: tuple[int, int]

    @classmethod
    def of(cls, search: GraphSearch, evidence: ImpulseEvidence,
           members: Tensor) -> '_Systems':
        choices, flights = search.choices, evidence.flights
        receiver, sender = choices.receiver[members], choices.sender[members]
        both = choices.mutual[members]
        system, pair_row = search.system[receiver].unique(return_inverse=True)
        channel = torch.arange(search.options.size(1), device=members.device)
        pair_column = (_rank(pair_row).unsqueeze(1) * len(channel) + channel)
        # Who is acted on by which pair.
        pair = torch.arange(members.numel(), device=members.device)
        pair = torch.cat([pair, pair[both]])
        effect = evidence.effect[members[pair]].flatten(2).double()
        effect[members.numel():] *= -1
        particle, node = torch.cat([receiver,
                                    sender[both]]).unique(return_inverse=True)
        effect = flights.over_mass(effect, particle[node])
        slot = _rank(node)
        num_nodes, num_slots = particle.numel(), int(slot.max()) + 1
        num_unknowns = int(pair_column.max()) + 1
        padded = effect.new_zeros(num_nodes, num_slots, *effect.size()[1:])
        padded[node, slot] = effect
        column = node.new_full((num_nodes, num_slots, len(channel)),
                               num_unknowns)
        column[node, slot] = pair_column[pair]
        row = torch.searchsorted(system, search.system[particle])
        return cls(padded.flatten(1, 2), evidence.change[particle].double(),
                   flights.valid[particle], row, column.flatten(1), pair_row,
                   pair_column, (system.numel(), num_unknowns))

    def parabolas(self, channels: Tensor,
                  stage: Objective) -> tuple[Tensor, Tensor]:
        """The cost around present channels :obj:`[v, C]` as parabolas:
        matrices :obj:`[S, D, D]` and right-hand sides :obj:`[S, D]`."""
        present = self._spread(channels)
        explained = present.unsqueeze(1) @ self.effect  # [n, 1, T * F]
        error = self.change - explained.view_as(self.change)
        weight = 2 * stage.weight(error) * self.valid.unsqueeze(-1)
        weighted = self.effect * weight.flatten(1).unsqueeze(1)
        normal = weighted @ self.effect.mT
        right = weighted @ self.change.flatten(1).unsqueeze(-1)
        (num, size), width = self.size, self.size[1] + 1
        entry = self._flat()
        square = entry.unsqueeze(2) * width + self.column.unsqueeze(1)
        out = normal.new_zeros(num * width * width)
        out.index_add_(0, square.flatten(), normal.flatten())
        side = right.new_zeros(num * width)
        side.index_add_(0, entry.flatten(), right.flatten())
        return (out.view(num, width,
                         width)[:, :size, :size], side.view(num,
                                                            width)[:, :size])

    def solve(self, normal: Tensor, right: Tensor, mean: Tensor,
              precision: Tensor) -> tuple[Tensor, Tensor]:
        """Mean :obj:`[v, C]` and covariance :obj:`[v, C, C]` of channels, by
        parabolas and a Gaussian of each pair."""
        at = self.pair_row.unsqueeze(1), self.pair_column
        own = torch.ones_like(right)  # Also where there is nothing to solve.
        own[at] = precision
        pull = torch.zeros_like(right)
        pull[at] = precision * mean
        covariance = (normal + torch.diag_embed(own)).inverse()
        solution = (covariance @ (right + pull).unsqueeze(-1)).squeeze(-1)
        rows = self.pair_column.unsqueeze(2)
        block = covariance[self.pair_row.view(-1, 1, 1), rows, rows.mT]
        return solution[at], block

    def _spread(self, channels: Tensor) -> Tensor:
        """Channels of pairs at the particles they act on, :obj:`[n, K]`."""
        num, size = self.size
        out = channels.new_zeros(num, size + 1)
        out[self.pair_row.unsqueeze(1), self.pair_column] = channels
        return out.flatten()[self._flat()]

    def _flat(self) -> Tensor:
        return self.row.unsqueeze(1) * (self.size[1] + 1) + self.column


def _parts(search: GraphSearch, members: Tensor) -> Iterator[Tensor]:
    """The choices of as many systems of about the same size as fit."""
    owner = search.system[search.choices.receiver[members]]
    count = owner.bincount(minlength=search.num_systems)
    order = count[owner] * search.num_systems + owner
    members = members[order.argsort(stable=True)]
    sizes = count[count > 0].sort().values.tolist()
    start = stop = num = 0
    for size in sizes:
        entries = (num + 1) * (size * search.options.size(1) + 1)**2
        if num and entries > NUM_ENTRIES:
            yield members[start:stop]
            start, num = stop, 0
        stop, num = stop + size, num + 1
    yield members[start:stop]


def _rank(group: Tensor) -> Tensor:
    """The place of each entry among those of its group."""
    order = group.argsort(stable=True)
    count = group.bincount()
    first = (count.cumsum(0) - count)[group[order]]
    out = torch.empty_like(group)
    out[order] = torch.arange(group.numel(), device=group.device) - first
    return out
