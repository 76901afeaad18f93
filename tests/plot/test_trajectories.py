import math

import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle

from pyg_fnri.plot import plot_trajectories


def trajectories(num_particles=3, num_frames=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randn(num_particles, num_frames, 4, generator=generator)
    return steps.cumsum(dim=1)


def lines(ax):
    return [x for x in ax.collections if isinstance(x, LineCollection)]


def test_trajectories_of_several_systems(assert_saves, legend_texts):
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
    assert_saves(figure)


def test_predicted_lines_pass_through_every_frame_and_get_darker():
    x = trajectories(1)
    ax, = plot_trajectories(x, x + 1, half_width=2.5, unit='um').axes
    wall, = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert wall.get_bbox().extents.tolist() == [-2.5, -2.5, 2.5, 2.5]
    assert ax.get_xlabel() == 'x (um)'
    predicted, _ = lines(ax)
    segments = np.array(predicted.get_segments())
    assert np.allclose(segments[:, 0], x[0, :-1, :2])
    assert np.allclose(segments[:, 1], x[0, 1:, :2])
    brightness = predicted.get_colors()[:, :3].sum(axis=1)
    assert (np.diff(brightness) < 0).all()


def test_what_diverges_is_drawn_as_far_as_it_is_finite(assert_saves):
    x = trajectories()
    wild = x.clone()
    wild[1, 6] = 1e30
    wild[1, 7:] = math.nan
    figure = plot_trajectories(wild, x)
    limits = plot_trajectories(x, x).axes[0].get_xlim()
    assert figure.axes[0].get_xlim() == limits
    predicted = lines(figure.axes[0])[2]
    drawn = [piece for piece in predicted.get_segments() if len(piece) == 2]
    assert len(drawn) == 5  # Between six frames.
    assert_saves(figure)
    assert_saves(plot_trajectories(0 * x, 0 * x))  # At rest.


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match='shapes'):
        plot_trajectories(trajectories(), trajectories()[:, 1:])
