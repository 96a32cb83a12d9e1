"""Options that several commands share, and what they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from numtok import Grammar, Tokenizer
    from numtok.corpus.fit import ScaleFit
    from numtok.representations import Representation

Command = TypeVar("Command", bound=Callable[..., Any])


class OnceCommand(click.Command):
    """A command whose options may be given once, unless they are repeatable: click lets the last one win without a word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option in order:
            single = isinstance(option, click.Option) and not (option.multiple or option.is_flag or option.count)
            if single and order.count(option) > 1:
                raise click.UsageError(f"{option.opts[-1]} is given twice, and only one of the values can be used", ctx)
        return super().parse_args(ctx, args)


INPUT_FORMATS = ("jsonl", "json", "csv", "tsv", "txt", "parquet", "arrow")


def _all(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, shown in this order."""

    def apply(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


tokenizer_option = click.option(
    "--tokenizer", metavar="PATH", help="A tokenizer.json, its folder or a hub id. Default: the small English one inside numtok."
)
grammar_options = _all(
    click.option(
        "--grammar",
        type=click.Choice(["prose", "data"]),
        default="prose",
        show_default=True,
        help="What counts as a number. prose: 1,234 is one number; data (JSON, CSV, code): a comma never groups.",
    ),
    click.option("--pattern", metavar="REGEX", help="Instead: every match of this regular expression is a number."),
)
overflow_option = click.option(
    "--overflow",
    type=click.Choice(["text", "clip", "error"]),
    help="Numbers that the representation cannot hold stay text (the default), become the nearest it can hold, or are an error.",
)
scale_options = _all(
    click.option(
        "--scale", type=click.FloatRange(0, min_open=True), metavar="X", help="Multiply xval's values by this. Default: fitted; 1 is raw."
    ),
    click.option(
        "--clip", type=click.FloatRange(0, min_open=True), metavar="X", help="Clip scaled values here. Default: 5, or none with --scale."
    ),
    click.option("--fit", is_flag=True, help="Find xval's scale from the text, which is the default unless --scale is given."),
    click.option(
        "--fit-quantile",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="Q",
        help="Scale this quantile of the magnitudes to 5. Default: the one with which the fewest numbers are clipped or vanish.",
    ),
)
workers_option = click.option("--workers", type=click.IntRange(1), metavar="N", help="Threads. Default: one per processor.")
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")


def make_grammar(name: str, pattern: str | None) -> Grammar:
    """The grammar of ``--grammar`` and ``--pattern``."""
    from numtok import Grammar

    if pattern is not None:
        return Grammar.from_pattern(pattern, grouping="," if name == "prose" else None)
    return Grammar.data() if name == "data" else Grammar.prose()


def make_tokenizer(
    source: str | None, numbers: str, grammar: Grammar, overflow: str | None = None, engine: str = "auto", leading_space: str | None = None
) -> Tokenizer:
    """The tokenizer of ``--tokenizer``, ``--numbers`` and the options that go with them."""
    from numtok import Tokenizer

    return Tokenizer.from_pretrained(source, make_representations(numbers, overflow), grammar, engine, leading_space)


def make_representations(numbers: str, overflow: str | None = None, compact: bool = False) -> list[Representation]:
    """The representations of ``--numbers``, ``--overflow`` and ``--compact``."""
    import dataclasses

    from numtok.representations import parse

    chosen: list[Any] = list(parse(numbers, compact=True) if compact else parse(numbers))
    if overflow is not None:
        chosen = [dataclasses.replace(one, overflow=overflow) if _has_overflow(one) else one for one in chosen]
    return chosen


def set_scale(
    chosen: list[Representation], fit: bool, quantile: float | None, scale: float | None, clip: float | None
) -> tuple[list[Representation], ScaleFit | None]:
    """The representations with the scale that is given for xval; or how to find it, if it is not."""
    import dataclasses

    from numtok.corpus.fit import ScaleFit, xval_place

    given = fit or quantile is not None or scale is not None or clip is not None
    if not given and not any(one.has_scale for one in chosen):
        return chosen, None
    place = xval_place(chosen)
    if scale is None:
        return chosen, ScaleFit(quantile, clip)
    if fit or quantile is not None:
        raise click.UsageError("--scale gives the scale, --fit and --fit-quantile find one; leave out one or the other")
    xval: Any = chosen[place]
    return [*chosen[:place], dataclasses.replace(xval, scale=scale, clip=clip), *chosen[place + 1 :]], None


def _has_overflow(representation: Any) -> bool:
    import dataclasses

    return "overflow" in {one.name for one in dataclasses.fields(representation)}
