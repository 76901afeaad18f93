import functools

import numpy as np
import pytest

from pyg_fnri.datasets.graph_split import GraphSplit
from pyg_fnri.datasets.named_systems import SYSTEMS
from pyg_fnri.simulation import graph_keys

SPLITS = ('train', 'val', 'test')


def drawing(name, seed, num_particles=5):
    def draw(num_systems):
        return SYSTEMS[name].draw_edge_types(seed, num_systems, num_particles)

    return draw


@functools.cache
def split_of(name, seed=0, num_particles=5):
    return GraphSplit(drawing(name, 99, num_particles), seed)


@pytest.mark.parametrize('name', ['springs_charges', 'nri_springs'])
@pytest.mark.parametrize('seed', range(3))
def test_splits_share_no_class_and_are_about_8_to_1_to_1(name, seed):
    split = split_of(name, seed)
    graphs = drawing(name, 1)(20_000)
    keys, splits = graph_keys(graphs), split.splits(graphs)
    classes = [set(keys[splits == part].tolist()) for part in SPLITS]
    assert len(set.union(*classes)) == sum(map(len, classes)) > 30
    # A class of five particles can weigh as much as a split.
    for part, share, slack in zip(SPLITS, (0.8, 0.1, 0.1), (.12, .07, .07)):
        assert abs((splits == part).mean() - share) < slack
        assert abs((splits == part).mean() - split.shares[part]) < 0.02
    assert sum(split.shares.values()) == pytest.approx(1)


def test_splits_depend_on_the_seed():
    graphs = drawing('springs_charges', 1)(1000)
    splits = [
        split_of('springs_charges', seed).splits(graphs) for seed in (0, 1)
    ]
    assert (splits[0] != splits[1]).any()
    again = GraphSplit(drawing('springs_charges', 99), 0).splits(graphs)
    assert (again == splits[0]).all()


def test_classes_that_were_not_shown_are_dealt_out_too():
    # Nearly every graph of ten particles is of a class of its own.
    split = split_of('springs_charges', 0, 10)
    graphs = drawing('springs_charges', 1, 10)(3000)
    splits = split.splits(graphs)
    for part, share in zip(SPLITS, (0.8, 0.1, 0.1)):
        assert abs((splits == part).mean() - share) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize('part', SPLITS)
def test_graphs_are_drawn_until_there_are_enough(part):
    split = split_of('springs_charges')
    draw = drawing('springs_charges', 1)
    graphs = split.draw(draw, part, 700)
    assert graphs.shape == (700, 2, 5, 5)
    assert (split.splits(graphs) == part).all()
    # The first of more, in the order in which they were drawn.
    assert (split.draw(draw, part, 1500)[:700] == graphs).all()
    all_graphs = draw(20_000)
    kept = all_graphs[split.splits(all_graphs) == part]
    assert (kept[:700] == graphs).all()


def test_more_are_drawn_where_the_estimate_was_too_low(monkeypatch):
    split = split_of('springs_charges')
    sizes = []

    def draw(num_systems):
        sizes.append(num_systems)
        return drawing('springs_charges', 1)(num_systems)

    enough = split.draw(draw, 'val', 500)
    monkeypatch.setitem(split.shares, 'val', 0.9)
    assert (split.draw(draw, 'val', 500) == enough).all()
    assert len(sizes) > 2 and sizes == sizes[:1] + sorted(sizes[1:])


def test_each_split_has_a_class_where_there_are_but_three():
    for seed in range(4):
        split = split_of('nri_charged', seed)
        graphs = drawing('nri_charged', 1)(2000)
        keys, splits = graph_keys(graphs), split.splits(graphs)
        assert [len(set(keys[splits == part].tolist()))
                for part in SPLITS] == [1, 1, 1]


def test_too_few_classes_are_an_error():
    with pytest.raises(ValueError, match='of 2 kinds up to relabelling'):
        split_of('nri_charged', 0, 2 + 1)
    with pytest.raises(ValueError, match='of 1 kind up .* more particles'):
        GraphSplit(lambda n: np.zeros((n, 1, 3, 3), int), 0)


def test_graphs_that_are_too_rare_are_an_error(monkeypatch):
    split = split_of('nri_charged', 0)
    monkeypatch.setitem(split.shares, 'test', 1e-4)
    with pytest.raises(
            ValueError, match='test split are too rare to find 50 of'
            ' them: they are 0.01% of all. Take another seed'):
        split.draw(drawing('nri_charged', 1), 'test', 50)


def test_progress_is_on_standard_error(capsys):
    split_of('nri_charged').draw(drawing('nri_charged', 1), 'train', 5, True)
    out, err = capsys.readouterr()
    assert out == '' and 'Choosing graphs' in err
