"""An inspection on the terminal: numbers, tokens and tensors, of a text or of a stored row."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from .streams import shown

if TYPE_CHECKING:
    from numtok.corpus.look import StoredRow
    from numtok.tokenizer.inspect import Inspection, Token

# of the 256 colours, legible on dark and on light terminals
INK, TEXT_PAPERS, NUMBER_PAPER, PLACE_INK = 235, (254, 251), 215, 166
LONGEST_TEXT, LONGEST_ROW = 2000, 2000  # characters and tokens that are shown of a stored row


def print_stored_row(row: StoredRow, limit: int, colour: bool, width: int) -> None:
    """The file, its row as text, as tokens, and what is stored beside them."""
    labels = max(len(label) for label, _ in row.facts)
    lines = [click.style(shown(row.path), bold=True)]
    lines += [
        f"  {click.style(label.ljust(labels), dim=True)}  {shown(value)}"
        for label, value in row.facts
    ]
    if row.text is None:
        _print([*lines, "", f"row {row.row:,} has no text"], colour)
        return
    cut = f"… ({len(row.text):,} characters)" if len(row.text) > LONGEST_TEXT else ""
    more = f", the first {LONGEST_ROW:,} of which are" if len(row.tokens) > LONGEST_ROW else ""
    lines += ["", click.style(f"row {row.row:,}", bold=True)]
    lines += [f"  {shown(row.text[:LONGEST_TEXT])}{cut}", ""]
    lines.append(click.style(f"{_count(row.tokens, 'token')}{more}", dim=True))
    lines += [f"  {line}" for line in token_lines(row.tokens[:LONGEST_ROW], colour, width - 2)]
    rows = [("number", "at token", *row.columns)]
    for place, (surface, first) in enumerate(row.numbers[:limit]):
        values = (shown_value(name, column[place]) for name, column in row.columns.items())
        rows.append((short(surface), f"{first:,}", *values))
    lines += ["", *aligned(rows, width)] if row.numbers else ["", "  no numbers"]
    _print([*lines, *_more(len(row.numbers), limit)], colour)


def print_inspection(inspection: Inspection, limit: int, colour: bool, width: int) -> None:
    """Numbers first, then one block per representation."""
    numbers = inspection.numbers
    lines = [click.style(_count(numbers, "number"), bold=True)]
    rows = [("as written", "characters", "exact value", "float64")]
    for number in numbers[:limit]:
        at, exact = f"{number.start}-{number.stop}", short(f"{number.value}")
        rows.append((short(number.text), at, exact, shown_float(number.as_float)))
    lines += [*aligned(rows, width), *_more(len(numbers), limit)] if numbers else []
    for view in inspection.views:
        cost = "" if view.per_number is None else f", {view.per_number:.2f} per number"
        remark = click.style(
            f"{_count(view.tokens, 'token')}{cost}, engine {view.engine}", dim=True
        )
        lines += ["", f"{click.style('+'.join(view.names), bold=True)}  {remark}"]
        lines += [f"  {line}" for line in token_lines(view.tokens, colour, width - 2)]
        if view.columns and view.taken:
            table: list[tuple[str, ...]] = [("", *view.columns)]
            for place, taken in enumerate(view.taken[:limit]):
                values = (shown_value(name, column[place]) for name, column in view.columns.items())
                table.append((short(numbers[taken].text), *values))
            lines += ["  ", *aligned(table, width)]
    _print(lines, colour)


def _print(lines: Iterable[str], colour: bool) -> None:
    for line in lines:
        click.echo(line, color=colour)


def _count(things: Sequence[Any], name: str) -> str:
    return f"{len(things):,} {name}{'s' * (len(things) != 1)}"


def _more(count: int, limit: int) -> list[str]:
    return (
        [click.style(f"  and {count - limit:,} more: raise --limit", dim=True)]
        if count > limit
        else []
    )


def aligned(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """A table whose first line is a dim heading; its last column is cut where the line ends."""
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell + " " * (size - columns_of(cell)) for cell, size in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    lines = ["  " + (line if len(line) <= width - 2 else line[: width - 3] + "…") for line in lines]
    return [click.style(lines[0], dim=True), *lines[1:]]


def token_lines(tokens: tuple[Token, ...], colour: bool, width: int) -> list[str]:
    """Tokens as chips, wrapped; below them their place values, if there are any."""
    has_places = any(token.place for token in tokens)
    lines, upper, lower, used, shade = [], "", "", 0, 0
    for token in tokens:
        text, place = shown(token.text), f"{token.place}" if token.place else ""
        wide = max(columns_of(text), len(place))
        size = wide + (not colour)
        if used + size > width and used:
            lines += [upper, lower] if has_places else [upper]
            upper, lower, used = "", "", 0
        chip = _chip(text, token.number is not None, shade, colour)
        upper += chip + " " * (wide - columns_of(text))
        lower += click.style(place.ljust(wide), fg=PLACE_INK) + ("" if colour else " ")
        used, shade = used + size, 1 - shade
    lines += [upper, lower] if has_places else [upper]
    return [line if colour else line.rstrip() for line in lines]


def _chip(text: str, is_number: bool, shade: int, colour: bool) -> str:
    """Colour for a terminal; otherwise tokens end in a bar."""
    if not colour:
        return text + "|"
    paper = NUMBER_PAPER if is_number else TEXT_PAPERS[shade]
    return str(click.style(text, fg=INK, bg=paper, bold=is_number))


def columns_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(
        (unicodedata.east_asian_width(c) in "WF") + (not unicodedata.combining(c)) for c in text
    )


def short(text: str, most: int = 32) -> str:
    """The text on one line of at most so many characters, with its length if it is cut."""
    text = shown(text)
    return text if len(text) <= most else f"{text[: most - 12]}…({len(text):,})"


def shown_float(value: Any) -> str:
    """The shortest decimal that reads back as the same float; ``12`` rather than ``12.0``."""
    return str(value).removesuffix(".0")


def shown_value(name: str, value: Any) -> str:
    """One number's value in the column ``name``."""
    import numpy as np

    array = np.asarray(value)
    if fields := bit_fields(name, array):
        return " ".join(fields)
    if array.ndim == 0:
        return shown_float(value)
    values = array.tolist()
    if np.issubdtype(array.dtype, np.integer):
        return ("" if array.max(initial=0) < 10 else " ").join(map(str, values))
    return " ".join(
        f"{one:+.2f}" if array.ndim == 1 else f"({one[0]:+.2f} {one[1]:+.2f})" for one in values
    )


def bit_fields(name: str, value: Any) -> list[str]:
    """The bits of a value in the column ``name``, an array or a scalar of numpy, by field: sign,
    exponent and mantissa of a float, or of several; none if they are no bits.
    """
    from numtok.representations import streams

    size = value.size if value.ndim else 8 * value.itemsize
    known = (column.bit_fields for column in streams()[name])
    fields = next((one for one in known if one and sum(one) == size), ())
    bits = (
        "".join(map(str, value.tolist())) if value.ndim else f"{int(value):0{size}b}" * bool(fields)
    )
    return [bits[stop - field : stop] for stop, field in zip(itertools.accumulate(fields), fields)]  # noqa: B905
