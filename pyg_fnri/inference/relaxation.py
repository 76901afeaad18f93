"""A start near the best graph: interactions of any strength, made discrete."""
from collections.abc import Iterator, Sequence
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.utils import to_dense_batch

from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.inference.likelihood import Objective
from pyg_fnri.inference.search import NOT_FINITE, GraphSearch

#: How often messages are sent in each stage.
NUM_ROUNDS = 3

#: How much of the messages before stays, or they would swing to and fro.
DAMPING = 0.5

#: Variance of a channel that is as good as known: others still move it.
LEAST_VARIANCE = 1e-2

#: Entries of the arrays of particles side by side: larger ones take longer.
NUM_ENTRIES = 4_000_000

#: Entries of the largest system that is relaxed: of 200 particles under two
#: forces, in 49 frames.
MAX_ENTRIES = 50_000_000

#: Last stages that are also swept over, one pair at a time.
NUM_SWEPT = 3


def relax_and_sweep(search: GraphSearch, evidence: ImpulseEvidence,
                    annealing: Sequence[Objective],
                    start: Optional[Tensor] = None) -> None:
    """Finds graphs by :func:`relax`, and sweeps over them with the last
    stages; with all, where one of the systems is too large to relax."""
    _, entries = _sizes(search, evidence)
    if int(entries.max()) <= MAX_ENTRIES:
        search.choice = relax(search, evidence, annealing, start)
        annealing = annealing[-NUM_SWEPT:]
    for stage in annealing:
        search.sweep(evidence, stage)


def relax(search: GraphSearch, evidence: ImpulseEvidence,
          annealing: Sequence[Objective],
          start: Optional[Tensor] = None) -> Tensor:
    r"""The most probable graphs, as options of each choice :obj:`[V]`, where
    interactions may be of any strength and come to be those of a type, in the
    manner of expectation propagation.

    The residual of a particle's motion under force laws is linear in the
    channels of all pairs that act on it. With the robust cost replaced by the
    parabolas that touch it at the present errors, each particle sends each of
    its pairs a Gaussian message: what its motion says of the pair, whatever
    the other pairs are. From the messages of both its particles come the
    probabilities of a pair's types; the mean and the variance of its channels
    under these are the pair's own Gaussian, which its particles receive in the
    next round. (What the pair has received is not divided out of it, so that
    precisions stay positive.) Changing one pair at a time gets stuck the
    sooner the more particles there are; this hardly does. Not in the paper.

    A Gaussian of channels is a tensor :obj:`[*, C, C + 1]`: its precision, and
    in the last column its precision times its mean. Sums are products.

    Args:
        search: The present graphs, of which active choices are relaxed.
        evidence: The errors of force laws.
        annealing: One iteration each, with its own cost.
        start: Probabilities of the options, :obj:`[V, M]`; by default, the
            encoder's, as they weigh in the first stage.
    """
    choice = search.choice.clone()
    if start is None:
        start = (annealing[0].prior_weight * search.log_prior).softmax(-1)
    options = search.options.double()
    for members in _parts(search, evidence):
        particles = _Particles(search, evidence, members)
        if not bool(particles.effect.isfinite().all()):
            raise ValueError(NOT_FINITE)
        log_prior, q = search.log_prior[members].double(
        ), start[members].double()
        pair, num_channels = particles.pair, options.size(1)
        sent = q.new_zeros(len(pair), num_channels, num_channels + 1)
        channels = q @ options
        for stage in annealing:
            normal, right = particles.parabolas(channels, stage)
            for _ in range(NUM_ROUNDS):
                own = _gaussian(q, options)
                received = own.new_zeros(own.size()).index_add_(0, pair, sent)
                new = particles.messages(normal, right,
                                         (received + own)[pair] - sent)
                sent = torch.lerp(new, sent, DAMPING)
                received = own.new_zeros(own.size()).index_add_(0, pair, sent)
                score = _log_density(received, options)
                q = (score + stage.prior_weight * log_prior).softmax(-1)
            both = received + own
            mean = torch.linalg.inv(both[..., :-1]) @ both[..., -1:]
            channels = mean.squeeze(-1)
        if not bool(q.isfinite().all()):
            raise ValueError(NOT_FINITE)
        choice[members] = q.argmax(-1)
    return choice


def _gaussian(q: Tensor, options: Tensor) -> Tensor:
    """Of the mean and the variance under probabilities :obj:`[v, M]`."""
    mean = q @ options
    spread = (options - mean.unsqueeze(1)).square()
    variance = torch.einsum('vm,vmc->vc', q, spread)
    precision = 1 / variance.clamp(min=LEAST_VARIANCE)
    return torch.cat(
        [torch.diag_embed(precision), (precision * mean).unsqueeze(-1)], dim=-1)


