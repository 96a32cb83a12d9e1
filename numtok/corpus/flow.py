"""Read, work, write: an ordered pipeline with bounded memory. The calling thread reads and writes,
threads work. What is read but not yet written has a budget in bytes, whatever each stage's speed;
an item larger than the budget passes alone. The first failure in the order of the items is raised.
"""

from __future__ import annotations

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
    waiting: deque[tuple[Future[Result], int]] = deque()
    source, failed, used = iter(items), None, 0
    pool = ThreadPoolExecutor(workers, "numtok-worker")

    def write_next(sink: Sink[Result]) -> int:
        """Write the oldest result; its size."""
        future, size = waiting.popleft()
        while not wait([future], TICK).done:
            tick()
        sink(future.result())
        tick()
        return size

    try:
        with open_sink() as sink:
            while failed is None:
                try:
                    item = next(source)
                except StopIteration:
                    break
                except Exception as error:  # raised once all that was read before is written
                    failed = error
                    break
                size = size_of(item)
                while waiting and used + size > budget:
                    used -= write_next(sink)
                waiting.append((pool.submit(work, item), size))
                used += size
                del item
                while waiting and waiting[0][0].done():
                    used -= write_next(sink)
                tick()
            while waiting:
                write_next(sink)
            if failed is not None:
                raise failed
    finally:
        pool.shutdown(cancel_futures=True)
    tick()
