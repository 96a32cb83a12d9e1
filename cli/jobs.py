"""``numtok finish``: what one machine does when several have written a folder of shards."""

from __future__ import annotations

import click

from .options import Command, opt, running
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
