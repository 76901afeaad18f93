"""Arrays of trajectories: systems of particles by their position in them."""
from collections.abc import Mapping

import numpy as np

from pyg_fnri.datasets.names import Name
from pyg_fnri.datasets.recording import Recording


def array_recordings(
    arrays: Mapping[str, np.ndarray],
    time_step: float,
) -> list[Recording]:
    """Takes arrays apart into systems.

    Of several arrays, one called `x` is taken and the others are left alone;
    without one, each has to be a system, which is called as its array.

    Args:
        arrays (mapping of str to ndarray): Trajectories by name, floating
            point, NaN where there is no value: `[S, N, T, F]`, or `[N, T, F]`
            for a single system.
        time_step (float): The time from one frame to the next.

    Raises:
        TypeError: If an array does not hold floating point numbers.
        ValueError: If a shape does not fit or a number is infinite.
    """
    if 'x' in arrays:
        arrays = {'x': arrays['x']}
    for name, array in arrays.items():
        if array.dtype.kind != 'f':
            called = f' {name!r}' if name else ''
            raise TypeError(f'The array{called} must hold floating point '
                            f'numbers, but its dtype is {array.dtype}; '
                            f'convert it, e.g. by astype(float).')
    if len(arrays) == 1:
        array, = arrays.values()
        if array.ndim == 4:
            return [
                _recording(number, system, time_step)
                for number, system in enumerate(array)
            ]
        return [_recording(0, array, time_step)]
    if not arrays:
        raise ValueError('The file holds no arrays.')
    recordings = [
        _recording(name, array, time_step) for name, array in arrays.items()
    ]
    sizes = {recording.x.shape[2] for recording in recordings}
    if len(sizes) > 1:
        raise ValueError(
            f'The arrays {list(arrays)} are not all of one number of '
            f'features, but of {sorted(sizes)}; call the trajectories x if '
            f'the others are something else.')
    return recordings


def _recording(name: Name, x: np.ndarray, time_step: float) -> Recording:
    if x.ndim != 3 or x.shape[0] < 2 or x.shape[1] < 2 or x.shape[2] < 1:
        raise ValueError(
            f'Trajectories must be [num_systems, num_particles, num_steps, '
            f'num_features], or one system without the first, of at least 2 '
            f'particles, 2 steps and 1 feature; but system {name!r} is '
            f'{list(x.shape)}.')
    recording = Recording(name, range(len(x)), x.astype(np.float64), time_step)
    if np.isinf(x).any():
        particle, frame, feature = np.argwhere(np.isinf(x))[0].tolist()
        raise ValueError(f'Trajectories must be finite numbers, but feature '
                         f'{feature} of {recording.where(particle, frame)} is '
                         f'{x[particle, frame, feature]}.')
    return recording
