import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure

from pyg_fnri.evaluation import (check_sizes, draw_graphs, infer_graphs,
                                 observe, open_systems, present_results,
                                 write_results)
from pyg_fnri.inference import shared_graph
from pyg_fnri.nn import MinMaxScaling
from pyg_fnri.training import Config, build_module


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
def write_table(tmp_path):
    """Writes a table of systems of given sizes."""
    def write(sizes, num_steps=10, time_step=0.1):
        generator = np.random.default_rng(0)
        rows = [(f's{system}', time_step * frame, f'p{particle}',
                 *generator.normal(size=4)) for system, size in enumerate(sizes)
                for particle in range(size) for frame in range(num_steps)]
        columns = ['system', 'time', 'particle', 'x', 'y', 'vx', 'vy']
        path = tmp_path / 'new.csv'
        pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
        return str(path)

    return write


@pytest.fixture
def open_table(module, write_table, tmp_path):
    """Opens such a table for the module, or one of another configuration."""
    def open_it(sizes, config=module.config, reading=None, **kwargs):
        return open_systems(config, write_table(sizes, **kwargs),
                            str(tmp_path / 'root'), reading=reading)

    return open_it


def test_trajectories_are_read_as_in_training_unless_told(module, open_table):
    reading = {'position': ['y', 'x'], 'velocity': ['vy', 'vx']}
    data = dict(files={'table': 'old.csv'}, reading=reading, neighbours=1,
                radius=None, directed=True)
    config = replace(module.config, data=data)
    system, plain = open_table([5], config)[0], open_table([5])[0]
    assert system.x.equal(plain.x[..., [1, 0, 3, 2]])
    assert (system.num_edges, plain.num_edges) == (5, 20)
    # Velocities are then those that belong to them.
    given = open_table([5], config, reading={'position': ['x', 'y']})
    assert given[0].x.equal(plain.x)
    data |= {'files': {'table': 'old.npy'}, 'reading': {'mass': 4}}
    with pytest.raises(ValueError, match='masses'):
        open_table([5], replace(module.config, data=data))
    with pytest.raises(ValueError, match='resample'):
        open_table([3], time_step=0.2)


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
        check_sizes(units, x)
    assert [str(w.message).split()[0] for w in caught] == said


def test_each_system_has_the_graph_of_its_own(module, open_table):
    dataset = open_table([3, 5, 2])
    table, network, first = infer_graphs(module, dataset, batch_size=2)
    for name, data in zip(dataset.system_names, dataset):
        expected = module.model.predict(observe(data, 6))
        rows = table[table.system == name]
        assert rows.type.tolist() == expected.flatten().tolist()
    types = [graph.edge_type for _, graph in first]
    assert [len(t) for t in types] == [6, 20, 2]
    assert types[1].equal(module.model.predict(first[1][0]))
    # All are parts of one network.
    assert network.number_of_nodes() == 10
    ids = nx.get_edge_attributes(network, 'id').values()
    assert len(set(ids)) == network.number_of_edges() == (table.type > 0).sum()
    part = nx.get_node_attributes(network, 'system')
    assert all(part[a] == part[b] for a, b in network.edges())


def test_shared_graph_is_that_of_all_systems(module, open_table):
    dataset = open_table([4] * 3)
    table, network, first = infer_graphs(module, dataset, shared=True)
    assert 'system' not in table and network.number_of_nodes() == 4
    expected = shared_graph(module.model, [observe(d, 6) for d in dataset])
    assert table.type.tolist() == expected.edge_type.flatten().tolist()
    assert all(graph.edge_type.equal(expected.edge_type) for _, graph in first)
    refined = infer_graphs(module, dataset, refined=True, shared=True).table
    assert not np.allclose(table.probability, refined.probability)
    with pytest.raises(ValueError, match="'p3' is in only one"):
        infer_graphs(module, open_table([3, 3, 4]), shared=True)


def test_graphs_and_what_follows_are_drawn(module, open_table, capsys):
    def draw(dataset):
        return draw_graphs(module,
                           infer_graphs(module, dataset).first,
                           dataset.system_names, dataset.particle_names[0])

    pictures = draw(open_table([3, 4]))
    assert list(pictures) == ['graph.png', 'heatmap.png', 'trajectories.png']
    titles = [axes.get_title() for axes in pictures['trajectories.png'].axes]
    assert titles[:2] == ['system s0', 'system s1']
    assert 'diverge' not in capsys.readouterr().out
    # No frames to compare with, no trained decoder, weights that diverge.
    graphs = ['graph.png', 'heatmap.png']
    assert list(draw(open_table([3], num_steps=6))) == graphs
    module.trained = ('encoder', )
    assert list(draw(open_table([3]))) == graphs
    module.trained = ('encoder', 'decoder')
    for parameter in module.model.decoder.parameters():
        parameter.data.fill_(float('nan'))
    assert 'trajectories.png' in draw(open_table([3]))
    assert '1 of 1 rollouts drawn diverge' in capsys.readouterr().out


@pytest.fixture
def results():
    """A table of one edge, its network and two pictures."""
    network = nx.MultiDiGraph()
    network.add_edge(0, 1, key=0, id='0-1-0', type=1)
    table = pd.DataFrame({'sender': ['a'], 'receiver': ['b'], 'type': [1]})
    return table, network, {'graph.png': Figure(), 'trajectories.png': Figure()}


def test_results_replace_each_other_whole(results, tmp_path):
    table, network, pictures = results
    tables = {'edges.csv': table}
    write_results(str(tmp_path), tables, network, pictures)
    assert pd.read_csv(tmp_path / 'edges.csv').equals(table)
    read = nx.read_graphml(tmp_path / 'graphs.graphml', force_multigraph=True)
    assert nx.get_edge_attributes(read, 'type') == {('0', '1', '0-1-0'): 1}
    before = (tmp_path / 'edges.csv').read_bytes()
    with pytest.raises(AttributeError):
        write_results(str(tmp_path), {'edges.csv': table[:0]}, network,
                      {'graph.png': None})
    assert (tmp_path / 'edges.csv').read_bytes() == before
    (tmp_path / 'mine.txt').write_text('notes')
    assert len(list(tmp_path.iterdir())) == 5
    # No result of others is left, and nothing else is lost.
    write_results(str(tmp_path), tables, network, {'heatmap.png': Figure()})
    assert present_results(
        str(tmp_path)) == ['edges.csv', 'graphs.graphml', 'heatmap.png']
    assert (tmp_path / 'mine.txt').exists()
