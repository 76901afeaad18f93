"""What is known of the channels of pairs, as Gaussians."""
from typing import NamedTuple

import torch
from torch import Tensor

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
