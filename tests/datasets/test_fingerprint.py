import collections
import dataclasses
import functools
import importlib.util
import sys
import threading

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.transforms import BaseTransform, Compose
from torch_geometric.utils import to_undirected

from pyg_fnri.datasets.fingerprint import describe, digest
from pyg_fnri.simulation import Force, Spring
from pyg_fnri.transforms import SplitTrajectory


@dataclasses.dataclass(frozen=True)
class Own(Force):
    strength: float

    def magnitude(self, distance):
        return self.strength * distance


class Silent(BaseTransform):
    """Its representation shows no parameter."""
    def __init__(self, value):
        self.value = value

    def forward(self, data):
        return data


class Keeper:
    def __init__(self, limit):
        self.limit = limit

    def keep(self, data):
        return data.x.max() < self.limit


class Slots:
    __slots__ = ('value', )

    def __init__(self, value):
        self.value = value


def less_than(limit):
    return lambda data: data.x.max() < limit


def by_default(limit):
    return lambda data, limit=limit: data.x.max() < limit


def table(value, size=2_000):
    """Too long for its representation to show the middle."""
    return np.where(np.arange(size) == size // 2, value, 0.)


def ring(value):
    out = [value]
    out.append(out)
    return out


#: Functions of a parameter that repr, and that of a `__dict__`, do not show.
MAKERS = [
    lambda value: Compose([Silent(value)]),
    lambda value: [Silent(value)],
    lambda value: (Silent(value), ),
    lambda value: {
        'key': Silent(value)
    },
    lambda value: {Silent(value)},
    lambda value: collections.OrderedDict(key=Silent(value)),
    lambda value: Silent(Silent(value)),
    lambda value: Silent(table(value)),
    lambda value: Silent(torch.from_numpy(table(value))),
    lambda value: Silent(pd.DataFrame({'x': table(value)})),
    lambda value: Silent(np.array([Silent(value), None])),
    lambda value: Silent(torch.tensor(value, dtype=torch.bfloat16)),
    lambda value: Silent(torch.full((2, 2), float(value)).to_sparse()),
    lambda value: torch.nn.ParameterList([torch.full((2_000, ), float(value))]),
    lambda value: Slots(value),
    lambda value: Keeper(value).keep,
    lambda value: functools.partial(less_than, limit=Silent(value)),
    lambda value: functools.partial(Keeper(value).keep, None),
    lambda value: less_than(Silent(value)),
    lambda value: by_default(value),
    lambda value: ring(value),
    lambda value: functools.cache(less_than(value)),
    lambda value: functools.update_wrapper(functools.partial(less_than, value),
                                           less_than),
    lambda value: functools.update_wrapper(Silent(value), less_than),
]


def description(path, source):
    """Describes the `Thing()` of a module, but for the module's name."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # Where `inspect` looks for classes.
    try:
        spec.loader.exec_module(module)
        return describe(module.Thing()).replace(path.stem, '')
    finally:
        del sys.modules[path.stem]


@pytest.mark.parametrize('one, other', [
    (Spring(0.1), Spring(0.2)),
    (SplitTrajectory(3), SplitTrajectory(4)),
    (Silent(1), Silent(2)),
    (Compose([SplitTrajectory(3)]), Compose([SplitTrajectory(4)])),
    (less_than(1), less_than(2)),
    (functools.partial(max, 1), functools.partial(max, 2)),
    (None, Silent(1)),
])
def test_parameters_tell_objects_apart(one, other):
    assert describe(one) != describe(other)
    assert describe(one) == describe(one)


@pytest.mark.parametrize('make', MAKERS)
def test_what_is_within_tells_objects_apart(make):
    one, same, other = make(1), make(1), make(2)
    assert describe(one) == describe(same) != describe(other)


def test_shapes_and_types_of_arrays_count():
    tensors = [torch.zeros(4), torch.zeros(2, 2), torch.zeros(4).int()]
    described = {describe(Silent(tensor)) for tensor in tensors}
    described |= {describe(Silent(tensor.numpy())) for tensor in tensors}
    assert len(described) == 6


def test_the_order_of_a_set_does_not_count():
    # Their hashes differ by a multiple of any small table's size.
    assert str({0, 1 << 20}) != str({1 << 20, 0})
    assert describe({0, 1 << 20}) == describe({1 << 20, 0})


def test_objects_that_cannot_be_taken_apart_are_named():
    assert describe(Silent(threading.Lock())) == describe(
        Silent(threading.Lock()))


def test_packages_are_not_looked_into():
    text = describe(to_undirected)
    assert 'def ' not in text and text.count('\n') == 1


def test_equal_objects_at_other_addresses_are_the_same():
    assert describe(Silent(1)) == describe(Silent(1))
    assert describe(less_than(1)) == describe(less_than(1))
    nested = [Silent(torch.nn.Identity()) for _ in range(2)]
    assert describe(nested[0]) == describe(nested[1])


@pytest.mark.parametrize('source', [
    'class Thing:\n    def __call__(self, x):\n        return {} * x\n',
    'factor = {}\nclass Thing:\n    def __call__(self, x):\n'
    '        return factor * x\n',
    'factor = {}\ndef thing(x):\n    return sum(factor for _ in x)\n'
    'Thing = lambda: thing\n',
    'def helper(x):\n    return {} * x\ndef thing(x):\n    return helper(x)\n'
    'Thing = lambda: thing\n',
    'import functools\ndef thing(x, k):\n    return {} * x\n'
    'Thing = lambda: functools.partial(thing, k=2)\n',
    'import functools\ndef wrap(f):\n    @functools.wraps(f)\n'
    '    def call(x):\n        return {} * f(x)\n    return call\n'
    '@wrap\ndef thing(x):\n    return x\nThing = lambda: thing\n',
    'class Thing:\n    def keep(self, x):\n        return {} * x\n'
    'make, Thing = Thing, lambda: make().keep\n',
    'def thing(x):\n    return {} * x\nThing = lambda: thing\n',
    'factor = {}\ndef thing(x):\n    return factor * x\n'
    'Thing = lambda: thing\n',
])
def test_code_tells_objects_apart(tmp_path, source):
    one, same, other = (description(tmp_path / f'{name}_module.py',
                                    source.format(factor))
                        for name, factor in [('a', 1), ('b', 1), ('c', 2)])
    assert one == same != other


def test_inherited_code_counts(tmp_path):
    source = ('class Base:\n    x = {}\n'
              'class Thing(Base):\n    pass\n')
    one, same, other = (description(tmp_path / f'{name}_module.py',
                                    source.format(factor))
                        for name, factor in [('a', 1), ('b', 1), ('c', 2)])
    assert one == same != other


@pytest.mark.parametrize('source', [
    'def thing(x):\n    return {} * x',
    'class thing:\n    def keep(self, x):\n        return {} * x',
])
def test_code_without_a_source_counts(source):
    described = []
    for factor in (1, 1, 2):
        scope = {'__name__': 'typed'}
        exec(source.format(factor), scope)
        described.append(describe(scope['thing']))
    assert described[0] == described[1] != described[2]


def test_compiled_code_is_named():
    assert describe(len) == '<built-in function len>'


def test_a_dataclass_is_told_by_its_source_and_values():
    text = describe(Own(0.25))
    assert '0.25' in text and text.count('class Own') == 1
    assert '__create_fn__' not in text


def test_digest_is_a_short_name():
    assert digest('a') != digest('b')
    assert digest('a') == 'ca978112ca1b'  # The same in every run.


def made_by(value):
    """A class whose methods look all of it up, without a word of it in their
    own source."""
    class Scale:
        factor = value
        later = functools.cached_property(lambda self: value)
        part = functools.partialmethod(len, value)

    Scale.__module__ = 'somewhere'
    return Scale


def test_attributes_of_classes_count():
    one, same, other = made_by([1]), made_by([1]), made_by([2])
    assert describe(one()) == describe(same()) != describe(other())


class Filled:
    factor = 1.


def test_values_set_on_a_class_count(monkeypatch):
    before = describe(Filled())
    monkeypatch.setattr(Filled, 'factor', 2.)
    assert describe(Filled()) != before
