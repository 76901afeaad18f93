"""A start near the best graph: interactions of any strength, made discrete."""
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.inference.likelihood import Objective
from pyg_fnri.inference.search import NOT_FINITE, GraphSearch

#: Variance of a channel that is as good as known: others still move it.
LEAST_VARIANCE = 1e-2


class Gaussian(NamedTuple):
    """Gaussians of the channels of pairs, up to a factor.

    Args:
        precision: :obj:`[*, C, C]`.
        pull: Precision times mean, :obj:`[*, C]`.
    """
    precision: Tensor
    pull: Tensor

    @classmethod
    def of_nothing(cls, num: int, num_channels: int,
                   like: Tensor) -> 'Gaussian':
        return cls(like.new_zeros(num, num_channels, num_channels),
                   like.new_zeros(num, num_channels))

    @classmethod
    def of_types(cls, q: Tensor, options: Tensor) -> 'Gaussian':
        """Mean and variance under probabilities :obj:`[v, M]` of options."""
        mean = q @ options
        spread = (options - mean.unsqueeze(1)).square()
        variance = torch.einsum('vm,vmc->vc', q, spread)
        precision = 1 / variance.clamp(min=LEAST_VARIANCE)
        return cls(torch.diag_embed(precision), precision * mean)

    @property
    def mean(self) -> Tensor:
        return (inverse(self.precision) @ self.pull.unsqueeze(-1)).squeeze(-1)

    def plus(self, other: 'Gaussian') -> 'Gaussian':
        """The product of both."""
        return Gaussian(self.precision + other.precision,
                        self.pull + other.pull)

    def minus(self, other: 'Gaussian') -> 'Gaussian':
        """What is left without the other."""
        return Gaussian(self.precision - other.precision,
                        self.pull - other.pull)

    def towards(self, other: 'Gaussian', share: float) -> 'Gaussian':
        """Subset of the way to the other, 1 being all of it."""
        return Gaussian(*map(torch.lerp, self, other, (share, share)))

    def take(self, index: Tensor) -> 'Gaussian':
        return Gaussian(self.precision[index], self.pull[index])

    def log_density(self, options: Tensor) -> Tensor:
        """Of each of the options :obj:`[M, C]`, up to a constant."""
        bend = torch.einsum('mc,vcd,md->vm', options, self.precision, options)
        return self.pull @ options.t() - bend / 2


def inverse(matrix: Tensor) -> Tensor:
    """The inverses of matrices :obj:`[*, n, n]`.

    Raises:
        ValueError: If one is singular, to the precision of numbers.
    """
    out, failed = torch.linalg.inv_ex(matrix)
    if bool(failed.any()):
        raise ValueError("What force laws say of a graph is too large to "
                         "compute with; check the laws, and the scale of the "
                         "decoder.")
    return out


#: How often each stage's parabolas are solved, for pairs to hear of each other
#: through the particles in between.
NUM_ROUNDS = 3

#: How much of what particles said before stays, or it would swing to and fro.
DAMPING = 0.5

#: Entries of the arrays of particles that are solved for side by side: larger
#: ones are given back to the system, and it takes longer.
NUM_ENTRIES = 4_000_000

#: Those of a system that is not too large: of 200 particles under two forces,
#: in 49 frames.
MAX_ENTRIES = 50_000_000

#: Last stages that are also swept over, one pair at a time.
NUM_SWEPT = 3


def relax_and_sweep(
    search: GraphSearch,
    evidence: ImpulseEvidence,
    annealing: Sequence[Objective],
    start: Optional[Tensor] = None,
) -> None:
    """Has graphs found by :func:`relax`, and sweeps over them with the last
    stages; with all stages, where one of the systems is too large to relax.
    Arguments are as there."""
    if _is_small(search, evidence):
        search.choice = relax(search, evidence, annealing, start)
        annealing = annealing[-NUM_SWEPT:]
    for stage in annealing:
        search.sweep(evidence, stage)


