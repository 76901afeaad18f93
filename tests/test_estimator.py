import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from verdicts import Kind, pull

import pyg_fnri
from pyg_fnri import GraphEstimator, infer, load
from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets import TrajectoryTable
from pyg_fnri.estimator import (RESULTS, _are_windows_of_one, _check_sizes,
                                present_results)
from pyg_fnri.inference import shared_graph
from pyg_fnri.laws import LawCheck
from pyg_fnri.nn import MinMaxScaling
from pyg_fnri.selection import select_layers
from pyg_fnri.training import Config, build_module, save_checkpoint

INTERVAL = 0.2


@pytest.fixture(scope='module', autouse=True)
def quick(laws_sought_briefly):
    """How good laws are is said in tests/laws."""


@pytest.fixture
def module(shake):
    """Trained, as far as one can tell; it looks at 6 frames 0.1 apart."""
    config = Config(in_channels=4, num_observed=6, num_edge_types=[2, 2],
                    recipe='paper', options={'hidden_channels':
                                             8}, data={'time_step': 0.1})
    module = build_module(config)
    module.fit_units(torch.randn(20, 12, 4))
    shake(module.model)
    return module


@pytest.fixture
def estimator(module, tmp_path):
    """By this module, of systems of given sizes, perhaps otherwise set."""
    def make(sizes, config=module.config, shared=False, num_steps=10,
             time_step=0.1, **options):
        generator = np.random.default_rng(0)
        rows = [(f's{system}', time_step * frame, f'p{particle}',
                 *generator.normal(size=4)) for system, size in enumerate(sizes)
                for particle in range(size) for frame in range(num_steps)]
        columns = ['system', 'time', 'particle', 'x', 'y', 'vx', 'vy']
        table = pd.DataFrame(rows, columns=columns)
        table.to_csv(tmp_path / 'new.csv', index=False)
        module.config = config
        out = GraphEstimator(shared=shared)._of(module)
        return out.infer(str(tmp_path / 'new.csv'), **options)

    return make


@pytest.fixture(scope='module')
def systems():
    """Ten systems that one law moves, with their graphs."""
    kind = Kind((pull, ), interval=INTERVAL)
    batch = kind.systems(10, 0, 0.0)
    batch.x = torch.cat([batch.x, batch.y], dim=1)
    return batch.to_data_list()


@pytest.fixture(scope='module')
def result(systems, laws_sought_briefly):
    x = torch.stack([data.x for data in systems]).numpy()
    return infer(x, [2], seed=3)


def test_arrays_alone_lead_to_graphs_laws_and_a_verdict(result, systems):
    assert result.module.config.data['time_step'] == INTERVAL
    assert result.check.holds and 'hold' in repr(result)
    found = torch.cat([data.edge_type for data in result.data])
    true = torch.cat([data.edge_label for data in systems])
    assert (found == true).double().mean() > 0.99
    # At distances where pairs were seen.
    at = np.array([1.0, 1.5, 2.0])
    np.testing.assert_allclose(result.laws(at), [-0.1 * at], rtol=0.01)
    table = result.graph
    assert len(table) == 10 * 20 and table.probability.between(0.5, 1).all()
    assert 2 * result.network().number_of_edges() == (table.type > 0).sum()
    assert all(d.edge_attr.shape == (20, 1) for d in result.data)


def test_predictions_go_on_where_the_recording_ends(result, systems):
    short = [
        from_trajectory(data.x[:, :-5], edge_index=data.edge_index)
        for data in systems[:3]
    ]
    known = result.infer(short)
    for found, data in zip(known.predict(5), systems):
        true = data.x[:, -5:].numpy()
        assert np.square(found - true).mean() < 1e-2 * np.var(true)
    assert known.score() > 0.9 and result.score(short) == known.score()


def test_without_frames_to_predict_there_is_no_score(systems):
    module = build_module(Config(4, 10, [2], recipe='quick'))
    module.fit_units(torch.cat([data.x for data in systems]))
    long, short = ([from_trajectory(data.x[:, :number]) for data in systems]
                   for number in (20, 10))
    found = GraphEstimator()._of(module).infer(long, time_step=INTERVAL)
    assert np.isfinite(found.score()) and 'predicted' in repr(found)
    assert 'predicted' not in repr(found.infer(short, time_step=INTERVAL))
    with pytest.raises(ValueError, match='longer'):
        found.score(short, time_step=INTERVAL)


