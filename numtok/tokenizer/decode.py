"""Record batches and token ids back to text, and the numbers in them; the inverse of
:mod:`numtok.tokenizer.encoder`.

Byte-level tokenizers are decoded here, byte for byte; the others by ``tokenizers``, whose decoders
put spaces where they think they belong.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.cached import cached_property
from numtok.arrays.kernels import allocating_kernel
from numtok.arrays.text_rows import TextRows
from numtok.engines.tokenizers_engine import TokenizersEngine
from numtok.errors import InputError, NumtokError, SchemaError
from numtok.numbers.decimals import in_marks_of
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import NUM, Representation, SingleToken, SpelledOut, from_dict
from numtok.representations.columns import numbers_from_floats
from numtok.tokenizer import schema
from numtok.tokenizer.encoder import TextEngines
from numtok.tokenizer.layout import conform, to_number_layout
from numtok.tokenizer.token_texts import NumberSpaces, TextReader, contents_of, is_lossless
from numtok.tokenizer.vocabulary import NumberVocabulary, first_ids, number_stops, read_symbols

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


NO_PLACES = np.empty(0, np.int64)


class TokenBytes(NamedTuple):
    """The bytes of every token: token ``t`` is ``values[offsets[t]:offsets[t + 1]]``."""

    values: npt.NDArray[np.uint8]
    offsets: Ints


class TokenRows(NamedTuple):
    """Token ids of many documents: document ``r`` has ``ids[offsets[r] + before:offsets[r + 1] -
    after]`` beside its special tokens.
    """

    ids: Ids
    offsets: Ints
    before: int
    after: int


class NumberSpans(NamedTuple):
    """The tokens [positions, stops) of numbers, and whether a space goes before."""

    positions: Ints
    stops: Ints
    spaced: Mask


def token_bytes(config: dict[str, Any], symbols: Mapping[int, str] | None = None) -> TokenBytes:
    """Return the bytes of every token of a byte-level tokenizer; ids without a token are empty.
    Those of ``symbols`` have this text.
    """
    contents = contents_of(config) | {k: one.encode() for k, one in (symbols or {}).items()}
    by_id = [contents.get(id, b"") for id in range(max(contents) + 1)]
    offsets = memory.offsets_of(np.fromiter(map(len, by_id), np.int64, len(by_id)))
    return TokenBytes(np.frombuffer(b"".join(by_id), np.uint8), offsets)


class AsNumpy(Protocol):
    """A value that numpy converts to an array, such as a tensor."""

    def __array__(self) -> npt.NDArray[Any]: ...


TokenIds: TypeAlias = Iterable[int] | AsNumpy
Join: TypeAlias = Callable[[Sequence[str], Sequence[str]], str]  # texts, and numbers between them


def given_ids(ids: TokenIds) -> Ids:
    """Return int32[n] of token ids as a user gives them: a list, an array, a tensor; -1 for what is
    beyond 32 bits, which is no token. InputError for anything else.
    """
    try:
        array = np.asarray(ids if hasattr(ids, "__array__") else list(ids))
    except (TypeError, ValueError):
        array = np.empty(0, object)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu") or array.dtype == object:
        raise InputError(
            f"expected the token ids of one text, a list of integers, got {str(ids)[:60]}"
        )
    # NumPy 2.5 puts no -1 into unsigned ones; the largest of uint64 become negative
    array = array.astype(np.int64)
    return np.where((array < 0) | (array > np.iinfo(np.int32).max), -1, array).astype(np.int32)


def byte_level(
    table: TokenBytes, rows: TokenRows, spans: NumberSpans, surfaces: pa.LargeStringArray
) -> pa.LargeStringArray:
    """Decode byte-level ids to texts, with the surfaces of the numbers.

    Bytes that are not UTF-8, which only ids out of order can give, become U+FFFD.
    """
    numbers, ids = TextRows.of(surfaces), rows.ids
    size = len(table.offsets) - 1
    # one more, empty token: ids that are none, as a model may give
    table = table._replace(offsets=np.append(table.offsets, table.offsets[-1]))
    if len(ids) and (ids.max() >= size or ids.min() < 0):
        rows = rows._replace(ids=np.where((ids < 0) | (ids >= size), size, ids).astype(np.int32))
    out, out_offsets = _byte_level(table, rows, spans, TokenBytes(numbers.text, numbers.offsets))
    texts = pa.LargeStringArray.from_buffers(
        len(rows.offsets) - 1, pa.py_buffer(out_offsets), pa.py_buffer(out)
    )
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        texts = pa.array(
            [value.as_py().decode("utf-8", "replace") for value in texts.cast(pa.large_binary())],
            pa.large_string(),
        )
    return texts


def by_tokenizers(
    engine: TokenizersEngine,
    rows: TokenRows,
    spans: NumberSpans,
    surfaces: pa.LargeStringArray,
    join: Join,
) -> pa.LargeStringArray:
    """Decode any tokenizer's ids to texts: with stand-ins decoded, and numbers put in by ``join``."""
    texts = []
    stand_ins = np.where(spans.spaced, engine.tokens.spaced, engine.tokens.unspaced).tolist()
    ids, offsets, spoken, first = rows.ids, rows.offsets.tolist(), surfaces.to_pylist(), 0
    for begin, end in itertools.pairwise(offsets):
        last, at = first, begin + rows.before
        kept: list[int] = []
        while last < len(spans.positions) and spans.positions[last] < end:
            kept += [*ids[at : spans.positions[last]].tolist(), stand_ins[last]]
            at = int(spans.stops[last])
            last += 1
        kept += ids[at : max(at, end - rows.after)].tolist()
        # a model may give ids that are no token
        between = engine.texts_between([one for one in kept if one >= 0], last - first)
        texts.append(join(between, spoken[first:last]))
        first = last
    return pa.array(texts, pa.large_string())


