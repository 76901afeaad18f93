from dataclasses import replace

import outside_assumptions as outside
import pytest
import torch
from verdicts import TWO, Kind, plus

from pyg_fnri.inference import find_motions, refine
from pyg_fnri.laws import discover_force_laws
from pyg_fnri.training import Config, build_module

SINE = outside.CASES['sine'].kind


def discover(kind, num_systems=24, noise=0.0, **kwargs):
    """Laws of a kind of systems from scratch, and what was tried."""
    data = kind.systems(num_systems, 0, noise)
    motion, = find_motions(data, kind.interval)
    laws = dict(interval=kind.interval, half_width=kind.box, **motion)
    config = Config(data.x.size(-1), 49, [2] * len(kind.laws), recipe='laws',
                    laws=laws)
    module = build_module(config).eval()
    module.fit_units(data.x)
    found = discover_force_laws(module.model, data,
                                torch.Generator().manual_seed(0), **kwargs)
    module.record_terms()
    return module, data, found.steps


@pytest.mark.slow
def test_what_systems_have_besides_central_laws_stays():
    module, data, steps = discover(Kind(TWO[:1], plus(outside.drag)), 16,
                                   max_starts=2, terms=('drag', 'field'))
    drag, = steps
    assert (drag.term, drag.kept) == ('drag', True) and drag.size > 0.1
    layer = module.model.decoder.layer
    assert layer.coefficients['drag'].tolist() == pytest.approx([-0.2, 0, 0],
                                                                abs=0.005)
    found = refine(module.model, data).edge_type
    assert torch.equal(found, data.edge_label)


@pytest.mark.slow
def test_tables_get_finer_where_laws_bend():
    module, data, steps = discover(SINE, 40, terms=('drag', 'finer-tables'))
    assert steps[0].term == 'finer-tables' and steps[0].kept
    layer = module.model.decoder.layer
    assert layer.law.num_knots == module.config.laws['num_knots'] > 26
    distance = torch.linspace(0.5, 4.0, 40)
    torch.testing.assert_close(
        layer.law(distance)[0],
        torch.from_numpy(outside.sine(distance.numpy())), atol=0.02, rtol=0)
    # Checkpoints know of it.
    again = module.config.build_model().decoder
    again.load_state_dict(module.model.decoder.state_dict())


@pytest.mark.slow
def test_noise_hides_no_term():
    module, _, steps = discover(Kind(TWO, plus(outside.drag)), 100, noise=0.02)
    assert [step.term for step in steps if step.kept] == ['drag']
    found = module.model.decoder.layer.coefficients['drag'].tolist()
    assert found == pytest.approx([-0.2, 0, 0], abs=0.05)


@pytest.mark.slow
def test_linear_networks_are_found_to_be_directed():
    kind = outside.CASES['linear_15'].kind
    module, data, _ = discover(replace(kind, num_particles=5), 20)
    layer = module.model.decoder.layer
    assert layer.terms == ['field', 'input']
    assert not module.model.latent.undirected
    assert layer.coefficients['field'][1].item() == pytest.approx(-1, abs=0.02)
    state = torch.linspace(0.2, 1.5, 9)
    torch.testing.assert_close(layer.laws['input'](state)[0], 0.4 * state,
                               atol=0.02, rtol=0)
    found = refine(module.model, data).edge_type
    assert (found == data.edge_label).double().mean() > 0.97


@pytest.mark.slow
def test_gravity_is_told_from_other_forces_of_known_masses():
    module, data, steps = discover(outside.CASES['gravity'].kind, 40)
    assert [(s.term, s.kept) for s in steps] == [('gravity', True)]
    distance = torch.linspace(0.3, 2.0, 20)
    torch.testing.assert_close(
        module.model.decoder.layer.law(distance)[0],
        torch.from_numpy(outside.soft(distance.numpy())), atol=0.02, rtol=0.02)
    found = refine(module.model, data)
    assert torch.equal(found.edge_type, data.edge_label)
    # Predictions know of it.
    out = module.model.predict_trajectory(data, 5, found.edge_type)
    left = (out - data.y[:, :5]).abs().mean()
    assert left < 0.01 * (out - data.x[:, -1:]).abs().mean()
