import math

import pytest

from pyg_fnri.experiments.robustness import CURVES, STUDIES
from pyg_fnri.experiments.robustness_records import Records
from pyg_fnri.experiments.robustness_report import (
    LAYERS,
    robustness_curves,
    robustness_report,
)

FULL = STUDIES['full']


def made_up(combined, law_error=(0.01, 0.02), confirmed=True, sampled=None):
    figures = {
        'confirmed': confirmed,
        'law_error': law_error and dict(zip(LAYERS, law_error)),
        'noise': [0.01, 0.01, 0.02, 0.02],
        'discovery_seconds': 20.,
        'refined': {
            'combined': combined,
            'layers': [combined + 0.02, combined + 0.01],
            'calibration_error': 0.03,
            'seconds': 4.
        },
    }
    if sampled is not None:
        figures['sampled'] = {'combined': sampled, 'calibration_error': 0.01}
    return figures


@pytest.fixture
def records(tmp_path):
    records = Records(str(tmp_path))

    def save(curve, value, seed, figures):
        records.save(FULL.point(curve, value, seed), figures)

    save('noise', 2, 0, made_up(0.8, sampled=0.85))
    save('noise', 2, 1, made_up(0.9, None, confirmed=False, sampled=0.95))
    save('noise', 5, 0, {'failed': 'nothing | there'})
    save('noise', 5, 1, made_up(0.4))
    save('frames', 49, 0, made_up(0.97))  # The standard, of all curves.
    return records


def row_of(records, read_row, curve, value):
    markdown = robustness_report(FULL, records, [0, 1], 'make it').markdown()
    return read_row(markdown, CURVES[curve].title, value)


def test_a_row_is_a_mean_over_seeds(records, read_row):
    row = row_of(records, read_row, 'noise', '2')
    assert row['combined'] == '85.00 ± 5.00'
    assert row['spring'] == '87.00 ± 5.00'
    # Of the run in which there is a law of its own for each force.
    assert row['spring law error'] == '1.00 (n = 1)'
    assert row['sampled: combined'] == '90.00 ± 5.00'
    assert row['sampled: ECE'] == '1.00 ± 0.00'
    assert row['confirmed'] == '1 of 2'
    assert row['seeds'] == '0 1 (n = 2)'


def test_the_standard_is_a_point_of_all_curves(records, read_row):
    for curve, value in [('noise', '0'), ('frames', '49'), ('systems', '500'),
                         ('particles', '5'), ('interval', '0.1')]:
        row = row_of(records, read_row, curve, value)
        assert row['combined'] == '97.00', curve
        assert row['sampled: combined'] == '–'


def test_what_failed_has_a_row_with_the_reason(records):
    markdown = robustness_report(FULL, records, [0, 1], 'make it').markdown()
    section = markdown.split(f"## {CURVES['noise'].title}")[1].split('##')[0]
    well, failed = (line for line in section.splitlines()
                    if line.startswith('| 5 |'))
    assert '40.00' in well and '1 (n = 1)' in well
    assert 'failed: nothing / there' in failed and '0 (n = 1)' in failed
    assert len(set(line.count('|') for line in (well, failed))) == 1


def test_what_was_not_measured_is_open(records, read_row):
    assert set(row_of(records, read_row, 'frames', '10').values()) == {'–'}
    empty = robustness_report(FULL, records, [], 'make it').markdown()
    assert 'Nothing has been measured yet.' in empty


def test_notes_tell_data_unit_and_command(records):
    markdown = robustness_report(FULL, records, [0, 1], 'make it').markdown()
    for words in ('springs and charges', '500 unseen', 'strict', 'per cent',
                  '`make it`', 'CPU s', '1 % is 0.005 m and 0.01 m/s',
                  'ablations of a trained encoder were not measured'):
        assert words in markdown, words


def test_curves_are_what_was_measured(records):
    panels = robustness_curves(FULL, records, [0, 1])
    assert panels.keys() == {curve.axis for curve in CURVES.values()}
    noise = panels[CURVES['noise'].axis]
    assert noise['value'].tolist() == [0, 2, 2, 5, 5]
    accuracy = noise['accuracy'].tolist()
    assert accuracy[:3] == [0.97, 0.8, 0.9]
    assert math.isnan(accuracy[3]) and accuracy[4] == 0.4
    assert noise['law_error_charge'][:2].tolist() == [0.02, 0.02]
    assert math.isnan(noise['law_error_charge'][2])
    assert robustness_curves(FULL, records, []) == {}
