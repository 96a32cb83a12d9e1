"""Columns, declared once: the Arrow schema, ``FORMAT.md``'s table, the drop-in's streams and the
batches of torch all derive from here.

A representation names its own columns (``Representation.declared``); those that every encoded text
has stand at the end of this module. In a file, a column holds one value per token, per number, per
row, or per piece of a document in a packed row. In a batch, and in a file of token layout, it runs
along with the tokens: a number's value stands at its first token, and ``fill`` at all others.

Beside them stands what several representations do with values of columns: floats and tensors to
Arrow, and back to numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.errors import RepresentationError
from numtok.numbers.numbers import Numbers

Mask = npt.NDArray[np.bool_]
Width = TypeVar("Width", bound=np.floating[Any])
Encoding = Literal["plain", "dictionary", "delta", "split"]


@dataclass(frozen=True)
class Column:
    """Declaration of a column: its name, its types in a file and in a batch, and what a batch holds
    where there is no number.

    Attributes:
        name: in files, in the drop-in, in torch and in the arguments of ``NumberModel.forward``.
        value_type: of one element of a value, in files.
        dtype: in a batch; None for what a batch does not carry.
        shape: of one value, () for a scalar; 0 for an axis that depends on the options.
        fill: what stands in a batch where there is no value. It says nothing: 1.0 and 0 are values
            of numbers too.
        per: what there is one value for.
        bit_fields: of a value that is the bits of something, as a number or each for itself, how
            many bits each part of it has; empty for others.
        encoding: in Parquet, chosen by measurement (``docs/files.md``): ``"plain"``;
            ``"dictionary"``, of the distinct values, which Parquet gives up by itself where there
            are many; ``"delta"``, differences, for what rises; ``"split"``, first bytes, second
            bytes and so on, for values alike in some.

    Example:
        >>> column = Column("number_bits", pa.uint8(), np.uint8, shape=(32,))
        >>> str(column.type)
        'extension<arrow.fixed_shape_tensor[value_type=uint8, shape=[32]]>'
    """

    name: str
    value_type: pa.DataType
    dtype: npt.DTypeLike | None = None
    shape: tuple[int, ...] = ()
    fill: float = 0
    per: Literal["number", "token", "row", "piece"] = "number"
    bit_fields: tuple[int, ...] = ()
    encoding: Encoding = "dictionary"

    @property
    def type(self) -> pa.DataType:
        """Arrow type of a value in a file: a tensor if it has axes."""
        if not self.shape:
            return self.value_type
        return pa.fixed_shape_tensor(self.value_type, list(self.shape))

    def shaped(self, *shape: int) -> Column:
        """Return the column with this shape, which depends on the options of the representation."""
        return dataclasses.replace(self, shape=shape)

    def along_tokens(self) -> Column:
        """Return the column in token layout, where each column of numbers has one value per token."""
        if self == NUMBER_INDEX:
            return NUMBER_MASK
        return dataclasses.replace(self, per="token") if self.per == "number" else self


def form(forms: Sequence[Column], axes: int) -> Column:
    """Return the column, dense or compact, whose values have so many axes; the first column if none
    has.
    """
    return next((column for column in forms if len(column.shape) == axes), forms[0])


def neutral(column: Column, length: int, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array [length, ...] of the fill, otherwise like ``like``, [n, ...]."""
    return np.full((length, *like.shape[1:]), column.fill, like.dtype)


def as_array(values: Any, forms: Sequence[Column]) -> npt.NDArray[Any]:
    """Convert values of a stream, lists or an array, to an array in which integers stay integers.

    NumPy makes floats of Python's integers where some are beyond int64, and of uint64 beside int64;
    a float has 53 of their bits. So integers of 64 bits without a sign, which a file may hold,
    become int64 of the same bits, as which a batch has them.
    """
    array = np.asarray(values)
    of_integers = all(np.dtype(column.dtype).kind in "iu" for column in forms)
    if array.size and array.dtype.kind == "f" and of_integers:
        array = np.asarray(values, np.uint64)
    return array.astype(np.int64) if array.dtype == np.uint64 else array


