"""How many layers and types? Candidates compared on held-out systems."""
import copy
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch_geometric.data import Batch, InMemoryDataset
from torch_geometric.utils import scatter

from pyg_fnri.evaluation.evaluate import roll_out
from pyg_fnri.inference import infer_graph
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import (EdgeAccuracy, agreement, linear_rollout,
                              posterior_entropy, static_rollout)
from pyg_fnri.nn.latent import reverse_edges
from pyg_fnri.plot.style import COLORS, INK, make_panels
from pyg_fnri.training import Config, RelationalInference, fit

#: Steps of the rollouts that decide, at the most.
HORIZON = 10
#: Held-out systems, at the most.
MOST_COMPARED = 10_000
#: A type is used if it has this share of the edges, and errors of single steps
#: would rise by this factor if another type took its place.
USED_SHARE, USED_WORTH = 0.01, 1.01
#: By how much the logarithm of errors has to fall for more layers of laws.
WORTH = 0.2
#: Share of the error of no change, or of no interaction, that leaves nothing
#: for further laws, and of systems that may leave more.
NOTHING, FEW = 1e-3, 0.25
AGREEMENT = 'agreement', 'agreement_by_chance', 'agreement_adjusted'


class Selection(NamedTuple):
    """The recommended types of each layer, a table with a row for each
    candidate, the smallest first, what speaks against it, in sentences, the
    module of the first seed, and logarithms of its errors by system."""
    recommended: tuple[int, ...]
    table: pd.DataFrame
    warnings: list[str]
    module: RelationalInference
    error: np.ndarray


def select_layers(config: Config, candidates: Sequence[Sequence[int]],
                  train: InMemoryDataset, val: InMemoryDataset,
                  test: InMemoryDataset, out: str,
                  seeds: Sequence[int] = (0, 1), **kwargs: Any) -> Selection:
    """Trains a model for each candidate and seed, and recommends the smallest
    candidate whose error on held-out systems (of rollouts; logarithm, mean over
    systems and seeds) is above the lowest one by at most one standard error of
    the difference. Labels are only used for the column `edge_accuracy`.

    By the recipe `laws`, candidates whose laws are known to hold with all seeds
    come before all others. Larger ones are not tried once laws hold and leave
    next to nothing, nor once errors fall by less than a fifth.

    Runs that are too short err both ways: an interaction may not be found yet,
    and doubtful graphs favour layers too many. The table holds the `error` in
    1e-5 of min-max units, and its ratios to that of the best candidate, of the
    linear step and of the same model with its types dealt out to other pairs;
    the entropy of the posterior as a share of the highest; `types_used` of all
    `types` in all runs; and the :func:`~pyg_fnri.metrics.agreement` of seeds.

    Args:
        config: Settings of all runs, but for types and seeds.
        candidates: Number of types of each layer, no interaction included.
        train: Training systems, each in :obj:`x` and :obj:`y`.
        val: Validation systems.
        test: At least two held-out systems.
        out: Where runs are kept; those that are there go on.
        **kwargs: Of :func:`~pyg_fnri.training.fit`; on one device by default.
    """
    if len(test) < 2:
        raise ValueError(f'test has {len(test)} systems: a standard error '
                         f'takes at least two.')
    train, val = _without_labels(train), _without_labels(val)
    kwargs = {'devices': 1, **kwargs}
    runs: dict[tuple[int, ...], list[dict[str, Any]]] = {}
    modules = dict[tuple[int, ...], RelationalInference]()
    failures = []
    # Types that stand for an interaction, then combinations of types.
    by_size = sorted(
        set(map(tuple, candidates)), key=lambda types:
        (sum(types) - len(types), math.prod(types)))
    for types in by_size:
        for seed in seeds:
            name = '-'.join(map(str, types)) + f'-seed-{seed}'
            place = os.path.join(out, name)
            resume = any(
                os.path.exists(os.path.join(place, f'{of}.ckpt'))
                for of in ('last', 'laws', 'best'))
            settings = replace(config, num_edge_types=types, names=(),
                               seed=seed)
            try:
                module = fit(settings, train, val, place, resume=resume,
                             overwrite=not resume, **kwargs)
            except RuntimeError as error:  # Others may fit in memory.
                failures.append(f'{name} failed and is left out: {error}')
            else:
                modules.setdefault(types, module)
                runs.setdefault(types, []).append(_measure(module, test))
        if config.recipe == 'laws' and types in runs and _suffices(runs):
            break
    if not runs:
        raise RuntimeError('\n'.join(failures))
    table = _compare(runs, WORTH if config.recipe == 'laws' else 0.0)
    chosen = list(runs)[int(table['recommended'].argmax())]
    return Selection(chosen, table, failures + _warnings(table),
                     modules[chosen], runs[chosen][0]['error'])


