import pytest
import torch

from pyg_fnri.datasets import ParticleSystems


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('examples/explain')


def test_edges_without_interaction_have_no_weight(script, tiny_root):
    dataset = ParticleSystems(tiny_root, num_systems=(64, 32, 32))
    model = script.train(dataset, num_epochs=2)
    data = next(d for d in dataset if 2 <= d.edge_label[:4].any(-1).sum() <= 3)
    weight = script.explain(model, data, particle=0)
    assert weight.shape == (data.num_edges, )
    interacts = data.edge_label.any(-1)
    assert weight[~interacts].eq(0).all()
    to_particle = data.edge_index[1] == 0
    assert weight[interacts & to_particle].max() > 0.5
    # Edges to other particles do not matter to this one.
    assert weight[~to_particle].eq(0).all()


def test_output_names_each_edge(script, tmp_path, capsys):
    script.main(['--root', str(tmp_path), '--num-epochs', '1'])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(':')[0] for line in lines] == [
        'to particle 0', '  from 1', '  from 2', '  from 3', '  from 4'
    ]
    assert torch.tensor(
        [float(line.split()[3].strip(',')) for line in lines[1:]]).max() > 0
