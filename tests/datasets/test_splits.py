import pytest

from pyg_fnri.datasets.splits import (
    check_fractions,
    split_systems,
    split_time,
    windows,
)

FRACTIONS = (0.8, 0.1, 0.1)


@pytest.mark.parametrize('num_systems', [3, 10, 41])
def test_each_system_is_in_one_split(num_systems):
    splits = split_systems(num_systems, FRACTIONS, 0)
    assert list(splits) == ['train', 'val', 'test']
    assert sorted(sum(splits.values(), [])) == list(range(num_systems))
    assert all(splits.values())
    assert all(split == sorted(split) for split in splits.values())
    assert len(splits['val']) == max(1, round(num_systems / 10))


def test_systems_are_dealt_by_the_seed():
    assert split_systems(20, FRACTIONS, 0) == split_systems(20, FRACTIONS, 0)
    others = {tuple(split_systems(20, FRACTIONS, s)['val']) for s in range(9)}
    assert len(others) > 3
    # At random, not the last ones.
    assert others != {(18, 19)}


def test_a_split_may_be_none():
    splits = split_systems(2, (0.5, 0.5, 0), 0)
    assert [len(split) for split in splits.values()] == [1, 1, 0]
    assert list(split_time(10, (1, 0, 0))['test']) == []


def test_too_few_systems_are_said():
    with pytest.raises(ValueError, match="2 systems are too few.*by='time'"):
        split_systems(2, FRACTIONS, 0)


@pytest.mark.parametrize('num_steps', [3, 10, 997])
def test_each_frame_is_in_one_split_in_order(num_steps):
    splits = split_time(num_steps, FRACTIONS)
    frames = [frame for split in splits.values() for frame in split]
    assert frames == list(range(num_steps))
    assert list(splits) == ['train', 'val', 'test']
    assert abs(len(splits['train']) - 0.8 * num_steps) <= 0.5


def test_windows_stay_within_their_frames():
    assert windows(range(3, 14), 4, 4) == [range(3, 7), range(7, 11)]
    assert windows(range(3, 11), 4,
                   2) == [range(3, 7), range(5, 9),
                          range(7, 11)]
    assert windows(range(0, 4), 4, 1) == [range(0, 4)]
    assert windows(range(0, 3), 4, 1) == []


@pytest.mark.parametrize('fractions', [
    (0.8, 0.1),
    (0.8, 0.1, 0.2),
    (0, 0.5, 0.5),
    (1.1, -0.1, 0),
    (float('nan'), 0.5, 0.5),
    0.8,
    'abc',
])
def test_other_fractions_are_refused(fractions):
    with pytest.raises(ValueError, match='fractions is'):
        check_fractions(fractions)
