import torch
from torch_geometric.data import Batch

from pyg_fnri.convert import to_pandas
from pyg_fnri.nn import FNRI

COLUMNS = ['system', 'sender', 'receiver', 'layer', 'type', 'probability']


def test_one_row_per_edge_and_layer(make_system):
    batch = Batch.from_data_list([make_system(3), make_system(2)])
    edge_type = torch.arange(16).view(8, 2)
    probability = torch.rand(8, 2)
    table = to_pandas(batch, edge_type, ['spring', 'charge'], probability,
                      ['A', 'B'], [['a', 'b', 'c'], ['d', 'e']])
    assert list(table.columns) == COLUMNS and len(table) == 16
    # Edge 5 of system A leads from b to c.
    row = table.iloc[11]
    assert row.tolist()[:-1] == ['A', 'b', 'c', 'charge', 11]
    assert row.probability == probability[5, 1].item()
    assert table.iloc[-2].tolist()[:-1] == ['B', 'd', 'e', 'spring', 14]
    assert table.type.tolist() == list(range(16))
    assert table.type.dtype == 'int64'


def test_of_one_system_without_names(make_system):
    data = make_system(2)
    table = to_pandas(data, torch.tensor([[1], [0]]))
    assert table.drop(columns='probability').to_numpy().tolist() == [[
        0, 1, 0, 0, 1
    ], [0, 0, 1, 0, 0]]
    assert table.probability.isna().all()


def test_what_a_model_infers(make_system):
    model = FNRI(4, 6, [2, 3], hidden_channels=8).eval()
    batch = Batch.from_data_list([make_system(4), make_system(3)])
    edge_type, posterior = model.predict(batch), model.posterior(batch)
    table = to_pandas(batch, edge_type, probability=posterior)
    assert len(table) == 2 * (12 + 6)
    # The most probable type has at least its share.
    share = table.layer.map({0: 1 / 2, 1: 1 / 3})
    assert (table.probability >= share - 1e-6).all()


def test_no_edges_are_an_empty_table(make_system):
    data = make_system(2, edge_index=torch.zeros(2, 0, dtype=torch.long))
    table = to_pandas(data, torch.zeros(0, 2, dtype=torch.long))
    assert list(table.columns) == COLUMNS and table.empty
