"""All representations by name. ``parse("xval,bits")`` reads what the command line takes, ``from_dict`` what JSON holds."""

from __future__ import annotations

import dataclasses
from typing import Any

from numtok.errors import RepresentationError
from numtok.representations.base import END_NUM, NUM, Representation, SingleToken, Spelled, SpelledOut
from numtok.representations.float_bits import FloatBits
from numtok.representations.place_value import PlaceValue
from numtok.representations.subword import Subword
from numtok.representations.xval import XVal

REPRESENTATIONS: dict[str, type[Representation]] = {kind.name: kind for kind in (XVal, FloatBits, PlaceValue, Subword)}

__all__ = [
    "END_NUM",
    "NUM",
    "REPRESENTATIONS",
    "FloatBits",
    "PlaceValue",
    "Representation",
    "SingleToken",
    "Spelled",
    "SpelledOut",
    "Subword",
    "XVal",
    "check_combination",
    "from_dict",
    "parse",
]


def from_dict(options: dict[str, Any]) -> Representation:
    """The inverse of ``Representation.to_dict``; unknown names and options are an error."""
    options = dict(options)
    kind = _named(str(options.pop("name", None)))
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]  # every concrete one is a dataclass
    if unknown := sorted(set(options) - known):
        raise RepresentationError(f"{kind.name} has no option {', '.join(unknown)}; it has {', '.join(sorted(known)) or 'none'}")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in options.items()})


def parse(text: str) -> tuple[Representation, ...]:
    """Representations from a list such as ``xval,bits``, as the command line takes it.

    Raises:
        RepresentationError: for an unknown name, or representations that cannot be combined.
    """
    chosen = tuple(_named(name.strip())() for name in text.split(",") if name.strip())
    check_combination(chosen)
    return chosen


def check_combination(chosen: tuple[Representation, ...]) -> None:
    """Representations that share ``[NUM]`` go together, once each; the others stand alone."""
    if not chosen:
        raise RepresentationError(f"no representation given; choose from {', '.join(REPRESENTATIONS)}")
    names = [representation.name for representation in chosen]
    if len(chosen) > 1 and (alone := [one.name for one in chosen if not isinstance(one, SingleToken)]):
        raise RepresentationError(f"{alone[0]} stands alone; it cannot be combined with {', '.join(name for name in names if name != alone[0])}")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise RepresentationError(f"{repeated[0]} is given twice; every representation has one set of columns")


def _named(name: str) -> type[Representation]:
    if name not in REPRESENTATIONS:
        raise RepresentationError(f"unknown representation {name!r}; choose from {', '.join(REPRESENTATIONS)}")
    return REPRESENTATIONS[name]
