"""Tokenizer: text to token ids and number tensors, and back.

In: texts. Out: an Arrow record batch with one row per text (``FORMAT.md``). ``decode_batch`` is the inverse of ``encode_batch``: byte for byte
with ``keep_text=True``, else the same text with its numbers in canonical form, as far as the representation holds them.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.arrays.text_rows import TextRows
from numtok.engines.choose import Encoded, Engine, NumberTokens, Slots, TokenizersEngine, first_tokens, is_byte_level, make_engine
from numtok.engines.number_tokens import OWN_SYMBOL, add_number_tokens, own_tokens, vocabulary_of
from numtok.engines.protected_digits import DigitTokens
from numtok.engines.tokenizer_json import essential, fingerprint, load_source
from numtok.errors import InputError, NumtokError, OutputError, RepresentationError, SchemaError, TokenizerError
from numtok.files import write_file
from numtok.numbers.grammar import Grammar, check_grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan
from numtok.representations import (
    END_NUM,
    NUM,
    Representation,
    SingleToken,
    Spelled,
    SpelledOut,
    Subword,
    XVal,
    from_dict,
    representations_of,
)
from numtok.representations.base import numbers_from_floats
from numtok.tokenizer import detokenize as decode
from numtok.tokenizer import schema, stored
from numtok.tokenizer.detokenize import TokenBytes
from numtok.tokenizer.metadata import FORMAT_VERSION
from numtok.tokenizer.settings import LEADING_SPACE, SETTINGS_FILE, read_settings


@dataclass
class EncodeReport:
    """What became of the numbers; reports add up with ``+``.

    Attributes:
        documents, bytes, tokens: of the input and output.
        numbers: found by the grammar.
        left_as_text: numbers that stay ordinary text, by the representation that cannot hold them.
        clipped: numbers replaced by the nearest that the representation holds, by representation.
        in_added_tokens: digits inside the tokenizer's own added tokens, which are not numbers.
        vanishing: numbers so near to zero after scaling that a model can hardly tell, by representation.
    """

    documents: int = 0
    bytes: int = 0
    tokens: int = 0
    numbers: int = 0
    left_as_text: dict[str, int] = field(default_factory=dict)
    clipped: dict[str, int] = field(default_factory=dict)
    in_added_tokens: int = 0
    vanishing: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: EncodeReport) -> EncodeReport:
        def add(a: Any, b: Any) -> Any:
            return {key: a.get(key, 0) + b.get(key, 0) for key in a | b} if isinstance(a, dict) else a + b

        return EncodeReport(**{one.name: add(getattr(self, one.name), getattr(other, one.name)) for one in dataclasses.fields(self)})


class Encoding:
    """One encoded text: a record batch of one row. ``encoding["number_scaled"]`` is that column as numpy, ``input_ids`` and the like are attributes."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        values, _ = schema.flat(schema.column(self.batch, name))
        if isinstance(values, pa.ExtensionArray):
            return np.asarray(values.to_numpy_ndarray())
        return np.asarray(values.to_numpy(zero_copy_only=False))

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if name.startswith("_") or name == "batch":  # copy and pickle ask for such before there is a batch
            raise AttributeError(name)
        if name not in self.batch.schema.names:
            raise AttributeError(f"Encoding has no {name!r}; its columns are {', '.join(self.batch.schema.names)}")
        return self[name]

    def __len__(self) -> int:
        return len(self["input_ids"])

    def __repr__(self) -> str:
        return f"Encoding({len(self)} tokens, {len(self['number_index'])} numbers)"


