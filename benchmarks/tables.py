"""Results as JSON files, and tables of them in Markdown."""
import json
import math
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pandas as pd
import torch

from pyg_fnri import __version__
from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.evaluation.published import EDGE_TYPES, PARAMETERS
from pyg_fnri.nn.models import MODELS

#: The layers of the paper's data sets.
LAYERS = {
    'springs_charges': ['springs', 'charges'],
    'springs_charges_fsprings': ['springs', 'charges', 'finite springs'],
}
REGIMES = ('learned', 'supervised', 'true_graph', 'split', 'unsplit', 'em',
           'scratch')
BASELINES = ['random', 'majority class', 'static', 'linear']
MISSING = '–'


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
        if regime not in REGIMES:
            raise ValueError(f'There is no regime {regime}.')
        return cls(dataset, model, regime, int(seed))


def save_json(path: Path, content: Any) -> None:
    """Writes a file whole or not at all; what JSON lacks becomes text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(str(path)) as part:
        Path(part).write_text(json.dumps(content, indent=2, default=str) + '\n')


def provenance() -> dict[str, Any]:
    """What figures and minutes depend on besides the arguments."""
    cpuinfo = Path('/proc/cpuinfo')
    names = re.findall('model name\\s*: (.*)',
                       cpuinfo.read_text()) if cpuinfo.exists() else []
    out = dict(pyg_fnri=__version__, torch=str(torch.__version__),
               python=platform.python_version(),
               num_threads=torch.get_num_threads(),
               processor=[*names, platform.processor()][0])
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


def means(frame: pd.DataFrame, by: str, columns: Iterable[str],
          decimals: int = 1) -> pd.DataFrame:
    """A line for each label: means over seeds with their standard errors, of
    errors of rollouts with three digits, as in the paper's table 2."""
    groups = frame.groupby(by, sort=False)
    out = pd.DataFrame(
        {
            name: [
                mean_text(values, None if 'MSE' in name else decimals)
                for _, values in groups[name]
            ]
            for name in columns if name in frame and frame[name].notna().any()
        }, index=pd.Index(groups.groups, name=by))
    out['seeds'] = [' '.join(map(str, seeds)) for _, seeds in groups['seed']]
    return out


def mean_text(values: pd.Series, decimals: Optional[int]) -> str:
    """Such as `94.0 ± 1.4`, or `94.0` of a single run."""
    values = values.dropna()
    if values.empty:
        return MISSING
    mean = values.mean()
    if decimals is None:
        size = math.log10(abs(mean)) if 0 < abs(mean) < math.inf else 0
        decimals = max(0, 2 - int(size)) if size >= 0 else 1 - math.floor(size)
    error = f' ± {values.sem():.{decimals}f}' if len(values) > 1 else ''
    return f'{mean:.{decimals}f}{error}'


def load_results(directory: Path) -> pd.DataFrame:
    """The results of all cells by seed, a row for each kind of figures."""
    cells = {Cell.of(p.stem): p for p in sorted(directory.glob('*-*-*-*.json'))}
    return pd.DataFrame([
        row for cell in sorted(cells, key=lambda cell: cell.seed)
        for row in rows_of(cell, json.loads(cells[cell].read_text()))
    ])


def rows_of(cell: Cell, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of a model with its encoder's graphs (kind 'run') and with others, on
    either half of the frames, and of what is scored without a model."""
    figures = result['figures']
    accuracy = figures.get('edge_accuracy')
    kinds = {
        'run': figures,
        'refined': figures.get('refined', {}),
        'before': figures.get('before', {}),
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
        kinds[half] = {**of, 'edge_accuracy': accuracy}
        kinds[f'static, {half}'] = {'rollout_mse': of['static_mse']}
    for kind, of in kinds.items():
        row = flat(of, LAYERS.get(cell.dataset, []))
        if kind == 'refined':
            law_error = figures.get('law_error', {})
            row |= {
                f'{name} law error': 100 * e
                for name, e in law_error.items()
            }
        if row and kind in ('run', 'refined', 'observed', 'following'):
            row['minutes'] = result['minutes']
        if row:
            yield {
                **cell._asdict(), 'kind': kind,
                **row, 'trained': result['num_systems'][0],
                'tested': figures['num_systems'],
                'machine': ', '.join(map(str, result['provenance'].values()))
            }


def flat(figures: Mapping[str, Any], layers: list[str]) -> dict[str, float]:
    """Accuracies in per cent, errors in 1e-5 of min-max units."""
    accuracy, row = figures.get('edge_accuracy'), {}
    if accuracy:
        shares = (accuracy['combined'], *accuracy['layers'])
        row = {
            name: 100 * share
            for name, share in zip(['combined', *layers], shares)
        }
    errors = figures.get('rollout_mse') or {}
    row |= {f'MSE {horizon}': 1e5 * error for horizon, error in errors.items()}
    if figures.get('calibration_error'):
        row['ECE'] = 100 * figures['calibration_error']['combined']
    return row


def paper_table(frame: pd.DataFrame, columns: list[str],
                paper: Mapping[str, tuple[float, ...]]) -> pd.DataFrame:
    """Table 1 or 2: ours beside the paper's."""
    run = frame['model'] + ' (' + frame['regime'].str.replace('_', ' ') + ')'
    is_run = frame['kind'] == 'run'
    frame = frame.assign(row=frame['kind'].mask(is_run, run))
    # Baselines are the same in all runs.
    ours = frame[is_run
                 | frame['kind'].isin(BASELINES) & ~frame.duplicated('row')]
    ours = means(ours.dropna(subset=columns[:1]), 'row', [*columns, 'minutes'])
    theirs = pd.DataFrame.from_dict(paper, 'index', columns=columns)
    theirs = means(theirs.assign(row=theirs.index, seed=''), 'row', columns)
    return ours.rename(columns={
        c: f'{c}, ours'
        for c in columns
    }).join(theirs[columns].add_suffix(', paper'), how='outer').fillna(MISSING)


def parameter_table(dataset: str) -> pd.DataFrame:
    """Table 3: numbers of parameters of untrained models, counted."""
    rows = {}
    for model, published in PARAMETERS[dataset].items():
        built = MODELS[model](4, 49, [2] * len(LAYERS[dataset]),
                              hidden_channels=256)
        ours = [
            sum(p.numel() for p in part.parameters())
            for part in (built.encoder, built.decoder)
        ]
        rows[model] = ('+'.join(map(str, EDGE_TYPES[dataset][model])), *ours,
                       *published)
    return pd.DataFrame.from_dict(
        rows, 'index', columns=[
            'K', 'encoder, ours', 'decoder, ours', 'encoder, paper',
            'decoder, paper'
        ])


def rows_by_kind(frame: pd.DataFrame, labels: Mapping[tuple[str, str],
                                                      str]) -> pd.DataFrame:
    """The rows of regimes and kinds that have a label, in their order."""
    return pd.concat([
        frame[(frame['regime'] == regime)
              & (frame['kind'] == kind)].assign(row=label)
        for (regime, kind), label in labels.items()
    ])


def notes_of(frame: pd.DataFrame, command: str) -> str:
    """Command, systems and machines behind a table."""
    trained, tested, machines = (' or '.join(map(str, frame[key].unique()))
                                 for key in ('trained', 'tested', 'machine'))
    return (
        f'Made by `{command}`; trained on {trained} systems and measured on '
        f'{tested} of the test split, with {machines}; ± is the standard '
        f'error of the mean over seeds. How to read it: '
        f'[README](../README.md#how-to-read-the-tables).')
