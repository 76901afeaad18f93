"""Cells: the runs that the paper's tables and figures are made of."""
from collections.abc import Iterable
from dataclasses import dataclass

from pyg_fnri.evaluation.published import PARAMETERS

#: The paper's data sets (I+C, I+C+F) and models.
NAMES = tuple(PARAMETERS)
#: NRI's, which the paper has no figures of.
MORE_NAMES = ('nri_springs', 'nri_charged')
MODELS = {'nri': 'NRI', 'fnri': 'fNRI', 'sfnri': 'sfNRI'}

#: What is trained, on what. The first three are rows of tables 1 and 2; the
#: next two are the experiment of section 3.1, learned with and without the
#: split into an observed and a predicted half; then force laws, by
#: expectation-maximisation from a trained encoder, and from nothing.
REGIMES = ('learned', 'supervised', 'true_graph', 'split', 'unsplit', 'em',
           'nothing')

#: Table -> regimes of its rows. Table 3 counts parameters of untrained models;
#: the last one goes beyond the paper.
TABLES: dict[str, tuple[str, ...]] = {
    '1': ('learned', 'supervised'),
    '2': ('learned', 'true_graph'),
    '3': (),
    'laws': ('em', 'nothing'),
}


@dataclass(frozen=True)
class Cell:
    """One training run.

    Args:
        dataset: One of :obj:`NAMES` or :obj:`MORE_NAMES`.
        model: A key of :obj:`MODELS`.
        regime: One of :obj:`REGIMES`.
        seed: Seed of weights, batches and samples.

    Raises:
        ValueError: If one of them is none.
    """
    dataset: str
    model: str
    regime: str
    seed: int

    def __post_init__(self) -> None:
        for field, known in (('dataset', NAMES + MORE_NAMES), ('model', MODELS),
                             ('regime', REGIMES)):
            if getattr(self, field) not in known:
                raise ValueError(f"The {field} of a cell must be one of "
                                 f"{', '.join(known)}, but is "
                                 f"'{getattr(self, field)}'.")
        if self.seed < 0:
            raise ValueError(f"The seed of a cell must be at least 0, but is "
                             f"{self.seed}.")

    @property
    def name(self) -> str:
        """Such as `springs_charges-fnri-learned-0`."""
        return f'{self.row}-{self.seed}'

    @property
    def row(self) -> str:
        """What runs of all seeds share."""
        return f'{self.dataset}-{self.model}-{self.regime}'

    @classmethod
    def from_name(cls, name: str) -> 'Cell':
        """The cell of that name.

        Raises:
            ValueError: If there is none.
        """
        parts = name.split('-')
        if len(parts) != 4 or not parts[3].isdecimal():
            raise ValueError(f"Expected a cell as DATASET-MODEL-REGIME-SEED, "
                             f"such as springs_charges-fnri-learned-0, but "
                             f"got '{name}'.")
        dataset, model, regime, seed = parts
        return cls(dataset, model, regime, int(seed))


def grid(
    names: Iterable[str],
    models: Iterable[str],
    regimes: Iterable[str],
    seeds: Iterable[int],
) -> list[Cell]:
    """Every combination; all runs of one seed before those of the next, so
    that each row has a figure early."""
    names, models, regimes = list(names), list(models), list(regimes)
    return [
        Cell(name, model, regime, seed) for seed in seeds for name in names
        for regime in regimes for model in models
    ]
