"""What README and docs say is so: code runs, commands and paths exist.

Blocks of documents run by default, but those that the README has, too, and
those of `datasets/README.md`, which make data sets in full. Of the gallery, at
small sizes, `own_gnn` runs by default, the other pages by `make test-slow`.
"""
import argparse
import importlib.util
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pages
import pandas as pd
import pytest
import torch

from pyg_fnri import GraphEstimator
from pyg_fnri.commands import COMMANDS, main

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ('*.md', 'docs/**/*.md', 'datasets/*.md', 'results/*.md')
    for path in ROOT.glob(pattern))
TEXTS = {name: (ROOT / name).read_text() for name in DOCUMENTS}
GALLERY = sorted(path.stem for path in pages.GALLERY.glob('*.py'))
#: Pages that tests of their own run, packages that pages need, and documents
#: whose code makes data sets in full.
TESTED = {'own_gnn', 'planets'}
FULL = {'datasets/README.md'}
PACKAGES = {
    'planets': ['de421'],
    'fish': ['trajectorytools'],
    'soccer': ['kloppy']
}
SCRIPT = r'python ((?:scripts|benchmarks)/[\w/]+\.py)'
# On a line of its own, perhaps with a comment, or quoted in the text.
COMMAND = re.compile(
    rf'^(?:{SCRIPT}|pyg-fnri)( [^#\n]*)|'
    rf'`(?:{SCRIPT}|pyg-fnri(?= train -))( [^`]*)`', re.MULTILINE)


class Parsed(Exception):
    """A script has understood its arguments."""


@pytest.fixture
def one_thread():
    """Tiny products on many threads wait for each other, most of the time."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Where documents run; data sets that one has made, others find there."""
    folder = tmp_path_factory.mktemp('documents')
    shutil.copytree(
        ROOT / 'datasets', folder / 'datasets',
        ignore=lambda path, names: [name for name in names if '.' not in name])
    table = pd.read_csv(ROOT / 'datasets' / 'example.csv')
    table[table.system <= 8].to_csv(folder / 'my.csv', index=False)
    return folder


@pytest.fixture
def run(folder, monkeypatch, one_thread, laws_sought_briefly):
    """Runs code as a module of a file, as classes of users are; networks and
    numbers of layers are hardly tried."""
    defaults = GraphEstimator.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, 'max_steps', 2)
    monkeypatch.setattr('pyg_fnri.estimator.CANDIDATES', ((2, ), ))

    def run(name, code):
        path = folder / f'{name}.py'
        path.write_text(code)
        monkeypatch.chdir(folder)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return run


def python_blocks(text):
    """Those of a document, each on its lines of it, for errors to name."""
    lines = [''] * text.count('\n')
    for match in re.finditer(r'^```python\n(.*?)^```$', text,
                             re.DOTALL | re.MULTILINE):
        start = text[:match.start(1)].count('\n')
        lines[start:start + match[1].count('\n')] = match[1].splitlines()
    return '\n'.join(lines)


@pytest.mark.parametrize('name', [
    name for name in DOCUMENTS if name not in FULL
    and python_blocks(TEXTS[name]).strip() not in TEXTS['README.md']
])
def test_code_runs(run, name):
    run(re.sub(r'\W', '_', name), python_blocks(TEXTS[name]))


@pytest.mark.slow
@pytest.mark.parametrize('name', [n for n in GALLERY if n not in TESTED])
def test_pages_run(run, name):
    run_page(run, name, pages.small)


def run_page(run, name, change=str):
    for package in PACKAGES.get(name, []):
        pytest.importorskip(package)
    text = (pages.GALLERY / f'{name}.py').read_text()
    page = run(name, change(text))
    for picture, _ in pages.PICTURE.findall(text):
        assert Path(picture).exists() or picture == 'friction.png'
    return page


def test_edges_without_interaction_have_no_weight(run):
    page = run_page(run, 'own_gnn', pages.small)
    interacts = page.data.edge_label.any(-1)
    to_particle = page.data.edge_index[1] == 0
    assert page.weight[~interacts].eq(0).all()
    assert page.weight[~to_particle].eq(0).all()
    assert page.weight[interacts & to_particle].max() > 0.5


@pytest.mark.slow
def test_planets_are_weighed(run, capsys):
    page = run_page(run, 'planets')
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('All turn around Sun')
    assert abs(float(lines[1].split('r^')[1].split('(')[0]) - 2) < 1e-6
    off = abs(page.mass / page.true - 1)[1:]
    assert (off[:-1] < 1e-5).all() and off[-1] < 0.02
    assert (abs(page.mass - page.true)[1:] < 3 * page.error[1:]).all()


def test_pages_and_what_they_printed_fit():
    """Outputs that are stored are of cells that there are, and print."""
    for name in GALLERY:
        path = pages.GALLERY / f'{name}.py'
        cells = pages.read_cells(path)
        for number, text in pages.printed(path).items():
            assert not cells[number].is_prose
        shown = pages.to_markdown(path)
        assert shown.startswith('# ') and ' in the tests' not in shown
        assert f'CARD {name}\n' in TEXTS['docs/gallery/index.md']


def test_pictures_are_small():
    for path in (ROOT / 'docs').glob('*/*.png'):
        assert path.stat().st_size < 60_000, path


def test_all_public_names_are_in_the_reference():
    """Those of the package itself always are, on its own page."""
    parts = {
        f'pyg_fnri.{path.parent.name}'
        for path in (ROOT / 'pyg_fnri').glob('*/__init__.py')
        if '__all__' in path.read_text()
    }
    assert parts <= {*pages.MODULES}


def test_commands_run_without_installation(capsys, monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['commands', '--help'])
    runpy.run_module('pyg_fnri.commands', run_name='__main__')
    assert 'select-layers' in capsys.readouterr().out


def test_commands_take_the_arguments_shown(monkeypatch):
    commands = {(match[1] or match[3], match[2] or match[4])
                for text in TEXTS.values()
                for match in COMMAND.finditer(text)}
    shown = {words.split()[0] for script, words in commands if not script}
    assert shown >= COMMANDS.keys() - {'demo'}
    parse_args = argparse.ArgumentParser.parse_args

    def only_parse(*args):
        parse_args(*args)  # Exits at what it does not know.
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, 'parse_args', only_parse)
    for script, arguments in commands:
        with pytest.raises(Parsed):
            run = runpy.run_path(script)['main'] if script else main
            run(shlex.split(arguments))


@pytest.mark.parametrize('name', DOCUMENTS)
def test_links_and_targets_exist(name):
    for target in re.findall(r'\]\((?!https?://|#)([^)#]+)', TEXTS[name]):
        assert ((ROOT / name).parent / target).exists(), target
    known = ' '.join(
        re.findall(r'^([a-z -]+):', (ROOT / 'Makefile').read_text(),
                   re.MULTILINE)).split()
    for target in re.findall(r'^make ([a-z-]+)|`make ([a-z-]+)', TEXTS[name],
                             re.MULTILINE):
        assert ''.join(target) in known


def test_tree_is_the_tree_there_is():
    tree = TEXTS['docs/explanation/design.md'].split('## The tree')[1].split(
        '```')[1]
    shown = re.findall(r'^  (\S+)', tree, re.MULTILINE)
    parts = {
        path.name
        for path in (ROOT / 'pyg_fnri').iterdir()
        if path.suffix in ('', '.py') and not path.name.startswith('__')
    }
    assert {name.rstrip('/') for name in shown} == parts
    for name in re.findall(r'^(\S+)/', tree, re.MULTILINE):
        assert (ROOT / name).is_dir(), name
