"""The engine for byte-level BPE: gigatoken, some fifty times faster than ``tokenizers``, with the same ids.

The text stays in one buffer, and the tokens that fall on numbers are dropped: see :mod:`numtok.engines.joined` for why that is right.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.text_rows import TextRows
from numtok.arrays.unicode_classes import flags
from numtok.engines import joined
from numtok.engines.interface import Config, Encoded, Ints, NumberTokens, Slots, is_byte_level, without_numbers
from numtok.engines.rust import tokenizer_errors
from numtok.engines.tokenizers_engine import TokenizersEngine
from numtok.errors import NumtokError, TokenizerError

SMALL_TEXT = 1 << 16
_scratch = memory.Scratch()


class GigatokenEngine:
    """Byte-level BPE by gigatoken.

    Args:
        config: the source's tokenizer.json, number tokens included.

    Raises:
        TokenizerError: if the tokenizer is not one this engine can encode exactly; the message says why.
    """

    name = "gigatoken"

    def __init__(self, config: Config, tokens: NumberTokens, parse_special: bool = False) -> None:
        import gigatoken

        if not is_byte_level(config):
            raise TokenizerError(f"it is not byte-level BPE but {config['model'].get('type')}")
        source, config = config, without_numbers(config, tokens, parse_special)
        _check_added_tokens(config["added_tokens"], two_forms=tokens.spaced >= 0)
        if not parse_special:
            unread = [token["content"] for token in source["added_tokens"] or [] if token["special"]]
            _check_unread_tokens(unread, [token["content"] for token in config["added_tokens"]], two_forms=tokens.spaced >= 0)
        self._two_forms = tokens.spaced >= 0
        self.slow = TokenizersEngine(source, tokens, parse_special)
        with tokenizer_errors("gigatoken cannot load it"):
            self._complete = gigatoken.Tokenizer.from_json(json.dumps(config))
            bare = config | {"added_tokens": [], "normalizer": None}
            self._bare = gigatoken.Tokenizer.from_json(json.dumps(bare))
            vocabulary = self._bare.vocab
        vocabulary = vocabulary | {token["id"]: token["content"].encode() for token in config["added_tokens"]}
        longest = max(map(len, vocabulary.values()))
        self.widths = np.zeros(max(vocabulary) + 1, np.uint8 if longest < 256 else np.uint16)  # 8 bits stay in the first-level cache
        for token, content in vocabulary.items():
            self.widths[token] = len(content)
        self._joins = _pre_tokenizes_like_gpt2(config)
        self.normalizes = config.get("normalizer") is not None
        nothing = np.empty(0, np.uint8)
        self._unsafe, self._newer = (flags("nfc_unsafe"), flags("nfc_newer")) if self.normalizes else (nothing, nothing)
        self._runs_of_spaces = any(token["content"].strip(" ") == "" for token in config["added_tokens"])
        words = [token["content"] for token in config["added_tokens"] if token["content"].strip(" ")]
        self._added = _alternatives(words)

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        first, last, count = int(rows.offsets[0]), int(rows.offsets[-1]), len(slots.document)
        text, offsets = _scratch.empty("text", last - first, np.uint8), rows.offsets - first
        text[:] = rows.text[first:last]
        most = 2 * count + len(rows)
        kinds, ends = _scratch.empty("kinds", most, np.uint8), _scratch.empty("ends", most + 1, np.int64)
        ends[0] = 0
        begins, stops = _scratch.empty("begins", count, np.int64), _scratch.empty("stops", count, np.int64)
        spaced = memory.empty(count, np.bool_)
        places = self._delicate_places(text)
        document_segments, delicate_text = memory.empty(len(rows) + 1, np.int64), memory.empty(len(text) if len(places) else 0, np.uint8)
        segments, rest = joined.divide(
            text,
            offsets,
            rows.valid,
            slots.per_document,
            slots.start,
            slots.stop,
            places,
            self._two_forms,
            self._joins,
            joined.ASCII_KINDS,
            flags("number"),
            flags("space"),
            kinds,
            ends[1:],
            begins,
            stops,
            spaced,
            document_segments,
            delicate_text,
        )
        delicate_text = delicate_text[:rest]
        kinds, starts = kinds[:segments], ends[: segments + 1]
        ids, id_offsets = _gigatoken_ids(self._bare if self._joins else self._complete, text, starts)
        rest_starts = memory.offsets_of(np.diff(starts)[kinds == joined.DELICATE])
        rest_ids, rest_offsets = self._delicate_ids(delicate_text, rest_starts)
        out = memory.empty(len(ids) + len(rest_ids) + len(slots.plain), np.int32)
        out_offsets, positions = memory.empty(len(rows) + 1, np.int64), memory.empty(count, np.int64)
        filled, ok = joined.splice(
            kinds,
            document_segments,
            starts,
            begins,
            stops,
            spaced,
            ids,
            id_offsets,
            rest_ids,
            rest_offsets,
            self.widths if self._joins else self.widths[:0],
            slots.plain,
            slots.spaced,
            slots.offsets,
            out,
            out_offsets,
            positions,
        )
        if not ok:
            raise NumtokError(
                "gigatoken did not keep numbers apart from the text; use engine='tokenizers' and please report this tokenizer"
            )
        return Encoded(out[:filled], out_offsets, positions, spaced)

    def has_unsafe(self, rows: TextRows) -> npt.NDArray[np.bool_]:
        """bool[rows]: whether the normalizer may change the row."""
        places = joined.delicate_places(rows.text[: int(rows.offsets[-1])], False, flags("nfc_unsafe"))
        counts = np.searchsorted(places, rows.offsets)
        return np.asarray(np.diff(counts) > 0)

    def _delicate_places(self, text: npt.NDArray[np.uint8]) -> Ints:
        places: Ints = joined.delicate_places(text, self._joins and self._runs_of_spaces, self._unsafe if self._joins else self._newer)
        if self._joins and self._added:
            places = np.sort(np.concatenate([places, [match.start() for match in self._added.finditer(text.data)]])).astype(np.int64)
        return places

    def _delicate_ids(self, text: npt.NDArray[np.uint8], starts: Ints) -> tuple[npt.NDArray[np.uint32], Ints]:
        """(ids, offsets) of delicate pieces in one buffer, those by ``tokenizers`` that hold characters newer than its Unicode data."""
        ids, offsets = _gigatoken_ids(self._complete, text, starts)
        newer = joined.delicate_places(text, False, self._newer)
        if not len(newer):
            return ids, offsets
        rows = np.split(ids, offsets[1:-1])
        which = np.unique(np.searchsorted(starts, newer, "right") - 1).tolist()
        pieces = [text[starts[row] : starts[row + 1]].tobytes().decode() for row in which]
        for row, slow in zip(which, self.slow.encode_text(pieces), strict=True):
            rows[row] = np.array(slow, np.uint32)
        return np.concatenate(rows), memory.offsets_of(np.array([len(row) for row in rows], np.int64))


def _gigatoken_ids(tokenizer: Any, text: npt.NDArray[np.uint8], offsets: Ints) -> tuple[npt.NDArray[np.uint32], Ints]:
    """(ids, offsets) of documents in one buffer, without copying it."""
    import awkward as ak

    if len(text) <= SMALL_TEXT:  # lists then cost less than awkward arrays
        data = text.tobytes()
        lists = tokenizer.encode_batch_list([data[a:b] for a, b in itertools.pairwise(offsets.tolist())], parallel=False)
        ids = np.fromiter(itertools.chain.from_iterable(lists), np.uint32)
        return ids, memory.offsets_of(np.fromiter(map(len, lists), np.int64, len(lists)))
    characters = ak.contents.NumpyArray(text, parameters={"__array__": "char"})
    documents = ak.contents.ListOffsetArray(ak.index.Index64(offsets), characters, parameters={"__array__": "string"})
    layout = tokenizer.encode_batch(ak.Array(documents), parallel=False).layout
    return np.asarray(layout.content.data), np.asarray(layout.offsets.data)


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
