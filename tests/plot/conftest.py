"""Fixtures for pictures."""
from itertools import count

import pytest

NUMBERS = count()


@pytest.fixture
def assert_saves(tmp_path):
    """Asserts that a figure can be written as a picture."""
    def check(figure):
        path = tmp_path / f'{next(NUMBERS)}.png'  # Drawn, as none before.
        figure.savefig(path)
        assert path.stat().st_size > 5000

    return check


@pytest.fixture
def legend_texts():
    return lambda figure: [x.get_text() for x in figure.legends[0].get_texts()]
