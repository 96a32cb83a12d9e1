"""Encoded text as torch datasets: by number, and as a stream that is shared, shuffled and resumed.

In: what numtok wrote: Parquet or Arrow IPC files, or a record batch in memory. Out: rows,
dictionaries of numpy arrays under the names of the file's columns, ready for
:class:`numtok_torch.data.collator.NumberCollator`; read-only views of the data wherever it is not
compressed.

**Shape** of a row: ``input_ids`` int32 (tokens,), ``place_value`` int16 (tokens,), ``number_index``
int32 (numbers,), and per number ``number_value`` float64 (numbers,), ``number_bits`` uint8
(numbers, 32) or uint32 (numbers,), ``number_fourier`` float32 (numbers, f, 2) and so on, as in
FORMAT.md; the same for files in token layout. Rows of packed files, which are pieces of documents,
and blocks (:mod:`numtok_torch.data.blocks`) have ``position_ids`` int64 (tokens,) that begin at 0
with each document.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info
from torch.utils.data._utils.collate import default_collate_fn_map

from numtok.errors import SchemaError
from numtok.representations.columns import SEQ_LENGTHS
from numtok.tokenizer.packing import NumberTokens
from numtok_torch.data.blocks import Blocks, Cutting, Read, null_row
from numtok_torch.data.packing import Ints, within
from numtok_torch.data.rows import stored_columns
from numtok_torch.data.storage import Row, Storage
from numtok_torch.data.tokens import check_tokenizer, identity, token_id

STATE_VERSION = 1


class BlockOptions(TypedDict, total=False):
    """Options of both kinds of data sets; see :class:`Encoded`."""

    block_size: int | None
    separator: int | str | None
    separate: bool


class NumberRow(dict[str, Any]):
    """A row of a data set, its arrays by name. torch's own collate function refuses it, as rows
    differ in length.

    Attributes:
        tokenizer_identity: what is known of the tokenizer that encoded it
            (:func:`numtok_torch.data.tokens.identity`).
    """

    tokenizer_identity: Mapping[str, Any] | None = None


def _needs_collator(rows: list[Any], *, collate_fn_map: Any = None) -> Any:
    raise SchemaError(
        "rows of numbers differ in length, so torch cannot batch them by itself; give the"
        " DataLoader collate_fn=NumberCollator.from_schema(data.schema, pad_token_id=...,"
        " objective=...)"
    )


default_collate_fn_map[NumberRow] = _needs_collator


class Encoded:
    """What :class:`~numtok_torch.NumberDataset` and :class:`~numtok_torch.IterableNumberDataset`
    have in common.

    Attributes:
        schema: the schema of the columns that are read, with its metadata. It is what
            ``embedding_from_schema`` and ``NumberCollator.from_schema`` take.
        metadata: the ``numtok`` metadata as a dict.
        fingerprint: that of the tokenizer that encoded the data.
        tokenizer_identity: what the metadata say of that tokenizer, its fingerprint among them.
        block_size: tokens per row; None if a row is a document.
        cut_numbers: numbers longer than a block, which are cut and have lost their entries.

    Args:
        source: a file, a folder, a list of them, a ``RecordBatch`` or a ``Table``.
        columns: further columns to read, beside ``input_ids`` and the places of numbers; None for
            all tensors. Texts such as ``number_text`` come only if named, and not in blocks.
        tokenizer: the ``numtok.Tokenizer`` or ``numtok.hf.NumberTokenizer`` that encoded the data,
            or its fingerprint; another is refused. None for no check.
        block_size: join the documents and cut them into rows of so many tokens, but not inside
            numbers, after one pass over the data. No token is lost. None: a row is a document.
        separator: an id, or a token of ``tokenizer`` such as ``"<|endoftext|>"``, put after every
            document of a block; None for none.
        separate: give blocks and packed rows ``position_ids``, by which the collator and the model
            keep documents apart: none sees the one before it. False: a row is one text.

    Raises:
        InputError: for files that cannot be read.
        SchemaError: for files that numtok did not write, that do not belong together, or that
            another tokenizer made.
    """

    def __init__(
        self,
        source: Any,
        columns: Sequence[str] | None,
        tokenizer: Any,
        skip_nulls: bool,
        at_random: bool,
        *,
        block_size: int | None = None,
        separator: int | str | None = None,
        separate: bool = True,
    ) -> None:
        self._storage = Storage(source, columns, at_random)
        self.schema: pa.Schema = self._storage.schema
        self.metadata: dict[str, Any] = self._storage.metadata
        self.tokenizer_identity = identity(self.metadata)
        if tokenizer is not None:
            check_tokenizer(self.tokenizer_identity, tokenizer, "the data was encoded by")
        self.fingerprint: str = self.metadata["tokenizer"]
        self.block_size: int | None = block_size
        self._separate = separate
        self._blocks: Blocks | None = None
        if block_size is not None:
            self._check_columns()
            tokens = NumberTokens.from_metadata(self.metadata)
            cutting = Cutting(
                block_size, self._separator_id(separator, tokenizer), separate, tokens
            )
            narrow = self._storage if self._storage.is_quick else Storage(source, [])
            self._blocks = Blocks(narrow, cutting, skip_nulls)
        elif separator is not None:
            raise SchemaError(
                f"separator={separator!r} goes between the documents of a block; give"
                " block_size=... too"
            )
        # int64[chunks]: the documents, or the blocks that begin there; those up to each and with it
        self._counts = self._storage.rows if self._blocks is None else self._blocks.counts
        self._ends: Ints = np.cumsum(self._counts)
        self._total_rows = int(self._counts.sum())

    def _check_columns(self) -> None:
        if self.metadata["pack"]:
            raise SchemaError(
                f"the rows are packed already, in {self.metadata['pack']['length']} tokens each;"
                " leave out block_size"
            )
        for name in self.schema.names:
            if name not in stored_columns():
                raise SchemaError(
                    f"column {name!r} has no value for each token or number, so it cannot be cut"
                    " into blocks; leave it out"
                )

    def _separator_id(self, separator: int | str | None, tokenizer: Any) -> int | None:
        if isinstance(separator, str) and (tokenizer is None or isinstance(tokenizer, str)):
            raise SchemaError(
                f"separator={separator!r} is known to the tokenizer only; give that too,"
                " tokenizer=..., or the id"
            )
        number = None if separator is None else token_id(tokenizer, separator)
        if number is not None and number >= self.metadata.get("vocab_size", number + 1):
            raise SchemaError(
                f"separator={number} is no id of the tokenizer, which has"
                f" {self.metadata['vocab_size']}"
            )
        return number

    @property
    def cut_numbers(self) -> int:
        """Numbers longer than a block, which are cut and have lost their entries."""
        return 0 if self._blocks is None else self._blocks.cut_numbers

    def _row(self, number: int, read: Read) -> Row | None:
        """A document, None if it is null, or a block, numbered through the whole data."""
        if self._blocks is not None:
            return self._made(self._blocks.row(number, read))
        at = int(self._ends.searchsorted(number, "right"))
        chunk, place = read(at), number - int(self._ends[at] - self._counts[at])
        if not chunk.valid[place]:
            return None
        row = self._made(chunk.row(place))
        if SEQ_LENGTHS.name in row:
            lengths = row.pop(SEQ_LENGTHS.name).astype(np.int64)
            row |= {"position_ids": within(lengths)} if self._separate else {}
        return row

    def _made(self, row: Row) -> NumberRow:
        made = NumberRow(row)
        made.tokenizer_identity = self.tokenizer_identity
        return made


class NumberDataset(Encoded, Dataset[Row]):
    """Rows that are read in any order, as a ``Trainer`` or a sampler does.

    One row of Parquet takes reading its whole row group. So each file is converted once, to an
    uncompressed Arrow file in the user's cache folder, and that is mapped into memory.
    ``NUMTOK_CACHE`` names the folder; ``NUMTOK_CACHE=0`` converts nothing. For data that are too
    large for that, :class:`IterableNumberDataset` reads row groups in order.

    Args:
        source, columns, tokenizer: as in :class:`Encoded`.
        nulls: what to do about null rows, of documents that were null and are no rows for a model:
            ``"error"`` when one is asked for, or ``"skip"`` them. Blocks ask for all.
        blocks: ``block_size``, ``separator`` and ``separate``, as in :class:`Encoded`.
    """

    def __init__(
        self,
        source: Any,
        columns: Sequence[str] | None = None,
        tokenizer: Any = None,
        nulls: str = "error",
        **blocks: Unpack[BlockOptions],
    ) -> None:
        if nulls not in ("error", "skip"):
            raise SchemaError(f"nulls={nulls!r} is unknown; use 'error' or 'skip'")
        skip = nulls == "skip"
        super().__init__(source, columns, tokenizer, skip, at_random=True, **blocks)
        self._valid: Ints | None = None  # int64[valid rows], through the whole data
        if skip and self._blocks is None:
            narrow = self._storage if self._storage.is_quick else Storage(source, [])
            valid = [narrow.read(chunk).valid for chunk in range(len(narrow.rows))]
            self._valid = np.flatnonzero(np.concatenate([np.empty(0, np.bool_), *valid]))

    def __len__(self) -> int:
        return self._total_rows if self._valid is None else len(self._valid)

    def __getitem__(self, index: int) -> Row:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"row {index} of {count}")
        number = index % count if self._valid is None else int(self._valid[index])
        row = self._row(number, self._storage.read)
        if row is None:
            raise null_row(number)
        return row


@dataclass
class _Progress:
    """Where one iteration stands: ``position`` rows of its share were passed, null ones included;
    ``share`` is [number, of how many].
    """

    epoch: int
    position: int
    share: list[int]


class IterableNumberDataset(Encoded, IterableDataset[Row]):
    """Rows that are read one after the other, for data of any size. Each row comes once, in exactly
    one of the processes that share the work; null rows are left out. The order depends on ``seed`` and the epoch only.

    **Sharing.** The order is cut into one stretch for each DataLoader worker of each rank, equally
    long to within one row, and each reads little more than the chunks its stretch lies in.
    accelerate, and with it the Hugging Face ``Trainer``, shares iterable data among ranks by
    itself: give it ``rank=0, world_size=1``.

    **Shuffling.** The chunks (row groups, record batches) are put into a random order, and the rows
    are shuffled within ``window`` chunks at a time, so no more than ``window`` chunks are in
    memory. Call ``set_epoch`` before each epoch for a new order; it also reaches workers that are
    running (``persistent_workers=True``), and forgets the state to resume from if that is of
    another epoch.

    **Resuming.** ``state_dict()`` is where the iteration that began last stands,
    ``load_state_dict()`` makes the next one go on after it, without reading what came before. Both
    work where the data set is iterated: in this process with ``num_workers=0``; with workers, use
    torchdata's ``StatefulDataLoader``, which asks each of them.

    Args:
        source, columns, tokenizer: as in :class:`Encoded`.
        shuffle: else the order of the files.
        seed: of the shuffling.
        window: chunks that are shuffled together.
        rank, world_size: which share of the work this process has; None for what
            ``torch.distributed`` says, if it is initialised, when the iteration starts (or when the
            data set is pickled for a worker), else all of it.
        blocks: ``block_size``, ``separator`` and ``separate``, as in :class:`Encoded`. A block
            belongs to the chunk it begins in; for its end the next one is read too.
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
        **blocks: Unpack[BlockOptions],
    ) -> None:
        super().__init__(source, columns, tokenizer, True, at_random=False, **blocks)
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
        self.shuffle, self.seed, self.window = shuffle, seed, window
        self._rank = None if rank is None or world_size is None else (rank, world_size)
        # in shared memory, so that workers see set_epoch
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()
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
        # a spawned worker does not know of torch.distributed
        return vars(self) | {"_rank": self._rank or _distributed()}

    def _stretch(self, number: int, shares: int) -> tuple[int, int]:
        """The first and the last row of a share."""
        total = self._total_rows
        return number * total // shares, (number + 1) * total // shares

    def __len__(self) -> int:
        """Rows of this rank, null rows included."""
        rank, world_size = self._rank or _distributed() or (0, 1)
        first, last = self._stretch(rank, world_size)
        return last - first

    def __iter__(self) -> Iterator[Row]:
        rank, world_size = self._rank or _distributed() or (0, 1)
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
        return self._rows(*self._stretch(*share), resume)

    def _rows(self, first: int, last: int, progress: _Progress) -> Iterator[Row]:
        """The rows from ``first`` to ``last`` of the epoch's order that are left."""
        for rows in self._windows(first + progress.position, last, progress.epoch):
            read = functools.cache(self._storage.read)  # holds the chunks of this window
            for number in rows.tolist():
                row = self._row(number, read)
                progress.position += 1
                if row is not None:
                    yield row

    def _windows(self, first: int, last: int, epoch: int) -> Iterator[Ints]:
        """Row numbers through the whole data, one window of the epoch's order after another."""
        order, window, begin = np.arange(len(self._counts)), 1, 0
        if self.shuffle:
            order = np.random.default_rng([self.seed, epoch]).permutation(len(order))
            window = self.window
        for at in range(0, len(order), window):
            chunks = order[at : at + window]
            end = begin + int(self._counts[chunks].sum())
            if first < end and begin < last:
                stops = self._ends[chunks].tolist()
                sizes = self._counts[chunks].tolist()
                rows = np.concatenate(
                    [np.arange(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]
                )
                if self.shuffle:
                    np.random.default_rng([self.seed, epoch, at]).shuffle(rows)
                yield rows[max(0, first - begin) : last - begin]
            begin = end

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration stands, in plain numbers."""
        return {**self._order(), **dataclasses.asdict(self._resume or self._progress)}

    def _order(self) -> dict[str, Any]:
        """What the order depends on."""
        names = ("fingerprint", "shuffle", "seed", "window", "block_size")
        options = {name: getattr(self, name) for name in names}
        return {"version": STATE_VERSION, "rows": self._total_rows, **options}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on, with the next iteration, where :meth:`state_dict` was taken.

        Raises:
            SchemaError: if the state is that of other data, or of another order.
        """
        for key, expected in self._order().items():
            if state.get(key) != expected:
                raise SchemaError(
                    f"the state has {key} {state.get(key)!r}, this data set has {expected!r};"
                    " resume with the data and options of before"
                )
        self.set_epoch(int(state["epoch"]))
        self._resume = _Progress(int(state["epoch"]), int(state["position"]), list(state["share"]))


def _distributed() -> tuple[int, int] | None:
    """Rank and world size as ``torch.distributed`` says, None if it says nothing (yet)."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return None
