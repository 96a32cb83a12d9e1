"""``numtok inspect``: one text as several representations see it, on the terminal or as a page; or
a row of a file.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import click

from . import options as shared
from .console import use_colour
from .inspection import print_inspection, print_stored_row
from .options import count, group, make_grammar, opt, refuse
from .page import inspect_data, row_data, write_page
from .streams import shown

EPILOG = """\b
Examples:
  numtok inspect "Water boils at 99.61 °C under 1,000 hPa"
  numtok inspect "-1.5e-3 of 87600 items" --numbers xval,bits --numbers place
  echo "Total: 1,234.50" | numtok inspect --numbers subword --html page.html
  numtok inspect sample.jsonl --row 2
  numtok encode sample.jsonl -o look.parquet --numbers xval,bits --quiet
  numtok inspect look.parquet --row 2
"""
DEFAULT_NUMBERS = ("xval,bits", "place", "subword")


# A text may begin with a minus sign, so what is no option is the text.
@click.command(cls=shared.Command, epilog=EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument("text", required=False, metavar="[TEXT|FILE]")
@group(
    "Text",
    opt("--text TEXT", "A text, be there a file of that name or not.", name="given"),
    opt("--row N", "Of a file, from 1.", count(), default=1),
    shared.text_column,
    shared.input_format,
    shared.tokenizer,
)
@group(
    "Numbers",
    opt(
        "--numbers LIST",
        "Representations to compare, such as xval,bits; repeatable. Default: xval,bits; place;"
        " subword.",
        multiple=True,
    ),
    shared.grammar,
    shared.pattern,
    shared.overflow,
)
@group(
    "Output",
    opt("--limit N", "Numbers to list.", count(), default=40),
    opt("--html FILE", "Write a page for the browser instead.", name="page"),
)
@group("Running", shared.debug)
def inspect(
    text: str | None,
    given: str | None,
    row: int,
    tokenizer: str | None,
    limit: int,
    page: str | None,
    **options: Any,
) -> None:
    """Show the numbers in TEXT (or standard input), the tokens, and the tensors.

    Of a corpus, a document of which is TEXT then; of a file that `numtok encode` wrote, what is
    stored for a row.
    """
    if given is not None and text is not None:
        raise click.UsageError("give a text or --text, not both")
    if page is not None:
        refuse("is for the terminal; a page lists all numbers", "limit")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    path = text if text is not None and _is_file(text) else None
    if path is None:
        refuse("is for a file, and this is a text", "row", "text_column", "input_format")
    else:
        from numtok.corpus import look

        if look.is_encoded(path):
            why = "is for a text; this file holds rows that are encoded already"
            refuse(why, "numbers", "grammar", "pattern", "overflow", "text_column", "input_format")
            stored = look.stored_row(path, row, tokenizer)
            if page is None:
                print_stored_row(stored, limit, use_colour(sys.stdout), width)
            else:
                _write(row_data(stored), page)
            return
        text = look.text_of(path, row, options["text_column"], options["input_format"])
    text = given if given is not None else _from_stdin() if text in (None, "-") else text
    from numtok import Tokenizer
    from numtok.representations.chosen import choose
    from numtok.tokenizer.inspect import inspect_text

    rules = make_grammar(options["grammar"], options["pattern"])
    chosen = [choose(names, options["overflow"]) for names in options["numbers"] or DEFAULT_NUMBERS]
    tokenizers = [Tokenizer.from_pretrained(tokenizer, numbers, rules) for numbers in chosen]
    inspection = inspect_text(str(text), tokenizers)
    if page is not None:
        _write(inspect_data(inspection), page)
        return
    print_inspection(inspection, limit, use_colour(sys.stdout), width)


def _write(data: dict[str, Any], page: str) -> None:
    write_page(data, page)
    click.echo(f"{shown(page)}: {data['title']}; open it in a browser")


def _is_file(text: str) -> bool:
    """Whether it is the name of a file, or the URL of one of a known kind; an error for what can only
    be meant as a name.
    """
    if os.path.isdir(text):
        raise click.UsageError(
            f"{text} is a folder; name a file in it, or give a text with --text."
        )
    if os.path.isfile(text):
        return True
    if text == "" or any(map(str.isspace, text)):
        return False
    from numtok.corpus import look

    if look.is_url_of_file(text):
        return True
    folder = os.path.dirname(text)
    if "://" not in text and (
        look.has_known_suffix(text)
        or text.startswith(("/", "./", "../", "~/"))
        or (folder and os.path.isdir(folder))
    ):
        raise click.UsageError(
            f"no such file: {text}; check the path, or give a text with --text, or - for standard"
            " input"
        )
    return False


def _from_stdin() -> str:
    """Standard input as text."""
    from numtok.errors import InputError

    data = sys.stdin.buffer.read()
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f'byte {error.start} is not UTF-8; convert the text with "iconv -f ENCODING -t UTF-8"',
            "<stdin>",
        ) from None
