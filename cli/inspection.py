"""An inspection on the terminal: numbers, tokens and tensors, of a text or of a stored row."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .streams import shown
from .values import shown_float, shown_value

if TYPE_CHECKING:
    from numtok.corpus.look import StoredRow
    from numtok.tokenizer.inspect import Inspection, Token, View

INK, TEXT_PAPERS, NUMBER_PAPER, PLACE_INK = (
    235,
    (254, 251),
    215,
    166,
)  # of the 256 colours, legible on dark and on light terminals
LONGEST_TEXT, LONGEST_ROW = 2000, 2000  # characters and tokens that are shown of a stored row


def print_stored_row(row: StoredRow, limit: int, colour: bool, width: int) -> None:
    """The file, its row as text, as tokens, and what is stored beside them."""
    click.echo(click.style(shown(row.path), bold=True), color=colour)
    labels = max(len(label) for label, _ in row.facts)
    for label, value in row.facts:
        click.echo(f"  {click.style(label.ljust(labels), dim=True)}  {shown(value)}", color=colour)
    click.echo()
    if row.text is None:
        click.echo(f"row {row.row:,} has no text", color=colour)
        return
    click.echo(click.style(f"row {row.row:,}", bold=True), color=colour)
    click.echo(
        "  "
        + shown(row.text[:LONGEST_TEXT])
        + (f"… ({len(row.text):,} characters)" if len(row.text) > LONGEST_TEXT else ""),
        color=colour,
    )
    click.echo()
    more = f", the first {LONGEST_ROW:,} of which are" if len(row.tokens) > LONGEST_ROW else ""
    click.echo(
        click.style(f"{len(row.tokens):,} token{'s' * (len(row.tokens) != 1)}{more}", dim=True),
        color=colour,
    )
    for line in token_lines(row.tokens[:LONGEST_ROW], colour, width - 2):
        click.echo("  " + line, color=colour)
    rows: list[tuple[str, ...]] = [("number", "at token", *row.columns)]
    for place, (surface, first) in enumerate(row.numbers[:limit]):
        rows.append(
            (
                short(surface),
                f"{first:,}",
                *(shown_value(name, column[place]) for name, column in row.columns.items()),
            )
        )
    for line in ["", *aligned(rows, width)] if row.numbers else ["", "  no numbers"]:
        click.echo(line, color=colour)
    if len(row.numbers) > limit:
        click.echo(
            click.style(f"  and {len(row.numbers) - limit:,} more: raise --limit", dim=True),
            color=colour,
        )


def print_inspection(inspection: Inspection, limit: int, colour: bool, width: int) -> None:
    """Numbers first, then one block per representation."""
    for line in _number_lines(inspection, limit, colour, width):
        click.echo(line, color=colour)
    for view in inspection.views:
        click.echo()
        cost = "" if view.per_number is None else f", {view.per_number:.2f} per number"
        remark = (
            f"{len(view.tokens):,} token{'s' * (len(view.tokens) != 1)}{cost}, engine {view.engine}"
        )
        click.echo(
            f"{click.style('+'.join(view.names), bold=True)}  {click.style(remark, dim=True)}",
            color=colour,
        )
        for line in token_lines(view.tokens, colour, width - 2):
            click.echo("  " + line, color=colour)
        for line in _column_lines(inspection, view, limit, width):
            click.echo("  " + line, color=colour)


def _number_lines(inspection: Inspection, limit: int, colour: bool, width: int) -> list[str]:
    numbers = inspection.numbers
    title = click.style(f"{len(numbers):,} number{'s' * (len(numbers) != 1)}", bold=True)
    if not numbers:
        return [title]
    rows = [("as written", "characters", "exact value", "float64")]
    for number in numbers[:limit]:
        rows.append(
            (
                short(number.text),
                f"{number.start}-{number.stop}",
                short(f"{number.value}"),
                shown_float(number.as_float),
            )
        )
    lines = [title, *aligned(rows, width)]
    return lines + (
        [click.style(f"  and {len(numbers) - limit:,} more: raise --limit", dim=True)]
        if len(numbers) > limit
        else []
    )


def _column_lines(inspection: Inspection, view: View, limit: int, width: int) -> list[str]:
    """The tensors, a row per number."""
    if not view.columns or not view.taken:
        return []
    rows: list[tuple[str, ...]] = [("", *view.columns)]
    for place, number in enumerate(view.taken[:limit]):
        rows.append(
            (
                short(inspection.numbers[number].text),
                *(shown_value(name, column[place]) for name, column in view.columns.items()),
            )
        )
    return ["", *aligned(rows, width, indent="")]


def aligned(rows: Sequence[tuple[str, ...]], width: int, indent: str = "  ") -> list[str]:
    """A table whose first line is a dim heading; its last column is cut where the line ends."""
    widths = [max(columns_of(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell + " " * (size - columns_of(cell)) for cell, size in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    lines = [
        indent + (line if len(line) <= width - 2 else line[: width - 3] + "…") for line in lines
    ]
    return [click.style(lines[0], dim=True), *lines[1:]]


def token_lines(tokens: tuple[Token, ...], colour: bool, width: int) -> list[str]:
    """Tokens as chips, wrapped; below them their place values, if there are any."""
    has_places = any(token.place for token in tokens)
    lines, upper, lower, used, shade = [], "", "", 0, 0
    for token in tokens:
        text = shown(token.text)
        place = f"{token.place}" if token.place else ""
        wide = max(columns_of(text), len(place))
        size = wide + (0 if colour else 1)
        if used + size > width and used:
            lines += [upper, lower] if has_places else [upper]
            upper, lower, used = "", "", 0
        upper += _chip(text, token.number is not None, shade, colour) + " " * (
            wide - columns_of(text)
        )
        lower += click.style(place.ljust(wide), fg=PLACE_INK) + ("" if colour else " ")
        used, shade = used + size, 1 - shade
    lines += [upper, lower] if has_places else [upper]
    return [line.rstrip() if not colour else line for line in lines]


def _chip(text: str, is_number: bool, shade: int, colour: bool) -> str:
    """Colour for a terminal; otherwise tokens end in a bar."""
    if not colour:
        return text + "|"
    return str(
        click.style(
            text, fg=INK, bg=NUMBER_PAPER if is_number else TEXT_PAPERS[shade], bold=is_number
        )
    )


def columns_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(
        (unicodedata.east_asian_width(c) in "WF") + (not unicodedata.combining(c)) for c in text
    )


def short(text: str, most: int = 32) -> str:
    """The text on one line of at most so many characters, with its length if it is cut."""
    text = shown(text)
    return text if len(text) <= most else f"{text[: most - 12]}…({len(text):,})"
