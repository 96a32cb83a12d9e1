"""Read, work, write: an ordered pipeline with bounded memory. The calling thread reads, threads
work, one more writes. What is read but not yet written has a budget in bytes, whatever each stage's speed;
an item larger than the budget passes alone. The first failure in the order of the items is raised.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from numtok.corpus.summary import processors

Item = TypeVar("Item")
Result = TypeVar("Result")

TICK = 0.1  # seconds between two looks at the clock while waiting
ON_THE_WAY = 2  # batches between reader and writer, besides one for each worker


def run_ordered(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    sink: Callable[[Result], None],
    size_of: Callable[[Item], int],
    workers: int | None,
    batch_bytes: int,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Run the pipeline to its end: ``work`` in so many threads, by default one per processor, and
    ``sink`` in a thread of its own, which is not in use any more when this returns or raises. Between
    reader and writer are ``batch_bytes`` for each worker, and for ``ON_THE_WAY`` more. ``tick`` is
    called after each item and every ``TICK`` seconds.
    """
    workers = workers or processors()
    budget = (workers + ON_THE_WAY) * batch_bytes
    waiting: deque[tuple[Future[None], int]] = deque()
    source, failed, used = iter(items), None, 0
    pool = ThreadPoolExecutor(workers, "numtok-worker")
    writer = ThreadPoolExecutor(1, "numtok-writer")
    stopped = threading.Event()

    def write(result: Future[Result]) -> None:
        """Write a result in its turn; nothing behind a failure, or once the run is stopped."""
        if stopped.is_set():
            return
        try:
            sink(result.result())
        except BaseException:
            stopped.set()
            raise

    def oldest() -> int:
        """Return the size of the oldest item, once it is written."""
        written, size = waiting.popleft()
        while not wait([written], TICK).done:
            tick()
        written.result()
        tick()
        return size

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
            waiting.append((writer.submit(write, pool.submit(work, item)), size))
            used += size
            del item
            tick()
        while waiting:
            oldest()
        if failed is not None:
            raise failed
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
        writer.shutdown(cancel_futures=True)
        pool.shutdown()
