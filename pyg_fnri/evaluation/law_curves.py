"""The force laws of a model as curves, beside the true ones."""
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

import torch
from pandas import DataFrame
from torch import Tensor

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.datasets.spec import Systems, length_unit
from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import Relabelling, relative_law_error
from pyg_fnri.nn import ForceLawDecoder
from pyg_fnri.training import RelationalInference


class LawCurves(NamedTuple):
    """Laws on a grid of distances.

    Args:
        names: Of the true forces (layer, and type where there are several),
            or `law 0`, `law 1` ... where that is not known.
        distance: In `unit`, metre of simulated systems, :obj:`[K]`.
        learned: In `unit` over the square of that of time, positive where
            repulsive, :obj:`[C, K]`.
        true: The true laws, row for row, where they are known.
        seen: Distances of the pairs that each law acts on, of all pairs where
            that is not known, :obj:`[num_seen]`.
    """
    names: list[str]
    distance: Tensor
    learned: Tensor
    true: Optional[Tensor]
    seen: list[Tensor]
    unit: str = 'm'

    @property
    def error(self) -> Optional[list[float]]:
        """The :func:`~pyg_fnri.metrics.relative_law_error` of each law."""
        if self.true is None:
            return None
        rows = zip(self.learned[:, None], self.true[:, None], self.seen)
        return [relative_law_error(self.distance, *row).item() for row in rows]

    @property
    def force_unit(self) -> str:
        """Of forces on unit mass."""
        return 'N' if self.unit == 'm' else self.unit

    def save(self, path: str) -> None:
        """Writes a CSV table: distances, true laws, learned laws."""
        column = 'distance_m' if self.unit == 'm' else 'distance'
        frame = DataFrame({column: self.distance.numpy()})
        if self.true is not None:
            frame[[f'{name}_true' for name in self.names]] = self.true.T
        frame[self.names] = self.learned.T
        with written_whole(path) as part:
            frame.to_csv(part, index=False)


@torch.no_grad()
def law_curves(layer: ForceLawDecoder, dataset: Systems,
               relabelling: Optional[Relabelling] = None,
               num_systems: int = 200) -> LawCurves:
    """The laws found, in the order of the true forces where it is known, by a
    relabelling to true types; at distances in :obj:`x` and :obj:`y` of the
    first systems."""
    batch = next(iter(SystemLoader(dataset, num_systems)))
    position = torch.cat([batch.x, batch.y], dim=1)[..., :batch.x.size(-1) // 2]
    sender, receiver = batch.edge_index
    apart = (position[sender] - position[receiver]).norm(dim=-1)
    seen = apart[apart > 0]  # In the same place, there is no direction.
    if not seen.numel():
        raise ValueError('There are no two particles at a distance from each '
                         'other in these systems, to look at force laws at.')
    distance = torch.logspace(math.log10(seen.min()), math.log10(seen.max()),
                              200)
    learned = layer.law(distance.to(layer.law.value)).to(distance)
    channels = relabelling and relabelling.channels(len(learned))
    if (not channels or not isinstance(dataset, ParticleSystems)
            or not dataset.forces):  # No law stands for a force.
        names = [f'law {channel}' for channel in range(len(learned))]
        return LawCurves(names, distance, learned, None, [seen] * len(names),
                         length_unit(dataset))
    true = torch.tensor([[force.magnitude(r) for r in distance.tolist()]
                         for force in dataset.forces], dtype=distance.dtype)
    names, acted = [], []
    for name, num_types, label in zip(dataset.names, dataset.num_edge_types,
                                      batch.edge_label.T):
        for kind in range(1, num_types):
            names.append(name if num_types == 2 else f'{name} {kind}')
            own = apart[(label == kind)[:, None] & (apart > 0)]
            acted.append(own if own.numel() else seen)
    return LawCurves(names, distance, learned[channels], true, acted)


def find_laws(module: RelationalInference, dataset: Systems,
              metrics: Mapping[str, Any]) -> Optional[LawCurves]:
    """The :func:`law_curves` that a module predicts with, if it does."""
    layer = module.model.decoder.layer
    if 'rollout_mse' not in metrics or not isinstance(layer, ForceLawDecoder):
        return None
    return law_curves(layer, dataset, metrics.get('relabelling'))
