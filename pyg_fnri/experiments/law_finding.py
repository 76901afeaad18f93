"""One point of a study: laws found from nothing, graphs inferred by them."""
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.datasets.named_systems import SYSTEMS
from pyg_fnri.evaluation import law_curves
from pyg_fnri.experiments.robustness import Condition, Study
from pyg_fnri.inference import Refined, refine, sample_posterior
from pyg_fnri.inference.refine import ANNEALING
from pyg_fnri.laws import (
    EM_ANNEALING,
    Discovery,
    Progress,
    discover_force_laws,
)
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import (
    EdgeAccuracy,
    EdgeAccuracyResult,
    expected_calibration_error,
    make_posterior,
)
from pyg_fnri.nn import RelationalAutoEncoder
from pyg_fnri.training import Config, RelationalInference, build_module
from pyg_fnri.transforms import SplitTrajectory

#: Springs and charges, I+C.
NAME = 'springs_charges'
TYPES = (2, 2)
#: Frames that are simulated: the first and the last of them are looked at.
NUM_FRAMES = 99


class FoundLaws(NamedTuple):
    """Laws, and how they were found.

    Args:
        model: Holds them.
        noise: Standard deviation of the noise on each feature, :obj:`[F]`.
        discovery: How they were found.
        accuracy: Of the training systems' graphs.
        law_error: Relative error of each force's law; None where one has
            none.
        seconds: Of the processor that it took.
    """
    model: RelationalAutoEncoder
    noise: Tensor
    discovery: Discovery
    accuracy: EdgeAccuracyResult
    law_error: Optional[dict[str, float]]
    seconds: float


