"""The scripts as modules, and what a tiny run of them leaves."""
import importlib.util
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / 'scripts'


@pytest.fixture(scope='session')
def load_script():
    """Imports a script by its name; `script.main([...])` then runs it."""
    def load(name):
        spec = importlib.util.spec_from_file_location(name,
                                                      SCRIPTS / f'{name}.py')
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        return script

    return load


@pytest.fixture(scope='session')
def configs():
    """The files of arguments that come with the scripts."""
    return sorted((SCRIPTS / 'configs').glob('*.args'))


@pytest.fixture(scope='session')
def tiny_arguments(tiny_root):
    """Arguments of a training run of 3 steps, each of them validated."""
    return [
        '--root', tiny_root, '--num-systems', '64', '32', '32',
        '--hidden-channels', '8', '--batch-size', '16', '--max-steps', '3',
        '--val-every', '1', '--accelerator', 'cpu'
    ]


@pytest.fixture(scope='session')
def tiny_run(load_script, tiny_arguments, tmp_path_factory):
    """The directory of such a run, not to be changed."""
    out = tmp_path_factory.mktemp('runs') / 'tiny'
    load_script('train').main([*tiny_arguments, '--out', str(out)])
    return out
