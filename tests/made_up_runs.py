"""Made-up runs of candidates, with figures that can be checked by hand."""
import numpy as np
import torch

from pyg_fnri.experiments.candidate import Candidate
from pyg_fnri.experiments.held_out import HeldOut

ONE, TWO, THREE = (Candidate(n * (2, )) for n in (1, 2, 3))
SYSTEMS = np.geomspace(1e-4, 1e-2, 40)
#: Of the linear step, so many times what candidates get near.
LINEAR = 4.


def make_run(candidate, factor, seed=0, shuffled=2., wrong=0., **changes):
    """Of a model whose error is a multiple of what systems differ by; a share
    of its graph is not that of other seeds."""
    noise = np.random.default_rng(seed).normal(scale=0.05, size=(2, 40))
    sizes = candidate.num_edge_types
    generator = torch.Generator().manual_seed(0)
    types = torch.stack(
        [torch.randint(k, (800, ), generator=generator) for k in sizes], -1)
    generator.manual_seed(seed + 1)
    other = torch.stack(
        [torch.randint(k, (800, ), generator=generator) for k in sizes], -1)
    types[:round(800 * wrong)] = other[:round(800 * wrong)]
    error = factor * SYSTEMS * np.exp(noise[1])
    return HeldOut(
        **{
            'sizes': sizes,
            'errors': {
                1: 0.1 * factor * SYSTEMS * np.exp(noise[0]),
                10: error
            },
            'static': {
                1: SYSTEMS,
                10: 9 * SYSTEMS
            },
            'linear': {
                1: 0.2 * SYSTEMS,
                10: LINEAR * SYSTEMS
            },
            'shuffled': shuffled * error,
            'nll': 100. * factor,
            'entropy': [0.05 for _ in sizes],
            'shares': [[1 / k] * k for k in sizes],
            'worth': [[0.5] * k for k in sizes],
            'edge_type': types,
            **changes
        })


def make_runs(factors, **changes):
    return {
        candidate:
        [make_run(candidate, factor, seed, **changes) for seed in (0, 1)]
        for candidate, factor in factors.items()
    }
