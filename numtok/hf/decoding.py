"""Ids to text, with the numbers put in: each is decoded as one placeholder, a character that nothing
else decodes to, which is then replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast

from numtok.errors import NumtokError
from numtok.hf.backend import BackendState
from numtok.hf.general import with_backend
from numtok.tokenizer.tokenizer import Tokenizer


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
        shown = [placeholders.any_id if token < 0 else token for token in kept]
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
) -> tuple[list[int], list[str]] | None:
    """Find the numbers in ids that a model may have made, and return (ids in which each number is
    one token, the text of every token in them that has a placeholder); None if there is no number.
    -1 stands for a number that has no token of its own. InputError if there are neither as many
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
    kept: list[int] = []
    surfaces: list[str] = []
    at = 0
    for position, stop, surface in [*numbers, (len(ids), len(ids), "")]:
        kept += [*ids[at:position], -1] if in_text else ids[at : position + 1]
        surfaces += [contents[number] for number in ids[at:position] if number in contents]
        surfaces += [surface] * (position < len(ids))
        at = stop
    return kept[:-1] if in_text else kept, surfaces
