import numpy as np
import pytest
import torch
from misspecified_batches import batches

from pyg_fnri.experiments.misspecified import (
    Friction,
    Lawful,
    Magnetic,
    Transverse,
    Trap,
    UnequalMasses,
)
from pyg_fnri.inference import refine
from pyg_fnri.laws import fit_force_laws
from pyg_fnri.laws.broken_assumptions import MESSAGES, find_broken_assumptions
from pyg_fnri.laws.missing_terms import TERMS

BROKEN = [
    (Friction(), 'velocity'),
    (Magnetic(), 'turning'),
    (Transverse(), 'transverse'),
    (Trap(), 'field'),
    (UnequalMasses(), 'response'),
]


@pytest.fixture
def find(make_model):
    """Fits laws, starting from true graphs, refines the graphs of other
    systems, and looks at these."""
    def find(train, val):
        model = make_model(train.edge_label, laws=False, half_width=None)
        fit_force_laws(model, train, torch.Generator().manual_seed(0))
        other = make_model(val.edge_label, half_width=None)
        other.decoder = model.decoder
        edge_type = refine(other, val, num_restarts=0).edge_type
        return find_broken_assumptions(other, val, edge_type)

    return find


@pytest.mark.parametrize('system, name', [
    pytest.param(*case, id=case[1], marks=[pytest.mark.slow] * (number > 0))
    for number, case in enumerate(BROKEN)
])
def test_what_is_broken_is_named(find, system, name):
    found = find(*batches(system, 16 if name == 'velocity' else 32))
    assert found[0].name == name
    assert found[0].size > 0.05
    assert MESSAGES[name] in str(found[0])


def test_nothing_is_found_where_laws_hold(find):
    assert find(*batches(Lawful(), 16)) == []


@pytest.mark.slow
def test_noise_is_nothing(find):
    noisy = []
    for batch in batches(Lawful()):
        batch = batch.clone()
        for key in 'xy':
            noise = torch.randn_like(batch[key]) * batch[key].std((0, 1))
            batch[key] = batch[key] + 0.01 * noise
        noisy.append(batch)
    assert find(*noisy) == []


@pytest.mark.slow
def test_twice_the_friction_is_twice_the_finding(make_model):
    """With the true laws and graphs, in units of the same force."""
    sizes = []
    for rate in (0.05, 0.1):
        _, val = batches(Friction(rate=rate), 16)
        model = make_model(val.edge_label, half_width=None)
        _set_true_laws(model, Friction())
        finding, *_ = find_broken_assumptions(model, val, val.edge_label)
        assert finding.name == 'velocity'
        speed = val.y.chunk(2, -1)[1].abs().mean()
        sizes.append(finding.size / speed.item())
        assert sizes[-1] == pytest.approx(0.1 * rate / 0.02, rel=0.1)
    assert sizes[1] == pytest.approx(2 * sizes[0], rel=0.1)


@pytest.mark.slow
def test_unit_does_not_matter(make_model):
    """Of friction and of its lack, with the true laws and graphs."""
    for system in (Friction(), Lawful()):
        _, val = batches(system, 16)
        found = []
        for unit in (1.0, 1e-5, 1e4):
            data = val.clone()
            data.x, data.y = unit * val.x, unit * val.y
            model = make_model(val.edge_label, half_width=None)
            _set_true_laws(model, system)
            layer = model.decoder.layer
            layer.scale *= unit
            layer.law.value.data *= unit
            layer.law.rescale(unit)
            found.append(find_broken_assumptions(model, data, val.edge_label))
        names = [[finding.name for finding in part] for part in found]
        assert names == [names[0]] * 3
        expected = ['velocity'] if system == Friction() else []
        assert names[0][:1] == expected
        for findings in zip(*found):
            for part in (lambda f: f.size, lambda f: f.gain.mean):
                values = [part(finding) for finding in findings]
                assert values == pytest.approx([values[0]] * 3, rel=1e-3)


@pytest.mark.slow
def test_labels_are_not_looked_at(make_model):
    _, val = batches(Friction())
    model = make_model(val.edge_label, half_width=None)
    other = val.clone()
    other.edge_label = 1 - val.edge_label
    first, second = (find_broken_assumptions(model, data, val.edge_label)
                     for data in (val, other))
    assert first == second != []


def test_every_term_has_words():
    assert TERMS.keys() == MESSAGES.keys()


def test_any_other_decoder_has_no_laws(batch, make_model):
    model = make_model(batch.edge_label, laws=None)
    with pytest.raises(TypeError, match='is a MultiplexConv'):
        find_broken_assumptions(model, batch, batch.edge_label)


def test_one_system_is_too_few(systems, make_model):
    data = systems[0]
    model = make_model(data.edge_label)
    with pytest.raises(ValueError, match='at least two systems'):
        find_broken_assumptions(model, data, data.edge_label)


def _set_true_laws(model, system):
    law = model.decoder.layer.law
    table = [force.magnitude(law.knots.numpy()) for force in system.forces]
    law.value.data.copy_(torch.from_numpy(np.stack(table)))
