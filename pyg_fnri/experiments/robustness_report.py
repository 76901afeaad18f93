"""Tables and curves of how robust laws and graphs are."""
import math
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, Optional, Union

import pandas as pd

from pyg_fnri.experiments.ablations import ABLATIONS
from pyg_fnri.experiments.report import (
    MISSING,
    Report,
    Summary,
    Table,
    seeds_text,
)
from pyg_fnri.experiments.robustness import ABLATION, CURVES, Study
from pyg_fnri.experiments.robustness_records import Record, Records

LAYERS = ('spring', 'charge')
COLUMNS = ('combined', *LAYERS, *(f'{layer} law error' for layer in LAYERS),
           'ECE', 'sampled: combined', 'sampled: ECE', 'confirmed', 'seeds',
           'CPU s of laws', 'CPU s of graphs')


def robustness_report(study: Study, records: Records, seeds: Iterable[int],
                      command: str) -> Report:
    """A table for each curve, and one of the ablations.

    Args:
        study: What was to be measured.
        records: What was measured.
        seeds: Of which seeds.
        command: What makes this report.
    """
    seeds = list(seeds)
    tables: list[Table] = []
    made: list[Record] = []
    for key, curve in CURVES.items():
        rows = []
        for value in study.values[key]:
            found = _found(study, records, key, value, seeds)
            rows += _rows(f'{value:g}', found)
            made += found.values()
        tables.append(Table(curve.title, [curve.axis, *COLUMNS], rows))
    rows = []
    for name in ABLATIONS:
        found = _found(study, records, 'ablation', name, seeds)
        rows += _rows(name, found)
        made += found.values()
    tables.append(Table(ABLATION.title, [ABLATION.axis, *COLUMNS], rows))
    return Report('How robust laws and graphs from nothing are', tables,
                  _notes(study, made, command))


def robustness_curves(study: Study, records: Records,
                      seeds: Iterable[int]) -> dict[str, pd.DataFrame]:
    """What :func:`~pyg_fnri.plot.plot_robustness` draws: by axis, a row for
    each point that was measured.

    Args:
        study: What was to be measured.
        records: What was measured.
        seeds: Of which seeds.
    """
    seeds = list(seeds)
    panels: dict[str, pd.DataFrame] = {}
    for key, curve in CURVES.items():
        rows = []
        for value in study.values[key]:
            for record in _found(study, records, key, value, seeds).values():
                rows.append({'value': value, **_row(record['figures'])})
        if rows:
            panels[curve.axis] = pd.DataFrame(rows)
    return panels


def _found(study: Study, records: Records, curve: str, value: Union[float, str],
           seeds: Sequence[int]) -> dict[int, Record]:
    return records.of(study.point(curve, value, seed) for seed in seeds)


def _row(figures: dict[str, Any]) -> dict[str, float]:
    if 'failed' in figures:
        return {'accuracy': math.nan}
    refined = figures['refined']
    row = {'accuracy': refined['combined']}
    for layer, accuracy in zip(LAYERS, refined['layers']):
        row[f'accuracy_{layer}'] = accuracy
    if figures['law_error'] is not None:
        for layer in LAYERS:
            row[f'law_error_{layer}'] = figures['law_error'][layer]
    return row


def _rows(heading: str, found: dict[int, Record]) -> list[list[str]]:
    """One of the seeds that went well, and one for each way to fail."""
    if not found:
        return [[heading, *[MISSING] * len(COLUMNS)]]
    well = {
        s: r['figures']
        for s, r in found.items() if 'failed' not in r['figures']
    }
    rows = [[heading, *_cells(well)]] if well else []
    reasons: dict[str, dict[int, Record]] = {}
    for seed, record in found.items():
        if seed not in well:
            reason = record['figures']['failed']
            reasons.setdefault(reason, {})[seed] = record
    for reason, failed in reasons.items():
        rest = [''] * (len(COLUMNS) - 1)
        rest[COLUMNS.index('seeds') - 1] = seeds_text(failed)
        rows.append([heading, f"failed: {reason.replace('|', '/')}", *rest])
    return rows


