"""The text of each token of a tokenizer.json, as it stands beside the text of other tokens; and numbers
that are tokens of the text, as ``digits:1,bare`` writes them: read from token ids alone, as a model
may have made them, by the grammar, in the text of the ids.

A number need not have tokens of its own: that of `` 12``, if a model writes the one token that GPT-2
has for it, begins and ends in it. :class:`NumberSpaces` joins text and numbers.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.cached import cached_property
from numtok.engines.config import byte_of_character, is_byte_level, vocabulary_of
from numtok.numbers.extract import extract
from numtok.numbers.grammar import Grammar
from numtok.numbers.scan import scan
from numtok.representations import symbol_token

Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NOT_UTF8 = re.compile("[\udc80-\udcff]")  # what surrogateescape makes of such a byte
# general categories of what stands directly before a number: opening brackets and quotes, currency
# signs, dashes
DIRECTLY_BEFORE = ("Ps", "Pi", "Sc", "Pd")
SIGNS_AND_MARKS = "+\u2212/#"
BEFORE = 4  # characters before a number that decide how it is read after such a mark: "2.e-"
CONTINUING = bytes(range(0x80, 0xC0))  # within a character
SOME_LETTER = "é"


def is_lossless(config: dict[str, Any]) -> bool:
    """Whether the bytes of the tokens are those of the text, as of byte-level BPE."""
    decoder = config.get("decoder") or {}
    return is_byte_level(config) and decoder.get("type") == "ByteLevel"


def contents_of(config: dict[str, Any], wanted: Collection[int] | None = None) -> dict[int, bytes]:
    """Return the bytes of the tokens of a byte-level tokenizer by id: of all, or those wanted."""
    table = byte_of_character()
    contents = {
        number: bytes(map(table.__getitem__, token))
        for token, number in config["model"]["vocab"].items()
        if (wanted is None or number in wanted) and table.keys() >= set(token)
    }
    return contents | {token["id"]: token["content"].encode() for token in config["added_tokens"]}


def beside_others(config: dict[str, Any]) -> dict[int, bytes]:
    """Return the bytes that each token of any tokenizer stands for beside others, by id; a
    character that is cut between tokens in parts.
    """
    return contents_of(config) if is_lossless(config) else _contents(config)


def token_texts(config: dict[str, Any]) -> list[str]:
    """Return the text of each token by id. Of a character that is cut between tokens, its first
    part stands for it: for a letter if it is one of two bytes, which most of those are.
    """
    contents = beside_others(config)
    texts = [""] * (max(contents) + 1)
    for number, content in contents.items():
        texts[number] = _text(content)
    return texts


def _contents(config: dict[str, Any]) -> dict[int, bytes]:
    """Return the text of each token of WordPiece, of SentencePiece, or of BPE whose words end in a
    suffix.
    """
    decoder = config.get("decoder") or {}
    contents = {}
    for token, number in vocabulary_of(config).items():
        if decoder.get("type") == "WordPiece":
            prefix = decoder.get("prefix", "##")
            beside = token.startswith(prefix) or (decoder.get("cleanup") and token in ".,?!")
            text = token.removeprefix(prefix) if beside else f" {token}"
        elif decoder.get("type") == "BPEDecoder":
            text = token.replace(decoder.get("suffix", "</w>"), " ")
        else:
            text = token.replace("▁", " ")
        byte = re.fullmatch("<0x([0-9A-F]{2})>", token)
        contents[number] = bytes.fromhex(byte[1]) if byte else text.encode()
    return contents | {token["id"]: token["content"].encode() for token in config["added_tokens"]}


def _text(content: bytes) -> str:
    begun = content.lstrip(CONTINUING)
    text = begun.decode("utf-8", "replace")
    return f"{text[:-1]}{SOME_LETTER}" if b"\xc3" <= begun[-1:] < b"\xe0" else text


class ReadNumbers(NamedTuple):
    """Numbers in token ids."""

    positions: Ints  # int64[n], the token in which each begins
    stops: Ints  # int64[n], one more than the token in which it ends
    texts: pa.LargeStringArray
    whole: Mask  # bool[n], whether its tokens hold nothing but the number

    def spans(self) -> list[tuple[int, int, str]]:
        """Return (first token, end, text) of each number."""
        spans = self.positions.tolist(), self.stops.tolist()
        return list(zip(*spans, map(str, self.texts.to_pylist()), strict=True))


class TextReader:
    """Reads numbers in the text of token ids.

    Args:
        config: the tokenizer.json.
        symbols: the text of each token that numbers are made of, by id.
        grammar: what counts as a number.

    Attributes:
        own: those of the symbols that are added tokens of numtok, ``[NUM:602]`` for 602.
    """

    def __init__(
        self, config: dict[str, Any], symbols: Mapping[int, str], grammar: Grammar
    ) -> None:
        self._config, self._symbols, self._grammar = config, symbols, grammar
        added = {token["id"]: token["content"] for token in config["added_tokens"]}
        self.own = {id: one for id, one in symbols.items() if added.get(id) == symbol_token(one)}

    def apart(self, ids: Ids) -> list[tuple[int, int, str]]:
        """Return (first token, end, text) of the tokens that stand for other text than they are
        decoded to: :attr:`own`, and, where a decoder puts spaces between digits, as that of
        WordPiece does, each number that has tokens of its own.
        """
        numbers = self.numbers(ids)
        whole = (numbers.whole & self._stand_apart).tolist()
        spans = list(itertools.compress(numbers.spans(), whole))
        inside = {at for first, stop, _ in spans for at in range(first, stop)}
        alone = ((at, id) for at, id in enumerate(ids.tolist()) if id in self.own)
        spans += [(at, at + 1, self.own[id]) for at, id in alone if at not in inside]
        return sorted(spans)

    def numbers(self, ids: Ids) -> ReadNumbers:
        """Return the numbers in int32[n] ids; an id that is no token has no text."""
        text, starts, stops = self._text(ids.tolist())
        numbers = scan([text], self._grammar)
        first = np.searchsorted(stops, numbers.start, side="right")
        last = np.searchsorted(stops, numbers.stop)
        whole = (starts[first] == numbers.start) & (stops[last] == numbers.stop)
        texts = numbers.text().cast(pa.large_string())
        return ReadNumbers(first, last + 1, texts, whole)

    def _text(self, ids: list[int]) -> tuple[str, Ints, Ints]:
        """Return (the text, in which ``?`` stands for a byte that is not UTF-8, and the bytes at
        which each token starts and stops in it).
        """
        written, widths, spaces = [], [], []
        within = False  # whether the token in front is a symbol
        for token in ids:
            content, is_symbol = self._contents.get(token, b""), token in self._symbols
            text = self._symbols[token].encode() if is_symbol else content
            # WordPiece: words stand apart, the symbols of a number do not
            apart = content[:1] == b" " or (token in self.own and self._stand_apart)
            space = b" " if is_symbol and not within and apart else b""
            written += [space, text]
            spaces.append(len(space))
            widths.append(len(text))
            within = is_symbol
        stops = memory.offsets_of(np.add(spaces, widths).astype(np.int64))[1:]
        whole = NOT_UTF8.sub("?", b"".join(written).decode("utf-8", "surrogateescape"))
        return whole, stops - np.array(widths, np.int64), stops

    @cached_property
    def _contents(self) -> dict[int, bytes]:
        return beside_others(self._config)

    @cached_property
    def _stand_apart(self) -> bool:
        """Whether the text of a symbol alone begins with a space."""
        return any(self._contents.get(id, b"")[:1] == b" " for id in self._symbols)


class NumberSpaces:
    """Put back the space before a number where a tokenizer drops it, so that the number reads as it
    is: T5 has the same ids for ``room 7`` and ``room7``, and the latter holds no number. After a
    number such tokenizers write the space of a word themselves.

    Args:
        grammar: what numbers are.
        carries_sign: the sign is a part of the number, so that one in the text before is another
            character.
    """

    def __init__(self, grammar: Grammar, carries_sign: bool) -> None:
        self._grammar, self._carries_sign = grammar, carries_sign

    def join(self, texts: Sequence[str], numbers: Sequence[str]) -> str:
        """Return ``texts``, one more than ``numbers``, with these between them and the spaces that
        they need. Names of tokens, such as ``[NUM]``, need none.
        """
        joined = texts[0]
        for number, text in zip(numbers, texts[1:], strict=True):
            is_number = not number.startswith("[")
            space = " " if is_number and self._needs_space(joined[-BEFORE:], number) else ""
            joined += space + number + text
        return joined

    def _needs_space(self, before: str, number: str) -> bool:
        """Whether a space belongs between the end of a text and a number."""
        if not before or before[-1].isspace():
            return False
        last = before[-1]
        if last not in SIGNS_AND_MARKS and unicodedata.category(last) not in DIRECTLY_BEFORE:
            return True
        word = before.split()[-1]
        numbers = extract(word + number, self._grammar)[-1:]
        begins = (len(word),) if self._carries_sign else (len(word), len(word) - 1)
        return not (
            numbers and numbers[0].start in begins and numbers[0].stop == len(word + number)
        )
