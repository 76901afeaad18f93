"""The force laws of a model as curves, beside the true ones."""
import math
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import Relabelling, relative_law_error
from pyg_fnri.nn import ForceLawDecoder
from pyg_fnri.opening import Systems


class LawCurves(NamedTuple):
    """Laws on a grid of distances.

    Args:
        names: Of the true forces, or `law 0`, `law 1` ... where it is not
            known which law is which.
        distance: In metre, :obj:`[K]`.
        learned: In m/s^2, positive where repulsive, :obj:`[C, K]`.
        true: The true laws, row for row, where they are known.
        seen: Distances of pairs in the data, :obj:`[num_seen]`.
    """
    names: list[str]
    distance: Tensor
    learned: Tensor
    true: Optional[Tensor]
    seen: Tensor

    @property
    def error(self) -> Optional[list[float]]:
        """Relative error of each law, weighted by the distances seen; see
        :func:`~pyg_fnri.metrics.relative_law_error`."""
        if self.true is None:
            return None
        return relative_law_error(self.distance, self.learned, self.true,
                                  self.seen).tolist()


@torch.no_grad()
def law_curves(
    layer: ForceLawDecoder,
    dataset: Systems,
    relabelling: Optional[Relabelling] = None,
    num_systems: int = 200,
) -> LawCurves:
    """The laws found, in the order of the true forces where one is known.

    Args:
        layer: The laws.
        dataset: Systems whose distances they are looked at.
        relabelling: From predicted to true types, where those are known.
        num_systems: How many of the systems.
    """
    batch = next(iter(SystemLoader(dataset, num_systems)))
    position = torch.cat([batch.x, batch.y], dim=1)[..., :batch.x.size(-1) // 2]
    sender, receiver = batch.edge_index
    seen = (position[sender] - position[receiver]).norm(dim=-1).flatten()
    distance = torch.logspace(math.log10(seen.min()), math.log10(seen.max()),
                              200)
    learned, true = layer.law(distance), None
    names = [f'law {channel}' for channel in range(learned.size(0))]
    channels = None
    if relabelling is not None and isinstance(dataset, ParticleSystems):
        channels = relabelling.channels(learned.size(0))
    if channels is not None:
        learned, names = learned[channels], list(dataset.names)
        # Systems that are not made of one force a layer have none to show.
        if getattr(dataset, 'forces', ()):
            true = torch.stack([
                torch.tensor([force.magnitude(r) for r in distance.tolist()])
                for force in dataset.forces
            ]).float()
    return LawCurves(names, distance, learned, true, seen)
