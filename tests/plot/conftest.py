"""Fixtures for pictures."""
import pytest


@pytest.fixture
def assert_saves(tmp_path):
    """Asserts that a figure can be written as a picture."""
    def check(figure):
        figure.savefig(tmp_path / 'picture.png')
        assert (tmp_path / 'picture.png').stat().st_size > 5000

    return check


@pytest.fixture
def legend_texts():
    return lambda figure: [x.get_text() for x in figure.legends[0].get_texts()]