class LawFinder:
    """Measures points of a study, and keeps the laws found last, as several
    points have them in common.

    Args:
        study: How far it goes.
        root: Where data sets are kept.
        trained: A trained encoder, for the ablations that need one.
    """
    def __init__(self, study: Study, root: str,
                 trained: Optional[RelationalInference] = None) -> None:
        self.study = study
        self.root = root
        self.trained = trained
        self._found: Optional[tuple[tuple[Condition, int], FoundLaws]] = None

    def measure(self, condition: Condition, seed: int,
                sampled: bool) -> dict[str, Any]:
        """Figures of one point; where the library finds that there is nothing
        to find, its reason, under `failed`.

        Args:
            condition: What is varied.
            seed: Of systems, weights and starts.
            sampled: Whether the posterior is sampled too.
        """
        try:
            found = self.find(condition, seed)
            test = add_noise(self._batch(condition, seed, 'test'), found.noise,
                             torch.Generator().manual_seed(seed + 1))
            figures = self._infer(found.model, test, condition, sampled)
        except ValueError as error:
            return {'failed': str(error)}
        return {
            'confirmed': found.discovery.confirmed,
            'num_starts': len(found.discovery.starts),
            'law_error': found.law_error,
            'noise': found.noise.tolist(),
            'training_accuracy': found.accuracy.combined.item(),
            'discovery_seconds': found.seconds,
            **figures,
        }

    def find(self, condition: Condition, seed: int) -> FoundLaws:
        """Laws from the training systems.

        Raises:
            ValueError: If there is nothing to find.
        """
        key = self.study.laws_of(condition), seed
        if self._found is None or self._found[0] != key:
            self._found = key, self._find(*key)
        return self._found[1]

    def _find(self, condition: Condition, seed: int) -> FoundLaws:
        clean = self._batch(condition, seed, 'train')
        noise = condition.noise_percent / 100 * clean.x.flatten(0, 1).std(0)
        generator = torch.Generator().manual_seed(seed)
        data = add_noise(clean, noise, generator)
        model = self._model(condition, seed, data.x)
        accuracy = EdgeAccuracy(TYPES)

        def compare(progress: Progress) -> None:
            accuracy.reset()
            accuracy.update(progress.edge_type, data.edge_label)

        method, start = condition.method, time.process_time()
        with method.in_place():
            discovery = discover_force_laws(model, data, generator,
                                            method.stages(EM_ANNEALING),
                                            self.study.num_pilot,
                                            self.study.max_starts,
                                            on_iteration=compare)
        seconds = time.process_time() - start
        result = accuracy.compute()
        layer: Any = model.decoder.layer
        curves = law_curves(layer, self._open(condition, seed, 'test'),
                            result.relabelling)
        law_error = None
        if curves.error is not None:
            law_error = dict(zip(curves.names, curves.error))
        return FoundLaws(model, noise, discovery, result, law_error, seconds)

    def _model(self, condition: Condition, seed: int,
               x: Tensor) -> RelationalAutoEncoder:
        """With laws that are yet to be found."""
        method = condition.method
        if method.trained:
            if self.trained is None:
                raise ValueError('This needs a trained encoder.')
            module = self.trained
        else:
            config = Config(x.size(-1), condition.num_observed, TYPES,
                            options={'undirected':
                                     method.undirected}, seed=seed)
            module = build_module(config)
            module.fit_units(x)
        laws = module.with_laws(
            interval=condition.interval,
            half_width=getattr(SYSTEMS[NAME], 'box_half_width'))
        return laws.model.eval()

    def _infer(self, model: RelationalAutoEncoder, test: Data,
               condition: Condition, sampled: bool) -> dict[str, Any]:
        method = condition.method
        figures: dict[str, Any] = {}

        def refined() -> Refined:
            return refine(model, test, method.stages(ANNEALING),
                          method.num_restarts)

        def drawn() -> Refined:
            return sample_posterior(model, test,
                                    num_restarts=method.num_restarts)

        ways: dict[str, Callable[[], Refined]] = {'refined': refined}
        if sampled:
            ways['sampled'] = drawn
        for name, infer in ways.items():
            start = time.process_time()
            with method.in_place():
                graph = infer()
            seconds = time.process_time() - start
            figures[name] = {**score(graph, test), 'seconds': seconds}
        return figures

    def _open(self, condition: Condition, seed: int,
              split: str) -> ParticleSystems:
        standard: Any = SYSTEMS[NAME]
        every = round(condition.interval / standard.step_size)
        system = replace(standard, sample_every=every,
                         num_steps=(NUM_FRAMES + 1) * every)
        name = NAME if system == standard else f'{NAME}-every_{every}_ms'
        return ParticleSystems(
            self.root, name, split, condition.num_particles,
            (condition.num_training, 1, condition.num_test), seed,
            system=system if name != NAME else None,
            transform=SplitTrajectory(condition.num_observed))

    def _batch(self, condition: Condition, seed: int, split: str) -> Data:
        dataset = self._open(condition, seed, split)
        return next(iter(SystemLoader(dataset, len(dataset))))


def add_noise(data: Data, noise: Tensor, generator: torch.Generator) -> Data:
    """Systems with independent Gaussian noise on all their frames.

    Args:
        data: Systems with :obj:`x` and perhaps :obj:`y`.
        noise: Standard deviation on each feature, :obj:`[F]`.
        generator: Source of the noise.

    Returns:
        A copy that shares all other tensors.
    """
    out = data.clone()
    for key in ('x', 'y'):
        if data.get(key) is not None:
            drawn = torch.randn(data[key].size(), generator=generator)
            out[key] = data[key] + noise * drawn
    return out


def score(graph: Refined, data: Data) -> dict[str, Any]:
    """Strict edge accuracies, and how far the probabilities of the most
    probable types are off."""
    accuracy = EdgeAccuracy(TYPES)
    accuracy.update(graph.edge_type, data.edge_label)
    result = accuracy.compute()
    assert result.relabelling is not None
    correct = (result.relabelling(graph.edge_type) == data.edge_label).all(-1)
    confidence = make_posterior(graph.edge_type, graph.posterior,
                                data.edge_index).confidence
    error = expected_calibration_error(confidence, correct)
    return {
        'combined': result.combined.item(),
        'layers': [layer.item() for layer in result.layers],
        'calibration_error': error.item(),
    }
