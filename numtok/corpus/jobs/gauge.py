"""How far a job is, over all who work on it.

In: shards that are done, and what those that run say of themselves. Out: ``Progress`` of the whole,
    for one callback.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from numtok.corpus.jobs.plan import Plan
from numtok.corpus.summary import Progress


class Gauge:
    """Adds up.

    Args:
        plan: of the job.
        shards: those that count.
        done: those of them that were done before.
        progress: is told, from the thread that tells the gauge.
    """

    def __init__(
        self,
        plan: Plan,
        shards: Sequence[int],
        done: Sequence[int],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._plan, self._progress, self._started = plan, progress, time.perf_counter()
        self._total, self._shards = sum(map(plan.size, shards)), len(shards)
        self._resumed = self._read = sum(map(plan.size, done))
        self._done = len(done)
        self._documents = self._tokens = self._written = 0
        self._running: dict[int, Progress] = {}

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._started

    def watch(self, shard: int, progress: Progress) -> None:
        """A shard is so far."""
        self._running[shard] = progress
        self.tell()

    def end(self, shard: int, failed: bool) -> None:
        """A shard has ended."""
        last = self._running.pop(shard, None)
        if not failed:
            self._done += 1
            self._read += self._plan.size(shard)
            if last is not None:
                self._documents += last.documents
                self._tokens += last.tokens
                self._written += last.written
        self.tell()

    def tell(self) -> None:
        """Call back."""
        if self._progress is None:
            return
        running = self._running.values()
        self._progress(
            Progress(
                self._read + sum(one.read for one in running),
                self._total,
                self._documents + sum(one.documents for one in running),
                self._tokens + sum(one.tokens for one in running),
                self._written + sum(one.written for one in running),
                self.seconds,
                (self._done, self._shards),
                self._resumed,
            )
        )
