"""Rows of tables as texts: ``{name} costs {price}``, or a line for each column, with every value as
it is written there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from numtok.corpus.read.sources import Source
from numtok.errors import InputError, MissingInputError

ROW = "row"
_PARTS = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]|\\[nt]")
_ESCAPES = {"{{": "{", "}}": "}", "\\n": "\n", "\\t": "\t"}
_EXAMPLE = "write it as in '{name} costs {price}', with {{ for a brace, or 'row' for all columns"


class _Written(str):
    """A number of JSON as it is written."""


# Numbers as they are written; for the rest, as JSON is read everywhere.
AS_WRITTEN = json.JSONDecoder(parse_int=_Written, parse_float=_Written, parse_constant=_Written)


class Template:
    """How a row becomes a text: ``columns`` in braces, which are doubled where they are meant, with
    ``\\n`` and ``\\t`` for a line break and a tab; or ``row``, which needs none, a line
    ``column: value`` for each value. InputError if it names no column, or a brace is alone.
    """

    def __init__(self, text: str) -> None:
        self.text = text
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

    def needed(self, names: Sequence[str], source: Source) -> list[str]:
        """The columns that it takes of those that are there; InputError if one is not, or twice."""
        wanted = self.columns or tuple(names)
        for name in wanted:
            if names.count(name) != 1:
                listing = ", ".join(map(repr, names)) or "none"
                problem = "is there twice" if name in names else "is not there"
                raise MissingInputError(
                    f"column {name!r} of the template {problem}; the columns are {listing}",
                    source.name,
                )
        return list(wanted)

    def of_columns(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """large_string: the text of each row, null where all of its values are."""
        import pyarrow.compute as pc

        texts = {name: as_texts(column) for name, column in columns.items()}
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
        return pc.if_else(empty, _scalar(None), joined)

    def of_rows(self, rows: Sequence[Mapping[str, str] | None]) -> pa.Array:
        """The same of objects of JSON, each given as :func:`as_written` gives it."""
        names = self.columns or dict.fromkeys(name for row in rows for name in row or ())
        values = {name: [row.get(name) if row else None for row in rows] for name in names}
        columns = {name: pa.array(texts, pa.large_string()) for name, texts in values.items()}
        return self.of_columns(columns) if columns else pa.nulls(len(rows), pa.large_string())


def _scalar(text: str | None) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def as_texts(column: pa.Array) -> pa.Array:
    """Values as text; those that Arrow has no text for as JSON."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return column.cast(pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        values = column.to_pylist()
        texts = [
            None if one is None else json.dumps(one, ensure_ascii=False, default=str)
            for one in values
        ]
        return pa.array(texts, pa.large_string())


def as_written(row: Mapping[str, Any]) -> dict[str, str]:
    """The values, but for null, of an object that :data:`AS_WRITTEN` parsed, as texts."""
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
