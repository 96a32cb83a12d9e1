"""A number in a text as a plain Python value."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Number:
    """A number in a text, as :func:`numtok.extract` returns it.

    Attributes:
        text: the number as written.
        start, stop: its place in the text, in characters; ``stop`` is exclusive.
        value: the exact value.
    """

    text: str
    start: int
    stop: int
    value: Decimal
