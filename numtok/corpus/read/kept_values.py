"""Values of columns that are kept, from JSON to Arrow: as Arrow stores them, or refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from numtok.corpus.read.sources import Source
from numtok.errors import InputError

WAY_OUT = (
    "write such values as strings, put a row with every field first, or do not keep this column"
)


def shown(value: Any) -> str:
    """A value in a message."""
    written = json.dumps(value, ensure_ascii=False, default=str)
    return written if len(written) <= 40 else f"{written[:30]}... ({len(written)} characters)"


def fitted(value: Any, dtype: pa.DataType) -> tuple[bool, Any]:
    """(whether a column of the type holds the value as it is, the value to give to Arrow)."""
    if value is None or (type(value) is str and pa.types.is_string(dtype)):
        return True, value
    try:
        # `pa.array` refuses integers beyond 2**53 as float64, be they exact or not.
        given = float(value) if type(value) is int and pa.types.is_floating(dtype) else value
        return _same(value, pa.array([given], dtype)[0].as_py()), given
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
    if isinstance(value, bool) or isinstance(stored, bool):
        return value is stored
    return bool(value == stored or value != value)


def guess_type(rows: Sequence[dict[str, Any]], name: str, source: Source) -> pa.DataType:
    """The Arrow type of a kept column by its values; string where all are null.

    Dates stay the strings they are.
    """
    try:
        return _typed(pa.array([row.get(name) for row in rows]).type)
    except _NoFields:
        reason = "holds objects without any field, which have no type; do not keep this column"
    except RecursionError:
        reason = "is nested too deeply; do not keep this column"
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        reason = f"holds values of several kinds, or integers beyond int64; {WAY_OUT}"
    raise InputError(f"kept column {name!r} {reason}", source.name)


class _NoFields(Exception):
    """A part of a type is a struct of nothing, which Parquet cannot store."""


def _typed(dtype: pa.DataType) -> pa.DataType:
    """The type with string for every part that only held nulls so far."""
    if pa.types.is_null(dtype):
        return pa.string()
    if pa.types.is_list(dtype):
        return pa.list_(_typed(dtype.value_type))
    if pa.types.is_struct(dtype):
        if not dtype.num_fields:
            raise _NoFields
        return pa.struct([(part.name, _typed(part.type)) for part in dtype])
    return dtype
