"""``numtok finish``, what one machine does when several have written a folder of shards; and
``numtok status``, how far they are.
"""

from __future__ import annotations

import click

from .options import Command, debug, group, opt, running
from .streams import shown
from .summary import print_summary

EPILOG = """\b
Examples, with examples/sample.jsonl of the repository, or JSON lines of your own; each of n machines does --shard I/n, and one finishes:
  numtok encode sample.jsonl -o parts/ --shard 1/1
  numtok finish parts/
"""


@click.command(cls=Command, epilog=EPILOG)
@click.argument("folder", metavar="FOLDER")
@opt("--check", "Also read all shards, and compare them with the SHA-256 in their receipts.")
@running
def finish(folder: str, check: bool, quiet: bool) -> None:
    """Finish a folder whose shards several machines have written.

    Every shard must be done, and together they must hold each input exactly once; then the manifest
    is written.
    """
    from numtok import finish_job

    summary = finish_job(folder, check=check)
    if not quiet:
        print_summary(summary, None)


@click.command(cls=Command)
@click.argument("folder", metavar="FOLDER")
@group("Running", debug)
def status(folder: str) -> None:
    """Tell how far the job in a folder is.

    Which shards are done, which ones somebody works on, where and since when, and which ones could
    not be made, with the file and the line.
    """
    from numtok import job_status

    found = job_status(folder)
    click.echo(folder)
    click.echo(f"  {'done':<10}{len(found.done):,} of {found.shards:,} shards")
    for number, claim in found.running.items():
        click.echo(f"  {'running':<10}shard {number}: {claim}")
    for number, error in found.failed.items():
        click.echo(f"  {'failed':<10}shard {number}: {shown(error)}")
    waiting = found.shards - len(found.done) - len(found.running) - len(found.failed)
    if waiting:
        click.echo(f"  {'waiting':<10}{waiting:,}")
    if found.finished:
        click.echo("  finished")
