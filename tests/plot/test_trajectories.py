import math

import torch
from matplotlib.collections import LineCollection

from pyg_fnri.plot import plot_trajectories


def trajectories(num_particles=3, num_frames=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randn(num_particles, num_frames, 4, generator=generator)
    return steps.cumsum(dim=1)


def lines(ax):
    return [x for x in ax.collections if isinstance(x, LineCollection)]


def test_trajectories_of_several_systems(assert_saves, legend_texts):
    systems = [trajectories(n, seed=n) for n in (2, 3, 5)]
    figure = plot_trajectories(systems, [x + 0.1 for x in systems],
                               observed=[x[:, :7] for x in systems],
                               titles=list('abc'))
    assert [ax.get_title() for ax in figure.axes] == list('abc')
    for ax, system in zip(figure.axes, systems):
        assert len(lines(ax)) == 1 + len(system) == 1 + len(ax.lines)
    assert legend_texts(figure) == ['predicted', 'true', 'start', 'observed']
    assert_saves(figure)


def test_what_diverges_is_drawn_as_far_as_it_is_finite(assert_saves):
    x = trajectories()
    wild = x.clone()
    wild[1, 6:] = math.nan
    figure = plot_trajectories(wild, x)
    predicted = lines(figure.axes[0])[1]
    drawn = [piece for piece in predicted.get_segments() if len(piece) == 2]
    assert len(drawn) == 5  # Between six frames.
    assert_saves(plot_trajectories(0 * x, 0 * x))  # At rest.
