import argparse
import inspect

import pytest

from pyg_fnri.datasets import TrajectoryTable
from pyg_fnri.training.reading_arguments import (
    READING,
    add_reading_arguments,
    as_options,
    check_masses,
    reading_arguments,
)


@pytest.fixture
def parse():
    def parse(*arguments):
        parser = argparse.ArgumentParser()
        parser.add_argument('--data')
        add_reading_arguments(parser)
        return parser.parse_args(['--data', *arguments])

    return parse


def test_options_are_arguments_of_a_table():
    known = inspect.signature(TrajectoryTable).parameters
    assert set(READING) <= set(known)


def test_only_what_is_given_is_told(parse):
    assert reading_arguments(parse('a.csv')) == {}
    args = parse('a.csv', '--time', 't', '--position', '0', 'x', '--time-step',
                 '0.5', '--max-gap', '0', '--mass', 'weight')
    assert reading_arguments(args) == {
        'time': 't',
        'position': ['0', 'x'],
        'mass': 'weight',
        'time_step': 0.5,
        'max_gap': 0
    }


def test_features_of_arrays_are_numbers(parse, tmp_path):
    args = parse('a.npy', '--position', '0', '1', '--velocity', '3', '2')
    assert reading_arguments(args) == {'position': [0, 1], 'velocity': [3, 2]}
    with pytest.raises(ValueError, match="--velocity names .* one is 'vx'"):
        reading_arguments(parse('a.npy', '--velocity', 'vx'))
    assert reading_arguments(parse('a.npz', '--mass', '12')) == {'mass': 12}
    with pytest.raises(ValueError, match="--mass names .* one is 'm'"):
        reading_arguments(parse('a.npy', '--mass', 'm'))
    assert reading_arguments(parse(str(tmp_path))) == {}


@pytest.mark.parametrize('again, default', [(False, '[time]'),
                                            (True, '[as in training]')])
def test_help_tells_what_is_taken_without_them(again, default):
    parser = argparse.ArgumentParser()
    add_reading_arguments(parser, again)
    text = ' '.join(parser.format_help().split())
    assert f'column of times, numbers or dates {default}' in text
    assert 'interpolate linearly' in text


@pytest.mark.parametrize('message, expected', [
    ('by max_gap=2, now 1.', 'by --max-gap 2, now 1.'),
    ('by time_step=0.5.', 'by --time-step 0.5.'),
    ('position=[0, 1], and velocity=[2].', '--position 0 1, and --velocity 2.'),
    ("(position=['a', 'b'])", '(--position a b)'),
    ('e.g. window=10, or', 'e.g. --window 10, or'),
    ('by mass=NAME.', 'by --mass NAME.'),
    ('max_gap must be at least 0', '--max-gap must be at least 0'),
    ('the time 0.1 of system A', 'the time 0.1 of system A'),
    ("The run has max_steps = 3", "The run has max_steps = 3"),
])
def test_messages_name_options(message, expected):
    assert as_options(message) == expected
    assert as_options(expected) == expected


def test_masses_that_were_known_in_training_are_asked_for():
    known, unknown = {'reading': {'mass': 'm'}}, {'reading': {'time': 't'}}
    for trained, reading in [(known, {
            'mass': 'm'
    }), (known, {
            'mass': 0
    }), (unknown, {}), (unknown, {
            'mass': 'm'
    }), ({}, {})]:
        check_masses(trained, 'new.csv', reading)
    for reading in ({}, {'mass': None}, {'time': 't'}):
        with pytest.raises(ValueError, match="by mass=m, .* 'new.csv' are not"):
            check_masses(known, 'new.csv', reading)
