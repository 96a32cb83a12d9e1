"""Encoded text as torch datasets: by number, and as a stream.

In: what numtok wrote: Parquet or Arrow IPC files, or a record batch in memory. Out: rows,
dictionaries of numpy arrays under the names of the file's columns, ready for
:class:`numtok_torch.data.collator.NumberCollator`; read-only views of mapped memory.

**Shape** of a row: ``input_ids`` int32 (tokens,), ``place_value`` int16 (tokens,), ``number_index``
int32 (numbers,), and per number ``number_value`` float64 (numbers,), ``number_bits`` uint8
(numbers, 32) or uint32 (numbers,), ``number_fourier`` float32 (numbers, f, 2) and so on, as in
FORMAT.md; the same for files in token layout. Rows of packed files, which are pieces of documents,
and blocks have ``position_ids`` int64 (tokens,) that begin at 0 with each document.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from torch.utils.data import Dataset, IterableDataset
from torch.utils.data._utils.collate import default_collate_fn_map

from numtok.errors import MissingDependencyError, SchemaError
from numtok.representations.columns import SEQ_LENGTHS
from numtok.tokenizer.packing import NumberTokens
from numtok.tokenizer.schema import read_metadata
from numtok_torch.data.packing import within
from numtok_torch.data.rows import stored_columns
from numtok_torch.data.storage import (
    NULLS,
    Chunk,
    Row,
    RowSelection,
    batches_of,
    checked,
    common_schema,
    find_files,
    selected_schema,
)
from numtok_torch.data.tokens import check_tokenizer, identity, token_id

OPEN_CHUNKS = 256  # whose views are kept, which take little memory


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
    """Describes encoded data: the attributes of :class:`~numtok_torch.NumberDataset` and
    :class:`~numtok_torch.IterableNumberDataset`.

    Attributes:
        schema: the schema of the rows, with its metadata. It is what ``embedding_from_schema`` and
            ``NumberCollator.from_schema`` take.
        metadata: the ``numtok`` metadata as a dict.
        fingerprint: that of the tokenizer that encoded the data.
        tokenizer_identity: what the metadata say of that tokenizer, its fingerprint among them.
    """

    schema: pa.Schema
    metadata: dict[str, Any]
    fingerprint: str
    tokenizer_identity: dict[str, Any]

    def _describe(self, schema: pa.Schema, tokenizer: Any) -> None:
        """Set the attributes. SchemaError for another tokenizer."""
        self.schema, self.metadata = schema, read_metadata(schema)
        self.fingerprint = self.metadata["tokenizer"]
        self.tokenizer_identity = identity(self.metadata)
        if tokenizer is not None:
            check_tokenizer(self.tokenizer_identity, tokenizer, "the data was encoded by")

    def _number_row(self, row: Row, separate: bool) -> NumberRow:
        """Return a row with ``position_ids`` in place of the lengths of its documents."""
        row = NumberRow(row)
        row.tokenizer_identity = self.tokenizer_identity
        if SEQ_LENGTHS.name in row:
            lengths = row.pop(SEQ_LENGTHS.name).astype(np.int64)
            if separate:
                row["position_ids"] = within(lengths)
        return row


class NumberDataset(Encoded, Dataset[Row]):
    """Rows of encoded files that are read in any order, as a ``Trainer`` or a sampler does.

    One row of Parquet takes reading its whole row group. So ``datasets`` converts the files once, to
    an uncompressed Arrow file in its cache, and maps that into memory. ``HF_DATASETS_CACHE`` names
    the folder. For data that are too large for that, :class:`IterableNumberDataset` reads row groups
    one after the other.

    Args:
        source: a file, a folder (searched for .parquet, .arrow, .feather and .ipc files, in the
            order of their paths), a list of these, or a ``RecordBatch`` or ``Table``, which stays in
            memory.
        columns: further columns to read, beside ``input_ids`` and the places of numbers; None for
            all tensors. Texts such as ``number_text`` come only if named.
        tokenizer: the ``numtok.Tokenizer`` or ``numtok.hf.NumberTokenizer`` that encoded the data,
            or its fingerprint; another is refused. None for no check.
        nulls: what to do about null rows, of documents that were null and are no rows for a model:
            ``"error"`` or ``"skip"`` them.
        block_size: join the documents and cut them into rows of so many tokens, but not inside
            numbers, as ``numtok encode --pack`` does. No token is lost. None: a row is a document.
        separator: an id, or a token of ``tokenizer`` such as ``"<|endoftext|>"``, put after every
            document of a block; None for none.
        separate: give blocks and packed rows ``position_ids``, by which the collator and the model
            keep documents apart: none sees the one before it. False: a row is one text.

    Raises:
        InputError: for files that cannot be read.
        SchemaError: for files that numtok did not write, that do not belong together, or that
            another tokenizer made; and for null rows.

    Examples:
        >>> import numtok
        >>> from numtok_torch import NumberDataset
        >>> batch = numtok.Tokenizer.from_pretrained().encode_batch(["3 and 4.5"])
        >>> NumberDataset(batch)[0]["number_value"]
        array([3. , 4.5])
    """

    def __init__(
        self,
        source: Any,
        columns: Sequence[str] | None = None,
        tokenizer: Any = None,
        nulls: str = "error",
        *,
        block_size: int | None = None,
        separator: int | str | None = None,
        separate: bool = True,
    ) -> None:
        if nulls not in NULLS:
            raise SchemaError(f"nulls={nulls!r} is unknown; use 'error' or 'skip'")
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        in_memory = isinstance(source, pa.Table)
        paths = [] if in_memory else find_files(source)
        schema = (
            selected_schema(source.schema, columns, "the data in memory")
            if in_memory
            else common_schema(paths, columns)
        )
        self._describe(schema, tokenizer)
        if block_size is not None:
            self._check_block_size(block_size)
        elif separator is not None:
            raise SchemaError(
                f"separator={separator!r} goes between the documents of a block; give"
                " block_size=... too"
            )
        self.block_size, self._separate = block_size, separate
        end = self._separator_id(separator, tokenizer)
        selection = RowSelection(schema, nulls, block_size, end)
        self._describe(selection.schema, None)
        self._row_schema = selection.row_schema
        if in_memory:
            rows = selection.rows(checked(source.select(schema.names)))
            #: a table in memory, or a mapped ``datasets.Dataset``, which is pickled by its path
            self._rows = pa.Table.from_batches(list(rows), selection.row_schema)
        else:
            options = {"nulls": nulls, "block_size": block_size, "separator": end}
            self._rows = _conversion().convert(paths, schema, **options)
        self._open()

    def _open(self) -> None:
        table = self._rows if isinstance(self._rows, pa.Table) else self._rows.data.table
        batches = batches_of(table, self._row_schema)
        self._ends = np.cumsum([batch.num_rows for batch in batches], dtype=np.int64)
        self._chunk = functools.lru_cache(OPEN_CHUNKS)(lambda at: Chunk.of(batches[at]))

    def __getstate__(self) -> dict[str, Any]:
        return {name: one for name, one in vars(self).items() if name != "_chunk"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: int) -> Row:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"row {index} of {count}")
        number = index % count
        at = int(self._ends.searchsorted(number, "right"))
        before = int(self._ends[at - 1]) if at else 0
        return self._number_row(self._chunk(at).row(number - before), self._separate)

    def _check_block_size(self, block_size: int) -> None:
        """Refuse a size below 1, rows that are packed already, and columns that cannot be cut."""
        if block_size < 1:
            raise SchemaError(f"block_size={block_size} must be positive")
        if self.metadata["pack"]:
            raise SchemaError(
                f"the rows are packed already, in {self.metadata['pack']['length']} tokens each;"
                " leave out block_size"
            )
        for name in self.schema.names:
            if name not in {*stored_columns(), "number_text"}:
                raise SchemaError(
                    f"column {name!r} has no value for each token or number, so it cannot be cut"
                    " into blocks; leave it out"
                )

    def _separator_id(self, separator: int | str | None, tokenizer: Any) -> int | None:
        if separator is None:
            return None
        if isinstance(separator, str) and (tokenizer is None or isinstance(tokenizer, str)):
            raise SchemaError(
                f"separator={separator!r} is known to the tokenizer only; give that too,"
                " tokenizer=..., or the id"
            )
        number = token_id(tokenizer, separator)
        if not 0 <= number < self.metadata.get("vocab_size", number + 1):
            raise SchemaError(
                f"separator={number} is no id of the tokenizer, which has"
                f" {self.metadata['vocab_size']}"
            )
        if number in NumberTokens.from_metadata(self.metadata).ids:
            raise SchemaError(
                f"separator={number} must be the id of a token, and of none that numbers are made of"
            )
        return number


class IterableNumberDataset(Encoded, IterableDataset[Row]):
    """Rows of encoded files that are read one after the other, for data of any size; null rows are
    left out. A ``datasets.IterableDataset`` reads them: its shards are the row groups of the files,
    which DataLoader workers share.

    Args:
        source, columns, tokenizer: as in :class:`NumberDataset`; files only.
        shuffle: the row groups, and the rows within a buffer of so many, in each epoch anew.
        seed: of the shuffling.
        buffer_size: rows that are shuffled together.
        rank, world_size: which share of the rows this process has
            (``datasets.distributed.split_dataset_by_node``). A ``Trainer`` shares rows among its
            processes by itself, batches of any width with ``TrainingArguments(...,
            accelerator_config={"dispatch_batches": False})``.
        separate: as in :class:`NumberDataset`, for packed files.

    Example:
        >>> import numtok
        >>> from numtok_torch import IterableNumberDataset
        >>> _ = numtok.encode_files("sample.jsonl", "sample.parquet")
        >>> next(iter(IterableNumberDataset("sample.parquet")))["number_value"][:3]
        array([ 1.82,  6.  , 15.  ])
    """

    def __init__(
        self,
        source: Any,
        columns: Sequence[str] | None = None,
        tokenizer: Any = None,
        *,
        shuffle: bool = False,
        seed: int = 0,
        buffer_size: int = 1000,
        rank: int = 0,
        world_size: int = 1,
        separate: bool = True,
    ) -> None:
        if not 0 <= rank < world_size:
            raise SchemaError(
                f"rank={rank} of world_size={world_size} is no process: ranks count from 0 to"
                " world_size - 1"
            )
        paths = find_files(source)
        schema = common_schema(paths, columns)
        self._describe(schema, tokenizer)
        self._separate = separate
        self._rows = _conversion().stream(paths, schema)
        if shuffle:
            self._rows = self._rows.shuffle(seed, buffer_size=buffer_size)
        if world_size > 1:
            from datasets.distributed import split_dataset_by_node

            self._rows = split_dataset_by_node(self._rows, rank, world_size)

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            yield self._number_row(row, self._separate)

    def set_epoch(self, epoch: int) -> None:
        """Shuffle the next iteration as that of an epoch, counted from 0; workers that are running
        hear of it.
        """
        self._rows.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return where the iteration stands; with workers, torchdata's ``StatefulDataLoader`` asks
        each of them. Rows that wait in the buffer of a shuffled stream are lost.
        """
        return dict(self._rows.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Begin the next iteration where :meth:`state_dict` was taken."""
        self._rows.load_state_dict(state)


def _conversion() -> Any:
    """Import the part that needs ``datasets``."""
    try:
        from numtok_torch.data import conversion
    except ImportError as error:
        raise MissingDependencyError(
            "files are read by datasets; install it with: pip install 'numtok[torch]'"
        ) from error
    return conversion
