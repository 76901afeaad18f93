import re

import pytest
import torch
from torch_geometric.loader import DataLoader

from pyg_fnri.training import load_checkpoint


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('examples/posterior_as_edge_attr')


@pytest.fixture
def systems(script, tiny_run, tiny_systems):
    model = load_checkpoint(str(tiny_run / 'best.ckpt')).model
    batch = next(iter(DataLoader(tiny_systems('test'), batch_size=8)))
    return script.prepare(model, batch), model


def test_edges_have_their_posterior(systems):
    systems, model = systems
    spring, charge = model.posterior(systems)
    expected = torch.stack([spring[:, 1], charge[:, 1]], dim=-1)
    torch.testing.assert_close(systems.edge_attr, expected)


def test_charged_is_who_acts_on_another_as_a_charge(systems):
    systems, _ = systems
    expected = [0] * systems.num_nodes
    for (j, i), label in zip(systems.edge_index.t().tolist(),
                             systems.edge_label.tolist()):
        expected[i] |= label[1]
    assert systems.charged.tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_both_layers_hear_of_the_posterior(script, systems):
    systems, _ = systems
    net = script.Net(2)
    edge_attr = systems.edge_attr.clone().requires_grad_()
    net(systems.edge_index, edge_attr, systems.num_nodes).sum().backward()
    assert edge_attr.grad.abs().sum() > 0
    for conv in (net.conv1.lin_edge, net.conv2.lin):
        assert conv.weight.grad.abs().sum() > 0


def test_output_is_an_accuracy(script, tiny_run, tmp_path, capsys):
    script.main([
        '--root',
        str(tmp_path), '--checkpoint',
        str(tiny_run / 'best.ckpt'), '--num-steps', '2'
    ])
    shares = re.findall(r'([\d.]+)%', capsys.readouterr().out)
    assert all(0 < float(share) < 100 for share in shares)
    assert len(shares) == 2
