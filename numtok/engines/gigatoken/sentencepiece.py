"""SentencePiece BPE (Llama 2, Mistral, Phi-3) by gigatoken, with the ids of ``tokenizers``.

A control character stands in for each number, and between two rows. The vocabulary lacks it, so the
tokenizer writes the token of its byte, which no merge knows: the text beside it is encoded as
beside an added token. Where an added token would have the tokenizer put a space before the text
behind it, or a row before its first word, that space is written.

In and out: as every engine (:mod:`numtok.engines.engine`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from numtok.arrays.text_rows import TextRows
from numtok.engines.chunks import Prefix, Tokens, chunks_between, interleave, marked
from numtok.engines.config import Config, steps_of, without_numbers
from numtok.engines.engine import Encoded, Engine, Ints, Mask, NumtokTokens, Slots
from numtok.engines.gigatoken.pool import find_first_tokens, pool_of, widths_of
from numtok.errors import NumtokError, TokenizerError
from numtok.numbers.numbers import Numbers

MARK = "\u2581"  # what SentencePiece writes for a space
TO_MARK = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
PREPEND = {"type": "Prepend", "prepend": MARK}
UNUSUAL = ("dropout", "ignore_merges", "continuing_subword_prefix", "end_of_word_suffix")
BYTE = re.compile("<0x([0-9A-F]{2})>")
CONTROLS = [byte for byte in range(1, 0x20) if byte not in b"\t\n\r"]


class SentencePieceEngine:
    """SentencePiece BPE by gigatoken; TokenizerError if it cannot encode the tokenizer exactly.

    ``unread``: names of added tokens, and the stand-in: rows that hold one are not to be encoded
    with this engine. ``slow`` returns the engine that tells where tokens stand.
    """

    name = "gigatoken"

    def __init__(self, config: Config, tokens: NumtokTokens, slow: Callable[[], Engine]) -> None:
        self._prefix = _prefix_of(config, tokens.as_text)
        self._pool = pool_of(config | {"added_tokens": [], "post_processor": None})
        stand_in = _stand_in(config)
        vocabulary = config["model"]["vocab"]
        self._stand_in, self._id = stand_in, vocabulary[f"<0x{stand_in:02X}>"]
        bytes_of = {number: _bytes_of(token) for token, number in vocabulary.items()}
        self._widths = widths_of(bytes_of)
        added = without_numbers(config, tokens, parse_special=True)["added_tokens"]
        self.unread = [*(token["content"].encode() for token in added), bytes([stand_in])]
        self._slow = slow

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        chunks = chunks_between(rows, slots, two_forms=False)
        count = len(chunks.spans)
        text = marked(chunks, self._prefix, self._stand_in, self._stand_in)
        ids = self._pool.tokens(text, np.array([0, len(text)])).ids
        at = np.flatnonzero(ids == self._id)
        if len(at) != count:
            raise NumtokError(
                "gigatoken did not keep numbers apart from the text; use engine='tokenizers'"
                " (--engine tokenizers) and please report this tokenizer"
            )
        between = ids[at[0] :] if count else ids
        between = between[between != self._id]
        offsets = np.append(at - at[:1] - np.arange(count), len(between))
        return interleave(Tokens(between, offsets), chunks.spaced, slots)

    def first_tokens(self, encoded: Encoded, numbers: Numbers, wanted: Mask | None = None) -> Ints:
        """Find the tokens by their bytes, with the space before the row, which belongs to the first
        character.
        """
        rows, prefix = numbers.rows, np.int64(self._prefix.row)
        starts = numbers.start + prefix * (numbers.start > 0)
        sizes = np.diff(rows.offsets) + prefix
        return find_first_tokens(encoded, numbers, starts, sizes, self._widths, self._slow, wanted)


def _prefix_of(config: Config, as_text: bool) -> Prefix:
    """Return where spaces are put; TokenizerError for other tokenizers than those of the module."""
    model = config["model"]
    if model.get("type") != "BPE" or not model.get("byte_fallback") or any(map(model.get, UNUSUAL)):
        raise TokenizerError(
            f"it is neither byte-level nor SentencePiece BPE but {model.get('type')}"
        )
    normalizers = steps_of(config.get("normalizer"), "normalizers")
    steps = steps_of(config.get("pre_tokenizer"), "pretokenizers")
    if not steps and normalizers in ([TO_MARK], [PREPEND, TO_MARK]):
        prepends = PREPEND in normalizers
        return Prefix(prepends, prepends and not as_text, True, as_text)
    schemes = [step.get("prepend_scheme") for step in steps if step["type"] == "Metaspace"]
    if normalizers or len(steps) != 1 or schemes not in (["first"], ["always"], ["never"]):
        raise TokenizerError("its normalizer and pre-tokenizer are not those of SentencePiece BPE")
    always = schemes == ["always"]
    return Prefix(schemes != ["never"], always and not as_text, False, as_text)


def _stand_in(config: Config) -> int:
    """Return a control character that is written as the token of its byte, beside any text."""
    model = config["model"]
    merged = "\n".join("".join(pair).replace(" ", "") for pair in model["merges"])
    for byte in CONTROLS:
        token = f"<0x{byte:02X}>"
        if token in model["vocab"] and chr(byte) not in model["vocab"] and token not in merged:
            return byte
    raise TokenizerError("it has no token for a control character that may stand in for numbers")


def _bytes_of(token: str) -> bytes:
    """Return the text of a token; of one that is a byte, that byte."""
    byte = BYTE.fullmatch(token)
    return bytes.fromhex(byte[1]) if byte else token.replace(MARK, " ").encode()