class Tokenizer:
    """A subword tokenizer that knows numbers. Make one with :meth:`from_pretrained`.

    Attributes:
        numbers: the representations. grammar: what counts as a number.
        config: the source's tokenizer.json with the number tokens added, as a dict.
        tokens: the id of every token that numtok uses for numbers.
        own_tokens: the id of every added token that is numtok's, in use or not: in a text they are not tokens.
        fingerprint: equal for tokenizers that give equal ids.
    """

    def __init__(
        self,
        config: dict[str, Any],
        numbers: Sequence[Representation | str] | Representation | str,
        grammar: Grammar | None = None,
        engine: str = "auto",
        leading_space: str = "auto",
        own: Collection[str] = (),
        engine_later: bool = False,
    ) -> None:
        chosen = representations_of(numbers)
        if leading_space not in LEADING_SPACE:
            raise TokenizerError(f"leading_space={leading_space!r} is unknown; use 'auto' or 'separate'")
        self.numbers, self.grammar, self.leading_space = chosen, check_grammar(grammar), leading_space
        two_forms = leading_space == "auto" and is_byte_level(config)
        self.config, self.tokens = add_number_tokens(config, self.numbers, two_forms)
        self.own_tokens = own_tokens(self.config, self.tokens, own)
        plain, spaced = (int(ids[0]) if len(ids) else -1 for ids in self._first_ids)
        self._number_tokens = NumberTokens(
            plain, spaced, tuple(number for number in self.own_tokens.values() if number not in (plain, spaced))
        )
        self._engine_choice = engine
        self._schemas: dict[tuple[bool, bool, bool], pa.Schema] = {}
        if not engine_later:
            self.engine  # a tokenizer that cannot be used fails here, not at the first text  # noqa: B018

    @classmethod
    def from_pretrained(
        cls,
        source: Any = None,
        numbers: Sequence[Representation | str] | Representation | str | None = None,
        grammar: Grammar | None = None,
        engine: str = "auto",
        leading_space: str | None = None,
    ) -> Tokenizer:
        """Put numbers into a tokenizer, or load one that :meth:`save_pretrained` wrote.

        Args:
            source: a tokenizer.json, a folder, a hub id, a ``tokenizers.Tokenizer``, a transformers tokenizer; ``None`` for the small default
                tokenizer inside the package.
            numbers: representations, ``[XVal()]`` if not given, or their names, ``"xval,fone:6,4"``; several that share ``[NUM]`` can be combined.
            grammar: what counts as a number.
            engine: ``"gigatoken"``, ``"tokenizers"`` (same ids, slower), or ``"auto"``, the first that can be used.
            leading_space: ``"auto"``, two forms ``[NUM]`` and `` [NUM]`` for byte-level BPE and one for others, or ``"separate"``, always one.

        Options that are not given are those the folder was saved with.

        Raises:
            TokenizerError: if the source cannot be found, read or used.
        """
        saved = read_settings(source)
        if numbers is None:
            numbers = [from_dict(options) for options in saved["numbers"]] if saved else [XVal()]
        if grammar is None:
            grammar = Grammar.from_dict(saved["grammar"]) if saved else Grammar()
        if leading_space is None:
            leading_space = str(saved["leading_space"]) if saved else "auto"
        config, own = load_source(source), saved.get("tokens", ()) if saved else ()
        try:
            return cls(config, numbers, grammar, engine, leading_space, own)
        except TokenizerError as error:
            raise (TokenizerError(f"{source}: {error}") if isinstance(source, str | Path) else error) from error

    def with_options(self, numbers: Sequence[Representation]) -> Tokenizer:
        """The same with other options of the same representations, such as a fitted scale; the engine is shared, as the tokens are the same.

        Raises:
            TokenizerError: if these need other tokens.
        """
        same = [(type(one), one.tokens, one.carries_sign) for one in numbers]
        if same != [(type(one), one.tokens, one.carries_sign) for one in self.numbers] or not isinstance(numbers[0], SingleToken):
            raise TokenizerError("these representations need other tokens; make the tokenizer anew with from_pretrained")
        made = copy.copy(self)
        made.__dict__.update({name: self.__dict__[name] for name in ("engine", "_special_engine") if name in self.__dict__})
        made.numbers, made._schemas = tuple(numbers), {}
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made on demand: the engines, some of which cannot be pickled."""
        made = {name for name, value in vars(type(self)).items() if isinstance(value, functools.cached_property)}
        return {name: value for name, value in vars(self).items() if name not in made}

    def save_pretrained(self, folder: str | Path) -> None:
        """Write ``tokenizer.json``, which also loads in ``tokenizers`` and transformers, and ``numtok.json`` to a folder."""
        if not isinstance(folder, str | Path):
            raise OutputError(f"expected the folder to save to, got {type(folder).__name__}")
        folder = Path(folder)
        write_json(folder / "tokenizer.json", self.config, indent=None)
        write_json(folder / SETTINGS_FILE, self.saved_settings())

    def saved_settings(self) -> dict[str, Any]:
        """What ``numtok.json`` holds: all but the tokenizer.json."""
        own = [content for content in self.own_tokens if not OWN_SYMBOL.fullmatch(content)]
        return {"format": FORMAT_VERSION, **self._settings(), "leading_space": self.leading_space, "tokens": own}

    @classmethod
    def from_settings(cls, config: dict[str, Any], settings: Mapping[str, Any], engine: str = "auto") -> Tokenizer:
        """The inverse of :meth:`saved_settings`, for the tokenizer.json ``config``. The engine is made when it is first needed."""
        numbers = [from_dict(options) for options in settings["numbers"]]
        grammar, own = Grammar.from_dict(settings["grammar"]), settings.get("tokens", ())
        return cls(config, numbers, grammar, engine, settings["leading_space"], own, engine_later=True)

    def _settings(self) -> dict[str, Any]:
        return {"grammar": self.grammar.to_dict(), "numbers": [representation.to_dict() for representation in self.numbers]}

    @functools.cached_property
    def fingerprint(self) -> str:
        return fingerprint({"tokenizer": essential(self.config), "leading_space": self.leading_space, **self._settings()})

    @property
    def carries_sign(self) -> bool:
        """Whether number tokens stand for numbers with their sign. If one of the representations does not, it stays in the text for all."""
        return all(representation.carries_sign for representation in self.numbers)

    @functools.cached_property
    def engine(self) -> Engine:
        """What encodes the text between numbers; ``engine.name`` says which it is."""
        return make_engine(self.config, self._number_tokens, self._engine_choice)

    @functools.cached_property
    def _special_engine(self) -> Engine:
        """Likewise, with special tokens in the text parsed."""
        return make_engine(self.config, self._number_tokens, self._engine_choice, parse_special=True)

    @functools.cached_property
    def _slow_engine(self) -> TokenizersEngine:
        return TokenizersEngine(self.config, dataclasses.replace(self._number_tokens, hidden=()))

    @functools.cached_property
    def _frame(self) -> tuple[list[int], list[int]]:
        """Ids before and after a text with ``add_special_tokens``."""
        return self._slow_engine.special_frame()

    def has_fast_engine(self, parse_special: bool = False) -> bool:
        """Whether gigatoken encodes the text between numbers; makes the engine, if it is not made yet."""
        return (self._special_engine if parse_special else self.engine).name == "gigatoken"

    @functools.cached_property
    def vocab_size(self) -> int:
        """One more than the largest id: the number of rows an embedding needs."""
        added = (token["id"] for token in self.config["added_tokens"])
        return 1 + int(max([*vocabulary_of(self.config).values(), *added]))

    def encode(self, text: str, keep_text: bool = False, add_special_tokens: bool = False, parse_special: bool = False) -> Encoding:
        """:meth:`encode_batch` for one text."""
        if not isinstance(text, str):
            raise InputError(f"expected one str, got {type(text).__name__}; encode_batch takes many texts")
        return Encoding(self.encode_batch([text], keep_text, add_special_tokens, parse_special))

    def encode_batch(
        self, texts: Any, keep_text: bool = False, add_special_tokens: bool = False, parse_special: bool = False
    ) -> pa.RecordBatch:
        """Encode many texts.

        Args:
            texts: an Arrow string array of any kind, or a sequence of ``str``; a null row stays null.
            keep_text: also store what :meth:`decode_batch` needs to give back every byte.
            add_special_tokens: put the source tokenizer's special tokens (``[CLS]``, ``<s>``) around each text.
            parse_special: read special tokens that are written in the text as such; otherwise they are ordinary text.

        Returns:
            One row per text; see ``FORMAT.md`` for the columns.

        Raises:
            InputError: for texts that are not text.
            RepresentationError: for a number that a representation with ``overflow="error"`` cannot hold.
        """
        return self.encode_with_report(texts, keep_text, add_special_tokens, parse_special)[0]

    def encode_with_report(
        self, texts: Any, keep_text: bool = False, add_special_tokens: bool = False, parse_special: bool = False
    ) -> tuple[pa.RecordBatch, EncodeReport]:
        """:meth:`encode_batch`, and what became of the numbers."""
        rows = TextRows.of(texts)
        numbers, report = self.find_numbers(rows, parse_special)
        engine = self._special_engine if parse_special else self.engine
        if isinstance(self.numbers[0], Subword):
            nothing = np.empty(0, np.int32)
            encoded = engine.encode(rows, Slots.of(numbers.select(nothing), nothing, nothing, np.zeros(1, np.int64)))
            encoded = dataclasses.replace(encoded, positions=first_tokens(engine, encoded, numbers))
            columns: dict[str, Any] = {}
        else:
            columns, slots, spelled = self.encode_numbers(numbers)
            encoded = engine.encode(rows, slots)
            columns |= self._token_stream(spelled, encoded)
        if add_special_tokens:
            encoded, columns = self._add_frame(encoded, columns, numbers)
        report.tokens = len(encoded.ids)
        return self._batch(rows, numbers, encoded, columns, keep_text, add_special_tokens), report

    def find_numbers(self, rows: TextRows, parse_special: bool = False) -> tuple[Numbers, EncodeReport]:
        """The numbers that become tokens: not those inside an added token that the text may contain (``<extra_id_0>``), and those that fit.

        Returns:
            The numbers, without their sign if it stays in the text, and what became of the others.
        """
        found = scan(rows, self.grammar)
        numbers = self._guards[parse_special].outside(found)
        if not self.carries_sign:
            numbers = numbers.without_sign()
        report = EncodeReport(len(rows), rows.nbytes, 0, len(numbers), in_added_tokens=len(found) - len(numbers))
        numbers.to_float64()  # computed once here, whatever is left out below
        return self._apply_overflow(numbers, report), report

    @functools.cached_property
    def _guards(self) -> tuple[DigitTokens, DigitTokens]:
        """The added tokens that hold a digit: without and with the special ones."""
        ours = set(self.own_tokens.values())
        others = [token for token in self.config["added_tokens"] if token["id"] not in ours]
        normalizer = self.config.get("normalizer")
        return DigitTokens([token for token in others if not token["special"]], normalizer), DigitTokens(others, normalizer)

    def _apply_overflow(self, numbers: Numbers, report: EncodeReport) -> Numbers:
        """The numbers that all representations take; the others are counted, or an error."""
        keep = np.ones(len(numbers), np.bool_)
        for representation in self.numbers:
            fits = representation.fits(numbers)
            if representation.overflow == "error" and not fits.all():
                raise _overflow_error(representation, numbers.select(~fits))
            if representation.overflow == "text" and (left := int(np.count_nonzero(keep > fits))):
                report.left_as_text[representation.name] = left
                keep &= fits
        kept = numbers if keep.all() else numbers.select(keep)
        for representation in self.numbers:
            if clipped := int(np.count_nonzero(representation.clipped(kept))):
                report.clipped[representation.name] = clipped
            if vanishing := int(np.count_nonzero(representation.vanishing(kept))):
                report.vanishing[representation.name] = vanishing
        return kept

    def encode_numbers(self, numbers: Numbers) -> tuple[dict[str, Any], Slots, Spelled | None]:
        """(columns, what to take out and put in, spelled numbers if they are spelled out)."""
        count = len(numbers)
        first = self.numbers[0]
        if isinstance(first, SpelledOut):
            spelled = first.encode(numbers)
            assert self._spelling is not None
            plain, spaced, offsets = decode.frame_symbols(spelled.symbols, spelled.offsets, self._spelling)
            return {}, Slots.of(numbers, plain, spaced, offsets), spelled
        columns: dict[str, Any] = {}
        for representation in self.numbers:
            assert isinstance(representation, SingleToken)
            columns |= representation.encode(numbers)
        plain, spaced = (memory.full(count, token, np.int32) for token in (self._number_tokens.plain, self._number_tokens.spaced))
        return columns, Slots.of(numbers, plain, spaced, memory.iota(count + 1)), None

    @functools.cached_property
    def _spelling(self) -> decode.Spelling | None:
        """The tokens of a spelled-out representation; None if there is none."""
        first = self.numbers[0]
        if not isinstance(first, SpelledOut):
            return None
        ids = [self.tokens[content] for content in first.token_strings]
        spaced = [self.tokens[content] for content in first.spaced_token_strings if content in self.tokens]
        frame = (self.tokens.get(NUM, -1), self.tokens.get(f" {NUM}", -1), self.tokens.get(END_NUM, -1))
        return decode.Spelling(np.array(ids, np.int32), first.first_symbols, np.array(spaced, np.int32), first.length, frame)

    @functools.cached_property
    def _first_ids(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The tokens with which numbers begin: without, and with the space before them."""
        if self._spelling is not None and not self._spelling.framed:
            return self._spelling.ids[self._spelling.first.start : self._spelling.first.stop], self._spelling.spaced
        plain, spaced = (np.array([self.tokens[form]] if form in self.tokens else [], np.int32) for form in (NUM, f" {NUM}"))
        return plain, spaced

    def _token_stream(self, spelled: Spelled | None, encoded: Encoded) -> dict[str, Any]:
        """The column with one value per token, if the representation has one."""
        first = self.numbers[0]
        if spelled is None or spelled.stream is None or not isinstance(first, SpelledOut) or first.stream is None:
            return {}
        dense = np.zeros(len(encoded.ids), spelled.stream.dtype)
        begins = encoded.positions + first.framed - spelled.offsets[:-1]
        places = np.repeat(begins, np.diff(spelled.offsets)) + np.arange(len(spelled.symbols))
        dense[places] = spelled.stream
        return {first.stream[0]: dense}

    def _add_frame(self, encoded: Encoded, columns: dict[str, Any], numbers: Numbers) -> tuple[Encoded, dict[str, Any]]:
        """With the special tokens around each valid document."""
        before, after = self._frame
        lengths = np.where(numbers.rows.valid, len(before) + len(after), 0)
        shift = np.concatenate([[0], np.cumsum(lengths)])
        offsets = encoded.offsets + shift
        ids = np.empty(offsets[-1], np.int32)
        places = np.arange(len(encoded.ids)) + np.repeat(shift[:-1] + len(before), np.diff(encoded.offsets))
        ids[places] = encoded.ids
        for row in np.flatnonzero(numbers.rows.valid):
            ids[offsets[row] : offsets[row] + len(before)] = before
            ids[offsets[row + 1] - len(after) : offsets[row + 1]] = after
        first = self.numbers[0]
        if isinstance(first, SpelledOut) and first.stream is not None:
            dense = np.zeros(len(ids), columns[first.stream[0]].dtype)
            dense[places] = columns[first.stream[0]]
            columns = columns | {first.stream[0]: dense}
        return dataclasses.replace(
            encoded, ids=ids, offsets=offsets, positions=encoded.positions + shift[numbers.document] + len(before)
        ), columns

    def _batch(
        self, rows: TextRows, numbers: Numbers, encoded: Encoded, columns: dict[str, Any], keep_text: bool, add_special_tokens: bool
    ) -> pa.RecordBatch:
        """Assemble the record batch."""
        per_document = numbers.per_document()
        large = len(encoded.ids) > schema.LIST_LIMIT or (keep_text and rows.nbytes > schema.LIST_LIMIT)
        index = memory.empty(len(numbers), np.int32)
        _positions_in_document(encoded.positions, encoded.offsets, numbers.document, index)
        columns = {"input_ids": encoded.ids, "number_index": index, "number_value": numbers.to_float64(), **columns}
        if keep_text:
            columns["number_text"] = numbers.text().cast(pa.string())
        described = self.batch_schema(keep_text, add_special_tokens, large)
        arrays = []
        for one in described:
            if one.name == "text":
                continue
            values = columns[one.name]
            offsets = encoded.offsets if one.name in self.per_token_columns else per_document
            arrays.append(schema.list_array(values, offsets, one.type.value_type, rows.valid, large))
        if not keep_text:
            return pa.RecordBatch.from_arrays(arrays, schema=described)
        without = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(described)[:-1], described.metadata))
        return without.append_column(described.field("text"), self._unrecovered(rows, without).cast(described.field("text").type))

    @property
    def per_token_columns(self) -> tuple[str, ...]:
        """The columns with one value per token; the others have one per number."""
        return ("input_ids", *(one.stream[0] for one in self.numbers if isinstance(one, SpelledOut) and one.stream))

    def _unrecovered(self, rows: TextRows, batch: pa.RecordBatch) -> pa.Array:
        """The texts that ids and number surfaces do not give back, because the source tokenizer normalises; null for the others."""
        import pyarrow.compute as pc

        same = pc.equal(self.decode_batch(batch).cast(pa.large_string()), rows.array.cast(pa.large_string()))
        return pc.if_else(pc.fill_null(same, True), pa.scalar(None, pa.large_string()), rows.array.cast(pa.large_string()))

    def batch_schema(self, keep_text: bool = False, add_special_tokens: bool = False, large: bool = False) -> pa.Schema:
        """The schema of the batches that :meth:`encode_batch` returns."""
        if (known := self._schemas.get((keep_text, add_special_tokens, large))) is not None:
            return known
        metadata = {
            **self._settings(),
            "tokenizer": self.fingerprint,
            "leading_space": self.leading_space,
            "tokens": {content: number for content, number in self.tokens.items() if not OWN_SYMBOL.fullmatch(content)},
            "vocab_size": self.vocab_size,
            "frame": list(self._frame) if add_special_tokens else [[], []],
        }
        if self._spelling is not None and not self._spelling.framed:
            metadata["symbols"] = {"plain": _runs(self._spelling.ids), "spaced": _runs(self._spelling.spaced)}
        built = schema.build_schema(self.numbers, keep_text, metadata, large)
        self._schemas[keep_text, add_special_tokens, large] = built
        return built

    def decode(self, encoding: Any, numbers: Sequence[Any] | None = None) -> str:
        """The text of one :class:`Encoding`, or of token ids with the values of their ``[NUM]`` tokens in order.

        Raises:
            SchemaError: if there are not as many values as number tokens.
            InputError: for what are neither ids nor an encoding.
        """
        if isinstance(encoding, Encoding):
            return str(self.decode_batch(encoding.batch)[0].as_py())
        ids = decode.given_ids(encoding)
        index = np.flatnonzero(np.isin(ids, np.concatenate(self._first_ids)))
        if isinstance(self.numbers[0], SpelledOut):
            surfaces = self.read_spelled(ids, index)
        elif numbers is None:
            surfaces = pa.array([NUM] * len(index), pa.large_string())
        elif not isinstance(numbers, Sized):
            raise InputError(f"numbers are the values of the number tokens in order, such as [2.5], not {type(numbers).__name__}")
        elif len(numbers) != len(index):
            raise SchemaError(f"the ids hold {len(index)} number tokens, but {len(numbers)} values are given; give one value each")
        else:
            surfaces = canonical(numbers)
        return str(self._text(ids, np.array([0, len(ids)]), index, surfaces)[0].as_py())

    def numbers_in(self, ids: npt.NDArray[np.int32], values: Sequence[Any] | None = None) -> list[tuple[int, int, str]]:
        """The numbers in ids that a model may have made: (first token, end, text) of each. What cannot be read as a number is left out.

        Args:
            ids: int32[n]; -1 for what is no token.
            values: for numbers that are one token, one value per id (those of other tokens are not looked at) or one per number.

        Raises:
            InputError: if there are neither as many values as ids nor as many as numbers, or a value is not finite.
        """
        index = np.flatnonzero(np.isin(ids, np.concatenate(self._first_ids)))
        if isinstance(self.numbers[0], SpelledOut):
            stops = decode.number_stops(ids, index, self._spelling).tolist()
            return [
                (at, stop, text) for at, stop in zip(index.tolist(), stops, strict=True) if (text := self._read_one(ids, at)) is not None
            ]
        if values is None or not len(index):
            return []
        if len(values) == len(ids):
            values = [values[position] for position in index.tolist()]
        elif len(values) != len(index):
            raise InputError(f"{len(values)} values for {len(ids)} ids with {len(index)} numbers; give one per id, or one per number")
        return [(at, at + 1, text) for at, text in zip(index.tolist(), canonical(values).to_pylist(), strict=True)]

    def _read_one(self, ids: npt.NDArray[np.int32], position: int) -> str | None:
        try:
            text = self.read_spelled(ids, np.array([position]))[0].as_py()
        except NumtokError:
            return None
        return str(text) if text else None

    def decode_batch(self, batch: pa.RecordBatch) -> pa.Array:
        """The texts of a batch that this tokenizer encoded; the inverse of :meth:`encode_batch`.

        Numbers come from ``number_text`` if the batch has it, else, in canonical form, from the tokens, from digits (FoNE), or from
        ``number_value``: never from what a representation rounded, scaled or clipped, as long as there is something better.

        Raises:
            SchemaError: if the batch comes from another tokenizer, lacks a column, or has rows whose columns disagree.
        """
        if not isinstance(batch, pa.RecordBatch):
            raise InputError(
                f"expected a pyarrow.RecordBatch, got {type(batch).__name__}; take a table's to_batches() one by one, and decode for one Encoding or ids"
            )
        metadata = schema.read_metadata(batch.schema)
        batch = stored.conform(batch)
        stored.check_rows(batch)
        if metadata["tokenizer"] != self.fingerprint:
            raise SchemaError(
                f"the batch was encoded by another tokenizer (fingerprint {metadata['tokenizer']}, this one has {self.fingerprint}); load the one that"
                " encoded it, with the same representations and grammar"
            )
        ids, offsets = schema.flat(schema.column(batch, "input_ids"))
        index, number_offsets = schema.flat(schema.column(batch, "number_index"))
        ids_array = ids.to_numpy(zero_copy_only=False)
        positions = index.to_numpy(zero_copy_only=False) + np.repeat(offsets[:-1], np.diff(number_offsets))
        surfaces = self._surfaces(batch, ids_array, positions)
        before, after = metadata["frame"]
        texts = self._text(ids_array, offsets, positions, surfaces, len(before), len(after))
        valid = batch.column("input_ids").is_valid()
        import pyarrow.compute as pc

        texts = pc.if_else(valid, texts, pa.scalar(None, texts.type)) if batch.column("input_ids").null_count else texts
        if "text" in batch.schema.names:
            texts = pc.coalesce(batch.column("text").cast(texts.type), texts)
        return texts.cast(pa.string()) if texts.nbytes < schema.LIST_LIMIT else texts

    def _surfaces(self, batch: pa.RecordBatch, ids: npt.NDArray[np.int32], positions: npt.NDArray[np.int64]) -> pa.LargeStringArray | None:
        """The text of every number of a batch; None if the numbers are ordinary tokens."""
        first = self.numbers[0]
        if isinstance(first, Subword):
            return None
        if "number_text" in batch.schema.names:
            return schema.flat(batch.column("number_text"))[0].cast(pa.large_string())
        if isinstance(first, SpelledOut):
            return self.read_spelled(ids, positions)
        return self._spoken(batch)

    def _spoken(self, batch: pa.RecordBatch) -> pa.LargeStringArray:
        """The text of single-token numbers: the digits of a representation that has all of them, where they are those of ``number_value``; else
        that; where it is infinite, what the first representation holds.
        """
        import pyarrow.compute as pc

        values = schema.flat(schema.column(batch, "number_value"))[0].to_numpy(zero_copy_only=False)
        finite = np.isfinite(values)
        text = numbers_from_floats(np.where(finite, values, 0.0), "number_value").format()
        held = [one for one in self.numbers if isinstance(one, SingleToken)]
        for one in [*(one for one in held if one.exact), *held[:1]]:
            if not one.exact and finite.all():
                break
            decoded = one.decode({name: schema.flat(schema.column(batch, name))[0] for name in one.columns()})
            better = decoded.to_float64() == values if one.exact else ~finite
            text = pc.if_else(pa.array(better), decoded.format(), text)
        return text

    def read_spelled(self, ids: npt.NDArray[np.int32], positions: npt.NDArray[np.int64]) -> pa.LargeStringArray:
        """The text of the spelled-out numbers that begin at the positions in int32[n] ids; what is no number, as its symbols."""
        first = self.numbers[0]
        assert isinstance(first, SpelledOut) and self._spelling is not None
        return first.decode(decode.read_symbols(ids, positions, self._spelling))

    def _text(
        self,
        ids: npt.NDArray[np.int32],
        offsets: npt.NDArray[np.int64],
        positions: npt.NDArray[np.int64],
        surfaces: pa.LargeStringArray | None,
        before: int = 0,
        after: int = 0,
    ) -> pa.LargeStringArray:
        """Token ids to text, with the surfaces at the numbers' positions."""
        if surfaces is None:
            positions, surfaces = np.empty(0, np.int64), pa.array([], pa.large_string())
        stops = decode.number_stops(ids, positions, self._spelling)
        spaced = np.isin(np.append(ids, -1)[np.clip(positions, 0, len(ids))], self._first_ids[1])
        if decode.is_lossless(self.config):
            return decode.byte_level(self._token_bytes, ids, offsets, positions, stops, surfaces, spaced, before, after)
        return decode.by_tokenizers(self._slow_engine, ids, offsets, positions, stops, surfaces, spaced, before, after)

    @functools.cached_property
    def _token_bytes(self) -> TokenBytes:
        return decode.token_bytes(self.config)


