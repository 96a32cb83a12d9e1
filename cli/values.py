"""Values of tensors as text for people."""

from __future__ import annotations

import itertools
from typing import Any


def shown_float(value: Any) -> str:
    """The shortest decimal that reads back as the same float of its type; ``12`` rather than
    ``12.0``.
    """
    text = str(value)
    return text.removesuffix(".0")


def shown_value(name: str, value: Any) -> str:
    """One number's value in the column ``name``."""
    import numpy as np

    array = np.asarray(value)
    if fields := bit_fields(name, array):
        return grouped_bits(array, fields)
    if array.ndim == 0:
        return shown_float(value)
    if array.ndim == 1 and np.issubdtype(array.dtype, np.integer):
        return (
            "".join(str(digit) for digit in array.tolist())
            if array.max(initial=0) < 10
            else " ".join(map(str, array.tolist()))
        )
    return " ".join(
        f"{value:+.2f}" if array.ndim == 1 else f"({value[0]:+.2f} {value[1]:+.2f})"
        for value in array.tolist()
    )


def holds_bits(name: str) -> bool:
    """Whether the values in the column ``name`` are bits."""
    from numtok.representations import streams

    return any(column.bit_fields for column in streams()[name])


def bit_fields(name: str, value: Any) -> tuple[int, ...]:
    """How many bits each part of a value in the column ``name`` has, an array or a scalar of numpy;
    none if they are no bits.
    """
    from numtok.representations import streams

    size = value.size if value.ndim else 8 * value.itemsize
    return next(
        (column.bit_fields for column in streams()[name] if sum(column.bit_fields) == size), ()
    )


def grouped_bits(array: Any, fields: tuple[int, ...]) -> str:
    """Bits, as a number or one by one, with a space between the fields: sign, exponent and mantissa
    of a float, or of several.
    """
    bits = f"{int(array):0{sum(fields)}b}" if array.ndim == 0 else "".join(map(str, array.tolist()))
    stops = itertools.accumulate(fields)
    return " ".join(bits[stop - field : stop] for stop, field in zip(stops, fields, strict=True))
