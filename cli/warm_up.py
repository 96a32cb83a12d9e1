"""``numtok warm-up``: what a first run does for later ones, done beforehand."""

from __future__ import annotations

import click

from .console import Clock, debug_option, duration, print_table
from .options import OnceCommand, quiet_option, tokenizer_option

EPILOG = """\b
Examples:
  numtok warm-up
  numtok warm-up --numbers xval,bits --numbers p10
  numtok warm-up --tokenizer my-tokenizer --quiet
"""


@click.command("warm-up", cls=OnceCommand, epilog=EPILOG)
@click.option(
    "--numbers",
    multiple=True,
    metavar="LIST",
    help="Representations to prepare, such as xval,bits; repeatable.  [default: all]",
)
@tokenizer_option
@quiet_option
@debug_option
def warm_up(numbers: tuple[str, ...], tokenizer: str | None, quiet: bool) -> None:
    """Compile for this processor now, not in the first run.

    For images of containers and nodes of a cluster. Compiled functions go beside the installed
    package, for every user, or into your own cache folder if that cannot be written;
    NUMBA_CACHE_DIR names another. What is found out about the tokenizer goes into your cache folder
    (NUMTOK_CACHE names another).
    """
    from numtok.arrays.kernel_cache import compiled_in
    from numtok.corpus.warm_up import warm_up

    clock = Clock()
    say = (
        (lambda name: None)
        if quiet
        else lambda name: click.echo(f"numtok: preparing {name}", err=True)
    )
    folder = warm_up(tokenizer, numbers or None, say)
    if not quiet:
        print_table(
            [
                ("compiled functions", f"{compiled_in(folder):,}", ""),
                ("time", duration(clock()), ""),
            ],
            str(folder),
        )
