"""Representations as the commands and the calls on files take them: chosen by name or given, with
one option for all of them that have it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from numtok.errors import RepresentationError
from numtok.representations.base import Representation
from numtok.representations.parse import Representations, representations_of


def choose(
    numbers: Representations, overflow: str | None = None, compact: bool = False
) -> tuple[Representation, ...]:
    """The representations, with ``overflow`` and ``compact`` for all of them that have such an
    option.

    Raises:
        RepresentationError: if they are none, cannot be combined, or none of them can be compact.
    """
    chosen = representations_of(numbers)
    if compact and not any(_has(representation, "compact") for representation in chosen):
        raise RepresentationError(
            f"none of {','.join(representation.name for representation in chosen)!r} has the option"
            " compact"
        )
    for name, value in (("overflow", overflow), ("compact", compact or None)):
        if value is not None:
            chosen = tuple(_with_option(representation, name, value) for representation in chosen)
    return chosen


def _has(representation: Any, option: str) -> bool:
    return option in {field.name for field in dataclasses.fields(representation)}


def _with_option(representation: Any, option: str, value: Any) -> Representation:
    made: Representation = (
        dataclasses.replace(representation, **{option: value})
        if _has(representation, option)
        else representation
    )
    return made
