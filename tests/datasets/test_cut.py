import numpy as np
import pandas as pd
import pytest
import torch
from parabolas import DT, table

from pyg_fnri.datasets.cut import Cut
from pyg_fnri.datasets.recording import Recording


def recordings(*lengths):
    return [
        Recording(f's{k}', [0, 1], np.zeros((2, length, 1)), 1.0)
        for k, length in enumerate(lengths)
    ]


def test_all_systems_are_whole_by_default():
    parts = Cut().parts(recordings(9, 9))
    assert parts == [(0, range(9), [range(9)]), (1, range(9), [range(9)])]


def test_several_systems_are_split_by_system():
    found = {}
    for split in ('train', 'val', 'test'):
        parts = Cut(split).parts(recordings(*[9] * 10))
        assert all(of_split == [range(9)] for _, _, of_split in parts)
        found[split] = {number for number, _, _ in parts}
    assert [len(numbers) for numbers in found.values()] == [8, 1, 1]
    assert set.union(*found.values()) == set(range(10))


@pytest.mark.parametrize('kwargs, lengths', [
    ({}, (100, )),
    ({
        'split_by': 'time'
    }, (100, 80)),
])
def test_frames_of_a_split_by_time_are_in_no_other(kwargs, lengths):
    seen = []
    for split in ('train', 'val', 'test'):
        cut = Cut(split, (0.5, 0.25, 0.25), window=10, stride=5, **kwargs)
        for number, block, parts in cut.parts(recordings(*lengths)):
            assert all(len(part) == 10 for part in parts)
            assert all(block.start <= part.start and part.stop <= block.stop
                       for part in parts)
            frames = set().union(*parts)
            for other_number, other in seen:
                assert number != other_number or not frames & other
            seen.append((number, frames))
    assert len(seen) == 3 * len(lengths)
    # Training comes first, test last.
    assert max(seen[0][1]) < min(seen[-1][1])


def test_recordings_of_different_lengths_are_cut_into_windows():
    parts = Cut(window=4).parts(recordings(9, 4))
    assert [part for _, _, part in parts] == [[range(4), range(4, 8)],
                                              [range(4)]]


@pytest.mark.parametrize('cut, lengths, message', [
    (Cut(), (9, 7), "'s1' has 7 frames and system 's0' has 9.*window=7"),
    (Cut(window=8), (9, 7), "'s1' is too short: 7 .* takes 8"),
    (Cut('val', window=8), (50, ), "'s0' is too short: 5 .*'val'"),
    (Cut('train'), (50, ), 'pass window.*window=5'),
    (Cut('test', (0.5, 0.5, 0)), (9, 9), "No system is in the split 'test'"),
    (Cut('test', (0.5, 0.5, 0), window=4), (9, ), 'No system'),
])
def test_what_cannot_be_cut_is_said(cut, lengths, message):
    with pytest.raises(ValueError, match=message):
        cut.parts(recordings(*lengths))


@pytest.mark.parametrize('kwargs, error, message', [
    ({
        'split': 'valid'
    }, ValueError, "split is 'valid'"),
    ({
        'split_by': 'particle'
    }, ValueError, "split_by is 'particle'"),
    ({
        'fractions': (1, 1, 1)
    }, ValueError, 'fractions'),
    ({
        'seed': 0.5
    }, TypeError, 'seed'),
    ({
        'seed': None
    }, TypeError, 'seed must be a whole number, not None'),
    ({
        'window': True
    }, TypeError, 'window must be a whole number, not True'),
    ({
        'window': 1
    }, ValueError, 'window'),
    ({
        'window': 4,
        'stride': 0
    }, ValueError, 'stride'),
    ({
        'stride': 4
    }, ValueError, 'pass window too'),
])
def test_wrong_arguments_are_refused(kwargs, error, message):
    with pytest.raises(error, match=message):
        Cut(**kwargs)