def relax(
    search: GraphSearch,
    evidence: ImpulseEvidence,
    annealing: Sequence[Objective],
    start: Optional[Tensor] = None,
) -> Tensor:
    r"""The most probable graphs where interactions may be of any strength,
    and come to be those of a type, in the manner of expectation propagation.

    What force laws leave unexplained of a particle's motion is linear in the
    channels :math:`\mathbf{z}_p` of all pairs that act on it. With a robust
    cost replaced by the parabolas that touch it at the present errors, and
    with Gaussians in place of all else that is known of these pairs, each
    particle says of each of them what its motion does, whatever the others
    are: a Gaussian message. A pair hears both its particles. From that come
    the probabilities of its types, and the mean and the variance of its
    channels under these are the pair's own Gaussian, which its particles hear,
    and of each other, in the next round. (What the pair has heard is not
    divided out of it, so that precisions stay positive.) Changing one pair at
    a time (:func:`~pyg_fnri.inference.search.sweep`) gets stuck the sooner the
    more particles there are; this hardly does. Not in the paper.

    Args:
        search: Knows the choices, the options and the encoder's posterior.
        evidence: The errors of force laws.
        annealing: One iteration each, with its own cost.
        start: Probabilities of the options, :obj:`[V, M]`; by default, as the
            encoder's word weighs in the first stage.

    Returns:
        The most probable options, :obj:`[V]`.

    Raises:
        ValueError: If forces are not finite, or too large to compute with.
    """
    choice = search.choice.clone()
    if not annealing or not choice.numel():
        return choice
    if start is None:
        start = (annealing[0].prior_weight * search.log_prior).softmax(-1)
    options = search.options.double()
    for part in _parts(search, evidence):
        particles = _Particles.of(search, evidence, part)
        if not bool(particles.effect.isfinite().all()):
            raise ValueError(NOT_FINITE)
        log_prior = search.log_prior[part].double()
        q = start[part].double()
        said = Gaussian.of_nothing(particles.pair.numel(), options.size(1), q)
        channels = q @ options
        for stage in annealing:
            normal, right = particles.parabolas(channels, stage)
            for _ in range(NUM_ROUNDS):
                own = Gaussian.of_types(q, options)
                heard = particles.sum_at_pairs(said).plus(own)
                new = particles.messages(normal, right,
                                         heard.take(particles.pair).minus(said))
                said = new.towards(said, DAMPING)
                heard = particles.sum_at_pairs(said)
                score = heard.log_density(options)
                q = (score + stage.prior_weight * log_prior).softmax(-1)
            channels = heard.plus(own).mean
        if not bool(q.isfinite().all()):
            raise ValueError(NOT_FINITE)
        choice[part] = q.argmax(-1)
    return choice


def _is_small(search: GraphSearch, evidence: ImpulseEvidence) -> bool:
    """Whether the arrays of all particles of each system are small."""
    num_nodes, width = _sizes(search)
    entries = num_nodes * width * (width + evidence.change[0].numel())
    return not search.choice.numel() or int(entries.max()) <= MAX_ENTRIES


