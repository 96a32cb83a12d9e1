"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from numtok import Grammar

Command = TypeVar("Command", bound=Callable[..., Any])
GRAMMARS = (
    "prose",
    "data",
    "european",
    "indian",
    "swiss",
)  # each is made by the method of Grammar with this name


class OnceCommand(click.Command):
    """A command whose options may be given once, unless they are repeatable: click lets the last
    one win without a word.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option in order:
            single = isinstance(option, click.Option) and not (
                option.multiple or option.is_flag or option.count
            )
            if single and order.count(option) > 1:
                raise click.UsageError(
                    f"{option.opts[-1]} is given twice, and only one of the values can be used", ctx
                )
        return super().parse_args(ctx, args)


def _known_format(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    """The name of an input format. numtok, which knows them all, is imported once one is given."""
    if name is None:
        return None
    from numtok.corpus.read.formats import FORMATS

    if name not in FORMATS:
        raise click.BadParameter(
            f"{name!r} is not one of {', '.join(map(repr, FORMATS))}.", ctx, param
        )
    return name


def all_of(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, shown in this order."""

    def apply(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


class Names(click.ParamType):  # type: ignore[type-arg]  # older versions of click have none
    """Representations by name; those that a file of options gave are there already."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value


class _GrammarName(click.Choice):  # type: ignore[type-arg]  # older versions of click have none
    """The name of a grammar; one that a file of options gave is there already."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(value, param, ctx) if isinstance(value, str) else value


tokenizer_option = click.option(
    "--tokenizer",
    metavar="PATH",
    help="A tokenizer.json, its folder or a hub id. Default: the small English one inside numtok.",
)
grammar_options = all_of(
    click.option(
        "--grammar",
        type=_GrammarName(GRAMMARS),
        default="prose",
        show_default=True,
        help=(
            "What counts as a number. prose: 1,234.5 is one number; data (JSON, CSV, code): a comma"
            " never groups; european: 1.234,5 and 1 234,5; indian: 12,34,567.8; swiss: 1'234.5."
        ),
    ),
    click.option(
        "--pattern",
        metavar="REGEX",
        help="Instead: every match of this regular expression is a number.",
    ),
)
overflow_option = click.option(
    "--overflow",
    type=click.Choice(["text", "clip", "error"]),
    help=(
        "Numbers that the representation cannot hold stay text (the default), become the nearest it"
        " can hold, or are an error."
    ),
)
scale_options = all_of(
    click.option(
        "--scale",
        type=click.FloatRange(0, min_open=True),
        metavar="X",
        help="Multiply xval's values by this. Default: fitted; 1 is raw.",
    ),
    click.option(
        "--clip",
        type=click.FloatRange(0, min_open=True),
        metavar="X",
        help="Clip scaled values here. Default: 5, or none with --scale.",
    ),
    click.option(
        "--fit",
        is_flag=True,
        help="Find xval's scale from the text, which is the default unless --scale is given.",
    ),
    click.option(
        "--fit-quantile",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="Q",
        help=(
            "Scale this quantile of the magnitudes to 5. Default: the one with which the fewest"
            " numbers are clipped or vanish."
        ),
    ),
)
input_format_option = click.option(
    "--format",
    "input_format",
    metavar="FORMAT",
    callback=_known_format,
    help="Format of the inputs, such as jsonl or csv, whatever their suffix.",
)
text_column_option = click.option(
    "--text-column",
    metavar="NAME",
    help="Where the text is. Default: text, content, document, body, or the only strings.",
)


def _token_or_id(
    ctx: click.Context, param: click.Parameter, value: str | int | None
) -> str | int | None:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def end_token_option(told: str) -> Callable[[Command], Command]:
    """``--end-token``: a token, or in digits the id of one."""
    return click.option("--end-token", metavar="TOKEN", callback=_token_or_id, help=told)


workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Threads; for a folder processes. Default: one per processor.",
)
text_unit_option = click.option(
    "--text-unit",
    type=click.Choice(["line", "file"]),
    default="line",
    show_default=True,
    help="In .txt: what a document is.",
)
on_error_option = click.option(
    "--on-error",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    show_default=True,
    help="Stop at a bad row, or leave it out and count it.",
)
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace the output if it exists."
)


def _hush(ctx: click.Context, param: click.Parameter, quiet: bool) -> bool:
    """Nor is it said that functions are compiled."""
    if quiet:
        import logging

        logger = logging.getLogger("numtok")
        ctx.call_on_close(lambda level=logger.level: logger.setLevel(level))
        logger.setLevel(logging.ERROR)
    return quiet


quiet_option = click.option(
    "-q", "--quiet", is_flag=True, callback=_hush, help="No progress, no summary."
)


def make_grammar(name: str | Grammar, pattern: str | None) -> Grammar:
    """The grammar of ``--grammar`` and ``--pattern``."""
    from numtok import Grammar

    if isinstance(name, Grammar):
        return name
    named: Grammar = getattr(Grammar, name)()
    return named if pattern is None else dataclasses.replace(named, pattern=pattern)


def check_scale(scale: float | None, fit: bool, quantile: float | None) -> None:
    """Refuse options that contradict each other."""
    if scale is not None and (fit or quantile is not None):
        raise click.UsageError(
            "--scale gives the scale, --fit and --fit-quantile find one; leave out one or the other"
        )
