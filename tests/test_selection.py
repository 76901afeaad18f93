import math

import numpy as np
import pytest
import torch

from pyg_fnri.evaluation import evaluate
from pyg_fnri.loader import SystemLoader
from pyg_fnri.selection import (WORTH, _compare, _difference, _error, _measure,
                                _shuffled, _suffices, _warnings, plot_selection,
                                select_layers)
from pyg_fnri.training import Config, build_module

SYSTEMS = np.geomspace(1e-4, 1e-2, 40)


def make_runs(factor, sizes=(2, ), seeds=(0, 1), wrong=0., **changes):
    """Runs of a model whose error is a multiple of what systems differ by; a
    share of its graphs is not that of other seeds."""
    out = []
    for seed in seeds:
        noise = np.random.default_rng([seed,
                                       len(sizes)]).normal(scale=0.05, size=40)
        same, other = (torch.stack([
            torch.randint(k, (800, ),
                          generator=torch.Generator().manual_seed(start + k))
            for k in sizes
        ], -1) for start in (0, 100 + seed))
        same[:round(800 * wrong)] = other[:round(800 * wrong)]
        error = np.log(factor * SYSTEMS) + noise
        run = dict(error=error, linear=np.log(4 * SYSTEMS),
                   shuffled=error + math.log(2), entropy=0.05, types=same,
                   sizes=sizes, num_used=sum(sizes), accuracy=math.nan,
                   holds=False, nothing_left=True)
        out.append(run | changes)
    return out


def test_mean_and_standard_error_by_hand():
    zero = np.zeros((1, 4))
    # One seed: deviations -3, -1, 1, 3; variance 20 / 3, of four systems.
    mean, error = _difference(np.array([[1., 3., 5., 7.]]), zero)
    assert mean == 4 and error == pytest.approx(math.sqrt(20 / 12))
    # Seeds add their own: means 3 and 5, variance 2, of two.
    values = np.array([[0., 2., 4., 6.], [2., 4., 6., 8.]])
    mean, error = _difference(values, zero)
    assert mean == 4 and error == pytest.approx(math.sqrt(20 / 12 + 2 / 2))
    # By system, which differ far more.
    systems = np.array([[0., 100., -50., 7.]])
    mean, error = _difference(systems + [[1., 2., 1., 2.]], systems)
    assert mean == 1.5 and error == pytest.approx(math.sqrt(1 / 12))
    assert _difference(zero + math.inf, zero)[0] == math.inf


@pytest.mark.parametrize('factors, chosen', [((1.002, 1., 1.), 0),
                                             ((1.5, 1.002, 1.), 1),
                                             ((1.5, 1.2, 1.), 2),
                                             ((math.inf, 1.002, 1.), 1)])
def test_the_smallest_within_one_standard_error(factors, chosen):
    sizes = ((2, ), (2, 2), (2, 2, 2))
    table = _compare({s: make_runs(f, s) for s, f in zip(sizes, factors)})
    assert table['recommended'].tolist() == [i == chosen for i in range(3)]
    assert table['candidate'].tolist() == ['2', '2,2', '2,2,2']
    assert table['ratio_to_best'].tolist() == pytest.approx(
        [f / min(factors) for f in factors], rel=0.05)
    assert table['ratio_to_linear'].tolist() == pytest.approx(
        [f / 4 for f in factors], rel=0.05)
    assert table['ratio_to_shuffled'][1:].tolist() == pytest.approx([0.5, 0.5])
    assert table['agreement'].eq(1).all()
    figure = plot_selection(table)
    assert len(figure.axes) == 2


def test_laws_that_hold_are_recommended_and_larger_ones_not_tried():
    one = {(2, ): make_runs(1.5)}
    two = {(2, 2): make_runs(1., (2, 2), wrong=0.9)}
    assert not _suffices(one) and not _suffices(one | two)
    # Errors have ceased to fall.
    assert _suffices(one | two | {(2, 2, 2): make_runs(1., (2, 2, 2))})
    held = {(2, ): make_runs(1.5, holds=True)}
    assert _suffices(held)
    table = _compare(held | two)
    assert table['recommended'].tolist() == [True, False]
    assert not _warnings(table)


@pytest.mark.parametrize('factor, chosen', [(1.15, 0), (1.5, 1)])
def test_of_laws_that_hold_larger_ones_have_to_explain_far_more(factor, chosen):
    runs = {(2, ): make_runs(factor, holds=True, nothing_left=False)}
    assert not _suffices(runs)  # Laws of a few pairs may be missing.
    runs[2, 2] = make_runs(1., (2, 2), holds=True, nothing_left=False)
    assert _suffices(runs) == (chosen == 0)
    runs[2, 2, 2] = make_runs(0.5, (2, 2, 2))
    table = _compare(runs, WORTH)
    assert table['recommended'].tolist() == [i == chosen for i in range(3)]


def test_nothing_is_recommended_of_what_diverges():
    with pytest.raises(ValueError, match='finite'):
        _compare({(2, ): make_runs(math.inf)})


