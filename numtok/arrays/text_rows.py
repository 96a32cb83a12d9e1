"""Rows of text as one UTF-8 buffer with offsets, whatever they came as.

In: a sequence of ``str`` (of pandas too, whose NA and NaN are nulls), or an Arrow array or chunked
    array, of pyarrow or of another library that hands them over by Arrow's PyCapsule interface, of
    type string, large_string, string_view or a dictionary of these, with nulls and slices. Out:
    :class:`TextRows`, views into Arrow's own buffers. Plain string arrays are not copied; the other
    kinds once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.errors import InputError

_TEXT = frozenset((str, type(None)))
FEW = 1 << 20  # characters


class ArrowArray(Protocol):
    """An array or a record batch of any Arrow library: what has
    https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html.
    """

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...


class ArrowStream(Protocol):
    """A column in several pieces: a chunked array, a series of polars."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@dataclass(frozen=True, eq=False)
class TextRows:
    """``n`` rows of UTF-8 text."""

    # uint8[bytes], the buffer; row ``r`` is ``text[offsets[r]:offsets[r + 1]]``
    text: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]  # int64[n + 1], not necessarily starting at 0
    valid: npt.NDArray[np.bool_]  # bool[n], False for a null row
    array: pa.Array  # the Arrow array that owns the memory

    def __len__(self) -> int:
        return len(self.valid)

    @property
    def nbytes(self) -> int:
        """Bytes of text from the first row to the last."""
        return int(self.offsets[-1] - self.offsets[0])

    @classmethod
    def of(cls, texts: Texts) -> TextRows:
        """Take texts of any accepted kind. InputError for another type, for text that is not valid
        UTF-8 (naming the document) and for a lone surrogate.
        """
        if isinstance(texts, TextRows):
            return texts
        array = _from_strings(texts) if isinstance(texts, list) else _as_string_array(texts)
        _, offsets, data = array.buffers()
        width = np.int64 if pa.types.is_large_string(array.type) else np.int32
        rows = len(array)
        if offsets is None or offsets.size == 0:
            where: npt.NDArray[Any] = np.zeros(1, np.int64)
        else:
            where = np.frombuffer(offsets, width)[array.offset : array.offset + rows + 1]
        text = (
            np.frombuffer(data, np.uint8)
            if data is not None and data.size
            else np.empty(0, np.uint8)
        )
        valid = memory.from_arrow(array.is_valid()) if array.null_count else np.ones(rows, np.bool_)
        where = where.astype(np.int64, copy=False)
        if array.null_count and np.diff(where)[~valid].any():  # bytes that are no text
            return cls.of(array.take(memory.to_arrow(np.arange(rows))))
        if not isinstance(texts, list):
            try:
                array.validate(full=True)
            except pa.ArrowInvalid as error:
                raise _not_utf8(array) from error
        for column in (text, where, valid):
            # all alike, wherever they came from: Numba compiles for one kind of array only
            column.flags.writeable = False
        return cls(text, where, valid, array)

    def part(self, first: int, last: int) -> TextRows:
        """Return rows ``first`` to ``last``, without a copy."""
        return TextRows(
            self.text,
            self.offsets[first : last + 1],
            self.valid[first:last],
            self.array.slice(first, last - first),
        )


Texts: TypeAlias = Iterable[str | None] | ArrowArray | ArrowStream | TextRows


