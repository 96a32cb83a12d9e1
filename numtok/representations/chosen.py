"""Representations as the commands and the calls on files take them: chosen by name or given, with
one option for all of them that have it, and in the form that files hold.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from numtok.errors import RepresentationError
from numtok.representations.base import Representation
from numtok.representations.parse import Representations, representations_of


def choose(
    numbers: Representations, overflow: str | None = None, compact: bool | None = None
) -> tuple[Representation, ...]:
    """The representations, with ``overflow`` and ``compact`` for all of them that have such an
    option.

    Raises:
        RepresentationError: if they are none, cannot be combined, or hold every number while
            ``overflow`` is given.
    """
    chosen = representations_of(numbers)
    if overflow is not None and not any(_has(one, "overflow") for one in chosen):
        names = ",".join(one.name for one in chosen)
        raise RepresentationError(
            f"{names!r} has no overflow={overflow!r}, as it holds every number"
        )
    for name, value in (("overflow", overflow), ("compact", compact)):
        if value is not None:
            chosen = tuple(_with_option(representation, name, value) for representation in chosen)
    return chosen


def for_files(
    numbers: Representations, overflow: str | None = None, dense: bool = False
) -> tuple[Representation, ...]:
    """The same as files hold them: compact, unless they are to be ``dense``.

    Raises:
        RepresentationError: also if none of them has a dense form beside a compact one.
    """
    chosen = choose(numbers, overflow, compact=not dense)
    if dense and not any(_has(representation, "compact") for representation in chosen):
        names = ",".join(representation.name for representation in chosen)
        raise RepresentationError(
            f"{names!r} has no tensors, which dense is for: bits and fone have; leave it out"
        )
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
