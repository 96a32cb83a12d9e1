"""The engine for byte-level BPE: gigatoken, some fifty times faster than ``tokenizers``, with the same ids.

The text stays in one buffer, and the tokens that fall on numbers are dropped: see :mod:`numtok.engines.split` for why that is right.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.text_rows import TextRows
from numtok.arrays.unicode_classes import flags
from numtok.engines.interface import Config, Encoded, Ints, NumberTokens, Slots, is_byte_level, without_numbers
from numtok.engines.needs_complete import places_of_events
from numtok.engines.rust import tokenizer_errors
from numtok.engines.splice import Tokens, splice
from numtok.engines.split import own_text, split, split_rules
from numtok.engines.tokenizer_json import to_json
from numtok.engines.tokenizers_engine import TokenizersEngine
from numtok.errors import TokenizerError

SMALL_TEXT = 1 << 16
FEW_PIECES = 50


class GigatokenEngine:
    """Byte-level BPE by gigatoken.

    Args:
        config: the source's tokenizer.json, number tokens included.

    Raises:
        TokenizerError: if the tokenizer is not one this engine can encode exactly; the message says why.
    """

    name = "gigatoken"

    def __init__(self, config: Config, tokens: NumberTokens, parse_special: bool = False) -> None:
        if not is_byte_level(config):
            raise TokenizerError(f"it is not byte-level BPE but {config['model'].get('type')}")
        source, config = config, without_numbers(config, tokens, parse_special)
        _check_added_tokens(config["added_tokens"], two_forms=tokens.spaced >= 0)
        if not parse_special:
            unread = [token["content"] for token in source["added_tokens"] or [] if token["special"]]
            _check_unread_tokens(unread, [token["content"] for token in config["added_tokens"]], two_forms=tokens.spaced >= 0)
        self._make_slow = functools.partial(TokenizersEngine, source, tokens, parse_special)
        self._config = config
        self._rules = split_rules(two_forms=tokens.spaced >= 0, stays_whole=_pre_tokenizes_like_gpt2(config))
        vocabulary = (self._bare if self._rules.stays_whole else self._complete).vocab
        vocabulary = vocabulary | {token["id"]: token["content"].encode() for token in config["added_tokens"]}
        longest = max(map(len, vocabulary.values()))
        self.widths = np.zeros(max(vocabulary) + 1, np.uint8 if longest < 256 else np.uint16)  # 8 bits stay in the first-level cache
        for token, content in vocabulary.items():
            self.widths[token] = len(content)
        self.normalizes = config.get("normalizer") is not None
        nothing = np.empty(0, np.uint8)
        self._unsafe, self._newer = (flags("nfc_unsafe"), flags("nfc_newer")) if self.normalizes else (nothing, nothing)
        self._runs_of_spaces = any(token["content"].strip(" ") == "" for token in config["added_tokens"])
        words = [token["content"] for token in config["added_tokens"] if token["content"].strip(" ")]
        self._added = _alternatives(words)

    @functools.cached_property
    def slow(self) -> TokenizersEngine:
        """The engine with the same ids."""
        return self._make_slow()

    @functools.cached_property
    def _complete(self) -> Any:
        """The tokenizer as it is."""
        return _load(self._config)

    @functools.cached_property
    def _bare(self) -> Any:
        """The tokenizer without added tokens and normalizer."""
        return _load(self._config | {"added_tokens": [], "normalizer": None})

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        text = own_text(rows)
        parts = split(text, rows, slots, self._places_that_need_complete(text), self._rules)
        tokens = _gigatoken_tokens(self._bare if self._rules.stays_whole else self._complete, text, parts.segments.starts)
        complete = self._complete_tokens(parts.complete_text, parts.complete_starts())
        return splice(parts, tokens, complete, self.widths if self._rules.stays_whole else self.widths[:0], slots)

    def has_unsafe(self, rows: TextRows) -> npt.NDArray[np.bool_]:
        """bool[rows]: whether the normalizer may change the row."""
        places = places_of_events(rows.text[: int(rows.offsets[-1])], False, flags("nfc_unsafe"))
        counts = np.searchsorted(places, rows.offsets)
        return np.asarray(np.diff(counts) > 0)

    def _places_that_need_complete(self, text: npt.NDArray[np.uint8]) -> Ints:
        if not self._rules.stays_whole:  # all text goes through the complete tokenizer, but what is newer than its Unicode data
            return places_of_events(text, False, self._newer)
        places = places_of_events(text, self._runs_of_spaces, self._unsafe)
        if self._added:
            places = np.sort(np.concatenate([places, [match.start() for match in self._added.finditer(text.data)]])).astype(np.int64)
        return places

    def _complete_tokens(self, text: npt.NDArray[np.uint8], starts: Ints) -> Tokens:
        """Those of pieces in one buffer by the complete tokenizer; by ``tokenizers`` if they hold characters newer than its Unicode data."""
        if len(starts) == 1:  # none: the complete tokenizer need not be loaded
            return Tokens(np.empty(0, np.uint32), starts)
        tokens = _gigatoken_tokens(self._complete, text, starts)
        newer = places_of_events(text, False, self._newer)
        if not len(newer):
            return tokens
        pieces = np.split(tokens.ids, tokens.offsets[1:-1])
        which = np.unique(np.searchsorted(starts, newer, "right") - 1).tolist()
        texts = [text[starts[piece] : starts[piece + 1]].tobytes().decode() for piece in which]
        for piece, ids in zip(which, self.slow.encode_text(texts), strict=True):
            pieces[piece] = np.array(ids, np.uint32)
        return Tokens(np.concatenate(pieces), memory.offsets_of(np.array([len(ids) for ids in pieces], np.int64)))


def _load(config: Config) -> Any:
    import gigatoken

    with tokenizer_errors("gigatoken cannot load it"):
        return gigatoken.Tokenizer.from_json(to_json(config))


def _gigatoken_tokens(tokenizer: Any, text: npt.NDArray[np.uint8], offsets: Ints) -> Tokens:
    """Those of documents in one buffer, without copying it."""
    if len(text) <= SMALL_TEXT:  # lists then cost less than awkward arrays
        data = text.tobytes()
        pieces = [data[a:b] for a, b in itertools.pairwise(offsets.tolist())]
        if len(pieces) <= FEW_PIECES:  # one by one is quicker then, and gigatoken does not import awkward
            arrays = [tokenizer.encode(piece) for piece in pieces]
            ids = np.concatenate([np.empty(0, np.uint32), *arrays])
            return Tokens(ids, memory.offsets_of(np.fromiter(map(len, arrays), np.int64, len(arrays))))
        lists = tokenizer.encode_batch_list(pieces, parallel=False)
        ids = np.fromiter(itertools.chain.from_iterable(lists), np.uint32)
        return Tokens(ids, memory.offsets_of(np.fromiter(map(len, lists), np.int64, len(lists))))
    import awkward as ak

    characters = ak.contents.NumpyArray(text, parameters={"__array__": "char"})
    documents = ak.contents.ListOffsetArray(ak.index.Index64(offsets), characters, parameters={"__array__": "string"})
    layout = tokenizer.encode_batch(ak.Array(documents), parallel=False).layout
    return Tokens(np.asarray(layout.content.data), np.asarray(layout.offsets.data))


def _alternatives(words: list[str]) -> re.Pattern[bytes] | None:
    """A pattern that finds any of the words, the longest first."""
    if not words:
        return None
    return re.compile(b"|".join(re.escape(word.encode()) for word in sorted(words, key=len, reverse=True)))


def _check_added_tokens(added: list[Config], two_forms: bool) -> None:
    """Refuse added tokens whose matching depends on more than the piece of text they stand in."""
    for token in added:
        if token["lstrip"] or token["rstrip"] or token["single_word"]:
            raise TokenizerError(f"its added token {token['content']!r} strips spaces or wants whole words")
        if two_forms and not token["normalized"] and token["content"].endswith(" "):
            raise TokenizerError(f"its added token {token['content']!r} may take the space before a number")


def _check_unread_tokens(unread: list[str], added: list[str], two_forms: bool) -> None:
    """Refuse special tokens that are not parsed but still hide another added token: ``tokenizers`` passes over the whole of them."""
    prefixes = {content[:length] for content in added for length in range(1, len(content) + 1)}
    for content in unread:
        ends = two_forms and content.endswith(" ")  # hides the space of the number after it
        if ends or any(content[start:] in prefixes for start in range(1, len(content))) or any(other in content for other in added):
            raise TokenizerError(f"its special token {content!r} overlaps another added token")


def _pre_tokenizes_like_gpt2(config: Config) -> bool:
    """Whether the text may stay in one piece: GPT-2's own pre-tokenizer, no more than NFC before it, nothing unusual in the model."""
    pre_tokenizer, normalizer, model = config["pre_tokenizer"], config.get("normalizer"), config["model"]
    return (
        pre_tokenizer["type"] == "ByteLevel"
        and not pre_tokenizer.get("add_prefix_space", True)
        and pre_tokenizer.get("use_regex", True)
        and (normalizer is None or normalizer == {"type": "NFC"})
        and not any(
            model.get(option) for option in ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback")
        )
    )