def _as_string_array(texts: Any) -> pa.Array:
    """Convert ``texts`` to a string or large_string array."""
    if isinstance(texts, str):
        raise InputError("expected many texts, got one str; wrap it in a list: [text]")
    if isinstance(texts, pa.ChunkedArray):
        if texts.num_chunks == 1:
            return _as_string_array(texts.chunk(0))
        chunks = texts.chunks or [pa.array([], texts.type)]
        return pa.concat_arrays(
            [_undamaged(_as_string_array(chunk)).cast(pa.large_string()) for chunk in chunks]
        )
    if isinstance(texts, pa.Array):
        kind = texts.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return texts
        if pa.types.is_string_view(kind) or pa.types.is_null(kind):
            return _undamaged(texts).cast(pa.large_string())
        if pa.types.is_dictionary(kind) and kind.value_type in (
            pa.string(),
            pa.large_string(),
            pa.string_view(),
            pa.null(),
        ):
            return (
                _undamaged(_as_string_array(texts.dictionary))
                .cast(pa.large_string())
                .take(texts.indices)
            )
        raise InputError(
            f"expected a string column, got {kind}; cast it first, for example"
            " column.cast('string')"
        )
    if hasattr(texts, "columns"):
        raise InputError(
            f"expected a column of texts, got a whole {type(texts).__name__}; give its text column"
        )
    if (column := _of_other_library(texts)) is not None:
        return _as_string_array(column)
    if isinstance(texts, Iterable) and not isinstance(texts, Mapping | Set | bytes | bytearray):
        return _from_strings(texts if isinstance(texts, list) else list(texts))
    raise InputError(
        f"expected texts as a list of str or an Arrow string array, got {type(texts).__name__}"
    )


def _of_other_library(texts: Any) -> pa.Array | pa.ChunkedArray | None:
    """Return an Arrow column of another library as pyarrow's; None for what is none, or holds not
    text alone: its values are then looked at one by one.
    """
    if not hasattr(texts, "__arrow_c_array__") and not hasattr(texts, "__arrow_c_stream__"):
        return None
    try:
        column = pa.array(texts) if hasattr(texts, "__arrow_c_array__") else pa.chunked_array(texts)
    except (pa.ArrowException, TypeError, ValueError):  # pandas, of objects of several kinds
        return None
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return column if kind in (pa.string(), pa.large_string(), pa.string_view()) else None


def _is_missing(value: Any) -> bool:
    """Whether pandas means by it that there is no text: NA, or NaN."""
    return type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)


def _from_strings(texts: list[Any]) -> pa.Array:
    """Convert texts to an Arrow array, NA and NaN of pandas to null. InputError, with the row, for
    what is no text.
    """
    if not _TEXT.issuperset(map(type, texts)):
        texts = [None if _is_missing(text) else text for text in texts]
        number, odd = next(
            (pair for pair in enumerate(texts) if not isinstance(pair[1], str | None)), (0, None)
        )
        if odd is not None:
            raise InputError(f"expected str or None, got {type(odd).__name__}", document=number)
    try:
        return _to_strings(texts)
    except UnicodeEncodeError:
        for number, text in enumerate(texts):
            try:
                str(text).encode()
            except UnicodeEncodeError as error:
                message = (
                    f"lone surrogate U+{ord(error.object[error.start]):04X} is not text; replace it"
                    " first"
                )
                raise InputError(message, document=number, character=error.start) from error
        raise


def _to_strings(texts: list[str | None]) -> pa.Array:
    """Convert texts to strings. ``pa.array(texts, pa.large_string())`` imports pandas to make an
    array of a list, which takes longer than all of numtok for a few texts.
    """
    if "pandas" in sys.modules or sum(map(len, filter(None, texts))) > FEW:
        return pa.array(texts, pa.large_string())
    builder = pa.lib.StringBuilder()
    builder.append_values(texts)
    return builder.finish()


def _undamaged(array: pa.Array) -> pa.Array:
    """Return ``array`` once its offsets are known to fit its data: Arrow's kernels read outside the
    data where they do not.
    """
    binary = {
        pa.string(): pa.binary(),
        pa.large_string(): pa.large_binary(),
        pa.string_view(): pa.binary_view(),
    }
    try:
        array.view(binary.get(array.type, array.type)).validate(full=True)
    except pa.ArrowInvalid as error:
        raise InputError("the string array is damaged: its offsets do not fit its data") from error
    return array


def _not_utf8(array: pa.Array) -> InputError:
    """Return the error that names the first row that is not valid UTF-8."""
    raw = _undamaged(array).cast(pa.large_binary())
    for number, value in enumerate(raw):
        try:
            (value.as_py() or b"").decode()
        except UnicodeDecodeError as error:
            byte = raw[number].as_py()[error.start]
            message = f"0x{byte:02X} is not valid UTF-8; decode with errors='replace' first"
            return InputError(message, document=number, byte=error.start)
    return InputError(
        "the string array is damaged: Arrow finds it not valid, although each row is valid UTF-8"
    )
