import pytest

from pyg_fnri.datasets.particle_systems import FORCES
from pyg_fnri.evaluation.published import (ACCURACY, EDGE_TYPES, PARAMETERS,
                                           ROLLOUT_MSE)
from pyg_fnri.nn import FNRI, NRI, SFNRI

I_C, I_C_F = 'springs_charges', 'springs_charges_fsprings'


def test_numbers_are_those_of_tables_1_and_2():
    assert ACCURACY[I_C]['nri (learned)'] == (89.1, 97.9, 91.0)
    assert ACCURACY[I_C_F]['fnri (learned)'] == (63.3, 86.9, 97.7, 69.2)
    assert ROLLOUT_MSE[I_C]['static'] == (19.4, 283., 783.)
    assert ROLLOUT_MSE[I_C_F]['sfnri (true graph)'] == (0.56, 0.89, 2.28)


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