def joined(texts: Sequence[str], numbers: Sequence[str]) -> str:
    """Return ``texts`` with a number between each two, and nothing else."""
    return "".join(text + number for text, number in zip(texts, [*numbers, ""], strict=True))


@allocating_kernel
def _byte_level(table, rows, spans, surfaces):  # type: ignore[no-untyped-def]
    """Return (bytes, offsets) of the texts. Two passes over the tokens: sizes, then bytes."""
    out_offsets = np.zeros(rows.offsets.size, np.int64)
    out = np.empty(0, np.uint8)
    for writing in range(2):
        number, filled = 0, np.int64(0)
        for row in range(rows.offsets.size - 1):
            at, end = rows.offsets[row] + rows.before, rows.offsets[row + 1] - rows.after
            while at < end:
                if number < spans.positions.size and spans.positions[number] == at:
                    if spans.spaced[number]:
                        if writing:
                            out[filled] = 0x20
                        filled += 1
                    source = surfaces.values
                    first, last = surfaces.offsets[number], surfaces.offsets[number + 1]
                    at = spans.stops[number]
                    number += 1
                else:
                    token, source = rows.ids[at], table.values
                    first, last = table.offsets[token], table.offsets[token + 1]
                    at += 1
                if writing:
                    for k in range(first, last):
                        out[filled + k - first] = source[k]
                filled += last - first
            out_offsets[row + 1] = filled
        if not writing:
            out = np.empty(filled, np.uint8)
    return out, out_offsets


