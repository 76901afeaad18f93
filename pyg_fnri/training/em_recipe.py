"""The recipe that goes on where the quick one ends: with force laws."""
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from pyg_fnri.datasets.spec import Systems, box_half_width, frame_interval
from pyg_fnri.nn import NRI
from pyg_fnri.recipes import QuickRecipe


@dataclass(frozen=True)
class EMSettings:
    """What expectation-maximisation has to be told.

    Args:
        num_fitted: Training systems that laws and graphs are fitted on.
        num_distilled: Training systems whose graphs the encoder learns; 0
            leaves
            it as it is.
        distilled_steps: Steps of the optimiser in which it does.
        interval: Time from one frame to the next, in seconds or the unit of a
            table's times; None as the data tell.
        half_width: Metres from the origin to a wall; 0 where there is none,
            or none known; None as the simulation has it, and none for a
            user's own data.

    Raises:
        ValueError: If a value is out of range.
    """
    num_fitted: int = 1_000
    num_distilled: int = 20_000
    distilled_steps: int = 6_000
    interval: Optional[float] = None
    half_width: Optional[float] = None

    def __post_init__(self) -> None:
        for name, low in (('num_fitted', 1), ('num_distilled', 0),
                          ('distilled_steps', 1)):
            value = getattr(self, name)
            if type(value) is not int or value < low:
                raise ValueError(f"{name} must be a whole number of at least "
                                 f"{low}, but is {value!r}.")
        if not _is_length(self.interval) or self.interval == 0:
            raise ValueError(f"interval must be a time above 0, but is "
                             f"{self.interval!r}.")
        if not _is_length(self.half_width):
            raise ValueError(f"half_width must be a distance of at least 0, "
                             f"but is {self.half_width!r}.")

    def motion(self, description: Mapping[str, Any],
               dataset: Systems) -> dict[str, Optional[float]]:
        """The time between frames and the place of walls, as set here or as
        the data have it: arguments of
        :class:`~pyg_fnri.nn.ForceLawDecoder`.

        Args:
            description: Where the data came from, as a
                :class:`~pyg_fnri.training.Config` keeps it.
            dataset: A split of them.

        Raises:
            ValueError: If the time between frames is not known.
        """
        interval, half_width = self.interval, self.half_width
        if interval is None:
            interval = frame_interval(description, dataset)
        if interval is None:
            raise ValueError("Arrays do not tell the time between two frames, "
                             "which forces depend on; say it by scripts/em.py "
                             "--interval, or scripts/train.py --option "
                             "interval=SECONDS.")
        if half_width is None:
            half_width = box_half_width(dataset)
        return {'interval': interval, 'half_width': half_width or None}


@dataclass(frozen=True)
class EMRecipe(EMSettings, QuickRecipe):
    """The quick recipe, fewer steps of it, as the start of an
    :class:`~pyg_fnri.training.ExpectationMaximisation`: four edges in five
    are enough of one.

    Args:
        max_steps: Steps of the quick recipe.
    """
    max_steps: int = 2_500

    def __post_init__(self) -> None:
        QuickRecipe.__post_init__(self)
        EMSettings.__post_init__(self)

    @classmethod
    def defaults(cls, model: type[NRI], regime: str) -> dict[str, Any]:
        if regime != 'learned':
            raise ValueError(f"The recipe 'em' learns without labels: its "
                             f"regime must be 'learned', but is '{regime}'.")
        return super().defaults(model, regime)


def _is_length(value: Any) -> bool:
    """Whether this is a finite number of at least 0, or left open."""
    if value is None:
        return True
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 0 <= value < math.inf
