import torch
from torch_geometric.loader import DataLoader
from torch_geometric.utils import coalesce


def test_directions_that_are_added_have_the_type_of_their_reverse(
        load_script, tmp_path, capsys):
    script = load_script('examples/transforms')
    dataset = script.make_dataset(str(tmp_path))
    plain = script.make_dataset(str(tmp_path))
    plain.transform = None
    for data, whole in zip(dataset[:8], plain[:8]):
        assert data.is_undirected() and data.num_edges < whole.num_edges
        types = {
            edge: label
            for edge, label in zip(map(tuple,
                                       whole.edge_index.t().tolist()),
                                   whole.edge_label.tolist())
        }
        found = [
            types[edge] for edge in map(tuple,
                                        data.edge_index.t().tolist())
        ]
        assert data.edge_label.tolist() == found


def test_batches_are_predicted(load_script, tmp_path, capsys):
    script = load_script('examples/transforms')
    script.main(['--root', str(tmp_path)])
    out = capsys.readouterr().out
    assert out.count('undirected: True') == 2
    assert out.count('predicted [320, 10, 4]') == 2
    batch = next(
        iter(DataLoader(script.make_dataset(str(tmp_path)), batch_size=4)))
    # PyG's batches keep every edge once.
    assert coalesce(batch.edge_index).size(1) == batch.num_edges
    assert torch.isfinite(batch.walk).all()
