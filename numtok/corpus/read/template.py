"""Rows of tables as texts: ``{name} costs {price}``, or a line for each column, with every value as
it is written there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.errors import InputError, MissingInputError

ROW = "row"
_PARTS = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]|\\[nt]")
_ESCAPES = {"{{": "{", "}}": "}", "\\n": "\n", "\\t": "\t"}
_EXAMPLE = "write it as in '{name} costs {price}', with {{ for a brace, or 'row' for all columns"


class _Written(str):
    """A number of JSON as it is written."""


# Numbers as they are written; for the rest, as JSON is read everywhere.
AS_WRITTEN = json.JSONDecoder(parse_int=_Written, parse_float=_Written, parse_constant=_Written)


class Cells(NamedTuple):
    """Where the values of a template's columns stand in the texts: k spans of each row, ascending."""

    names: tuple[str, ...]  # k columns; one may be named several times
    starts: npt.NDArray[np.int64]  # [rows, k], in bytes of UTF-8
    stops: npt.NDArray[np.int64]  # [rows, k]; where a row has no such value, its start

    def rows(self, chosen: npt.NDArray[np.int64] | slice) -> Cells:
        """Select rows, in this order."""
        return Cells(self.names, self.starts[chosen], self.stops[chosen])

    def column_of(
        self, document: npt.NDArray[np.integer[Any]], stop: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return int64[n]: in which of the k spans n numbers end; -1 for text that the template has
        itself.

        ``document``, ``stop``: the rows of the numbers, and where they end there.
        """
        if not self.stops.size or not len(document):
            return np.full(len(document), -1, np.int64)
        longest = int(max(self.stops.max(), stop.max())) + 1
        before = np.arange(len(self.stops), dtype=np.int64) * longest
        ends = (self.stops + before[:, None]).ravel()
        place = np.searchsorted(ends, before[document] + stop)
        beyond = place == ends.size  # text behind the last value
        row, column = np.divmod(np.where(beyond, 0, place), len(self.names))
        inside = ~beyond & (row == document) & (self.starts[row, column] < stop)
        return np.where(inside, column, -1)

    def counted(self, columns: npt.NDArray[np.int64]) -> dict[str, int]:
        """Count numbers by column, by what ``column_of`` returned."""
        counts: dict[str, int] = {}
        each = np.bincount(columns[columns >= 0], minlength=len(self.names)).tolist()
        for name, count in zip(self.names, each, strict=True):
            if count:
                counts[name] = counts.get(name, 0) + count
        return counts

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Cells:
        """Concatenate the rows of some batches with the same columns."""
        ends = [(part.starts, part.stops) for part in parts]
        return cls(parts[0].names, *map(np.concatenate, zip(*ends, strict=True)))


class Template:
    """A template that makes a text of a row: ``columns`` in braces, literal braces doubled, with
    ``\\n`` and ``\\t`` for a line break and a tab; or ``row``, a line ``column: value`` for each
    value. InputError if the template names no column, or a brace is alone.
    """

    def __init__(self, text: str) -> None:
        self._pieces: list[tuple[str, str | None]] = []  # (text, the column after it)
        if text == ROW:
            self.columns: tuple[str, ...] = ()
            return
        before, done = "", 0
        for part in _PARTS.finditer(text):
            before += text[done : part.start()]
            done = part.end()
            if part[1] is not None:
                self._pieces.append((before, part[1]))
                before = ""
            elif part[0] in _ESCAPES:
                before += _ESCAPES[part[0]]
            else:
                raise InputError(f"template {text!r} has a brace alone; {_EXAMPLE}")
        if not self._pieces:
            raise InputError(f"template {text!r} names no column; {_EXAMPLE}")
        self._pieces.append((before + text[done:], None))
        self.columns = tuple(dict.fromkeys(name for _, name in self._pieces if name is not None))

    def of_columns(self, columns: Mapping[str, pa.Array], path: str = "") -> tuple[pa.Array, Cells]:
        """Return large_string, the text of each row, null where all of its values are; and where
        the values stand in it. MissingInputError naming the file ``path`` for a column without
        texts.
        """
        import pyarrow.compute as pc

        texts = {name: as_texts(column, name, path) for name, column in columns.items()}
        nulls = [pc.is_null(text) for text in texts.values()]
        if self.columns:
            parts = []
            for before, name in self._pieces:
                parts.append(_scalar(before))
                if name is not None:
                    parts.append(pc.fill_null(texts[name], ""))
            joined = pc.binary_join_element_wise(*parts, _scalar(""))
        else:
            # not joined by line breaks: rows without any line would be left out
            lines = [
                pc.if_else(
                    pc.equal(pc.fill_null(text, ""), ""),
                    _scalar(""),
                    pc.binary_join_element_wise(_scalar(f"\n{name}"), text, _scalar(": ")),
                )
                for name, text in texts.items()
            ]
            joined = pc.utf8_slice_codeunits(
                pc.binary_join_element_wise(*lines, _scalar("")), 1, None
            )
        empty = nulls[0]
        for one in nulls[1:]:
            empty = pc.and_(empty, one)
        return pc.if_else(empty, _scalar(None), joined), self._cells(texts)

    def _cells(self, texts: Mapping[str, pa.Array]) -> Cells:
        """Return where the values stand in the texts of the rows."""
        import pyarrow.compute as pc

        lengths = {
            name: np.asarray(pc.fill_null(pc.binary_length(text), 0), np.int64)
            for name, text in texts.items()
        }
        pieces = [(len(before.encode()), name) for before, name in self._pieces if name is not None]
        pieces = pieces or [(len(f"\n{name}: ".encode()), name) for name in texts]
        rows = len(next(iter(lengths.values())))
        starts = np.zeros((rows, len(pieces)), np.int64)
        stops = np.zeros_like(starts)
        done = np.full(rows, 0 if self._pieces else -1)  # the first line break is taken away
        for place, (before, name) in enumerate(pieces):
            there = True if self._pieces else lengths[name] > 0  # an empty value gets no line
            starts[:, place] = done = done + before * there
            stops[:, place] = done = done + lengths[name]
        return Cells(tuple(name for _, name in pieces), starts, stops)

    def of_rows(self, rows: Sequence[Mapping[str, str] | None]) -> tuple[pa.Array, Cells]:
        """Return texts and cells, as :meth:`of_columns` does, of objects of JSON, each given as
        :func:`as_written` gives it.
        """
        names = self.columns or dict.fromkeys(name for row in rows for name in row or ())
        values = {name: [row.get(name) if row else None for row in rows] for name in names}
        columns = {name: pa.array(texts, pa.large_string()) for name, texts in values.items()}
        if columns:
            return self.of_columns(columns)
        none = np.zeros((len(rows), 0), np.int64)
        return pa.nulls(len(rows), pa.large_string()), Cells((), none, none)


def _scalar(text: str | None) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def as_texts(column: pa.Array, name: str, path: str) -> pa.Array:
    """Return the values as large_string: numbers in their shortest form, decimals with all their
    digits, times in that of ISO 8601, durations as whole numbers. MissingInputError for nested
    values, and for bytes that are no text.

    >>> as_texts(pa.array([0.1, None], pa.float16()), "price", "a.parquet").to_pylist()
    ['0.1', None]
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    try:
        if pa.types.is_decimal(column.type):
            return _decimals(column)
        if pa.types.is_float16(column.type):
            return _shortest(column).cast(pa.large_string())
        if pa.types.is_timestamp(column.type) or pa.types.is_time(column.type):
            return _times(column)
        if pa.types.is_duration(column.type):
            column = column.cast(pa.int64())
        return column.cast(pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        why = "nested" if pa.types.is_nested(column.type) else str(error).splitlines()[0]
        raise MissingInputError(
            f"column {name!r} of the template is of type {column.type}, whose values are no texts"
            f" ({why}); name other columns, or write its values into plain ones",
            path,
        ) from None


def _decimals(column: pa.Array) -> pa.Array:
    """Return decimals with as many digits behind the point as the type has: ``0.00000000``, where
    Arrow writes ``0E-8``.
    """
    import pyarrow.compute as pc

    texts = column.cast(pa.large_string())
    in_powers = pc.fill_null(pc.match_substring(texts, "E"), False)
    if not pc.any(in_powers).as_py():
        return texts
    written = [format(value, "f") for value in column.filter(in_powers).to_pylist()]
    return pc.replace_with_mask(texts, in_powers, pa.array(written, pa.large_string()))


def _shortest(column: pa.Array) -> pa.Array:
    """Return half floats as the float64 of the shortest decimal that rounds to each: 0.1, where a
    conversion gives 0.0999755859375.
    """
    values = column.to_numpy(zero_copy_only=False)  # float16[n], nan for null
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array([float(str(value)) for value in values], pa.float64(), mask=nulls)


def _times(column: pa.Array) -> pa.Array:
    """Return ``2020-01-02T03:04:05.5+01:00`` or ``03:04:05``, without zeros that end a fraction."""
    import pyarrow.compute as pc

    texts = pc.replace_substring(column.cast(pa.large_string()), " ", "T", max_replacements=1)
    zone = "((?:Z|[+-][0-9]{4})?)$"
    for pattern, replacement in (
        (rf"\.0+{zone}", r"\1"),
        (rf"(\.[0-9]*[1-9])0+{zone}", r"\1\2"),
        (r"(:.*[+-][0-9]{2})([0-9]{2})$", r"\1:\2"),
    ):
        texts = pc.replace_substring_regex(texts, pattern, replacement)
    return texts


def as_written(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the values, but for null, of an object that :data:`AS_WRITTEN` parsed, as texts."""
    return {name: _as_text(value) for name, value in row.items() if value is not None}


def _as_text(value: Any, inside: bool = False) -> str:
    if isinstance(value, str) and (not inside or isinstance(value, _Written)):
        return str(value)
    if isinstance(value, dict):
        inner = (
            f"{json.dumps(key, ensure_ascii=False)}: {_as_text(one, True)}"
            for key, one in value.items()
        )
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_as_text(one, True) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)
