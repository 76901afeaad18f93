"""Data sets of interacting systems, one `InMemoryDataset` per file."""
from pyg_fnri.datasets.nri_folder import NRIFolder
from pyg_fnri.datasets.particle_systems import ParticleSystems
from pyg_fnri.datasets.trajectory_table import TrajectoryTable

__all__ = ['NRIFolder', 'ParticleSystems', 'TrajectoryTable']
