import pytest
from speed import main


@pytest.mark.slow
@pytest.mark.parametrize('part', ['aggregation', 'loader'])
def test_parts_are_timed(part, capsys):
    main(['--only', part])
    first = capsys.readouterr().out.splitlines()[1]
    assert float(first.split()[-1]) == 1
