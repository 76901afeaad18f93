"""Cutting recordings into the systems of a split."""
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Optional

import numpy as np

from pyg_fnri.datasets.recording import Recording, derive_velocity
from pyg_fnri.datasets.splits import (
    SPLITS,
    check_fractions,
    split_systems,
    split_time,
    windows,
)
from pyg_fnri.datasets.whole_numbers import whole


@dataclass(frozen=True)
class Cut:
    """Which recordings, and which of their frames, are in a split.

    Args:
        split: `'train'`, `'val'`, `'test'`, or `'all'`.
        fractions: Of training, validation and test.
        split_by: `'system'` or `'time'`; by default by time where there is
            one recording, and by system otherwise.
        seed: Seed of the split by system.
        window: Frames of a system; by default the whole recording.
        stride: Frames from the start of one window to the next; by default
            `window`.

    Raises:
        TypeError: If a number is not whole.
        ValueError: If a word is unknown or a number out of range.
    """
    split: str = 'all'
    fractions: Sequence[float] = (0.8, 0.1, 0.1)
    split_by: Optional[str] = None
    seed: int = 0
    window: Optional[int] = None
    stride: Optional[int] = None

    def __post_init__(self) -> None:
        if self.split not in (*SPLITS, 'all'):
            raise ValueError(f"split is {self.split!r}, but must be 'train', "
                             f"'val', 'test' or 'all'.")
        if self.split_by not in (None, 'system', 'time'):
            raise ValueError(f"split_by is {self.split_by!r}, but must be "
                             f"'system' or 'time'.")
        object.__setattr__(self, 'fractions', check_fractions(self.fractions))
        whole('seed', self.seed, 0)
        for name, least in (('window', 2), ('stride', 1)):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), least)
        if self.stride is not None and self.window is None:
            raise ValueError('stride says how far apart windows are; pass '
                             'window too, or leave it out.')

    def parts(
        self,
        recordings: Sequence[Recording],
    ) -> list[tuple[int, range, list[range]]]:
        """The systems to make, all of one length.

        Args:
            recordings (sequence of Recording): All recordings.

        Returns:
            For each recording that is in the split: its number; its frames
            that are in the split; and those of each system to make of it.

        Raises:
            ValueError: If a recording is too short, the recordings differ in
                length, or the split is empty.
        """
        out = []
        for number, block in self._blocks([r.x.shape[1] for r in recordings]):
            parts = [block]
            if self.window is not None:
                parts = windows(block, self.window, self.stride or self.window)
            if not parts:
                raise ValueError(
                    f'System {recordings[number].name!r} is too short: '
                    f'{len(block)} of its frames are for the split '
                    f'{self.split!r}, and a window takes {self.window}. Take '
                    f'shorter windows, or leave the system out.')
            out.append((number, block, parts))
        if not out:
            raise ValueError(f'No system is in the split {self.split!r} with '
                             f'the fractions {list(self.fractions)}.')
        first, last = (pick(out, key=lambda part: len(part[2][0]))
                       for pick in (min, max))
        if len(first[2][0]) != len(last[2][0]):
            raise ValueError(
                f'System {recordings[first[0]].name!r} has '
                f'{len(first[2][0])} frames and system '
                f'{recordings[last[0]].name!r} has {len(last[2][0])}, but all '
                f'must have as many; cut windows of equal length, e.g. with '
                f'window={len(first[2][0])}, or leave the short ones out.')
        return out

    def with_velocity(self, recording: Recording, block: range) -> Recording:
        """A recording with velocities derived from its positions, of those of
        its frames alone that are in the split; NaN elsewhere.

        Raises:
            ValueError: If these are fewer than 3.
        """
        if len(block) < 3:
            raise ValueError(
                f'System {recording.name!r} is too short: velocities take at '
                f'least 3 frames to derive from positions, but {len(block)} of '
                f'its frames are for the split {self.split!r}. Leave the '
                f'system out.')
        own = slice(block.start, block.stop)
        velocity = np.full_like(recording.x, np.nan)
        velocity[:, own] = derive_velocity(recording.x[:, own],
                                           recording.time_step)
        return replace(recording, x=np.concatenate([recording.x, velocity],
                                                   axis=-1))

    def _blocks(self, lengths: Sequence[int]) -> list[tuple[int, range]]:
        """Recordings in the split, and their frames that are."""
        if self.split == 'all':
            return [(k, range(length)) for k, length in enumerate(lengths)]
        if self.split_by == 'system' or (self.split_by is None
                                         and len(lengths) > 1):
            dealt = split_systems(len(lengths), self.fractions, self.seed)
            return [(k, range(lengths[k])) for k in dealt[self.split]]
        if self.window is None:
            raise ValueError(
                'A recording that is split by time is cut into windows; pass '
                'window, the number of frames of each, e.g. '
                f'window={max(2, min(lengths) // 10)}.')
        blocks = [(k, split_time(length, self.fractions)[self.split])
                  for k, length in enumerate(lengths)]
        return [(k, block) for k, block in blocks if len(block)]
