"""What README and docs say is so: code runs, commands and paths exist."""
import argparse
import importlib.util
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import torch

from pyg_fnri.commands import COMMANDS, main

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ('*.md', 'docs/*.md', 'datasets/*.md', 'results/*.md')
    for path in ROOT.glob(pattern))
TEXTS = {name: (ROOT / name).read_text() for name in DOCUMENTS}
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


@pytest.fixture
def run_blocks(tmp_path, monkeypatch, one_thread, laws_sought_briefly):
    """Runs all Python blocks of a document, as one module."""
    def run(name):
        text = TEXTS[name]
        lines = [''] * text.count('\n')  # An error names the document's line.
        for match in re.finditer(r'^```python\n(.*?)^```$', text,
                                 re.DOTALL | re.MULTILINE):
            start = text[:match.start(1)].count('\n')
            lines[start:start + match[1].count('\n')] = match[1].splitlines()
        # A module of a file, as classes of users are.
        path = tmp_path / 'document.py'
        path.write_text('\n'.join(lines))
        monkeypatch.chdir(tmp_path)
        spec = importlib.util.spec_from_file_location('document', path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, 'document', module)
        spec.loader.exec_module(module)
        return module

    return run


def test_code_of_the_readme_runs(run_blocks):
    readme = run_blocks('README.md')
    assert str(readme.data) == ('Data(x=[5, 49, 4], edge_index=[2, 20], '
                                'edge_label=[20, 2], y=[5, 49, 4])')
    assert readme.h.shape == (5, 49, 32) and readme.out.shape == (5, 7)
    assert len(readme.own) == 3


def test_code_of_the_tour_runs(run_blocks):
    tour = run_blocks('docs/tour.md')
    assert tour.spring.shape == tour.charge.shape == (640, 2)
    assert tour.future.shape == (160, 50, 4)
    assert tour.later.shape == (5, 20, 4)
    assert tour.edge_attr.shape == (20, 4)
    assert tour.law(torch.ones(3)).shape == (2, 3)
    assert tour.mine.names == ['spring', 'yukawa']
    assert tour.own[0].x.shape == tour.own[0].y.shape == (5, 20, 4)


def test_scripts_do_what_commands_do():
    homes = {path.stem for path in ROOT.glob('scripts/*.py')}
    assert homes == {name.replace('-', '_') for name in COMMANDS} - {'demo'}
    for home in homes:
        command = importlib.import_module(f'pyg_fnri.commands.{home}')
        assert runpy.run_path(str(ROOT / 'scripts' /
                                  f'{home}.py'))['main'] is command.main


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
    known = re.findall(r'^([a-z-]+):', (ROOT / 'Makefile').read_text(),
                       re.MULTILINE)
    for target in re.findall(r'^make ([a-z-]+)|`make ([a-z-]+)', TEXTS[name],
                             re.MULTILINE):
        assert ''.join(target) in known


def test_tree_is_the_tree_there_is():
    tree = TEXTS['docs/design.md'].split('## The tree')[1].split('```')[1]
    shown = re.findall(r'^  (\S+)', tree, re.MULTILINE)
    parts = {
        path.name
        for path in (ROOT / 'pyg_fnri').iterdir()
        if path.suffix in ('', '.py') and not path.name.startswith('__')
    }
    assert {name.rstrip('/') for name in shown} == parts
    for name in re.findall(r'^(\S+)/', tree, re.MULTILINE):
        assert (ROOT / name).is_dir(), name
