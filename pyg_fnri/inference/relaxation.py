"""A start near the best graph: interactions of any strength, made discrete."""
from collections.abc import Iterator, Sequence
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.utils import to_dense_batch

from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.inference.likelihood import Objective
from pyg_fnri.inference.search import NOT_FINITE, GraphSearch

#: How often messages are sent in each stage, and how much of those before
#: stays, or they would swing to and fro.
NUM_ROUNDS, DAMPING = 3, 0.5

#: Variance of a channel that is as good as known: others still move it.
LEAST_VARIANCE = 1e-2

#: Entries of arrays side by side (larger ones take longer), and of the largest
#: system that is relaxed (200 particles under two forces, in 49 frames).
NUM_ENTRIES, MAX_ENTRIES = 4_000_000, 50_000_000
#: Of matrices that are factorised side by side, to stay in a cache.
NUM_CACHED = 1_000_000

#: Last stages that are also swept over, one pair at a time.
NUM_SWEPT = 3

#: Beginnings of each particle's graph that are followed, of directed graphs.
NUM_KEPT = 64


def relax_and_sweep(search: GraphSearch, evidence: ImpulseEvidence,
                    annealing: Sequence[Objective],
                    start: Optional[Tensor] = None) -> None:
    _, entries = sizes(search, evidence)
    if int(entries.max()) <= MAX_ENTRIES:
        search.choice = relax(search, evidence, annealing, start)
        annealing = annealing[-NUM_SWEPT:]
    for stage in annealing:
        search.sweep(evidence, stage)
    decode_directed(search, evidence, annealing[-1])


def decode_directed(search: GraphSearch, evidence: ImpulseEvidence,
                    objective: Objective) -> None:
    """Looks at all pairs of a particle at once, in directed graphs."""
    _, entries = sizes(search, evidence)
    if bool(search.choices.mutual.any()) or int(entries.max()) > MAX_ENTRIES:
        return
    # At first by all transitions alike, then by those that fit.
    for is_robust in (False, True):
        decode(search, evidence, objective, is_robust)


def decode(search: GraphSearch, evidence: ImpulseEvidence, objective: Objective,
           is_robust: bool) -> None:
    """Directed graphs, in which what acts on one particle tells nothing of
    others: as integer least squares by QR decomposition, with a beam of the
    :data:`NUM_KEPT` best beginnings of each particle, kept where it explains
    more. Not in the paper."""
    before, options = search.choice, search.options.double()
    old_cost = objective.cost(evidence.errors(search.channels))
    choice = before.clone()
    for members in _parts(search, evidence):
        particles = _Particles(search, evidence, members)
        num_particles, num_pairs = particles.there.size()
        weight = particles.valid.double().expand_as(particles.change)
        if is_robust:
            error = evidence.errors(search.channels)[particles.number]
            weight = weight * objective.weight(error.double())
        weight = weight.sqrt().flatten(1)
        effect = particles.effect * weight.unsqueeze(1)
        # Strong pairs are decided first, from the last one on.
        pairs = effect.unflatten(1, (num_pairs, -1))
        order = pairs.square().sum((2, 3)).argsort(1)
        pairs = pairs.gather(1, order[..., None, None].expand_as(pairs))
        q, r = torch.linalg.qr(pairs.flatten(1, 2).mT)
        target = (particles.change.flatten(1) * weight).unsqueeze(-1)
        left = (q.mT @ target).squeeze(-1).unsqueeze(1)  # [n, kept, rows]
        cost = left.new_zeros(num_particles, 1)
        path = order.new_zeros(num_particles, 1, 0)
        width = options.size(1)
        for k in reversed(range(num_pairs)):
            own = slice(k * width, (k + 1) * width)
            tried = left.unsqueeze(2) - (options @ r[..., own].mT).unsqueeze(1)
            cost = cost.unsqueeze(2) + tried[..., own].square().sum(-1)
            cost = cost.flatten(1)
            cost, best = cost.topk(min(NUM_KEPT, cost.size(1)), 1,
                                   largest=False)
            kept = best // len(options)
            left = tried.flatten(1, 2).gather(
                1,
                best.unsqueeze(-1).expand(-1, -1, left.size(-1)))
            path = torch.cat([
                path.gather(1,
                            kept.unsqueeze(-1).expand(-1, -1, path.size(2))),
                (best % len(options)).unsqueeze(-1)
            ], dim=-1)
        found = torch.zeros_like(order).scatter(1, order, path[:, 0].flip(1))
        choice[members[particles.pair]] = found[particles.there]
    search.choice = choice
    worse = objective.cost(evidence.errors(search.channels)) >= old_cost
    search.choice = torch.where(worse[search.choices.receiver], before, choice)


