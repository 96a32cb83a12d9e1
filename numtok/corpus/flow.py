"""Read, work, write: an ordered pipeline with bounded memory.

In: an iterator of items, a function that works on one item, and a context that takes the results.
    Out: every result, in the order of the items. The items are read in the calling thread (so that
    an interrupt reaches a read that blocks), worked on by ``workers`` threads, and written by one
    thread that also opens and closes the output. What is read but not yet written has a budget in
    bytes, whatever each stage's speed; an item larger than the budget passes alone. An item is let
    go of once there is its result.

The first failure in the order of the items stops all stages, closes the output as its context does
on an exception, and is raised once.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

TICK = 0.1  # seconds between two looks at the clock while waiting
ON_THE_WAY = 2  # batches between reader and writer, besides one for each worker


class _Stopped(BaseException):
    """Ends the writer's context as an error would."""


Sink = Callable[[Result], None]  # what the writer's context yields


class Budget:
    """A number of bytes that may be on their way at once."""

    def __init__(self, limit: int) -> None:
        self._limit, self._used, self._changed = limit, 0, threading.Condition()

    def take(self, size: int, timeout: float) -> bool:
        """Take ``size``, or return False after ``timeout`` seconds.

        More than the whole budget is given to whoever is alone.
        """
        with self._changed:
            free = self._changed.wait_for(
                lambda: self._used == 0 or self._used + size <= self._limit, timeout
            )
            if free:
                self._used += size
            return free

    def give_back(self, size: int) -> None:
        with self._changed:
            self._used -= size
            self._changed.notify_all()


class _Writer(threading.Thread, Generic[Result]):
    """Opens the output, writes results in order, closes the output; keeps the error that ended it."""

    def __init__(
        self, open_sink: Callable[[], AbstractContextManager[Sink[Result]]], budget: Budget
    ) -> None:
        super().__init__(name="numtok-writer")
        self.queue: queue.SimpleQueue[tuple[Future[Result], int] | None] = queue.SimpleQueue()
        self.error: BaseException | None = None
        self.finished, self.stop = threading.Event(), threading.Event()
        self._open_sink, self._budget = open_sink, budget

    def run(self) -> None:
        try:
            with self._open_sink() as sink:
                while (entry := self.queue.get()) is not None:
                    self._check()
                    future, size = entry
                    sink(future.result())
                    del future, entry  # or this batch stays in memory while the next is waited for
                    self._budget.give_back(size)
                self._check()
        except _Stopped:
            pass
        except BaseException as error:  # carried to the calling thread
            self.error = error
        finally:
            self.finished.set()

    def _check(self) -> None:
        if self.stop.is_set():
            raise _Stopped


def run_ordered(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    open_sink: Callable[[], AbstractContextManager[Sink[Result]]],
    size_of: Callable[[Item], int],
    workers: int,
    budget_bytes: int,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Run the pipeline to its end.

    Args:
        items: read in the calling thread.
        work: called from ``workers`` threads at once.
        open_sink: the writer's context; entered, called and left in the writer's thread.
        size_of: bytes of an item, for the budget.
        workers: threads that work; the reader and the writer come on top.
        budget_bytes: how much may be between reader and writer.
        tick: called from the calling thread after each item and every ``TICK`` seconds of waiting.
    """
    budget = Budget(budget_bytes)
    writer: _Writer[Result] = _Writer(open_sink, budget)
    pool = ThreadPoolExecutor(workers, "numtok-worker")
    try:
        writer.start()
        _feed(items, work, size_of, budget, pool, writer, tick)
        writer.queue.put(None)
        while not writer.finished.wait(TICK):
            tick()
    except BaseException:
        if writer.error is None:
            raise
    finally:
        writer.stop.set()
        writer.queue.put(None)
        pool.shutdown(cancel_futures=True)
        with contextlib.suppress(RuntimeError):  # interrupted while it starts: it ends by itself
            writer.join()
    if writer.error is not None:
        raise writer.error
    tick()


def _feed(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    size_of: Callable[[Item], int],
    budget: Budget,
    pool: ThreadPoolExecutor,
    writer: _Writer[Result],
    tick: Callable[[], None],
) -> None:
    """Hand every item to the pool and, in order, to the writer, as far as the budget allows."""
    source = iter(items)
    while not writer.finished.is_set():
        try:
            item = next(source)
        except StopIteration:
            return
        except Exception as error:
            _fail_in_turn(error, writer)
            return
        size = size_of(item)
        while not budget.take(size, TICK):
            tick()
            if writer.finished.is_set():
                return
        writer.queue.put((pool.submit(work, item), size))
        del item
        tick()


def _fail_in_turn(error: Exception, writer: _Writer[Result]) -> None:
    """Let the writer raise a reader's error once it has dealt with all that was read before."""
    failed: Future[Result] = Future()
    failed.set_exception(error)
    writer.queue.put((failed, 0))
