"""Whole numbers among arguments."""
import operator
from typing import Any


def check_whole(name: str, value: Any, least: int) -> None:
    """Checks an optional whole number.

    Raises:
        TypeError: If it is something else.
        ValueError: If it is below `least`.
    """
    if value is None:
        return
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f'{name} must be a whole number, not {value!r}.') from None
    if number < least:
        raise ValueError(f'{name} must be at least {least}, not {value}.')
