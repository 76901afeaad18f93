"""Imports run downwards only, and what is below commands knows none."""
import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = 'pyg_fnri'
TOP = Path(__file__).parent.parent
ROOT = TOP / PACKAGE

# From the ground up: a part imports parts of the lines above its own only.
LEVELS = [['simulation', 'data', 'losses'],
          ['transforms', 'loader', 'nn', 'convert'], ['datasets', 'metrics'],
          ['inference'], ['laws'], ['plot'], ['training'], ['evaluation'],
          ['selection'], ['estimator'], ['commands']]
LEVEL = {part: i for i, line in enumerate(LEVELS) for part in line}
# What parts may use besides the package and the standard library.
ALLOWED = {
    'simulation': {'numpy', 'numba', 'rich'},
    'nn': {'torch', 'torch_geometric', 'torch_scatter'}
}


def imports_of(path):
    """Names of all modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f'{path} imports relatively'
            yield node.module
            yield from (f'{node.module}.{alias.name}' for alias in node.names)


def part_of(name):
    """`nn` of `pyg_fnri.nn.mlp`, None of the package itself or another."""
    parts = name.split('.')
    return parts[1] if parts[0] == PACKAGE and parts[1:2] != [] and (
        parts[1] in LEVEL) else None


MODULES = {
    '.'.join(path.relative_to(TOP).with_suffix('').parts): path
    for path in sorted(ROOT.rglob('*.py'))
}
IMPORTS = {name: set(imports_of(path)) for name, path in MODULES.items()}


def test_every_part_has_its_place():
    parts = {name.split('.')[1] for name in MODULES} - {'__init__'}
    assert parts == set(LEVEL)


@pytest.mark.parametrize('part', LEVEL)
def test_imports_run_downwards(part):
    for name, imported in IMPORTS.items():
        if part_of(name) == part:
            used = set(map(part_of, imported)) - {None, part}
            assert all(LEVEL[other] < LEVEL[part] for other in used), name


@pytest.mark.parametrize('part', ALLOWED)
def test_simulation_and_networks_know_little(part):
    known = ALLOWED[part] | sys.stdlib_module_names
    for name, imported in IMPORTS.items():
        if part_of(name) == part:
            for other in imported:
                assert part_of(other) == part or other.split(
                    '.')[0] in known | {PACKAGE} and part_of(other) is None


def test_modules_do_not_import_in_circles():
    done = set()

    def visit(name, trail):
        assert name not in trail, ' -> '.join(trail + (name, ))
        if name in done:
            return
        for imported in sorted(IMPORTS[name] & MODULES.keys()):
            visit(imported, trail + (name, ))
        done.add(name)

    for name in MODULES:
        visit(name, ())


@pytest.mark.parametrize('name', MODULES)
def test_the_package_knows_no_command(name):
    """Neither by import nor in what it says."""
    text = MODULES[name].read_text()
    assert not re.search(r'\b(scripts|benchmarks)/|\bscripts? `', text)
    if part_of(name) != 'commands':
        assert not re.search(r'(?<![\w`-])--[a-z][a-z-]+|pyg-fnri ', text)
    assert not {'scripts', 'tests', 'benchmarks'
                } & {other.split('.')[0]
                     for other in IMPORTS[name]}


def test_no_script_imports_a_script():
    scripts = [*TOP.glob('scripts/**/*.py'), *TOP.glob('benchmarks/*.py')]
    names = {path.stem for path in TOP.glob('scripts/**/*.py')}
    for path in scripts:
        used = {name.split('.')[0] for name in imports_of(path)}
        assert not used & ({'scripts'} | names), path


def test_no_global_of_a_module_is_replaced():
    for path in [
            *MODULES.values(), *TOP.glob('scripts/**/*.py'),
            *TOP.glob('benchmarks/*.py')
    ]:
        assert not re.search(r'(?<!\.)\bsetattr\((?!self|out)',
                             path.read_text()), path


@pytest.mark.parametrize('package', [
    name.removesuffix('.__init__') for name in MODULES
    if name.endswith('__init__') and part_of(name) != 'commands'
])
def test_public_names_are_there(package):
    """Also those that are imported lazily."""
    module = importlib.import_module(package)
    for name in module.__all__:
        assert name in dir(module)
        assert not inspect.ismodule(getattr(module, name)), name
    assert not hasattr(module, 'nothing')


def test_what_is_not_used_is_not_imported():
    """One statement after the other, in one process: importing torch takes
    long."""
    heavy = {'pytorch_lightning', 'torchmetrics', 'matplotlib', 'networkx'}
    absent = {
        'import pyg_fnri, pyg_fnri.commands.train':
        {'torch', 'numpy', 'pandas', 'rich'},
        'from pyg_fnri.nn import MultiplexConv': {'rich', *heavy},
        'from pyg_fnri.datasets import ParticleSystems': heavy,
        'from pyg_fnri.laws import discover_force_laws': heavy
    }
    code = 'import sys\n' + ''.join(f'{statement}\nprint(*sys.modules)\n'
                                    for statement in absent)
    out = subprocess.run([sys.executable, '-c', code], check=True,
                         capture_output=True, text=True).stdout.splitlines()
    for line, (statement, names) in zip(out, absent.items(), strict=True):
        assert not names & {*line.split()}, statement


def test_the_data_folder_is_no_package():
    # An installed package `datasets` would hide another one of that name.
    assert not (TOP / 'datasets' / '__init__.py').exists()
