"""The engine for every tokenizer: Hugging Face's ``tokenizers``, with a placeholder for each
number.

The placeholder is a private-use character that the text does not hold. A text may hold any of them
(fonts of icons do), so it is chosen for each text.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.cached import cached_property
from numtok.arrays.text_rows import TextRows
from numtok.engines.chunks import (
    BEGIN,
    BEHIND,
    Prefix,
    Tokens,
    chunks_between,
    interleave,
    marked,
)
from numtok.engines.config import (
    Config,
    ordinary_token,
    tokenizer_errors,
    vocabulary_of,
    without_numbers,
)
from numtok.engines.engine import Encoded, Ints, Mask, NumtokTokens, Slots
from numtok.engines.hf_tokenizers import complete_library, flat_ids, load
from numtok.engines.vocabulary_rows import with_rows_in_text
from numtok.errors import InputError, NumtokError, TokenizerError
from numtok.numbers.numbers import Numbers

# planes 16 and 15, then the one that texts do hold now and then
RANGES = ((0x10_0000, 0x10_FFFE), (0xF_0000, 0xF_FFFE), (0xE000, 0xF900))
MOST_KEPT = 4  # tokenizers, each with another placeholder

CodePoints = npt.NDArray[np.int64]


class TokenizersEngine:
    """Every tokenizer, by Hugging Face's ``tokenizers``: exact by construction, as each number is
    an added token of the very same tokenizer. The placeholder of numbers that are tokens of the
    text is a row of the vocabulary where an added token would change the text around it.
    """

    name = "tokenizers"

    def __init__(self, config: Config, tokens: NumtokTokens, parse_special: bool = False) -> None:
        self.tokens = tokens
        self._config, self._parse_special = config, parse_special
        self._by_placeholder: dict[str, Any] = {}
        # what cannot be loaded fails here, not at the first text
        self._tokenizer(self._usual_character)

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        chunks = chunks_between(rows, slots, two_forms=False)
        text, placeholder = chunks.text.tobytes(), self._usual_character
        if placeholder.encode() in text:
            placeholder = self._character_beside(used_in(text.decode()))
        text = marked(chunks, Prefix()).tobytes()
        text = text.replace(bytes([BEHIND]), placeholder.encode())
        texts = [row.decode() for row in text.split(bytes([BEGIN]))[1:]]
        tokenizer = self._tokenizer(placeholder)
        unspaced, spaced_token = _placeholder_ids(tokenizer, placeholder)
        with tokenizer_errors("tokenizers cannot encode with it"):
            encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        flat, id_offsets = flat_ids(encodings)
        places = np.flatnonzero((flat == unspaced) | (flat == spaced_token))
        if len(places) != len(slots.start):
            raise NumtokError(
                f"the tokenizer returned {len(places)} number tokens for {len(slots.start)}"
                " numbers; please report this tokenizer"
            )
        spaced = flat[places] == spaced_token
        if len(slots.unspaced) == len(places):  # every number is one token
            flat[places] = np.where(spaced, slots.spaced, slots.unspaced)
            return Encoded(flat, id_offsets, places, spaced)
        ends = np.sort(np.concatenate([id_offsets[1:], places]))  # of the chunks between
        ends -= np.searchsorted(places, ends)
        between = Tokens(np.delete(flat, places).view(np.uint32), np.concatenate([[0], ends]))
        return interleave(between, spaced, slots)

    def texts_between(self, ids: list[int], count: int) -> list[str]:
        """Return the text of ids before, between and after their ``count`` number tokens. Special
        tokens are left out of the text only by the decoder itself. NumtokError if the ids do not
        hold as many number tokens.
        """
        placeholder = self._usual_character
        text = self._decoded(ids, placeholder)
        if text.count(placeholder) != count:  # the text itself has it
            placeholder = self._character_beside(used_in(text))
            text = self._decoded(ids, placeholder)
        texts = text.split(placeholder)
        if len(texts) != count + 1:
            raise NumtokError(
                f"the ids hold {len(texts) - 1} number tokens where there are {count} numbers"
            )
        return texts

    @cached_property
    def drops_spaces(self) -> bool:
        """Whether the ids do not tell if a space stands before a number."""
        tokenizer = self._tokenizer(self._usual_character)
        texts = [f"a {self._usual_character}", f"a{self._usual_character}"]
        spaced, unspaced = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return bool(spaced.ids == unspaced.ids)

    def _decoded(self, ids: list[int], placeholder: str) -> str:
        """Return the text of ids, with the character in place of each number."""
        tokenizer = self._tokenizer(placeholder)
        unspaced, spaced = _placeholder_ids(tokenizer, placeholder)
        renamed = {self.tokens.unspaced: unspaced, self.tokens.spaced: spaced}
        source_ids = [renamed.get(token, token) for token in ids]
        with tokenizer_errors("tokenizers cannot decode with it"):
            return str(tokenizer.decode(source_ids, skip_special_tokens=False))

    def special_prefix_and_suffix(self) -> tuple[list[int], list[int]]:
        """Return the ids that the post-processor puts before and after a text."""
        encode = self._tokenizer(self._usual_character).encode
        ids, framed = (encode("a", add_special_tokens=special).ids for special in (False, True))
        starts = range(len(framed) - len(ids) + 1)
        begins = [start for start in starts if framed[start : start + len(ids)] == ids]
        if not ids or len(begins) != 1:
            raise TokenizerError(
                "the tokenizer gives no token for 'a' that is told from its special tokens, so"
                " their places are unknown"
            )
        return framed[: begins[0]], framed[begins[0] + len(ids) :]

    def first_tokens(self, encoded: Encoded, numbers: Numbers, wanted: Mask | None = None) -> Ints:
        """Find the tokens by the characters that they cover, by encoding the rows again."""
        complete_library("telling in which token a number of ordinary text begins")
        tokenizer = self._tokenizer(self._usual_character)
        asked = np.diff(numbers.per_document()) > 0
        if wanted is not None:
            asked &= wanted
        spans = np.zeros((len(encoded.ids), 2), np.int64)
        for row in np.flatnonzero(asked).tolist():
            encoding = tokenizer.encode(numbers.rows.array[row].as_py(), add_special_tokens=False)
            of_row = slice(encoded.offsets[row], encoded.offsets[row + 1])
            spans[of_row] = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        first, last = int(numbers.rows.offsets[0]), int(numbers.rows.offsets[-1])
        # characters that begin before each byte of the rows, and the byte at which each row begins
        characters = memory.offsets_of((numbers.rows.text[first:last] & 0xC0) != 0x80)
        row_starts = numbers.rows.offsets[numbers.document] - first
        starts = characters[row_starts + numbers.start] - characters[row_starts]
        stops = np.where(spans[:, 0] < spans[:, 1], spans[:, 1], 0)
        return encoded.tokens_at(starts, numbers.document, stops)

    @cached_property
    def _used_in_tokens(self) -> CodePoints:
        return used_in_tokens(self._config)

    @cached_property
    def _usual_character(self) -> str:
        """Return a private-use character that no token holds."""
        return chr(int(unused(self._used_in_tokens)[0]))

    def _character_beside(self, used: CodePoints) -> str:
        """Return a private-use character that occurs neither in a token nor in the text."""
        if ord(self._usual_character) not in used:
            return self._usual_character
        return chr(int(unused(np.union1d(self._used_in_tokens, used))[0]))

    def _tokenizer(self, placeholder: str) -> Any:
        """Return the tokenizer that has this placeholder for numbers; some are kept."""
        if (kept := self._by_placeholder.get(placeholder)) is not None:
            return kept
        config = without_numbers(self._config, self.tokens, parse_special=True)
        last = max((token["id"] for token in config["added_tokens"]), default=-1)
        in_text = with_rows_in_text(config, [placeholder]) if self.tokens.as_text else None
        config = in_text or config | {"added_tokens": self._added_tokens(placeholder, last)}
        with tokenizer_errors("tokenizers cannot load it"):
            tokenizer = load(config)
        tokenizer.encode_special_tokens = not self._parse_special
        # a hostile text should not fill the memory; other threads may do the same meanwhile
        for oldest in list(self._by_placeholder)[: 1 - MOST_KEPT]:
            self._by_placeholder.pop(oldest, None)
        self._by_placeholder[placeholder] = tokenizer
        return tokenizer

    def _added_tokens(self, placeholder: str, last: int) -> list[Config]:
        """Return the added tokens with the placeholder for our tokens; ``last`` is the largest id
        of the source's.

        As `tokenizers` numbers them anew, the reserved ones before that stay, under a name with a
        noncharacter, which no text has. Those after them, perhaps tens of thousands, are left out,
        so that the placeholders may get other ids than they have. Numbers that are tokens of the
        text have no added token: their placeholder comes last.
        """
        contents = {self.tokens.unspaced: placeholder, self.tokens.spaced: " " + placeholder}
        reserved = set(self.tokens.reserved)
        added = []
        for token in self._config["added_tokens"]:
            number = token["id"]
            if number in contents:
                added.append(token | {"content": contents[number]})
            elif number not in reserved:
                added.append(token)
            elif number < last:
                added.append(token | {"content": f"{placeholder}\ufdd0{number}"})
        if self.tokens.as_text:
            added.append(ordinary_token(self.tokens.unspaced, placeholder))
        return added


def _placeholder_ids(tokenizer: Any, placeholder: str) -> tuple[int, int]:
    """Return the ids of the placeholder and of its form with a space; -1 if there is none."""
    ids = (tokenizer.token_to_id(form) for form in (placeholder, " " + placeholder))
    unspaced, spaced = (-1 if number is None else int(number) for number in ids)
    return unspaced, spaced


@functools.cache
def _all() -> CodePoints:
    """Return every private-use character, in the order of preference."""
    return np.concatenate([np.arange(first, last) for first, last in RANGES])


def used_in(text: str) -> CodePoints:
    """Return the code points from U+E000 on in a text; ascending, each once."""
    if text.isascii():
        return np.empty(0, np.int64)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.unique(codes[codes >= 0xE000]).astype(np.int64)


def used_in_tokens(config: dict[str, Any]) -> CodePoints:
    """Return the code points from U+E000 on in the vocabulary and the added tokens of a
    tokenizer.json.
    """
    added = (token["content"] for token in config.get("added_tokens") or [])
    return used_in("".join([*vocabulary_of(config), *added]))


def unused(used: CodePoints, count: int = 1) -> CodePoints:
    """Return ``count`` private-use characters not in ``used``; InputError if there are too few."""
    free = _all()[~np.isin(_all(), used)] if len(used) else _all()
    if len(free) < count:
        raise InputError(
            f"the texts hold {len(_all()) - len(free)} of the {len(_all())} private-use characters"
            f" of Unicode, and {count} are needed to stand in for numbers; take the texts in"
            " smaller batches, or replace such characters"
        )
    return free[:count]
