"""``numtok score``: how many answers of a model give the right number."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from .console import echo, shown
from .options import (
    DEBUG,
    command,
    group,
)
from .page import check_folder

EXAMPLES = """
numtok score answers.jsonl --target answer --prediction output
numtok score answers.csv --policy finance --json report.json
numtok score samples_gsm8k.jsonl --target target --prediction resps.0.0
"""


@command(EXAMPLES)
@click.argument("file")
@group(
    "Answers",
    click.option(
        "--prediction",
        metavar="FIELD",
        default="prediction",
        show_default=True,
        help="The field with the model's answer; a.0.b for nested ones.",
    ),
    click.option(
        "--target",
        metavar="FIELD",
        default="target",
        show_default=True,
        help="The field with the right answer.",
    ),
    click.option(
        "--policy",
        metavar="NAME",
        default="default",
        show_default=True,
        help="How answers are read: default, strict, gsm8k, math, finance or european.",
    ),
    click.option(
        "--target-policy",
        metavar="NAME",
        default="default",
        show_default=True,
        help="How targets that are texts are read: the same names. The default reads plain"
        " decimals, such as 1.5, whatever --policy says.",
    ),
)
@group(
    "Output",
    click.option(
        "--json",
        metavar="FILE",
        help="Also write the report as JSON; - writes it to standard output, and nothing else.",
    ),
)
@group(
    "Running",
    DEBUG,
)
def score(
    file: str, prediction: str, target: str, policy: str, target_policy: str, **options: Any
) -> None:
    """Compare the final number of each answer with the target.

    FILE is JSON lines or CSV, or - for JSON lines on standard input. The report says how many answers
    are exact, within 1% and 10%, of the same magnitude, no number, or cut, with examples; and the mean
    absolute error, the median relative error and R².
    """
    from numtok.files import write_file
    from numtok.score import report

    data = options["json"]
    if data not in (None, "-"):
        check_folder(data)  # before any answer is read
    rows = list(_rows(file, prediction, target))
    made = report((row[0] for row in rows), (row[1] for row in rows), policy, target_policy)
    content = json.dumps(made.to_dict(), ensure_ascii=False, indent=2)
    if data == "-":
        echo(content)
        return
    if data is not None:
        write_file(data, content + "\n")
    for line in str(made).splitlines():
        echo(shown(line))


def _rows(file: str, *fields: str) -> Iterator[list[Any]]:
    """Yield the fields of each row."""
    from numtok.errors import InputError

    rows: Iterable[tuple[int, Any]]
    try:
        with click.open_file(file, encoding="utf-8-sig") as stream:
            if file.endswith((".csv", ".tsv")):
                table = csv.DictReader(stream, delimiter="\t" if file.endswith(".tsv") else ",")
                rows = ((table.line_num, row) for row in table)
            else:
                lines = ((number, line) for number, line in enumerate(stream, 1) if line.strip())
                rows = ((number, _parse(line, file, number)) for number, line in lines)
            for number, row in rows:
                yield [_field(row, field, file, number) for field in fields]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", file) from error


def _parse(line: str, file: str, number: int) -> Any:
    from numtok.errors import InputError

    try:
        return json.loads(line, parse_float=_decimal, parse_int=_decimal)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", file, number) from error


def _decimal(literal: str) -> Decimal | str:
    """Return a number of JSON as it is written; as a text if no decimal has such an exponent."""
    try:
        return Decimal(literal)
    except InvalidOperation:
        return literal


def _field(row: Any, path: str, file: str, number: int) -> Any:
    """Return the value at ``a.0.b``, a text or a number."""
    from numtok.errors import InputError

    value = row
    for name in [path] if isinstance(row, dict) and path in row else path.split("."):
        try:
            value = value[int(name)] if isinstance(value, list) else value[name]
        except (KeyError, IndexError, TypeError, ValueError):
            there = ", ".join(map(str, row)) if isinstance(row, dict) else type(row).__name__
            raise InputError(
                f"has no field {path!r}; there are {there:.200}", file, number
            ) from None
    if value is None or isinstance(value, str | float | Decimal):
        return value
    raise InputError(
        f"{path!r} is {type(value).__name__}, not a text or a number; name what lies in it, such as"
        f" {path}.0",
        file,
        number,
    )