def _suffices(runs: dict[tuple[int, ...], list[dict[str, Any]]]) -> bool:
    """Whether the last candidate's laws are known to hold and leave nothing,
    or errors have ceased to fall."""
    last, *others = reversed(runs.values())
    # Laws of a few pairs may be missing where they seem to hold.
    done = all(run['holds'] and run['nothing_left'] for run in last)
    if done or not others:
        return done
    ahead, spread = _difference(*(np.stack([run['error'] for run in of])
                                  for of in (last, others[0])))
    return ahead + max(spread, WORTH) > 0


def compare_errors(one: Selection, other: Selection) -> tuple[float, float]:
    """By how much the error of one on the same held-out systems is above that
    of another, in logarithms, and its standard error."""
    return _difference(one.error[None], other.error[None])


def plot_selection(table: pd.DataFrame) -> Figure:
    """Draws errors of a :class:`Selection`'s candidates as multiples of the
    lowest one, and how far their seeds agree."""
    figure, (left, right) = make_panels(2, 4.6, height=3.2)
    colors = [COLORS[int(chosen)] for chosen in table['recommended']]
    x, ratio = np.arange(len(table)), table['ratio_to_best']
    linear = (ratio / table['ratio_to_linear']).mean()
    left.errorbar(x, ratio, table['ratio_to_best_se'], fmt='none', ecolor=INK)
    left.scatter(x, ratio, color=colors, zorder=3)
    left.set_ylabel('error on held-out systems (best = 1)')
    left.set_title(f'linear step: {linear:.2f}', fontsize=10)
    right.bar(x, 100 * table['agreement'], 0.6, color=colors)
    right.scatter(x, 100 * table['agreement_by_chance'], marker='_', s=600,
                  color=INK)
    right.set(ylim=(0, 105), ylabel='edges (%)')
    right.set_title('agreement of seeds (lines: by chance)', fontsize=10)
    for ax in (left, right):
        ax.set_xticks(x, table['candidate'])
        ax.set_xlabel('types of each layer; orange: recommended')
    return figure


def _without_labels(dataset: InMemoryDataset) -> InMemoryDataset:
    out = copy.copy(dataset)
    if 'edge_label' in dataset._data:
        out._data, out.slices = copy.copy(dataset._data), {**dataset.slices}
        del out._data['edge_label'], out.slices['edge_label']
        out._data_list = None
    return out


@torch.no_grad()
def _measure(module: RelationalInference,
             test: InMemoryDataset) -> dict[str, Any]:
    """Of one run on held-out systems; errors are logarithms by system."""
    batch = next(iter(SystemLoader(test, MOST_COMPARED)))
    model = module.model
    types, posterior, mass = infer_graph(model, batch)
    if mass is not None:
        batch.mass = mass
    sizes, burn_in = model.latent.num_edge_types, model.decoder.burn_in
    steps = min(HORIZON, batch.y.size(1) - burn_in)
    single, num_used = _error(module, batch, types, 1), 0
    for layer, size in enumerate(sizes):
        for old in range(size):
            is_old, rises = types[:, layer] == old, []
            for new in {*range(size)} - {old}:
                other = types.clone()
                other[is_old, layer] = new
                rise = _error(module, batch, other, 1) - single
                rises.append(rise.nanmean().item())
            num_used += (is_old.double().mean().item() >= USED_SHARE
                         and min(rises) >= math.log(USED_WORTH))
    accuracy, true = math.nan, getattr(test, 'num_edge_types', [])
    if sorted(true) == sorted(sizes):
        metric = EdgeAccuracy(true, sizes)
        metric.update(types, batch.edge_label)
        accuracy = metric.compute().combined.item()
    entropy = [
        posterior_entropy(q).item() / math.log(q.size(-1)) for q in posterior
    ]
    error, shuffled = (_error(module, batch, graph, steps).numpy()
                       for graph in (types, _shuffled(types, batch)))
    y = module.units(batch.y)[:, burn_in - 1:]
    baselines = (static_rollout(y, steps),
                 linear_rollout(module.linear_step, y, steps))
    static, linear = (_log_error(rollout, y, batch).numpy()
                      for rollout in baselines)
    check = module.check
    holds = check is not None and check.holds and (
        check.tells or np.median(error - static) < math.log(NOTHING))
    # What laws predict worse than no interaction does goes across a wall.
    left = (error > linear + math.log(NOTHING)) & (error < linear)
    nothing_left = bool(left.mean() < FEW)
    return dict(error=error, linear=linear, shuffled=shuffled, types=types,
                sizes=sizes, entropy=np.mean(entropy), num_used=num_used,
                accuracy=accuracy, holds=holds, nothing_left=nothing_left)


def _error(module: RelationalInference, batch: Batch, types: Tensor,
           steps: int) -> Tensor:
    rollout = roll_out(module.model, batch, types, steps)
    predicted, y = (module.units(x)[:, module.model.decoder.burn_in - 1:]
                    for x in (rollout, batch.y))
    return _log_error(predicted, y, batch)


