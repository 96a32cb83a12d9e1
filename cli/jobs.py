"""``numtok finish``, what one machine does when several have written a folder of shards; and
``numtok status``, how far they are.
"""

from __future__ import annotations

from .console import echo, shown
from .options import FOLDER, command
from .summary import print_summary

FINISH = """
Running
  --check  Also read all shards and inputs, and compare them with the recorded SHA-256.
  --quiet
  --debug
"""
# each of n machines does --shard I/n, and one finishes
EXAMPLES = """
numtok encode sample.jsonl -o parts/ --shard 1/1
numtok status parts/
numtok finish parts/
"""


@command([FOLDER], FINISH, EXAMPLES)
def finish(folder: str, check: bool, quiet: bool) -> None:
    """Finish a folder that several machines wrote.

    Run it once, after each machine has run encode with its --shard I/N. It checks that every shard is
    done and that together they hold each input exactly once, and writes the manifest.
    """
    from numtok import finish_job

    summary = finish_job(folder, check=check)
    if not quiet:
        print_summary(summary, None)


@command([FOLDER], "Running\n  --debug", EXAMPLES)
def status(folder: str) -> None:
    """Show how far the job in a folder is.

    It lists how many shards are done, which are being written, where and since when, and which have
    failed, with file and line.
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
