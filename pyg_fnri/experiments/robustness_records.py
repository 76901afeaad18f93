"""What was measured at the points of a study: one JSON file each."""
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Optional

from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.experiments.results import provenance
from pyg_fnri.experiments.robustness import Point

Record = dict[str, Any]


class Records:
    """The measurements in a directory, by point.

    Args:
        directory: Where they are.
    """
    def __init__(self, directory: str) -> None:
        self.directory = directory

    def path(self, point: Point) -> str:
        """Where a point's measurement is, or will be."""
        return os.path.join(self.directory, f'{point.name}.json')

    def load(self, point: Point) -> Optional[Record]:
        """What was measured; None if nothing was, or under a condition that
        the point has no longer.

        Raises:
            ValueError: If the file is not what :meth:`save` writes.
        """
        path = self.path(point)
        if not os.path.exists(path):
            return None
        try:
            with open(path) as file:
                record = json.load(file)
            condition, sampled = record['condition'], record['sampled_too']
            if 'failed' not in record['figures']:
                record['figures']['refined']['combined']
        except (TypeError, ValueError, KeyError) as error:
            raise ValueError(f"'{path}' is not a measurement of this study "
                             f"({error!r}); delete it, and measure the point "
                             f"again.") from error
        if condition != _plain(point) or sampled < point.sampled:
            return None
        return record

    def save(self, point: Point, figures: dict[str, Any],
             **further: Any) -> None:
        """Writes a measurement; whole or not at all.

        Args:
            point: Where it was made.
            figures: What came out.
            **further: Whatever else belongs to it.
        """
        record = {
            'point': point.name,
            'condition': _plain(point),
            'sampled_too': point.sampled,
            'figures': figures,
            **further, 'provenance': provenance()
        }
        with written_whole(self.path(point)) as part:
            with open(part, 'w') as file:
                json.dump(record, file, indent=2)
                file.write('\n')

    def of(self, points: Iterable[Point]) -> dict[int, Record]:
        """Those that there are of points that differ in their seed, by
        seed."""
        found = {point.seed: self.load(point) for point in points}
        return {seed: r for seed, r in found.items() if r is not None}


def _plain(point: Point) -> Any:
    """A condition as JSON gives it back."""
    return json.loads(json.dumps(asdict(point.condition)))
