"""Numbers and token ids to a record batch with one row per document (``FORMAT.md``), in one thread
or several; the inverse is :mod:`numtok.tokenizer.decode`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import multiprocessing
import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.arrays.text_rows import TextRows
from numtok.engines.choose import make_engine
from numtok.engines.engine import Encoded, Engine, NumtokTokens, Slots
from numtok.engines.tokenizers_engine import TokenizersEngine
from numtok.errors import InputError, NumtokError
from numtok.numbers.numbers import Numbers
from numtok.representations import Representation, SingleToken, Spelled, SpelledOut
from numtok.tokenizer import schema
from numtok.tokenizer.number_selection import EncodeReport
from numtok.tokenizer.vocabulary import Spelling, symbol_stream, token_ids

Columns = dict[str, Any]
Reported: TypeAlias = tuple[pa.RecordBatch, EncodeReport]
LEAST = 1 << 16  # bytes of text in a part; for less, a thread is not worth while
_process = os.getpid()


class Encoding:
    """An encoded text: a record batch of one row.

    ``encoding["number_scaled"]`` is that column as numpy, ``input_ids`` and the like are
    attributes.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        values, _ = schema.flat(schema.column(self.batch, name))
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

    def __reduce__(self) -> Any:  # some engines cannot be pickled
        return TextEngines, (self._config, self._tokens, self._choice, self._given_warnings)

    def between(self, parse_special: bool) -> Engine:
        """Return the engine for the text between numbers; it parses special tokens in the text if
        asked to.
        """
        return self._parsing if parse_special else self._plain

    @functools.cached_property
    def _plain(self) -> Engine:
        return self._make(parse_special=False)

    @functools.cached_property
    def _parsing(self) -> Engine:
        return self._make(parse_special=True)

    def _make(self, parse_special: bool) -> Engine:
        given = self._config, self._tokens, self._choice, parse_special, self._given_warnings
        return make_engine(*given)

    @functools.cached_property
    def whole(self) -> TokenizersEngine:
        """The complete tokenizer, with all number tokens."""
        return TokenizersEngine(self._config, dataclasses.replace(self._tokens, reserved=()))

    @functools.cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """Ids of the special tokens before and after a text."""
        return self.whole.special_prefix_and_suffix()


class NumberTokensInText(NamedTuple):
    """Tokens and column values of n numbers."""

    columns: Columns  # one value per number each
    slots: Slots  # the places in the text, and the tokens that are put there
    spelled: Spelled | None  # the symbols, if numbers are spelled out


def no_slots(numbers: Numbers) -> Slots:
    """Return slots that leave all numbers as text: their documents are encoded as they are."""
    return Slots.none(len(numbers.rows))


def number_tokens(
    numbers: Numbers,
    representations: Sequence[Representation],
    spelling: Spelling | None,
    tokens: NumtokTokens,
) -> NumberTokensInText:
    """Return the tokens and the column values of numbers, in each of the representations."""
    first = representations[0]
    if first.stays_text:
        return NumberTokensInText({}, no_slots(numbers), None)
    if spelling is not None and isinstance(first, SpelledOut):
        spelled = first.encode(numbers)
        plain, spaced, offsets = token_ids(spelled, spelling)
        return NumberTokensInText({}, Slots.of(numbers, plain, spaced, offsets), spelled)
    columns: Columns = {}
    for representation in representations:
        if isinstance(representation, SingleToken):
            columns |= representation.encode(numbers)
    count = len(numbers)
    plain, spaced = (memory.full(count, one, np.int32) for one in (tokens.plain, tokens.spaced))
    slots = Slots.of(numbers, plain, spaced, np.arange(count + 1))
    return NumberTokensInText(columns, slots, None)


def encode_between(
    engine: Engine, numbers: Numbers, in_text: NumberTokensInText, first: Representation
) -> tuple[Encoded, Columns]:
    """Encode the text between numbers: return (ids of the documents with the numbers in them, all
    columns of the representations).
    """
    encoded = engine.encode(numbers.rows, in_text.slots)
    if first.stays_text:
        return encoded._replace(positions=engine.first_tokens(encoded, numbers)), {}
    stream = symbol_stream(first, in_text.spelled, encoded.positions, len(encoded.ids))
    return encoded, in_text.columns | ({} if stream is None else {stream[0]: stream[1]})


