"""``numtok finish``, which checks a folder of shards; and ``numtok status``, how far it is."""

from __future__ import annotations

from .console import echo, shown
from .options import FOLDER, command
from .summary import print_summary

FINISH = """
Running
  --check  Also read all shards, and compare them with the SHA-256 in their receipts.
  --quiet
  --debug
"""
EXAMPLES = """
numtok encode sample.jsonl -o parts/ --shards 2
numtok status parts/
numtok finish parts/ --check
"""


@command([FOLDER], FINISH, EXAMPLES)
def finish(folder: str, check: bool, quiet: bool) -> None:
    """Check that every shard of a folder is done, and write the manifest.

    `numtok encode` does so itself once the last shard is done.
    """
    from numtok import finish_job

    summary = finish_job(folder, check=check)
    if not quiet:
        print_summary(summary, None)


@command([FOLDER], "Running\n  --debug", EXAMPLES)
def status(folder: str) -> None:
    """Tell how far the job in a folder is.

    Which shards are done, which ones somebody works on, where and since when, and which ones could
    not be made, with the file and the line.
    """
    from numtok import job_status

    found = job_status(folder)
    waiting = found.shards - len(found.done) - len(found.running) - len(found.failed)
    rows = [("done", f"{len(found.done):,} of {found.shards:,} shards")]
    rows += [("running", f"shard {number}: {claim}") for number, claim in found.running.items()]
    rows += [("failed", f"shard {number}: {error}") for number, error in found.failed.items()]
    rows += [("waiting", f"{waiting:,}")] * bool(waiting) + [("finished", "")] * found.finished
    echo(shown(folder))
    for what, which in rows:
        echo(f"  {what:<10}{shown(which)}".rstrip())
