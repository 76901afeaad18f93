"""The distances that force laws are tables of."""
import math
import warnings

import torch
from torch import Tensor

from pyg_fnri.inference.impulses import Transitions, shortest_distance
from pyg_fnri.nn import ForceLaw

#: Where the typical distance of pairs has its place in a table, as a share of
#: its length in logarithms: at 2 m, of those from 0.03 to 15 m.
PLACE = 0.68
#: Distances to look at, at the most.
NUM_DISTANCES = 50_000
#: Share of them that may lie beyond the table's ends.
MAX_OUTSIDE = 0.05


def fit_range(law: ForceLaw, transitions: Transitions) -> None:
    r"""Moves the table of laws to the distances of pairs, which may be in any
    unit: by the power of ten that brings their median within a factor
    :math:`\sqrt{10}` of its place. Laws that are moved are zero again.

    Laws that are known, and not zero, stay where they are unless they are off
    by a factor of ten or more: other systems in the same unit, or a part of
    them, do not make them move.

    Warns where many pairs are at distances beyond the table's ends, even so:
    laws are constant there.

    Args:
        law: The laws, about to be fitted.
        transitions: What happened to pairs.
    """
    seen = seen_distances(transitions)
    median = seen.median().item() if len(seen) else 0.
    if not 0 < median < math.inf:
        return
    length = math.log10(law.max_distance / law.min_distance)
    shift = math.log10(median / law.min_distance) - PLACE * length
    known, share = bool(law.value.any()), _share_outside(law, seen)
    if abs(shift) >= (1. if known else 0.5):
        law.rescale(10.**round(shift))
        moved = _share_outside(law, seen)
        if moved < share or moved == 0:
            law.reset_parameters()
            share = moved
        else:  # Of a table that is shorter than a step.
            law.rescale(10.**-round(shift))
    if share > MAX_OUTSIDE:
        ends = torch.tensor([0.01, 0.99], dtype=seen.dtype, device=seen.device)
        low, high = seen.quantile(ends).tolist()
        warnings.warn(
            f"{share:.0%} of the distances between particles, which are from "
            f"{low:.3g} to {high:.3g}, lie outside those that force laws are "
            f"fitted at, from {law.min_distance:.3g} to "
            f"{law.max_distance:.3g}: laws are constant there. Leave out "
            f"pairs too far from each other to interact (--radius), or, in "
            f"Python, make model.decoder.layer.law a ForceLaw with another "
            f"min_distance and max_distance.", stacklevel=2)


def seen_distances(transitions: Transitions) -> Tensor:
    """Distances of pairs half-way between two frames, where no wall may have
    been met; of many, a part, :obj:`[num_seen]`. Particles at one place are
    at no distance."""
    choices, valid = transitions.choices, transitions.valid
    distance = transitions.distance[..., transitions.distance.size(-1) // 2]
    total = distance.numel()
    # A step that is no whole number comes to all pairs and all times.
    picked = torch.linspace(0, total - 1, min(total, NUM_DISTANCES),
                            dtype=torch.double, device=distance.device)
    picked = picked.round().long()
    pair, time = picked // distance.size(1), picked % distance.size(1)
    both = valid[choices.receiver[pair], time] & valid[choices.sender[pair],
                                                       time]
    seen = distance[pair, time][both]
    return seen[seen > 2 * shortest_distance(seen.dtype)]


def _share_outside(law: ForceLaw, distance: Tensor) -> float:
    """Of distances, those beyond the table's ends."""
    outside = (distance < law.min_distance) | (distance > law.max_distance)
    return outside.double().mean().item()
