"""Simulated trajectories as files of their own, cut off from their truth."""
import os

import numpy as np

from pyg_fnri.convert import to_pandas
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.loader import SystemLoader


def write_simulated(
    folder: str,
    root: str,
    name: str,
    num_particles: int = 5,
    num_systems: int = 5_000,
    seed: int = 0,
) -> tuple[str, str]:
    """Writes trajectories and truth as a user would have them, so that nothing
    can be trained on or chosen by the truth.

    Args:
        folder: Where to, made if need be.
        root: Where data sets are kept, or made.
        name: What is simulated, as for
            :class:`~pyg_fnri.datasets.ParticleSystems`.
        num_particles: Particles in a system.
        num_systems: Systems in all.
        seed: Of the simulation.

    Returns:
        The file of the trajectories and that of the interactions, with which
        :class:`~pyg_fnri.datasets.TrajectoryTable` gives the same systems, but
        for the order of their layers: it sorts them by name.

    Raises:
        ValueError: If there is nothing of that name, or a number is too small.
    """
    systems = ParticleSystems(root, name, 'train', num_particles,
                              (num_systems, 1, 1), seed)
    os.makedirs(folder, exist_ok=True)
    stem = f'{name}-{num_particles}-{num_systems}-{seed}'
    table = os.path.join(folder, f'{stem}.npy')
    truth = os.path.join(folder, f'{stem}-truth.csv')
    batch = next(iter(SystemLoader(systems, batch_size=num_systems)))
    with written_whole(table) as part, open(part, 'wb') as file:
        x = batch.x.view(num_systems, num_particles, *batch.x.shape[1:])
        np.save(file, x.numpy())
    with written_whole(truth) as part:
        edges = to_pandas(batch, batch.edge_label, systems.names)
        edges[edges['type'] > 0].drop(columns='probability').to_csv(
            part, index=False)
    return table, truth