def _log_error(predicted: Tensor, y: Tensor, batch: Batch) -> Tensor:
    """Logarithms of mean squared errors by system."""
    square = (predicted - y[:, 1:]).square().mean(dim=(1, 2)).double()
    mean: Tensor = scatter(square, batch.batch, reduce='mean')
    # A rollout that diverges is infinitely wrong; no error has no logarithm.
    return mean.nan_to_num(math.inf, math.inf).clamp(min=1e-30).log()


def _shuffled(types: Tensor, batch: Batch) -> Tensor:
    """The same types for other pairs, as mutual as they were."""
    generator = torch.Generator().manual_seed(0)
    out = types[torch.randperm(len(types), generator=generator)]
    reverse = reverse_edges(batch.edge_index)
    if bool((types == types[reverse]).all()):
        out = out[torch.minimum(torch.arange(len(out)), reverse)]
    return out


def _compare(runs: dict[tuple[int, ...], list[dict[str, Any]]],
             worth: float = 0.0) -> pd.DataFrame:
    errors = {of: np.stack([r['error'] for r in runs[of]]) for of in runs}
    finite = [of for of in runs if np.isfinite(errors[of]).all()]
    holding = [of for of in finite if all(run['holds'] for run in runs[of])]
    best = min(holding or [*runs], key=lambda of: errors[of].mean())
    if not np.isfinite(errors[best]).all():
        raise ValueError('No candidate predicts finite values in all held-out '
                         'systems; train longer, or at a lower learning_rate.')
    rows = []
    for types, found in runs.items():
        ours = errors[types]
        row: dict[str, Any] = dict(candidate=','.join(map(str, types)),
                                   num_seeds=len(found),
                                   error=1e5 * math.exp(ours.mean()))
        shuffled = np.mean([run['shuffled'] for run in found], 0)
        # With shuffled types, models are the same: seeds do not differ.
        ratios = dict(best=(ours, errors[best]),
                      linear=(ours, found[0]['linear'][None]),
                      shuffled=(ours.mean(0)[None], shuffled[None]))
        for name, (one, other) in ratios.items():
            log, spread = (0., 0.) if one is other else _difference(one, other)
            row[f'ratio_to_{name}'] = math.exp(log)
            row[f'ratio_to_{name}_se'] = math.exp(log) * spread
        graphs = combinations([run['types'] for run in found], 2)
        sizes = found[0]['sizes']  # NRI has joint types.
        pairs: list[Any] = [agreement(*pair, sizes) for pair in graphs]
        agreed = np.array(pairs or [3 * [None]], dtype=float).mean(0)
        row |= zip(AGREEMENT, agreed)
        row |= dict(entropy_share=np.mean([run['entropy'] for run in found]),
                    types_used=sum(run['num_used'] for run in found),
                    types=len(found) * sum(sizes),
                    edge_accuracy=np.mean([run['accuracy'] for run in found]),
                    holds=types in holding)
        rows.append(row)
    table = pd.DataFrame(rows)
    ratio = table['ratio_to_best']
    within = np.log(ratio) <= np.maximum(table['ratio_to_best_se'] / ratio,
                                         worth)
    within &= table['holds'] | (not holding)
    # The first, and so the smallest; the best one is among them.
    return table.assign(recommended=table.index == within.argmax())


def _difference(values: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Mean difference and its standard error, of arrays [seeds, systems]: by
    system, as these differ far more than models do, and by seed."""
    if not np.isfinite([*values, *others]).all():
        return math.inf, math.nan
    by_system = values.mean(0) - others.mean(0)
    variance = by_system.var(ddof=1) / by_system.size
    for array in (values, others):
        if len(array) > 1:
            variance += array.mean(1).var(ddof=1) / len(array)
    return by_system.mean(), math.sqrt(variance)


def _warnings(table: pd.DataFrame) -> list[str]:
    row = table[table['recommended']].iloc[0]
    if row['holds']:
        return []
    linear, shuffled = (table[f'ratio_to_{name}'] +
                        2 * table[f'ratio_to_{name}_se'] < 1
                        for name in ('linear', 'shuffled'))
    found = [
        (not linear.any(), 'No candidate predicts clearly better than the '
         'linear step: there is no evidence of interactions.'),
        (not shuffled[row.name], 'Predictions are as good with types dealt out '
         'to other pairs: the graph plays no part.'),
        (row['num_seeds'] < 2, 'With one seed, nothing is known of whether '
         'others find the same graph.'),
        (row['agreement_adjusted'] < 0.5,
         f"Do not trust the graph: seeds agree on {row['agreement']:.0%} of "
         f"the edges, where chance gives {row['agreement_by_chance']:.0%}."),
        (row['types_used'] < row['types'], f"Of {row['types']} types in all "
         f"runs, {row['types_used']} are used: try a smaller candidate."),
        (row['entropy_share'] > 0.1 and row.name > 0,
         f"Graphs are doubtful (entropy {row['entropy_share']:.0%} of the "
         f"highest), which favours layers too many: train longer."),
        (row.name == len(table) - 1 > 0,
         'The largest candidate is recommended: try larger ones.')
    ]
    return [warning for holds, warning in found if holds]
