from functools import partial

import pytest
import torch

from pyg_fnri.metrics import EdgeAccuracy, RelabellingConsistency


def random_types(num_edges, seed=0, num_layers=2):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(2, (num_edges, num_layers), generator=generator)


def measure(batches, *args):
    metric = RelabellingConsistency([2, 2], *args)
    for batch in batches:
        metric.update(*batch)
    return metric.compute()


def test_a_settled_model_agrees_everywhere():
    batches = [(1 - true.flip(-1), true)
               for true in (random_types(40, seed) for seed in range(6))]
    result = measure(batches)
    assert result.share == 1
    accuracy = EdgeAccuracy([2, 2])
    for batch in batches:
        accuracy.update(*batch)
    assert result.relabelling == accuracy.compute().relabelling
    assert result.frequencies == {result.relabelling: 6}


def test_batches_with_other_labels_are_counted():
    true = random_types(40)
    result = measure(3 * [(true, true)] + [(1 - true, true)] +
                     [(true.flip(-1), true)])
    assert result.share.item() == pytest.approx(0.6)
    assert str(result.relabelling) == 'as predicted'
    assert list(result.frequencies.values()) == [3, 1, 1]
    assert {str(way)
            for way in result.frequencies} == {
                'as predicted',
                'layer 0 <- predicted layer 0, type 0 -> 1, type 1 -> 0; '
                'layer 1 <- predicted layer 1, type 0 -> 1, type 1 -> 0',
                'layer 0 <- predicted layer 1; layer 1 <- predicted layer 0',
            }


def test_ties_count_as_agreement():
    true = random_types(40)
    # Of one edge (0, 0) alone, two ways are right; the first is not ours.
    swapped = true.flip(-1)
    one = torch.zeros(1, 2, dtype=torch.long)
    result = measure([(swapped, true), (one, one)])
    assert result.share == 1
    assert result.frequencies == {result.relabelling: 2}


def test_joint_types_are_matched():
    code = torch.tensor([2, 0, 3, 1])
    batches = [(code[true @ torch.tensor([[2], [1]])], true)
               for true in (random_types(40, seed) for seed in range(3))]
    result = measure(batches, [4])
    assert result.share == 1
    assert result.relabelling(batches[0][0]).equal(batches[0][1])


def test_guesses_do_not_settle():
    batches = [(random_types(20, seed), random_types(20, 1000 + seed))
               for seed in range(60)]
    result = measure(batches)
    assert result.share < 0.5 and len(result.frequencies) > 4
    assert sum(result.frequencies.values()) == 60


def test_consistency_across_processes(as_two_processes):
    batches = [(random_types(20, seed), random_types(20, 1000 + seed))
               for seed in range(9)]
    metric = RelabellingConsistency([2, 2])
    for batch in batches:
        metric.update(*batch)
    found = as_two_processes(partial(RelabellingConsistency, [2, 2]), batches)
    assert found == metric.compute()


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match='3 joint types, expected 4'):
        RelabellingConsistency([2, 2], [3])
    metric = RelabellingConsistency([2, 2])
    with pytest.raises(ValueError, match='1 edges and edge_label 2'):
        metric.update(torch.zeros(1, 2, dtype=torch.long), random_types(2))
    empty = torch.empty(0, 2, dtype=torch.long)
    metric.update(empty, empty)
    with pytest.raises(ValueError, match='has seen no edges'):
        metric.compute()
    assert str(metric) == ('RelabellingConsistency(num_edge_types=[2, 2], '
                           'predicted_edge_types=[2, 2])')
