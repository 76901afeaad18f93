"""Data sets of interacting systems, one `InMemoryDataset` per file."""
from .nri_folder import NRIFolder
from .particle_systems import ParticleSystems
from .trajectory_table import TrajectoryTable

__all__ = [
    'NRIFolder',
    'ParticleSystems',
    'TrajectoryTable',
]
