import itertools
from types import SimpleNamespace

import torch
from known_laws import assert_changes_agree

from pyg_fnri.inference import noise
from pyg_fnri.inference.noise import DecorrelatedEvidence, autocorrelation


def steps(num_series, num_steps, noise=0.0, forces=0.0):
    """Errors by noise in frames, and by what differs from step to step."""
    frames = torch.randn(num_series, num_steps + 1, 2)
    return (noise * frames.diff(dim=1) +
            forces * torch.randn(num_series, num_steps, 2))


def seen(errors, apart=1):
    """Transitions in which all that is not zero says something."""
    return SimpleNamespace(valid=errors.any(-1),
                           frame=apart * torch.arange(errors.size(1)))


def test_correlation_of_successive_errors():
    position = torch.randn(400, 34, 2)
    velocity = (position[:, 2:] - position[:, :-2]) / 2
    for errors, expected in [(steps(400, 30, 1, 0), [-1 / 2, 0, 0]),
                             (steps(400, 30, 1, 1), [-1 / 3, 0, 0]),
                             (steps(400, 30, 0, 1), [0., 0., 0.]),
                             (velocity.diff(dim=1), [-0.25, -0.5, 0.25])]:
        found = autocorrelation(errors, seen(errors))
        expected = torch.tensor(expected).view(3, 1).expand(3, 2)
        torch.testing.assert_close(found, expected, atol=0.03, rtol=0)
    # Rare errors, hundreds of times as large, hide nothing.
    errors = steps(400, 30, 1)
    errors[::7, ::11] *= 300
    assert (autocorrelation(errors, seen(errors))[0] < -0.3).all()
    # Walls say nothing, and steps of different trajectories are no neighbours.
    errors = steps(50, 30, 1) * (torch.rand(50, 30, 1) < 0.8)
    assert (autocorrelation(errors, seen(errors))[0] < -0.4).all()
    assert not autocorrelation(errors, seen(errors, apart=1_000)).any()
    assert not autocorrelation(0 * errors, seen(errors)).any()


def test_equals_the_inverse_of_a_dense_factor(small_problem):
    search, evidence = small_problem
    correlation = torch.tensor([[-0.25, -0.3, 0.1, -0.1], [-0.4, 0.1, 0.2, 0.3],
                                [0.2, 0.0, 0.1, -0.1]])
    channels = torch.randn(search.channels.size())
    plain = evidence.errors(channels).double()
    band = torch.cat([torch.ones(1, 4), correlation])
    made = DecorrelatedEvidence(evidence, band)
    found = made.errors(channels)
    valid = evidence.transitions.valid
    for n, f in itertools.product(range(len(valid)), range(4)):
        covariance = torch.eye(7).double()
        for s, t in itertools.product(range(7), repeat=2):
            if 0 < abs(s - t) <= 3 and valid[n, s] and valid[n, t]:
                covariance[s, t] = correlation[abs(s - t) - 1, f]
        factor = torch.linalg.cholesky(covariance)
        expected = torch.linalg.solve_triangular(factor, plain[n, :, f, None],
                                                 upper=False).squeeze(1)
        torch.testing.assert_close(found[n, :, f], expected.float(), atol=1e-3,
                                   rtol=1e-3)
    assert not found[~valid].any()
    assert_changes_agree(made, search.choices, search.options)


def test_what_many_steps_add_up_to_is_never_exact():
    # Noise alone, and less than its differences leave: no such process.
    for errors in (steps(400, 30, 1), torch.randn(20, 9, 2),
                   (-1.0)**torch.arange(9).view(1, 9, 1).expand(20, 9, 2)):
        found = autocorrelation(errors, seen(errors)).double()
        for after in found.t():
            covariance = torch.eye(100).double()
            for lag, value in enumerate(after, 1):
                band = value.expand(100 - lag)
                covariance += band.diag(lag) + band.diag(-lag)
            least = torch.linalg.eigvalsh(covariance)[0]
            assert least > 0.99 * noise.LEAST_VARIANCE


def test_errors_alone_are_made_independent_and_are_as_likely_as_said():
    errors = steps(400, 30, 1, 0.5)
    found, log_scale = noise.independent_errors(errors, seen(errors))
    assert autocorrelation(found, seen(found)).abs().max() < 0.05
    normal = torch.distributions.Normal(0, errors.std())
    assert (
        log_scale -
        normal.log_prob(found)).mean() < -normal.log_prob(errors).mean() - 0.05
    walk = steps(400, 30, 0, 1)
    assert noise.independent_errors(walk, seen(walk))[0] is walk
