"""``numtok inspect``: one text as several representations see it, on the terminal or as a page."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .console import debug_option, use_colour
from .options import OnceCommand, grammar_options, make_grammar, overflow_option, tokenizer_option
from .streams import shown
from .values import shown_float, shown_value

if TYPE_CHECKING:
    from numtok.tokenizer.inspect import Inspection, Token, View

EPILOG = """\b
Examples:
  numtok inspect "Water boils at 99.61 °C under 1,000 hPa"
  numtok inspect "-1.5e-3 of 87600 items" --numbers xval,bits --numbers place
  echo "Total: 1,234.50" | numtok inspect --numbers subword --html page.html
"""
DEFAULT_NUMBERS = ("xval,bits", "place", "subword")
INK, TEXT_PAPERS, NUMBER_PAPER, PLACE_INK = 235, (254, 251), 215, 166  # of the 256 colours, legible on dark and on light terminals


# A text may begin with a minus sign, so what is no option is the text.
@click.command(cls=OnceCommand, epilog=EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument("text", required=False)
@click.option(
    "--numbers",
    multiple=True,
    metavar="LIST",
    help="Representations to compare, such as xval,bits; repeatable.  [default: xval,bits; place; subword]",
)
@tokenizer_option
@grammar_options
@overflow_option
@click.option("--limit", type=click.IntRange(1), default=40, show_default=True, help="Numbers to list.")
@click.option("--html", "page", metavar="FILE", help="Write a page for the browser instead.")
@debug_option
def inspect(
    text: str | None,
    numbers: tuple[str, ...],
    tokenizer: str | None,
    grammar: str,
    pattern: str | None,
    overflow: str | None,
    limit: int,
    page: str | None,
) -> None:
    """Show the numbers in TEXT (or standard input), the tokens, and the tensors."""
    text = _from_stdin() if text is None or text == "-" else text
    from numtok import Tokenizer
    from numtok.representations.chosen import choose
    from numtok.tokenizer.inspect import inspect_text

    rules = make_grammar(grammar, pattern)
    choices = [choose(names, overflow) for names in numbers or DEFAULT_NUMBERS]
    inspection = inspect_text(text, [Tokenizer.from_pretrained(tokenizer, chosen, rules) for chosen in choices])
    if page is not None:
        from .page import write_page

        write_page(inspection, page)
        click.echo(f"{shown(page)}: {len(inspection.numbers):,} numbers, {len(inspection.views)} representations; open it in a browser")
        return
    print_inspection(inspection, limit, use_colour(sys.stdout), shutil.get_terminal_size().columns if sys.stdout.isatty() else 100)


def _from_stdin() -> str:
    """Standard input as text."""
    from numtok.errors import InputError

    data = sys.stdin.buffer.read()
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InputError(f'byte {error.start} is not UTF-8; convert the text with "iconv -f ENCODING -t UTF-8"', "<stdin>") from None


def print_inspection(inspection: Inspection, limit: int, colour: bool, width: int) -> None:
    """Numbers first, then one block per representation."""
    for line in _number_lines(inspection, limit, colour, width):
        click.echo(line, color=colour)
    for view in inspection.views:
        click.echo()
        cost = "" if view.per_number is None else f", {view.per_number:.2f} per number"
        remark = f"{len(view.tokens):,} token{'s' * (len(view.tokens) != 1)}{cost}, engine {view.engine}"
        click.echo(f"{click.style('+'.join(view.names), bold=True)}  {click.style(remark, dim=True)}", color=colour)
        for line in _token_lines(view.tokens, colour, width - 2):
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
        rows.append((_short(number.text), f"{number.start}-{number.stop}", _short(f"{number.value}"), shown_float(number.as_float)))
    lines = [title, *_aligned(rows, width)]
    return lines + ([click.style(f"  and {len(numbers) - limit:,} more: raise --limit", dim=True)] if len(numbers) > limit else [])


def _column_lines(inspection: Inspection, view: View, limit: int, width: int) -> list[str]:
    """The tensors, a row per number."""
    if not view.columns or not view.taken:
        return []
    rows: list[tuple[str, ...]] = [("", *view.columns)]
    for place, number in enumerate(view.taken[:limit]):
        rows.append((_short(inspection.numbers[number].text), *(shown_value(name, column[place]) for name, column in view.columns.items())))
    return ["", *_aligned(rows, width, indent="")]


def _aligned(rows: Sequence[tuple[str, ...]], width: int, indent: str = "  ") -> list[str]:
    """A table whose first line is a dim heading; its last column is cut where the line ends."""
    widths = [max(_columns_of(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(cell + " " * (size - _columns_of(cell)) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines = [indent + (line if len(line) <= width - 2 else line[: width - 3] + "…") for line in lines]
    return [click.style(lines[0], dim=True), *lines[1:]]


def _token_lines(tokens: tuple[Token, ...], colour: bool, width: int) -> list[str]:
    """Tokens as chips, wrapped; below them their place values, if there are any."""
    has_places = any(token.place for token in tokens)
    lines, upper, lower, used, shade = [], "", "", 0, 0
    for token in tokens:
        text = shown(token.text)
        place = f"{token.place}" if token.place else ""
        wide = max(_columns_of(text), len(place))
        size = wide + (0 if colour else 1)
        if used + size > width and used:
            lines += [upper, lower] if has_places else [upper]
            upper, lower, used = "", "", 0
        upper += _chip(text, token.number is not None, shade, colour) + " " * (wide - _columns_of(text))
        lower += click.style(place.ljust(wide), fg=PLACE_INK) + ("" if colour else " ")
        used, shade = used + size, 1 - shade
    lines += [upper, lower] if has_places else [upper]
    return [line.rstrip() if not colour else line for line in lines]


def _chip(text: str, is_number: bool, shade: int, colour: bool) -> str:
    """Colour for a terminal; otherwise tokens end in a bar."""
    if not colour:
        return text + "|"
    return str(click.style(text, fg=INK, bg=NUMBER_PAPER if is_number else TEXT_PAPERS[shade], bold=is_number))


def _columns_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum((unicodedata.east_asian_width(c) in "WF") + (not unicodedata.combining(c)) for c in text)


def _short(text: str, most: int = 32) -> str:
    text = shown(text)
    return text if len(text) <= most else f"{text[: most - 12]}…({len(text):,})"
