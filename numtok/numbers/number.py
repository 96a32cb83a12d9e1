"""One number of one text, as a plain Python value."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Number:
    """One number in one text.

    Attributes:
        text: its surface, as written.
        start, stop: half-open place in the text, in characters.
        value: its exact value.
    """

    text: str
    start: int
    stop: int
    value: Decimal