def finite(values: npt.NDArray[np.floating[Any]], numbers: Numbers) -> Mask:
    """Return bool[n]: neither infinite as a float nor rounded to zero without being zero."""
    good: Mask = np.isfinite(values)
    vanished = values == 0
    return good & ~(vanished & ~numbers.is_zero()) if vanished.any() else good


def clip_to_finite(values: npt.NDArray[Width], numbers: Numbers) -> npt.NDArray[Width]:
    """Replace infinities in ``values`` by the largest finite float of their width, and zeros that
    stand for other numbers by the smallest.
    """
    wrong = ~finite(values, numbers)
    if not wrong.any():
        return values
    limits = np.finfo(values.dtype)
    magnitude = np.where(np.isinf(values), limits.max, limits.smallest_subnormal)
    clipped: npt.NDArray[Width] = np.where(
        wrong, np.where(numbers.negative, -magnitude, magnitude), values
    ).astype(values.dtype)
    return clipped


def tensor_array(values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Convert an array [n, ...] to an Arrow array of tensors, without a copy if it is contiguous."""
    flat = memory.to_arrow(np.ascontiguousarray(values).reshape(-1))
    return pa.ExtensionArray.from_storage(
        kind, pa.FixedSizeListArray.from_arrays(flat, type=kind.storage_type)
    )


def tensor_values(column: pa.Array) -> npt.NDArray[Any]:
    """Return the array [n, ...] of an Arrow array of tensors: the inverse of :func:`tensor_array`."""
    if not len(column):  # which Arrow refuses where there are no buffers
        return np.empty((0, *column.type.shape), memory.dtype_of(column.type.value_type))
    return np.asarray(column.to_numpy_ndarray())


def numbers_from_floats(values: npt.NDArray[Any], name: str) -> Numbers:
    """Convert floats to the shortest decimals that read back as the same float. RepresentationError
    for an infinite value or NaN, naming its place.
    """
    finite = np.isfinite(values)
    if not finite.all():
        place = int(np.flatnonzero(~finite)[0])
        raise RepresentationError(
            f"{name}: value {place} is {values[place]}, which is not a number in text; mask it out"
            " before decoding"
        )
    return Numbers.parse(memory.to_arrow(values).cast(pa.large_string()))


INPUT_IDS = Column("input_ids", pa.int32(), np.int64, per="token", encoding="split")
NUMBER_INDEX = Column("number_index", pa.int32(), encoding="delta")
# what number_index becomes in token layout, and in a batch
NUMBER_MASK = Column("number_mask", pa.bool_(), np.bool_, per="token", encoding="plain")
NUMBER_VALUE = Column("number_value", pa.float64(), np.float64, fill=1.0)
NUMBER_TEXT = Column("number_text", pa.string())
TEXT = Column("text", pa.string(), per="row")
# of the pieces of documents in a packed row: tokens of each,
SEQ_LENGTHS = Column("seq_lengths", pa.int32(), per="piece")
SEQ_DOCUMENTS = Column("seq_documents", pa.int64(), per="piece")  # which document it is of,
# how many tokens of that follow in later rows,
SEQ_REMAINING = Column("seq_remaining", pa.int64(), per="piece")
# and what ``text`` is of a document, at its first piece
SEQ_TEXT = Column("seq_text", pa.string(), per="piece")

ALWAYS = (INPUT_IDS, NUMBER_INDEX, NUMBER_VALUE)
WITH_TEXT = (NUMBER_TEXT, TEXT)
PACKED = (SEQ_LENGTHS, SEQ_DOCUMENTS, SEQ_REMAINING)
PACKED_WITH_TEXT = (NUMBER_TEXT, SEQ_TEXT)
