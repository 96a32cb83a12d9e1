"""The engine for every tokenizer: Hugging Face's ``tokenizers``, with a stand-in character for each number.

Exact by construction, as each number is an added token of the very same tokenizer. The stand-in is a character that does not occur in the text.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa

from numtok.arrays.kernels import allocating_kernel
from numtok.arrays.text_rows import TextRows
from numtok.engines.interface import Config, Encoded, NumberTokens, Slots, without_numbers
from numtok.engines.private_use import CodePoints, unused, used_in, used_in_tokens
from numtok.engines.rust import tokenizer_errors
from numtok.engines.tokenizer_json import to_json
from numtok.errors import NumtokError, TokenizerError

MOST_KEPT = 4  # tokenizers, each with another stand-in


class TokenizersEngine:
    """Every tokenizer, by Hugging Face's ``tokenizers``: exact by construction, as each number is an added token of the very same tokenizer."""

    name = "tokenizers"

    def __init__(self, config: Config, tokens: NumberTokens, parse_special: bool = False) -> None:
        self.tokens = tokens
        self._config, self._parse_special = config, parse_special
        self._by_sentinel: dict[str, Any] = {}
        self._tokenizer(self._usual_character)  # what cannot be loaded fails here, not at the first text

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        sentinel = self._character_beside(used_in(rows.text[int(rows.offsets[0]) : int(rows.offsets[-1])]))
        needle = np.frombuffer(sentinel.encode(), np.uint8)
        buffer, offsets = _replace(rows.text, rows.offsets, rows.valid, slots.document, slots.start, slots.stop, needle)
        texts = pa.LargeStringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(buffer)).to_pylist()
        tokenizer = self._tokenizer(sentinel)
        plain, spaced_token = _stand_ins(tokenizer, sentinel)
        with tokenizer_errors("tokenizers cannot encode with it"):
            encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        lists = [encoding.ids for encoding in encodings]
        id_offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in lists])]).astype(np.int64)
        flat = np.fromiter((token for ids in lists for token in ids), np.int32, int(id_offsets[-1]))
        spaced_form = flat == spaced_token
        places = np.flatnonzero((flat == plain) | spaced_form)
        if len(places) != len(slots.document):
            raise NumtokError(
                f"the tokenizer returned {len(places)} number tokens for {len(slots.document)} numbers; please report this tokenizer"
            )
        spaced = spaced_form[places]
        ids, offsets_out, positions = _insert(flat, id_offsets, places, np.where(spaced, 1, 0), slots.plain, slots.spaced, slots.offsets)
        return Encoded(ids, offsets_out, positions, spaced)

    def encode_text(self, texts: list[str]) -> list[list[int]]:
        """Ids of texts without numbers."""
        tokenizer = self._tokenizer(self._character_beside(used_in("".join(texts))))
        with tokenizer_errors("tokenizers cannot encode with it"):
            return [encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def decode(self, ids: list[int], numbers: list[str]) -> str:
        """Text of ids; the number tokens, in order, become ``numbers``. Special tokens are left out of the text only by the decoder itself.

        Raises:
            NumtokError: if the ids do not hold as many number tokens.
        """
        sentinel = self._usual_character
        text = self._decoded(ids, sentinel)
        if text.count(sentinel) != len(numbers):  # the text itself has it
            sentinel = self._character_beside(used_in(text))
            text = self._decoded(ids, sentinel)
        pieces = text.split(sentinel)
        if len(pieces) != len(numbers) + 1:
            raise NumtokError(f"the ids hold {len(pieces) - 1} number tokens where there are {len(numbers)} numbers")
        return "".join(piece + number for piece, number in zip(pieces, [*numbers, ""], strict=True))

    def _decoded(self, ids: list[int], sentinel: str) -> str:
        """Text of ids, with the character in place of each number."""
        tokenizer = self._tokenizer(sentinel)
        renamed = dict(zip((self.tokens.plain, self.tokens.spaced), _stand_ins(tokenizer, sentinel), strict=True))
        with tokenizer_errors("tokenizers cannot decode with it"):
            return str(tokenizer.decode([renamed.get(token, token) for token in ids], skip_special_tokens=False))

    def special_frame(self) -> tuple[list[int], list[int]]:
        """Ids that the post-processor puts before and after a text."""
        encoding = self._tokenizer(self._usual_character).encode("a", add_special_tokens=True)
        inside = [k for k, special in enumerate(encoding.special_tokens_mask) if not special]
        if not inside:
            raise TokenizerError("the tokenizer gives no token for 'a', so the places of its special tokens cannot be told")
        return encoding.ids[: inside[0]], encoding.ids[inside[-1] + 1 :]

    def first_tokens(self, text: str, characters: list[int]) -> list[int]:
        """The token in which each character lies; for a character without one, the next that has."""
        encoding = self._tokenizer(self._usual_character).encode(text, add_special_tokens=False)
        found = []
        for character in characters:
            token = None
            while token is None and character < len(text):
                token = encoding.char_to_token(character)
                character += 1
            found.append(len(encoding.ids) - 1 if token is None else token)
        return found

    @functools.cached_property
    def _used_in_tokens(self) -> CodePoints:
        return used_in_tokens(self._config)

    @functools.cached_property
    def _usual_character(self) -> str:
        """A private-use character that no token holds."""
        return chr(int(unused(self._used_in_tokens)[0]))

    def _character_beside(self, used: CodePoints) -> str:
        """Likewise, and not among those used in a text."""
        if ord(self._usual_character) not in used:
            return self._usual_character
        return chr(int(unused(np.union1d(self._used_in_tokens, used))[0]))

    def _tokenizer(self, sentinel: str) -> Any:
        if sentinel not in self._by_sentinel:
            import tokenizers

            config = without_numbers(self._config, self.tokens, parse_special=True)
            config["added_tokens"] = self._added_tokens(sentinel, max((token["id"] for token in config["added_tokens"]), default=-1))
            with tokenizer_errors("tokenizers cannot load it"):
                tokenizer = tokenizers.Tokenizer.from_str(to_json(config))
            tokenizer.encode_special_tokens = not self._parse_special
            if len(self._by_sentinel) >= MOST_KEPT:  # a hostile text should not fill the memory
                del self._by_sentinel[next(iter(self._by_sentinel))]
            self._by_sentinel[sentinel] = tokenizer
        return self._by_sentinel[sentinel]

    def _added_tokens(self, sentinel: str, last: int) -> list[Config]:
        """The added tokens with the sentinel for our stand-ins; ``last`` is the largest id of the source's.

        As `tokenizers` numbers them anew, the hidden ones before that stay, under a name with a noncharacter, which no text has. Those behind,
        tens of thousands perhaps, are left out, so that the stand-ins may get other ids than they have.
        """
        contents = {self.tokens.plain: sentinel, self.tokens.spaced: " " + sentinel}
        hidden = set(self.tokens.hidden)
        found = []
        for token in self._config["added_tokens"]:
            number = token["id"]
            if number in contents:
                found.append(token | {"content": contents[number]})
            elif number not in hidden:
                found.append(token)
            elif number < last:
                found.append(token | {"content": f"{sentinel}\ufdd0{number}"})
        return found


def _stand_ins(tokenizer: Any, sentinel: str) -> tuple[int, int]:
    """Ids of the sentinel and of its form with a space; -1 if there is none."""
    ids = (tokenizer.token_to_id(form) for form in (sentinel, " " + sentinel))
    plain, spaced = (-1 if number is None else int(number) for number in ids)
    return plain, spaced


@allocating_kernel
def _replace(text, offsets, valid, document, start, stop, needle):  # type: ignore[no-untyped-def]
    """(buffer, offsets) of the text with every slot replaced by ``needle``; null rows become empty."""
    rows = offsets.size - 1
    out = np.empty(offsets[-1] - offsets[0] + document.size * needle.size, np.uint8)
    out_offsets = np.empty(rows + 1, np.int64)
    out_offsets[0] = 0
    filled, slot = 0, 0
    for row in range(rows):
        at = offsets[row]
        end = offsets[row + 1] if valid[row] else at
        while slot < document.size and document[slot] == row:
            for k in range(at, offsets[row] + start[slot]):
                out[filled] = text[k]
                filled += 1
            for k in range(needle.size):
                out[filled] = needle[k]
                filled += 1
            at = offsets[row] + stop[slot]
            slot += 1
        for k in range(at, end):
            out[filled] = text[k]
            filled += 1
        out_offsets[row + 1] = filled
    return out[:filled], out_offsets


@allocating_kernel
def _insert(ids, offsets, places, form, plain, spaced, insert_offsets):  # type: ignore[no-untyped-def]
    """``ids`` with the one id at each place replaced by that slot's ids; (ids, offsets, positions)."""
    out = np.empty(ids.size - places.size + plain.size, np.int32)
    out_offsets = np.empty(offsets.size, np.int64)
    out_offsets[0] = 0
    positions = np.empty(places.size, np.int64)
    filled, slot = 0, 0
    for row in range(offsets.size - 1):
        for k in range(offsets[row], offsets[row + 1]):
            if slot < places.size and places[slot] == k:
                positions[slot] = filled
                for m in range(insert_offsets[slot], insert_offsets[slot + 1]):
                    out[filled] = spaced[m] if form[slot] else plain[m]
                    filled += 1
                slot += 1
            else:
                out[filled] = ids[k]
                filled += 1
        out_offsets[row + 1] = filled
    return out, out_offsets, positions
