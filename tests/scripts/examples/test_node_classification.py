import re

import pytest
import torch
from torch_geometric import seed_everything


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('examples/node_classification')


def test_channels_tell_triangles(script):
    data = script.make_graph()
    neighbours = [set() for _ in range(data.num_nodes)]
    for sender, receiver in data.edge_index.t().tolist():
        neighbours[receiver].add(sender)
    expected = [
        bool(neighbours[i] & neighbours[j])
        for i, j in data.edge_index.t().tolist()
    ]
    assert data.edge_attr.argmax(-1).bool().tolist() == expected
    assert data.edge_attr.sum(-1).eq(1).all()


def test_classes_are_learned(script, capsys):
    script.main([])
    accuracy, common = re.findall(r'([\d.]+)%', capsys.readouterr().out)
    assert float(accuracy) > 90 > 60 > float(common)


def test_layers_of_ours_have_a_part_in_it(script):
    seed_everything(0)
    data = script.make_graph()
    model = script.train(data, 2)
    out = model(data.x, data.edge_index, data.edge_attr)
    out[data.test_mask].sum().backward()
    for conv in (model.conv1, model.conv2):
        assert conv.weight1.grad.abs().sum() > 0
    # Which of the channels an edge is in makes a difference.
    other = model(data.x, data.edge_index, data.edge_attr.flip(-1))
    assert not torch.allclose(out, other)
