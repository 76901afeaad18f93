import pytest
from speed import main


@pytest.mark.slow
@pytest.mark.parametrize('part', ['aggregation', 'loader'])
def test_parts_are_timed(part, capsys):
    main(['--only', part])
    assert '     1.00\n' in capsys.readouterr().out
