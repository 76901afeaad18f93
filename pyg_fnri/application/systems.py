"""A user's own systems, as a trained model looks at them."""
from collections.abc import Mapping
from typing import Any, Optional, Union

from pyg_fnri.datasets import NRIFolder, TrajectoryTable
from pyg_fnri.datasets.named_systems import find_system
from pyg_fnri.datasets.spec import (
    describe_files,
    frame_interval,
    open_dataset,
    remembered_reading,
)
from pyg_fnri.training import Config

OwnSystems = Union[TrajectoryTable, NRIFolder]


def open_systems(
    config: Config,
    data: str,
    root: str,
    *,
    edges: Optional[str] = None,
    window: Optional[int] = None,
    stride: Optional[int] = None,
    reading: Optional[Mapping[str, Any]] = None,
) -> OwnSystems:
    """Opens trajectories that a model was not trained on, whole; of a folder
    those of the test split. Candidate edges are chosen as in training.

    Args:
        config (Config): That of the model.
        data, edges, window, stride: As for
            :func:`~pyg_fnri.datasets.spec.describe_files`.
        root (str): Where data sets are kept.
        reading (mapping, optional): How the trajectories are read, where it
            differs from how those of training were.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If they are not of the kind that the model knows, or
            their masses are not known and those in training were.
    """
    description = describe_files(
        data, edges, num_observed=config.num_observed, window=window,
        stride=stride, reading=_reading(config.data, data, reading or {}), **{
            option: config.data[option]
            for option in ('neighbours', 'radius', 'directed')
            if option in config.data
        })
    split = 'test' if 'folder' in description['files'] else 'all'
    dataset = open_dataset(description, root, split)
    assert isinstance(dataset, (TrajectoryTable, NRIFolder))
    num_steps, num_features = dataset[0].x.shape[1:]
    if num_features != config.in_channels:
        raise ValueError(f"The model was trained on {config.in_channels} "
                         f"features of a particle, positions and velocities, "
                         f"but '{data}' has {num_features}.")
    if num_steps < config.num_observed:
        raise ValueError(f"The model looks at {config.num_observed} frames, "
                         f"but the systems in '{data}' have {num_steps}.")
    # Frames further apart look like faster particles, and nothing would fail.
    trained = config.data.get('time_step')
    if 'num_systems' in config.data:
        _, simulated = find_system(config.data.get('name'))
        trained = simulated.frame_interval
    found = frame_interval(description, dataset)
    if trained and found and abs(found - trained) > 0.05 * trained:
        raise ValueError(f"Frames of '{data}' are {found:g} apart, but "
                         f"those that the model was trained on {trained:g}; "
                         f"resample the trajectories.")
    return dataset


def observe(data: Any, num_observed: int) -> Any:
    """Splits a system, or a batch of them, into what a model observes and what
    can be compared with its predictions.

    Args:
        data: With whole trajectories :obj:`x`.
        num_observed: The frames that the model sees.

    Returns:
        The same object: the first frames are :obj:`x`, and those from the
        last observed one on, which predictions start from, :obj:`y`.
    """
    data.x, data.y = data.x[:, :num_observed], data.x[:, num_observed - 1:]
    return data


def _reading(trained: Mapping[str, Any], data: str,
             given: Mapping[str, Any]) -> dict[str, Any]:
    """As in training, unless told otherwise."""
    remembered = remembered_reading(trained, data)
    if 'position' in given:  # Velocities are then those of others.
        remembered.pop('velocity', None)
    reading = {**remembered, **given}
    check_masses(trained, data, reading)
    return reading


def check_masses(trained: Mapping[str, Any], data: str,
                 reading: Mapping[str, Any]) -> None:
    """Makes sure that a model that knows masses from training is told those of
    other particles: without, it would take all for alike, and its forces for
    accelerations.

    Args:
        trained (mapping): The description of its training data.
        data (str): The other trajectories.
        reading (mapping): How they are read.

    Raises:
        ValueError: If their masses are not read.
    """
    mass = trained.get('reading', {}).get('mass')
    if mass is not None and reading.get('mass') is None:
        raise ValueError(f"The model was trained on particles whose masses "
                         f"are known, by mass={mass}, and those of '{data}' "
                         f"are not; say which feature holds them by "
                         f"mass=NAME, in a table or an array.")
