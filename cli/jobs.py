"""What a folder of shards takes on the command line: its options, ``--config``, and ``numtok
finish``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from .console import debug_option
from .options import all_of, quiet_option
from .summary import print_summary

if TYPE_CHECKING:
    from collections.abc import Mapping

FACTORS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own; each of n machines does --shard I/n, and one finishes:
  numtok encode sample.jsonl -o parts/ --shard 1/1
  numtok finish parts/
"""


class Size(click.ParamType):  # type: ignore[type-arg]  # older versions of click have none
    """Bytes, as in ``256MB`` or ``1GiB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?", str(value).strip().lower())
        size = int(float(found[1]) * FACTORS[found[2]]) if found else 0
        if size < 1:
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
        found = re.fullmatch(r"(\d+)/(\d+)", str(value))
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            self.fail(f"{value!r} is not one of 1/N to N/N.", param, ctx)
        return int(found[1]), int(found[2])


def _configure(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Options of the file are the defaults of those that are not given."""
    if path is None:
        return
    from numtok.corpus.jobs.config import read_config

    known = {
        name: one.name for one in ctx.command.params for name in _names(one) if one is not param
    }
    options: Mapping[str, Any] = read_config(path)
    given = {name.replace("-", "_"): value for name, value in options.items()}
    if unknown := [name for name in given if name not in known]:
        raise click.BadParameter(
            f"{path} has {unknown[0]!r}, which is no option of `numtok {ctx.command.name}`.",
            ctx,
            param,
        )
    ctx.default_map = {known[name]: value for name, value in given.items()}


def _names(param: click.Parameter) -> list[str]:
    """What an option may be called in a file: as on the command line, and as in Python."""
    return [
        str(param.name),
        *(option.lstrip("-").replace("-", "_") for option in param.opts if option.startswith("--")),
    ]


config_option = click.option(
    "--config",
    is_eager=True,
    expose_value=False,
    callback=_configure,
    metavar="FILE",
    help=(
        "Take options from a .toml file, by their names here; or repeat the job of a"
        " __numtok/manifest.json. Options given here win."
    ),
)
sharding_options = all_of(
    click.option(
        "--shards",
        type=click.IntRange(1),
        metavar="N",
        help="Write a folder of so many files, at most.",
    ),
    click.option(
        "--shard-size",
        type=Size(),
        metavar="SIZE",
        help="Write a folder, a file for about so much input. Default: 256MiB.",
    ),
    click.option(
        "--shard",
        type=Share(),
        metavar="I/N",
        help="Do every N-th shard only, from the I-th on; then `numtok finish`.",
    ),
    click.option(
        "--ray",
        metavar="ADDRESS",
        help=(
            "Have a Ray cluster write the shards: auto, local, or host:port. All nodes must see the"
            " same files."
        ),
    ),
    click.option(
        "--output-format",
        type=click.Choice(["parquet", "arrow", "jsonl"]),
        help=(
            "Default: by the name of the file; parquet in a folder. Standard output takes jsonl,"
            " its default, and arrow, as a stream."
        ),
    ),
)


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="FOLDER")
@click.option(
    "--check",
    is_flag=True,
    help="Also read all shards, and compare them with the SHA-256 in their receipts.",
)
@quiet_option
@debug_option
def finish(folder: str, check: bool, quiet: bool) -> None:
    """Finish a folder whose shards several machines have written.

    Every shard must be done, and together they must hold each input exactly once; then the manifest
    is written.
    """
    from numtok import finish_job

    summary = finish_job(folder, check=check)
    if not quiet:
        print_summary(summary, None)
