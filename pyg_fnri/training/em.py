"""Force laws from scratch, without any network."""
import logging
import os
import warnings
from typing import Any, cast

import pandas as pd
import rich
import rich.progress
import torch
from pytorch_lightning.utilities import rank_zero_only

from pyg_fnri.datasets.spec import Systems, box_half_width, frame_interval
from pyg_fnri.datasets.stored import write_picture, write_table, write_text
from pyg_fnri.inference import find_motions
from pyg_fnri.laws import (Progress, Start, check_laws, discover_force_laws,
                           prediction_cost)
from pyg_fnri.laws.fit import NUM_STAGES
from pyg_fnri.laws.selection import Step
from pyg_fnri.loader import SystemLoader
from pyg_fnri.plot import plot_curves
from pyg_fnri.training.config import Config
from pyg_fnri.training.module import RelationalInference
from pyg_fnri.training.recipes import LawsRecipe
from pyg_fnri.training.trainer import load_checkpoint, save_checkpoint

log = logging.getLogger(__name__)

#: Particles whose graphs are fitted along with laws at the most, where systems
#: have graphs of their own: laws of more are no better, and take memory.
MOST_PARTICLES = 10_000


class ExpectationMaximisation:
    """Finds force laws from scratch. No label is looked at.

    1. Laws, terms and graphs of some training systems are fitted, of each order
       that is possible: laws.ckpt, and em.csv and em.png with a row per
       iteration.
    2. Laws are checked on validation systems: check.txt, also kept in the
       checkpoint.
    3. The result: best.ckpt.

    Args:
        config: By the recipe `laws`, and the seed of all randomness.
        train, val: The splits.
        out: The directory.
    """
    def __init__(self, config: Config, train: Systems, val: Systems,
                 out: str) -> None:
        settings = cast(LawsRecipe, config.build_recipe())
        if config.unsplit:
            raise ValueError("Laws are not for unsplit; leave that out.")
        interval = settings.interval or frame_interval(config.data, train)
        if interval is None:
            raise ValueError("Arrays do not tell the time between two frames; "
                             "say it by interval.")
        if (half_width := settings.half_width) is None:
            half_width = box_half_width(train)
        self.settings, self.out = settings, out
        self.val = val
        number = settings.num_fitted
        if not settings.shared:
            most = max(1, MOST_PARTICLES // train[0].num_nodes)
            number = min(number, most)
        #: Whose laws and graphs are fitted.
        self.systems = systems = next(iter(SystemLoader(train, number)))
        num_windows = systems.num_graphs if settings.shared else 1
        #: Time between frames, walls, and order, the likeliest first.
        self.motions = [
            dict(interval=interval, half_width=half_width or None, **motion)
            for motion in find_motions(systems, interval, num_windows)
        ]

    def run(self, module: RelationalInference,
            resume: bool = False) -> RelationalInference:
        """All stages from a new model, whose units are fitted, on the CPU, or
        those left of a run that is resumed; gives the module of best.ckpt, for
        evaluation."""
        laws, best = (os.path.join(self.out, name)
                      for name in ('laws.ckpt', 'best.ckpt'))
        if resume and os.path.exists(best):
            return load_checkpoint(best)
        if resume and os.path.exists(laws):
            module = load_checkpoint(laws)
        else:
            module = self.find_laws(module)
            _save(module, laws)
        self.check(module)
        _save(module, best)
        return module.eval()

    def find_laws(self, module: RelationalInference) -> RelationalInference:
        """The model with force laws for a decoder, of the order that predicts
        held-out systems best."""
        found = []
        for motion in self.motions:
            try:
                found.append(self._find_laws(module, motion))
            except ValueError:  # Where one order has no laws, others may.
                if motion is self.motions[-1] and not found:
                    raise
        best = 0
        if len(found) > 1:
            held_out = next(iter(SystemLoader(self.val, 200)))
            costs = [prediction_cost(one.model, held_out) for one, _ in found]
            best = costs.index(min(costs))
            for (one, _), cost in zip(found, costs):
                order = one.model.decoder.layer.order
                log.info('order %d   cost of predicted positions %.4g nat',
                         order, cost)
        module, history = found[best]
        _write_history(history, self.out)
        return module

    def _find_laws(
            self, module: RelationalInference,
            motion: dict[str, Any]) -> tuple[RelationalInference, pd.DataFrame]:
        module = module.with_laws(**motion)
        log.info(
            'Laws and graphs of %d training systems (accuracies for '
            'information only):', self.systems.num_graphs)
        rows: list[dict[str, float]] = []
        starts = self.settings.max_starts
        # Off a terminal, bars would leave empty lines, and nothing else.
        with rich.progress.Progress(
                *rich.progress.Progress.get_default_columns(),
                rich.progress.TimeElapsedColumn(), transient=True,
                disable=not rich.get_console().is_terminal) as bars:
            bar = bars.add_task('finding laws', total=starts + NUM_STAGES + 1)

            def on_start(start: Start) -> None:
                log.info('start %d   held-out cost %.4g nat', start.number,
                         start.cost)
                bars.advance(bar)

            def on_step(step: Step) -> None:
                stays = 'stays' if step.kept else 'is left out'
                log.info(
                    'term %s (%.1f%% of typical forces) %s: it leads by %s nat '
                    'on held-out systems', step.term, 100 * step.size, stays,
                    step.lead)

            def on_iteration(progress: Progress) -> None:
                row = progress._asdict()
                row.update(module.accuracies(row.pop('edge_type'),
                                             self.systems))
                rows.append(row)
                log.info('   '.join(f'{k} {v:.4g}' for k, v in row.items()))
                bars.update(bar, completed=starts + progress.iteration)

            found = discover_force_laws(
                module.model, self.systems,
                torch.Generator().manual_seed(module.config.seed),
                num_pilot=self.settings.num_pilot,
                max_starts=self.settings.max_starts, terms=self.settings.terms,
                on_start=on_start, on_step=on_step, on_iteration=on_iteration)
        module.record_terms()
        if not found.confirmed and len(found.starts) > 1:
            warnings.warn(
                f"Of {len(found.starts)} starts, one alone found these laws; "
                f"compare the held-out cost with another seed's.", stacklevel=2)
        return module.eval(), pd.DataFrame(rows)

    def check(self, module: RelationalInference) -> None:
        """Tells whether the laws' assumptions hold; one system cannot."""
        held_out = next(iter(SystemLoader(self.val, 200)))
        if held_out.num_graphs > 1:
            module.check = check_laws(module.model, held_out)
        verdict = module.verdict or ('Not checked whether the force laws hold: '
                                     'it takes two validation systems or more.')
        log.info(verdict)
        write_text(os.path.join(self.out, 'check.txt'), f'{verdict}\n')


# Of several processes, the first one alone writes.
_save = rank_zero_only(save_checkpoint)


@rank_zero_only
def _write_history(history: pd.DataFrame, out: str) -> None:
    write_table(os.path.join(out, 'em.csv'), history)
    write_picture(os.path.join(out, 'em.png'), plot_curves(history))
