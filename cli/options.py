"""How options are declared, shown, checked and read from files, and those that several commands
share.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from .streams import shown

if TYPE_CHECKING:
    from numtok import Grammar

Function = TypeVar("Function", bound=Callable[..., Any])
GRAMMARS = ("prose", "data", "european", "indian", "swiss")
FACTORS = {letter: 1000**k for k, letter in enumerate(("", "k", "m", "g", "t"))}
FACTORS |= {f"{letter}i": 1024**k for k, letter in enumerate("kmgt", 1)}
MOST = (1 << 63) - 1


class Command(click.Command):
    """A command whose options may be given once, unless they are repeatable (click lets the last one
    win without a word), and are shown in groups.
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

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                groups.setdefault(getattr(param, "group", "Running"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def opt(spec: str, help: str, type: Any = None, **more: Any) -> Callable[[Function], Function]:
    """An option, written as in its help: ``-o/--output FILE``; a flag has no such word."""
    names, _, metavar = spec.partition(" ")
    declared = [*names.split("/"), *([more.pop("name")] if "name" in more else [])]
    kind: dict[str, Any] = (
        {"type": type, "metavar": metavar or None} if metavar or type else {"is_flag": True}
    )
    more |= {"show_default": True} if more.get("default") is not None else {}
    return click.option(*declared, help=help, **kind, **more)


def group(title: str, *options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Several options as one decorator, shown in this order below a title."""

    def apply(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
            function.__click_params__[-1].group = title  # type: ignore[attr-defined]
        return function

    return apply


def is_given(name: str) -> bool:
    """Whether the running command got the parameter, here or from a file of options."""
    source = click.get_current_context().get_parameter_source(name)
    return source not in (None, ParameterSource.DEFAULT)


def refuse(why: str, *names: str) -> None:
    """Refuse options that would do nothing."""
    params = {str(one.name): one.opts[-1] for one in click.get_current_context().command.params}
    for name in filter(is_given, names):
        raise click.UsageError(f"{params[name]} {why}")


def in_options(message: str, params: list[click.Parameter]) -> str:
    """A message of numtok with its ``overflow='text'`` as ``--overflow text``."""
    names = {str(one.name): max(one.opts, key=len) for one in params if one.opts[0][0] == "-"}

    def option(found: re.Match[str]) -> str:
        value = "" if found[2] in ("True", "...") else f" {found[2].strip(chr(39))}"
        return f"{names[found[1]]}{value}" if found[1] in names else found[0]

    return re.sub(r"\b([a-z_]+)=('[^']*'|\.\.\.|[\w./:+-]*\w)", option, message)


# Types
# ----------------------------------------------------------------------------------------------


class Names(click.ParamType):  # type: ignore[type-arg]  # older versions of click have none
    """Representations by name; those that a file of options gave are there already."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value


class _GrammarName(click.Choice):  # type: ignore[type-arg]
    """The name of a grammar; one that a file of options gave is there already."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(value, param, ctx) if isinstance(value, str) else value


class Size(click.ParamType):  # type: ignore[type-arg]
    """Bytes, as in ``256MB`` or ``1GiB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)\s*([kmgt]i?|)b?", str(value).strip().lower())
        size = int(float(found[1]) * FACTORS[found[2]]) if found else 0
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
        found = re.fullmatch(r"(\d{1,18})/(\d{1,18})", str(value))
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            self.fail(f"{value!r} is not one of 1/N to N/N.", param, ctx)
        return int(found[1]), int(found[2])


def _known_format(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    """The name of an input format. numtok, which knows them all, is imported once one is given."""
    if name is None:
        return None
    from numtok.corpus.read.formats import FORMATS

    if name not in FORMATS:
        known = ", ".join(map(repr, FORMATS))
        raise click.BadParameter(f"{name!r} is not one of {known}.", ctx, param)
    return name


def _token_or_id(_: click.Context, __: click.Parameter, value: Any) -> str | int | None:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta["numtok.debug"] = value


def _hush(ctx: click.Context, _: click.Parameter, quiet: bool) -> bool:
    """Nor is it said that functions are compiled."""
    if quiet:
        import logging

        logger = logging.getLogger("numtok")
        ctx.call_on_close(lambda level=logger.level: logger.setLevel(level))
        logger.setLevel(logging.ERROR)
    return quiet


def count(least: int = 1, most: int = MOST) -> click.IntRange:
    """A whole number that fits 64 bits."""
    return click.IntRange(least, most)


# Options of several commands
# ----------------------------------------------------------------------------------------------

inputs = click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
tokenizer = opt(
    "--tokenizer PATH",
    "A tokenizer.json, its folder or a hub id. Default: the small English one inside numtok.",
)
grammar = opt(
    "--grammar NAME",
    "What counts as a number. prose (the default): 1,234.5 is one number; data (JSON, CSV, code): a"
    " comma never groups; european: 1.234,5 and 1 234,5; indian: 12,34,567.8; swiss: 1'234.5.",
    _GrammarName(GRAMMARS),
)
pattern = opt(
    "--pattern REGEX", "Instead: every match of this regular expression is a number, in its marks."
)
overflow = opt(
    "--overflow CHOICE",
    "Numbers that the representation cannot hold stay text (text, the default), become the nearest"
    " it can hold (clip), or are an error.",
    click.Choice(["text", "clip", "error"]),
)
input_format = opt(
    "--format FORMAT",
    "Format of the inputs, such as jsonl or csv, whatever their suffix.",
    name="input_format",
    callback=_known_format,
)
text_column = opt(
    "--text-column NAME",
    "Where the text is. Default: text, content, document, body, or the only strings.",
)
template = opt(
    "--template TEXT",
    "Join columns to the text: '{name} costs {price}'; or row, a line for each column.",
)
text_unit = opt(
    "--text-unit UNIT", "In .txt: what a document is.", click.Choice(["line", "file"]),
    default="line",
)  # fmt: skip
on_error = opt(
    "--on-error DO", "Stop at a bad row, or leave it out and count it.",
    click.Choice(["raise", "skip"]), default="raise",
)  # fmt: skip
workers = opt(
    "--workers N", "Threads; for a folder processes. Default: one per processor.", count(1, 1 << 16)
)
overwrite = opt("--overwrite", "Replace the output if it exists.")
debug = opt(
    "--debug", "Show the traceback of an error.", expose_value=False, callback=_remember_debug
)
running = group("Running", opt("-q/--quiet", "No progress, no summary.", callback=_hush), debug)


def end_token(told: str) -> Callable[[Function], Function]:
    """``--end-token``: a token, or in digits the id of one."""
    return opt("--end-token TOKEN", told, callback=_token_or_id)


def make_grammar(name: str | Grammar | None, pattern: str | None) -> Grammar | str | None:
    """The grammar of ``--grammar`` and ``--pattern``; None if neither is given."""
    if pattern is None:
        return name
    import dataclasses

    from numtok.numbers.grammar import check_grammar

    return dataclasses.replace(check_grammar(name), pattern=pattern)


# Files of options
# ----------------------------------------------------------------------------------------------


def _configure(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Options of the file are the defaults of those that are not given."""
    if path is None:
        return
    from numtok.corpus.jobs.config import read_config

    known = {name: one for one in ctx.command.params for name in _names(one) if one is not param}
    made: dict[str, Any] = {}
    for key, value in read_config(path).items():
        option = known.get(key.replace("-", "_"))
        if option is None:
            unknown = f"{path} has {key!r}, which is no option of `numtok {ctx.command.name}`."
            raise click.BadParameter(unknown, ctx, param)
        flag = isinstance(option, click.Option) and option.is_flag
        if flag != isinstance(value, bool) or isinstance(value, dict):
            expected = "true or false" if flag else "a text, a number or a list"
            raise click.BadParameter(
                f"{path}: {key} = {shown(str(value))[:60]} must be {expected}.", ctx, param
            )
        made[str(option.name)] = value
    ctx.default_map = made


def _names(param: click.Parameter) -> list[str]:
    """What an option may be called in a file: as on the command line, and as in Python."""
    options = [option for option in param.opts if option.startswith("--")]
    return [str(param.name), *(option.lstrip("-").replace("-", "_") for option in options)]


config = opt(
    "--config FILE",
    "Take options from a .toml file, by their names here; or repeat the job of a"
    " __numtok/manifest.json. Options given here win.",
    is_eager=True,
    expose_value=False,
    callback=_configure,
)