class Decoder:
    """Reads ids back, with the grammar's decimal mark; of the ``engines``, the one of the complete
    tokenizer decodes what is not byte-level.

    Numbers that are tokens of the text are decoded as text is; where in ids they stand is read by
    the grammar (:class:`~numtok.tokenizer.token_texts.TextReader`).
    """

    def __init__(
        self,
        vocabulary: NumberVocabulary,
        representations: Sequence[Representation],
        grammar: Grammar,
        engines: TextEngines,
    ) -> None:
        self._config, self._spelling = vocabulary.config, vocabulary.spelling
        self._representations, self._grammar = tuple(representations), grammar
        self._engines = engines
        self._first_ids = first_ids(vocabulary.tokens, self._spelling)
        self._is_lossless = is_lossless(self._config)
        self._reader: TextReader | None = None
        self._symbols: dict[int, str] = {}
        first = self._representations[0]
        spelling = self._spelling
        if spelling is not None and spelling.reading is not None and isinstance(first, SpelledOut):
            written = spelling.ids.tolist(), first.token_strings_in(grammar)
            self._symbols = dict(zip(*written, strict=True))
            self._reader = TextReader(self._config, self._symbols, grammar)

    def batch(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the texts of a batch that this tokenizer encoded."""
        metadata = schema.read_metadata(batch.schema)
        batch = conform(batch)
        schema.check_rows(batch)
        batch = to_number_layout(batch)
        ids = memory.from_arrow(memory.flat(batch.column("input_ids"))[0])
        offsets, _, positions = schema.number_positions(batch)
        # a packed row is the text of its tokens
        before, after = metadata["frame"] if metadata["pack"] is None else ([], [])
        numbers = self._number_texts(batch, ids, positions)
        # with its numbers as written, a text is stored only where it is not what follows from them
        join = joined if "number_text" in batch.schema.names else self.join
        texts = self._text(ids, offsets, positions, numbers, (len(before), len(after)), join)
        return _restored(batch, texts)

    def ids(self, token_ids: TokenIds, values: Sequence[Any] | None) -> str:
        """Return the text of token ids, with the values of their ``[NUM]`` tokens in order."""
        ids = given_ids(token_ids)
        if self._reader is not None:
            return self._text_of_reading(ids, self._reader)
        positions = self._number_positions(ids)
        if self._spelling is not None:
            number_texts = in_marks_of(self._grammar, self.read_spelled(ids, positions))
        elif values is None:
            number_texts = pa.array([NUM] * len(positions), pa.large_string())
        elif not isinstance(values, Sized):
            raise InputError(
                "numbers are the values of the number tokens in order, such as [2.5], not"
                f" {type(values).__name__}"
            )
        elif len(values) != len(positions):
            raise SchemaError(
                f"the ids hold {len(positions)} number tokens, but {len(values)} values are given;"
                " give one value each"
            )
        else:
            number_texts = in_marks_of(self._grammar, canonical(values))
        return str(self._text(ids, np.array([0, len(ids)]), positions, number_texts)[0].as_py())

    def numbers_in(
        self, token_ids: TokenIds, values: Sequence[Any] | None
    ) -> list[tuple[int, int, str]]:
        """Return the numbers in ids that a model may have made: (first token, end, text) of each."""
        ids = given_ids(token_ids)
        if self._reader is not None:
            return self._reader.numbers(ids).spans()
        positions = self._number_positions(ids)
        if self._spelling is not None:
            stops = number_stops(ids, positions, self._spelling).tolist()
            spans = zip(positions.tolist(), stops, strict=True)
            read = ((at, stop, self._read_number(ids, at)) for at, stop in spans)
            return [(at, stop, text) for at, stop, text in read if text is not None]
        if values is None or not len(positions):
            return []
        if len(values) == len(ids):
            values = [values[position] for position in positions.tolist()]
        elif len(values) != len(positions):
            raise InputError(
                f"{len(values)} values for {len(ids)} ids with {len(positions)} numbers; give one"
                " per id, or one per number"
            )
        texts = in_marks_of(self._grammar, canonical(values)).to_pylist()
        return [(at, at + 1, text) for at, text in zip(positions.tolist(), texts, strict=True)]

    def read_spelled(self, ids: Ids, positions: Ints) -> pa.LargeStringArray:
        """Return the text of the spelled-out numbers that begin at the positions, in the marks of
        the default grammar; what is no number, as its symbols.
        """
        first = self._representations[0]
        if self._spelling is None or not isinstance(first, SpelledOut):
            raise InputError(
                f"{first.name} does not spell numbers out; give the values of the number tokens"
            )
        return first.decode(read_symbols(ids, positions, self._spelling))

    def apart(self, ids: Ids) -> list[tuple[int, int, str]] | None:
        """Return (first token, end, text) of ids that the source decodes to other text than theirs;
        None unless numbers are tokens of the text.
        """
        return None if self._reader is None else self._reader.apart(ids)

    def _text_of_reading(self, ids: Ids, reader: TextReader) -> str:
        """Return the text of ids whose numbers are tokens of the text."""
        offsets = np.array([0, len(ids)])
        if self._is_lossless:
            return str(self._text(ids, offsets, NO_PLACES, None)[0].as_py())
        apart, rows = reader.apart(ids), TokenRows(ids, offsets, 0, 0)
        positions, stops = (np.array([span[k] for span in apart], np.int64) for k in (0, 1))
        spans = NumberSpans(positions, stops, np.zeros(len(apart), np.bool_))
        texts = pa.array([text for _, _, text in apart], pa.large_string())
        return str(by_tokenizers(self._engines.whole, rows, spans, texts, self.join)[0].as_py())

    def _number_positions(self, ids: Ids) -> Ints:
        return np.flatnonzero(np.isin(ids, np.concatenate(self._first_ids)))

    def _read_number(self, ids: Ids, position: int) -> str | None:
        try:
            texts = in_marks_of(self._grammar, self.read_spelled(ids, np.array([position])))
        except NumtokError:
            return None
        return texts[0].as_py() or None

    def _number_texts(
        self, batch: pa.RecordBatch, ids: Ids, positions: Ints
    ) -> pa.LargeStringArray | None:
        """Return the text of every number of a batch; None if the numbers are ordinary tokens."""
        if self._representations[0].stays_text:
            return None
        if "number_text" in batch.schema.names:
            return memory.flat(batch.column("number_text"))[0].cast(pa.large_string())
        if self._reader is not None and self._is_lossless:
            return None
        if self._spelling is not None:
            return in_marks_of(self._grammar, self.read_spelled(ids, positions))
        return in_marks_of(self._grammar, self._texts_of_values(batch))

    def _texts_of_values(self, batch: pa.RecordBatch) -> pa.LargeStringArray:
        """Return the text of single-token numbers: the digits of a representation that has all of
        them, where they are those of ``number_value``; else that; where it is infinite, what the
        first representation holds.
        """
        import pyarrow.compute as pc

        # as the batch has them, which may be compact where this tokenizer's are dense
        described = schema.read_metadata(batch.schema)["numbers"]
        numbers = [one for one in map(from_dict, described) if isinstance(one, SingleToken)]

        def column(name: str) -> pa.Array:
            return memory.flat(schema.column(batch, name))[0]

        values = memory.from_arrow(column("number_value"))
        finite = np.isfinite(values)
        text = numbers_from_floats(np.where(finite, values, 0.0), "number_value").format()
        exact = [representation for representation in numbers if representation.exact]
        for representation in [*exact, *numbers[:1]]:
            if not representation.exact and finite.all():
                break
            decoded = representation.decode(
                {name: column(name) for name in representation.columns()}
            )
            better = decoded.to_float64() == values if representation.exact else ~finite
            text = pc.if_else(pa.array(better), decoded.format(), text)
        return text

    def _text(
        self,
        ids: Ids,
        offsets: Ints,
        positions: Ints,
        number_texts: pa.LargeStringArray | None,
        frame: tuple[int, int] = (0, 0),
        join: Join | None = None,
    ) -> pa.LargeStringArray:
        """Decode token ids to text, with numbers at their positions, without the special tokens
        around each row.
        """
        if number_texts is None:
            positions, number_texts = NO_PLACES, pa.nulls(0, pa.large_string())
        stops = number_stops(ids, positions, self._spelling)
        spaced = np.isin(ids[positions], self._first_ids[1])
        rows, spans = TokenRows(ids, offsets, *frame), NumberSpans(positions, stops, spaced)
        if self._is_lossless:
            return byte_level(self._token_bytes, rows, spans, number_texts)
        return by_tokenizers(self._engines.whole, rows, spans, number_texts, join or self.join)

    def join(self, texts: Sequence[str], numbers: Sequence[str]) -> str:
        """Return texts with a number between each two, and the spaces before numbers that the
        tokenizer drops.
        """
        if self._spaces is not None:
            return self._spaces.join(texts, numbers)
        return joined(texts, numbers)

    @cached_property
    def _spaces(self) -> NumberSpaces | None:
        """None where tokens tell whether a space stands before a number."""
        if self._is_lossless or not self._engines.whole.drops_spaces:
            return None
        carries_sign = all(one.carries_sign for one in self._representations)
        return NumberSpaces(self._grammar, carries_sign)

    @cached_property
    def _token_bytes(self) -> TokenBytes:
        return token_bytes(self._config, self._symbols)


def canonical(values: Sequence[Any]) -> pa.LargeStringArray:
    """Return values given as ``float``, ``int``, ``Decimal`` or ``str`` as text; each float in the
    fewest digits that read back as the same float, whatever stands beside it: -2.0 is ``-2``.
    """
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    floats = [value if isinstance(value, float) else 0.0 for value in plain]
    shortest = numbers_from_floats(np.array(floats, np.float64), "number_value").format()
    if all(isinstance(value, float) for value in plain):
        return shortest
    pairs = zip(plain, shortest.to_pylist(), strict=True)
    return Numbers.parse(
        [one if isinstance(value, float) else value for value, one in pairs]
    ).format()


def _restored(batch: pa.RecordBatch, texts: pa.LargeStringArray) -> pa.Array:
    """Make null rows null again, and take what ids do not give back from the column ``text``."""
    import pyarrow.compute as pc

    if batch.column("input_ids").null_count:
        texts = pc.if_else(batch.column("input_ids").is_valid(), texts, pa.scalar(None, texts.type))
    if "text" in batch.schema.names:
        texts = pc.coalesce(batch.column("text").cast(texts.type), texts)
    return texts.cast(pa.string()) if texts.nbytes < schema.LIST_LIMIT else texts