def _log_density(gaussian: Tensor, options: Tensor) -> Tensor:
    """Of each of the options :obj:`[M, C]`, up to a constant."""
    bend = torch.einsum('mc,vcd,md->vm', options, gaussian[..., :-1], options)
    return gaussian[..., -1] @ options.t() - bend / 2


class _Particles:
    """The motion of n particles side by side, each padded to K pairs."""
    def __init__(self, search: GraphSearch, evidence: ImpulseEvidence,
                 members: Tensor) -> None:
        choices, both = search.choices, search.choices.mutual[members]
        particle = torch.cat(
            [choices.receiver[members], choices.sender[members[both]]])
        order = particle.argsort(stable=True)
        pair = torch.arange(members.numel(), device=members.device)
        #: Pairs at the particles that they act on, [i], by particle.
        self.pair = torch.cat([pair, pair[both]])[order]
        on_receiver, on_sender = evidence.effects(members)
        effect = torch.cat([on_receiver, on_sender[both]]).flatten(2).double()
        particle, node = particle[order].unique(return_inverse=True)
        effect, self.there = to_dense_batch(effect[order], node)
        #: What each channel of each pair adds to a particle's changes,
        #: [n, K * C, T * F].
        self.effect = effect.flatten(1, 2)
        self.change = evidence.change[particle].double()  # [n, T, F]
        self.valid = evidence.transitions.valid[particle].unsqueeze(-1)

    def parabolas(self, channels: Tensor,
                  stage: Objective) -> tuple[Tensor, Tensor]:
        """The cost around present channels :obj:`[v, C]` as parabolas:
        matrices :obj:`[n, K * C, K * C]` and right-hand sides
        :obj:`[n, K * C]`. Where a particle has fewer pairs, nothing pulls."""
        present = self._padded(channels[self.pair]).flatten(1).unsqueeze(1)
        explained = present @ self.effect  # [n, 1, T * F]
        error = self.change - explained.view_as(self.change)
        weight = 2 * stage.weight(error) * self.valid
        weighted = self.effect * weight.flatten(1).unsqueeze(1)
        normal = weighted @ self.effect.mT
        right = weighted @ self.change.flatten(1).unsqueeze(-1)
        there = self.there.repeat_interleave(channels.size(1), 1)
        return (normal + torch.diag_embed((~there).double()), right.squeeze(-1))

    def messages(self, normal: Tensor, right: Tensor, others: Tensor) -> Tensor:
        """What each particle sends to each of its pairs, :obj:`[i]` Gaussians,
        from parabolas and what is known of these pairs elsewhere."""
        num_channels = others.size(1)
        known = normal.view(len(normal), -1, num_channels,
                            normal.size(1) // num_channels,
                            num_channels).clone()
        padded = self._padded(others)
        known.diagonal(0, 1, 3).add_(padded[..., :-1].permute(0, 2, 3, 1))
        covariance = torch.linalg.inv(known.view_as(normal))
        pull = right + padded[..., -1].flatten(1)
        mean = (covariance @ pull.unsqueeze(-1)).view_as(padded[..., -1:])
        own = covariance.view_as(known).diagonal(0, 1, 3).permute(0, 3, 1, 2)
        precision = torch.linalg.inv(own[self.there])
        pull = precision @ mean[self.there]
        return torch.cat([precision, pull], dim=-1) - others

    def _padded(self, value: Tensor) -> Tensor:
        """Values :obj:`[i, *]` as :obj:`[n, K, *]`."""
        out = value.new_zeros(self.there.size() + value.size()[1:])
        out[self.there] = value
        return out


def _sizes(search: GraphSearch,
           evidence: ImpulseEvidence) -> tuple[Tensor, Tensor]:
    """Of each system, the channels that act on the particle with most of them,
    and the entries of all its particles' arrays, twice :obj:`[num_systems]`."""
    choices, system = search.choices, search.system
    particle = torch.cat([
        choices.receiver[search.active],
        choices.sender[search.active & choices.mutual]
    ])
    degree = particle.bincount(minlength=system.numel())
    width = search.options.size(1) * degree.new_zeros(
        search.num_systems).scatter_reduce(0, system, degree, 'amax')
    num_nodes = system[degree > 0].bincount(minlength=search.num_systems)
    return width, num_nodes * width * (width + evidence.change[0].numel())


def _parts(search: GraphSearch, evidence: ImpulseEvidence) -> Iterator[Tensor]:
    """The active choices of about as many systems of one width as fit."""
    width, entries = _sizes(search, evidence)
    order = width.argsort(stable=True)
    block = entries[order].cumsum(0) // NUM_ENTRIES
    part = torch.empty_like(order)
    _, part[order] = torch.stack([width[order], block
                                  ]).unique_consecutive(dim=1,
                                                        return_inverse=True)
    active = search.active.nonzero().squeeze(-1)
    owner = part[search.system[search.choices.receiver[active]]]
    for number in owner.unique():
        yield active[owner == number]
