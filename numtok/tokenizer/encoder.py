"""Encode texts into a record batch with one row per document (``FORMAT.md``):
``Encoder._encode_rows`` is the whole way, each line one step of it. The inverse is
:mod:`numtok.tokenizer.decode`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import multiprocessing
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.cached import cached_property
from numtok.arrays.text_rows import TextRows
from numtok.engines.choose import make_engine
from numtok.engines.engine import Encoded, Engine, NumtokTokens
from numtok.engines.tokenizers_engine import TokenizersEngine
from numtok.errors import InputError, NumtokError
from numtok.numbers.numbers import Numbers
from numtok.representations import Representation
from numtok.tokenizer import schema
from numtok.tokenizer.number_selection import EncodeReport, NumberSelector
from numtok.tokenizer.vocabulary import NumberTokensInText, NumberVocabulary, symbol_columns

ColumnValues: TypeAlias = dict[str, Any]  # by column name; flat, of all rows
Reported: TypeAlias = tuple[pa.RecordBatch, EncodeReport]
LEAST = 1 << 16  # bytes of text in a part; for less, a thread is not worth while
_process = os.getpid()


class Encoder:
    """Encode texts with their numbers: all of :meth:`numtok.Tokenizer.encode_batch`."""

    def __init__(
        self,
        representations: Sequence[Representation],
        selector: NumberSelector,
        vocabulary: NumberVocabulary,
        engines: TextEngines,
        described: Mapping[str, Any],  # the schema's metadata about the tokenizer
        decode: Callable[[pa.RecordBatch], pa.Array],
    ) -> None:
        self._representations, self._selector = representations, selector
        self._vocabulary, self._engines = vocabulary, engines
        self._described, self._decode = described, decode
        self._schemas: dict[tuple[bool, bool, bool], pa.Schema] = {}
        columns = schema.columns_of(representations, keep_text=False).values()
        self.per_token = tuple(column.name for column in columns if column.per == "token")

    def encode(
        self,
        rows: TextRows,
        threads: int | None = 1,
        keep_text: bool = False,
        add_special_tokens: bool = False,
        parse_special: bool = False,
    ) -> Reported:
        """Return the batch of the rows, made by several threads, and what became of their numbers.
        An error names the row among all rows.
        """
        options = keep_text, add_special_tokens, parse_special
        parts = min(thread_count(threads), len(rows), rows.nbytes // LEAST)
        if parts < 2:
            return self._encode_rows(rows, *options)
        cuts = rows.offsets[0] + np.arange(1, parts) * (rows.nbytes / parts)
        bounds = sorted({0, *np.searchsorted(rows.offsets, cuts).tolist(), len(rows)})
        row_parts = [rows.part(first, last) for first, last in itertools.pairwise(bounds)]
        pool = _pool(os.getpid(), len(row_parts))
        try:
            encoded = list(pool.map(lambda part: self._encode_rows(part, *options), row_parts))
        except NumtokError:
            return self._encode_rows(rows, *options)  # names the place among all of the rows
        report = sum((one for _, one in encoded[1:]), encoded[0][1])
        # lists with wider offsets, which only the whole can know
        if max(report.tokens, rows.nbytes) > schema.LIST_LIMIT:
            return self._encode_rows(rows, *options)
        return pa.concat_batches([batch for batch, _ in encoded]), report

    def _encode_rows(
        self, rows: TextRows, keep_text: bool, add_special_tokens: bool, parse_special: bool
    ) -> Reported:
        """Return the batch of the rows, made by this thread, and what became of their numbers."""
        numbers, report, _ = self._selector.select(rows, parse_special)
        in_text = self._vocabulary.encode(numbers, self._representations)
        encoded, columns = self._encode_text(numbers, in_text, parse_special)
        if add_special_tokens:
            encoded, columns = self._add_special_tokens(numbers, encoded, columns)
        report.tokens = len(encoded.ids)
        return self._build_batch(numbers, encoded, columns, keep_text, add_special_tokens), report

    def _encode_text(
        self, numbers: Numbers, in_text: NumberTokensInText, parse_special: bool
    ) -> tuple[Encoded, ColumnValues]:
        """Return the ids of the rows with the numbers in them, and all columns of the
        representations.
        """
        engine, first = self._engines.between_numbers(parse_special), self._representations[0]
        encoded = engine.encode(numbers.rows, in_text.slots)
        if first.stays_text:
            return encoded._replace(positions=engine.first_tokens(encoded, numbers)), {}
        places = encoded.positions, len(encoded.ids)
        return encoded, in_text.columns | symbol_columns(first, in_text.spelled, *places)

    def _add_special_tokens(
        self, numbers: Numbers, encoded: Encoded, columns: ColumnValues
    ) -> tuple[Encoded, ColumnValues]:
        """Return both with the special tokens of the source before and after each valid document;
        columns with one value per token have 0 there.
        """
        prefix, suffix = self._engines.prefix_and_suffix
        shift = memory.offsets_of(numbers.rows.valid * (len(prefix) + len(suffix)))
        offsets = encoded.offsets + shift
        ids = np.empty(offsets[-1], np.int32)
        moved = np.repeat(shift[:-1] + len(prefix), np.diff(encoded.offsets))
        positions_of_ids = np.arange(len(encoded.ids)) + moved
        ids[positions_of_ids] = encoded.ids
        starts, stops = (edges[numbers.rows.valid, None] for edges in (offsets[:-1], offsets[1:]))
        ids[starts + np.arange(len(prefix))] = prefix
        ids[stops + np.arange(-len(suffix), 0)] = suffix
        widened = dict(columns)
        for name in set(self.per_token) & set(columns):
            widened[name] = np.zeros(len(ids), columns[name].dtype)
            widened[name][positions_of_ids] = columns[name]
        positions = encoded.positions + shift[numbers.document] + len(prefix)
        return encoded._replace(ids=ids, offsets=offsets, positions=positions), widened

    def _build_batch(
        self,
        numbers: Numbers,
        encoded: Encoded,
        columns: ColumnValues,
        keep_text: bool,
        add_special_tokens: bool,
    ) -> pa.RecordBatch:
        """Return the record batch, with the texts that ids and numbers do not give back, because
        the source tokenizer normalises, if ``keep_text``.
        """
        rows = numbers.rows
        largest = max(len(encoded.ids), rows.nbytes if keep_text else 0)
        described = self.schema(keep_text, add_special_tokens, largest > schema.LIST_LIMIT)
        index = (encoded.positions - encoded.offsets[numbers.document]).astype(np.int32)
        always = {"input_ids": encoded.ids, "number_index": index}
        columns = {**always, "number_value": numbers.to_float64(), **columns}
        if keep_text:
            columns["number_text"] = numbers.text().cast(pa.string())
        per_number, arrays = numbers.per_document(), []
        without_text = described.remove(described.names.index("text")) if keep_text else described
        for field in without_text:
            offsets = encoded.offsets if field.name in self.per_token else per_number
            values = columns[field.name]
            arrays.append(memory.list_array(values, offsets, field.type, rows.valid))
        batch = pa.RecordBatch.from_arrays(arrays, schema=without_text)
        if not keep_text:
            return batch
        import pyarrow.compute as pc

        field, texts = described.field("text"), rows.array.cast(pa.large_string())
        # null where there is no text, and so is the result
        same = pc.equal(self._decode(batch).cast(pa.large_string()), texts)
        others = pc.if_else(same, pa.nulls(len(texts), pa.large_string()), texts)
        return batch.append_column(field, others.cast(field.type))

    def schema(
        self, keep_text: bool = False, add_special_tokens: bool = False, large: bool = False
    ) -> pa.Schema:
        """Return the schema of the batches; ``large``: of lists beyond 2**31 values."""
        options = (keep_text, add_special_tokens, large)
        if options not in self._schemas:
            around = list(self._engines.prefix_and_suffix) if add_special_tokens else [[], []]
            metadata = {**self._described, "frame": around}
            built = schema.build_schema(self._representations, keep_text, metadata, large)
            self._schemas[options] = built
        return self._schemas[options]


class Encoding:
    """An encoded text: a record batch of one row.

    ``encoding["number_scaled"]`` is that column as numpy, ``input_ids`` and the like are
    attributes.

    Example:
        >>> import numtok
        >>> encoding = numtok.Tokenizer.from_pretrained(numbers="xval").encode("from 5 to 10")
        >>> encoding
        Encoding(4 tokens, 2 numbers)
        >>> encoding.number_value.tolist()
        [5.0, 10.0]
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        values, _ = memory.flat(schema.column(self.batch, name))
        if isinstance(values, pa.ExtensionArray):
            return np.asarray(values.to_numpy_ndarray())
        return memory.from_arrow(values)

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        # copy and pickle ask for such before there is a batch
        if name.startswith("_") or name == "batch":
            raise AttributeError(name)
        if name not in self.batch.schema.names:
            raise AttributeError(
                f"Encoding has no {name!r}; its columns are {', '.join(self.batch.schema.names)}"
            )
        return self[name]

    def __len__(self) -> int:
        return len(self["input_ids"])

    def __repr__(self) -> str:
        return f"Encoding({len(self)} tokens, {len(self['number_index'])} numbers)"


