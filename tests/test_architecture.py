"""Imports run downwards only, and packages' `__init__` hold nothing else."""
import ast
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest

PACKAGE = 'pyg_fnri'
ROOT = Path(__file__).parent.parent / PACKAGE

# From the ground up: a part imports parts of the lines above its own only. A
# new one needs a place here.
LEVELS = [
    ['simulation', 'data', 'losses'],
    ['transforms', 'loader', 'nn', 'convert'],
    ['datasets', 'metrics'],
    ['inference'],
    ['laws'],
    ['plot'],
    ['recipes'],
    ['training'],
    ['evaluation', 'application'],
    ['selection'],
]
# What `simulation` may use, besides the standard library.
SIMULATION_NEEDS = {'numpy', 'numba', 'rich'}


def modules():
    """Every module's name and file, such as `pyg_fnri.nn.mlp`."""
    for path in sorted(ROOT.rglob('*.py')):
        parts = path.relative_to(ROOT.parent).with_suffix('').parts
        if parts[-1] == '__init__':
            parts = parts[:-1]
        yield '.'.join(parts), path


def imports_of(name, path):
    """Names of all modules that a module imports, wherever in its file."""
    package = name if path.name == '__init__.py' else name.rpartition('.')[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name('.' * node.level + (node.module or ''),
                                  package)
            yield module
            # `from pyg_fnri import nn` names a module after the `import`.
            yield from (f'{module}.{alias.name}' for alias in node.names)


def part_of(name):
    """`nn` of `pyg_fnri.nn.mlp`, None of the package itself or another."""
    package, _, rest = name.partition('.')
    part = rest.partition('.')[0]
    exists = (ROOT / part).is_dir() or (ROOT / f'{part}.py').exists()
    return part if package == PACKAGE and part and exists else None


MODULES = dict(modules())
IMPORTS = {name: set(imports_of(name, path)) for name, path in MODULES.items()}
every_module = pytest.mark.parametrize('name', MODULES)


def test_there_is_something_to_check():
    assert f'{PACKAGE}.nn.models' in MODULES
    assert f'{PACKAGE}.nn' in IMPORTS[f'{PACKAGE}.training.config']


@every_module
def test_imports_run_downwards(name):
    level = {part: i for i, line in enumerate(LEVELS) for part in line}
    part = part_of(name)
    assert part is None or part in level, f'{part} has no place in LEVELS'
    for imported in IMPORTS[name]:
        other = part_of(imported)
        if other in (None, part):
            continue
        assert part is not None, f'{PACKAGE} itself imports {imported}'
        assert other in level, f'{other} has no place in LEVELS'
        assert level[other] < level[part], f'{name} imports {imported}'


@every_module
def test_the_package_knows_neither_scripts_nor_tests(name):
    for imported in IMPORTS[name]:
        assert imported.partition('.')[0] not in ('scripts', 'tests', 'dense')


@pytest.mark.parametrize(
    'name', [name for name in MODULES if part_of(name) == 'simulation'])
def test_simulation_knows_nothing_of_graphs_and_models(name):
    for imported in IMPORTS[name]:
        package = imported.partition('.')[0]
        if package == PACKAGE:
            assert part_of(imported) == 'simulation', f'{name}: {imported}'
        else:
            assert package in SIMULATION_NEEDS | sys.stdlib_module_names


@pytest.mark.parametrize('name',
                         [name for name in MODULES if part_of(name) == 'nn'])
def test_networks_know_nothing_of_data_sets_and_simulation(name):
    allowed = {'torch', 'torch_geometric', 'torch_scatter'}
    for imported in IMPORTS[name]:
        package = imported.partition('.')[0]
        if package == PACKAGE:
            assert part_of(imported) == 'nn', f'{name}: {imported}'
        else:
            assert package in allowed | sys.stdlib_module_names


def test_modules_of_one_package_do_not_import_in_circles():
    done = set()

    def visit(name, trail):
        assert name not in trail, ' -> '.join(trail + (name, ))
        if name in done:
            return
        for imported in sorted(IMPORTS[name] & MODULES.keys()):
            # Importing a module runs its package's `__init__` first, which
            # is no circle of its own.
            if imported != name.rpartition('.')[0]:
                visit(imported, trail + (name, ))
        done.add(name)

    for name in MODULES:
        visit(name, ())


@pytest.mark.parametrize(
    'name',
    [name for name, path in MODULES.items() if path.name == '__init__.py'])
def test_packages_hold_docstring_imports_and_all(name):
    docstring, *body = ast.parse(MODULES[name].read_text()).body
    assert isinstance(docstring, ast.Expr)
    assert isinstance(docstring.value.value, str)
    assigned, imported = {}, []
    for node in body:
        if isinstance(node, ast.Assign):
            assigned[node.targets[0].id] = ast.literal_eval(node.value)
        else:
            assert isinstance(node, (ast.Import, ast.ImportFrom)), name
            imported += [alias.asname or alias.name for alias in node.names]
    if name == PACKAGE:
        assert assigned.keys() - {'__all__'} == {'__version__'}
    else:
        assert assigned.keys() == {'__all__'}
        assert sorted(assigned['__all__']) == sorted(imported)


def test_the_data_folder_is_no_package():
    # An installed package `datasets` would hide another one of that name.
    assert not (ROOT.parent / 'datasets' / '__init__.py').exists()
