"""``numtok inspect``: one text as several representations see it, or a row of a file; as data, which
the page of ``--html`` draws, and which is printed on a terminal.
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from .console import all_shown, counted, echo, shown, use_colour
from .options import (
    COUNT,
    DEBUG,
    DELIMITER,
    FORMAT,
    GRAMMAR,
    OVERFLOW,
    PATTERN,
    TEXT_COLUMN,
    TOKENIZER,
    command,
    group,
    refuse,
)
from .page import page

if TYPE_CHECKING:
    from numtok.corpus.row_viewer import StoredRow
    from numtok.tokenizer.inspect import Inspection, Token

EXAMPLES = """
numtok inspect "Water boils at 99.61 °C under 1,000 hPa"
numtok inspect "-1.5e-3 of 87600 items" --numbers xval,bits --numbers place
echo "Total: 1,234.50" | numtok inspect --numbers subword --html page.html
numtok inspect sample.jsonl --row 2
numtok encode sample.jsonl -o look.parquet --numbers xval:log,bits --quiet
numtok inspect look.parquet --row 2
"""
DEFAULT_NUMBERS = ("xval,bits", "place", "subword")
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# What the columns hold that a reader cannot guess.
COLUMNS = {
    "number_scaled": "the value, or with log its logarithm, times the scale of xval, which is 1 here"
    " unless a corpus gave another",
    "number_bits": "the bits of the float: sign, exponent, mantissa",
    "number_fourier": "one clock for each digit, the last one behind the point first; the clock 10ⁱ"
    " shows what is left of the number below 10ⁱ, as a share of a turn from the right, against the"
    " clock: 90 at 10² is nine tenths of a turn; stored are cosine and sine",
    "number_digits": "the digits that fone has room for, the last one behind the point first",
    "number_log_fourier": "first the sign (right plus, left minus, upwards zero), then the logarithm"
    " of the magnitude on clocks from 1000 powers of ten a turn down to one; stored are cosine and"
    " sine",
    "number_bin": "the bin of the magnitude, on a logarithmic scale",
    "number_quantile_bin": "the bin: how many of the fitted quantiles lie below the number",
    "number_quantile": "the bin, and as its fraction how far the number is from one edge to the next",
}
# of the 256 colours, legible on dark and on light terminals
INK, TEXT_PAPERS, NUMBER_PAPER, PLACE_INK = 235, (254, 251), 215, 166
LONGEST = 2000  # characters of a stored text, and tokens, that are printed


# A text may begin with a minus sign, so what is no option is the text.
@command(EXAMPLES, context_settings={"ignore_unknown_options": True})
@click.argument("what", required=False, metavar="[TEXT|FILE|FOLDER/]")
@group(
    "Text",
    click.option("--text", metavar="TEXT", help="The text, even if a file of that name exists."),
    click.option(
        "--row",
        metavar="N",
        type=COUNT,
        default=1,
        show_default=True,
        help="Which row of the file, from 1.",
    ),
    TEXT_COLUMN,
    FORMAT,
    DELIMITER,
    TOKENIZER,
)
@group(
    "Numbers",
    click.option(
        "--numbers",
        metavar="LIST",
        multiple=True,
        help="A representation to show, or several combined, such as xval,bits; repeat the option"
        " to compare. Default: xval,bits; place; subword.",
    ),
    GRAMMAR,
    PATTERN,
    OVERFLOW,
)
@group(
    "Output",
    click.option(
        "--limit",
        metavar="N",
        type=COUNT,
        default=40,
        show_default=True,
        help="List at most N numbers.",
    ),
    click.option("--html", metavar="FILE", help="Write a page for the browser instead."),
)
@group("Running", DEBUG)
def inspect(
    what: str | None, text: str | None, limit: int, html: str | None, **options: Any
) -> None:
    """Show the numbers of a text, its tokens and columns.

    Give a text, or nothing to read standard input. Give a corpus file to take the text of one row
    (--row), or a file that `numtok encode` wrote to see what is stored for that row; of a folder the
    first file is taken.
    """
    if text is not None and what is not None:
        raise click.UsageError("give a text or --text, not both")
    if html is not None:
        refuse("is for the terminal; a page lists all numbers", "limit")
    if what is not None and _is_file(what):
        data = _of_file(what, **options)
    else:
        refuse(
            "is for a file, and this is a text", "row", "text_column", "input_format", "delimiter"
        )
        source = what if text is None else text
        data = _of_text(_from_stdin() if source in (None, "-") else source, **options)
    if html is not None:
        from numtok.files import write_file

        write_file(html, page(data))
        echo(f"{shown(html)}: {data['title']}; open it in a browser")
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    print_inspection(data, limit, use_colour(sys.stdout), width)


def _of_text(
    text: Any,
    tokenizer: str | None,
    numbers: tuple[str, ...],
    grammar: Any,
    overflow: str | None,
    **_: Any,
) -> dict[str, Any]:
    from numtok import Tokenizer
    from numtok.representations.registry import set_for_all
    from numtok.tokenizer.inspect import inspect_text

    chosen = [set_for_all(names, overflow) for names in numbers or DEFAULT_NUMBERS]
    tokenizers = [Tokenizer.from_pretrained(tokenizer, names, grammar) for names in chosen]
    return of_text(inspect_text(text, tokenizers))


def _of_file(
    path: str,
    row: int,
    text_column: str | None,
    input_format: str | None,
    delimiter: str | None,
    tokenizer: str | None,
    **options: Any,
) -> dict[str, Any]:
    """Return what is shown of a row of a file: the stored row of an encoded file, else a document
    of a corpus.
    """
    from numtok.corpus import row_viewer
    from numtok.corpus.read.documents import find_inputs
    from numtok.corpus.read.encoded import is_encoded

    source, *_ = find_inputs([path], input_format)
    if is_encoded(source.path):
        why = "is for a text; this file holds rows that are encoded already"
        refuse(why, "numbers", "grammar", "pattern", "overflow")
        refuse(why, "text_column", "input_format", "delimiter")
        return of_row(row_viewer.stored_row(source.path, row, tokenizer))
    text = row_viewer.text_of(source.path, row, text_column, input_format, delimiter)
    return _of_text(text, tokenizer, **options)


def _is_file(text: str) -> bool:
    """Whether ``text`` names a file or a folder; UsageError if it can only be meant as a name."""
    if os.path.isdir(text) or os.path.isfile(text):
        return True
    if os.path.exists(text):
        raise click.UsageError(
            f"{text} is neither a file nor a folder, but a pipe or a device; give what it holds on"
            " standard input, or a text with --text."
        )
    if text == "" or any(map(str.isspace, text)):
        return False
    from numtok.corpus import row_viewer
    from numtok.storage import is_url

    if is_url(text):
        return text.endswith("/") or row_viewer.is_name_of_file(text)
    if text.startswith(("/", "./", "../", "~/")) or row_viewer.is_name_of_file(text):
        raise click.UsageError(
            f"no such file: {text}; check the path, or give a text with --text, or - for standard"
            " input"
        )
    return False


def _from_stdin() -> str:
    from numtok.errors import InputError

    data = sys.stdin.buffer.read()
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f'byte {error.start} is not UTF-8; convert the text with "iconv -f ENCODING -t UTF-8"',
            "<stdin>",
        ) from None


# As data
# ----------------------------------------------------------------------------------------------


def of_text(inspection: Inspection) -> dict[str, Any]:
    """Return what is shown of an inspected text."""
    numbers = []
    for one in inspection.numbers:
        place = f"{one.start}–{one.stop}"
        cells = [_short(str(one.value), 40), _float(one.as_float), place]
        numbers.append({"text": one.text, "start": one.start, "stop": one.stop, "cells": cells})
    views = []
    for view in inspection.views:
        left = len(numbers) - len(view.selected)
        cost = "" if view.per_number is None else f", {view.per_number:.2f} per number"
        remark = cost + (f", {left:,} left as text" if left else "") + f", engine {view.engine}"
        if view.fitted:
            remark += f"; {' and '.join(view.fitted)} fitted to the numbers shown, not to a corpus"
        name = " + ".join(view.names)
        labels = {"number_fourier": _periods(view.names)}
        views.append(_view(name, remark, view.tokens, view.selected, view.columns, labels))
    return {
        "kind": "inspect",
        "title": f"{counted(len(numbers), 'number')} in {counted(len(inspection.text), 'character')}",
        "text": inspection.text,
        "headings": ["exact value", "float64", "characters"],
        "numbers": numbers,
        "views": views,
    }


def of_row(row: StoredRow) -> dict[str, Any]:
    """Return what is shown of a row of an encoded file."""
    numbers = [{"text": text, "cells": [f"{first:,}"]} for text, first in row.numbers]
    where = f"row {row.row:,} of {shown(row.path)}"
    return {
        "kind": "inspect",
        "title": f"{where} has no text" if row.text is None else f"{counted(len(numbers), 'number')} in {where}",
        "text": row.text or "",
        "facts": all_shown(row.facts),
        "headings": ["at token"],
        "numbers": numbers,
        "views": [_view("as stored", "", row.tokens, range(len(numbers)), row.columns)],
    }  # fmt: skip


def _periods(names: Sequence[str]) -> list[str]:
    """Return the periods of FoNE's clocks, ``10⁻³`` to ``10⁶`` for ``fone:6,4``; none for other
    bases.
    """
    from numtok.representations.registry import parse

    fone: Any = next((one for one in parse(",".join(names)) if one.name == "fone"), None)
    if fone is None or fone.bases != (10,) or fone.chunk is not None:
        return []
    powers = range(1 - fone.frac_digits, fone.int_digits + 1)
    return [f"10{str(power).translate(SUPERSCRIPT)}" for power in powers]


def _view(
    name: str,
    remark: str,
    tokens: Sequence[Token],
    selected: Sequence[int],
    columns: dict[str, Any],
    labels: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Describe one representation: tokens as [text, id, number, place], a row of values per
    number, what each column holds, and ``labels`` of the parts of a value by column.
    """
    return {
        "name": name,
        "remark": counted(len(tokens), "token") + remark,
        "tokens": [[token.text, token.id, token.number, token.place] for token in tokens],
        "columns": list(columns),
        "labels": [list(labels.get(column, ())) for column in columns],
        "explained": [[column, COLUMNS[column]] for column in columns if column in COLUMNS],
        "rows": [
            [number, *(_value(column, values[at]) for column, values in columns.items())]
            for at, number in enumerate(selected)
        ],
    }


