"""Keep what numtok makes of one state of a ``tokenizers`` backend, until the backend changes; and
turn ids back to text.

In: a backend and numtok's settings. Out: the numtok tokenizer, the copies of the backend with
    placeholders, and what was found out about them. All of it is made on demand, belongs in the
    tokenizer's ``cache``, and is left behind when the backend changes.

Decoding puts numbers in: each is decoded as one placeholder, a character that nothing else decodes
to, which is then replaced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast

from numtok.arrays.cached import cached_property
from numtok.engines.hf_tokenizers import library
from numtok.errors import NumtokError
from numtok.hf.placeholders import Placeholders, with_backend
from numtok.representations import SingleToken
from numtok.tokenizer.tokenizer import Tokenizer

# no decimal digit lies between those of ASCII and the Arabic ones
MAY_BE_DIGIT = re.compile("[0-9\u0660-\U0010ffff]")
BRACKET = re.compile(r"\[/?NUM")  # how the names of numtok's own tokens begin
MOST_CACHED = 2  # copies of a backend, each with other placeholders
PROBE = "\ufb01\u200bA"  # NFKC, NMT, case


@dataclass
class BackendState:
    """The numtok tokenizer made from a backend, valid until the backend changes."""

    numtok: Tokenizer  # the tokenizer; its engine is made when it is first needed
    post_processor: Any  # its state at that time
    # the last copies of the backend with placeholders
    cached: list[Placeholders] = field(default_factory=list)
    characters: int = 0  # how many were encoded in batches that may take the quick way

    @cached_property
    def numbers_stay(self) -> bool:
        """Whether numbers are ordinary text."""
        return self.numtok.representations[0].stays_text

    @cached_property
    def one_token(self) -> bool:
        """Whether a number is one token, ``[NUM]``."""
        return isinstance(self.numtok.representations[0], SingleToken)

    def may_hold_number(self, texts: Sequence[str]) -> bool:
        """Whether one of the texts may hold a number; False is certain."""
        return any(map(MAY_BE_DIGIT.search, texts)) or self.numtok.grammar.pattern is not None

    def contains_reserved_token(self, texts: Sequence[str]) -> bool:
        """Whether a text has the name of one of numtok's tokens, which is to stay text."""
        return any(map(self._names.search, texts))

    @cached_property
    def _names(self) -> re.Pattern[str]:
        """The pattern of how names of numtok's tokens begin, and of symbols that the vocabulary
        lacked, such as ``E`` where text is made lower case.
        """
        symbols = (one for one in self.numtok.own_tokens if not BRACKET.match(one.lstrip()))
        return re.compile("|".join([BRACKET.pattern, *map(re.escape, symbols)]))

    def placeholders_for(self, texts: Sequence[str]) -> Placeholders:
        """Return placeholders that do not occur in the texts."""
        for placeholders in self.cached:
            if not placeholders.occur_in(texts):
                return placeholders
        self.cached[MOST_CACHED - 1 :] = []
        self.cached.insert(0, Placeholders(self.numtok, texts))
        return self.cached[0]


def state_of(part: Any) -> Any:
    """Return the state of a part of a ``tokenizers.Tokenizer``, to compare parts by."""
    return None if part is None else part.__getstate__()


def _normalizer_state(normalizer: Any) -> Any:
    """Return the state of a normalizer. The tables of SentencePiece take half a millisecond to
    write out, so the normalized form of some characters stands for them.
    """
    kinds = library().normalizers
    if type(normalizer) is kinds.Precompiled:
        return normalizer.normalize_str(PROBE)
    if type(normalizer) is kinds.Sequence:  # not iterated, which ends in an exception
        return [_normalizer_state(normalizer[k]) for k in range(len(normalizer))]
    return state_of(normalizer)


def key_of(backend: Any) -> tuple[Any, ...]:
    """Return a key that is equal as long as nothing changes that ids depend on, except the
    vocabulary and the post-processor.
    """
    parts = state_of(backend.pre_tokenizer), state_of(backend.decoder)
    return (_normalizer_state(backend.normalizer), *parts)


def decode_row(
    tokenizer: PreTrainedTokenizerFast,
    state: BackendState,
    token_ids: Any,
    values: Any,
    options: dict[str, Any],
) -> str:
    """Decode one row of ids. ``values`` are as :meth:`numtok.hf.NumberTokenizer.decode` takes them,
    ``options`` those of the base class. InputError if there are neither as many values as ids nor
    as many as numbers.
    """
    ids = token_ids["input_ids"] if isinstance(token_ids, dict) else token_ids
    ids = [ids] if isinstance(ids, int) else ids
    numbers = find_in_ids(state.numtok, ids, values)
    if numbers is None:
        return str(PreTrainedTokenizerFast._decode(tokenizer, token_ids, **options))
    (kept, surfaces), read = numbers, [""]
    for _ in range(2):  # again with others, if the decoded text has some of the placeholders itself
        placeholders = state.placeholders_for(read)
        shown = [placeholders.any_id if token is None else token for token in kept]
        read = [with_backend(tokenizer, placeholders.tokenizer)._decode(shown, **options)]
        texts = placeholders.texts_between(read[0], len(surfaces))
        if texts is not None:
            return state.numtok.decoder.join(texts, surfaces)
    raise NumtokError(
        f"the ids do not hold the {len(surfaces)} number tokens they should; please report"
        " this tokenizer"
    )


def find_in_ids(
    numtok: Tokenizer, ids: Sequence[int], values: Sequence[float] | None
) -> tuple[list[int | None], list[str]] | None:
    """Find the numbers in ids that a model may have made, and return (ids in which each number is
    one token, the text of every token in them that has a placeholder); None if there is no number.
    None stands for a number that has no token of its own. InputError if there are neither as many
    values as ids nor as many as numbers.
    """
    size = numtok.vocab_size
    flat = np.array([number if 0 <= number < size else -1 for number in ids], np.int32)
    numbers = numtok.decoder.apart(flat)
    in_text = numbers is not None  # tokens of the text, which have no placeholders
    if numbers is None:
        numbers = numtok.numbers_in(flat, None if values is None else list(values))
    if not numbers:
        return None
    contents = {number: content.lstrip(" ") for content, number in numtok.own_tokens.items()}
    kept: list[int | None] = []
    surfaces: list[str] = []
    at = 0
    for position, stop, surface in [*numbers, (len(ids), len(ids), "")]:
        kept += [*ids[at:position], None] if in_text else ids[at : position + 1]
        surfaces += [contents[number] for number in ids[at:position] if number in contents]
        surfaces += [surface] * (position < len(ids))
        at = stop
    return kept[:-1] if in_text else kept, surfaces
