"""How laws and graphs are found from nothing, and with what taken out."""
import importlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Optional

from torch import Tensor

from pyg_fnri.inference import AnnealingStep
from pyg_fnri.inference.likelihood import StudentErrors, without_prior

#: Errors, in units of typical changes by forces, are far below its root, also
#: in close encounters: there log(1 + e^2 / d^2) is a parabola.
GAUSSIAN_TOLERANCE = 1e8

#: Where the parts are that can be taken out.
DISCOVERY = 'pyg_fnri.laws.discovery'
DISENTANGLE = 'pyg_fnri.laws.disentangle'
NOISE = 'pyg_fnri.inference.noise'
REFINEMENT = 'pyg_fnri.inference.refine'
RELAXATION = 'pyg_fnri.inference.relaxation'
SAMPLING = REFINEMENT


@dataclass(frozen=True)
class Method:
    """:func:`~pyg_fnri.laws.discover_force_laws`, then
    :func:`~pyg_fnri.inference.refine`, with what is not taken out.

    Args:
        undirected: Whether both directions of a pair are one choice.
        robust: Whether the likelihood is robust, rather than Gaussian.
        annealed: Whether tolerances get smaller, rather than being the last
            one from the start; in fitting laws, none is below the noise, which
            at the start is all that moves.
        disentangled: Whether entangled laws are disentangled.
        relaxed: Whether interactions of any strength are made discrete,
            rather than changing one pair at a time from random graphs.
        num_restarts: How often at the most a system is searched anew in
            refinement.
        trained: Whether the encoder has been trained.
        heard: Whether the encoder's word weighs anything once a search has
            started from it.
        num_stages: Only the last so many stages of each annealing, for tests
            that everything works; all of them by default.
    """
    undirected: bool = True
    robust: bool = True
    annealed: bool = True
    disentangled: bool = True
    relaxed: bool = True
    num_restarts: int = 24
    trained: bool = False
    heard: bool = True
    num_stages: Optional[int] = None

    def stages(self,
               stages: Sequence[AnnealingStep]) -> tuple[AnnealingStep, ...]:
        """What becomes of an annealing."""
        last = stages[-1]
        if self.num_stages is not None:
            stages = stages[-self.num_stages:]
        if not self.annealed:
            stages = [replace(s, tolerance=last.tolerance) for s in stages]
        if not self.robust:
            # The encoder's word would outweigh what little such errors cost.
            stages = [AnnealingStep(GAUSSIAN_TOLERANCE, 0.0)] * len(stages)
        if not self.heard:
            stages = without_prior(stages)
        return tuple(stages)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """While it lasts, the library goes by this method where it takes no
        argument for it: nobody but an ablation would want one."""
        discovery, disentangle, noise, refinement, relaxation, sampling = map(
            importlib.import_module,
            (DISCOVERY, DISENTANGLE, NOISE, REFINEMENT, RELAXATION, SAMPLING))
        widening = refinement.WIDENING[-(self.num_stages or 100):]
        if not self.annealed:
            widening = widening[-1:] * len(widening)
        parts: list[tuple[Any, str, Any]] = [
            (refinement, 'WIDENING', widening),
            (discovery, 'ANNEALING', self.stages(discovery.ANNEALING)),
            (sampling, 'ANNEALING', self.stages(sampling.ANNEALING)),
            (disentangle, 'REANNEALING', self.stages(disentangle.REANNEALING)),
        ]
        if not self.robust:
            parts += [
                (disentangle, 'SCREENING',
                 AnnealingStep(GAUSSIAN_TOLERANCE, 0.0)),
                (refinement, 'fit_errors', _fit_gaussian),
                (sampling, 'fit_errors', _fit_gaussian),
                (noise, 'bounded', _leave_large),
            ]
        if not self.relaxed:
            parts.append((relaxation, 'MAX_ENTRIES', 0))  # All are swept.
        if not self.disentangled:
            parts.append((discovery, 'disentangle', _leave))
        with ExitStack() as stack:
            for part in parts:
                stack.enter_context(_replaced(*part))
            yield


#: Each with one thing taken out, or put in; `everything` is the method as it
#: is, with an encoder that has not been trained.
ABLATIONS: dict[str, Method] = {
    'everything': Method(),
    'directions not tied': Method(undirected=False),
    'Gaussian likelihood': Method(robust=False),
    'not annealed': Method(annealed=False),
    'not disentangled': Method(disentangled=False),
    'not relaxed': Method(relaxed=False),
    'no restarts of single systems': Method(num_restarts=0),
    'trained encoder': Method(trained=True),
    'trained encoder, a start only': Method(trained=True, heard=False),
}


def _leave(*args: Any, **kwargs: Any) -> None:
    """In the place of :func:`~pyg_fnri.laws.disentangle.disentangle`."""


def _leave_large(errors: Tensor) -> Tensor:
    """In the place of :func:`~pyg_fnri.inference.likelihood.bounded`."""
    return errors


def _fit_gaussian(errors: Tensor, prior_weight: float) -> StudentErrors:
    """In the place of :func:`~pyg_fnri.inference.likelihood.fit_errors`."""
    valid = (errors != 0).any(-1)
    scale = errors[valid].std(0).clamp(min=1e-6)
    num_features = scale.numel()
    return StudentErrors((1e6, ) * num_features, tuple(scale.tolist()),
                         (1.0, ) * num_features, prior_weight)


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
