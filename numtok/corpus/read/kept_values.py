"""Values of columns that are kept, from JSON to Arrow: exact, or refused. A fraction is a float64,
correctly rounded; what float64 and int64 have no room for is never changed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from numtok.corpus.read.sources import Source
from numtok.errors import MissingInputError

WAY_OUT = (
    "write such values as strings, put a row with every field first, or do not keep this column"
)
_EXACT = 2.0**53  # every integer up to here is a float64
_NEARLY_ZERO = re.compile(rb"[eE]-0*[1-9]\d\d|0{300}")  # what may become zero when it is read
_AS_IN_JSON = (  # types whose values Arrow's parser takes as they are, or refuses
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_integer,
    pa.types.is_boolean,
)
_LONGEST_INTEGER = 4000  # digits; Python refuses longer ones than 4,300


class _Beyond(str):
    """A number as written that would be infinite, or zero, as a float64: no column of numbers takes
    it.
    """


def _fraction(written: str) -> float | str:
    value = float(written)
    lost = math.isinf(value) or (value == 0 and re.search("[1-9]", re.split("[eE]", written)[0]))
    return _Beyond(written) if lost else value


def _integer(written: str) -> int | str:
    return int(written) if len(written) < _LONGEST_INTEGER else _Beyond(written)


DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_fraction)


def shown(value: Any) -> str:
    """Return a value in a message."""
    written = _unicode(json.dumps(value, ensure_ascii=False))
    return written if len(written) <= 40 else f"{written[:30]}... ({len(written)} characters)"


def fitted(value: Any, dtype: pa.DataType) -> tuple[bool, Any]:
    """Return (whether a column of the type holds the value as it is, the value to give to Arrow)."""
    if value is None:
        return True, value
    if type(value) is str and pa.types.is_string(dtype):
        return _unicode(value) == value, value
    try:
        # `pa.array` refuses integers beyond 2**53 as float64, be they exact or not.
        argument = float(value) if type(value) is int and pa.types.is_floating(dtype) else value
        return _same(value, pa.array([argument], dtype)[0].as_py()), argument
    except (pa.ArrowException, OverflowError, UnicodeEncodeError, RecursionError):
        return False, value


def _same(value: Any, stored: Any) -> bool:
    """Whether what is stored is the value; fields that are absent are null."""
    if isinstance(value, dict):
        return set(value) <= set(stored) and all(
            _same(value.get(name), inner) for name, inner in stored.items()
        )
    if isinstance(value, list):
        return all(map(_same, value, stored))
    if isinstance(value, bool | float) or isinstance(stored, bool):
        return type(value) is type(stored) and (value == stored or value != value)
    return bool(value == stored)


def sure(column: pa.Array, data: bytes) -> bool:
    """Whether Arrow's parser cannot have changed a value of this column of the block ``data``: it
    rounds some numbers, reads strings as times or decimals where a file before had such, and leaves
    out fields that a type does not have.
    """
    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    if not pa.types.is_float64(column.type):
        return any(holds(column.type) for holds in _AS_IN_JSON)
    import pyarrow.compute as pc

    large = pc.or_kleene(pc.greater_equal(pc.abs(column), _EXACT), pc.is_nan(column))
    zero = bool(pc.any(pc.equal(column, 0.0)).as_py())
    return not pc.any(large).as_py() and not (zero and _NEARLY_ZERO.search(data))


def guess_type(rows: Sequence[dict[str, Any]], name: str, source: Source) -> pa.DataType:
    """Return the Arrow type of a kept column by its values; string where all are null."""
    try:
        return _typed(pa.array([_plain(row.get(name)) for row in rows]).type)
    except _NoFields:
        reason = "holds objects without any field, which have no type; do not keep this column"
    except RecursionError:
        reason = "is nested too deeply; do not keep this column"
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        reason = f"holds values of several kinds, or integers beyond int64; {WAY_OUT}"
    raise MissingInputError(f"kept column {name!r} {reason}", source.name)


def _unicode(text: str) -> str:
    """Return the text with halves of surrogate pairs, which are no characters, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


class _NoFields(Exception):
    """A part of a type is a struct of nothing, which Parquet cannot store."""


def _plain(value: Any) -> Any:
    """Replace numbers that no column can hold by zero, and what is no character in strings; their
    row will be refused when it is read.
    """
    if isinstance(value, _Beyond):
        return 0.0
    if isinstance(value, str):
        return _unicode(value)
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return 0 if type(value) is int and not -(1 << 63) <= value < 1 << 63 else value


def _typed(dtype: pa.DataType) -> pa.DataType:
    """Return the type with string for every part that only held nulls so far."""
    if pa.types.is_null(dtype):
        return pa.string()
    if pa.types.is_list(dtype):
        return pa.list_(_typed(dtype.value_type))
    if pa.types.is_struct(dtype):
        if not dtype.num_fields:
            raise _NoFields
        return pa.struct([(part.name, _typed(part.type)) for part in dtype])
    return dtype