def test_labels_are_never_looked_at(systems, result):
    wrong = [data.clone() for data in systems]
    for data in wrong:
        data.edge_label = torch.zeros_like(data.edge_label)
    found = infer(wrong, [2], seed=3)
    pd.testing.assert_frame_equal(found.graph, result.graph)
    assert np.array_equal(found.laws([1.0, 2.0]), result.laws([1.0, 2.0]))


def test_a_result_opens_again_as_it_was_saved(result, tmp_path):
    result.save(tmp_path / 'out')
    assert set(present_results(str(
        tmp_path / 'out'))) == {*RESULTS} - {'changes.csv', 'changes.png'}
    again = load(tmp_path / 'out')
    assert repr(again) == repr(result)
    pd.testing.assert_frame_equal(again.graph, result.graph)
    assert np.array_equal(again.predict(3), result.predict(3))
    read = nx.read_graphml(tmp_path / 'out' / 'graphs.graphml')
    assert read.number_of_edges() == result.network().number_of_edges()
    page = (tmp_path / 'out' / 'report.html').read_text()
    assert page.count('<img') == 4 and 'The force laws hold' in page
    assert 'src="data:' in page and 'http' not in page
    assert '<pre>' in result._repr_html_()


def test_results_replace_each_other_whole(result, tmp_path, monkeypatch):
    result.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(Figure, 'savefig', None)
        with pytest.raises(TypeError):
            result.infer(result.data[:1]).save(tmp_path)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after == before
    # No result of others is left, and nothing else is lost.
    (tmp_path / 'mine.txt').write_text('notes')
    (tmp_path / 'changes.png').write_text('of windows')
    result.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*before, 'mine.txt'}


def test_settings_are_those_of_scikit_learn(result):
    settings = dict(layers=[2], method='laws', seed=5)
    estimator = GraphEstimator(**settings)
    assert estimator.get_params().items() >= settings.items()
    assert type(estimator)(**estimator.get_params()).set_params(
        seed=6).get_params()['seed'] == 6
    assert 'seed=5' in repr(estimator)
    base = pytest.importorskip('sklearn.base')
    assert base.clone(estimator).get_params() == estimator.get_params()
    with pytest.raises(ValueError, match="'sed'"):
        estimator.set_params(sed=1)
    for wrong, said in ((dict(tim=1), "'tim'"), (dict(method='law'), 'method'),
                        ({}, 'no systems')):
        with pytest.raises(ValueError, match=said):
            infer([] if not wrong else [from_trajectory(torch.randn(3, 9, 4))],
                  **wrong)


@pytest.mark.filterwarnings('ignore')
def test_networks_are_taken_where_laws_fail_and_they_predict(
        systems, monkeypatch):
    failed = LawCheck(('Something is missing.', ), (), {'laws': 1.0})
    monkeypatch.setattr('pyg_fnri.training.em.check_laws', lambda *args: failed)
    found = {}

    def once(config, *args):
        if config.recipe not in found:
            found[config.recipe] = select_layers(config, *args)
        return found[config.recipe]

    monkeypatch.setattr('pyg_fnri.estimator.select_layers', once)
    tiny = dict(layers=[2], max_steps=2, seed=3)
    result = infer(systems, **tiny)
    assert result.about['method'] == 'laws' and 'NOT hold' in repr(result)
    monkeypatch.setattr('pyg_fnri.estimator.compare_errors', lambda *args:
                        (-1.0, 0.1))
    result = infer(systems, **tiny)
    assert result.about['method'] == 'networks' and result.laws is None
    assert 'NOT hold' in repr(result) and 'Networks took' in repr(result)
    assert len(result.graph) == 10 * 20 and 'laws' not in result.pictures()
    assert result.systems == [*range(10)] and not result._are_windows()


@pytest.mark.filterwarnings('ignore')
def test_networks_learn_from_a_folder(tmp_path):
    for split, size in (('train', 4), ('valid', 2), ('test', 3)):
        for kind in ('loc', 'vel'):
            array = np.random.default_rng(0).normal(size=(size, 8, 2, 3))
            np.save(tmp_path / f'{kind}_{split}.npy', array)
    result = infer(tmp_path, layers=[2], method='networks', max_steps=2)
    assert result.systems == [0, 1, 2] and len(result.graph) == 3 * 6


