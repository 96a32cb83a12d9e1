"""``numtok warm-up``: what a first run does for later ones, done beforehand."""

from __future__ import annotations

import time

import click

from . import options as shared
from .console import duration, print_table
from .options import group, opt

EPILOG = """\b
Examples:
  numtok warm-up
  numtok warm-up --numbers xval,bits --numbers p10
  numtok warm-up --tokenizer my-tokenizer --quiet
"""


@click.command("warm-up", cls=shared.Command, epilog=EPILOG)
@group(
    "Numbers",
    opt(
        "--numbers LIST",
        "Representations to prepare, such as xval,bits; repeatable. Default: all.",
        multiple=True,
    ),
)
@group("Text", shared.tokenizer)
@shared.running
def warm_up(numbers: tuple[str, ...], tokenizer: str | None, quiet: bool) -> None:
    """Compile for this processor now, not in the first run.

    For images of containers and nodes of a cluster. Compiled functions go beside the installed
    package, for every user, or into your own cache folder if that cannot be written;
    NUMBA_CACHE_DIR names another. What is found out about the tokenizer goes into your cache folder
    (NUMTOK_CACHE names another).
    """
    from numtok.arrays.kernel_cache import compiled_in
    from numtok.corpus.warm_up import warm_up

    started = time.perf_counter()

    def say(name: str) -> None:
        if not quiet:
            click.echo(f"numtok: preparing {name}", err=True)

    folder = warm_up(tokenizer, numbers or None, say)
    if not quiet:
        rows = [
            ("compiled functions", f"{compiled_in(folder):,}", ""),
            ("time", duration(time.perf_counter() - started), ""),
        ]
        print_table(rows, str(folder))