def relax(search: GraphSearch, evidence: ImpulseEvidence,
          annealing: Sequence[Objective],
          start: Optional[Tensor] = None) -> Tensor:
    """The most probable graphs, as options of each choice :obj:`[V]`, by
    relaxing the types, in the manner of expectation propagation. Not in the
    paper.

    With the robust cost replaced by parabolas that touch it at the present
    errors, each particle sends each of its pairs a Gaussian: what its motion
    says of the pair, whatever the others are. From both come the probabilities
    of types, :obj:`[V, M]`, at first the encoder's; their mean and variance are
    what particles receive in the next round. (What the pair has received is not
    divided out, so that precisions stay positive.) Changing one pair at a time
    gets stuck in large systems; this hardly does.

    A Gaussian is a tensor :obj:`[*, C, C + 1]`: its precision, and in the last
    column its precision times its mean. Sums are products."""
    choice: Tensor = search.choice.clone()
    if start is None:
        start = (annealing[0].prior_weight * search.log_prior).softmax(-1)
    options = search.options.double()
    for members in _parts(search, evidence):
        particles = _Particles(search, evidence, members)
        if not bool(particles.effect.isfinite().all()):
            raise ValueError(NOT_FINITE)
        log_prior = search.log_prior[members].double()
        q = start[members].double()
        pair, num_channels = particles.pair, options.size(1)
        sent = q.new_zeros(len(pair), num_channels, num_channels + 1)
        received = q.new_zeros(len(q), num_channels, num_channels + 1)
        channels = q @ options
        for stage in annealing:
            normal, right = particles.parabolas(channels, stage)
            for _ in range(NUM_ROUNDS):
                own = _gaussian(q, options)
                new = particles.messages(normal, right,
                                         (received + own)[pair] - sent)
                sent = torch.lerp(new, sent, DAMPING)
                received = torch.zeros_like(own).index_add_(0, pair, sent)
                bend = torch.einsum('mc,vcd,md->vm', options,
                                    received[..., :-1], options)
                score = received[..., -1] @ options.t() - bend / 2
                q = (score + stage.prior_weight * log_prior).softmax(-1)
            precision, pull = (received + own).split([num_channels, 1], -1)
            channels = (torch.linalg.inv(precision) @ pull).squeeze(-1)
        if not bool(q.isfinite().all()):
            raise ValueError(NOT_FINITE)
        choice[members] = q.argmax(-1)
    return choice


