"""Read, work, write: an ordered pipeline with bounded memory. The calling thread reads, threads
work, one more writes. What is read but not yet written has a budget in bytes, whatever each stage's speed;
an item larger than the budget passes alone. The first failure in the order of the items is raised.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from numtok.corpus.summary import processors

Item = TypeVar("Item")
Result = TypeVar("Result")
Sink = Callable[[Result], None]  # what the writer's context yields

TICK = 0.1  # seconds between two looks at the clock while waiting
ON_THE_WAY = 2  # batches between reader and writer, besides one for each worker


class _Writer(Generic[Result]):
    """A thread that writes results in the order in which they were asked for; nothing behind a
    failure, or once it is stopped.
    """

    def __init__(self, sink: Sink[Result]) -> None:
        self._sink, self._stopped = sink, threading.Event()
        self._thread = ThreadPoolExecutor(1, "numtok-writer")

    def submit(self, result: Future[Result]) -> Future[None]:
        return self._thread.submit(self._write, result)

    def _write(self, result: Future[Result]) -> None:
        if self._stopped.is_set():
            return
        try:
            self._sink(result.result())
        except BaseException:
            self._stopped.set()
            raise

    def stop(self) -> None:
        """Stop the writer; the sink is no longer in use when this returns."""
        self._stopped.set()
        self._thread.shutdown(cancel_futures=True)


def run_ordered(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    open_sink: Callable[[], AbstractContextManager[Sink[Result]]],
    size_of: Callable[[Item], int],
    workers: int | None,
    batch_bytes: int,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Run the pipeline to its end: ``work`` in so many threads, by default one per processor; between
    reader and writer are ``batch_bytes`` for each, and for ``ON_THE_WAY`` more; ``tick`` is called
    after each item and every ``TICK`` seconds. The writer's context is left with the error that ends
    the run.
    """
    workers = workers or processors()
    budget = (workers + ON_THE_WAY) * batch_bytes
    waiting: deque[tuple[Future[None], int]] = deque()
    source, failed, used = iter(items), None, 0
    pool = ThreadPoolExecutor(workers, "numtok-worker")

    def oldest() -> int:
        """Return the size of the oldest item, once it is written."""
        written, size = waiting.popleft()
        while not wait([written], TICK).done:
            tick()
        written.result()
        tick()
        return size

    with open_sink() as sink:
        writer = _Writer(sink)
        try:
            while failed is None:
                try:
                    item = next(source)
                except StopIteration:
                    break
                except Exception as error:  # raised once all that was read before is written
                    failed = error
                    break
                size = size_of(item)
                while waiting and (used + size > budget or waiting[0][0].done()):
                    used -= oldest()
                waiting.append((writer.submit(pool.submit(work, item)), size))
                used += size
                del item
                tick()
            while waiting:
                oldest()
            if failed is not None:
                raise failed
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            writer.stop()
            pool.shutdown()
    tick()
