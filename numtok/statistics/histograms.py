"""Histograms as JSON: their labels in place of the places in an array, and nothing for empty bins.

In: :class:`~numtok.statistics.digits.Digits` and :class:`~numtok.statistics.surfaces.Written`. Out:
    dicts, ``{"significant_digits": {"1": 12, "4": 3}, ...}``, and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.statistics.digits import LARGEST_DECADE, Digits
from numtok.statistics.surfaces import FIRST_YEAR, FORMS, MARKS, SIDE_BY_SIDE, Written

Ints = npt.NDArray[np.int64]


class _Labels(NamedTuple):
    """What a histogram is called, and the label of each of its bins and back."""

    name: str
    label: Callable[[int], str]
    place: Callable[[str], int]


def _from(first: int, step: int = 1) -> tuple[Callable[[int], str], Callable[[str], int]]:
    return (lambda place: str(first + step * place)), (lambda label: (int(label) - first) // step)


def _named(names: tuple[str, ...]) -> tuple[Callable[[int], str], Callable[[str], int]]:
    return names.__getitem__, names.index


_DIGITS = {
    "significant": _Labels("significant_digits", *_from(0)),
    "integer": _Labels("integer_digits", *_from(0)),
    "fraction": _Labels("fraction_digits", *_from(0)),
    "first": _Labels("first_digits", *_from(0)),
    "positive": _Labels("positive_decades", *_from(-LARGEST_DECADE)),
    "negative": _Labels("negative_decades", *_from(-LARGEST_DECADE)),
    "zeros": _Labels("zeros", *_named(("0", "-0"))),
    "magnitude": _Labels("magnitudes", *_from(0)),
    "beyond": _Labels("beyond_float64", *_named(("infinite", "zero"))),
}
_WRITTEN = {
    "forms": _Labels("forms", *_named(FORMS)),
    "marks": _Labels("marks", *_named(MARKS)),
    "years": _Labels("years", *_from(FIRST_YEAR, 10)),
    "side_by_side": _Labels("side_by_side", *_named(SIDE_BY_SIDE)),
}


def digits_to_json(digits: Digits) -> dict[str, dict[str, int]]:
    """By name and label; ``magnitudes`` by the leading 16 bits of the double, ``*_decades`` by the
    power of ten.
    """
    return _to_json(digits._asdict(), _DIGITS)


def digits_from_json(data: dict[str, Any]) -> Digits:
    """The inverse of :func:`digits_to_json`."""
    return Digits(**_filled(Digits.none()._asdict(), _DIGITS, data))


def written_to_json(written: Written) -> dict[str, dict[str, int]]:
    """By name and label; ``years`` by decade."""
    return _to_json(written._asdict(), _WRITTEN)


def written_from_json(data: dict[str, Any]) -> Written:
    """The inverse of :func:`written_to_json`."""
    return Written(**_filled(Written.none()._asdict(), _WRITTEN, data))


def _to_json(arrays: dict[str, Ints], labels: dict[str, _Labels]) -> dict[str, dict[str, int]]:
    return {
        labels[field].name: {
            labels[field].label(place): int(counts[place])
            for place in np.flatnonzero(counts).tolist()
        }
        for field, counts in arrays.items()
    }


def _filled(
    empty: dict[str, Ints], labels: dict[str, _Labels], data: dict[str, Any]
) -> dict[str, Ints]:
    for field, counts in empty.items():
        for label, count in data[labels[field].name].items():
            place = labels[field].place(label)
            if not 0 <= place < len(counts):
                raise IndexError(f"{labels[field].name} has no {label!r}")
            counts[place] = count
    return empty
