"""``numtok score``: how many answers of a model give the right number, or figures that their sources
have.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from .console import echo, shown
from .options import DEBUG, command, group, is_given, refuse

EXAMPLES = """
numtok score answers.jsonl --target answer --prediction output
numtok score answers.csv --policy finance --json report.json
numtok score samples_gsm8k.jsonl --target target --prediction resps.0.0
numtok score rag.jsonl --grounded --sources context --sources question --prediction answer
"""
_LONGEST_FIELD = 1 << 30  # characters
UNGROUNDED = 3  # the exit status of answers with figures that their sources do not have
GROUNDED_ALONE = ("sources", "tolerance", "ignore", "no_compute", "fail_under")


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
        " decimals, such as 1.5, whatever --policy says. With --grounded: how sources are read, by"
        " default as --policy says.",
    ),
)
@group(
    "Figures of the sources",
    click.option(
        "--grounded",
        is_flag=True,
        help="Check every figure of the answers against sources, in place of one number against a"
        " target.",
    ),
    click.option(
        "--sources",
        metavar="FIELD",
        multiple=True,
        help="The field with the sources of an answer: a text, a list of texts, or JSON. May be"
        " repeated.",
    ),
    click.option(
        "--tolerance",
        metavar="VALUE",
        default="rounding",
        show_default=True,
        help="What a figure may differ: rounding (by the digits written), exact, or a share of the"
        " source's figure, such as 0.01.",
    ),
    click.option(
        "--ignore",
        metavar="KINDS",
        default="all",
        show_default=True,
        help="Figures that are not held against an answer: all, none, or some of year, date, time,"
        " list, label, reference, ordinal, count, name, factor, thought, joined by commas.",
    ),
    click.option(
        "--no-compute",
        is_flag=True,
        help="Do not look for sums, differences, products, quotients and changes of two figures.",
    ),
    click.option(
        "--fail-under",
        metavar="PERCENT",
        type=click.FloatRange(0, 100),
        default=100,
        show_default=True,
        help="End with exit status 3 if fewer of the figures are found.",
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
@group("Running", DEBUG)
def score(
    file: str,
    prediction: str,
    target: str,
    policy: str,
    target_policy: str,
    grounded: bool,
    **options: Any,
) -> None:
    """Compare the final number of each answer with the target.

    FILE is JSON lines or CSV, or - for JSON lines on standard input. The report says how many answers
    are exact, within 1% and 10%, of the same magnitude, no number, or cut, with examples; and the mean
    absolute error, the median relative error and R².

    With --grounded, every figure of each answer is looked up in its sources. The report says how many
    are there, exactly, rounded, in another scale or computed from two figures, and which are not.
    """
    from numtok.score import report

    data = options["json"]
    if grounded:
        refuse("is for answers with one right number; leave out --grounded", "target")
        read_as = target_policy if is_given("target_policy") else policy
        grounded_report = _grounded(file, prediction, policy, read_as, options)
        _show(str(grounded_report), grounded_report.to_dict(), data)
        if grounded_report.share < options["fail_under"] / 100:
            click.get_current_context().exit(UNGROUNDED)
        return
    refuse("is for figures of sources; give --grounded too", *GROUNDED_ALONE)
    rows = list(_rows(file, prediction, target))
    compared = report((row[0] for row in rows), (row[1] for row in rows), policy, target_policy)
    _show(str(compared), compared.to_dict(), data)


def _grounded(file: str, prediction: str, policy: str, read_as: str, options: Any) -> Any:
    """Return the report of the figures of all answers."""
    from numtok.score import grounded_report
    from numtok.score.claims import KINDS

    fields = options["sources"]
    if not fields:
        raise click.UsageError("--grounded needs the field of the sources; name it by --sources")
    named = {"all": KINDS, "none": ()}
    ignore = named.get(options["ignore"], options["ignore"].split(","))
    rows = list(_rows(file, prediction, *fields, nested=fields))
    return grounded_report(
        (None if row[0] is None else str(row[0]) for row in rows),
        ([text for value in row[1:] for text in _texts(value)] for row in rows),
        options["tolerance"],
        policy,
        ignore,
        compute=not options["no_compute"],
        source_policy=read_as,
    )


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a field: each of a list, and of what is no text its JSON."""
    if isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, str | Decimal | float):
        yield str(value)
    elif value is not None:
        yield json.dumps(value, ensure_ascii=False, default=str)


