"""What a representation of numbers is: tokens in the text, and tensors beside it.

In: :class:`numtok.numbers.Numbers`. Out: for a :class:`SingleToken`, one ``[NUM]`` per number and Arrow arrays with one value per number; for a
:class:`SpelledOut`, a short sequence of symbols per number. Each has its inverse beside it. A representation is a frozen dataclass: equal options,
equal representation, and ``to_dict`` and ``from_dict`` are JSON.

To add one: a module of its own in this folder, a frozen dataclass that derives from one of the two, and its name in ``__init__.py``.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.errors import RepresentationError
from numtok.numbers import Numbers

NUM, END_NUM = "[NUM]", "[/NUM]"
OVERFLOW = ("text", "clip", "error")

Mask = npt.NDArray[np.bool_]


class Representation(ABC):
    """Options and the exact range of one way to show numbers to a model.

    Attributes:
        name: what the command line and JSON call it.
        overflow: for numbers that it cannot hold: ``"text"`` leaves them as ordinary text, ``"clip"`` takes the nearest one it can, ``"error"``
            refuses. Nothing is dropped or changed silently: the first two are counted.
        tokens: the added tokens it needs besides ``[NUM]``.
    """

    name: ClassVar[str]
    overflow: str = "text"
    tokens: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def fits(self, numbers: Numbers) -> Mask:
        """bool[n]: which numbers it can hold, exactly or within its documented precision."""

    def clipped(self, numbers: Numbers) -> Mask:
        """bool[n]: which numbers :meth:`encode` replaces by the nearest it can hold."""
        return ~self.fits(numbers) if self.overflow == "clip" else np.zeros(len(numbers), np.bool_)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready options; :func:`numtok.representations.from_dict` is the inverse."""
        return {"name": self.name, **dataclasses.asdict(self)}  # type: ignore[call-overload]  # every concrete one is a dataclass

    def _check_overflow(self) -> None:
        if self.overflow not in OVERFLOW:
            raise RepresentationError(f"{self.name}: overflow={self.overflow!r} is unknown; use one of {', '.join(map(repr, OVERFLOW))}")


class SingleToken(Representation):
    """One ``[NUM]`` per number, and per number one value in one or more Arrow columns."""

    @abstractmethod
    def columns(self) -> dict[str, pa.DataType]:
        """Column names and the type of one number's value."""

    @abstractmethod
    def encode(self, numbers: Numbers) -> dict[str, pa.Array]:
        """The columns, each of length n."""

    @abstractmethod
    def decode(self, columns: Mapping[str, pa.Array]) -> Numbers:
        """The inverse of :meth:`encode`, as far as the representation holds the numbers."""


@dataclass(frozen=True, eq=False)
class Spelled:
    """n numbers as symbols.

    Attributes:
        symbols: uint16[total], indices into the representation's ``alphabet``.
        offsets: int64[n + 1].
        stream: one value per symbol for the representation's extra column, or None.
    """

    symbols: npt.NDArray[np.uint16]
    offsets: npt.NDArray[np.int64]
    stream: npt.NDArray[Any] | None = None


class SpelledOut(Representation):
    """Each number as a sequence of symbols, each symbol one token; nothing else is needed to read it back.

    Attributes:
        alphabet: the symbols. One that is a token of the source tokenizer is that token; the others are added.
        framed: whether ``[NUM]`` and ``[/NUM]`` stand around each number.
        stream: name and type of a column with one value per token of the document, or None.
    """

    alphabet: ClassVar[tuple[str, ...]]
    framed: ClassVar[bool] = True
    stream: ClassVar[tuple[str, pa.DataType] | None] = None

    @abstractmethod
    def encode(self, numbers: Numbers) -> Spelled:
        """The symbols of each number, the frame not included."""

    @abstractmethod
    def decode(self, spelled: Spelled) -> pa.LargeStringArray:
        """The inverse: each number as text."""


def finite_float32(values: npt.NDArray[np.float32], numbers: Numbers) -> Mask:
    """bool[n]: neither infinite as float32 nor rounded to zero without being zero."""
    return np.isfinite(values) & ((values != 0) | numbers.is_zero())


def numbers_from_floats(values: npt.NDArray[Any], name: str) -> Numbers:
    """Floats as the shortest decimals that read back as the same float.

    Raises:
        RepresentationError: for an infinite value or NaN, naming its place.
    """
    import pyarrow.compute as pc

    finite = np.isfinite(values)
    if not finite.all():
        place = int(np.flatnonzero(~finite)[0])
        raise RepresentationError(f"{name}: value {place} is {values[place]}, which is not a number in text; mask it out before decoding")
    return Numbers.parse(pc.cast(pa.array(values), pa.large_string()))
