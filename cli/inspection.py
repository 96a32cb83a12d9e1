"""An inspection of a text or of a stored row: as data, which the page of ``--html`` draws, and which
is printed on a terminal.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .console import counted, echo, shown

if TYPE_CHECKING:
    from numtok.corpus.look import StoredRow
    from numtok.tokenizer.inspect import Inspection, Token

# of the 256 colours, legible on dark and on light terminals
INK, TEXT_PAPERS, NUMBER_PAPER, PLACE_INK = 235, (254, 251), 215, 166
LONGEST_TEXT, LONGEST_ROW = 2000, 2000  # characters and tokens that are printed of a stored row


def of_text(inspection: Inspection) -> dict[str, Any]:
    """What is shown of a text."""
    numbers = []
    for one in inspection.numbers:
        place = f"{one.start}–{one.stop}"
        cells = [short(str(one.value), 40), _float(one.as_float), place]
        numbers.append({"text": one.text, "start": one.start, "stop": one.stop, "cells": cells})
    views = []
    for view in inspection.views:
        left = len(numbers) - len(view.taken)
        cost = "" if view.per_number is None else f", {view.per_number:.2f} per number"
        remark = cost + (f", {left:,} left as text" if left else "") + f", engine {view.engine}"
        name = " + ".join(view.names)
        views.append(_view(name, remark, view.tokens, view.taken, view.columns))
    return {
        "kind": "inspect",
        "title": f"{counted(numbers, 'number')} in {counted(inspection.text, 'character')}",
        "text": inspection.text,
        "headings": ["exact value", "float64", "characters"],
        "numbers": numbers,
        "views": views,
    }


def of_row(row: StoredRow) -> dict[str, Any]:
    """What is shown of a row of an encoded file."""
    numbers = [{"text": text, "cells": [f"{first:,}"]} for text, first in row.numbers]
    where = f"row {row.row:,} of {shown(row.path)}"
    return {
        "kind": "inspect",
        "title": f"{where} has no text" if row.text is None else f"{counted(numbers, 'number')} in {where}",
        "text": row.text or "",
        "facts": [(label, shown(value)) for label, value in row.facts],
        "headings": ["at token"],
        "numbers": numbers,
        "views": [_view("as stored", "", row.tokens, range(len(numbers)), row.columns)],
    }  # fmt: skip


def _view(
    name: str, remark: str, tokens: Sequence[Token], taken: Sequence[int], columns: dict[str, Any]
) -> dict[str, Any]:
    """One representation: tokens as [text, id, number, place], and a row of values per number."""
    return {
        "name": name,
        "remark": counted(tokens, "token") + remark,
        "tokens": [[token.text, token.id, token.number, token.place] for token in tokens],
        "columns": list(columns),
        "rows": [
            [number, *(_value(column, values[at]) for column, values in columns.items())]
            for at, number in enumerate(taken)
        ],
    }


def _value(name: str, value: Any) -> dict[str, Any]:
    """One number's value in the column ``name`` as text; bits by field and phases as pairs besides."""
    import numpy as np

    array = np.asarray(value)
    if bits := bit_fields(name, array):
        return {"text": " ".join(bits), "bits": bits}
    values = array.tolist()
    if array.ndim == 0:
        return {"text": _float(values)}
    if array.ndim == 2:
        phases = [[round(one, 3) for one in pair] for pair in values]
        return {"text": " ".join(f"({x:+.2f} {y:+.2f})" for x, y in values), "phases": phases}
    if np.issubdtype(array.dtype, np.integer):
        return {"text": ("" if array.max(initial=0) < 10 else " ").join(map(str, values))}
    return {"text": " ".join(f"{one:+.2f}" for one in values)}


def bit_fields(name: str, value: Any) -> list[str]:
    """The bits of a value in the column ``name``, an array or a scalar of numpy, by field: sign,
    exponent and mantissa of a float, or of several; none if they are no bits.
    """
    from numtok.representations import streams

    size = value.size if value.ndim else 8 * value.itemsize
    known = (column.bit_fields for column in streams()[name])
    fields = next((one for one in known if one and sum(one) == size), ())
    bits = "".join(map(str, value.tolist())) if value.ndim else ""
    if fields and not value.ndim:
        bits = f"{int(value):0{size}b}"
    return [bits[stop - field : stop] for stop, field in zip(itertools.accumulate(fields), fields)]  # noqa: B905


