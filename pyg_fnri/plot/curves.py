"""Losses, errors and accuracies over training."""
import pandas as pd
from matplotlib.figure import Figure

from pyg_fnri.plot.style import COLORS, make_panels

#: What the names of columns hold, and what their panel is called.
PANELS = {
    'loss': 'loss',
    'mse': 'mean squared error, 1e-5',
    'share': 'share',
    'accuracy': 'edge accuracy',
}


def plot_curves(history: pd.DataFrame) -> Figure:
    r"""Draw losses, errors of rollouts, shares and edge accuracies over
    training.

    Args:
        history (pandas.DataFrame): A row per log entry. Columns with "loss"
            in their name share one panel, and so do those with "mse", on a
            logarithmic axis, with "share" and with "accuracy"; the
            horizontal axis is :obj:`step`, or :obj:`epoch` where there is
            none. Empty cells are skipped, as entries rarely fill every column.

    Raises:
        TypeError: If the history is no data frame.
        ValueError: If there is nothing to draw.
    """
    if not isinstance(history, pd.DataFrame):
        raise TypeError(f'history must be a pandas.DataFrame, got '
                        f'{type(history).__name__}.')
    axis = next((name for name in ('step', 'epoch') if name in history), None)
    columns = {
        kind: [
            name for name in history
            if kind in str(name) and history[name].notna().any()
        ]
        for kind in PANELS
    }
    kinds = [kind for kind, names in columns.items() if names]
    if axis is None or not kinds:
        raise ValueError(
            f'history has the columns {list(history)}: expected step '
            f'or epoch, and one with "loss", "mse", "share" or '
            f'"accuracy" in its name that is not empty.')
    figure, axes = make_panels(len(kinds), 4.2, height=3.)
    for kind, ax in zip(kinds, axes):
        for index, name in enumerate(columns[kind]):
            curve = history[[axis, name]].dropna()
            ax.plot(curve[axis], curve[name], label=name, lw=1.8,
                    color=COLORS[index % len(COLORS)])
        ax.set_xlabel(axis)
        ax.set_ylabel(PANELS[kind])
        if kind == 'mse':
            ax.set_yscale('log')
        ax.grid(color='#E6E6E6')
        ax.spines[['top', 'right']].set_visible(False)
        ax.legend(frameon=False, fontsize=9)
    return figure
