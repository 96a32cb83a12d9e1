"""Tokenizer: text to token ids and number tensors, and back; an Arrow record batch with one row per
text (``FORMAT.md``). ``encoder`` is the way there, ``decode`` the way back.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

import numpy as np
import pyarrow as pa

from numtok.arrays.cached import cached_property
from numtok.arrays.text_rows import ArrowArray, TextRows, Texts
from numtok.engines.engine import Engine, Slots
from numtok.errors import InputError, SchemaError, TokenizerError
from numtok.numbers.grammar import Grammar, check_grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import (
    SpelledOut,
    Subword,
    from_dict,
    representations_of,
)
from numtok.representations.registry import Representations, set_for_all
from numtok.tokenizer import saving, schema
from numtok.tokenizer.decode import Decoder, TokenIds
from numtok.tokenizer.encoder import Encoder, Encoding, TextEngines
from numtok.tokenizer.metadata import LEADING_SPACE, describe_tokenizer
from numtok.tokenizer.number_selection import EncodeReport, NumberSelector
from numtok.tokenizer.tokenizer_json import load_source
from numtok.tokenizer.vocabulary import (
    NumberTokensInText,
    NumberVocabulary,
    Spelling,
    share_tokens,
)

PROBES = ("7", "98", "605", "1234567890")
ADVICE = (
    "this tokenizer cuts the digits of numbers already as %r does, which only puts [NUM] and [/NUM]"
    " around them; with numbers=%r a pretrained model keeps its ids and needs no new rows"
)


class TextOptions(TypedDict, total=False):
    """Keyword options of :meth:`Tokenizer.encode_batch`."""

    keep_text: bool
    add_special_tokens: bool
    parse_special: bool


class Tokenizer:
    """A subword tokenizer that knows numbers. Make one with :meth:`from_pretrained`.

    ``tokenizer(text)`` is :meth:`encode`. Two tokenizers are equal if they give equal ids.

    Attributes:
        representations: how numbers are written.
        grammar: what counts as a number.
        config: the source's tokenizer.json with the number tokens added, as a dict.
        tokens: the id of every token that numtok uses for numbers.
        own_tokens: the id of every token that numtok has added, in use or not. Written in a text,
            they are text.
        fingerprint: equal for tokenizers that give equal ids.

    Example:
        >>> import numtok
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="xval")
        >>> encoding = tokenizer("pH 7.4 at 25 °C")
        >>> encoding["number_value"].tolist()
        [7.4, 25.0]
        >>> tokenizer.decode(encoding)
        'pH 7.4 at 25 °C'
    """

    def __init__(
        self,
        config: dict[str, Any],
        numbers: Representations,
        grammar: Grammar | str | None = None,
        engine: str = "auto",
        leading_space: str = "auto",
        own: Collection[str] = (),
        engine_later: bool = False,
    ) -> None:
        if not isinstance(config, dict):
            raise TokenizerError(
                "Tokenizer(...) takes the content of a tokenizer.json; use"
                " Tokenizer.from_pretrained(...) for a file, a folder or a hub id"
            )
        if leading_space not in LEADING_SPACE:
            raise TokenizerError(
                f"leading_space={leading_space!r} (--leading-space) must be 'auto' or 'separate'"
            )
        self.representations = representations_of(numbers)
        self.grammar, self.leading_space = check_grammar(grammar), leading_space
        first = self.representations[0]
        self._vocabulary = NumberVocabulary.of(config, first, leading_space, own, self.grammar)
        self.config, self.tokens = self._vocabulary.config, self._vocabulary.tokens
        self.own_tokens = self._vocabulary.own
        self._engines = TextEngines(self.config, self._vocabulary.in_text, engine)
        if not engine_later:
            self.engine_for(False)  # what cannot be used fails here, not at the first text

    @classmethod
    def from_pretrained(
        cls,
        source: Any = None,
        numbers: Representations | None = None,
        grammar: Grammar | str | None = None,
        engine: str = "auto",
        leading_space: str | None = None,
    ) -> Tokenizer:
        """Put numbers into a tokenizer, or load one that :meth:`save_pretrained` wrote.

        Args:
            source: a tokenizer.json, a folder, a URL of either, a hub id, a
                ``tokenizers.Tokenizer`` or a transformers tokenizer; ``None`` for the small default
                tokenizer inside the package.
            numbers: representations, ``[XVal()]`` if not given, or their names,
                ``"xval,fone:6,4"``; several that share ``[NUM]`` can be combined.
            grammar: what counts as a number, or its name, ``"european"``.
            engine: ``"gigatoken"``, ``"tokenizers"`` (same ids, slower), or ``"auto"``, the first
                that can be used.
            leading_space: ``"auto"`` has two tokens in byte-level BPE, ``[NUM]`` and `` [NUM]``
                (a space, then a number), and one in others; ``"separate"`` always has one.

        Options that are not given are those that the folder was saved with.

        Raises:
            TokenizerError: if the source cannot be found, read or used.
        """
        choices = {"numbers": numbers, "grammar": grammar, "leading_space": leading_space}
        with saving.fetched(source) as local:
            options = saving.complete_options(local, **choices)
            config = load_source(local)
        try:
            tokenizer = cls(config, engine=engine, **options)
        except TokenizerError as error:
            if isinstance(source, str | Path):
                raise TokenizerError(f"{source}: {error}") from error
            raise
        if numbers is not None and source is not None:  # that of a pretrained model
            tokenizer.advise_bare(tokenizer.source_ids)
        return tokenizer

    @classmethod
    def from_settings(
        cls, config: dict[str, Any], settings: Mapping[str, Any], engine: str = "auto"
    ) -> Tokenizer:
        """Make a tokenizer of :meth:`saved_settings` and the tokenizer.json ``config``.

        The engine is made when it is first needed.
        """
        numbers = [*map(from_dict, settings["numbers"])]
        rules = Grammar.from_dict(settings["grammar"]), engine, settings["leading_space"]
        return cls(config, numbers, *rules, settings.get("tokens", ()), engine_later=True)

    def with_options(self, numbers: Representations) -> Tokenizer:
        """Return a copy of the tokenizer whose representations have other options, such as a fitted
        scale. Its tokens and ids stay the same. ``numbers`` as for :meth:`from_pretrained`.

        Raises:
            TokenizerError: if these need other tokens.
        """
        representations = representations_of(numbers)
        if not share_tokens(representations, self.representations):
            raise TokenizerError(
                "these representations need other tokens; make the tokenizer anew with"
                " from_pretrained"
            )
        changed = copy.copy(self)  # with the same engines
        changed.representations = representations
        return changed

    def save_pretrained(self, folder: str | Path) -> None:
        """Write ``tokenizer.json`` and ``numtok.json`` to a folder.

        Programs without numtok refuse the former with a message, unless :attr:`reads_as_plain`;
        then ``tokenizer_config.json`` has them read it as it stands, whatever model is beside it.
        """
        saving.save(folder, self.config, self.saved_settings(), self.reads_as_plain)

    def export(self, folder: str | Path, overwrite: bool = False) -> tuple[str, ...]:
        """Write a plain ``tokenizer.json`` to a folder, for programs without numtok: ``tokenizers``,
        ``AutoTokenizer``, transformers.js and Rust servers give the same ids as numtok does, which
        reads the folder back with ``Subword()``. Groups of digits are rows of the vocabulary, without
        ``[NUM]`` around them, and are cut wherever they stand (``docs/serving.md``).

        Args:
            folder: gets the files; what transformers wrote there before, such as a chat template,
                stays.
            overwrite: replace a ``tokenizer.json`` that is there already.

        Returns:
            The rows that the vocabulary lacked: they have the ids after all others, and the model
            needs ``resize_token_embeddings``.

        Raises:
            RepresentationError: for representations other than ``Digits`` and ``Subword``.
            TokenizerError: if groups of digits cannot be rows of this tokenizer.
            OutputError: if there is a ``tokenizer.json``, or the system refuses.
        """
        saving.refuse_to_replace(folder, overwrite)
        form = self.representations[0].plain_form(self.grammar)
        config, added = saving.plain_config(self.config, self.own_tokens, form)
        settings = saving.settings([Subword()], self.grammar, self.leading_space, ())
        saving.save(folder, config, settings, plain=True)
        return added

    @property
    def reads_as_plain(self) -> bool:
        """Whether plain ``tokenizers`` gives the same ids, as numbers are ordinary text."""
        return self.representations[0].stays_text and not self.own_tokens

    def saved_settings(self) -> dict[str, Any]:
        """Return the content of ``numtok.json``: all settings but the tokenizer.json."""
        return saving.settings(
            self.representations, self.grammar, self.leading_space, self.own_tokens
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what is cached on demand."""
        kind = type(self)
        cached = {k for k, v in vars(kind).items() if isinstance(v, cached_property)}
        return {name: value for name, value in vars(self).items() if name not in cached}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __len__(self) -> int:
        return self.vocab_size

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.representations))
        return (
            f"Tokenizer([{shown}], {self.grammar!r}, leading_space={self.leading_space!r},"
            f" vocab_size={self.vocab_size})"
        )

    @cached_property
    def fingerprint(self) -> str:
        """Equal for tokenizers that give equal ids."""
        return saving.fingerprint_of(
            self.config, self.representations, self.grammar, self.leading_space
        )

    def encoded(self, metadata: Mapping[str, Any]) -> bool:
        """Whether this tokenizer encoded the data with these metadata, with dense or compact
        columns.
        """
        if metadata["tokenizer"] == self.fingerprint:
            return True
        numbers = [*map(from_dict, metadata["numbers"])]  # files of format 1 tell the form apart
        return metadata["tokenizer"] == saving.fingerprint_of(
            self.config, numbers, self.grammar, self.leading_space, with_form=True
        ) and set_for_all(numbers, compact=False) == set_for_all(
            self.representations, compact=False
        )

    @cached_property
    def vocab_size(self) -> int:
        """Number of rows an embedding needs: the largest id plus one."""
        return self._vocabulary.size

    @property
    def spelling(self) -> Spelling | None:
        """The tokens that numbers are spelled out with; None if they are not."""
        return self._vocabulary.spelling

    @property
    def carries_sign(self) -> bool:
        """Whether number tokens stand for numbers with their sign.

        If one of the representations does not, it stays in the text for all.
        """
        return self.selector.carries_sign

    @property
    def per_token_columns(self) -> tuple[str, ...]:
        """The columns with one value per token; the others have one per number."""
        return self._encoder.per_token

    @property
    def engine(self) -> Engine:
        """Engine for the text between numbers; its ``name`` is ``gigatoken`` or ``tokenizers``."""
        return self.engine_for(parse_special=False)

    def engine_for(self, parse_special: bool) -> Engine:
        """Return the engine that parses special tokens in the text, or the one that does not.
        Engines are created on first use.
        """
        return self._engines.between_numbers(parse_special)

    def source_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids that the source tokenizer alone gives to texts, without special tokens."""
        rows = TextRows.of(list(texts))
        encoded = self.engine.encode(rows, Slots.none(len(rows)))
        return [one.tolist() for one in np.split(encoded.ids, encoded.offsets[1:-1])]

    def advise_bare(self, encode: Callable[[list[str]], Sequence[Sequence[int]]]) -> None:
        """Log a hint if the source tokenizer cuts digits already as the representation does, so that
        brackets are all that it adds. ``encode`` gives the ids of the source alone for texts.
        """
        first, spelling = self.representations[0], self.spelling
        if not isinstance(first, SpelledOut) or spelling is None:
            return
        if (bare := first.without_brackets()) is None:
            return
        spelled = [first.encode_one(probe.encode(), ".") for probe in PROBES]
        ids = encode([f"a {probe}" for probe in PROBES])
        own = [[] if one is None else spelling.ids[one].tolist() for one in spelled]
        if all(one and [*of][-len(one) :] == one for of, one in zip(ids, own, strict=True)):
            logging.getLogger("numtok").warning(ADVICE, first.spec(), bare.spec())

    @cached_property
    def selector(self) -> NumberSelector:
        """The selector of the numbers that become tokens."""
        ours = set(self.own_tokens.values())
        others = [token for token in self.config["added_tokens"] if token["id"] not in ours]
        normalizer = self.config.get("normalizer")
        return NumberSelector(self.representations, self.grammar, others, normalizer)

    @cached_property
    def _encoder(self) -> Encoder:
        described = {
            "grammar": self.grammar.to_dict(),
            "numbers": [one.to_dict() for one in self.representations],
            **self._vocabulary.described(),
            "tokenizer": self.fingerprint,
            "leading_space": self.leading_space,
        }
        parts = self.selector, self._vocabulary, self._engines
        return Encoder(self.representations, *parts, described, self.decoder.batch)

    @cached_property
    def decoder(self) -> Decoder:
        """The decoder of ids, which also reads the numbers in them."""
        return Decoder(self._vocabulary, self.representations, self.grammar, self._engines)

    @overload
    def __call__(self, text: str, **options: Unpack[TextOptions]) -> Encoding: ...

    @overload
    def __call__(self, text: Texts, **options: Unpack[TextOptions]) -> pa.RecordBatch: ...

    def __call__(self, text: Any, **options: Unpack[TextOptions]) -> Any:
        """Call :meth:`encode` for one text, :meth:`encode_batch` for many."""
        return (self.encode if isinstance(text, str) else self.encode_batch)(text, **options)

    def encode(self, text: str, **options: Unpack[TextOptions]) -> Encoding:
        """Encode one text, with the options of :meth:`encode_batch`."""
        if not isinstance(text, str):
            raise InputError(
                f"expected one str, got {type(text).__name__}; encode_batch takes many texts"
            )
        return Encoding(self.encode_batch([text], **options))

    def encode_batch(
        self,
        texts: Texts,
        keep_text: bool = False,
        add_special_tokens: bool = False,
        parse_special: bool = False,
        threads: int | None = 1,
    ) -> pa.RecordBatch:
        """Encode many texts.

        Args:
            texts: an Arrow string array of any kind and library, or any number of ``str``; a null
                row stays null.
            keep_text: also store what :meth:`decode_batch` needs to give back every byte.
            add_special_tokens: put the source tokenizer's special tokens (``[CLS]``, ``<s>``)
                around each text.
            parse_special: read special tokens that are written in the text as such; otherwise they
                are ordinary text.
            threads: that encode at once; ``None`` for as many as there are cores. The batch is the
                same for every number.

        Returns:
            One row per text; see ``FORMAT.md`` for the columns.

        Raises:
            InputError: for texts that are not text.
            RepresentationError: for a number that a representation with ``overflow="error"`` cannot
                hold.
        """
        options = keep_text, add_special_tokens, parse_special
        return self._encoder.encode(TextRows.of(texts), threads, *options)[0]

    def encode_with_report(
        self, texts: Texts, threads: int | None = 1, **options: Unpack[TextOptions]
    ) -> tuple[pa.RecordBatch, EncodeReport]:
        """Encode texts by :meth:`encode_batch`, and report what became of the numbers."""
        return self._encoder.encode(TextRows.of(texts), threads, **options)

    def encode_numbers(self, numbers: Numbers) -> NumberTokensInText:
        """Return the tokens and the columns of numbers that become tokens."""
        return self._vocabulary.encode(numbers, self.representations)

    def ids_of_one(self, written: bytes) -> list[int] | None:
        """Return the ids of one number that is exact in all representations, in the form without a
        space; None if they do not follow from how the number is written alone.
        """
        first, spelling = self.representations[0], self.spelling
        if not isinstance(first, SpelledOut) or spelling is None:
            return None
        if (symbols := first.encode_one(written, self.grammar.decimal)) is None:
            return None
        ids: list[int] = spelling.ids[symbols].tolist()
        opening, _, closing = spelling.brackets
        return [opening, *ids, closing] if spelling.bracketed else ids

    def batch_schema(
        self, keep_text: bool = False, add_special_tokens: bool = False, large: bool = False
    ) -> pa.Schema:
        """Return the schema of the batches that :meth:`encode_batch` returns."""
        return self._encoder.schema(keep_text, add_special_tokens, large)

    def decode(self, encoding: Encoding | TokenIds, numbers: Sequence[Any] | None = None) -> str:
        """Return the text of one :class:`Encoding`, or of token ids with the values of their
        ``[NUM]`` tokens in order.

        Raises:
            SchemaError: if there are not as many values as number tokens. InputError: for what are
                neither ids nor an encoding, or a value that is no number. RepresentationError: for
                NaN or an infinity.
        """
        if isinstance(encoding, Encoding):
            return str(self.decode_batch(encoding.batch)[0].as_py())
        return self.decoder.ids(encoding, numbers)

    def decode_batch(self, batch: ArrowArray) -> pa.Array:
        """Return the texts of a batch (``pyarrow`` or another Arrow library) that this tokenizer
        encoded; the inverse of :meth:`encode_batch`.

        Raises:
            SchemaError: if the batch comes from another tokenizer, lacks a column, or has rows
                whose columns disagree.

        Example:
            >>> import numtok
            >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="p10")
            >>> tokenizer.decode_batch(tokenizer.encode_batch(["-60.2 m", "1,234"])).to_pylist()
            ['-60.2 m', '1230']
        """
        rows = schema.as_record_batch(batch)
        if not self.encoded(metadata := schema.read_metadata(rows.schema)):
            raise SchemaError(
                f"the batch was encoded by another tokenizer ({describe_tokenizer(metadata)}; this"
                f" one has {self.fingerprint}); load the one that encoded it, with the same"
                " representations and grammar"
            )
        return self.decoder.batch(rows)

    def numbers_in(
        self, ids: TokenIds, values: Sequence[Any] | None = None
    ) -> list[tuple[int, int, str]]:
        """Return the numbers in ids that a model may have made: (first token, end, text) of each.
        What cannot be read as a number is left out.

        Args:
            ids: those of one text: a list, an array, a tensor; -1 for what is no token.
            values: for numbers that are one token, one value per id (those of other tokens are not
                looked at) or one per number.

        Raises:
            InputError: if there are neither as many values as ids nor as many as numbers.
            RepresentationError: for NaN or an infinity.
        """
        return self.decoder.numbers_in(ids, values)
