"""A part of the paper's tables and figures: which runs it is made of."""
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Optional

from pyg_fnri.experiments.cell import (
    MODELS,
    MORE_NAMES,
    NAMES,
    TABLES,
    Cell,
    grid,
)
from pyg_fnri.experiments.scale import Scale


@dataclass(frozen=True)
class Part:
    """What tables and figures are asked for; None for all that they have.

    Args:
        names: Data sets.
        models: Keys of :obj:`~pyg_fnri.experiments.cell.MODELS`.
        regimes: Only these, as far as a table or figure has them.
        seeds: Seeds.
    """
    names: Optional[Sequence[str]] = None
    models: Optional[Sequence[str]] = None
    regimes: Optional[Sequence[str]] = None
    seeds: Optional[Sequence[int]] = None

    def of_table(self, table: str, scale: Scale) -> list[Cell]:
        """The runs behind a table; of laws, those of fNRI on NRI's data sets,
        too.

        Args:
            table: A key of :obj:`~pyg_fnri.experiments.cell.TABLES`.
            scale: Has the seeds, unless there are some here.
        """
        names: Sequence[str] = NAMES
        models: Sequence[str] = list(MODELS)
        if table == 'laws':
            names, models = NAMES + MORE_NAMES, ['fnri']
        return self._grid(names, models, TABLES[table], scale.seeds_of(table))

    def of_figure(self, figure: str, scale: Scale) -> list[Cell]:
        """The runs behind a figure: of fNRI on springs and charges, unless
        others are asked for, of the trajectories a single one.

        Args:
            figure: :obj:`'trajectories'` or :obj:`'compression'`.
            scale: Has the seeds, unless there are some here.
        """
        if figure == 'compression':
            return self._grid(NAMES[:1], ['fnri'], scale.compression,
                              scale.seeds)
        first = replace(self, seeds=(self.seeds or scale.seeds)[:1])
        return first._grid(NAMES[:1], ['fnri'], ['learned'], scale.seeds)

    def _grid(self, names: Sequence[str], models: Sequence[str],
              regimes: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
        known = [
            regime for regime in regimes
            if self.regimes is None or regime in self.regimes
        ]
        return grid(self.names or names, self.models or models, known,
                    self.seeds or seeds)
