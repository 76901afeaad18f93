import pytest

from pyg_fnri.experiments.ablations import ABLATIONS, Method
from pyg_fnri.experiments.robustness import CURVES, STUDIES, Condition

FULL, SMOKE = STUDIES['full'], STUDIES['smoke']
EVERYTHING = list(CURVES), list(ABLATIONS)


@pytest.mark.parametrize('study', STUDIES.values(), ids=STUDIES)
def test_every_curve_runs_through_the_standard_and_varies_one_thing(study):
    assert study.values.keys() == CURVES.keys()
    for name, curve in CURVES.items():
        points = [study.point(name, value, 0) for value in study.values[name]]
        assert [p.curve for p in points].count('standard') == 1
        conditions = {p.condition for p in points}
        assert len(conditions) == len(points)
        for point in points:
            differing = [
                key for key in Condition.__dataclass_fields__ if getattr(
                    point.condition, key) != getattr(study.standard, key)
            ]
            assert differing in ([], [curve.field])


def test_names_are_those_of_files():
    assert FULL.point('noise', 0.5, 1).name == 'noise-0.5-seed1'
    assert FULL.point('interval', 0.1, 2).name == 'standard-seed2'
    assert FULL.point('ablation', 'not annealed',
                      0).name == 'ablation-not_annealed-seed0'
    points = FULL.points(*EVERYTHING, [0, 1])
    names = [point.name for point in points]
    assert len(set(names)) == len(names)
    assert not any(set(name) & set(' /,') for name in names)


def test_the_standard_is_measured_once_a_seed_and_with_all_that_any_needs():
    points = FULL.points(*EVERYTHING, [0, 1])
    standard = [point for point in points if point.curve == 'standard']
    assert [point.seed for point in standard] == [0, 1]
    assert all(point.sampled for point in standard)
    # Whichever curve it is asked for.
    for name, value in [('frames', 49), ('particles', 5),
                        ('ablation', 'everything')]:
        assert FULL.point(name, value, 0) == standard[0]


def test_points_of_the_same_laws_follow_each_other():
    points = FULL.points(*EVERYTHING, [0, 1])
    laws = [(p.seed, FULL.laws_of(p.condition)) for p in points]
    changes = sum(a != b for a, b in zip(laws, laws[1:]))
    assert changes == len(set(laws)) - 1
    of_standard = {
        p.name
        for p, (_, law) in zip(points, laws) if law == FULL.standard
    }
    assert 'particles-20-seed0' in of_standard
    assert 'ablation-no_restarts_of_single_systems-seed0' in of_standard
    assert 'frames-10-seed0' not in of_standard


def test_ablations_keep_what_the_scale_has_for_all():
    point = SMOKE.point('ablation', 'not disentangled', 0)
    assert point.condition.method == Method(disentangled=False, num_restarts=1,
                                            num_stages=1)
    none = SMOKE.point('ablation', 'no restarts of single systems', 0)
    assert none.condition.method.num_restarts == 0


def test_unknown_curves_and_ablations():
    with pytest.raises(KeyError):
        FULL.point('mass', 1, 0)
    with pytest.raises(KeyError):
        FULL.point('ablation', 'nothing', 0)
