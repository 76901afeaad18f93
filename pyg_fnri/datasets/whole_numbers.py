"""Whole numbers among arguments."""
import operator
from typing import Any


def whole(name: str, value: Any, least: int) -> int:
    """Gives a whole number as plain Python has it.

    Raises:
        TypeError: If it is something else, `True` and `False` included.
        ValueError: If it is below `least`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f'{name} must be a whole number, not {value!r}.')
    if number < least:
        raise ValueError(f'{name} must be at least {least}, not {value}.')
    return number
