import numpy as np
import pandas as pd
import pytest

from pyg_fnri.datasets.recording import (
    Recording,
    derive_velocity,
    fill_gaps,
    report_filled,
)


def recording(x, **kwargs):
    x = np.asarray(x, dtype=float)[:, :, None]
    return Recording('A', ['p', 'q'], x, 0.1, **kwargs)


NAN = np.nan
LINE = [0, 1, 2, 3, 4, 5]


def test_short_gaps_are_filled_on_a_line():
    before = recording([LINE, [0, NAN, 4, NAN, NAN, 10]])
    after = fill_gaps(before, 2)
    assert after.x[1, :, 0].tolist() == [0, 2, 4, 6, 8, 10]
    assert after.x[0, :, 0].tolist() == LINE
    assert after.num_filled == 3
    assert np.isnan(before.x).sum() == 3  # The input is left as it was.


def test_only_the_missing_features_of_a_frame_are_filled():
    x = np.zeros((2, 3, 2))
    x[0, :, 0] = [0, NAN, 4]
    x[0, :, 1] = [0, 7, 0]
    after = fill_gaps(Recording(0, [0, 1], x, 1.0), 1)
    assert after.x[0].tolist() == [[0, 0], [2, 7], [4, 0]]
    assert after.num_filled == 1


def test_whole_recordings_are_left_alone():
    whole = recording([LINE, LINE])
    assert fill_gaps(whole, 0) is whole


@pytest.mark.parametrize('x, max_gap, message', [
    ([LINE, [0, 1, NAN, 3, 4, 5]], 0,
     "A frame of a .* is missing: .*'A', .*'q', time 0.2.*max_gap=1, now 0"),
    ([[0, NAN, NAN, NAN, 4, 5], LINE
      ], 2, "3 frames .* are missing.*'p', time 0.1.*max_gap=3, now 2"),
    ([LINE, [NAN, NAN, 2, 3, 4, 5]], 9, "2 frames.*'q', time 0. Nothing.*cut"),
    ([LINE, [0, 1, 2, 3, 4, NAN]], 9, "A frame.*'q', time 0.5. Nothing can"),
    ([LINE, [NAN] * 6], 9, "'q'"),
])
def test_other_gaps_are_said(x, max_gap, message):
    with pytest.raises(ValueError, match=message):
        fill_gaps(recording(x), max_gap)


def test_rows_and_dates_are_said():
    rows = np.array([LINE, [6, 7, -1, 9, 10, 11]])
    start = pd.Timestamp('2024-02-29')
    gap = recording([LINE, [0, NAN, NAN, 3, 4, 5]], rows=rows, start=start)
    assert gap.where(1, 1).endswith('2024-02-29 00:00:00.100000, row 7')
    assert gap.where(1, 2).endswith('which has no row')


def test_what_was_filled_is_reported():
    filled = fill_gaps(recording([LINE, [0, NAN, NAN, 3, 4, 5]]), 2)
    whole = recording([LINE, LINE])
    assert report_filled([whole, whole]) == ''
    assert report_filled([
        filled, whole
    ]) == ('Filled 2 of 24 frames of particles (8.33%), in 1 of 2 systems, by '
           'linear interpolation.')


def test_velocities_are_exact_for_parabolas_up_to_the_ends():
    t = 0.5 * np.arange(7)
    position = np.stack([t**2 - t, 3 * t, 0 * t], axis=-1)[None]
    velocity = derive_velocity(position, 0.5)
    expected = np.stack([2 * t - 1, 0 * t + 3, 0 * t], axis=-1)[None]
    np.testing.assert_allclose(velocity, expected, atol=1e-12)


def test_velocities_are_of_second_order():
    def error(num_steps):
        t = np.linspace(0, 1, num_steps)
        velocity = derive_velocity(np.sin(4 * t)[None, :, None], t[1])
        return np.abs(velocity[0, :, 0] - 4 * np.cos(4 * t)).max()

    assert error(101) / error(201) == pytest.approx(4, rel=0.1)


def test_velocities_take_three_frames():
    with pytest.raises(ValueError, match='at least 3 frames.*are 2'):
        derive_velocity(np.zeros((2, 2, 2)), 1.0)
