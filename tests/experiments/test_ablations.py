import importlib

import pytest
import torch

from pyg_fnri.experiments.ablations import (
    ABLATIONS,
    DISCOVERY,
    DISENTANGLE,
    REFINEMENT,
    RELAXATION,
    SAMPLING,
    Method,
)
from pyg_fnri.inference import AnnealingStep
from pyg_fnri.laws import EM_ANNEALING

discovery, disentangle, refinement, relaxation, sampling = map(
    importlib.import_module,
    (DISCOVERY, DISENTANGLE, REFINEMENT, RELAXATION, SAMPLING))


def parts():
    """All that can be taken out."""
    return (discovery.ANNEALING, discovery.disentangle, disentangle.SCREENING,
            disentangle.REANNEALING, refinement.WIDENING, refinement.fit_errors,
            relaxation.MAX_ENTRIES, sampling.ANNEALING, sampling.fit_errors)


def test_everything_is_the_library_as_it_is():
    before = parts()
    assert Method().stages(EM_ANNEALING) == EM_ANNEALING
    with ABLATIONS['everything'].in_place():
        assert parts() == before


def test_each_ablation_takes_out_one_part():
    everything = Method()
    for name, method in ABLATIONS.items():
        differing = [
            key for key in Method.__dataclass_fields__
            if getattr(method, key) != getattr(everything, key)
        ]
        count = 0 if name == 'everything' else 1 + (not method.heard)
        assert len(differing) == count, name
    assert len(set(ABLATIONS.values())) == len(ABLATIONS)


@pytest.mark.parametrize('method', ABLATIONS.values(), ids=ABLATIONS)
def test_the_library_is_put_back(method):
    before = parts()
    with pytest.raises(RuntimeError, match='broken'):
        with method.in_place():
            raise RuntimeError('broken')
    assert parts() == before


def test_what_becomes_of_an_annealing():
    stages = AnnealingStep(0.3,
                           1.0), AnnealingStep(0.1,
                                               0.5), AnnealingStep(0.002, 0.1)
    flat = Method(annealed=False).stages(stages)
    assert flat == (AnnealingStep(0.002, 1.0), AnnealingStep(0.002, 0.5),
                    AnnealingStep(0.002, 0.1))
    without_prior = Method(heard=False).stages(stages)
    assert without_prior == (AnnealingStep(0.3, 0.0), AnnealingStep(0.1, 0.0),
                             AnnealingStep(0.002, 0.0))
    assert Method(num_stages=1).stages(stages) == stages[-1:]
    gaussian = Method(robust=False).stages(stages)
    assert len(gaussian) == 3 and {s.prior_weight for s in gaussian} == {0.0}


def test_gaussian_costs_are_squares():
    errors = torch.tensor([[[1.0]], [[10.0]], [[100.0]], [[1000.0]]])
    stage, = set(Method(robust=False).stages(EM_ANNEALING))
    cost = stage.cost(errors)
    torch.testing.assert_close(cost / cost[0],
                               errors.flatten().square(), rtol=0.01, atol=0)


def test_parts_are_out_while_it_lasts():
    with Method(disentangled=False).in_place():
        # It leaves laws and graphs alone, whatever they are.
        assert discovery.disentangle(None, None) is None
    with Method(annealed=False).in_place():
        for stages in (discovery.ANNEALING, disentangle.REANNEALING,
                       sampling.ANNEALING):
            assert len({stage.tolerance for stage in stages}) == 1
        assert set(refinement.WIDENING) == {1.0}
    with Method(robust=False).in_place():
        assert disentangle.SCREENING.tolerance > 1e6
        errors = torch.randn(50, 20, 2) * torch.tensor([1.0, 3.0])
        errors[0] = 100.0  # Robust likelihoods would look through it.
        fitted = refinement.fit_errors(errors, 0.1)
        assert fitted.scale[0] > 10 and min(fitted.degrees) > 1e3
    with Method(relaxed=False).in_place():
        assert relaxation.MAX_ENTRIES == 0
