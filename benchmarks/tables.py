"""Results as JSON files, and tables of them in Markdown."""
import json
import math
import platform
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pandas as pd
import torch

from pyg_fnri import __version__
from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.evaluation.published import EDGE_TYPES, HORIZONS, PARAMETERS
from pyg_fnri.nn.models import MODELS

#: What the paper calls its data sets, and its layers.
TITLES = {'springs_charges': 'I+C', 'springs_charges_fsprings': 'I+C+F'}
LAYERS = {
    'springs_charges': ['springs', 'charges'],
    'springs_charges_fsprings': ['springs', 'charges', 'finite springs'],
}
MSE = [f'MSE {h}' for h in HORIZONS]
HALF_HORIZONS = (1, 5, 10, 20, 40)
BASELINES = ('random', 'majority class', 'static', 'linear')
MISSING = '–'
#: Columns that are no figures.
META = ('dataset', 'model', 'regime', 'seed', 'kind', 'label', 'made')


class Cell(NamedTuple):
    """A training run; its name is that of its result's file."""
    dataset: str
    model: str
    regime: str
    seed: int

    @property
    def name(self) -> str:
        return '-'.join(map(str, self))

    @classmethod
    def of(cls, name: str) -> 'Cell':
        dataset, model, regime, seed = name.split('-')
        return cls(dataset, model, regime, int(seed))


def save_json(path: Path, content: Any) -> None:
    """Writes a file whole or not at all; what JSON lacks becomes text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(str(path)) as part:
        text = json.dumps(content, indent=2, default=str)
        Path(part).write_text(text + '\n')


def provenance() -> dict[str, Any]:
    """What figures and minutes depend on besides the arguments."""
    processor, cpuinfo = platform.processor(), Path('/proc/cpuinfo')
    if cpuinfo.exists():
        names = (line.partition(': ')[2]
                 for line in cpuinfo.read_text().splitlines()
                 if line.startswith('model name'))
        processor = next(names, processor)
    out = {
        'pyg_fnri': __version__,
        'torch': str(torch.__version__),
        'python': platform.python_version(),
        'num_threads': torch.get_num_threads(),
        'processor': processor,
    }
    if torch.cuda.is_available():
        out['gpu'] = torch.cuda.get_device_name()
    return out


def publish(path: Path, title: str, tables: Mapping[str, pd.DataFrame],
            notes: Iterable[str]) -> None:
    """Prints tables, and writes them as Markdown with notes below."""
    parts = [f'# {title}']
    for name, frame in tables.items():
        print(f'\n{title}, {name}\n{frame.to_string()}')
        parts += [f'## {name}', markdown(frame)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(str(path)) as part:
        Path(part).write_text('\n\n'.join([*parts, *notes]) + '\n')
    print(f'written into {path}')


def markdown(frame: pd.DataFrame) -> str:
    """As `DataFrame.to_markdown`, which needs one more package."""
    head = [frame.index.name or '', *frame]
    rows = [head, ['---', *['---:'] * len(frame.columns)], *frame.itertuples()]
    return '\n'.join(f"| {' | '.join(map(str, row))} |" for row in rows)


def means(frame: pd.DataFrame, by: str = 'label',
          decimals: int = 1) -> pd.DataFrame:
    """A line for each label: means over seeds with their standard errors, of
    errors of rollouts with three digits, as in the paper's table 2."""
    groups = frame.groupby(by, sort=False)
    figures = frame.drop(columns=[*META, by], errors='ignore')
    out = pd.DataFrame({
        name:
        groups[name].agg(
            partial(mean_text, decimals=None if 'MSE' in name else decimals))
        for name in figures.dropna(axis=1, how='all')
    })
    out['seeds'] = groups['seed'].agg(lambda of: ' '.join(map(str, of)))
    return out.rename_axis('' if by == 'label' else by)


def mean_text(values: pd.Series, decimals: Optional[int]) -> str:
    """Such as `94.0 ± 1.4`, or `94.0` of a single run."""
    values = values.dropna()
    if values.empty:
        return MISSING
    mean = values.mean()
    if decimals is None:
        decimals = digits(mean)
    error = f' ± {values.sem():.{decimals}f}' if len(values) > 1 else ''
    return f'{mean:.{decimals}f}{error}'


def digits(value: float) -> int:
    """Decimals that leave three digits, and two of what is less than 1."""
    if not math.isfinite(value) or value == 0:
        return 2
    exponent = math.floor(math.log10(abs(value)))
    return max(0, 2 - exponent) if exponent >= 0 else 1 - exponent


def load_results(directory: Path) -> pd.DataFrame:
    """The results of all cells by seed, a row for each kind of figures."""
    cells = {Cell.of(p.stem): p for p in sorted(directory.glob('*-*-*-*.json'))}
    frame = pd.DataFrame([
        row for cell in sorted(cells, key=lambda cell: cell.seed)
        for row in rows_of(cell, json.loads(cells[cell].read_text()))
    ])
    first = [
        'combined', *LAYERS['springs_charges_fsprings'],
        *(f'MSE {h}' for h in HALF_HORIZONS), 'ECE'
    ]
    return frame[[c for c in first if c in frame] +
                 [c for c in frame if c not in first]]


