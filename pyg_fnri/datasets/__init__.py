"""Data sets of interacting systems, one `InMemoryDataset` per file."""
from typing import TYPE_CHECKING

from pyg_fnri import lazily

if TYPE_CHECKING:
    from pyg_fnri.datasets.nri_folder import NRIFolder
    from pyg_fnri.datasets.particle_systems import ParticleSystems
    from pyg_fnri.datasets.trajectory_table import TrajectoryTable
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = ['NRIFolder', 'ParticleSystems', 'TrajectoryTable']
