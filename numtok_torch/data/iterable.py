"""Encoded text as an iterable torch dataset: every row once, shared among ranks and workers, in a
seeded order, resumable.

In: what numtok wrote. Out: rows, as in :mod:`numtok_torch.data.dataset`. The order is computed, not
    kept: a function of seed and epoch gives the window of rows at any place, so that a share is a
    stretch of it, and resuming is to begin in the middle.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from numtok.errors import SchemaError
from numtok_torch.data.dataset import Encoded
from numtok_torch.data.storage import Row
from numtok_torch.data.streams import Ints

STATE_VERSION = 1


@dataclass
class _Progress:
    """Where one iteration stands: ``position`` rows of its share were passed, null ones included;
    ``share`` is [number, of how many].
    """

    epoch: int
    position: int
    share: list[int]


class IterableNumberDataset(Encoded, IterableDataset[Row]):
    """All rows once, in an order that is a function of ``seed`` and the epoch, each in exactly one
    of the processes that share the work.

    **Sharing.** The order is cut into one stretch for each DataLoader worker of each rank, equally
    long to within one row, and each reads little more than the chunks its stretch lies in.
    accelerate, and with it the Hugging Face ``Trainer``, shares iterable data among ranks by
    itself: give it ``rank=0, world_size=1``.

    **Shuffling.** The chunks (row groups, record batches) are put into a random order, and the rows
    are shuffled within ``window`` chunks at a time: rows of one chunk come within one window,
    windows of random chunks, so no more than ``window`` chunks are in memory. Call ``set_epoch``
    before each epoch for a new order; it also reaches workers that are running
    (``persistent_workers=True``), and forgets the state to resume from if that is of another epoch.

    **Resuming.** ``state_dict()`` is where the iteration that began last stands,
    ``load_state_dict()`` makes the next one go on behind it, without reading what came before. Both
    work where the data set is iterated: in this process with ``num_workers=0``; with workers, use
    torchdata's ``StatefulDataLoader``, which asks each of them.

    Args:
        source, columns, tokenizer: as in :class:`numtok_torch.data.dataset.NumberDataset`.
        shuffle: else the order of the files.
        seed: of the shuffling.
        window: chunks that are shuffled together.
        rank, world_size: which share of the work this process has; None for what
            ``torch.distributed`` says, if it is initialised, when the iteration starts (or when the
            data set is pickled for a worker), else all of it.
        even: leave out up to ``world_size - 1`` rows at the end of the order, so that all ranks
            have equally many (null rows counted) and none waits for another.
        block_size, separator, separate: as in :class:`numtok_torch.data.dataset.NumberDataset`:
            rows are blocks, which are found in one pass over the data when this is made, without
            the documents that are null. A block belongs to the chunk it begins in; for its end the
            next one is read too.
    """

    def __init__(
        self,
        source: Any,
        columns: Sequence[str] | None = None,
        tokenizer: Any = None,
        *,
        shuffle: bool = False,
        seed: int = 0,
        window: int = 4,
        rank: int | None = None,
        world_size: int | None = None,
        even: bool = False,
        block_size: int | None = None,
        separator: int | str | None = None,
        separate: bool = True,
    ) -> None:
        super().__init__(
            source,
            columns,
            tokenizer,
            cache_bytes=0,
            disk_bytes=0,
            block_size=block_size,
            separator=separator,
            separate=separate,
            skip_nulls=True,
        )
        if (rank is None) != (world_size is None):
            raise SchemaError(
                f"rank={rank} and world_size={world_size} must be given together, or neither"
            )
        if rank is not None and world_size is not None and not 0 <= rank < world_size:
            raise SchemaError(f"rank={rank} must be from 0 to world_size - 1 = {world_size - 1}")
        if window < 1 or seed < 0:
            raise SchemaError(
                f"window={window} must be positive, and seed={seed} must not be negative"
            )
        self.shuffle, self.seed, self.window, self.even = shuffle, seed, window, even
        self._rank = None if rank is None or world_size is None else (rank, world_size)
        self._epoch = torch.zeros(
            (), dtype=torch.int64
        ).share_memory_()  # in shared memory, so that workers see set_epoch
        self._progress = _Progress(0, 0, [0, 1])
        self._resume: _Progress | None = None

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration has."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration the given epoch, counted from 0."""
        if epoch < 0:
            raise SchemaError(f"epoch={epoch} must not be negative")
        self._epoch.fill_(epoch)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {
            "_rank": self._rank or _distributed()
        }  # a spawned worker does not know of torch.distributed

    def _rank_and_world(self) -> tuple[int, int]:
        return self._rank or _distributed() or (0, 1)

    def _total(self, world_size: int) -> int:
        total = self._total_rows
        return total // world_size * world_size if self.even else total

    def __len__(self) -> int:
        """Rows of this rank, null rows included."""
        rank, world_size = self._rank_and_world()
        total = self._total(world_size)
        return (rank + 1) * total // world_size - rank * total // world_size

    def __iter__(self) -> Iterator[Row]:
        rank, world_size = self._rank_and_world()
        worker = get_worker_info()
        workers, number = (worker.num_workers, worker.id) if worker else (1, 0)
        share = [rank * workers + number, world_size * workers]
        resume, self._resume = self._resume, None
        if resume is None or resume.epoch != self.epoch:
            resume = _Progress(self.epoch, 0, share)
        elif resume.share != share:
            raise SchemaError(
                f"the state is that of share {resume.share[0]} of {resume.share[1]}, but this is"
                f" share {share[0]} of {share[1]}; resume with as many ranks and workers as before"
            )
        self._progress = resume
        total = self._total(world_size)
        return self._rows(share[0] * total // share[1], (share[0] + 1) * total // share[1], resume)

    def _rows(self, first: int, last: int, progress: _Progress) -> Iterator[Row]:
        """The rows from ``first`` to ``last`` of the epoch's order, without those that were passed
        already.
        """
        for rows in self._windows(first + progress.position, last, progress.epoch):
            chunks, local = self._locate(rows)
            read = functools.cache(self._storage.read)  # holds the chunks of this window
            for number, chunk, place in zip(
                rows.tolist(), chunks.tolist(), local.tolist(), strict=True
            ):
                progress.position += 1
                if (row := self._row(number, chunk, place, read)) is not None:
                    yield row

    def _windows(self, first: int, last: int, epoch: int) -> Iterator[Ints]:
        """Row numbers through the whole data, one window after the other: those that come ``first``
        to ``last`` in the epoch's order.
        """
        sizes = self._counts
        order = (
            np.random.default_rng([self.seed, epoch]).permutation(len(sizes))
            if self.shuffle
            else np.arange(len(sizes))
        )
        begin = 0
        for at in range(0, len(order), self.window if self.shuffle else 1):
            chunks = order[at : at + (self.window if self.shuffle else 1)]
            end = begin + int(sizes[chunks].sum())
            if first < end and begin < last:
                rows = np.concatenate(
                    [np.arange(self._begins[chunk], self._ends[chunk]) for chunk in chunks]
                )
                if self.shuffle:
                    np.random.default_rng([self.seed, epoch, at]).shuffle(rows)
                yield rows[max(0, first - begin) : last - begin]
            begin = end

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration stands, in plain numbers."""
        at = self._resume or self._progress
        return {"version": STATE_VERSION, **self._order(), **dataclasses.asdict(at)}

    def _order(self) -> dict[str, Any]:
        order = {
            "fingerprint": self.fingerprint,
            "shuffle": self.shuffle,
            "seed": self.seed,
            "window": self.window,
            "even": self.even,
        }
        return {"rows": self._total_rows, **order, "block_size": self.block_size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on, with the next iteration, where :meth:`state_dict` was taken.

        Raises:
            SchemaError: if the state is that of other data, or of another order.
        """
        expected = {"version": STATE_VERSION, **self._order()}
        if differing := [key for key, value in expected.items() if state.get(key) != value]:
            key = differing[0]
            raise SchemaError(
                f"the state has {key} {state.get(key)!r}, this data set has {expected[key]!r};"
                " resume with the data and options of before"
            )
        self.set_epoch(int(state["epoch"]))
        self._resume = _Progress(int(state["epoch"]), int(state["position"]), list(state["share"]))


def _distributed() -> tuple[int, int] | None:
    """Rank and world size as ``torch.distributed`` says, None if it says nothing (yet)."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return None
