"""Arguments of pictures, as arrays that can be drawn."""
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import torch


def finite_array(
    name: str,
    values: Any,
    shape: Sequence[Optional[int]],
    layout: str,
) -> np.ndarray:
    """Finite numbers as an array.

    Args:
        name: What to call them in an error.
        values: A tensor, an array or nested sequences.
        shape: Expected sizes; :obj:`None` stands for any.
        layout: How to tell the expected shape in an error.

    Raises:
        ValueError: If the shape does not fit or a value is not finite.
    """
    array = torch.as_tensor(values).detach().cpu().numpy()
    if array.ndim != len(shape) or any(
            size not in (None, found)
            for size, found in zip(shape, array.shape)):
        raise ValueError(f'{name} has shape {list(array.shape)}, expected '
                         f'{layout}.')
    if not np.isfinite(array).all():
        raise ValueError(f'{name} holds NaN or infinite values: expected '
                         f'finite numbers.')
    return array


def check_count(name: str, count: int, expected: int, what: str) -> None:
    """Raises a :class:`ValueError` if an argument is for too many or too few
    of something."""
    if count != expected:
        raise ValueError(f'{name} is for {count} {what}, expected {expected}.')
