"""A tokenizer trained anew on the text between numbers, which take no part in its vocabulary.

In: a tokenizer with numbers, and batches of texts. Out: the source's kind of tokenizer, trained as
    transformers trains it, without numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import tokenizers
from transformers import PreTrainedTokenizerFast

from numtok.arrays.text_rows import TextRows
from numtok.hf.general import with_backend
from numtok.hf.marks import with_numbers_in_place
from numtok.tokenizer.tokenizer import Tokenizer


def without_number_tokens(
    tokenizer: PreTrainedTokenizerFast, numtok: Tokenizer
) -> PreTrainedTokenizerFast:
    """A stock tokenizer, the same but for the number tokens and settings."""
    config = json.loads(tokenizer.backend_tokenizer.to_str())
    added = config["added_tokens"]
    config["added_tokens"] = [one for one in added if one["content"] not in numtok.own_tokens]
    stock = with_backend(tokenizer, tokenizers.Tokenizer.from_str(json.dumps(config)))
    options = tokenizer.init_kwargs
    stock.init_kwargs = {name: options[name] for name in options if name != "number_settings"}
    return stock


def between_numbers(batches: Iterable[Any], numtok: Tokenizer) -> Iterator[list[str]]:
    """The pieces of each batch's texts."""
    for batch in batches:
        texts = [batch] if isinstance(batch, str) else list(batch)
        rows = TextRows.of(texts)
        numbers = numtok.finder.numbers(rows)
        yield [piece for text in with_numbers_in_place(texts, numbers) for piece in text.between()]
