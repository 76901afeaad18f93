import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pyg_fnri.application import (
    graphs,
    infer_each,
    infer_shared,
    observe,
    open_systems,
)
from pyg_fnri.inference import refine, shared_graph


def test_each_system_has_the_graph_of_its_own(module, open_table, monkeypatch):
    monkeypatch.setattr(graphs, 'BATCH_SIZE', 2)  # Of three.
    dataset = open_table([3, 5, 2])
    found = infer_each(module, dataset)
    for name, data in zip(dataset.system_names, dataset):
        data = observe(data, 6)
        rows = found.table[found.table.system == name]
        expected = module.model.predict(data)
        assert rows.type.tolist() == expected.flatten().tolist()
    assert len(found.table) == 2 * (6 + 20 + 2)
    first = [graph.edge_type for _, graph in found.first]
    assert [len(types) for types in first] == [6, 20, 2]
    assert first[1].equal(module.model.predict(found.first[1][0]))
    assert len(infer_each(module, dataset, num_first=2).first) == 2


def test_many_systems_are_parts_of_one_network(module, open_table, monkeypatch):
    monkeypatch.setattr(graphs, 'BATCH_SIZE', 3)
    table, network, _ = infer_each(module, open_table([4] * 7))
    assert table.groupby('system').size().tolist() == [24] * 7
    assert network.number_of_nodes() == 28
    ids = nx.get_edge_attributes(network, 'id').values()
    assert len(set(ids)) == network.number_of_edges() == (table.type > 0).sum()
    part = nx.get_node_attributes(network, 'system')
    assert set(part.values()) == {f's{i}' for i in range(7)}
    assert all(part[a] == part[b] for a, b in network.edges())


def test_shared_graph_is_that_of_all_systems(module, open_table):
    dataset = open_table([4] * 3)
    found = infer_shared(module, dataset)
    assert list(found.table.columns) == [
        'sender', 'receiver', 'layer', 'type', 'probability'
    ]
    expected = shared_graph(module.model, [observe(d, 6) for d in dataset])
    assert found.table.type.tolist() == expected.edge_type.flatten().tolist()
    assert found.network.number_of_nodes() == 4
    assert all(
        graph.edge_type.equal(expected.edge_type) for _, graph in found.first)


def test_graphs_are_refined_on_demand(module, open_table):
    dataset = open_table([3, 3])
    found = infer_each(module, dataset, refined=True)
    data = observe(dataset[0], 6)
    rows = found.table[found.table.system == 's0']
    assert not np.allclose(rows.probability,
                           infer_each(module, dataset).table.probability[:12])
    assert len(rows) == refine(module.model, data).edge_type.numel()
    shared = [
        infer_shared(module, dataset, refined).table.probability
        for refined in (False, True)
    ]
    assert not np.allclose(*shared)


def test_other_particles_share_no_graph(module, open_table, write_table,
                                        tmp_path):
    with pytest.raises(ValueError,
                       match="'p3' is in only one of .* 's0' and 's2'"):
        infer_shared(module, open_table([3, 3, 4]))
    # As many particles are not the same ones.
    path = write_table([3, 3])
    table = pd.read_csv(path)
    table.loc[table.system == 's1', 'particle'] += 'x'
    table.to_csv(path, index=False)
    dataset = open_systems(module.config, path, str(tmp_path / 'root'))
    with pytest.raises(ValueError, match="'p0x' is in only one of"):
        infer_shared(module, dataset)


def test_other_candidates_share_no_graph(module, write_table, tmp_path):
    data = write_table([3, 3])
    edges = pd.DataFrame([('s0', 'p0', 'p1'), ('s1', 'p0', 'p2')],
                         columns=['system', 'sender', 'receiver'])
    edges.to_csv(tmp_path / 'edges.csv', index=False)
    dataset = open_systems(module.config, data, str(tmp_path / 'root'),
                           edges=str(tmp_path / 'edges.csv'))
    with pytest.raises(ValueError, match="system 's1' are not those of .*'s0'"):
        infer_shared(module, dataset)
