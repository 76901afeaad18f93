import argparse
import math

import pytest

from pyg_fnri.recipes import Recipe
from pyg_fnri.training.arguments import (
    OPTIONS,
    add_data_arguments,
    add_model_arguments,
    add_run_arguments,
    assignment,
    check_together,
    positive,
    recipe_options,
    yes_or_no,
)


@pytest.fixture
def parser():
    parser = argparse.ArgumentParser()
    for add in (add_data_arguments, add_model_arguments, add_run_arguments):
        add(parser)
    return parser


def test_options_are_fields_of_every_recipe():
    assert set(OPTIONS) <= set(Recipe.__dataclass_fields__)


def test_only_what_is_asked_for_reaches_the_recipe(parser):
    assert recipe_options(parser.parse_args([])) == {}
    args = parser.parse_args([
        '--directed', '--tau', '1.5', '--hard', 'no', '--null-prior', '0.9',
        '--option', 'num_distilled=0', '--option', 'tau=9'
    ])
    assert recipe_options(args) == {
        'undirected': False,
        'tau': 1.5,  # The option of its own has the last word.
        'hard': False,
        'null_prior': [0.9],
        'num_distilled': 0
    }


@pytest.mark.parametrize('arguments, message', [
    ([], None),
    (['--data', 'a.csv', '--window', '9'], None),
    (['--data', 'a.csv', '--window', '9', '--stride', '3'], None),
    (['--data', 'a.csv', '--stride', '3'], 'name their length with --window'),
    (['--max-gap', '1'], '--max-gap is for data of your own'),
    (['--recipe', 'em'], None),
    (['--radius', '1'], '--radius is for data of your own'),
    (['--data', 'a.csv', '--split-by', 'graph'], '--split-by is for simulated'),
    (['--recipe', 'em', '--unsplit'], '--unsplit is for training alone'),
])
def test_arguments_have_to_go_together(parser, capsys, arguments, message):
    args = parser.parse_args(arguments)
    if message is None:
        check_together(parser, args)
        return
    with pytest.raises(SystemExit, match='2'):
        check_together(parser, args)
    assert message in capsys.readouterr().err


def test_texts_become_values():
    assert assignment('a=3') == ('a', 3) and assignment('a=') == ('a', '')
    assert assignment('a=inf') == ('a', math.inf)
    assert assignment('a=b=c') == ('a', 'b=c')
    assert yes_or_no('yes') and not yes_or_no('no')
    assert positive('12') == 12


@pytest.mark.parametrize('kind, text', [(assignment, 'a'), (assignment, '=3'),
                                        (yes_or_no, 'true'), (positive, '0'),
                                        (positive, '1.5')])
def test_wrong_texts_are_told(kind, text):
    with pytest.raises(argparse.ArgumentTypeError, match=f"not '{text}'"):
        kind(text)
