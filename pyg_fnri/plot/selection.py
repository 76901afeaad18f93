"""Candidates beside each other: errors, and agreement of seeds."""
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pyg_fnri.plot.style import COLORS, INK, PALE, make_panels

#: Columns that are drawn.
NEEDED = ('candidate', 'recommended', 'ratio_to_best', 'ratio_to_best_se',
          'ratio_to_linear', 'agreement', 'agreement_by_chance')


def plot_selection(table: pd.DataFrame, horizon: int) -> Figure:
    """Draw how well candidates predict and how far their seeds agree.

    Errors are drawn as multiples of the best candidate's, with the standard
    error of that ratio: those whose bar reaches 1 are as good, by the
    one-standard-error rule. Whether the linear step, which knows no
    interaction, is in sight or not, its error is noted.

    Args:
        table (pandas.DataFrame): A row for each candidate with the columns
            :obj:`candidate`, :obj:`recommended`, :obj:`ratio_to_best` and
            its standard error :obj:`ratio_to_best_se`,
            :obj:`ratio_to_linear`, and :obj:`agreement` and
            :obj:`agreement_by_chance`, NaN of a single seed.
        horizon (int): Steps of the rollouts whose errors are drawn.

    Raises:
        ValueError: If a column is missing, there are no rows, or no error is
            finite.
    """
    missing = [column for column in NEEDED if column not in table]
    if missing or not len(table):
        raise ValueError(f'table has {len(table)} rows and lacks the columns '
                         f'{missing}: expected a row for each candidate, with '
                         f'all of them.')
    if not np.isfinite(table['ratio_to_best']).any():
        raise ValueError('No ratio_to_best is finite: expected at least one '
                         'that can be drawn.')
    figure, (left, right) = make_panels(2, 4.6, height=3.2)
    colors = [
        COLORS[1] if chosen else COLORS[0] for chosen in table['recommended']
    ]
    _draw_errors(left, table, colors)
    left.set_ylabel(f"error over {horizon} steps (best = 1)")
    _draw_agreement(right, table, colors)
    for ax in (left, right):
        ax.set_xticks(np.arange(len(table)), list(table['candidate']))
        for label, chosen in zip(ax.get_xticklabels(), table['recommended']):
            label.set_fontweight('bold' if chosen else 'normal')
        ax.set_xlim(-0.6, len(table) - 0.4)
        ax.set_xlabel('types of each layer; bold: recommended')
        ax.grid(axis='y', color='#E6E6E6')
        ax.set_axisbelow(True)
        ax.spines[['top', 'right']].set_visible(False)
        ax.spines[['left', 'bottom']].set_color(PALE)
    return figure


def _draw_errors(ax: Axes, table: pd.DataFrame, colors: list[str]) -> None:
    ratio = table['ratio_to_best'].to_numpy(float)
    spread = np.nan_to_num(table['ratio_to_best_se'].to_numpy(float))
    finite = np.isfinite(ratio)
    for x, color in enumerate(colors):
        if finite[x]:
            ax.errorbar(x, ratio[x], spread[x], fmt='o', ms=6, color=color,
                        capsize=4, lw=1.6)
        else:
            ax.text(x, 0.5, 'diverges', rotation=90, ha='center', va='center',
                    color=INK, fontsize=8, transform=ax.get_xaxis_transform())
    low = (ratio - spread)[finite].min()
    high = (ratio + spread)[finite].max()
    margin = max(0.12 * (high - low), 0.02)
    ax.set_ylim(low - margin, high + 2 * margin)  # The linear step, or not.
    ax.axhline(1, color=PALE, lw=1.2)
    best = ratio[finite].argmin()
    linear = 1 / table['ratio_to_linear'].to_numpy(float)[finite][best]
    ax.axhline(linear, color=INK, lw=1.2, ls=(0, (3, 2)))
    ax.set_title(f'held-out systems; dashes, linear step: {linear:.2f}',
                 fontsize=10, color=INK)


def _draw_agreement(ax: Axes, table: pd.DataFrame, colors: list[str]) -> None:
    ax.bar(np.arange(len(table)), 100 * table['agreement'], 0.6, color=colors)
    for x, chance in enumerate(table['agreement_by_chance']):
        ax.plot([x - 0.38, x + 0.38], 2 * [100 * chance], color=INK, lw=2,
                solid_capstyle='butt')
    ax.set_ylim(0, 105)
    ax.set_ylabel('edges (%)')
    title = 'agreement of seeds (lines: by chance)'
    if table['agreement'].isna().all():
        title = 'agreement of seeds: not known of one'
    ax.set_title(title, fontsize=10, color=INK)