@kernel
def _positions_in_document(positions, offsets, document, out):  # type: ignore[no-untyped-def]
    for i in range(positions.size):
        out[i] = positions[i] - offsets[document[i]]


def _runs(ids: npt.NDArray[np.int32]) -> list[list[int]]:
    """Ids that follow one another, as [first, count] each; tens of thousands are one run, unless they were added in several turns."""
    starts = np.flatnonzero(np.diff(ids, prepend=-2) != 1)
    return [[int(ids[start]), int(count)] for start, count in zip(starts, np.diff(starts, append=len(ids)), strict=True)]


def canonical(values: Sequence[Any]) -> pa.LargeStringArray:
    """Values given as ``float``, ``int``, ``Decimal`` or ``str`` as text; floats in the fewest digits that read back as the same float."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if plain and all(isinstance(value, float) for value in plain):
        return numbers_from_floats(np.array(plain), "number_values").format()
    return Numbers.parse(plain).format()


def write_json(path: Path, content: Any, indent: int | None = 2) -> None:
    """Write JSON in one step, so that no half-written file is left; ``OutputError`` if the disk refuses."""
    write_file(path, json.dumps(content, ensure_ascii=False, indent=indent) + "\n")


def _overflow_error(representation: Representation, beyond: Numbers) -> RepresentationError:
    surface = beyond.text()[0].as_py()
    shown = surface if len(surface) <= 60 else f"{surface[:40]}... ({len(surface)} characters)"
    return RepresentationError(
        f"{representation.name} cannot hold {shown}; use overflow='text' to leave such numbers as text, or 'clip'",
        document=int(beyond.document[0]),
        byte=int(beyond.start[0]),
    )
