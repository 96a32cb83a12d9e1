"""``--tokenizer-mode numtok``: texts to ids and back for vLLM, numbers whole.

vLLM decodes a stream by comparing the text of its last tokens with and without the new one; here
there is none while :class:`numtok.DecodeStream` has not settled it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

from numtok import DecodeStream
from numtok.errors import TokenizerError
from numtok.hf import NumberTokenizer
from numtok.tokenizer.packing import end_token
from numtok_vllm.number_ids import LAST, NumberIds, check_saved

LONGEST = 400  # characters of a number that is one token


class Token(str):
    """The text of a token, with its id."""

    id: int


class NumtokTokenizer:
    """A tokenizer for vLLM, of a folder that numtok saved or exported.

    Whatever vLLM does not ask for is that of :class:`numtok.hf.NumberTokenizer`, such as chat templates. It is not derived
    from it, as vLLM would then decode streams by the ``tokenizer.json`` alone.
    """

    is_fast = True  # its text needs no special tokens put in

    def __init__(self, inner: NumberTokenizer) -> None:
        self.inner, self.numtok = inner, inner.numtok
        self.numbers = NumberIds(self.numtok)
        added = self.numtok.config["added_tokens"]
        self._special = {token["id"] for token in added if token["special"]}
        self.eos_token_id = inner.eos_token_id
        if self.eos_token_id is None:
            with contextlib.suppress(TokenizerError):
                self.eos_token_id = end_token(self.numtok)

    @classmethod
    def from_pretrained(cls, path_or_repo_id: Any, *args: Any, **options: Any) -> NumtokTokenizer:
        """Load a folder on disk; of the options of vLLM, only the side on which prompts are cut."""
        check_saved(path_or_repo_id)
        inner = NumberTokenizer.from_pretrained(path_or_repo_id)
        inner.truncation_side = options.get("truncation_side", inner.truncation_side)
        return cls(inner)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # while it is copied
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def max_token_id(self) -> int:
        """The largest id that may come."""
        return LAST if self.numbers.tokens else self.numtok.vocab_size - 1

    def __len__(self) -> int:
        return self.max_token_id + 1

    @functools.cached_property
    def max_chars_per_token(self) -> int:
        """The most characters of a token, by which vLLM refuses texts that must be too long."""
        return max(LONGEST, *map(len, self.inner.get_vocab()))

    def __call__(self, text: Any, **options: Any) -> Any:
        """Encode as the drop-in does, with the value of a number in its id."""
        if not self.numbers.tokens:
            return self.inner(text, **options)
        if not isinstance(text, str):
            rows = [self(one, **options) for one in text]
            return type(rows[0])({name: [row[name] for row in rows] for name in rows[0]})
        found = self.inner(text, **options, return_numbers=True)
        kept = {
            name: found[name]
            for name in ("input_ids", "attention_mask", "offset_mapping")
            if name in found
        }
        for at, is_number in enumerate(found["number_mask"]):
            if is_number:
                value = repr(found["number_value"][at])
                kept["input_ids"][at] = self.numbers.pack(kept["input_ids"][at], value)
        return type(found)(kept)

    def encode(self, text: str, **options: Any) -> list[int]:
        """Return the ids of one text."""
        ids: list[int] = self(text, **options)["input_ids"]
        return ids

    def decode(self, ids: Sequence[int] | int, skip_special_tokens: bool = False) -> str:
        """Return the text of ids; a number without a value shows as ``[NUM]``."""
        kept = [ids] if isinstance(ids, int) else list(ids)
        tokens = self.convert_ids_to_tokens(kept, skip_special_tokens)
        return self.numtok.decode(*self._read(tokens))

    def _read(self, tokens: Sequence[Token]) -> tuple[list[int], list[str] | None]:
        """Return the ids of tokens, and the values of numbers that have one; None for none."""
        both = [self.numbers.unpack(token.id) for token in tokens]
        return [one for one, _ in both], [value for _, value in both if value is not None] or None

    def convert_ids_to_tokens(
        self, ids: Sequence[int], skip_special_tokens: bool = False
    ) -> list[Token]:
        """Return the tokens of ids, each of which knows its id."""
        tokens = []
        for one in ids:
            if not (skip_special_tokens and one in self._special):
                plain, value = self.numbers.unpack(one)
                name = value or self.inner.convert_ids_to_tokens(plain) or ""
                tokens.append(Token(name))
                tokens[-1].id = one
        return tokens

    def convert_tokens_to_string(self, tokens: Sequence[Token]) -> str:
        """Return the text of tokens; none while it ends within a number or a character."""
        ids, values = self._read(tokens)
        if values is not None:  # vLLM waits for the end of a character itself
            return self.numtok.decode(ids, values)
        return DecodeStream().step(self.numtok, ids) or ""
