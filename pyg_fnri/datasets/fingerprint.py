"""What an object is, in words that change whenever it does.

PyG keys its caches on little more than `repr`, which for most objects leaves
out parameters and for all leaves out code. Data sets here are kept under a
digest of what `describe` says of each of their arguments.
"""
import copyreg
import dis
import functools
import hashlib
import inspect
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Union

import torch
from torch import Tensor

Code = Union[type, FunctionType, ModuleType]


def describe(obj: Any) -> str:
    """An object's parameters and, if it is not this library's, its code.

    The representations of this library's own classes show every parameter.
    Other objects are taken apart as :mod:`pickle` would, down to numbers,
    words and the content of arrays: containers, attributes, wrapped functions,
    and the values that code takes from around it and from its module. Code of
    the user's own is told by its source, that of packages by its file.

    Args:
        obj (Any): A transform, filter or force, or :obj:`None`.

    Returns:
        A text that stays the same from one run of Python to the next.
    """
    return _Description({}).text(obj)


def digest(text: str) -> str:
    """A short name for a text, different for every text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class _Description:
    """Values, and the sources of the code among them.

    Args:
        seen (dict): The objects that have been described, by identity, and the
            number of each: one that is met again is named by its number, so
            that circles come to an end.
    """
    def __init__(self, seen: dict[int, tuple[int, Any]]) -> None:
        self.seen = seen
        self.sources: dict[str, None] = {}

    def text(self, obj: Any) -> str:
        lines = '\n'.join([self.value(obj), *self.sources])
        # Addresses differ from run to run.
        return re.sub(r' at 0x[0-9a-fA-F]+', '', lines)

    def value(self, obj: Any) -> str:
        if isinstance(obj, bytes) and len(obj) > 64:  # Those of arrays.
            return f'{len(obj)} bytes {hashlib.sha256(obj).hexdigest()}'
        if obj is None or type(obj) in (bool, int, float, complex, str, bytes):
            return repr(obj)
        if type(obj) is tuple:
            return f'({self._values(*obj)})'
        if isinstance(obj, Tensor):
            return f'{type(obj)}({self._values(*_content(obj))})'
        if _is_ours(type(obj)) and not isinstance(obj, torch.nn.Module):
            return repr(obj)
        if id(obj) in self.seen:
            return f'<{self.seen[id(obj)][0]}>'
        # The object too, or another one could be given its place.
        self.seen[id(obj)] = len(self.seen), obj
        if type(obj) is list:
            return f'[{self._values(*obj)}]'
        if type(obj) is dict:
            return f'{{{self._values(*obj.items())}}}'
        if type(obj) in (set, frozenset):
            # In an order of its own: theirs differs from run to run.
            each = [_Description(dict(self.seen)).text(item) for item in obj]
            return f'{{{", ".join(sorted(each))}}}'
        if isinstance(obj, ModuleType):
            self._add_source(obj)
            return f'<module {obj.__name__}>'
        if isinstance(obj, CodeType):
            return self._values(obj.co_code.hex(), obj.co_names, obj.co_consts)
        if isinstance(obj, FunctionType):
            code = '' if self._add_source(obj) else self.value(obj.__code__)
            return f'{obj}({code}{self._surroundings(obj)})'
        if isinstance(obj, MethodType):
            return f'method({self._values(obj.__func__, obj.__self__)})'
        if isinstance(obj, type):
            return f'{obj}({"".join(map(self._class, obj.__mro__))})'
        return self._state(obj)

    def _values(self, *objs: Any) -> str:
        return ', '.join(map(self.value, objs))

    def _state(self, obj: Any) -> str:
        """What an object is made of."""
        # Of functions that a package decorates: decorators keep caches.
        if (isinstance(getattr(obj, '__wrapped__', None), FunctionType)
                and _is_installed(type(obj))
                and not isinstance(obj, functools.partial)):
            return f'{type(obj)}({self.value(obj.__wrapped__)})'
        try:
            parts = obj.__reduce_ex__(4)
        except Exception:  # Locks, files and the like.
            parts = repr(obj)
        if isinstance(parts, str):  # A name is all there is to it.
            return repr(obj)
        make, *parts = parts
        if make is not copyreg.__newobj__:  # type: ignore[attr-defined]
            parts = [make, *parts]
        # Items of lists and dictionaries come as iterators.
        parts = [[*p] if isinstance(p, Iterator) else p for p in parts]
        return f'object({self._values(type(obj), *parts)})'

    def _class(self, cls: type) -> str:
        """A class without its bases: what its methods are and look up."""
        if _is_ours(cls) or cls.__module__ in ('builtins', 'abc'):
            return ''
        readable = self._add_source(cls)
        if _is_installed(cls):
            return ''
        out = []
        for name, value in vars(cls).items():
            for part in _members(value):
                if not isinstance(part, FunctionType):
                    if not name.startswith('__'):  # Those are Python's.
                        out.append(f'{name}: {self.value(part)}')
                elif not readable:
                    out.append(self.value(part))
                # Those that a dataclass is given follow from its source.
                elif not _is_generated(inspect.unwrap(part)):
                    out.append(self._surroundings(part))
        return ', '.join(filter(None, out))

    def _surroundings(self, function: FunctionType) -> str:
        """What a function takes from elsewhere."""
        code, around = function.__code__, {}
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                around[name] = cell.cell_contents
            except ValueError:  # Not there yet.
                pass
        if not _is_installed(function):
            around.update((name, function.__globals__[name])
                          for name in _names(code)
                          if name in function.__globals__)
        parts = (function.__defaults__, function.__kwdefaults__, around,
                 vars(function))
        return self._values(*filter(None, parts))

    def _add_source(self, code: Code) -> bool:
        """Tells what code is, if it can be told from a file."""
        if _is_installed(code):
            source = f'{code.__name__}: {_file_digest(_file(code))}'
        else:
            # Of the function itself, not of one that it wraps.
            source = _source(getattr(code, '__code__', code))
        if source:
            self.sources[source] = None
        return bool(source)


def _members(value: Any) -> tuple[Any, ...]:
    """What an attribute of a class is made of."""
    if isinstance(value, property):
        return value.fget, value.fset, value.fdel
    if isinstance(value, functools.cached_property):
        return (value.func, )
    if isinstance(value, functools.partialmethod):
        return value.func, value.args, value.keywords
    return (getattr(value, '__func__', value), )


def _content(tensor: Tensor) -> tuple[Any, ...]:
    plain = tensor.detach().cpu().to_dense().resolve_conj().resolve_neg()
    content = plain.contiguous().flatten().view(torch.uint8).numpy()
    return str(tensor.dtype), tuple(tensor.shape), content.tobytes()


def _names(code: CodeType) -> Iterator[str]:
    """The names that code looks up in its module, functions in it too."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ('LOAD_GLOBAL', 'LOAD_NAME'):
            yield instruction.argval
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _names(value)


def _is_generated(function: Any) -> bool:
    code = getattr(function, '__code__', None)
    return code is not None and code.co_filename == '<string>'


def _is_ours(code: Code) -> bool:
    name = code.__name__ if isinstance(code, ModuleType) else code.__module__
    return str(name).partition('.')[0] == 'pyg_fnri'


def _is_installed(code: Code) -> bool:
    """Whether code came with Python or in a package, this one included."""
    path = Path(_file(code))
    return (_is_ours(code) or 'site-packages' in path.parts
            or 'dist-packages' in path.parts
            or path.is_relative_to(sysconfig.get_path('stdlib')))


def _file(code: Code) -> str:
    if isinstance(code, FunctionType):  # A decorator's may say another module.
        return code.__code__.co_filename
    module = sys.modules.get(code.__module__) if isinstance(code,
                                                            type) else code
    return getattr(module, '__file__', None) or ''


@functools.cache
def _file_digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:  # Built into Python.
        return ''


def _source(code: Any) -> str:
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):  # Typed into an interpreter, or compiled.
        return ''
