import torch
from known_laws import assert_changes_agree, second_order
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.inference import impulses
from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.nn import Central, ForceLaw, ForceLawDecoder, StandardScaling

INTERVAL = 0.1
SCALE = torch.tensor([1e-3, 1e-3, 0.02, 0.02])


def law(distance):
    """A spring and a charge at once, in m/s^2."""
    return 0.2 / distance**2 - 0.1 * distance


def fly_by(num_frames=6, num_fine=100):
    """Two particles that pass each other at 0.35 m: frames, and the
    impulse and the shift of the first one in each interval, by small steps."""
    position = torch.tensor([[-0.6, 0.2], [0.5, -0.2]]).double()
    velocity = torch.tensor([[1.5, 0.1], [-1.0, 0.3]]).double()
    h = INTERVAL / num_fine

    def force():
        offset = position[0] - position[1]
        return law(offset.norm()) * offset / offset.norm()

    frames, effects = [torch.cat([position, velocity], -1)], []
    for _ in range(num_frames - 1):
        impulse, shift = torch.zeros(2).double(), torch.zeros(2).double()
        for k in range(num_fine):
            f = force()
            velocity = velocity + h / 2 * torch.stack([f, -f])
            position = position + h * velocity
            g = force()
            velocity = velocity + h / 2 * torch.stack([g, -g])
            impulse += h * (f + g) / 2
            shift += h * ((num_fine - k) * f + (num_fine - k - 1) * g) / 2 * h
        frames.append(torch.cat([position, velocity], -1))
        effects.append(torch.cat([shift, impulse]))
    return torch.stack(frames, 1), torch.stack(effects)


def make_transitions(x, edge_index, undirected=True, **kwargs):
    choices = find_choices(edge_index, undirected)
    return second_order([x], choices, INTERVAL, **kwargs)


def make_layer(num_channels=3):
    layer = ForceLawDecoder(ForceLaw(num_channels), StandardScaling(4))
    torch.nn.init.normal_(layer.law.value, std=0.3)
    layer.scale.copy_(SCALE)
    return layer


def test_impulse_and_shift_are_those_along_the_path():
    x, effects = fly_by()
    transitions = make_transitions(x, fully_connected(2))
    first = transitions.choices.receiver == 0
    sign = torch.where(first, 1.0, -1.0).double().view(1, 1, 1)
    out = sign * transitions.integrate(Central(), law)
    # The cubic costs less than a thousandth, and the quadrature is no worse.
    size = effects.abs().max(0).values
    assert ((out[0] - effects).abs() < 1e-3 * size).all()
    assert size[:2].max() > 0.005 and size[2:].max() > 0.1
    # They are all that happens to the two particles.
    total = transitions.sum_at_particles(sign * out)
    assert ((transitions.change - total).abs() < 1e-3 * size).all()


def test_nothing_is_predicted_across_a_gap():
    x, y = torch.randn(3, 4, 4), torch.randn(3, 6, 4)
    choices = find_choices(fully_connected(3), True)
    both, *apart = (second_order(frames, choices, INTERVAL)
                    for frames in ([x, y], [x], [y]))
    for name in ('change', 'valid', 'distance', '_central'):
        parts = [getattr(part, name) for part in apart]
        assert torch.equal(getattr(both, name), torch.cat(parts, 1)), name


def test_what_may_have_met_a_wall_says_nothing():
    x = torch.zeros(2, 3, 4)
    x[0, 0] = torch.tensor([0.85, 0.0, 1.0, 0.0])  # To 0.95 in an interval,
    x[0, 1] = torch.tensor([0.95, 0.0, 1.0, 0.0])  # and then beyond.
    x[0, 2] = torch.tensor([0.95, 0.0, -1.0, 0.0])
    x[1, :, 1], x[1, 2, 3] = -0.5, 6.0  # The last could come from beyond.
    edges = fully_connected(2)
    assert make_transitions(x, edges).valid.all()
    transitions = make_transitions(x, edges, half_width=1.06)
    assert transitions.valid.tolist() == [[True, True], [True, False]]
    transitions = make_transitions(x, edges, half_width=1.0)
    assert transitions.valid.tolist() == [[False, False], [True, False]]
    errors = ImpulseEvidence(transitions,
                             make_layer(1)).errors(torch.ones(1, 1))
    assert torch.equal(errors.any(-1), transitions.valid)


def test_changes_agree_with_errors_anew(small_problem):
    search, evidence = small_problem
    assert_changes_agree(evidence, search.choices, search.options)


def test_laws_are_looked_up_in_parts(systems, monkeypatch):
    batch, layer = Batch.from_data_list(systems[:2]), make_layer()
    transitions = make_transitions(batch.x, batch.edge_index)
    expected = transitions.integrate(Central(), layer.law) / SCALE
    monkeypatch.setattr(impulses, 'NUM_DISTANCES', 1)
    found = ImpulseEvidence(transitions, layer).effect
    assert torch.equal(found, expected.detach().transpose(0, 1))


def test_noise_of_positions_does_not_hide_velocities():
    """Over an interval, it would be three times as large as they are."""
    x, _ = fly_by(60)
    noise = torch.zeros_like(x)
    noise[..., :2] = 0.3 * torch.randn(*x.shape[:2], 2)
    clean, noisy = (make_transitions(seen, fully_connected(2)).path
                    for seen in (x, x + noise))
    error = noisy.velocity - clean.velocity
    assert error.square().mean().sqrt() < 0.3
    # Where there is none, it is that along the cubic.
    t, start, stop = 0.5, *x[:, :2].unbind(1)
    mean = 1.5 * (stop - start)[:, :2] / INTERVAL
    torch.testing.assert_close(clean.velocity[:, 0, 1],
                               mean - t * t * (start + stop)[:, 2:])
