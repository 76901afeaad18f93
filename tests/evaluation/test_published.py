import pytest

from pyg_fnri.datasets.particle_systems import FORCES
from pyg_fnri.evaluation.published import (
    ACCURACY,
    EDGE_TYPES,
    HORIZONS,
    PARAMETERS,
    ROLLOUT_MSE,
    published,
)
from pyg_fnri.nn import FNRI, NRI, SFNRI

I_C, I_C_F = 'springs_charges', 'springs_charges_fsprings'


@pytest.mark.parametrize('dataset, row, values', [
    (I_C, 'random', (25., 50., 50.)),
    (I_C, 'nri (learned)', (89.1, 97.9, 91.0)),
    (I_C, 'fnri (learned)', (94.0, 98.0, 95.8)),
    (I_C, 'sfnri (supervised)', (98.0, 98.3, 99.6)),
    (I_C_F, 'fnri (learned)', (63.3, 86.9, 97.7, 69.2)),
    (I_C_F, 'sfnri (learned)', (45.1, 90.0, 98.2, 52.4)),
    (I_C_F, 'nri (supervised)', (80.9, 92.4, 99.0, 84.4)),
])
def test_accuracies_are_those_of_table_1(dataset, row, values):
    assert published(ACCURACY, dataset, row) == values


@pytest.mark.parametrize('dataset, row, values', [
    (I_C, 'static', (19.4, 283., 783.)),
    (I_C, 'fnri (learned)', (0.80, 3.54, 9.93)),
    (I_C, 'sfnri (learned)', (1.03, 3.32, 9.68)),
    (I_C, 'nri (true graph)', (0.85, 1.59, 3.20)),
    (I_C_F, 'static', (12.8, 274., 782.)),
    (I_C_F, 'nri (learned)', (0.95, 8.67, 29.1)),
    (I_C_F, 'sfnri (true graph)', (0.56, 0.89, 2.28)),
])
def test_errors_are_those_of_table_2(dataset, row, values):
    assert published(ROLLOUT_MSE, dataset, row) == values


@pytest.mark.parametrize('dataset', FORCES)
def test_every_model_has_its_rows(dataset):
    models = ('nri', 'fnri', 'sfnri')
    rows = [
        f'{model} ({kind})' for kind in ('learned', 'supervised')
        for model in models
    ]
    assert list(ACCURACY[dataset]) == ['random', *rows]
    rows = [
        f'{model} ({kind})' for kind in ('learned', 'true graph')
        for model in models
    ]
    assert list(ROLLOUT_MSE[dataset]) == ['static', *rows]


@pytest.mark.parametrize('dataset', FORCES)
def test_every_row_has_a_number_for_each_column(dataset):
    for combined, *layers in ACCURACY[dataset].values():
        assert len(layers) == len(FORCES[dataset])
        assert 0 < combined <= min(layers) <= 100
    for errors in ROLLOUT_MSE[dataset].values():
        assert len(errors) == len(HORIZONS)
        assert list(errors) == sorted(errors)  # Longer rollouts err more.


def test_what_is_not_in_the_paper_is_none():
    assert published(ACCURACY, 'custom', 'random') is None
    assert published(ROLLOUT_MSE, I_C, 'fnri (supervised)') is None


@pytest.mark.parametrize('dataset', FORCES)
@pytest.mark.parametrize('name, model', [('nri', NRI), ('fnri', FNRI),
                                         ('sfnri', SFNRI)])
def test_parameters_of_table_3_are_those_of_our_models(dataset, name, model):
    model = model(4, 49, [2] * len(FORCES[dataset]))
    assert PARAMETERS[dataset][name] == tuple(
        sum(weight.numel() for weight in part.parameters())
        for part in (model.encoder, model.decoder))
    if name != 'sfnri':
        assert list(EDGE_TYPES[dataset][name]) == model.latent.num_edge_types
    assert sum(EDGE_TYPES[dataset][name]) == model.latent.num_logits
