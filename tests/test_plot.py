import math

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib._pylab_helpers import Gcf
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from pyg_fnri.plot import (
    LAYER_COLORS,
    WRONG,
    plot_curves,
    plot_multiplex,
    plot_trajectories,
)

PAIRS = [(0, 1), (0, 2), (1, 2)]
EDGE_INDEX = torch.tensor(PAIRS + [(i, j) for j, i in PAIRS]).T


def trajectories(num_particles=3, num_frames=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randn(num_particles, num_frames, 4, generator=generator)
    return steps.cumsum(dim=1)


def undirected(types):
    """[num_pairs, L] -> [E, L] for EDGE_INDEX."""
    return torch.tensor(types).repeat(2, 1)


def assert_saves(figure, tmp_path):
    assert isinstance(figure, Figure)
    figure.savefig(tmp_path / 'picture.png')
    content = (tmp_path / 'picture.png').read_bytes()
    assert content.startswith(b'\x89PNG') and len(content) > 5000


def lines(ax):
    return [x for x in ax.collections if isinstance(x, LineCollection)]


def edges(ax):
    """(colour, dashed, directed, alpha) of the edges drawn."""
    return [(x.get_edgecolor()[:3], x.get_linestyle()
             != '-', x.get_arrowstyle().__class__.__name__
             != 'Curve', x.get_alpha()) for x in ax.patches
            if isinstance(x, FancyArrowPatch)]


def legend_texts(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_figures_belong_to_no_global_state():
    before = Gcf.get_all_fig_managers()
    x = trajectories()
    figures = [
        plot_trajectories(x, x),
        plot_multiplex(EDGE_INDEX, undirected([[1]] * 3)),
        plot_curves(pd.DataFrame({
            'step': [0, 1],
            'loss': [1., 0.5]
        }))
    ]
    assert Gcf.get_all_fig_managers() == before
    assert all(isinstance(figure, Figure) for figure in figures)


def test_trajectories_of_several_systems(tmp_path):
    systems = [trajectories(n, seed=n) for n in (2, 3, 5, 4, 3)]
    figure = plot_trajectories(systems, [x + 0.1 for x in systems],
                               observed=[x[:, :7] for x in systems],
                               titles=list('abcde'))
    assert len(figure.axes) == 5
    for ax, system, title in zip(figure.axes, systems, 'abcde'):
        assert ax.get_title() == title
        assert len(lines(ax)) == 1 + 2 * len(system)
        assert ax.get_xlabel() == 'x (m)' and ax.get_ylabel() == 'y (m)'
    assert legend_texts(figure) == ['predicted', 'true', 'start', 'observed']
    assert_saves(figure, tmp_path)


def test_predicted_lines_pass_through_every_frame_and_get_darker():
    x = trajectories(1)
    predicted, _ = lines(plot_trajectories(x, x + 1).axes[0])
    segments = np.array(predicted.get_segments())
    assert np.allclose(segments[:, 0], x[0, :-1, :2])
    assert np.allclose(segments[:, 1], x[0, 1:, :2])
    brightness = predicted.get_colors()[:, :3].sum(axis=1)
    assert (np.diff(brightness) < 0).all()


def test_true_dashes_lie_on_the_true_path_from_start_to_end():
    frames = torch.tensor([[0., 0.], [3., 0.], [3., 4.]])
    true = torch.cat([frames, frames], dim=-1).unsqueeze(0)
    _, dashed = lines(plot_trajectories(true + 1, true).axes[0])
    segments = dashed.get_segments()
    for points in segments:
        x, y = points.T
        assert np.all((np.abs(y) < 1e-9) | (np.abs(x - 3) < 1e-9))
    drawn = sum(
        np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
        for points in segments)
    assert 0.5 * 7 < drawn < 0.75 * 7  # gaps between the dashes
    assert np.allclose(segments[0][0], [0, 0])
    assert np.linalg.norm(segments[-1][-1] - [3, 4]) < 0.2
    assert (np.diff(dashed.get_colors()[:, :3].sum(axis=1)) <= 0).all()


def test_limits_are_square_and_close_around_the_data():
    x = trajectories(4)
    ax = plot_trajectories(x, x).axes[0]
    low, high = x[..., :2].amin((0, 1)), x[..., :2].amax((0, 1))
    span = (high - low).max().item()
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert right - left == pytest.approx(top - bottom)
    assert span < right - left < 1.15 * span
    assert left < low[0] and right > high[0]
    assert bottom < low[1] and top > high[1]
    assert ax.get_aspect() == 1


def test_walls_are_drawn_at_half_width():
    x = trajectories()
    ax = plot_trajectories(x, x, half_width=2.5, unit='um').axes[0]
    wall, = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert wall.get_bbox().extents.tolist() == [-2.5, -2.5, 2.5, 2.5]
    assert ax.get_xlabel() == 'x (um)'


def test_particles_at_rest_can_be_drawn(tmp_path):
    x = torch.ones(1, 5, 4)
    assert_saves(plot_trajectories(x, x), tmp_path)


@pytest.mark.parametrize('change, message', [
    ({
        'predicted': []
    }, 'predicted holds no systems'),
    ({
        'predicted': torch.zeros(3, 12)
    }, r'shape \[3, 12\], expected'),
    ({
        'predicted': torch.zeros(3, 12, 1)
    }, '2 features'),
    ({
        'predicted': torch.zeros(3, 1, 4)
    }, '2 frames'),
    ({
        'true': torch.zeros(3, 11, 4)
    }, r'\[3, 12\] predicted and \[3, 11\]'),
    ({
        'true': [trajectories()] * 2
    }, 'true is for 2 systems, expected 1'),
    ({
        'observed': trajectories(4)
    }, '3 predicted and 4 observed'),
    ({
        'observed': [trajectories()] * 2
    }, 'observed is for 2 systems'),
    ({
        'titles': ['a', 'b']
    }, 'titles is for 2 systems'),
    ({
        'half_width': -1.
    }, 'half_width must be positive'),
    ({
        'predicted': trajectories() * math.nan
    }, r'predicted\[0\] holds NaN'),
    ({
        'true': trajectories() * math.inf
    }, r'true\[0\] holds NaN or inf'),
])
def test_bad_trajectories_are_refused(change, message):
    arguments = {'predicted': trajectories(), 'true': trajectories()}
    with pytest.raises(ValueError, match=message):
        plot_trajectories(**{**arguments, **change})


def test_multiplex_marks_wrong_edges(tmp_path):
    true = undirected([[1, 0], [1, 1], [0, 0]])
    inferred = undirected([[1, 1], [0, 1], [0, 0]])
    figure = plot_multiplex(EDGE_INDEX,
                            inferred,
                            true,
                            names=['spring', 'charge'])
    true_spring, true_charge, spring, charge = figure.axes
    assert true_spring.get_title() == 'spring'
    assert true_charge.get_title() == 'charge'
    blue, orange, red = map(to_rgb, (*LAYER_COLORS[:2], WRONG))
    assert edges(true_spring) == [(blue, False, False, 1.)] * 2
    assert edges(true_charge) == [(orange, False, False, 1.)]
    assert edges(spring) == [(blue, False, False, 1.),
                             (red, True, False, 1.)]  # missed
    assert edges(charge) == [(orange, False, False, 1.),
                             (red, False, False, 1.)]  # not true
    assert spring.get_xlabel() == charge.get_xlabel() == '67% right'
    assert legend_texts(figure) == ['inferred, not true', 'missed']
    assert_saves(figure, tmp_path)


def test_multiplex_without_truth_has_one_row_and_no_legend(tmp_path):
    figure = plot_multiplex(EDGE_INDEX.numpy(), undirected([[1]] * 3).numpy())
    ax, = figure.axes
    assert ax.get_title() == 'layer 0'
    assert len(edges(ax)) == 3
    assert not figure.legends
    assert_saves(figure, tmp_path)


def test_one_way_edges_are_arrows_from_sender_to_receiver():
    place = torch.tensor([[0., 0.], [1., 0.], [0., 2.]])
    types = torch.zeros(6, 1, dtype=torch.long)
    types[0] = 1  # 0 -> 1
    ax, = plot_multiplex(EDGE_INDEX, types, position=place).axes
    assert edges(ax) == [(to_rgb(LAYER_COLORS[0]), False, True, 1.)]
    arrow, = [x for x in ax.patches if isinstance(x, FancyArrowPatch)]
    assert np.allclose(arrow._posA_posB, place[:2])


def test_uncertain_edges_are_paler():
    probability = undirected([[1.], [0.5], [0.]])
    ax, = plot_multiplex(EDGE_INDEX,
                         undirected([[1]] * 3),
                         probability=probability).axes
    alphas = [alpha for *_, alpha in edges(ax)]
    assert alphas[0] == 1 and alphas[0] > alphas[1] > alphas[2] > 0


def test_several_interaction_types_are_numbered():
    ax, other = plot_multiplex(EDGE_INDEX, undirected([[1, 1], [2, 1],
                                                       [0, 1]])).axes
    particles = ['0', '1', '2']
    assert sorted(x.get_text()
                  for x in ax.texts) == sorted(particles + ['1', '2'])
    assert [x.get_text() for x in other.texts] == particles


@pytest.mark.parametrize('change, error, message', [
    ({
        'edge_index': EDGE_INDEX.T
    }, ValueError, r'expected \[2, num_edges\]'),
    ({
        'edge_index': torch.zeros(2, 0)
    }, ValueError, 'at least one edge'),
    ({
        'edge_index': EDGE_INDEX * 0
    }, ValueError, 'self loops'),
    ({
        'edge_index': EDGE_INDEX - 1
    }, ValueError, 'non-negative'),
    ({
        'edge_type': torch.zeros(5, 2).long()
    }, ValueError, r'\[6, num_lay'),
    ({
        'edge_type': torch.zeros(6, 2)
    }, TypeError, 'integer edge types'),
    ({
        'edge_type': torch.full((6, 2), -1)
    }, ValueError, 'types 0, 1'),
    ({
        'edge_type': torch.full((6, 2), math.nan)
    }, ValueError, 'NaN'),
    ({
        'edge_label': torch.zeros(6, 3).long()
    }, ValueError, 'edge_label is for 3 layers, expected 2'),
    ({
        'names': ['spring']
    }, ValueError, 'names is for 1 layers, expected 2'),
    ({
        'probability': torch.full((6, 2), 1.5)
    }, ValueError, '0 and 1'),
    ({
        'probability': torch.full((6, 2), math.nan)
    }, ValueError, 'NaN'),
    ({
        'probability': torch.zeros(6)
    }, ValueError, r'expected \[6, 2\]'),
    ({
        'position': torch.zeros(4, 2)
    }, ValueError, r'expected \[3, 2\]'),
])
def test_bad_graphs_are_refused(change, error, message):
    arguments = {
        'edge_index': EDGE_INDEX,
        'edge_type': torch.zeros(6, 2, dtype=torch.long)
    }
    with pytest.raises(error, match=message):
        plot_multiplex(**{**arguments, **change})


def test_curves_skip_empty_cells(tmp_path):
    history = pd.DataFrame({
        'step': [100, 200, 300],
        'minutes': [1., 2., 3.],
        'train_loss': [3., 2., 1.],
        'val_loss': [2.5, math.nan, 1.5],
        'val_accuracy': [math.nan, 0.5, 0.9],
        'accuracy_unknown': [math.nan] * 3,
    })
    figure = plot_curves(history)
    loss, accuracy = figure.axes
    assert [x.get_label() for x in loss.lines] == ['train_loss', 'val_loss']
    assert loss.lines[1].get_xydata().tolist() == [[1, 2.5], [3, 1.5]]
    assert accuracy.lines[0].get_xydata().tolist() == [[2, 0.5], [3, 0.9]]
    assert len(accuracy.lines) == 1
    assert loss.get_xlabel() == 'minutes'
    assert accuracy.get_ylabel() == 'edge accuracy'
    assert_saves(figure, tmp_path)


def test_curves_without_truth_have_no_accuracy_panel():
    figure = plot_curves(pd.DataFrame({'epoch': [0, 1], 'loss': [1., 0.5]}))
    ax, = figure.axes
    assert ax.get_xlabel() == 'epoch' and ax.get_ylabel() == 'loss'


@pytest.mark.parametrize('columns', [
    {
        'loss': [1., 2.]
    },
    {
        'step': [1, 2],
        'speed': [1., 2.]
    },
    {
        'step': [1, 2],
        'loss': [math.nan, math.nan]
    },
])
def test_curves_with_nothing_to_draw_are_refused(columns):
    with pytest.raises(ValueError, match='history has the columns'):
        plot_curves(pd.DataFrame(columns))
    with pytest.raises(TypeError, match='pandas.DataFrame'):
        plot_curves(columns)
