import json
import math

import pytest
from made_up_runs import ONE, THREE, TWO, make_runs
from rich.console import Console

from pyg_fnri.experiments.held_out import HeldOut
from pyg_fnri.experiments.selection import select
from pyg_fnri.experiments.selection_report import (
    selection_frame,
    selection_paragraph,
    selection_table,
)


@pytest.fixture
def selection():
    runs = make_runs({ONE: 2., TWO: 1., THREE: 0.999}, wrong=0.3)
    runs[TWO] = [
        HeldOut(**{
            **vars(run), 'accuracy': a
        }) for run, a in zip(runs[TWO], (0.8, 0.9))
    ]
    return select(runs)


def test_frame_holds_all_evidence(selection):
    frame = selection_frame(selection)
    assert frame['candidate'].tolist() == ['2', '2,2', '2,2,2']
    assert frame['recommended'].tolist() == [False, True, False]
    one, two, three = (row for _, row in frame.iterrows())
    assert three.ratio_to_best == 1 and three.ratio_to_best_se == 0
    assert one.ratio_to_best == pytest.approx(2, rel=0.01)
    assert one.ratio_to_linear == pytest.approx(0.5, rel=0.03)
    assert one.ratio_to_shuffled == pytest.approx(0.5)
    # In units of 1e-5: 1e-3 is 100.
    assert two.error_10 == pytest.approx(100, rel=0.03)
    assert two.error_1 == pytest.approx(10, rel=0.03)
    assert 0 < two.error_10_se < two.error_10
    assert two.nll == 100 and two.entropy_share == pytest.approx(0.05)
    assert (two.types_used, two.types, two.same_layers) == (8, 8, 0)
    assert two.edge_accuracy == pytest.approx(0.85)
    assert math.isnan(one.edge_accuracy)
    # 30 % of the edges are random in both.
    assert two.agreement == pytest.approx(0.7 + 0.3 / 4, abs=0.03)
    assert two.agreement_by_chance == pytest.approx(0.25, abs=0.01)
    assert two.agreement_adjusted == pytest.approx(0.7, abs=0.04)


def test_table_shows_floors_and_candidates(selection):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(selection_table(selection, 'mine.csv'))
    text = capture.get()
    rows = {
        cells[0]: cells[1:]
        for cells in ([
            c.strip()
            for c in line.strip('│┃').split('┃' if '┃' in line else '│')
        ] for line in text.splitlines())
    }
    assert 'mine.csv' in text
    assert list(rows)[2:] and rows['linear step'][1].startswith('400 ±')
    assert rows['static'][0].startswith('100 ±')
    head = rows['types']
    two = dict(zip(head, rows['2,2']))
    assert two['used'] == '8/8' and two['right'] == '85 %'
    assert two['shuffled'] == '2.00 ± 0.00' and two['NLL'] == '100'
    assert two['chance'] == '25 %' and two['entropy'] == '5 %'
    assert dict(zip(head, rows['2']))['right'] == '–'


def test_paragraph_states_the_rule_and_the_evidence(selection):
    text = selection_paragraph(selection)
    assert text.startswith('Recommended: --num-edge-types 2 2; it is the '
                           'smallest candidate whose error over 10 steps is '
                           'within one standard error of the best one, 2,2,2')
    assert 'on 40 held-out systems' in text
    assert 'Its error is 0.25 times' in text or 'Its error is 0.26' in text
    assert 'chance gives 25%' in text
    alone = selection_paragraph(select(make_runs({TWO: 1.})))
    assert 'it is the smallest candidate, and has the lowest' in alone
    assert 'no smaller candidate comes' in selection_paragraph(
        select(make_runs({
            ONE: 2.,
            TWO: 1.
        })))


def test_divergence_has_no_number():
    selection = select(make_runs({ONE: math.inf, TWO: 1.}))
    frame = selection_frame(selection)
    assert frame.ratio_to_best[0] == math.inf
    console = Console(width=200)
    with console.capture() as capture:
        console.print(selection_table(selection, ''))
    assert 'diverges' in capture.get()
    json.dumps(frame.to_dict('records'))  # Plain numbers all.
