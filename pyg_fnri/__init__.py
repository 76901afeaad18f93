"""Neural relational inference on PyTorch Geometric."""
from importlib import import_module
from typing import Any

__version__ = '0.1.0'

#: What people use most, imported when it is first asked for.
_HOMES = {
    'data': ['from_trajectory', 'fully_connected'],
    'datasets': ['NRIFolder', 'ParticleSystems', 'TrajectoryTable'],
    'evaluation': ['evaluate'],
    'inference': ['refine', 'sample_posterior'],
    'laws': ['check_laws', 'discover_force_laws'],
    'nn': ['FNRI', 'MultiplexConv', 'NRI', 'SFNRI'],
    'selection': ['select_layers'],
    'training': ['Config', 'fit', 'load_checkpoint'],
    'transforms': ['SplitTrajectory']
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = ['__version__', *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(f'{__name__}.{_HOME[name]}'), name)


def __dir__() -> list[str]:
    return __all__
