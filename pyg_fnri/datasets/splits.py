"""Training, validation and test: which systems, which frames."""
from collections.abc import Sequence

import numpy as np

SPLITS = ('train', 'val', 'test')


def split_systems(
    num_systems: int,
    fractions: Sequence[float],
    seed: int,
) -> dict[str, list[int]]:
    """Deals systems out at random, each of them to one split.

    Validation and test get their fractions, rounded, and at least one system
    each if their fraction is not 0; training gets the rest.

    Args:
        num_systems (int): The number of systems.
        fractions (sequence of float): Of training, validation and test.
        seed (int): Seed of the shuffle.

    Returns:
        The numbers of each split's systems, ascending.

    Raises:
        ValueError: If none is left to train on.
    """
    _, val, test = check_fractions(fractions)
    sizes = [
        max(round(fraction * num_systems), int(fraction > 0))
        for fraction in (val, test)
    ]
    num_train = num_systems - sum(sizes)
    if num_train < 1:
        raise ValueError(
            f'{num_systems} systems are too few to split by the fractions '
            f'{list(fractions)}. Split them by time instead '
            f"(split_by='time', with a window), or take other fractions.")
    order = np.random.default_rng(seed).permutation(num_systems)
    parts = np.split(order, [num_train, num_train + sizes[0]])
    return {split: sorted(part.tolist()) for split, part in zip(SPLITS, parts)}


def split_time(num_steps: int, fractions: Sequence[float]) -> dict[str, range]:
    """Cuts a recording into three: its first part to train on, then
    validation, and the last part to test on. No frame is in two of them.

    Args:
        num_steps (int): The number of frames.
        fractions (sequence of float): Of training, validation and test.

    Returns:
        The frames of each split.
    """
    train, val, _ = check_fractions(fractions)
    cuts = [
        0,
        round(train * num_steps),
        round((train + val) * num_steps), num_steps
    ]
    return {
        split: range(start, stop)
        for split, start, stop in zip(SPLITS, cuts, cuts[1:])
    }


def windows(frames: range, length: int, stride: int) -> list[range]:
    """Cuts frames into windows, one every `stride` frames from the first on;
    frames that do not fill a last one are left over."""
    return [
        range(start, start + length)
        for start in range(frames.start, frames.stop - length + 1, stride)
    ]


def check_fractions(fractions: Sequence[float]) -> tuple[float, float, float]:
    """Fractions of training, validation and test.

    Raises:
        ValueError: If they are not three, one is negative, training's is 0 or
            they do not sum to 1.
    """
    try:
        train, val, test = (float(fraction) for fraction in fractions)
    except (TypeError, ValueError):
        raise ValueError(
            f'fractions is {fractions!r}, but must be three '
            f'numbers: of training, validation and test.') from None
    if not (train > 0 and val >= 0 and test >= 0
            and abs(train + val + test - 1) < 1e-6):
        raise ValueError(f'fractions is {fractions!r}, but must sum to 1, '
                         f'none of them below 0 and the first above 0.')
    return train, val, test
