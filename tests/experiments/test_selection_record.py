import json
import math
from dataclasses import replace

import pytest
from made_up_runs import ONE, TWO, make_runs

from pyg_fnri.experiments.selection import select
from pyg_fnri.experiments.selection_record import selection_record


@pytest.fixture
def runs():
    return make_runs({ONE: 2., TWO: 1.}, wrong=0.3)


def test_record_holds_what_is_recommended_and_every_run(runs):
    found = selection_record(select(runs), runs)
    assert found['recommended'] == found['best'] == [2, 2]
    assert [row['candidate'] for row in found['candidates']] == ['2', '2,2']
    assert [run['candidate'] for run in found['runs']
            ] == (['2'] * len(runs[ONE]) + ['2,2'] * len(runs[TWO]))
    assert 'over 10 steps' in found['rule']
    for kept, run in zip(found['runs'], [*runs[ONE], *runs[TWO]]):
        for horizon, errors in run.errors.items():
            assert kept['mse'][horizon] == pytest.approx(1e5 * errors.mean())


def test_json_can_hold_what_is_not_finite(runs):
    runs[ONE][0] = replace(runs[ONE][0], nll=math.inf)
    found = selection_record(select(runs), runs)
    assert found['runs'][0]['nll'] is None
    # Agreement with the truth, which is not known.
    assert found['candidates'][0]['edge_accuracy'] is None
    json.dumps(found, allow_nan=False)