def add_frame(
    encoded: Encoded,
    columns: Columns,
    numbers: Numbers,
    frame: tuple[list[int], list[int]],
    per_token: Collection[str],
) -> tuple[Encoded, Columns]:
    """Add the special tokens of ``frame`` before and after each valid document; 0 there in the
    columns with one value per token.
    """
    before, after = frame
    shift = memory.offsets_of(numbers.rows.valid * (len(before) + len(after)))
    offsets = encoded.offsets + shift
    ids = np.empty(offsets[-1], np.int32)
    moved = np.repeat(shift[:-1] + len(before), np.diff(encoded.offsets))
    places = np.arange(len(encoded.ids)) + moved
    ids[places] = encoded.ids
    for row in np.flatnonzero(numbers.rows.valid):
        ids[offsets[row] : offsets[row] + len(before)] = before
        ids[offsets[row + 1] - len(after) : offsets[row + 1]] = after
    widened = dict(columns)
    for name in set(per_token) & set(columns):
        widened[name] = np.zeros(len(ids), columns[name].dtype)
        widened[name][places] = columns[name]
    positions = encoded.positions + shift[numbers.document] + len(before)
    return encoded._replace(ids=ids, offsets=offsets, positions=positions), widened


def assemble(
    numbers: Numbers,
    encoded: Encoded,
    columns: Columns,
    described: pa.Schema,
    per_token: Collection[str],
) -> pa.RecordBatch:
    """Build the record batch of a schema, without its column ``text``."""
    if "text" in described.names:
        described = described.remove(described.get_field_index("text"))
    index = memory.empty(len(numbers), np.int32)
    _positions_in_document(encoded.positions, encoded.offsets, numbers.document, index)
    always = {"input_ids": encoded.ids, "number_index": index}
    columns = {**always, "number_value": numbers.to_float64(), **columns}
    if "number_text" in described.names:
        columns["number_text"] = numbers.text().cast(pa.string())
    per_document, arrays = numbers.per_document(), []
    for field in described:
        offsets = encoded.offsets if field.name in per_token else per_document
        values = columns[field.name]
        arrays.append(schema.list_array(values, offsets, field.type, numbers.rows.valid))
    return pa.RecordBatch.from_arrays(arrays, schema=described)


def with_text(
    batch: pa.RecordBatch, texts: pa.Array, decoded: pa.Array, field: pa.Field
) -> pa.RecordBatch:
    """Add the texts that ids and number surfaces do not give back, because the source tokenizer
    normalises; null for the others.
    """
    import pyarrow.compute as pc

    texts = texts.cast(pa.large_string())
    # null where there is no text, and so is the result
    same = pc.equal(decoded.cast(pa.large_string()), texts)
    return batch.append_column(
        field, pc.if_else(same, pa.nulls(len(texts), pa.large_string()), texts).cast(field.type)
    )


@kernel
def _positions_in_document(positions, offsets, document, out):  # type: ignore[no-untyped-def]
    for i in range(positions.size):
        out[i] = positions[i] - offsets[document[i]]


def cores() -> int:
    """Return the number of processors that this process may use. In a worker of
    :mod:`multiprocessing` and in a fork it is 1, as the other workers use the rest.
    """
    if os.getpid() != _process or multiprocessing.parent_process() is not None:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checked(threads: Any) -> int:
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


def encode_parts(encode: Callable[[TextRows], Reported], rows: TextRows, threads: int) -> Reported:
    """Return ``encode(rows)``, computed by several threads. An error names the row among all rows."""
    parts = min(threads, len(rows), rows.nbytes // LEAST)
    if parts < 2:
        return encode(rows)
    cuts = rows.offsets[0] + np.arange(1, parts) * (rows.nbytes / parts)
    bounds = sorted({0, *np.searchsorted(rows.offsets, cuts).tolist(), len(rows)})
    pieces = [rows.part(first, last) for first, last in itertools.pairwise(bounds)]
    try:
        encoded = list(_pool(os.getpid(), len(pieces)).map(encode, pieces))
    except NumtokError:
        return encode(rows)  # names the place among all of the rows
    report = sum((one for _, one in encoded[1:]), encoded[0][1])
    # lists with wider offsets, which only the whole can know
    if max(report.tokens, rows.nbytes) > schema.LIST_LIMIT:
        return encode(rows)
    return pa.concat_batches([batch for batch, _ in encoded]), report
