import math
from dataclasses import replace

import pytest
import torch
from made_up_runs import LINEAR, ONE, TWO, make_run, make_runs

from pyg_fnri.experiments.selection import select
from pyg_fnri.experiments.selection_row import make_row
from pyg_fnri.inference.likelihood import Estimate


def test_errors_are_geometric_means():
    selection = select(make_runs({ONE: 1.}))
    assert selection.static[10].mean == pytest.approx(9e-3)
    assert selection.linear[10].mean == pytest.approx(4e-3)
    assert selection.choice.errors[10].mean == pytest.approx(1e-3, rel=0.03)
    assert selection.choice.over_linear.mean == pytest.approx(
        -math.log(LINEAR), abs=0.03)


def test_types_count_as_used_by_their_edges_and_their_worth():
    run = make_run(TWO, 1., shares=[[0.5, 0.5], [0.995, 0.005]],
                   worth=[[0.5, 0.], [0.5, 0.5]])
    row = make_row(TWO, [run, make_run(TWO, 1.)], Estimate(0., 0.), 10)
    assert (row.num_used, row.num_types) == (2 + 4, 8)


def test_layers_are_the_same_whatever_their_types_are_called():
    layer = torch.arange(800).view(-1, 1) % 2
    run = make_run(TWO, 1., edge_type=torch.cat([layer, 1 - layer], -1))
    assert make_row(TWO, [run], Estimate(0., 0.), 10).num_copies == 1
    assert make_row(TWO, [make_run(TWO, 1.)], Estimate(0., 0.),
                    10).num_copies == 0


def test_agreement_is_the_mean_of_all_pairs_of_runs():
    runs = [make_run(TWO, 1., seed, wrong=0.3) for seed in (0, 1, 2)]
    row = make_row(TWO, runs, Estimate(0., 0.), 10)
    assert len(row.agreements) == 3
    shares = [a.share for a in row.agreements]
    assert min(shares) < row.agreement.share < max(shares)
    assert make_row(TWO, runs[:1], Estimate(0., 0.), 10).agreement is None


def test_accuracy_is_that_of_the_runs_that_know_it():
    runs = [replace(make_run(TWO, 1.), accuracy=a) for a in (0.8, None, 0.9)]
    row = make_row(TWO, runs, Estimate(0., 0.), 10)
    assert row.accuracy == pytest.approx(0.85)
    assert make_row(TWO, runs[1:2], Estimate(0., 0.), 10).accuracy is None
