"""The force laws of a model as curves, in words, and beside the true ones."""
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import torch
from matplotlib.figure import Figure
from pandas import DataFrame
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.datasets.spec import Systems, length_unit
from pyg_fnri.datasets.stored import write_table
from pyg_fnri.evaluation.evaluate import BATCH_SIZE
from pyg_fnri.laws import HALF_WIDTH, Formula, best_formula, law_covariance
from pyg_fnri.laws.formulas import MOST_CHI2, with_error
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import Relabelling, relative_law_error
from pyg_fnri.nn import EvenLaw, ForceLaw, ForceLawDecoder
from pyg_fnri.plot import plot_laws
from pyg_fnri.training import RelationalInference

#: Distances of a formula at the least, and all of a curve.
NUM_PLACES, NUM_DISTANCES = 12, 200


class LawCurves(NamedTuple):
    """Laws on a grid of distances: the central one of each channel, then those
    of other terms that are not zero.

    Args:
        names: Of the true forces, or `law 0`, ... where that is not known; with
            the name of the term unless it is central.
        distance: In `unit`, metre of simulated systems, :obj:`[K]`.
        learned: In `unit` over the square of that of time, positive where
            repulsive, :obj:`[R, K]`.
        true: The true central laws, row for row, where they are known.
        seen: Distances of the pairs that each law acts on, of all pairs where
            that is not known, :obj:`[num_seen]`.
        standard_error: Of the laws, where it is known, :obj:`[R, K]`.
        formulas: The best one of each law, if any fits.
        coefficients: Value and standard error (NaN where unknown) of what
            multiplies each vector of a term.
    """
    names: list[str]
    distance: Tensor
    learned: Tensor
    true: Optional[Tensor]
    seen: list[Tensor]
    unit: str = 'm'
    standard_error: Optional[Tensor] = None
    formulas: list[Optional[Formula]] = []
    coefficients: dict[str, dict[str, tuple[float, float]]] = {}
    rows: list['_Row'] = []

    def __call__(self, distance: Any) -> np.ndarray:
        """The laws at distances :obj:`[K]`, :obj:`[R, K]`."""
        at = torch.as_tensor(distance, dtype=self.distance.dtype)
        return np.stack([row.read(at).detach().numpy() for row in self.rows])

    def plot(self) -> Figure:
        """Draws the laws, see :func:`~pyg_fnri.plot.plot_laws`."""
        error = self.standard_error
        return plot_laws(
            self.distance, self.learned, self.true, names=self.names,
            seen=self.seen, errors=self.error,
            half_width=None if error is None else HALF_WIDTH * error,
            words=self.words, coefficients=self.coefficients, unit=self.unit,
            force_unit=self.force_unit)

    def __str__(self) -> str:
        return '\n'.join(f'{name}: {text}' for name, text in self.words.items())

    @property
    def error(self) -> Optional[list[float]]:
        """The :func:`~pyg_fnri.metrics.relative_law_error` of each true law."""
        if self.true is None:
            return None
        rows = zip(self.learned[:, None], self.true[:, None], self.seen)
        return [relative_law_error(self.distance, *row).item() for row in rows]

    @property
    def force_unit(self) -> str:
        """Of forces on unit mass."""
        return 'N' if self.unit == 'm' else self.unit

    @property
    def words(self) -> dict[str, str]:
        """What each law and term is, with its numbers and their errors."""
        out = {
            name: str(formula or 'no formula of the library fits')
            for name, formula in zip(self.names, self.formulas)
        }
        for term, parts in self.coefficients.items():
            text = ' '.join(f"{'+-'[value < 0]} {with_error(abs(value), error)}"
                            f" {label}"
                            for label, (value, error) in parts.items())
            out[term] = '-' * text.startswith('-') + text[2:]
        return out

    def metrics(self) -> dict[str, Any]:
        """Formulas and coefficients as plain numbers."""
        laws = {
            name:
            formula and dict(formula=formula.text, errors=formula.errors,
                             parameters=formula.parameters)
            for name, formula in zip(self.names, self.formulas)
        }
        terms: dict[str, Any] = {}
        for term, parts in self.coefficients.items():
            terms[term] = {
                label: dict(value=v, error=None if np.isnan(error) else error)
                for label, (v, error) in parts.items()
            }
        return {'in_words': self.words, 'laws': laws, 'terms': terms}

    def save(self, path: str) -> None:
        """Writes a CSV table: distances, true laws, learned laws, standard
        errors."""
        column = 'distance_m' if self.unit == 'm' else 'distance'
        frame = DataFrame({column: self.distance.numpy()})
        for suffix, rows in (('_true', self.true), ('', self.learned),
                             ('_error', self.standard_error)):
            for name, row in zip(self.names, () if rows is None else rows):
                frame[name + suffix] = row.numpy()
        write_table(path, frame)