def test_representation_shows_all():
    assert repr(Cut('val', seed=3, window=5)) == (
        "Cut(split='val', fractions=(0.8, 0.1, 0.1), split_by=None, seed=3, "
        "window=5, stride=None)")


def test_velocities_see_the_frames_of_the_split_alone():
    x = np.arange(20.0).reshape(2, 10, 1)
    x[:, 8:] = 1e9
    mass = np.array([1.0, 2.0])
    recording = Recording('A', [0, 1], x, 0.5, mass=mass)
    out = Cut('train').with_velocity(recording, range(1, 8))
    assert out.x.shape == (2, 10, 2) and out.mass is mass
    assert np.array_equal(out.x[..., :1], x)
    np.testing.assert_allclose(out.x[:, 1:8, 1], 2.0)
    assert np.isnan(out.x[:, [0, 8, 9], 1]).all()
    with pytest.raises(
            ValueError, match="'A' is too short: velocities.* 2 of "
            "its frames are for the split 'train'"):
        Cut('train').with_velocity(recording, range(1, 3))


def test_every_system_is_in_one_split(open_table):
    sizes = {f's{k}': ['a', 'b'] for k in range(20)}
    names = [
        open_table(table(3, sizes), split, seed=1).system_names
        for split in ('train', 'val', 'test')
    ]
    assert [len(of_split) for of_split in names] == [16, 2, 2]
    assert sorted(sum(names, [])) == sorted(sizes)
    assert names[1] != open_table(table(3, sizes), 'val', seed=2).system_names


def test_splits_of_one_recording_share_no_frame(open_table):
    frame = table(100, {'A': ['a', 'b']}).drop(columns='system')
    seen = {}
    for split in ('train', 'val', 'test'):
        dataset = open_table(frame, split, window=8, stride=3)
        positions = dataset.x[..., 0].flatten()  # No two frames are alike.
        seen[split] = set(positions.tolist())
        assert dataset[0].x.shape == (2, 8, 4)
        assert dataset.system_names[0] == {
            'train': '0/0',
            'val': '0/80',
            'test': '0/90'
        }[split]
    assert not seen['train'] & seen['val'] and not seen['val'] & seen['test']
    assert max(seen['train']) < min(seen['val']) < min(seen['test'])


def test_velocities_of_a_split_see_no_frame_of_another(open_table):
    before = table(100, {'A': ['a', 'b']})
    after = before.copy()
    after.loc[after.time >= 80 * DT, ['x', 'y']] = 1e3  # Not to train on.
    one, other = (open_table(frame, 'train', window=10)
                  for frame in (before, after))
    assert torch.equal(one.x, other.x)


def test_windows_are_systems_of_equal_length(open_table):
    frame = pd.concat(
        [table(9, {'A': ['a', 'b']}),
         table(20, {'B': ['a', 'b']})])
    dataset = open_table(frame, window=8)
    assert dataset.system_names == ['A/0', 'B/0', 'B/8']
    np.testing.assert_allclose(dataset[2].x[0, :, 0],
                               (DT * np.arange(8, 16))**2, rtol=1e-6)
    with pytest.raises(ValueError, match="'A' has 9 frames.*'B' has 20"):
        open_table(frame)
    with pytest.raises(ValueError, match="'A' is too short"):
        open_table(frame, window=10)


def test_too_short_systems_are_named(open_table):
    frame = table()
    of_b = (frame.system == 'B') & (frame.time > DT)
    with pytest.raises(ValueError, match="'B' has 2 frames and system 'A' has"):
        open_table(frame[~of_b])
    with pytest.raises(ValueError, match="'B' is too short: 2 of its .* 'all'"):
        open_table(frame[~of_b], window=5)
    with pytest.raises(ValueError, match="'A' is too short: velocities take"):
        open_table(table(2))
    assert open_table(table(2), velocity=())[0].x.shape == (3, 2, 2)
