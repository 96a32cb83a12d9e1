"""Values of columns that are kept, from JSON to Arrow: what cannot be held exactly as it is written
is found, never changed.

In: parsed JSON values, and the Arrow type that the first rows suggest. Out: the reason why a value
    does not fit that type. A fraction is a float64, correctly rounded, as in every reader of JSON;
    an integer is exact or refused; a number that float64 has no room for is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from numtok.corpus.read.sources import Source
from numtok.errors import InputError

KINDS = {
    int: "a number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    str: "a string",
    type(None): "null",
}
WAY_OUT = "write such values as strings, or do not keep this column"
_EXACT = 2.0**53  # every integer up to here is a float64
_NEARLY_ZERO = re.compile(rb"[eE]-0*[1-9]\d\d|0{300}")  # what may become zero when it is read
_LONGEST_INTEGER = 4000  # digits; Python refuses longer ones than 4,300


class BeyondFloat(float):
    """A number as written that would be infinite, or zero, as a float64."""

    def __new__(cls, value: float, written: str) -> BeyondFloat:
        made = super().__new__(cls, value)
        made.written = (
            written if len(written) <= 40 else f"{written[:30]}... ({len(written)} characters)"
        )
        return made

    written: str


def _fraction(written: str) -> float:
    value = float(written)
    lost = math.isinf(value) or (value == 0 and re.search("[1-9]", re.split("[eE]", written)[0]))
    return BeyondFloat(value, written) if lost else value


def _integer(written: str) -> int | float:
    return int(written) if len(written) < _LONGEST_INTEGER else BeyondFloat(math.inf, written)


DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_fraction)


def unfit(value: Any, dtype: pa.DataType) -> str | None:
    """Why ``dtype`` cannot hold the value as it is: ``holds ...``; None if it can, or if only Arrow
    can tell.
    """
    if value is None:
        return None
    if isinstance(value, BeyondFloat):
        return f"holds {value.written}, which float64 cannot hold; {WAY_OUT}"
    if isinstance(value, dict) and pa.types.is_struct(dtype):
        types = {part.name: part.type for part in dtype}
        for name, inner in value.items():
            if name not in types:
                return (
                    f"holds a field {name!r} that no row before had; put a row with every field"
                    " first, or do not keep this column"
                )
            if reason := unfit(inner, types[name]):
                return reason
        return None
    if isinstance(value, list) and _is_list(dtype):
        return next((reason for inner in value if (reason := unfit(inner, dtype.value_type))), None)
    return _unfit_number(value, dtype)


def _unfit_number(value: Any, dtype: pa.DataType) -> str | None:
    if isinstance(value, bool):
        return (
            None
            if pa.types.is_boolean(dtype)
            else f"holds true or false, but {dtype} before; {WAY_OUT}"
        )
    if isinstance(value, float) and pa.types.is_integer(dtype):
        return f"holds a fraction, but {dtype} before; {WAY_OUT}"
    if isinstance(value, int) and pa.types.is_integer(dtype):
        bits = dtype.bit_width - pa.types.is_signed_integer(dtype)
        inside = (-(1 << bits) if pa.types.is_signed_integer(dtype) else 0) <= value < 1 << bits
        return None if inside else f"holds {_shown(value)}, which {dtype} cannot hold; {WAY_OUT}"
    if isinstance(value, int) and pa.types.is_floating(dtype):
        return (
            None
            if _as_float(value) == value
            else f"holds {_shown(value)}, which {dtype} cannot hold exactly; {WAY_OUT}"
        )
    return None


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _shown(value: int) -> str:
    digits = str(value)
    return digits if len(digits) <= 40 else f"{digits[:30]}... ({len(digits)} digits)"


def with_floats(value: Any, dtype: pa.DataType) -> Any:
    """An integer as float where the column is one, as Arrow's parser does; ``pa.array`` refuses
    those beyond 2**53.
    """
    return float(value) if type(value) is int and pa.types.is_floating(dtype) else value


def needs_a_look(dtype: pa.DataType) -> bool:
    """Whether Arrow's parser may leave out parts of such a column without a word: fields that the
    type does not have.
    """
    return bool(pa.types.is_struct(dtype) or (_is_list(dtype) and needs_a_look(dtype.value_type)))


def may_be_changed(column: pa.Array, data: bytes) -> bool:
    """Whether Arrow's parser may have rounded a value of this column of the block ``data`` to
    another: then only the slow parse can tell.
    """
    while _is_list(column.type):
        column = column.flatten()
    if not pa.types.is_floating(column.type) or not len(column):
        return False
    import pyarrow.compute as pc

    large = pc.any(
        pc.or_kleene(pc.greater_equal(pc.abs(column), _EXACT), pc.is_nan(column))
    ).as_py()
    return bool(large) or (
        bool(pc.any(pc.equal(column, 0.0)).as_py()) and _NEARLY_ZERO.search(data) is not None
    )


def _is_list(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype))


def guess_type(rows: Sequence[dict[str, Any]], name: str, source: Source) -> pa.DataType:
    """The Arrow type of a kept column by its values; string where all are null.

    Dates stay the strings they are.
    """
    values = [row.get(name) for row in rows]
    try:
        dtype = _no_null(pa.array([_plain(value) for value in values]).type)
        empty = _has_no_fields(dtype)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        message = (
            f"kept column {name!r} holds values of several kinds, or integers beyond int64;"
            f" {WAY_OUT}"
        )
        raise InputError(message, source.name) from None
    except RecursionError:
        raise InputError(
            f"kept column {name!r} is nested too deeply; do not keep this column", source.name
        ) from None
    if empty:
        raise InputError(
            f"kept column {name!r} holds objects without any field, which have no type; do not keep"
            " this column",
            source.name,
        )
    return dtype


def _plain(value: Any) -> Any:
    """Integers that only a float can hold, as such; the row will be refused, with its line, when it
    is read.
    """
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return 0 if type(value) is int and not -(1 << 63) <= value < 1 << 63 else value


def _no_null(dtype: pa.DataType) -> pa.DataType:
    """The type with string for every part that only held nulls so far."""
    if pa.types.is_null(dtype):
        return pa.string()
    if pa.types.is_list(dtype):
        return pa.list_(_no_null(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pa.struct([(part.name, _no_null(part.type)) for part in dtype])
    return dtype


def _has_no_fields(dtype: pa.DataType) -> bool:
    """Whether a part of it is a struct of nothing, which Parquet cannot store."""
    if pa.types.is_list(dtype):
        return _has_no_fields(dtype.value_type)
    return bool(
        pa.types.is_struct(dtype)
        and (not dtype.num_fields or any(_has_no_fields(part.type) for part in dtype))
    )
