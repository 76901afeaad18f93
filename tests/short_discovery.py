"""Force laws in a moment, for tests of what is done with them."""
from functools import partial

import pyg_fnri.laws
import pyg_fnri.training.em
from pyg_fnri.inference import AnnealingStep
from pyg_fnri.laws import discover_force_laws


def shorten(patch, annealing=(AnnealingStep(0.3, 1.), )):
    """Two starts with few systems, of few iterations each, and no search for
    another basis.

    Args:
        patch (pytest.MonkeyPatch): Undoes it.
        annealing (Sequence[AnnealingStep]): The iterations.
    """
    short = partial(discover_force_laws, annealing=annealing, num_pilot=4,
                    max_starts=2, max_rounds=0)
    for module in (pyg_fnri.training.em, pyg_fnri.laws):
        patch.setattr(module, 'discover_force_laws', short)
