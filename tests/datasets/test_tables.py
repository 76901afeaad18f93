import numpy as np
import pandas as pd
import parabolas
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.convert import to_pandas
from pyg_fnri.datasets.tables import (Recording, candidate_edges, count_types,
                                      true_types)

SYSTEMS = [
    Recording('A', [1, 2, 3], np.zeros((3, 2, 1))),
    Recording('B', [2, 3], np.zeros((2, 2, 1)))
]


def table(rows, columns='system sender receiver layer type'):
    return pd.DataFrame(rows, columns=columns.split()[:len(rows[0])])


EDGES = table([('A', 3, 1), ('A', 2, 1), ('B', 3, 2), ('A', 1, 3)])
TRUTH = table([('A', 3, 1, 'spring', 1), ('A', 1, 3, 'charge', 2),
               ('B', 2, 3, 'spring', 0), ('A', 3, 1, 'charge', 1)])


def test_candidate_edges_have_row_receiver():
    first, second = candidate_edges(EDGES, SYSTEMS)
    assert np.argwhere(first).tolist() == [[0, 1], [0, 2], [2, 0]]
    assert np.argwhere(second).tolist() == [[0, 1]]
    # A system may have none; without systems, they are those of all.
    assert not candidate_edges(EDGES[EDGES.system == 'A'], SYSTEMS)[1].any()
    shared = table([(3, 2), ('2', 3.0)], 'sender receiver')
    first, second = candidate_edges(shared, SYSTEMS)
    assert np.argwhere(first).tolist() == [[1, 2], [2, 1]]
    assert np.argwhere(second).tolist() == [[0, 1], [1, 0]]


def test_truth_has_row_receiver():
    (first, second), layers = true_types(TRUTH, SYSTEMS)
    num_types = count_types([first, second])
    assert layers == ['charge', 'spring'] and num_types == [3, 2]
    assert first.tolist() == [[[0, 0, 1], [0, 0, 0], [2, 0, 0]],
                              [[0, 0, 1], [0, 0, 0], [0, 0, 0]]]
    assert second.shape == (2, 2, 2) and not second.any()
    shared = table([(2, 3, 1)], 'sender receiver type')
    (first, second), layers = true_types(shared, SYSTEMS)
    num_types = count_types([first, second])
    assert layers == [0] and num_types == [2]
    assert first[0, 2, 1] == second[0, 1, 0] == 1
    assert first.sum() == second.sum() == 1


@pytest.mark.parametrize('row, message', [
    (('C', 2, 1, 0, 1), "a system 'C'"),
    (('B', 1, 2, 0, 1), "Row 1 .* of system 'B'"),
    (('A', None, 1, 0, 1), "Row 1 has no 'sender'"),
    (('A', 3, 1, 0, 2), 'another type'), (('A', 2, 1, 0, 0.5), 'type 0.5')
])  # yapf: disable
def test_wrong_edges_are_said(row, message):
    with pytest.raises(ValueError, match=message):
        true_types(table([('A', 3, 1, 0, 1), row]), SYSTEMS)


def test_truth_comes_from_the_tables_that_are_written(open_table, tmp_path):
    dataset = open_table(parabolas.table())
    batch = Batch.from_data_list(list(dataset))
    edge_type = torch.randint(3, (batch.num_edges, 2))
    edge_type[0] = 2
    truth = to_pandas(batch, edge_type, ['charge', 'spring'],
                      systems=dataset.system_names,
                      particles=dataset.particle_names)
    truth.to_csv(tmp_path / 'truth.csv', index=False)
    for interactions in (tmp_path / 'truth.csv', truth[truth.type > 0]):
        labelled = open_table(parabolas.table(), interactions=interactions)
        assert labelled.names == ['charge', 'spring']
        assert labelled.num_edge_types == [3, 3]
        assert torch.equal(labelled.edge_label, edge_type)
        assert labelled[1].validate()


def test_numbers_match_texts_alike(open_table):
    frame = parabolas.table()
    names = {name: str(k) for k, name in enumerate(frame.particle.unique())}
    frame['particle'] = frame.particle.map(names)
    first = open_table(frame)
    rows = [(system, int(own[0]), int(own[1]), 1)
            for system, own in zip(first.system_names, first.particle_names)]
    columns = ['system', 'sender', 'receiver', 'type']
    dataset = open_table(frame,
                         interactions=pd.DataFrame(rows, columns=columns))
    assert dataset.particle_names == first.particle_names
    assert {type(name)
            for own in dataset.particle_names
            for name in own} == {str}
    assert dataset.edge_label.sum() == len(rows)


def test_systems_with_and_without_truth_are_no_data_set(open_table,
                                                        make_system):
    label = torch.ones(20, 1, dtype=torch.long)
    with pytest.raises(ValueError, match='System 0 has no edge_label'):
        open_table([make_system(), make_system(edge_label=label)])