def marginals(precision: Tensor, pull: Tensor,
              width: int) -> tuple[Tensor, Tensor]:
    """Means :obj:`[n, m]` and the covariances :obj:`[n, m / width, width,
    width]` of each few variables, under Gaussians of :obj:`precision` matrices
    :obj:`[n, m, m]` and these times the means."""
    size = max(1, NUM_CACHED // precision[:1].numel())
    out = []
    for matrix, right in zip(precision.split(size), pull.split(size)):
        white = whitening(matrix)
        mean = white.mT @ (white @ right.unsqueeze(-1))
        columns = white.unflatten(2, (-1, width)).unbind(-1)
        own = [(a * b).sum(1) for a in columns for b in columns]
        own = torch.stack(own, -1).unflatten(-1, (width, width))
        out.append((mean.squeeze(-1), own))
    means, owns = zip(*out)
    return torch.cat(means), torch.cat(owns)


def whitening(matrix: Tensor) -> Tensor:
    """The inverses of the Cholesky factors of matrices :obj:`[n, m, m]`, by
    blocks: products of many matrices are far faster than eliminations."""
    size = matrix.size(-1)
    if size <= 16:
        eye = torch.eye(size, dtype=matrix.dtype, device=matrix.device)
        factor: Tensor = torch.linalg.cholesky_ex(matrix).L
        factor = torch.linalg.solve_triangular(factor, eye, upper=False)
        return factor
    first, rest = slice(size // 2), slice(size // 2, None)
    out = torch.empty_like(matrix)
    out[:, first, first] = corner = whitening(matrix[:, first, first])
    side = matrix[:, rest, first] @ corner.mT
    other = whitening(
        torch.baddbmm(matrix[:, rest, rest], side, side.mT, alpha=-1))
    out[:, first, rest] = 0
    out[:, rest, rest] = other
    out[:, rest, first] = -other @ side @ corner
    return out


def _gaussian(q: Tensor, options: Tensor) -> Tensor:
    """Of the mean and the variance under probabilities :obj:`[v, M]`."""
    mean = q @ options
    spread = (options - mean.unsqueeze(1)).square()
    variance = torch.einsum('vm,vmc->vc', q, spread)
    precision = 1 / variance.clamp(min=LEAST_VARIANCE)
    pull = (precision * mean).unsqueeze(-1)
    return torch.cat([torch.diag_embed(precision), pull], dim=-1)


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
        #: Their numbers, [n].
        self.number = particle
        effect, self.there = to_dense_batch(effect[order], node)
        #: What each channel of each pair adds to a particle's changes,
        #: [n, K * C, T * F].
        self.effect = effect.flatten(1, 2)
        self.change = evidence.change[particle].double()  # [n, T, F]
        self.valid = evidence.transitions.valid[particle].unsqueeze(-1)

    def parabolas(self, channels: Tensor,
                  stage: Objective) -> tuple[Tensor, Tensor]:
        """The cost around present channels :obj:`[v, C]`: matrices
        :obj:`[n, K * C, K * C]` and right-hand sides :obj:`[n, K * C]`."""
        present = self._padded(channels[self.pair]).flatten(1).unsqueeze(1)
        explained = present @ self.effect  # [n, 1, T * F]
        error = self.change - explained.view_as(self.change)
        weight = 2 * stage.weight(error) * self.valid
        weighted = self.effect * weight.flatten(1).unsqueeze(1)
        normal = weighted @ self.effect.mT
        right = weighted @ self.change.flatten(1).unsqueeze(-1)
        missing = (~self.there).repeat_interleave(channels.size(1), 1)
        return normal + torch.diag_embed(missing.double()), right.squeeze(-1)

    def messages(self, normal: Tensor, right: Tensor, others: Tensor) -> Tensor:
        padded = self._padded(others)
        size = padded.size()[:3]  # n, K, C
        known = normal.view(size + size[1:]).clone()
        known.diagonal(0, 1, 3).add_(padded[..., :-1].permute(0, 2, 3, 1))
        pull = right + padded[..., -1].flatten(1)
        mean, own = marginals(known.view_as(normal), pull, size[2])
        mean = mean.view_as(padded[..., -1:])
        precision = torch.linalg.inv(own[self.there])
        pull = precision @ mean[self.there]
        return torch.cat([precision, pull], dim=-1) - others

    def _padded(self, value: Tensor) -> Tensor:
        out = value.new_zeros(self.there.size() + value.size()[1:])
        out[self.there] = value
        return out


def sizes(search: GraphSearch,
          evidence: ImpulseEvidence) -> tuple[Tensor, Tensor]:
    """The most channels that act on a particle, and the entries of all its
    arrays, of each system, twice :obj:`[num_systems]`."""
    choices, system, active = search.choices, search.system, search.active
    particle = torch.cat(
        [choices.receiver[active], choices.sender[active & choices.mutual]])
    degree = particle.bincount(minlength=system.numel())
    width = search.options.size(1) * degree.new_zeros(
        search.num_systems).scatter_reduce(0, system, degree, 'amax')
    num_nodes = system[degree > 0].bincount(minlength=search.num_systems)
    return width, num_nodes * width * (width + evidence.change[0].numel())


def _parts(search: GraphSearch, evidence: ImpulseEvidence) -> Iterator[Tensor]:
    """The active choices of about as many systems of one width as fit."""
    width, entries = sizes(search, evidence)
    order = width.argsort(stable=True)
    key = torch.stack([width[order], entries[order].cumsum(0) // NUM_ENTRIES])
    part = torch.empty_like(order)
    _, part[order] = key.unique_consecutive(True, dim=1)
    active = search.active.nonzero().squeeze(-1)
    owner = part[search.system[search.choices.receiver[active]]]
    for number in owner.unique():
        yield active[owner == number]