def short(text: str, most: int = 32) -> str:
    """The text on one line of at most so many characters, with its length if it is cut."""
    text = shown(text)
    return text if len(text) <= most else f"{text[: most - 12]}…({len(text):,})"


def _float(value: Any) -> str:
    """The shortest decimal that reads back as the same float; ``12`` rather than ``12.0``."""
    return str(value).removesuffix(".0")


# On a terminal
# ----------------------------------------------------------------------------------------------


def print_inspection(data: dict[str, Any], limit: int, colour: bool, width: int) -> None:
    """Numbers first, then one block per representation; of a stored row also the file and the text."""
    lines, numbers = [click.style(data["title"], bold=True)], data["numbers"]
    if "facts" in data:
        lines += [
            f"  {click.style(f'{label:<10}', dim=True)}  {value}" for label, value in data["facts"]
        ]
        more = f"… ({len(data['text']):,} characters)" if len(data["text"]) > LONGEST_TEXT else ""
        lines += ["", f"  {shown(data['text'][:LONGEST_TEXT])}{more}", ""]
    if numbers:
        rows = [[short(one["text"]), *one["cells"]] for one in numbers[:limit]]
        lines += aligned([["as written", *data["headings"]], *rows], width)
    if len(numbers) > limit:
        lines.append(click.style(f"  and {len(numbers) - limit:,} more: raise --limit", dim=True))
    for view in data["views"]:
        remark = view["remark"]
        if len(view["tokens"]) > LONGEST_ROW and "facts" in data:
            remark += f", the first {LONGEST_ROW:,} of which are"
        lines += ["", f"{click.style(view['name'], bold=True)}  {click.style(remark, dim=True)}"]
        tokens = view["tokens"][:LONGEST_ROW] if "facts" in data else view["tokens"]
        lines += [f"  {line}" for line in token_lines(tokens, colour, width - 2)]
        if view["columns"] and view["rows"]:
            rows = [["", *view["columns"]]]
            for number, *values in view["rows"][:limit]:
                rows.append([short(numbers[number]["text"]), *(value["text"] for value in values)])
            lines += ["", *aligned(rows, width)]
    for line in lines:
        echo(line)


def aligned(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """A table whose first line is a dim heading; its last column is cut where the line ends."""
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        line = "  ".join(cell + " " * (size - columns_of(cell)) for cell, size in cells).rstrip()
        lines.append("  " + (line if len(line) <= width - 2 else line[: width - 3] + "…"))
    return [click.style(lines[0], dim=True), *lines[1:]]


def token_lines(tokens: Sequence[Sequence[Any]], colour: bool, width: int) -> list[str]:
    """Tokens as chips, or ended by bars without colour, wrapped; below them their places."""
    has_places = any(place for *_, place in tokens)
    lines, upper, lower, used, shade = [], "", "", 0, 0
    for token, _, number, place in [*tokens, ("", 0, None, None)]:
        text, below = shown(token) + "|" * (not colour), str(place or "")
        wide = max(columns_of(text), len(below) + (not colour))
        if not token or (used and used + wide > width):
            lines += [upper.rstrip(), lower.rstrip()] if has_places else [upper.rstrip()]
            upper, lower, used = "", "", 0
        paper = TEXT_PAPERS[shade] if number is None else NUMBER_PAPER
        chip = click.style(text, fg=INK, bg=paper, bold=number is not None) if colour else text
        upper += chip + " " * (wide - columns_of(text))
        lower += click.style(below.ljust(wide), fg=PLACE_INK)
        used, shade = used + wide, 1 - shade
    return lines


def columns_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(
        (unicodedata.east_asian_width(c) in "WF") + (not unicodedata.combining(c)) for c in text
    )
