"""One try at a shard, whoever makes it: what went wrong becomes a sentence, so that the other
shards can go on.

In: a ``Task``, what all shards of a job share, and the number of one. Out: an ``Outcome``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from numtok.corpus.jobs.plan import Plan
from numtok.corpus.jobs.shards import encode_shard
from numtok.corpus.jobs.store import Folder
from numtok.corpus.summary import Progress
from numtok.errors import NumtokError, OutputError
from numtok.tokenizer.tokenizer import Tokenizer

Watch = Callable[[int, Progress], None]  # is told how far a shard is


@dataclass(frozen=True)
class Task:
    """A job: its folder, its plan, and its tokenizer."""

    folder: Folder
    plan: Plan
    tokenizer: Tokenizer


class Outcome(NamedTuple):
    """How a shard ended.

    Attributes:
        shard: its number.
        error: None if it is done.
        stop: whether the others would fail alike, as on a full disk.
    """

    shard: int
    error: str | None = None
    stop: bool = False


def attempt(task: Task, shard: int, threads: int, watch: Watch) -> Outcome:
    """Encode a shard with so many threads."""
    try:
        encode_shard(
            task.folder,
            task.plan,
            shard,
            task.tokenizer,
            threads,
            lambda progress: watch(shard, progress),
        )
    except NumtokError as error:
        return Outcome(shard, str(error), isinstance(error, OutputError))
    except MemoryError:
        return Outcome(shard, "out of memory; use fewer --workers")
    except Exception as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        return Outcome(shard, f"this is a bug in numtok: {type(error).__name__}: {error}{notes}")
    return Outcome(shard)
