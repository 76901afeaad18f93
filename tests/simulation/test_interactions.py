import numpy as np
import pytest

from pyg_fnri.simulation.interactions import (
    pairs_in_random_group,
    random_pairs,
)


@pytest.mark.parametrize('sample', [random_pairs, pairs_in_random_group])
@pytest.mark.parametrize('num_particles', [2, 3, 5, 12])
def test_graphs_are_symmetric_without_loops(sample, num_particles):
    graphs = sample(np.random.default_rng(0), 200, num_particles)
    assert graphs.shape == (200, num_particles, num_particles)
    assert graphs.dtype == bool
    assert (graphs == graphs.transpose(0, 2, 1)).all()
    assert not graphs.diagonal(axis1=1, axis2=2).any()
    assert graphs.any() and not graphs.any(axis=(1, 2)).all()


def test_number_of_pairs_is_uniform():
    graphs = random_pairs(np.random.default_rng(0), 22_000, 5)
    frequency = np.bincount(graphs.sum((1, 2)) // 2, minlength=11)
    # 2000 expected of each of 0 ... 10, with a standard deviation of 43.
    assert len(frequency) == 11
    assert (np.abs(frequency - 2000) < 200).all()


def test_all_pairs_are_equally_frequent():
    graphs = random_pairs(np.random.default_rng(0), 20_000, 5)
    share = graphs.mean(0)[np.tril_indices(5, -1)]
    assert (np.abs(share - 0.5) < 0.02).all()


def test_size_of_group_is_uniform_and_its_pairs_all_interact():
    graphs = pairs_in_random_group(np.random.default_rng(0), 20_000, 5)
    degree = graphs.sum(2)
    size = np.maximum(degree.max(1) + 1, 1)
    member = degree > 0
    complete = member[:, :, None] & member[:, None, :] & ~np.eye(5, dtype=bool)
    assert (graphs == complete).all()
    # A group of one has no pair. 4000 expected of each, deviation 57.
    frequency = np.bincount(size, minlength=6)[1:]
    assert (np.abs(frequency - 4000) < 300).all()


def test_same_generator_same_graphs():
    first, second, other = (random_pairs(np.random.default_rng(seed), 50, 5)
                            for seed in (1, 1, 2))
    assert (first == second).all()
    assert (first != other).any()
