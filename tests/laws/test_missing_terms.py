import math

import pytest
import torch
from known_laws import batches, generator
from outside_assumptions import CASES
from torch_geometric.data import Batch
from verdicts import TWO, Kind, plus

from pyg_fnri.data import from_trajectory
from pyg_fnri.inference import refine
from pyg_fnri.inference.paths import GAP
from pyg_fnri.laws import fit_force_laws
from pyg_fnri.laws.fit import LawFit
from pyg_fnri.laws.missing_terms import (find_missing_terms, mean_of_systems,
                                         term_columns)
from pyg_fnri.nn import Term


def missing_from_laws(model, data, edge_type):
    fit = LawFit(model, data)
    channels = model.latent.encode_types(edge_type)[fit.search.choices.edge]
    seen = (fit.transitions.frame < GAP).expand_as(fit.transitions.valid)
    return find_missing_terms(fit, channels.to(data.x), seen,
                              fit.layer.candidates())


def test_shapes_of_laws_by_channel_push_both_ends(make_model):
    """Two particles 2 m apart, along x, under springs: across the line, a unit
    of a law that is constant, linear, inverse pushes them for 0.1 s."""
    x = torch.zeros(2, 3, 4)
    x[1, :, 0] = 2.0
    data = Batch.from_data_list([from_trajectory(x)])
    model = make_model(torch.tensor([[1, 0], [1, 0]]))
    model.decoder.layer.scale.fill_(0.5)
    fit = LawFit(model, data)
    columns = term_columns(fit, fit.evidence(), 'transverse',
                           fit.search.channels, x[..., :2])
    expected = torch.tensor([-1.0, -2.0, -0.5, 0.0, 0.0, 0.0]) * 0.1 / 0.5
    expected = torch.stack([torch.zeros(6), expected])
    for column, sign in zip(columns, (1, -1)):
        torch.testing.assert_close(column, sign * expected.expand(2, 2, 6))


@pytest.mark.parametrize(
    'case, name',
    [('friction', 'drag'),
     pytest.param('magnetic', 'turning', marks=pytest.mark.slow),
     pytest.param('transverse', 'transverse', marks=pytest.mark.slow),
     pytest.param('trap', 'field', marks=pytest.mark.slow),
     pytest.param('masses', 'response', marks=pytest.mark.slow)])
def test_what_is_missing_is_named(make_model, case, name):
    train, val = batches(CASES[case].kind, 16 if name == 'drag' else 32)
    model = make_model(train.edge_label, laws=False, half_width=None)
    fit_force_laws(model, train, generator())
    other = make_model(val.edge_label, half_width=None)
    other.decoder = model.decoder
    edge_type = refine(other, val, num_restarts=0).edge_type
    first, *_ = missing_from_laws(other, val, edge_type)
    assert first.name == name and first.size > 0.04
    assert Term.known[name].what in str(first)


def find_with_true_laws(make_model, kind, unit=1.0):
    _, val = batches(kind, 8)
    data = val.clone()
    data.x, data.y = unit * val.x, unit * val.y
    model = make_model(val.edge_label, half_width=None)
    layer = model.decoder.layer
    true = torch.stack([law(layer.law.knots) for law in TWO])
    layer.law.value.data.copy_(unit * true)
    layer.law.rescale(unit)
    layer.scale *= unit
    return missing_from_laws(model, data, val.edge_label), val


def test_twice_the_friction_is_twice_the_finding_in_any_unit(make_model):
    sizes = []
    kinds = {
        rate: Kind(TWO, plus(lambda now, rate=rate: -rate * now.velocity))
        for rate in (0.05, 0.1)
    }
    for rate, unit in ((0.05, 1.0), (0.1, 1.0), (0.1, 1e-5), (0.1, 1e4)):
        (finding, *_), val = find_with_true_laws(make_model, kinds[rate], unit)
        assert finding.name == 'drag'
        speed = val.y.chunk(2, -1)[1].abs().mean()
        sizes.append(finding.size / speed.item())
        assert sizes[-1] == pytest.approx(0.1 * rate / 0.02, rel=0.1)
    assert sizes[2:] == pytest.approx([sizes[1]] * 2, rel=1e-3)
    for unit in (1.0, 1e-5):
        assert find_with_true_laws(make_model, Kind(TWO), unit)[0] == []


def test_mean_and_its_standard_error():
    mean, error = mean_of_systems(torch.tensor([1.0, 2.0, 3.0, 6.0]))
    assert mean == pytest.approx(3.0)
    assert error == pytest.approx(math.sqrt(14 / 3 / 4))
    with pytest.raises(ValueError, match='two systems'):
        mean_of_systems(torch.ones(1))
