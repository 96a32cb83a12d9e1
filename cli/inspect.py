"""``numtok inspect``: one text as several representations see it, on the terminal or as a page; or
a row of a file.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import click

from .console import debug_option, use_colour
from .inspection import print_inspection, print_stored_row
from .options import (
    OnceCommand,
    grammar_options,
    input_format_option,
    make_grammar,
    overflow_option,
    text_column_option,
    tokenizer_option,
)
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
@click.command(cls=OnceCommand, epilog=EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument("text", required=False, metavar="[TEXT|FILE]")
@click.option(
    "--text", "given", metavar="TEXT", help="A text, be there a file of that name or not."
)
@click.option(
    "--row",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Of a file, from 1.",
)
@text_column_option
@input_format_option
@click.option(
    "--numbers",
    multiple=True,
    metavar="LIST",
    help=(
        "Representations to compare, such as xval,bits; repeatable.  [default: xval,bits; place;"
        " subword]"
    ),
)
@tokenizer_option
@grammar_options
@overflow_option
@click.option(
    "--limit", type=click.IntRange(1), default=40, show_default=True, help="Numbers to list."
)
@click.option("--html", "page", metavar="FILE", help="Write a page for the browser instead.")
@debug_option
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
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    if text is not None and os.path.isdir(text):
        raise click.UsageError(
            f"{text} is a folder; name a file in it, or give a text with --text."
        )
    if text is not None and _is_file(text):
        from numtok.corpus import look

        if look.is_encoded(text):
            print_stored_row(
                look.stored_row(text, row, tokenizer), limit, use_colour(sys.stdout), width
            )
            return
        text = look.text_of(text, row, options["text_column"], options["input_format"])
    elif given is not None:
        text = given
    elif text is None or text == "-":
        text = _from_stdin()
    from numtok import Tokenizer
    from numtok.representations.chosen import choose
    from numtok.tokenizer.inspect import inspect_text

    rules = make_grammar(options["grammar"], options["pattern"])
    choices = [
        choose(names, options["overflow"]) for names in options["numbers"] or DEFAULT_NUMBERS
    ]
    inspection = inspect_text(
        text, [Tokenizer.from_pretrained(tokenizer, chosen, rules) for chosen in choices]
    )
    if page is not None:
        from .page import page as page_of
        from .page_frame import write_page

        write_page(page_of(inspection), page)
        click.echo(
            f"{shown(page)}: {len(inspection.numbers):,} numbers, {len(inspection.views)}"
            " representations; open it in a browser"
        )
        return
    print_inspection(inspection, limit, use_colour(sys.stdout), width)


def _is_file(text: str) -> bool:
    """Whether it is the name of a file, or the URL of one of a known kind."""
    if os.path.isfile(text) or "://" not in text:
        return os.path.isfile(text)
    from numtok.corpus import look

    return look.is_url_of_file(text)


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
