import math
import signal
import time
from dataclasses import fields

import numpy as np
import pytest

from pyg_fnri.commands.cli import (OptionParser, OwnData, Run, SimulatedData,
                                   describe_data, errors_in_one_line, given)
from pyg_fnri.training import RECIPES, Config, NetworkRecipe


@pytest.fixture
def parse():
    parser = OptionParser('do', 'What it does.')
    parser.add_fields('simulated', SimulatedData, ['name'])
    parser.add_fields('own', OwnData, ['data', 'position'])
    parser.add_fields('model', Config, ['num_edge_types'], ['unsplit'])
    parser.add_fields('training', NetworkRecipe, ['batch_size'], [])
    parser.add_fields('run', Run, ['directed', 'out'])
    for name, recipe in RECIPES.items():
        parser.add_fields(f'recipe {name}', recipe)
    return lambda *args: parser.parse_args(args)


def test_fields_are_read_by_their_types(parse):
    args = parse('--batch-size', '3', '--directed', '--num-edge-types', '2',
                 '3', '--option', 'null_prior=[0.9, 0.8]', '--option',
                 'delta=inf', '--option', 'hard=yes', '--option', 'mass=weight',
                 '--num-systems', '4', '5', '6', '--unsplit')
    assert given(args, *RECIPES.values()) == {
        'batch_size': 3,
        'null_prior': [0.9, 0.8],
        'delta': math.inf,
        'hard': True
    }
    assert given(args, Config) == {'num_edge_types': [2, 3], 'unsplit': True}
    assert given(args, Run) == {'directed': True}
    assert given(args, OwnData) == {'mass': 'weight'}
    assert given(args, SimulatedData) == {'num_systems': [4, 5, 6]}


@pytest.mark.parametrize('wrong', ['colour=3', 'tau', 'tau=hot', 'hard=maybe'])
def test_wrong_options_are_told(parse, capsys, wrong):
    with pytest.raises(SystemExit, match='2'):
        parse('--option', wrong)
    assert wrong in capsys.readouterr().err


def test_help_shows_some_fields_and_help_options_the_others(parse, capsys):
    for option in ('--help', '--help-options'):
        with pytest.raises(SystemExit, match='0'):
            parse(option)
    short, long = capsys.readouterr().out.split('simulated:\n  num_p')
    assert '--out STR' in short and '[runs/train]' in short
    assert '--tau' not in short
    for cls in (SimulatedData, OwnData, Run, *RECIPES.values()):
        for field in fields(cls):
            option = field.name.replace('_', '-')
            assert f'--{option} ' in short or f'{field.name}=' in f'num_p{long}'
    assert '  tau=2.0\n      Temperature of the samples.' in long


def test_data_are_own_or_simulated(parse, tmp_path):
    assert describe_data(parse('--num-particles', '7'))['num_particles'] == 7
    path = str(tmp_path / 'a.npy')
    np.save(path, np.zeros((2, 3, 4, 6)))
    args = parse('--data', path, '--position', '0', '1', '--mass', '2')
    reading = {'position': ['0', '1'], 'mass': '2'}
    assert describe_data(args)['reading'] == reading
    for wrong in (['--radius', '1'], ['--data', path, '--name', 'kuramoto']):
        with pytest.raises(ValueError, match='is for .* data alone'):
            describe_data(parse(*wrong))


@pytest.mark.parametrize('number, code', [(signal.SIGINT, 130),
                                          (signal.SIGTERM, 143)])
def test_stopping_is_told_in_one_line(capsys, number, code):
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as stopped:
        with errors_in_one_line():
            signal.raise_signal(number)
    assert stopped.value.code == code and signal.getsignal(number) == before
    assert capsys.readouterr().err.startswith('stopped; ')


def test_a_stop_that_python_drops_is_not_lost():
    class Dropped:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(SystemExit, match='130'):
        with errors_in_one_line():
            Dropped()
            time.sleep(0.1)
