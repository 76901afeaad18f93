import pytest
import torch
from known_laws import generator, share_in_any_order
from torch_geometric.data import Batch

from pyg_fnri.inference import AnnealingStep
from pyg_fnri.laws.disentangle import bases, disentangle, in_basis, nearest
from pyg_fnri.laws.fit import LawFit
from pyg_fnri.nn import CategoricalLatent
from pyg_fnri.nn.latent import all_joint_types

LAST = AnnealingStep(0.002, 0.0)


def test_entangled_laws_are_told_apart(systems, make_model):
    batch = Batch.from_data_list(systems[:32])
    fit = LawFit(make_model(batch.edge_label), batch)
    basis = torch.tensor([[1., 1.], [0., -1.]])
    fit.state = fit.state._replace(laws=basis @ fit.state.laws)
    fit.search.choice = nearest(fit.search.options, basis)[fit.search.choice]
    for tolerance in (0.1, 0.01, 0.002):
        fit.anneal([AnnealingStep(tolerance, 0.0)], generator())
    before = fit.cost(LAST).mean().item()
    wrong = (fit.search.result().edge_type != batch.edge_label).any(-1)
    assert wrong.double().mean() > 0.2
    disentangle(fit, generator())
    assert fit.cost(LAST).mean().item() < 0.3 * before
    # Layers come in any order.
    found = fit.search.result().edge_type
    assert share_in_any_order(found, batch.edge_label) > 0.98


def test_what_is_right_stays(batch, make_model):
    fit = LawFit(make_model(batch.edge_label), batch)
    before, cost = fit.state, fit.cost(LAST).mean().item()
    disentangle(fit, generator(), max_rounds=1)
    assert fit.cost(LAST).mean().item() <= 1.1 * cost
    assert (fit.state.choice == before.choice).double().mean() > 0.99
    knots = fit.layer.law.knots
    near = (knots > 0.3) & (knots < 5)
    assert (fit.state.laws - before.laws)[:, near].abs().max() < 0.05


@pytest.mark.parametrize('sizes, number', [([2, 2], 20), ([2, 2, 2], 55),
                                           ([3], 1), ([3, 2], 38)])
def test_bases_and_the_nearest_options(sizes, number):
    latent = CategoricalLatent(sizes, drop_null=True)
    options = latent.encode_types(all_joint_types(
        latent.num_edge_types)).float()
    found = bases(options)
    eye = torch.eye(options.size(1))
    assert len(found) == number and torch.equal(found[0], eye)
    for basis in found:
        assert basis.det().abs() == pytest.approx(1)
        assert set(basis.flatten().tolist()) <= {-1., 0., 1.}
        assert ((basis != eye).any(-1)).sum() <= 2
        offered = options @ basis
        for option, place in zip(options, nearest(options, basis)):
            distance = (offered - option).norm(dim=-1)
            assert distance[place] == distance.min()
    # In any order but once.
    rows = {frozenset(map(tuple, basis.tolist())) for basis in found}
    assert len(rows) == number


def test_evidence_of_laws_that_are_sums(systems, make_model):
    batch = Batch.from_data_list(systems[:2])
    fit = LawFit(make_model(batch.edge_label), batch)
    basis, evidence = torch.tensor([[1., 1.], [0., -1.]]), fit.evidence()
    found = in_basis(evidence, basis).errors(fit.search.channels)
    assert not torch.equal(found, evidence.errors(fit.search.channels))
    fit.state = fit.state._replace(laws=basis @ fit.state.laws)
    expected = fit.evidence().errors(fit.search.channels)
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-4)
