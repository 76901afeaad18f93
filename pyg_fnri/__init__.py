"""Neural relational inference on PyTorch Geometric."""
import ast
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = '0.1.0'


def lazily(package: str) -> Any:
    """`__getattr__` and `__dir__` of a package that imports a name when it is
    first asked for, from where its imports for type checkers have it."""
    module: Any = sys.modules[package]
    source = module.__spec__.loader.get_source(package)
    homes: dict[str, Any] = {
        alias.name: node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) for alias in node.names
    }

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f'module {package!r} has no attribute '
                                 f'{name!r}')
        return getattr(import_module(homes[name]), name)

    return get, lambda: sorted({*vars(module), *homes})


if TYPE_CHECKING:
    from pyg_fnri.data import from_trajectory, fully_connected
    from pyg_fnri.datasets import NRIFolder, ParticleSystems, TrajectoryTable
    from pyg_fnri.estimator import GraphEstimator, infer, load
    from pyg_fnri.evaluation.evaluate import evaluate
    from pyg_fnri.inference.refine import refine, sample_posterior
    from pyg_fnri.laws import check_laws, discover_force_laws
    from pyg_fnri.nn import FNRI, NRI, SFNRI, MultiplexConv
    from pyg_fnri.selection import select_layers
    from pyg_fnri.training import Config, fit, load_checkpoint
    from pyg_fnri.transforms import SplitTrajectory
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    'Config', 'FNRI', 'GraphEstimator', 'MultiplexConv', 'NRI', 'NRIFolder',
    'ParticleSystems', 'SFNRI', 'SplitTrajectory', 'TrajectoryTable',
    '__version__', 'check_laws', 'discover_force_laws', 'evaluate', 'fit',
    'from_trajectory', 'fully_connected', 'infer', 'load', 'load_checkpoint',
    'refine', 'sample_posterior', 'select_layers'
]
