import functools
import importlib.util
import sys

import pytest
import torch
from torch_geometric.transforms import BaseTransform, Compose

from pyg_fnri.datasets.fingerprint import describe, digest
from pyg_fnri.simulation import Spring
from pyg_fnri.transforms import SplitTrajectory


class Silent(BaseTransform):
    """Its representation shows no parameter."""
    def __init__(self, value):
        self.value = value

    def forward(self, data):
        return data


def less_than(limit):
    return lambda data: data.x.max() < limit


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


def test_equal_objects_at_other_addresses_are_the_same():
    assert describe(Silent(1)) == describe(Silent(1))
    assert describe(less_than(1)) == describe(less_than(1))
    nested = [Silent(torch.nn.Identity()) for _ in range(2)]
    assert describe(nested[0]) == describe(nested[1])


@pytest.mark.parametrize('source', [
    'class Thing:\n    def __call__(self, x):\n        return {} * x\n',
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


def test_code_that_cannot_be_read_is_left_out():
    scope = {}
    exec('def thing(x):\n    return x', scope)
    assert 'thing' in describe(scope['thing'])
    assert describe(len) == '<built-in function len>'


def test_digest_is_a_short_name():
    assert digest('a') != digest('b')
    assert digest('a') == 'ca978112ca1b'  # The same in every run.
