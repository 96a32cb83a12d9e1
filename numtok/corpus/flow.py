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
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Sink = Callable[[Result], None]  # what the writer's context yields

TICK = 0.1  # seconds between two looks at the clock while waiting
ON_THE_WAY = 2  # batches between reader and writer, besides one for each worker


def run_ordered(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    open_sink: Callable[[], AbstractContextManager[Sink[Result]]],
    size_of: Callable[[Item], int],
    workers: int,
    budget: int,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Run the pipeline to its end: ``work`` in so many threads, ``budget`` bytes between reader and
    writer, ``tick`` after each item and every ``TICK`` seconds. The writer's context is left with
    the error that ends the run.
    """
    waiting: deque[tuple[Future[None], int]] = deque()
    source, failed, used, stopped = iter(items), None, 0, threading.Event()
    pool = ThreadPoolExecutor(workers, "numtok-worker")
    writer = ThreadPoolExecutor(1, "numtok-writer")

    def write(result: Future[Result], sink: Sink[Result]) -> None:
        """Nothing is written behind a failure."""
        if stopped.is_set():
            return
        try:
            sink(result.result())
        except BaseException:
            stopped.set()
            raise

    def oldest() -> int:
        """The size of the oldest item, once it is written."""
        written, size = waiting.popleft()
        while not wait([written], TICK).done:
            tick()
        written.result()
        tick()
        return size

    with open_sink() as sink:
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
                waiting.append((writer.submit(write, pool.submit(work, item), sink), size))
                used += size
                del item
                tick()
            while waiting:
                oldest()
            if failed is not None:
                raise failed
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            writer.shutdown(cancel_futures=True)
    tick()
