"""The options that several commands have, the values they take, and what all commands do with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from .console import ProgressLine, print_summary, shown

FACTORS = {letter: 1000**k for k, letter in enumerate(("", "k", "m", "g", "t"))}
FACTORS |= {f"{letter}i": 1024**k for k, letter in enumerate("kmgt", 1)}
MOST = (1 << 63) - 1
SAMPLE = "Examples, with examples/sample.jsonl of the repository, or JSON lines of your own:"


class Command(click.Command):
    """A command. What all of them do: options that are given twice are refused, unless they are repeatable;
    ``--grammar`` and ``--pattern`` become one grammar; a command with ``--quiet`` gets a
    ``progress`` in its place, and what it returns, rows and their title, is printed.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option in order:
            single = isinstance(option, click.Option) and not (option.multiple or option.is_flag)
            if single and order.count(option) > 1:
                raise click.UsageError(
                    f"{option.opts[-1]} is given twice, and only one of the values can be used", ctx
                )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> None:
        import logging

        pattern = ctx.params.pop("pattern", None)
        if pattern is not None:
            import dataclasses

            from numtok.numbers.grammar import check_grammar

            grammar = check_grammar(ctx.params["grammar"])
            ctx.params["grammar"] = dataclasses.replace(grammar, pattern=pattern)
        progress = ProgressLine(ctx.params.get("quiet", True))
        if "quiet" in ctx.params:
            del ctx.params["quiet"]
            ctx.params["progress"] = progress
        logger = logging.getLogger("numtok")
        level = logger.level
        try:
            if progress.quiet and "progress" in ctx.params:  # nor is it said that it compiles
                logger.setLevel(logging.ERROR)
            table = super().invoke(ctx)
        finally:
            logger.setLevel(level)
            progress.clear()
        if table is not None and not progress.quiet:
            print_summary(*table)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                groups.setdefault(getattr(param, "group", "Running"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def command(examples: str, epilog: str = "", **more: Any) -> Callable[..., Command]:
    """Return a decorator that makes a command, whose help ends with its examples, line by line."""
    heading = SAMPLE if "sample.jsonl" in examples else "Examples:"
    lines = "".join(f"  {line}\n" for line in examples.strip().splitlines())
    return click.command(cls=Command, epilog=f"{epilog}\b\n{heading}\n{lines}", **more)


def group(title: str, *options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds options, which ``--help`` shows below the title."""

    def add(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
            function.__click_params__[-1].group = title
        return function

    return add


def is_given(name: str) -> bool:
    """Whether the running command got the parameter, here or from a file of options."""
    source = click.get_current_context().get_parameter_source(name)
    return source not in (None, ParameterSource.DEFAULT)


def refuse(why: str, *names: str) -> None:
    """Refuse options that would do nothing."""
    params = {str(one.name): one.opts[-1] for one in click.get_current_context().command.params}
    for name in filter(is_given, names):
        raise click.UsageError(f"{params[name]} {why}")


# Values
# ----------------------------------------------------------------------------------------------


class Count(click.IntRange):
    """A whole number, whose upper limit is of no interest to a reader."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        if text.isdecimal() and (len(text) > 19 or int(text) > (self.max or 0)):
            self.fail(f"{text[:40]} is too large.", param, ctx)
        return int(super().convert(value, param, ctx))

    def _describe_range(self) -> str:
        return f"x>={self.min}"


class Size(click.ParamType):  # type: ignore[type-arg]
    """Bytes, as in ``256MB`` or ``1GiB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)\s*([kmgt]i?|)b?", str(value).strip().lower())
        size = int(float(match[1]) * FACTORS[match[2]]) if match else 0
        if not 1 <= size <= MOST:
            self.fail(f"{value!r} is no size such as 256MB or 1GiB.", param, ctx)
        return size


class Share(click.ParamType):  # type: ignore[type-arg]
    """``i/n``."""

    name = "share"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d{1,18})/(\d{1,18})", str(value))
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            self.fail(f"{value!r} is not one of 1/N to N/N.", param, ctx)
        return int(match[1]), int(match[2])


def token_or_id(_: click.Context, __: click.Parameter, value: Any) -> str | int | None:
    """Return digits as the id of a token, and any other text as it is."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta["numtok.debug"] = value


def _configure(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Make the options of the file the defaults of those that are not given."""
    if path is None:
        return
    from numtok.corpus.encode_options import read_config

    option_of = {str(one.name): one for one in ctx.command.params if one is not param}
    config = read_config(path)
    for name, value in config.items():
        option = option_of.get(name)
        if option is None:
            unknown = f"{path} has {name!r}, which is no option of `numtok {ctx.command.name}`."
            raise click.BadParameter(unknown, ctx, param)
        if getattr(option, "is_flag", False) and not isinstance(value, bool):
            wrong = f"{path}: {name} = {shown(str(value))[:60]} must be true or false."
            raise click.BadParameter(wrong, ctx, param)
    ctx.default_map = config


COUNT = Count(1, MOST)
POSITIVE = click.FloatRange(0, min_open=True)

# Arguments and options of several commands
# ----------------------------------------------------------------------------------------------

INPUTS = click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
FOLDER = click.argument("folder", metavar="FOLDER")
TOKENIZER = click.option(
    "--tokenizer",
    metavar="PATH",
    help="A tokenizer.json, a folder that holds one, or a hub id. Default: the small English"
    " tokenizer inside numtok.",
)
GRAMMAR = click.option(
    "--grammar",
    type=click.Choice(["prose", "data", "european", "indian", "swiss", "finance"]),
    help="What counts as a number. prose (the default): 1,234.5 is one number; data (JSON, CSV,"
    " code): commas do not group; european: 1.234,5 and 1 234,5; indian: 12,34,567.8; swiss:"
    " 1'234.5; finance: USD1,234.5 is 1234.5, (1,234) -1234.",
)
PATTERN = click.option(
    "--pattern",
    metavar="REGEX",
    help="Take every match of this regular expression as a number. It replaces the rules of"
    " --grammar, but not its decimal and grouping marks.",
)
OVERFLOW = click.option(
    "--overflow",
    type=click.Choice(["text", "clip", "error"]),
    help="For numbers that the representation cannot hold: leave them as text (the default), take"
    " the nearest that it can hold, or stop.",
)
FORMAT = click.option(
    "--format",
    "input_format",
    metavar="FORMAT",
    help="Read the inputs as this format, such as jsonl or csv, whatever their suffix.",
)
DELIMITER = click.option(
    "--delimiter",
    metavar="CHAR",
    help="The character between columns of CSV, such as ';' or '|'. Default: a comma, and a tab in"
    " .tsv.",
)
TEXT_COLUMN = click.option(
    "--text-column",
    metavar="NAME",
    help="The column with the text. Default: text, content, document or body, else the only column"
    " of strings.",
)
TEMPLATE = click.option(
    "--template",
    metavar="TEXT",
    help="Make the text from columns: '{name} costs {price}'; or row, a line for each column.",
)
TEXT_UNIT = click.option(
    "--text-unit",
    type=click.Choice(["line", "file"]),
    default="line",
    show_default=True,
    help="What a document is in .txt: a line, or the whole file.",
)
ON_ERROR = click.option(
    "--on-error",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    show_default=True,
    help="Stop at a row that cannot be read, or skip and count it.",
)
WORKERS = click.option(
    "--workers",
    metavar="N",
    type=Count(1, 1 << 16),
    help="Threads; for a folder of shards, processes. Default: one per core.",
)
OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Show no progress and no summary.")
DEBUG = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=_remember_debug,
    help="Show the traceback of an error.",
)
CONFIG = click.option(
    "--config",
    metavar="FILE",
    expose_value=False,
    is_eager=True,
    callback=_configure,
    help="Read options from a .toml file, by their names here. Options on the command line win.",
)