def _show(table: str, values: dict[str, Any], data: str | None) -> None:
    """Print a report, and write it as JSON; only that if it goes to standard output."""
    from numtok.files import write_file

    content = json.dumps(values, indent=2)
    if data == "-":
        echo(content)
        return
    if data is not None:
        write_file(data, content + "\n")
    for line in table.splitlines():
        echo(shown(line))


def _rows(file: str, *fields: str, nested: Sequence[str] = ()) -> Iterator[list[Any]]:
    """Yield the fields of each row; those that are ``nested`` may be lists and objects."""
    from numtok.errors import InputError

    rows: Iterable[tuple[int, Any]]
    try:
        with click.open_file(file, encoding="utf-8-sig", errors="surrogateescape") as stream:
            lines = _lines(stream, file)
            if (suffix := file.lower()[-4:]) in (".csv", ".tsv"):
                rows = _table(lines, "\t" if suffix == ".tsv" else ",", file)
            else:
                numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
                rows = ((number, _parse(line, file, number)) for number, line in numbered)
            for number, row in rows:
                yield [_field(row, one, file, number, one in nested) for one in fields]
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}; check the path and its permissions"
        raise InputError(reason, file) from error


def _lines(stream: Iterable[str], file: str) -> Iterator[str]:
    """Yield the lines of a file whose bytes that are not UTF-8 are lone surrogates; InputError for
    the first of these.
    """
    from numtok.errors import InputError

    for number, line in enumerate(stream, 1):
        try:
            line.encode()
        except UnicodeEncodeError as error:
            reason = "is not UTF-8; unpack it if it is compressed, or convert it with iconv"
            raise InputError(reason, file, number, error.start + 1) from None
        yield line


def _table(lines: Iterable[str], delimiter: str, file: str) -> Iterator[tuple[int, Any]]:
    """Yield the rows of CSV with their lines; a row that could be read as others is refused."""
    from numtok.errors import InputError

    csv.field_size_limit(_LONGEST_FIELD)
    table, begin = csv.DictReader(lines, delimiter=delimiter, strict=True), 1
    try:
        names = table.fieldnames or ()
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"has two columns {twice[0]!r}; rename one of them", file, 1)
        begin = table.line_num + 1
        for row in table:
            if None in row or None in row.values():
                count = len([name for name in names if row[name] is not None])
                raise InputError(
                    f"Expected {len(names)} columns, got {count + len(row.get(None, ()))}; quote"
                    " fields with the delimiter or a line break in them",
                    file,
                    table.line_num,
                )
            begin = table.line_num + 1
            yield table.line_num, row
    except csv.Error as error:
        reason = f'cannot be read: {error}; mend the quotes, of which one in a field is written ""'
        raise InputError(reason, file, begin) from error


def _parse(line: str, file: str, number: int) -> Any:
    from numtok.errors import InputError

    try:
        return json.loads(line, parse_float=_decimal, parse_int=_decimal)
    except (ValueError, RecursionError) as error:
        reason = f"is not JSON: {error}; write one object on each line, or name the file .csv"
        raise InputError(reason, file, number) from error


def _decimal(literal: str) -> Decimal | str:
    """Return a number of JSON as it is written; as a text if no decimal has such an exponent."""
    try:
        return Decimal(literal)
    except InvalidOperation:
        return literal


def _field(row: Any, path: str, file: str, number: int, nested: bool = False) -> Any:
    """Return the value at ``a.0.b``: a text or a number, or anything if it is ``nested``."""
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
    if nested or value is None or isinstance(value, str | float | Decimal):
        return value
    raise InputError(
        f"{path!r} is {type(value).__name__}, not a text or a number; name what lies in it, such as"
        f" {path}.0",
        file,
        number,
    )
