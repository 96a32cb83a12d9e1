"""``numtok inspect``: one text as several representations see it, on the terminal or as a page."""

from __future__ import annotations

import shutil
import sys

import click

from .console import echo, shown, use_colour
from .inspection import of_text, print_inspection
from .options import command, make_grammar, refuse
from .page import write_page

OPTIONS = """
Text
  --tokenizer
Numbers
  --numbers LIST...  Representations to compare, such as xval,bits; repeatable. Default: xval,bits;
      place; subword.
  --grammar
  --pattern
  --overflow
Output
  --limit N = 40  Numbers to list.
  --html FILE  Write a page for the browser instead.
Running
  --debug
"""
EXAMPLES = """
numtok inspect "Water boils at 99.61 °C under 1,000 hPa"
numtok inspect "-1.5e-3 of 87600 items" --numbers xval,bits --numbers place
echo "Total: 1,234.50" | numtok inspect --numbers subword --html page.html
"""
DEFAULT_NUMBERS = ("xval,bits", "place", "subword")
TEXT = click.Argument(["text"], required=False)


# A text may begin with a minus sign, so what is no option is the text.
@command([TEXT], OPTIONS, EXAMPLES, context_settings={"ignore_unknown_options": True})
def inspect(
    text: str | None,
    tokenizer: str | None,
    numbers: tuple[str, ...],
    grammar: str | None,
    pattern: str | None,
    overflow: str | None,
    limit: int,
    html: str | None,
) -> None:
    """Show the numbers in TEXT (or standard input), the tokens, and the tensors."""
    from numtok import Tokenizer
    from numtok.representations.parse import choose
    from numtok.tokenizer.inspect import inspect_text

    if html is not None:
        refuse("is for the terminal; a page lists all numbers", "limit")
    given = _from_stdin() if text in (None, "-") else str(text)
    rules = make_grammar(grammar, pattern)
    chosen = [choose(names, overflow) for names in numbers or DEFAULT_NUMBERS]
    made = [Tokenizer.from_pretrained(tokenizer, names, rules) for names in chosen]
    data = of_text(inspect_text(given, made))
    if html is not None:
        write_page(data, html)
        echo(f"{shown(html)}: {data['title']}; open it in a browser")
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    print_inspection(data, limit, use_colour(sys.stdout), width)


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
