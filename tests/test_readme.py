"""What the README says is so: its code runs, its commands and paths exist."""
import argparse
import configparser
import importlib.util
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent
README = (ROOT / 'README.md').read_text()
DOCUMENTS = [
    'README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'datasets/README.md',
    'results/README.md'
]
PARTS = {
    path.name
    for path in (ROOT / 'pyg_fnri').iterdir()
    if path.suffix in ('', '.py') and not path.name.startswith('__')
}
# On a line of its own, perhaps with a comment, or quoted in the text.
COMMAND = re.compile(
    r'^python (scripts/\w+\.py)([^#\n]*)|`python (scripts/\w+\.py)([^`]*)`',
    re.MULTILINE)


class Parsed(Exception):
    """A script has understood its arguments."""


@pytest.fixture
def one_thread():
    """Tiny products on many threads wait for each other, most of the time."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)


def python_blocks():
    """The code of each block, and the line of the README that it starts on."""
    for match in re.finditer(r'^```python\n(.*?)^```$', README,
                             re.DOTALL | re.MULTILINE):
        yield README[:match.start(1)].count('\n'), match[1]


def section(title):
    """The text below a heading, up to the next."""
    return re.split(rf'^#+ {title}\n', README,
                    flags=re.MULTILINE)[1].split('\n#')[0]


def test_python_blocks_run_one_after_the_other(tmp_path, monkeypatch,
                                               one_thread):
    lines = [''] * README.count('\n')
    for start, code in python_blocks():
        # In a moment: what it finds is tested elsewhere.
        code = code.replace('manual_seed(0))\nlaw', 'manual_seed(0), num_pilot='
                            '4, max_starts=2, max_rounds=0)\nlaw')
        lines[start:start + code.count('\n')] = code.splitlines()
    # A module of a file, as classes of users are; an error in it names the
    # README's line.
    path = tmp_path / 'readme.py'
    path.write_text('\n'.join(lines))
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location('readme', path)
    tour = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, 'readme', tour)
    spec.loader.exec_module(tour)
    # The shapes that the comments promise.
    assert str(tour.train[0]) == ('Data(x=[5, 49, 4], edge_index=[2, 20], '
                                  'edge_label=[20, 2], y=[5, 49, 4])')
    assert tour.spring.shape == tour.charge.shape == (640, 2)
    assert tour.future.shape == (160, 50, 4)
    assert tour.later.shape == (5, 20, 4)
    assert tour.edge_attr.shape == (20, 4)
    assert tour.h.shape == (5, 49, 32) and tour.out.shape == (5, 7)
    assert tour.law(torch.ones(3)).shape == (2, 3)
    assert tour.mine.names == ['spring', 'yukawa']
    assert tour.own[0].x.shape == tour.own[0].y.shape == (5, 20, 4)
    assert (tmp_path / 'graph.png').stat().st_size > 0


def test_scripts_take_the_arguments_shown(monkeypatch):
    monkeypatch.chdir(ROOT)  # Files of arguments are named from here.
    commands = {(match[1] or match[3], match[2] or match[4] or '')
                for match in COMMAND.finditer(README)}
    shown = {script for script, _ in commands}
    assert shown == {f'scripts/{p.name}' for p in ROOT.glob('scripts/*.py')}
    parse_args = argparse.ArgumentParser.parse_args

    def only_parse(*args):
        parse_args(*args)  # Exits at what it does not know.
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, 'parse_args', only_parse)
    for script, arguments in commands:
        with pytest.raises(Parsed):
            runpy.run_path(script)['main'](shlex.split(arguments))


@pytest.mark.parametrize('name', DOCUMENTS)
def test_links_lead_somewhere(name):
    for target in re.findall(r'\]\((?!https?://|#)([^)#]+)',
                             (ROOT / name).read_text()):
        assert ((ROOT / name).parent / target).exists(), target


@pytest.mark.parametrize('name', DOCUMENTS)
def test_targets_of_make_exist(name):
    known = re.findall(r'^([a-z-]+):', (ROOT / 'Makefile').read_text(),
                       re.MULTILINE)
    text = (ROOT / name).read_text()
    for target in re.findall(r'^make ([a-z-]+)|`make ([a-z-]+)', text,
                             re.MULTILINE):
        assert ''.join(target) in known


def test_tree_is_the_tree_there_is():
    tree = section('The tree').split('```')[1]
    shown = re.findall(r'^( *)(\S+)', tree, re.MULTILINE)
    top = {name for indent, name in shown if not indent}
    assert {name.rstrip('/') for indent, name in shown if indent} == PARTS
    for name in top:
        assert (ROOT / name).is_dir(), name


def test_table_of_dependencies_is_complete():
    config = configparser.ConfigParser()
    config.read(ROOT / 'setup.cfg')
    required = re.findall(r'^[\w-]+', config['options']['install_requires'],
                          re.MULTILINE)
    table = re.findall(r'^\| (`.*?) \|', section('Installation as a library'),
                       re.MULTILINE)
    listed = re.findall(r'`([\w-]+)`', ' '.join(table))
    assert sorted(listed) == sorted(required)
