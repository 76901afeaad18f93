from dataclasses import replace

import pytest

from pyg_fnri.experiments.robustness import STUDIES
from pyg_fnri.experiments.robustness_records import Records

FULL = STUDIES['full']
FIGURES = {'refined': {'combined': 0.5}}


@pytest.fixture
def records(tmp_path):
    return Records(str(tmp_path))


def test_what_is_saved_is_loaded(records):
    points = [FULL.point('noise', 2, seed) for seed in (0, 1, 2)]
    records.save(points[0], FIGURES, seconds=3.)
    records.save(points[2], {'failed': 'nothing there'})
    found = records.of(points)
    assert found.keys() == {0, 2}
    assert found[0]['figures'] == FIGURES and found[0]['seconds'] == 3
    assert found[2]['figures']['failed'] == 'nothing there'
    assert 'processor' in found[0]['provenance']


def test_a_measurement_under_another_condition_is_none(records):
    point = FULL.point('noise', 2, 0)
    records.save(point, FIGURES)
    other = replace(point.condition, num_test=7)
    assert records.load(point._replace(condition=other)) is None
    assert records.load(point) is not None


def test_a_measurement_that_lacks_samples_is_none(records):
    point = FULL.point('noise', 2, 0)
    assert point.sampled
    records.save(point._replace(sampled=False), FIGURES)
    assert records.load(point) is None


@pytest.mark.parametrize('content', ['', '{}', '[]', '{"condition": 1'])
def test_a_file_that_is_no_measurement_is_told(records, tmp_path, content):
    point = FULL.point('noise', 2, 0)
    (tmp_path / 'noise-2-seed0.json').write_text(content)
    with pytest.raises(ValueError, match='noise-2-seed0.json.*delete it'):
        records.load(point)
