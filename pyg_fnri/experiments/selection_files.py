"""The files of a comparison, which appear together."""
import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.experiments.candidate import Candidate
from pyg_fnri.experiments.held_out import HeldOut
from pyg_fnri.experiments.selection import Selection
from pyg_fnri.experiments.selection_record import selection_record
from pyg_fnri.experiments.selection_report import selection_frame
from pyg_fnri.plot import plot_selection


def write_selection(
    out: str,
    selection: Selection,
    runs: Mapping[Candidate, Sequence[HeldOut]],
    **made: Any,
) -> list[str]:
    """Writes all that a comparison came to: selection.json, selection.csv and
    selection.png.

    Args:
        out: The directory.
        selection: The comparison.
        runs: The measurements that it has been made of.
        **made: How these were made, for the record.

    Returns:
        The names of the files.
    """
    frame = selection_frame(selection)
    figure = plot_selection(frame, selection.horizon)
    record = {**selection_record(selection, runs), **made}
    names = ['selection.json', 'selection.csv', 'selection.png']
    with contextlib.ExitStack() as stack:
        text, csv, picture = (stack.enter_context(
            written_whole(os.path.join(out, name))) for name in names)
        frame.to_csv(csv, index=False)
        figure.savefig(picture, format='png')
        Path(text).write_text(
            json.dumps(record, indent=2, allow_nan=False) + '\n')
    return names
