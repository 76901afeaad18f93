"""Data sets of interacting systems, one `InMemoryDataset` per file."""
from .particle_systems import ParticleSystems

__all__ = [
    'ParticleSystems',
]
