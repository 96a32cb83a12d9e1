"""Encoded text as a map-style torch dataset, and what it has in common with the iterable one
(:mod:`numtok_torch.data.iterable`).

In: what numtok wrote: Parquet or Arrow IPC files, or a record batch in memory. Out: rows,
    dictionaries of numpy arrays under the names of the file's columns, ready for
    :class:`numtok_torch.data.collator.NumberCollator`; read-only views of the data wherever it is
    not compressed.

**Shape** of a row: ``input_ids`` int32 (tokens,), ``place_value`` int16 (tokens,), ``number_index``
    int32 (numbers,), and per number ``number_value`` float64 (numbers,), ``number_bits`` uint8
    (numbers, 32) or uint32 (numbers,), ``number_fourier`` float32 (numbers, f, 2) and so on, as in
    FORMAT.md. In token layout, ``number_mask`` bool (tokens,) in place of ``number_index``, and all
    of these per token.

**Null rows**, documents that were null, are no rows for a model. The iterable leaves them out. In a
map, where the count has to be known, asking for one is a ``SchemaError`` unless ``nulls="skip"``,
which looks for them once, when the data set is made, and does not count them.

**Packed files.** Rows are pieces of documents; ``position_ids`` int64 (tokens,) begin at 0 with
each.

**Blocks.** With ``block_size`` a row is not a document but so many tokens of all of them, laid end
to end (:mod:`numtok_torch.data.blocks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from torch.utils.data import Dataset
from torch.utils.data._utils.collate import default_collate_fn_map

from numtok.errors import SchemaError
from numtok.representations.columns import SEQ_LENGTHS
from numtok_torch.data.arrow_cache import DISK_BYTES
from numtok_torch.data.blocks import Blocks, Cutting, Read
from numtok_torch.data.packing import within
from numtok_torch.data.storage import Chunk, Row, Storage
from numtok_torch.data.streams import Ints, NumberTokens, stored_columns
from numtok_torch.data.tokens import token_id

CACHE_BYTES = 256 << 20


def check_fingerprint(storage: Storage, tokenizer: Any) -> None:
    """Refuse data that another tokenizer made; ``tokenizer`` is None for no check."""
    if tokenizer is None:
        return
    inner = getattr(tokenizer, "numtok", tokenizer)  # of a numtok.hf.NumberTokenizer
    fingerprint = inner if isinstance(inner, str) else getattr(inner, "fingerprint", None)
    if not isinstance(fingerprint, str):
        raise SchemaError(
            f"tokenizer={type(tokenizer).__name__} has no fingerprint; give a numtok.Tokenizer, a"
            " numtok.hf.NumberTokenizer, or the fingerprint of one"
        )
    encoded = getattr(inner, "encoded", lambda metadata: fingerprint == metadata["tokenizer"])
    if not encoded(storage.metadata):
        raise SchemaError(
            "the data was encoded by another tokenizer (fingerprint"
            f" {storage.metadata['tokenizer']}, this one has {fingerprint}); load the one that"
            " encoded it, with the same representations and grammar, or encode again"
        )


class NumberRow(dict[str, Any]):
    """A row of a data set, its arrays by name. torch's own collate function refuses it, as rows
    differ in length.
    """


def _needs_collator(rows: list[Any], *, collate_fn_map: Any = None) -> Any:
    raise SchemaError(
        "rows of numbers differ in length, so torch cannot batch them by itself; give the"
        " DataLoader collate_fn=NumberCollator.from_schema(data.schema, pad_token_id=...,"
        " objective=...)"
    )


default_collate_fn_map[NumberRow] = _needs_collator


class Encoded:
    """What both kinds have in common.

    Attributes:
        schema: of the columns that are read, with its metadata; what ``embedding_from_schema`` and
            ``NumberCollator.from_schema`` take.
        metadata: the ``numtok`` metadata as a dict. fingerprint: of the tokenizer that encoded the
            data.
        block_size: tokens per row; None if a row is a document.
        cut_numbers: numbers longer than a block, which are cut and have lost their entries.
    """

    def __init__(
        self,
        source: Any,
        columns: Sequence[str] | None,
        tokenizer: Any,
        *,
        cache_bytes: int,
        disk_bytes: int,
        block_size: int | None,
        separator: int | str | None,
        separate: bool,
        skip_nulls: bool,
    ) -> None:
        self._storage = Storage(source, columns, cache_bytes, disk_bytes)
        check_fingerprint(self._storage, tokenizer)
        self.schema: pa.Schema = self._storage.schema
        self.metadata: dict[str, Any] = self._storage.metadata
        self.fingerprint: str = self.metadata["tokenizer"]
        self.block_size, self._separate = block_size, separate
        self._blocks: Blocks | None = None
        if block_size is not None and self.metadata["pack"]:
            raise SchemaError(
                f"the rows are packed already, in {self.metadata['pack']['length']} tokens each;"
                " leave out block_size"
            )
        if block_size is not None:
            self._check_columns()
            separator_id = self._separator_id(separator, tokenizer)
            cutting = Cutting(
                block_size, separator_id, separate, NumberTokens.from_metadata(self.metadata)
            )
            narrow = Storage(source, [], 0)
            self._blocks = Blocks(
                self._storage if self._storage.is_converted else narrow, cutting, skip_nulls
            )
        elif separator is not None:
            raise SchemaError(
                f"separator={separator!r} goes between the documents of a block; give"
                " block_size=... too"
            )
        self._counts: Ints = (
            self._storage.rows if self._blocks is None else self._blocks.counts
        )  # (chunks,): documents, or blocks that begin there
        self._ends: Ints = np.cumsum(self._counts)  # (chunks,): those up to and with each chunk
        self._begins: Ints = self._ends - self._counts  # (chunks,): those before each chunk
        self._total_rows = int(self._counts.sum())

    def _check_columns(self) -> None:
        for field in self.schema:
            if field.name not in stored_columns() and field.name != "number_text":
                raise SchemaError(
                    f"column {field.name!r} has no value for each token or number, so it cannot be"
                    " cut into blocks; leave it out"
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
        return 0 if self._blocks is None else self._blocks.cut_numbers

    def _locate(self, rows: npt.NDArray[Any]) -> tuple[Ints, Ints]:
        """(chunk, row in it) of rows numbered through the whole data."""
        chunks = np.searchsorted(self._ends, rows, side="right")
        return chunks, rows - self._begins[chunks]

    def _row(self, number: int, chunk: int, local: int, read: Read) -> Row | None:
        """A document, None if it is null, or a block."""
        if self._blocks is not None:
            return NumberRow(self._blocks.row(number, read))
        held = read(chunk)
        if not held.valid[local]:
            return None
        row = held.row(local)
        if SEQ_LENGTHS.name in row:
            lengths = row.pop(SEQ_LENGTHS.name).astype(np.int64)
            row |= {"position_ids": within(lengths)} if self._separate else {}
        return NumberRow(row)


class NumberDataset(Encoded, Dataset[Row]):
    """Rows by number: for a ``Trainer``, for samplers, for looking at.

    All of a row group of Parquet has to be read for one row. So each Parquet file is converted
    once, to an uncompressed Arrow file in the user's cache folder, which is mapped
    (:mod:`numtok_torch.data.arrow_cache`); ``NUMTOK_CACHE`` names the folder, and
    ``NUMTOK_CACHE=0`` converts nothing. Data that ``disk_bytes`` cannot hold belong into Arrow
    files without compression, which are mapped as they are, or into an
    :class:`IterableNumberDataset`, which reads row groups in order.

    Args:
        source: a file, a folder, a list of them, a ``RecordBatch`` or a ``Table``.
        columns: to read beside ``input_ids`` and ``number_index`` or ``number_mask``; None for all
            tensors. Texts such as ``number_text`` only come if named.
        tokenizer: a ``numtok.Tokenizer``, a ``numtok.hf.NumberTokenizer`` or a fingerprint: of the
            tokenizer that encoded the data; None for no check.
        nulls: what to do about null rows: ``"error"`` when asked for one, or ``"skip"`` them, after
            one pass over the data. Blocks ask for all.
        cache_bytes: of Arrow data that each process keeps in memory.
        disk_bytes: that converted files in the cache folder may take, those of other data included;
            0 converts none.
        block_size: lay the documents end to end and cut them into rows of so many tokens, but not
            inside numbers (:mod:`numtok_torch.data.blocks`), after one pass over the data. No token
            is lost. None: a row is a document.
        separator: an id, or a token of ``tokenizer`` such as ``"<|endoftext|>"``, put behind every
            document of a block; None for none.
        separate: give blocks and packed rows ``position_ids`` that begin at 0 with each document,
            by which the collator and the model keep documents
            apart: none sees the one before it. False: a row is one text.

    Raises:
        InputError: for files that cannot be read. SchemaError: for files that numtok did not write,
            that do not belong together, or that another tokenizer made.
    """

    def __init__(
        self,
        source: Any,
        columns: Sequence[str] | None = None,
        tokenizer: Any = None,
        nulls: str = "error",
        cache_bytes: int = CACHE_BYTES,
        *,
        disk_bytes: int = DISK_BYTES,
        block_size: int | None = None,
        separator: int | str | None = None,
        separate: bool = True,
    ) -> None:
        if nulls not in ("error", "skip"):
            raise SchemaError(f"nulls={nulls!r} is unknown; use 'error' or 'skip'")
        super().__init__(
            source,
            columns,
            tokenizer,
            cache_bytes=cache_bytes,
            disk_bytes=disk_bytes,
            block_size=block_size,
            separator=separator,
            separate=separate,
            skip_nulls=nulls == "skip",
        )
        self._valid: Ints | None = (
            self._find_valid(source) if nulls == "skip" and block_size is None else None
        )

    def _find_valid(self, source: Any) -> Ints:
        """int64[valid rows]: their numbers through the whole data; reads the smallest columns there
        are.
        """
        narrow = Storage(source, [], 0)
        valid = [narrow.read(chunk).valid for chunk in range(len(narrow.rows))]
        return np.flatnonzero(np.concatenate(valid)) if valid else np.empty(0, np.int64)

    def __len__(self) -> int:
        return self._total_rows if self._valid is None else len(self._valid)

    def __getitem__(self, index: int) -> Row:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Row]:
        """The rows at ``indices``, in their order; each chunk is read once."""
        asked = np.asarray(indices, np.int64)
        count = len(self)
        outside = (asked < -count) | (asked >= count)
        if outside.any():
            raise IndexError(f"row {int(asked[outside][0])} of {count}")
        asked = np.where(asked < 0, asked + count, asked)
        rows = asked if self._valid is None else self._valid[asked]
        chunks, local = self._locate(rows)
        order = np.argsort(chunks if self._blocks is None else rows, kind="stable")
        gathered: list[Row] = [{}] * len(asked)
        read = _read_once(self._storage.read)
        located = zip(
            order.tolist(),
            rows[order].tolist(),
            chunks[order].tolist(),
            local[order].tolist(),
            strict=True,
        )
        for place, number, chunk, within_it in located:
            row = self._row(number, chunk, within_it, read)
            if row is None:
                raise SchemaError(
                    f"row {number} is null: its document was; make the data set with nulls='skip'"
                )
            gathered[place] = row
        return gathered


def _read_once(read: Read) -> Read:
    """``read``, but a chunk that is asked for several times in a row is read, and its file looked
    at, the first time.
    """
    known = -1
    chunk: Chunk | None = None

    def again(number: int) -> Chunk:
        nonlocal known, chunk
        if chunk is None or number != known:
            known, chunk = number, read(number)
        return chunk

    return again
