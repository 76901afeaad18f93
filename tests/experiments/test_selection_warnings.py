import pytest
import torch
from made_up_runs import LINEAR, ONE, THREE, TWO, make_run, make_runs

from pyg_fnri.experiments.held_out import HeldOut
from pyg_fnri.experiments.selection import select


def warn(text, factors=None, **changes):
    warnings = select(make_runs(factors or {TWO: 1.}, **changes)).warnings
    assert len(warnings) == 1 and text in warnings[0]
    return warnings[0]


def test_no_gain_over_the_linear_step_is_told():
    warn('No evidence of interactions', {ONE: LINEAR})
    warn('No evidence of interactions', {ONE: 1.1 * LINEAR, TWO: LINEAR * 2})
    with pytest.raises(AssertionError):
        warn('No evidence', {ONE: 0.8 * LINEAR})


def test_graph_that_plays_no_part_is_told():
    warn('plays no part', shuffled=1.)


def test_seeds_that_disagree_are_told():
    text = warn('not to be trusted', wrong=1.)
    assert '25%' in text
    warn('Single edges of 2,2 are uncertain', wrong=0.3)
    zero = torch.zeros(800, 2, dtype=torch.long)
    warn('no graph to agree about', edge_type=zero)


def test_single_seed_is_told():
    warnings = select({TWO: [make_run(TWO, 1.)]}).warnings
    assert warnings == [
        'One seed does not show whether others find the same '
        'graph; give several with --seeds.'
    ]


def test_idle_types_and_copied_layers_are_told():
    warn('Of the 8 types in all runs of 2,2, 6 are used', worth=[[0.5, 0.5],
                                                                 [0.5, 0.]])
    warn('Of the 8 types in all runs of 2,2, 4 are used',
         shares=[[0.5, 0.5], [0.995, 0.005]], worth=[[0.5, 0.], [0.5, 0.5]])
    layer = torch.arange(800).view(-1, 1) % 2
    warn('In 2 cases, two layers of 2,2 are the same graph',
         edge_type=torch.cat([layer, 1 - layer], -1))


def test_layers_that_may_only_grade_doubt_are_told():
    runs = {ONE: 2., TWO: 1., THREE: 1.}
    warn('The graphs of 2,2 are in doubt (entropy 15%', runs,
         entropy=[0.1, 0.2])
    # Nothing smaller could have been taken.
    assert select(make_runs({TWO: 1.}, entropy=[0.1, 0.2])).warnings == []


def test_largest_candidate_and_few_systems_are_told():
    warn('is the largest candidate', {ONE: 2., TWO: 1.})
    run = make_run(TWO, 1.)
    few = {
        name: {
            h: e[:5]
            for h, e in getattr(run, name).items()
        }
        for name in ('errors', 'static', 'linear')
    }
    runs = 2 * [make_run(TWO, 1., shuffled=2., **few)]
    runs = [
        HeldOut(**{
            **vars(run), 'shuffled': run.shuffled[:5]
        }) for run in runs
    ]
    assert 'There are 5 held-out systems only' in select({
        TWO: runs
    }).warnings[0]
