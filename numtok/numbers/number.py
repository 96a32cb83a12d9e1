"""A number in a text as a plain Python value."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Number:
    """A number in a text, as :func:`numtok.extract` returns it.

    Attributes:
        text: the number as written.
        start, stop: its span in the text, in characters; ``stop`` is exclusive.
        value: the exact value.

    Example:
        >>> import numtok
        >>> numtok.extract("pH 7.4")[0]
        Number(text='7.4', start=3, stop=6, value=Decimal('7.4'))
    """

    text: str
    start: int
    stop: int
    value: Decimal
