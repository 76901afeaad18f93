"""Fixtures for pictures."""
import pytest
from matplotlib.figure import Figure


@pytest.fixture
def assert_saves(tmp_path):
    """Asserts that a figure can be written as a picture."""
    def check(figure):
        assert isinstance(figure, Figure)
        figure.savefig(tmp_path / 'picture.png')
        content = (tmp_path / 'picture.png').read_bytes()
        assert content.startswith(b'\x89PNG') and len(content) > 5000

    return check


@pytest.fixture
def legend_texts():
    def texts(figure):
        return [text.get_text() for text in figure.legends[0].get_texts()]

    return texts
