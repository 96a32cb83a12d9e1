"""Numbers as exact decimals in a structure of arrays, until someone asks for a float.

``Numbers`` holds n numbers; the value of each is ``±digits × 10**exponent``, with digits as written
(leading and trailing zeros kept), so any length is exact. ``to_float64`` and ``to_float32`` round
once, from the decimal, to nearest even (IEEE 754); ``to_decimal`` and ``format`` lose nothing.
``Numbers.parse`` is the inverse of ``format``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.cached import cached_property
from numtok.arrays.text_rows import TextRows
from numtok.errors import InputError
from numtok.numbers.decimals import (
    LARGEST_EXPONENT,
    Decimals,
    Floats,
    leave_signs,
    runs_of,
    take,
    to_floats,
    to_text,
)
from numtok.numbers.grammar import MAX_EXPONENT_DIGITS, Grammar
from numtok.numbers.number import Number
from numtok.numbers.scanner import scan_decimals, whole_rows


@dataclass(frozen=True, eq=False)
class Numbers:
    """``n`` exact decimals and their spans, ordered by document and start.

    Attributes:
        document: int32[n], the row each number was found in.
        start, stop: int64[n], half-open UTF-8 byte offsets within that row.
        negative: bool[n]; minus zero is a negative zero.
        digits: uint8[total], the digits of all numbers, most significant first.
        digit_offsets: int64[n + 1]; number ``i`` has ``digits[digit_offsets[i]:digit_offsets[i +
            1]]``, at least one.
        exponent: int64[n]; value = ±digits × 10**exponent.
        rows: the text they were found in.
        decimal: the decimal mark of that text, ``.`` or ``,``.

    Example:
        >>> import numtok
        >>> numbers = numtok.scan(["1,234.50 of 2e3", "-7"])
        >>> numbers.format().to_pylist()
        ['1234.50', '2000', '-7']
        >>> numbers.to_float64().tolist()
        [1234.5, 2000.0, -7.0]
        >>> numbers.document.tolist()
        [0, 0, 1]
    """

    document: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    negative: npt.NDArray[np.bool_]
    digits: npt.NDArray[np.uint8]
    digit_offsets: npt.NDArray[np.int64]
    exponent: npt.NDArray[np.int64]
    rows: TextRows
    decimal: str = "."

    def __len__(self) -> int:
        return len(self.document)

    @overload
    def __getitem__(self, which: int | np.integer[Any]) -> Number: ...
    @overload
    def __getitem__(
        self, which: slice | Sequence[int] | Sequence[bool] | npt.NDArray[Any]
    ) -> Numbers: ...
    def __getitem__(self, which: Any) -> Number | Numbers:
        """Return a :class:`Number` for an integer. A slice, integers or a bool[n] mask select
        several and return :class:`Numbers`.

        Raises:
            IndexError: for an index that is out of range, or a mask of another length.
        """
        chosen = np.arange(len(self))[which]
        return self.select(chosen) if chosen.ndim else next(iter(self.select(chosen[None])))

    def __iter__(self) -> Iterator[Number]:
        starts, stops = self.start, self.stop
        if (self.rows.text >= 0x80).any():  # count the bytes that begin a character
            before = np.concatenate([[0], np.cumsum((self.rows.text & 0xC0) != 0x80)])
            begins = self.rows.offsets[self.document]
            starts = before[begins + starts] - before[begins]
            stops = before[begins + stops] - before[begins]
        columns = zip(
            self.text().to_pylist(), starts.tolist(), stops.tolist(), self.to_decimal(), strict=True
        )
        return (Number(*column) for column in columns)

    def __repr__(self) -> str:
        first = [
            surface if len(surface) <= 24 else f"{surface[:20]}..."
            for surface in self.select(np.arange(min(len(self), 5))).text().to_pylist()
        ]
        shown = ", ".join([*first, "..."] if len(self) > len(first) else first)
        return f"Numbers({len(self)}: {shown})" if shown else "Numbers(0)"

    def __eq__(self, other: object) -> bool:
        """Whether these are the same numbers, written in the same way, at the same places."""
        if not isinstance(other, Numbers):
            return NotImplemented
        same = all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in Decimals._fields
        )
        return same and self.text().equals(other.text())

    __hash__ = None  # type: ignore[assignment]  # as for other arrays

    @classmethod
    def parse(cls, literals: Any) -> Numbers:
        """Read texts that are one number each, such as the output of :meth:`format`; row i gives
        number i.

        Args:
            literals: a sequence of ``str``, ``int``, ``float`` or ``Decimal``, or an Arrow string
                array.

        Raises:
            InputError: if a row is not exactly one finite number.
        """
        if isinstance(literals, Iterable) and not isinstance(
            literals, str | pa.Array | pa.ChunkedArray
        ):
            # Decimal, as str(int) refuses more than 4300 digits.
            literals = [
                str(Decimal(literal) if type(literal) is int else literal) for literal in literals
            ]
        rows = TextRows.of(literals)
        decimals = scan_decimals(rows, Grammar())
        if not (whole := whole_rows(decimals, rows)).all():
            row = int(np.flatnonzero(~whole)[0])
            raise InputError(
                f"row {row}: {str(rows.array[row].as_py())[:60]!r} is not one finite decimal number"
            )
        return cls(*decimals, rows)

    @classmethod
    def from_digits(
        cls,
        negative: npt.NDArray[np.bool_],
        digits: npt.NDArray[np.uint8],
        digit_offsets: npt.NDArray[np.int64],
        exponent: npt.NDArray[np.int64],
    ) -> Numbers:
        """Make numbers of their digits, as in the attributes of the same names; row i of their text
        is :meth:`format` of number i.

        Raises:
            InputError: for an exponent that the grammar cannot read: above ``10**17 - 1``, or as
                far below ``-(10**17 - 1)`` as no fraction of the digits is.
        """
        count = len(negative)
        lowest = -LARGEST_EXPONENT - np.diff(digit_offsets)
        if (beyond := np.flatnonzero((exponent > LARGEST_EXPONENT) | (exponent < lowest))).size:
            raise InputError(
                f"number {beyond[0]}: its exponent {exponent[beyond[0]]} has more than"
                f" {MAX_EXPONENT_DIGITS} digits"
            )
        nowhere = np.zeros(count, np.int64)
        bare = cls(
            np.arange(count, dtype=np.int32),
            nowhere,
            nowhere,
            negative,
            digits,
            digit_offsets,
            exponent,
            TextRows.of([]),
        )
        rows = TextRows.of(bare.format())
        return dataclasses.replace(bare, stop=np.diff(rows.offsets), rows=rows)

    def select(self, which: npt.NDArray[Any]) -> Numbers:
        """Return the numbers at the given indices, or where the bool[n] mask is True.

        Raises:
            IndexError: for an index that is out of range, or a mask of another length.
        """
        runs = runs_of(which, len(self))
        chosen = Numbers(*self.decimals.take(runs), self.rows, self.decimal)
        if (floats := self.__dict__.get("_floats")) is not None:  # carried over if they are known
            chosen.__dict__["_floats"] = floats.take(runs)
        return chosen

    def leave_out(self, mask: npt.NDArray[np.bool_]) -> Numbers:
        """Return the numbers where the bool[n] mask is False."""
        return self.select(~mask)

    def without_sign(self) -> Numbers:
        """Return the magnitudes, with each sign left to the text around: ``start`` is after it, and
        ``negative`` is False.

        A sign is ``-``, ``+`` or U+2212; the parentheses of ``(1,234)`` in accounts stay in the
        text too.
        """
        start, stop, unsigned = self.start.copy(), self.stop.copy(), np.zeros(len(self), np.bool_)
        leave_signs(self.rows.text, self.rows.offsets, self.document, start, stop)
        return dataclasses.replace(self, start=start, stop=stop, negative=unsigned)

    @property
    def decimals(self) -> Decimals:
        """The arrays of the numbers, without the text."""
        return Decimals(*(getattr(self, name) for name in Decimals._fields))

    def is_zero(self) -> npt.NDArray[np.bool_]:
        """Return bool[n]: whether every digit is 0."""
        return self.decimals.is_zero()

    def to_float64(self) -> npt.NDArray[np.float64]:
        """Return float64[n], read-only, correctly rounded from the decimal; infinite beyond the
        range.
        """
        return self._floats.doubles

    def to_float32(self) -> npt.NDArray[np.float32]:
        """Return float32[n], read-only, correctly rounded from the decimal in one step (not through
        float64); infinite beyond the range.
        """
        return self._floats.singles

    def fit_float32(self) -> npt.NDArray[np.bool_]:
        """Return bool[n], read-only: neither infinite as float32 nor rounded to zero without being
        zero.
        """
        return self._floats.held

    @cached_property
    def _floats(self) -> Floats:
        return to_floats(self.decimals)

    def to_decimal(self) -> list[Decimal]:
        """Return the exact values as ``decimal.Decimal``, whatever the precision of the current
        context.
        """
        text = (self.digits + 48).tobytes().decode("ascii")
        ends = self.digit_offsets.tolist()
        signs = ["-" if minus else "" for minus in self.negative.tolist()]
        return [
            Decimal(f"{sign}{text[first:last]}E{power}")
            for sign, first, last, power in zip(
                signs, ends[:-1], ends[1:], self.exponent.tolist(), strict=True
            )
        ]

    def format(self) -> pa.LargeStringArray:
        """Return canonical text: ``0.5``, not ``.5`` or ``+0.5``; trailing zeros as held;
        ``d.ddde±x`` where many zeros would have to be filled in.
        """
        return to_text(self.decimals)

    def text(self) -> pa.LargeStringArray:
        """Return the surfaces, as written."""
        begins = self.rows.offsets[self.document]
        out = take(self.rows.text, np.stack([begins + self.start, begins + self.stop], 1))
        offsets = memory.offsets_of(self.stop - self.start)
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(offsets), pa.py_buffer(out))

    def to_arrow(self) -> pa.RecordBatch:
        """Return a record batch with a row per number: ``document`` int32; ``start``, ``stop``
        int64, in bytes; ``text``, as written; ``canonical``, exact; ``float64``.
        """
        columns = {
            "document": self.document,
            "start": self.start,
            "stop": self.stop,
            "text": self.text(),
            "canonical": self.format(),
        }
        return pa.record_batch({**columns, "float64": self.to_float64()})

    def to_pandas(self) -> Any:
        """Return :meth:`to_arrow` as a ``pandas.DataFrame``."""
        return self.to_arrow().to_pandas()

    def per_document(self) -> npt.NDArray[np.int64]:
        """Return int64[documents + 1], read-only: number ``offsets[d]`` is the first of document
        ``d``.
        """
        return self._per_document

    @cached_property
    def _per_document(self) -> npt.NDArray[np.int64]:
        rows = np.arange(len(self.rows) + 1, dtype=np.int32)
        offsets = np.searchsorted(self.document, rows).astype(np.int64)
        offsets.flags.writeable = False
        return offsets