def _cells(well: dict[int, dict[str, Any]]) -> list[str]:
    runs = list(well.values())
    confirmed = sum(run['confirmed'] for run in runs)
    return [
        _percent(runs, lambda run: run['refined']['combined']),
        *(_percent([run['refined']['layers'] for run in runs], itemgetter(i))
          for i in range(len(LAYERS))),
        *(_percent([run.get('law_error') for run in runs], itemgetter(layer))
          for layer in LAYERS),
        _percent(runs, lambda run: run['refined']['calibration_error']),
        _percent(runs, lambda run: run['sampled']['combined']),
        _percent(runs, lambda run: run['sampled']['calibration_error']),
        f'{confirmed} of {len(runs)}',
        seeds_text(well),
        _text(Summary.of(run['discovery_seconds'] for run in runs), 0),
        _text(Summary.of(run['refined']['seconds'] for run in runs), 1),
    ]


def _percent(
    runs: Sequence[Any],
    value: Callable[[Any], float],
) -> str:
    """The mean over the runs that have such a figure."""
    values = []
    for run in runs:
        try:
            values.append(100 * value(run))
        except (KeyError, TypeError):  # Not sampled; or no law of its own.
            continue
    text = _text(Summary.of(values), 2)
    if values and len(values) < len(runs):
        text += f' (n = {len(values)})'
    return text


def _text(summary: Optional[Summary], decimals: int) -> str:
    return MISSING if summary is None else summary.text(decimals)


def _notes(study: Study, made: Sequence[Record], command: str) -> list[str]:
    standard = study.standard
    frames = standard.num_observed
    notes = [
        f'Systems of springs and charges (I+C), simulated; where nothing else '
        f'is said, laws are found on {standard.num_training} systems of '
        f'{standard.num_particles} particles, from nothing (the encoder has '
        f'not been trained, no label is looked at), with {frames} frames '
        f'observed and as many that follow, {standard.interval:g} s apart and '
        f'without noise; then the graphs of {standard.num_test} unseen systems '
        f'are inferred from their {frames} observed frames. A curve varies one '
        f'of these.',
        'Combined, spring, charge: edge accuracy of the refined graphs of the '
        'unseen systems (test split) in per cent, strict: one relabelling for '
        'all systems. Law error: mean absolute error of a law over its mean '
        'size, in per cent, at the distances seen of pairs that it acts on in '
        f'unseen systems of 5 particles (1 to 99 %); {MISSING} where no law '
        'found stands for one force alone. ECE: expected calibration error of '
        'the combined types, in per cent. Sampled: the same, by Gibbs sampling '
        'of the posterior. Confirmed: in how many of the runs two starts found '
        'equally good laws; where they did not, and no label is at hand, the '
        'laws are not to be trusted. Each seed has systems, initial weights '
        'and random starts of its own; ± is the standard error of the mean '
        'over seeds. Points of the curve of particles share their laws. '
        'Frames, at another interval, are as many as else: they span another '
        'time. CPU s: seconds of one core.',
        f'Noise is Gaussian and independent, on positions and velocities of '
        f'all frames of training systems and of unseen ones{_noise(made)}.',
        f'Extent: {study.name}. Made by `{command}`.',
    ]
    if not made:
        return [*notes, 'Nothing has been measured yet.']
    machines = dict.fromkeys(
        f"pyg_fnri {p['pyg_fnri']}, torch {p['torch']}, {p['num_threads']} "
        f"thread{'s' * (p['num_threads'] != 1)} of {p['processor']}"
        for p in (record['provenance'] for record in made))
    encoders = dict.fromkeys(r['encoder'] for r in made if r.get('encoder'))
    if encoders:
        notes.append(f"Trained encoder: {', '.join(encoders)}.")
    else:
        notes.append('The ablations of a trained encoder were not measured: '
                     'they need a checkpoint, given with `--encoder`.')
    return [*notes, f"Run with {'; '.join(machines)}."]


def _noise(made: Sequence[Record]) -> str:
    """What the noise is in physical units."""
    for record in made:
        percent = record['condition']['noise_percent']
        if percent and 'noise' in record['figures']:
            noise = [value / percent for value in record['figures']['noise']]
            half = len(noise) // 2
            return (f'; 1 % is {sum(noise[:half]) / half:.3g} m and '
                    f'{sum(noise[half:]) / half:.3g} m/s')
    return ''