@pytest.mark.filterwarnings('ignore')
def test_one_recording_is_held_out_in_time(systems):
    x = systems[0].x
    table = pd.DataFrame(
        x.transpose(0, 1).flatten(0, 1).numpy(), columns=['x', 'y', 'vx', 'vy'])
    time, particle = np.indices(x.shape[1::-1]).reshape(2, -1)
    table = table.assign(time=INTERVAL * time, particle=particle)
    result = infer(table, [2], method='laws')
    assert len(result.data) == 1 and result.data[0].x.size(1) == x.size(1)
    assert min(result.about['split']) > 1
    lost = table[(table.particle > 0) | (table.time < 5)]
    windows = infer(lost, [2], method='laws', window=10)
    assert {of.num_nodes for of in windows.data} == {4, 5}
    assert 'changes' in windows.pictures()


def test_trajectories_are_read_as_in_training_unless_told(module, estimator):
    plain = estimator([5]).data[0]
    data = dict(files={'table': 'old.csv'}, radius=None, directed=True,
                reading={
                    'position': ['y', 'x'],
                    'velocity': ['vy', 'vx']
                }, neighbours=1)
    config = replace(module.config, data=data)
    system = estimator([5], config).data[0]
    assert system.x.equal(plain.x[..., [1, 0, 3, 2]])
    assert (system.num_edges, plain.num_edges) == (5, 20)
    # Velocities are then those that belong to them.
    given = estimator([5], config, position=['x', 'y'])
    assert given.data[0].x.equal(plain.x)
    data |= {'files': {'table': 'old.npy'}, 'reading': {'mass': 4}}
    with pytest.raises(ValueError, match='masses'):
        estimator([5], replace(module.config, data=data))


def test_what_a_model_cannot_read_is_refused(module, estimator):
    with pytest.raises(ValueError, match='resample'):
        estimator([3], time_step=0.2)
    with pytest.raises(ValueError, match='looks at 6 frames'):
        estimator([3], num_steps=5)
    with pytest.raises(ValueError, match='has 2'):
        estimator([3], position=['x'], velocity=['vx'])
    module.trained = ('decoder', )
    with pytest.raises(ValueError, match='trained encoder'):
        estimator([3])


@pytest.mark.parametrize('unit, said',
                         [([3., 3., 3., 3.], []),
                          ([1e3, 1e3, 1e3, 1e3], ['Positions', 'Velocities']),
                          ([1e-6, 1e-6, 1., 1.], ['Positions']),
                          ([1., 1e3, 1.], ['Feature'])])
def test_another_unit_is_told(unit, said):
    unit = torch.tensor(unit)
    units = MinMaxScaling(len(unit)).fit(torch.randn(50, 10, len(unit)))
    x = torch.randn(50, 10, len(unit)) * unit
    x[0, 0] = 1e3  # A single runaway.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        _check_sizes(units, x)
    assert [str(w.message).split()[0] for w in caught] == said


def test_each_system_has_the_graph_of_its_own(module, estimator):
    result = estimator([3, 5, 2])
    for name, data in zip(result.systems, result.data):
        expected = module.model.predict(data)
        assert data.x.size(1) == 6 and data.edge_type.equal(expected)
        rows = result.graph.query('system == @name')
        assert rows.type.tolist() == expected.flatten().tolist()
        chosen = [q.max(-1).values for q in module.model.posterior(data)]
        np.testing.assert_allclose(rows.probability,
                                   torch.stack(chosen, -1).flatten(), rtol=1e-5)
    assert [data.num_edges for data in result.data] == [6, 20, 2]
    # All are parts of one network.
    network = result.network()
    assert network.number_of_nodes() == 10
    ids = nx.get_edge_attributes(network, 'id').values()
    number = (result.graph.type > 0).sum()
    assert len(set(ids)) == network.number_of_edges() == number
    part = nx.get_node_attributes(network, 'system')
    assert all(part[a] == part[b] for a, b in network.edges())


def test_shared_graph_is_that_of_all_systems(module, estimator):
    alone = estimator([4] * 3)
    result = estimator([4] * 3, shared=True)
    assert result.systems == ['all'] and len(result.data) == 1
    expected = shared_graph(module.model, alone.data)
    assert result.data[0].edge_type.equal(expected.edge_type)
    with pytest.raises(ValueError, match="'p3' is in only one"):
        estimator([3, 3, 4], shared=True)


