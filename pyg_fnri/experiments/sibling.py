"""Scripts that run other scripts of their folder, in one process."""
import importlib.util
from pathlib import Path
from types import ModuleType


def load_sibling(script: str, name: str) -> ModuleType:
    """Another script of the same folder as a module, whose `main` is to be
    called.

    Args:
        script: The file of a script, its `__file__`.
        name: The name of the other one, without `.py`.

    Raises:
        FileNotFoundError: If there is none.
    """
    path = Path(script).with_name(f'{name}.py')
    spec = importlib.util.spec_from_file_location(f'scripts_{name}', path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
