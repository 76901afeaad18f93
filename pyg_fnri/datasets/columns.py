"""Which column of a long table holds what."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

import pandas as pd

from pyg_fnri.datasets.names import check_none_missing


@dataclass(frozen=True)
class Columns:
    """Which column of a long table holds what.

    Args:
        system: Names of systems; :obj:`None` where there is only one.
        time: Instants, numbers or dates; dates may be text such as
            `2024-05-31 12:00:00`.
        particle: Names of particles.
        features: What is known of a particle at an instant.
        mass: Masses of particles; :obj:`None` where they are not known.
    """
    system: Optional[str]
    time: str
    particle: str
    features: Sequence[str]
    mass: Optional[str] = None

    @property
    def keys(self) -> list[str]:
        """What tells rows apart."""
        keys = [self.time, self.particle]
        return keys if self.system is None else [*keys, self.system]

    @property
    def numbers(self) -> list[str]:
        """What holds numbers: features, and masses last."""
        features = [*self.features]
        return features if self.mass is None else [*features, self.mass]

    def check(self, table: pd.DataFrame) -> None:
        """Makes sure that a table has each of them once, and in each row what
        tells it apart.

        Raises:
            ValueError: If it has not; the message names the column, and the
                row.
        """
        how = dict(zip(self.keys,
                       ('time=NAME', 'particle=NAME', 'system=NAME')))
        for name in self.features:
            how.setdefault(name, 'position=NAMES and velocity=NAMES')
        if self.mass is not None:
            how.setdefault(self.mass, 'mass=NAME')
        for name, argument in how.items():
            if list(table.columns).count(name) != 1:
                raise ValueError(
                    f'The table must have one column {name!r}, but its '
                    f'columns are {[*table.columns]}; say which to read by '
                    f'{argument}.')
        if len(table) == 0:
            raise ValueError('The table has no rows.')
        for name in self.keys:
            check_none_missing(table[name])
