"""``numtok inspect``: one text as several representations see it, on the terminal or as a page; or
a row of a file.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import click

from .console import echo, shown, use_colour
from .inspection import of_row, of_text, print_inspection
from .options import command, make_grammar, refuse
from .page import write_page

OPTIONS = """
Text
  --text TEXT  The text, even if a file of that name exists.
  --row N = 1  Which row of the file, from 1.
  --text-column
  --format
  --tokenizer
Numbers
  --numbers LIST...  A representation to show, or several combined, such as xval,bits; repeat the
      option to compare. Default: xval,bits; place; subword.
  --grammar
  --pattern
  --overflow
Output
  --limit N = 40  List at most N numbers.
  --html FILE  Write a page for the browser instead.
Running
  --debug
"""
EXAMPLES = """
numtok inspect "Water boils at 99.61 °C under 1,000 hPa"
numtok inspect "-1.5e-3 of 87600 items" --numbers xval,bits --numbers place
echo "Total: 1,234.50" | numtok inspect --numbers subword --html page.html
numtok inspect sample.jsonl --row 2
numtok encode sample.jsonl -o look.parquet --numbers xval,bits --quiet
numtok inspect look.parquet --row 2
"""
DEFAULT_NUMBERS = ("xval,bits", "place", "subword")
TEXT = click.Argument(["what"], required=False, metavar="[TEXT|FILE]")


# A text may begin with a minus sign, so what is no option is the text.
@command([TEXT], OPTIONS, EXAMPLES, context_settings={"ignore_unknown_options": True})
def inspect(
    what: str | None, text: str | None, limit: int, html: str | None, **options: Any
) -> None:
    """Show the numbers of a text, its tokens and columns.

    Give a text, or nothing to read standard input. Give a corpus file to take the text of one row
    (--row), or a file that `numtok encode` wrote to see what is stored for that row.
    """
    if text is not None and what is not None:
        raise click.UsageError("give a text or --text, not both")
    if html is not None:
        refuse("is for the terminal; a page lists all numbers", "limit")
    if what is not None and _is_file(what):
        data = _of_file(what, **options)
    else:
        refuse("is for a file, and this is a text", "row", "text_column", "input_format")
        given = what if text is None else text
        data = _of_text(_from_stdin() if given is None or what == "-" else given, **options)
    if html is not None:
        write_page(data, html)
        echo(f"{shown(html)}: {data['title']}; open it in a browser")
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    print_inspection(data, limit, use_colour(sys.stdout), width)


def _of_text(
    text: str,
    tokenizer: str | None,
    numbers: tuple[str, ...],
    grammar: Any,
    pattern: str | None,
    overflow: str | None,
    **_: Any,
) -> dict[str, Any]:
    from numtok import Tokenizer
    from numtok.representations.parse import choose
    from numtok.tokenizer.inspect import inspect_text

    rules = make_grammar(grammar, pattern)
    chosen = [choose(names, overflow) for names in numbers or DEFAULT_NUMBERS]
    made = [Tokenizer.from_pretrained(tokenizer, names, rules) for names in chosen]
    return of_text(inspect_text(text, made))


def _of_file(
    path: str,
    row: int,
    text_column: str | None,
    input_format: str | None,
    tokenizer: str | None,
    **options: Any,
) -> dict[str, Any]:
    """Of an encoded one what is stored, of a corpus a document."""
    from numtok.corpus import look

    if look.is_encoded(path):
        why = "is for a text; this file holds rows that are encoded already"
        refuse(why, "numbers", "grammar", "pattern", "overflow", "text_column", "input_format")
        return of_row(look.stored_row(path, row, tokenizer))
    return _of_text(look.text_of(path, row, text_column, input_format), tokenizer, **options)


def _is_file(text: str) -> bool:
    """Whether it names a file; an error for what can only be meant as a name."""
    if os.path.isdir(text):
        raise click.UsageError(
            f"{text} is a folder; name a file in it, or give a text with --text."
        )
    if os.path.isfile(text):
        return True
    if text == "" or any(map(str.isspace, text)):
        return False
    from numtok.corpus import look
    from numtok.locations import is_url

    named = look.is_name_of_file(text)
    if "://" in text:
        return named and is_url(text)
    folder = os.path.dirname(text)
    is_path = text.startswith(("/", "./", "../", "~/")) or (folder and os.path.isdir(folder))
    if is_path or named:
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
