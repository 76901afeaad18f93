"""What an object is, in words that change whenever it does.

PyG keys its caches on little more than `repr`, which for most objects leaves
out parameters and for all leaves out code. Data sets here are kept under a
digest of what `describe` says of each of their arguments.
"""
import hashlib
import inspect
import re
from typing import Any


def describe(obj: Any) -> str:
    """An object's parameters and, if it is not this library's, its code.

    The representations of this library's own classes show every parameter.
    Of functions and of other classes' objects, the values that they hold and
    their source, where it can be had, are added.

    Args:
        obj (Any): A transform, filter or force, or :obj:`None`.

    Returns:
        A text that stays the same from one run of Python to the next.
    """
    parts = [repr(obj)]
    if inspect.isfunction(obj):
        used = inspect.getclosurevars(obj)
        parts += [str(used.nonlocals), str(used.globals), _source(obj)]
    elif obj is not None and not _is_known(type(obj)):
        parts += [str(getattr(obj, '__dict__', ''))]
        parts += [
            _source(cls) for cls in type(obj).__mro__ if not _is_known(cls)
        ]
    # Addresses differ from run to run.
    return re.sub(r' at 0x[0-9a-fA-F]+', '', '\n'.join(parts))


def digest(text: str) -> str:
    """A short name for a text, different for every text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _is_known(cls: type) -> bool:
    return cls.__module__.partition('.')[0] in ('pyg_fnri', 'builtins', 'abc')


def _source(code: Any) -> str:
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):  # Typed into an interpreter, or compiled.
        return ''
