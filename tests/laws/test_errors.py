import copy

import torch
from known_laws import LAWS, second_order

from pyg_fnri.inference import AnnealingStep
from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.laws import law_covariance
from pyg_fnri.laws.errors import NUM_GROUPS, groups_of, jackknife
from pyg_fnri.laws.fit import fit_laws, fit_scale
from pyg_fnri.nn import ForceLaw, ForceLawDecoder, StandardScaling

SQUARES = AnnealingStep(1e6, 0.0)  # Hardly robust.


def test_parameters_move_as_if_a_group_were_left_out():
    system, frame = torch.arange(30) % 4, torch.tensor([5, 0, 9, 2])
    group = groups_of(system, frame)
    # Few systems are cut into windows of successive frames.
    assert group.size() == (4, 30) and group.unique().numel() == 16
    rows = list(torch.randn(4, 60, 4).double())
    valid = torch.rand(4, 30, 1) < 0.9
    penalty = 1e-9 * torch.eye(3).double()

    def solve(inside):
        kept = torch.cat([
            row.view(30, 2, 4)[mask.squeeze(-1) & own].flatten(0, 1)
            for row, mask, own in zip(rows, valid, inside)
        ])
        return torch.linalg.lstsq(kept[:, :3], kept[:, 3:]).solution[:, 0]

    fitted = solve(torch.ones_like(group, dtype=torch.bool))
    moved = jackknife(rows, valid, fitted, SQUARES, penalty, group)
    others = torch.stack([solve(group != g) for g in group.unique()])
    expected = others - others.mean(0)
    assert moved.size() == (NUM_GROUPS, 3)
    torch.testing.assert_close(moved[group.unique()],
                               expected * (15 / 16)**0.5, rtol=1e-3, atol=1e-6)
    assert moved.ne(0).any(-1).sum() == 16  # Other groups are empty.
    # One group does not tell.
    assert not jackknife(rows, valid, fitted, SQUARES, penalty,
                         0 * group).numel()
    # Errors of successive transitions of a long recording are not independent.
    group = groups_of(torch.zeros(30, dtype=torch.long), torch.arange(200))
    assert group.unique().numel() == 50


def test_errors_are_as_large_as_told(batch):
    choices = find_choices(batch.edge_index, undirected=True)
    truth = batch.edge_label[choices.edge].float()
    noise = torch.tensor([1e-3, 1e-3, 0.02, 0.02])
    x = batch.x + noise * torch.randn_like(batch.x)
    transitions = second_order([x], choices, 0.1, 5.0)
    layer = ForceLawDecoder(ForceLaw(2), StandardScaling(4), half_width=5.0,
                            terms=['drag'])
    fit_scale(layer, transitions)
    for _ in range(2):
        fit_laws(layer, transitions, truth, AnnealingStep(1.0, 0.0),
                 torch.Generator().manual_seed(0), 48, batch.batch)
    distance = torch.linspace(0.5, 5.0, 30)
    covariance = law_covariance(layer, layer.law, distance)
    true = torch.stack([f(distance) for f in LAWS['fnri']])
    error = (layer.law(distance) - true) / covariance.diagonal(dim1=1,
                                                               dim2=2).sqrt()
    assert 0.5 < error.square().mean().sqrt() < 1.7
    drag = layer.coefficients['drag'] / layer.coefficient_errors()['drag']
    assert drag.abs().max() < 4  # There is none.

    # They are kept, and forgotten if terms change.
    other = ForceLawDecoder(ForceLaw(2), StandardScaling(4), half_width=5.0,
                            terms=['drag'])
    assert not other.coefficient_errors()
    other.load_state_dict(copy.deepcopy(layer.state_dict()))
    assert torch.equal(other.spread, layer.spread)
    other.add_term('turning')
    assert not other.coefficient_errors()
    assert not other.law_spread(other.law).numel()