class TextEngines:
    """The engines of a tokenizer: one that reads special tokens in the text as ordinary text, one
    that parses them, and the complete tokenizer with its number tokens. Each is created on first
    use.
    """

    def __init__(
        self,
        config: dict[str, Any],
        tokens: NumtokTokens,
        choice: str,
        given_warnings: Collection[str] = (),
    ) -> None:
        self._config, self._tokens, self._choice = config, tokens, choice
        self._given_warnings = set(given_warnings)
        self._by_parsing: dict[bool, Engine] = {}  # by whether it parses special tokens

    def __reduce__(self) -> Any:  # some engines cannot be pickled
        return TextEngines, (self._config, self._tokens, self._choice, self._given_warnings)

    def between_numbers(self, parse_special: bool) -> Engine:
        """Return the engine for the text between numbers; it parses special tokens in the text if
        asked to.
        """
        if parse_special not in self._by_parsing:
            options = self._config, self._tokens, self._choice, parse_special, self._given_warnings
            self._by_parsing[parse_special] = make_engine(*options)
        return self._by_parsing[parse_special]

    @cached_property
    def whole(self) -> TokenizersEngine:
        """The complete tokenizer, with all number tokens."""
        return TokenizersEngine(self._config, dataclasses.replace(self._tokens, reserved=()))

    @cached_property
    def prefix_and_suffix(self) -> tuple[list[int], list[int]]:
        """Ids of the special tokens before and after a text."""
        return self.whole.special_prefix_and_suffix()


def cores() -> int:
    """Return the number of processors that this process may use. In a worker of
    :mod:`multiprocessing` and in a fork it is 1, as the other workers use the rest.
    """
    if os.getpid() != _process or multiprocessing.parent_process() is not None:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: Any) -> int:
    """Return the number of threads; ``None`` stands for as many as there are cores. InputError for
    anything else but a positive integer.
    """
    if threads is None:
        return cores()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InputError(
            f"threads={threads!r} is not a positive integer; give None for as many as there are"
            " cores"
        )
    return threads


@functools.lru_cache(maxsize=1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return threads that stay, with the memory they have touched; a fork has none of its parent's."""
    return ThreadPoolExecutor(threads, f"numtok-encode-{process}")