class _Particles(NamedTuple):
    """The motion of particles side by side, each padded to K pairs.

    Args:
        effect: What each channel of each pair adds to a particle's changes,
            :obj:`[n, K * C, T * F]`.
        change: What forces have to explain, :obj:`[n, T, F]`.
        valid: Whether they can, :obj:`[n, T]`.
        pair: Pairs at the particles that they act on, :obj:`[i]`.
        node: These particles, :obj:`[i]`.
        slot: Which of its pairs it is there, :obj:`[i]`.
        num_pairs: Number of pairs.
    """
    effect: Tensor
    change: Tensor
    valid: Tensor
    pair: Tensor
    node: Tensor
    slot: Tensor
    num_pairs: int

    @classmethod
    def of(cls, search: GraphSearch, evidence: ImpulseEvidence,
           members: Tensor) -> '_Particles':
        transitions = evidence.transitions
        pair, particle = _incidences(search, members)
        on_receiver, on_sender = evidence.effects(members)
        on_sender = on_sender[search.choices.mutual[members]]
        effect = torch.cat([on_receiver, on_sender]).flatten(2).double()
        particle, node = particle.unique(return_inverse=True)
        slot = _rank(node)
        padded = effect.new_zeros(particle.numel(),
                                  int(slot.max()) + 1,
                                  *effect.size()[1:])
        padded[node, slot] = effect
        return cls(padded.flatten(1, 2), evidence.change[particle].double(),
                   transitions.valid[particle], pair, node, slot,
                   members.numel())

    def parabolas(self, channels: Tensor,
                  stage: Objective) -> tuple[Tensor, Tensor]:
        """The cost around present channels :obj:`[v, C]` as parabolas:
        matrices :obj:`[n, K * C, K * C]` and right-hand sides
        :obj:`[n, K * C]`. Where a particle has fewer pairs, nothing pulls."""
        present = self._padded(channels[self.pair]).flatten(1).unsqueeze(1)
        explained = present @ self.effect  # [n, 1, T * F]
        error = self.change - explained.view_as(self.change)
        weight = 2 * stage.weight(error) * self.valid.unsqueeze(-1)
        weighted = self.effect * weight.flatten(1).unsqueeze(1)
        normal = weighted @ self.effect.mT
        right = weighted @ self.change.flatten(1).unsqueeze(-1)
        there = self._padded(torch.ones_like(channels)[self.pair])
        return (normal + torch.diag_embed(1 - there.flatten(1)),
                right.squeeze(-1))

    def messages(self, normal: Tensor, right: Tensor,
                 others: Gaussian) -> Gaussian:
        """What each particle says of each of its pairs, :obj:`[i]`, from
        parabolas and what is known of these pairs elsewhere."""
        num_channels = others.pull.size(-1)
        size = len(normal), -1, num_channels
        known = normal.view(*size,
                            normal.size(1) // num_channels,
                            num_channels).clone()
        known[self.node, self.slot, :, self.slot] += others.precision
        covariance = inverse(known.view_as(normal))
        pull = right + self._padded(others.pull).flatten(1)
        mean = (covariance @ pull.unsqueeze(-1)).view(size)
        precision = inverse(
            covariance.view_as(known)[self.node, self.slot, :, self.slot])
        mean = mean[self.node, self.slot].unsqueeze(-1)
        return Gaussian(precision, (precision @ mean).squeeze(-1)).minus(others)

    def sum_at_pairs(self, said: Gaussian) -> Gaussian:
        """All that particles say of each pair, :obj:`[v]`."""
        return Gaussian(
            *(part.new_zeros(self.num_pairs,
                             *part.size()[1:]).index_add_(0, self.pair, part)
              for part in said))

    def _padded(self, value: Tensor) -> Tensor:
        """Values :obj:`[i, C]` as :obj:`[n, K, C]`."""
        num_channels = value.size(-1)
        out = value.new_zeros(len(self.effect),
                              self.effect.size(1) // num_channels, num_channels)
        out[self.node, self.slot] = value
        return out


def _incidences(search: GraphSearch, members: Tensor) -> tuple[Tensor, Tensor]:
    """Which of the choices acts on which particle: receivers first."""
    choices = search.choices
    pair = torch.arange(members.numel(), device=members.device)
    both = choices.mutual[members]
    return (torch.cat([pair, pair[both]]),
            torch.cat(
                [choices.receiver[members], choices.sender[members[both]]]))


def _sizes(search: GraphSearch) -> tuple[Tensor, Tensor]:
    """Particles of each system, and channels that act on the one with most of
    them, twice :obj:`[num_systems]`."""
    _, particle = _incidences(
        search, torch.arange(search.choice.numel(),
                             device=search.choice.device))
    degree = particle.bincount(minlength=search.system.numel())
    width = search.options.size(1) * degree.new_zeros(
        search.num_systems).scatter_reduce(0, search.system, degree, 'amax')
    num_nodes = search.system[degree > 0].bincount(minlength=search.num_systems)
    return num_nodes, width


def _parts(search: GraphSearch, evidence: ImpulseEvidence) -> Iterator[Tensor]:
    """The choices of as many systems of about the same size as fit."""
    owner = search.system[search.choices.receiver]
    num_nodes, width = _sizes(search)
    order = width * search.num_systems + torch.arange(len(width),
                                                      device=width.device)
    members = order[owner].argsort(stable=True)
    count = owner.bincount(minlength=search.num_systems)
    num_rows = evidence.change[0].numel()
    start = stop = filled = 0
    for system in order.argsort().tolist():
        # All are padded to the width of the last one.
        size = int(width[system]) * (int(width[system]) + num_rows)
        more = int(num_nodes[system])
        if filled and (filled + more) * size > NUM_ENTRIES:
            yield members[start:stop]
            start, filled = stop, 0
        stop, filled = stop + int(count[system]), filled + more
    if stop > start:
        yield members[start:stop]


def _rank(group: Tensor) -> Tensor:
    """The place of each entry among those of its group."""
    order = group.argsort(stable=True)
    count = group.bincount()
    first = (count.cumsum(0) - count)[group[order]]
    out = torch.empty_like(group)
    out[order] = torch.arange(group.numel(), device=group.device) - first
    return out