def rows_of(cell: Cell, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of a model with its encoder's graphs (kind ''), with others, on either
    half of the frames, and of what is scored without a model."""
    figures = result['figures']
    kinds = {
        '': figures,
        **{
            key: figures.get(key)
            for key in ('refined', 'before')
        },
        'random': {
            'edge_accuracy': figures.get('random_accuracy')
        },
        'majority class': {
            'edge_accuracy': figures.get('majority_accuracy')
        },
        'static': {
            'rollout_mse': figures.get('static_mse')
        },
        'linear': {
            'rollout_mse': figures.get('linear_mse')
        },
    }
    for half, of in figures.get('halves', {}).items():
        kinds[half] = {**of, 'edge_accuracy': figures.get('edge_accuracy')}
        kinds[f'static, {half}'] = {'rollout_mse': of['static_mse']}
    made = (result['num_systems'][0], figures['num_systems'],
            ', '.join(f'{k} {v}' for k, v in result['provenance'].items()))
    for kind, of in kinds.items():
        row = flat(of or {}, LAYERS.get(cell.dataset, []))
        if kind == 'refined' and row:
            row |= {
                f'{name} law error': 100 * error
                for name, error in figures.get('law_error', {}).items()
            }
        if row and kind in ('', 'refined', 'observed', 'following'):
            row['minutes'] = result['minutes']
        if row:
            yield {**cell._asdict(), 'kind': kind, 'made': made, **row}


def flat(figures: Mapping[str, Any], layers: list[str]) -> dict[str, float]:
    """Accuracies in per cent, errors in 1e-5 of min-max units."""
    accuracy, row = figures.get('edge_accuracy'), {}
    if accuracy:
        shares = (accuracy['combined'], *accuracy['layers'])
        row = dict(zip(['combined', *layers], (100 * s for s in shares)))
    errors = figures.get('rollout_mse') or {}
    row |= {f'MSE {horizon}': 1e5 * e for horizon, e in errors.items()}
    if figures.get('calibration_error'):
        row['ECE'] = 100 * figures['calibration_error']['combined']
    return row


def paper_table(frame: pd.DataFrame, columns: list[str],
                paper: Mapping[str, tuple[float, ...]]) -> pd.DataFrame:
    """Table 1 or 2: ours beside the paper's."""
    run = frame['model'] + ' (' + frame['regime'].str.replace('_', ' ') + ')'
    frame = frame.assign(label=frame['kind'].where(frame['kind'] != '', run))
    frame = frame[frame['kind'].isin(['',
                                      *BASELINES])].dropna(subset=columns[:1])
    # Baselines are the same in all runs.
    frame = frame[(frame['kind'] == '') | ~frame.duplicated('label')]
    ours = means(frame[['label', *columns, 'minutes', 'seed']])
    theirs = pd.DataFrame.from_dict(paper, 'index', columns=columns)
    theirs = means(theirs.rename_axis('label').reset_index().assign(seed=''))
    return ours.rename(columns={
        c: f'{c}, ours'
        for c in columns
    }).join(theirs[columns].add_suffix(', paper'), how='outer').fillna(MISSING)


def parameter_table(dataset: str) -> pd.DataFrame:
    """Table 3: numbers of parameters of untrained models, counted."""
    rows = []
    for model, published in PARAMETERS[dataset].items():
        built = MODELS[model](4, 49, [2] * len(LAYERS[dataset]),
                              hidden_channels=256)
        row = {'': model, 'K': '+'.join(map(str, EDGE_TYPES[dataset][model]))}
        for part, theirs in zip(('encoder', 'decoder'), published):
            ours = sum(p.numel() for p in getattr(built, part).parameters())
            row |= {f'{part}, ours': ours, f'{part}, paper': theirs}
        rows.append(row)
    return pd.DataFrame(rows).set_index('')


def labelled(frame: pd.DataFrame, labels: Mapping[tuple[str, str],
                                                  str]) -> pd.DataFrame:
    """The rows of regimes and kinds that have a label, in their order."""
    keys = list(zip(frame['regime'], frame['kind']))
    frame = frame.assign(label=[labels.get(key) for key in keys])
    order = list(labels.values())
    return frame.dropna(subset='label').sort_values(
        'label', key=lambda column: column.map(order.index), kind='stable')


def notes_of(frame: pd.DataFrame, command: str) -> str:
    """Command, systems and machines behind a table."""
    trained, tested, machines = (' or '.join(map(str, dict.fromkeys(values)))
                                 for values in zip(*frame['made']))
    num = len(frame.drop_duplicates(['dataset', 'model', 'regime', 'seed']))
    return (
        f'Made by `{command}` of {num} runs, trained on {trained} systems '
        f'and measured on {tested} of the test split, with {machines}; ± is '
        f'the standard error of the mean over seeds. How to read it: '
        f'[README](../README.md#how-to-read-the-tables).')
