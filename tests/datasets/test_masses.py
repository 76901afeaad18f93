import numpy as np
import pytest

from pyg_fnri.datasets.masses import take_masses
from pyg_fnri.datasets.recording import Recording


@pytest.fixture
def recording():
    """Three particles of other masses, which are the last feature."""
    x = np.random.default_rng(0).normal(size=(3, 4, 3))
    x[..., 2] = np.array([[2.0], [0.5], [3.0]])
    return Recording('A', ['p', 'q', 'r'], x, 0.5,
                     rows=np.arange(12).reshape(3, 4))


def test_masses_are_no_feature(recording):
    out = take_masses(recording, 'm')
    assert out.mass.tolist() == [2.0, 0.5, 3.0]
    assert np.array_equal(out.x, recording.x[..., :2])
    assert (out.name, out.time_step) == ('A', 0.5)
    assert recording.mass is None and recording.x.shape[2] == 3


def test_frames_that_are_missing_need_no_mass(recording):
    recording.x[1, [0, 2]] = np.nan
    recording.x[2, 1, :2] = np.nan  # Of which the mass is there.
    assert take_masses(recording, 'm').mass.tolist() == [2.0, 0.5, 3.0]


@pytest.mark.parametrize('value, message', [
    (np.nan, "'m' .* is none of system 'A', particle 'q', time 1, row 6"),
    (0.0, "above 0.* is 0.0 of system 'A', particle 'q', time 1, row 6"),
    (-2.0, "is -2.0 of .*particle 'q', time 1, row 6"),
    (1e300, "is 1e\\+300 of .*particle 'q'"),
    (1e-300, 'is 1e-300 of'),
    (np.inf, 'is inf of'),
    (0.51, "same at all times.* is 0.5 of system 'A', particle 'q', time 0, "
     "row 4, and 0.51 of system 'A', particle 'q', time 1, row 6"),
])
def test_what_is_no_mass_is_refused(recording, value, message):
    recording.x[1, 2, 2] = value
    with pytest.raises(ValueError, match=message):
        take_masses(recording, 'm')