def _value(name: str, value: Any) -> dict[str, Any]:
    """Format a number's value in the column ``name`` as text, bits also by field, phases also as
    pairs.
    """
    import numpy as np

    array = np.asarray(value)
    if bits := _bit_fields(name, array):
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


def _bit_fields(name: str, value: Any) -> list[str]:
    """Return the bits of a value in the column ``name``, an array or a scalar of numpy, by field:
    sign, exponent and mantissa of a float, or of several; none if they are no bits.
    """
    from numtok.representations import streams

    size = value.size if value.ndim else 8 * value.itemsize
    bit_fields = (column.bit_fields for column in streams()[name])
    fields = next((one for one in bit_fields if one and sum(one) == size), None)
    if fields is None:
        return []
    bits = "".join(map(str, value.tolist())) if value.ndim else f"{int(value):0{size}b}"
    return [bits[a:b] for a, b in itertools.pairwise(itertools.accumulate(fields, initial=0))]


def _short(text: str, most: int = 32) -> str:
    """Return the text on one line; of more than ``most`` characters its beginning and its length:
    ``1234567890123...(1,000)``, at most ``most`` characters in all.
    """
    text = shown(text)
    return text if len(text) <= most else f"{text[: most - 12]}…({len(text):,})"


def _float(value: Any) -> str:
    """Return the shortest decimal that reads back as the same float; ``12`` rather than ``12.0``."""
    return str(value).removesuffix(".0")


