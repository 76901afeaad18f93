import math

import pytest
import torch
from known_laws import overdamped
from torch_geometric.data import Data

from pyg_fnri.data import from_trajectory, fully_connected
from pyg_fnri.inference import find_motions
from pyg_fnri.inference.paths import noise_of_positions
from pyg_fnri.simulation import Kuramoto


def seen(data, x):
    out = data.clone()
    out.x = x
    return out


def test_positions_move_at_their_velocities(batch):
    assert find_motions(batch, 0.1) == [{}]
    noise = torch.randn_like(batch.x) * 0.05 * batch.x.std((0, 1))
    assert find_motions(seen(batch, batch.x + noise), 0.1) == [{}]
    for x, interval, message in [(batch.x, 0.05, 'at 2.00 times'),
                                 (math.nan * batch.x, 0.1, 'not finite')]:
        with pytest.raises(ValueError, match=message):
            find_motions(seen(batch, x), interval)


def test_other_features_are_of_first_order():
    x = torch.from_numpy(Kuramoto().simulate(
        Kuramoto().draw_edge_types(0, 4, 5), 0)).flatten(0, 1)
    found, = find_motions(Data(x), 0.1)
    assert found == dict(order=1, circle=True, measured=True, num_constants=1,
                         terms=['drive'])
    found, = find_motions(Data(x[..., :2]), 0.1)
    assert found['terms'] == ['own-rate']
    with pytest.raises(ValueError, match='at 0.50 times'):
        find_motions(Data(x), 0.2)
    # Positions without velocities, and a single feature.
    for part in (x[..., 2:3], torch.randn(6, 9, 2).cumsum(1)):
        found, = find_motions(Data(part), 0.1)
        assert found['order'] == 1 and found['terms'] == ['field']
        assert not (found['circle'] or found['measured'])


def test_axes_along_which_nothing_moves_are_no_constants():
    moving = torch.randn(6, 1, 2).expand(-1, 9, -1)
    place = 0.1 * torch.arange(9).view(-1, 1) * moving
    rest = torch.zeros(6, 9, 1)
    for parts in ((place, rest, moving, rest), (place[..., :1], rest,
                                                moving[..., :1], rest)):
        edge_index = fully_connected(6)
        found = find_motions(Data(torch.cat(parts, -1), edge_index), 0.1)
        assert found[0] == {}


def test_velocities_that_follow_from_positions_may_be_of_first_order():
    systems = overdamped(6)
    for noise in (0, 0.002):
        x = systems.x + noise * torch.randn_like(systems.x)
        second, first = find_motions(seen(systems, x), 0.1)
        assert second == {} and first['order'] == 1 and first['measured']


def test_velocities_of_free_particles_do_not_follow_from_positions():
    generator = torch.Generator().manual_seed(0)
    place, velocity = torch.randn(2, 5, 1, 2, generator=generator)
    force = torch.tensor([0.5, 0, 0, 0, 0]).view(5, 1, 1)
    time = 0.1 * torch.arange(60.).view(-1, 1)
    x = torch.cat([
        place + time * velocity + time**2 / 2 * force, velocity + time * force
    ], dim=-1)
    assert find_motions(from_trajectory(x), 0.1) == [{}]


def test_noise_of_positions_is_smoothed_away():
    time = 0.1 * torch.arange(60.)
    position = torch.stack([time.sin(), (2 * time).cos()],
                           -1).expand(40, -1, -1)
    velocity = torch.stack([time.cos(), -2 * (2 * time).sin()],
                           -1).expand(40, -1, -1)
    noise = 0.05 * torch.randn(40, 60, 2)
    valid = torch.rand(40, 59) < 0.9  # Across walls, velocities tell nothing.

    def found(position):
        mean = 0.05 * (velocity[:, 1:] + velocity[:, :-1])
        return noise_of_positions(position.diff(dim=1) - mean, valid)

    assert not found(position).any()
    left = noise - found(position + noise)
    assert left.std() < 0.4 * noise.std()
    # Nothing is known of a frame between walls.
    alone = ~valid[:, 1:] & ~valid[:, :-1]
    assert alone.any() and not found(position + noise)[:, 1:-1][alone].any()
