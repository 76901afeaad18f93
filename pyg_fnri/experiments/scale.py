"""Scales: how far a run goes, from seconds to the paper's full setting."""
from collections.abc import Mapping
from dataclasses import dataclass

from pyg_fnri.experiments.cell import Cell


@dataclass(frozen=True)
class Scale:
    """The arguments that all runs of one scale get.

    Args:
        name: What to call it.
        seeds: Seeds of the runs behind each mean.
        common: Arguments of `scripts/train.py` in every run.
        regimes: Further ones, by regime. Without `split`, the experiment of
            section 3.1 takes the run `learned` for the one with the split.
        evaluation: Arguments of `scripts/evaluate.py`.
        refined: Further ones where there are force laws.
        law_seeds: Seeds of the runs with force laws.
        num_halved: Test systems on which observed and following frames are
            compared (section 3.1).
    """
    name: str
    seeds: tuple[int, ...]
    common: tuple[str, ...]
    regimes: Mapping[str, tuple[str, ...]]
    evaluation: tuple[str, ...] = ()
    refined: tuple[str, ...] = ('--refine', '--num-systems', '2000')
    law_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    num_halved: int = 2_000

    def training(self, cell: Cell) -> list[str]:
        """Arguments of `scripts/train.py` for a cell.

        Raises:
            ValueError: If this scale has no such runs.
        """
        if cell.regime not in self.regimes:
            raise ValueError(f"There are no runs '{cell.regime}' at the scale "
                             f"{self.name}, but only {', '.join(self.regimes)}"
                             f".")
        regime = cell.regime
        if regime not in ('supervised', 'true_graph'):
            regime = 'learned'
        return [
            '--name', cell.dataset, '--model', cell.model, '--regime', regime,
            '--seed',
            str(cell.seed), *self.common, *self.regimes[cell.regime]
        ]

    def seeds_of(self, table: str) -> tuple[int, ...]:
        """Seeds of the runs behind a table."""
        return self.law_seeds if table == 'laws' else self.seeds

    @property
    def compression(self) -> tuple[str, str]:
        """The two regimes that section 3.1 compares."""
        return 'split' if 'split' in self.regimes else 'learned', 'unsplit'


def _arguments(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# What section 3.1 is about: rollouts from nothing but a state and the graph,
# whose channels are all there for something else to be kept in. Single steps
# have nothing to compress, so they run from the first frame to the last.
_LONG = ('--recipe quick --option pred_steps=48 --directed --drop-null no '
         '--batch-size 32 --max-steps 3000 --num-val 200 --val-every 500')
#: A step of training, in which nothing is learned, then laws.
_NOTHING = '--recipe em --max-steps 1 --option num_distilled=0'
_TINY = '--hidden-channels 8 --batch-size 16 --max-steps 3 --val-every 1'

#: Seconds, to see that all works; minutes a run on one core; the paper's
#: setting, for a GPU each.
SCALES: dict[str, Scale] = {
    'smoke':
    Scale(
        name='smoke',
        seeds=(0, 1),
        common=_arguments('--num-systems 64 32 32 --accelerator cpu'),
        regimes={
            'learned':
            _arguments(f'--recipe quick {_TINY}'),
            'supervised':
            _arguments(f'--recipe quick {_TINY}'),
            'true_graph':
            _arguments(f'--recipe quick {_TINY}'),
            'split':
            _arguments(f'--recipe paper {_TINY}'),
            'unsplit':
            _arguments(f'--recipe paper {_TINY} --unsplit'),
            'em':
            _arguments(f'--recipe em {_TINY} --option distilled_steps=3'),
            'nothing':
            _arguments(f'{_NOTHING} --hidden-channels 8 '
                       '--batch-size 16'),
        },
        refined=('--refine', ),
        law_seeds=(0, 1),
        evaluation=_arguments('--num-drawn 1'),
    ),
    'laptop':
    Scale(
        name='laptop',
        seeds=(0, 1, 2),
        common=_arguments('--threads 1'),
        regimes={
            'learned': _arguments('--recipe quick'),
            'supervised': _arguments('--recipe quick'),
            'true_graph': _arguments('--recipe quick'),
            'split': _arguments(_LONG),
            'unsplit': _arguments(f'{_LONG} --unsplit'),
            'em': _arguments('--recipe em --option distilled_steps=6000'),
            'nothing': _arguments(_NOTHING),
        },
    ),
    'paper':
    Scale(
        name='paper',
        seeds=(0, 1, 2, 3, 4),
        # Validated after each epoch of 390 steps.
        common=_arguments('--num-val 10000 --val-every 390'),
        regimes={
            'learned': _arguments('--recipe paper'),
            'supervised': _arguments('--recipe paper'),
            'true_graph': _arguments('--recipe paper'),
            'unsplit': _arguments('--recipe paper --unsplit'),
        },
    ),
}