@torch.no_grad()
def law_curves(layer: ForceLawDecoder, dataset: Union[Systems, list[Data]],
               relabelling: Optional[Relabelling] = None,
               num_systems: int = 200,
               edge_attr: Optional[Tensor] = None) -> LawCurves:
    """The laws found, in the order of the true forces where a relabelling is
    known; at distances in :obj:`x` and :obj:`y` of the first systems, of pairs
    that interact by a graph :obj:`edge_attr` of these, if given."""
    batch = next(iter(SystemLoader(dataset, num_systems)))
    position, _ = layer.split(torch.cat([batch.x, batch.y], dim=1))
    sender, receiver = batch.edge_index
    apart = layer.between(position[receiver], position[sender]).norm(dim=-1)
    seen = apart[apart > 0]  # In the same place, there is no direction.
    if not seen.numel():
        raise ValueError('There are no two particles at a distance from each '
                         'other in these systems, to look at force laws at.')
    low, high = seen.min().log10().item(), seen.max().log10().item()
    distance = torch.logspace(low, high, NUM_DISTANCES)
    if isinstance(layer.law, EvenLaw):
        distance = torch.linspace(10**low, 10**high, NUM_DISTANCES)
    channels = relabelling and relabelling.channels(layer.law.num_channels)
    names, acted, true = list[str](), list[Tensor](), None
    if (channels and isinstance(dataset, ParticleSystems) and dataset.forces):
        true = torch.tensor([[force.magnitude(r) for r in distance.tolist()]
                             for force in dataset.forces], dtype=distance.dtype)
        for name, num_types, label in zip(dataset.names, dataset.num_edge_types,
                                          batch.edge_label.T):
            for kind in range(1, num_types):
                names.append(name if num_types == 2 else f'{name} {kind}')
                own = apart[(label == kind)[:, None] & (apart > 0)]
                acted.append(own if own.numel() else seen)
    else:  # No law stands for a force.
        channels = list(range(layer.law.num_channels))
        names = [f'law {channel}' for channel in channels]
        acted = [seen] * len(channels)
        if edge_attr is not None:
            for channel, acts in enumerate((edge_attr > 0).unbind(-1)):
                own = apart[acts[:, None] & (apart > 0)]
                acted[channel] = own if own.numel() else seen
    rows = [
        _Row(names[number], layer.law, channel, acted[number])
        for number, channel in enumerate(channels)
    ]
    for term, law in layer.pair_terms()[1:]:
        width = law.num_channels // layer.law.num_channels
        for number, channel in enumerate(channels):
            place = position.norm(dim=-1) if term.of_sender else acted[number]
            rows += [
                _Row(f'{names[number]} {term.name}' + f' {k}' * (width > 1),
                     law, width * channel + k, place[place > 0])
                for k in range(width) if law.value[width * channel + k].any()
            ]
    learned = torch.stack([row.read(distance) for row in rows])
    known = len(layer.spread) > 0
    error = torch.stack(
        [row.covariance(layer, distance).diagonal()
         for row in rows]).sqrt() if known else None
    return LawCurves([row.name for row in rows], distance, learned, true,
                     [row.seen for row in rows], length_unit(dataset),
                     None if error is None else error.to(distance),
                     [row.formula(layer) for row in rows] if known else [],
                     _coefficients(layer, position.size(-1)), rows)


class _Row(NamedTuple):
    """A law's place in its table."""
    name: str
    law: ForceLaw
    channel: int
    seen: Tensor

    def read(self, distance: Tensor) -> Tensor:
        value: Tensor = self.law(distance.to(self.law.value))[self.channel]
        return value.to(distance)

    def covariance(self, layer: ForceLawDecoder, distance: Tensor) -> Tensor:
        return law_covariance(layer, self.law, distance)[self.channel]

    def formula(self, layer: ForceLawDecoder) -> Optional[Formula]:
        """At the knots where pairs were seen, or as many places."""
        seen = self.seen[::1 + len(self.seen) // 1_000_000]
        low, high = seen.quantile(seen.new_tensor([0.01, 0.99]))
        at = self.law.knots
        at = at[(at > low) & (at < high)]
        if len(at) < NUM_PLACES:
            at = torch.logspace(low.log10().item(),
                                high.log10().item(), NUM_PLACES)
        law, covariance = self.read(at), self.covariance(layer, at)
        error = covariance.diagonal().clamp(min=1e-300).sqrt()
        chi2 = (law / error).square().mean().item()
        if chi2 < MOST_CHI2:  # It may be no law at all.
            size = error.square().mean().sqrt().item()
            return Formula(f'0 within {size:.1g}', {}, {}, chi2, chi2)
        return best_formula(at, law, covariance)


def _coefficients(layer: ForceLawDecoder,
                  num_axes: int) -> dict[str, dict[str, tuple[float, float]]]:
    axes = [*'xyz'][:num_axes] if num_axes <= 3 else [
        f'x{n}' for n in range(1, num_axes + 1)
    ]
    errors, out = layer.coefficient_errors(), {}
    for term, value in layer.node_terms():
        error = errors.get(term.name, torch.full_like(value, torch.nan))
        labels = term.labels(axes) or [f'({n})' for n in range(len(value))]
        out[term.name] = dict(zip(labels, zip(value.tolist(), error.tolist())))
    return out


def find_laws(module: RelationalInference, dataset: Systems,
              metrics: Mapping[str,
                               Any], edge_type: Tensor) -> Optional[LawCurves]:
    """The :func:`law_curves` that a module predicts with, if it does; with the
    types that :func:`~pyg_fnri.evaluation.measure` gives."""
    layer = module.model.decoder.layer
    if 'rollout_mse' not in metrics or not isinstance(layer, ForceLawDecoder):
        return None
    return law_curves(layer, dataset, metrics.get('relabelling'), BATCH_SIZE,
                      module.model.latent.encode_types(edge_type))
