import pytest
import torch
from matplotlib.figure import Figure

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.experiments import draw_continuations, trajectories
from pyg_fnri.experiments.trajectories import find_relabelling
from pyg_fnri.training import Config, build_module
from pyg_fnri.transforms import SplitTrajectory


@pytest.fixture
def systems(tiny_root):
    return ParticleSystems(tiny_root, split='test', num_systems=(64, 32, 32),
                           transform=SplitTrajectory(49, 50))


@pytest.fixture
def module(systems):
    module = build_module(
        Config(in_channels=4, num_observed=49, num_edge_types=[2, 2],
               recipe='paper', options={'hidden_channels': 8}))
    module.fit_units(systems._data.x)
    return module.eval()


def test_fifty_steps_follow_the_last_state_seen(module, systems, monkeypatch):
    drawn = {}

    def plot(predicted, true, titles, half_width):
        drawn.update(predicted=predicted, true=true, titles=titles,
                     half_width=half_width)
        return Figure()

    monkeypatch.setattr(trajectories, 'plot_trajectories', plot)
    draw_continuations(module, systems)
    assert len(drawn['titles']) == 4 and drawn['half_width'] == 5
    relabelling = find_relabelling(module, systems)
    for i, (predicted, true, title) in enumerate(
            zip(drawn['predicted'], drawn['true'], drawn['titles'])):
        data = systems[i]
        whole = systems._data.x[5 * i:5 * i + 5]  # All 99 frames.
        assert true.equal(whole[:, 48:])
        assert predicted.size() == (5, 51, 4)
        assert predicted[:, 0].equal(whole[:, 48])
        edge_type = module.model.predict(data)
        torch.testing.assert_close(
            predicted[:, 1:],
            module.model.predict_trajectory(data, 50, edge_type))
        right = (relabelling(edge_type) == data.edge_label).all(-1)
        assert title == f'system {i}: edges {right.double().mean():.0%} right'


def test_picture_has_a_panel_for_each_system(module, systems):
    figure = draw_continuations(module, systems, num_systems=2)
    assert len(figure.axes) == 2


def test_relabelling_is_that_of_the_whole(module, systems):
    def opposite(data):
        return 1 - data.edge_label.flip(-1)

    module.model.predict = opposite
    relabelling = find_relabelling(module, systems)
    data = systems[3]
    assert relabelling(opposite(data)).equal(data.edge_label)


def test_without_truth_there_is_no_relabelling(module, systems):
    bare = list(systems[:3])
    for data in bare:
        del data.edge_label
    assert find_relabelling(module, bare) is None