@pytest.mark.parametrize(
    'changes, word',
    [(dict(), None),
     (dict(linear=np.log(SYSTEMS)), 'no evidence of interactions'),
     (dict(shuffled=np.log(SYSTEMS)), 'plays no part'),
     (dict(seeds=(0, )), 'one seed'), (dict(wrong=0.9), 'Do not trust'),
     (dict(num_used=3), 'smaller candidate'),
     (dict(entropy=0.2), 'train longer')])
def test_warnings(changes, word):
    arguments = {'factor': 1., 'sizes': (2, 2), **changes}
    linear = {k: v for k, v in changes.items() if k == 'linear'}
    table = _compare({
        (2, ): make_runs(5., **linear),
        (2, 2): make_runs(**arguments),
        (2, 2, 2): make_runs(1.5, (2, 2, 2), **linear)
    })
    warnings = _warnings(table)
    assert len(warnings) == (word is not None)
    assert word is None or word in warnings[0]


@pytest.fixture
def module(tiny_systems, shake):
    module = build_module(Config(4, 49, [2, 2], options={'hidden_channels': 8}))
    module.fit_units(tiny_systems('train')._data.x)
    # Encoders that prefer one type everywhere have no graph to speak of.
    shake(module.model.encoder)
    return module.eval()


def test_errors_are_those_of_an_evaluation(module, tiny_systems):
    test = tiny_systems('test')
    run = _measure(module, test)
    report = evaluate(module.model, SystemLoader(test, 32), module.units,
                      [2, 2], (1, 10), linear_step=module.linear_step)
    for name, key in (('error', 'rollout_mse'), ('linear', 'linear_mse')):
        assert np.exp(run[name]).mean() == pytest.approx(
            report[key][10], rel=1e-4)
    assert run['accuracy'] == report['edge_accuracy']['combined']
    assert run['entropy'] == pytest.approx(np.mean(report['entropy_share']))


def test_types_are_shuffled_with_both_directions(tiny_systems):
    batch = next(iter(SystemLoader(tiny_systems('test'), 32)))
    types = batch.edge_label
    other = _shuffled(types, batch)
    assert not torch.equal(types, other)
    edges = torch.cat([batch.edge_index.t(), other], dim=1).tolist()
    found = {(j, i): types for j, i, *types in edges}
    assert all(found[i, j] == types for (j, i), types in found.items())


def test_a_type_that_does_nothing_is_not_used(module, tiny_systems):
    module.model.decode = lambda y, edge_index, edge_attr, steps: y[:, 1:]
    assert _measure(module, tiny_systems('test'))['num_used'] == 0


def test_rollouts_that_diverge_are_infinitely_wrong(module, tiny_systems):
    batch = next(iter(SystemLoader(tiny_systems('test'), 32)))
    module.model.decode = lambda y, *args: y[:, 1:] * math.nan
    types = module.model.predict(batch)
    assert _error(module, batch, types, 1).eq(math.inf).all()


def test_no_label_is_used(tiny_systems, tmp_path):
    options = dict(hidden_channels=8, batch_size=16, max_steps=3)
    config = Config(4, 49, [2, 2], options=options)
    splits = [tiny_systems(name) for name in ('train', 'val', 'test')]

    with pytest.raises(ValueError, match='at least two'):
        select_layers(config, [(2, )], *splits[:2], splits[2][:1],
                      str(tmp_path))

    def select(out):
        return select_layers(config, [(2, 2), (2, )], *splits,
                             str(tmp_path / out), seeds=(0, ),
                             accelerator='cpu')

    found = select('runs')
    assert found.recommended in ((2, ), (2, 2))
    assert found.table['candidate'].tolist() == ['2', '2,2']
    assert found.table['edge_accuracy'].notna().tolist() == [False, True]
    assert (tmp_path / 'runs' / '2-2-seed-0' / 'best.ckpt').exists()
    # Runs that are there are not trained anew.
    again = select('runs')
    assert again.table.equals(found.table)
    for split in splits:
        split._data.edge_label = 1 - split._data.edge_label
    other = select('other')
    same = [c for c in found.table if c != 'edge_accuracy']
    assert other.table[same].equals(found.table[same])


def test_where_all_candidates_fail_all_reasons_are_told(module, tiny_systems,
                                                        tmp_path, monkeypatch):
    def fit(config, *args, **kwargs):
        assert kwargs['devices'] == 1
        raise RuntimeError(f'out of {config.num_edge_types}')

    monkeypatch.setattr('pyg_fnri.selection.fit', fit)
    splits = [tiny_systems(name) for name in ('train', 'val', 'test')]
    with pytest.raises(RuntimeError, match=r'(?s)of \[2\].*of \[3\]'):
        select_layers(module.config, [[2], [3]], *splits, str(tmp_path), [0])
    with pytest.raises(AssertionError):  # It may be said otherwise.
        select_layers(module.config, [[2]], *splits, str(tmp_path), devices=2)


def test_seeds_of_joint_types_are_compared():
    """NRI's graphs have one layer, whatever the candidate."""
    runs = make_runs(1., (4, ), wrong=0.9)
    row, = _compare({(2, 2): runs}).itertuples()
    assert row.types == 8 and 0.2 < row.agreement < 0.5