def test_what_there_is_to_draw_is_drawn(module, estimator, capsys):
    pictures = estimator([3, 4]).pictures()
    assert list(pictures) == ['graph', 'heatmap', 'trajectories']
    # No frames to compare with, no trained decoder, weights that diverge.
    graphs = ['graph', 'heatmap']
    assert list(estimator([3], num_steps=6).pictures()) == graphs
    module.trained = ('encoder', )
    assert list(estimator([3]).pictures()) == graphs
    module.trained = ('encoder', 'decoder')
    for parameter in module.model.decoder.parameters():
        parameter.data.fill_(float('nan'))
    assert 'trajectories' in estimator([3]).pictures()
    assert '1 of 1 rollouts drawn diverge' in capsys.readouterr().out


def test_a_checkpoint_infers_graphs_of_others(module, estimator, tmp_path):
    save_checkpoint(module, str(tmp_path / 'best.ckpt'))
    expected = estimator([3, 4])
    bare = load(tmp_path / 'best.ckpt')
    assert bare.laws is None and 'no data yet' in repr(bare)
    found = bare.infer(str(tmp_path / 'new.csv'))
    pd.testing.assert_frame_equal(found.graph, expected.graph)
    assert pyg_fnri.load is load


def test_other_systems_are_scored_as_they_are_inferred(result, systems,
                                                       tmp_path):
    x = torch.stack([data.x for data in systems]).numpy()
    assert result.score(x, time_step=INTERVAL) == pytest.approx(
        result.infer(x, time_step=INTERVAL).score())
    with pytest.raises(ValueError, match='resample'):
        result.score(x[:, :, ::2], time_step=2 * INTERVAL)


def test_names_with_a_slash_are_no_windows(module, estimator, tmp_path):
    result = estimator([3, 3])
    table = pd.read_csv(tmp_path / 'new.csv')
    table['system'] = 'day/' + table['system'].str[1:]
    result = result.infer(table)
    assert result.systems == ['day/0', 'day/1']
    assert 'changes' not in result.pictures()
    splits = [
        TrajectoryTable(str(tmp_path / name), table, system='system')
        for name in 'ab'
    ]
    assert not _are_windows_of_one(*splits)


def test_changes_are_of_whether_pairs_interact(module, estimator):
    result = estimator([3], window=6, num_steps=12)
    rows = result.changes().set_index(['sender', 'receiver', 'layer'])
    q = module.model.posterior(result.data[1])[1]
    for edge, (j, i) in enumerate(result.data[1].edge_index.t().tolist()):
        assert rows.loc[(f'p{j}', f'p{i}', 1),
                        6] == pytest.approx(1 - q[edge, 0].item(), abs=1e-6)


def test_a_memory_is_warmed_on_what_is_observed(module, estimator):
    options = dict(module.config.options, decoder='gru', burn_in=4)
    config = replace(module.config, options=options)
    module.model = config.build_model()
    result = estimator([3, 4], config)
    data = result.held_out[0]
    expected = module.model.predict_trajectory(data, 4, data.edge_type)
    torch.testing.assert_close(data.prediction, expected)
    module.trained = ('encoder', )
    with pytest.raises(ValueError, match='trained decoder'):
        result.predict(3)


def test_laws_stay_where_networks_fail(systems, monkeypatch):
    def fail(config, *args, **kwargs):
        if config.recipe == 'quick':
            raise RuntimeError('out of memory')
        return select_layers(config, *args, **kwargs)

    monkeypatch.setattr('pyg_fnri.estimator.select_layers', fail)
    monkeypatch.setattr(LawCheck, 'holds', False)
    result = infer(systems, [2], time_step=INTERVAL)
    assert result.about['method'] == 'laws'
    assert 'out of memory' in repr(result)


def test_what_has_no_edges_or_no_data_says_so(module, estimator):
    assert '<img' not in estimator([3, 3], radius=1e-9)._repr_html_()
    bare = GraphEstimator()._of(module)
    for ask in (bare.network, bare.pictures, lambda: bare.graph):
        with pytest.raises(ValueError, match='no graphs yet'):
            ask()
