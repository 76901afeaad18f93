import pytest
from torch_geometric.data import Batch

from pyg_fnri.evaluation import evaluate
from pyg_fnri.experiments import (
    HALVES,
    compression_curves,
    compression_report,
    measure_halves,
)
from pyg_fnri.experiments.compression import HORIZONS
from pyg_fnri.training import Config, build_module


@pytest.fixture
def module():
    return build_module(
        Config(in_channels=4, num_observed=49, num_edge_types=[2, 2],
               recipe='paper', options={'hidden_channels': 8}))


def make_halves(observed, following):
    """Errors that grow by as much in each half, from the given ones."""
    return {
        half: {
            'rollout_mse': {
                str(h): 1e-5 * first * h
                for h in HORIZONS
            },
            'static_mse': {
                str(h): 1e-3 * h
                for h in HORIZONS
            }
        }
        for half, first in zip(HALVES, (observed, following))
    }


@pytest.fixture
def results(make_result):
    """A model that compresses, with two seeds, and one that does not."""
    return dict(
        make_result(f'springs_charges-fnri-{regime}-{seed}', (
            accuracy, 0.9, 0.9), halves=make_halves(*errors))
        for regime, seed, accuracy, errors in (
            ('split', 0, 0.91, (2., 2.)),
            ('unsplit', 0, 0.25, (1., 7.)),
            ('unsplit', 1, 0.27, (1., 9.)),
        ))


def test_both_halves_are_measured_with_the_observed_graph(module, tiny_systems):
    systems = tiny_systems('test')
    module.fit_units(systems._data.x)
    batch = Batch.from_data_list(list(systems[:6]))
    halves = measure_halves(module, [batch])
    assert batch.y.equal(Batch.from_data_list(list(systems[:6])).y)

    edge_type = module.model.predict(batch)
    observed = batch.clone()
    observed.y = batch.x
    for half, data in zip(HALVES, (observed, batch)):
        report = evaluate(module.model, [data], module.units, [2, 2], HORIZONS,
                          infer=lambda _: (edge_type, None))
        for kind in ('rollout_mse', 'static_mse'):
            assert list(halves[half][kind]) == list(map(str, HORIZONS))
            assert halves[half][kind] == pytest.approx({
                str(h): e
                for h, e in report[kind].items()
            })
    first, second = (halves[half]['static_mse']['1'] for half in HALVES)
    assert first != pytest.approx(second, rel=1e-3)


def test_what_was_seen_is_reconstructed_by_what_was_learned_by_heart(
        module, tiny_systems):
    """A decoder that knows the observed frames is exact in them alone."""
    systems = tiny_systems('test')
    module.fit_units(systems._data.x)
    batch = Batch.from_data_list(list(systems[:3]))

    def decode(y, edge_index, edge_attr, pred_steps):
        return batch.x[:, 1:]

    module.model.decode = decode
    halves = measure_halves(module, [batch])
    assert halves['observed']['rollout_mse']['10'] == 0
    assert halves['following']['rollout_mse']['10'] > 1e-3


def test_report_shows_both_halves_of_both_models(results, read_row):
    text = compression_report(results, ('split', 'unsplit'), 'laptop',
                              'the command').markdown()
    section = text.split('## fNRI, I+C\n')[1]
    rows = {
        tuple(row[:2]): row[2:]
        for row in ([cell.strip() for cell in line.strip('|').split('|')]
                    for line in section.splitlines() if line.startswith('|'))
    }
    assert rows['with the split', 'observed'] == [
        '2.00', '10.0', '20.0', '40.0', '80.0', '91.0', '0 (n = 1)', '3.0'
    ]
    assert rows['without the split',
                'observed'][:2] == ['1.00 ± 0.00', '5.00 ± 0.00']
    assert rows['without the split', 'following'] == [
        '8.00 ± 1.00', '40.0 ± 5.0', '80.0 ± 10.0', '160 ± 20', '320 ± 40',
        '26.0 ± 1.0', '0 1 (n = 2)', '3.0'
    ]
    assert rows['static', 'following'][0] == '100'
    assert '`the command`' in text and '3 runs' in text


def test_report_of_nothing_has_no_table():
    text = compression_report({}, ('split', 'unsplit'), 'smoke', 'x').markdown()
    assert '|' not in text and 'Nothing has run yet.' in text


def test_model_without_its_counterpart_is_no_comparison(make_result):
    # At the paper's scale, the one with the split is a row of table 1 too.
    results = dict([
        make_result('springs_charges-nri-learned-0', halves=make_halves(1, 1))
    ])
    made = compression_report(results, ('learned', 'unsplit'), 'paper', 'x')
    assert made.tables == [] and 'Nothing has run yet.' in made.notes[-1]


def test_curves_are_means_over_seeds(results):
    curves = compression_curves(results, ('split', 'unsplit'),
                                'springs_charges', 'fnri')
    assert list(curves) == [
        'trained with the split; edges 91% right',
        'trained without the split; edges 26% right'
    ]
    lines = curves['trained without the split; edges 26% right']
    assert lines['frames seen'] == pytest.approx({h: 1. * h for h in HORIZONS})
    assert lines['frames that follow'] == pytest.approx(
        {h: 8. * h
         for h in HORIZONS})
    assert lines['static, frames seen'][1] == pytest.approx(100)
    assert compression_curves(results, ('split', 'unsplit'), 'springs_charges',
                              'nri') == {}