# On a terminal
# ----------------------------------------------------------------------------------------------


def print_inspection(data: dict[str, Any], limit: int, colour: bool, width: int) -> None:
    """Print numbers first, then one block per representation; of a stored row also the file and the
    text.
    """
    lines, numbers = [click.style(data["title"], bold=True)], data["numbers"]
    if "facts" in data:
        lines += [
            f"  {click.style(f'{what:<10}', dim=True)}  {fact}" for what, fact in data["facts"]
        ]
        more = f"… ({len(data['text']):,} characters)" if len(data["text"]) > LONGEST else ""
        lines += ["", f"  {shown(data['text'][:LONGEST])}{more}", ""]
    if numbers:
        rows = [[_short(one["text"]), *one["cells"]] for one in numbers[:limit]]
        lines += _aligned([["as written", *data["headings"]], *rows], width)
    if len(numbers) > limit:
        lines.append(click.style(f"  and {len(numbers) - limit:,} more: raise --limit", dim=True))
    for view in data["views"]:
        tokens, remark = view["tokens"], view["remark"]
        remark += f", the first {LONGEST:,} of which are" if len(tokens) > LONGEST else ""
        lines += ["", f"{click.style(view['name'], bold=True)}  {click.style(remark, dim=True)}"]
        lines += [f"  {line}" for line in _token_lines(tokens[:LONGEST], colour, width - 2)]
        if view["columns"] and view["rows"]:
            rows = [
                [_short(numbers[number]["text"]), *(value["text"] for value in values)]
                for number, *values in view["rows"][:limit]
            ]
            lines += ["", *_aligned([["", *view["columns"]], *rows], width)]
    for line in lines:
        echo(line)


def _aligned(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a table whose first line is a dim heading; its last column is cut where the line ends."""
    widths = [max(map(_columns_of, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        line = "  ".join(cell + " " * (size - _columns_of(cell)) for cell, size in cells).rstrip()
        lines.append("  " + (line if len(line) <= width - 2 else line[: width - 3] + "…"))
    return [click.style(lines[0], dim=True), *lines[1:]]


def _token_lines(tokens: Sequence[Sequence[Any]], colour: bool, width: int) -> list[str]:
    """Return lines of tokens, as chips or ended by bars without colour; below them their places."""
    has_places = any(place for *_, place in tokens)
    lines, upper, lower, used, shade = [], "", "", 0, 0
    for token, _, number, place in [*tokens, ("", 0, None, None)]:
        text, below = shown(token) + "|" * (not colour), str(place or "")
        wide = max(_columns_of(text), len(below) + (not colour))
        if not token or (used and used + wide > width):
            lines += [upper.rstrip(), lower.rstrip()] if has_places else [upper.rstrip()]
            upper, lower, used = "", "", 0
        paper = TEXT_PAPERS[shade] if number is None else NUMBER_PAPER
        chip = click.style(text, fg=INK, bg=paper, bold=number is not None) if colour else text
        upper += chip + " " * (wide - _columns_of(text))
        lower += click.style(below.ljust(wide), fg=PLACE_INK)
        used, shade = used + wide, 1 - shade
    return lines


def _columns_of(text: str) -> int:
    """Return the number of terminal columns that the text takes."""
    return sum(
        (unicodedata.east_asian_width(c) in "WF") + (not unicodedata.combining(c)) for c in text
    )
