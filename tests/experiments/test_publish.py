import pytest

from pyg_fnri.experiments import Report, Table, publish

REPORT = Report('Errors', [
    Table('of one', ['row of some width', 'a'], [['x', '1']]),
    Table('of two', ['row of some width', 'b'], [['y', '2.5 ± 0.1']])
], ['Some note.'])


def test_report_is_printed_and_written(tmp_path, capsys):
    path = tmp_path / 'errors.md'
    publish(REPORT, str(path))
    assert path.read_text(encoding='utf-8') == REPORT.markdown()
    text = ' '.join(capsys.readouterr().out.split())
    for part in ('Errors, of one', 'Errors, of two', '2.5 ± 0.1'):
        assert part in text
    assert f'written into {path}' in text


def test_report_that_cannot_be_written_leaves_the_old_one(
        tmp_path, monkeypatch):
    path = tmp_path / 'errors.md'
    path.write_text('old')

    def fail(self):
        raise OSError('no space')

    monkeypatch.setattr(Report, 'markdown', fail)
    with pytest.raises(OSError, match='no space'):
        publish(REPORT, str(path))
    assert path.read_text() == 'old' and len(list(tmp_path.iterdir())) == 1
