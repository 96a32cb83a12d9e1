"""Train a byte-level BPE tokenizer on text with its numbers taken out.

In: texts. Out: a tokenizer.json as a dict: GPT-2's pre-tokenizer and byte alphabet, no normalizer,
    one special token. Numbers, each with the space that its token takes along, and all other ASCII
    digits are cut out of the training text, so no merge spans a number and digits stay single-byte
    tokens.

The tokenizer inside the package (``numtok/default/tokenizer.json``) is made from 420 pages of
Wikipedia with::

    numtok train wiki.jsonl -o numtok/default --vocab-size 16000 --overwrite

Equal texts give equal files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from numtok.arrays.text_rows import TextRows
from numtok.engines.config import TOKENIZER_FILE
from numtok.engines.hf_tokenizers import complete_library
from numtok.errors import InputError, TokenizerError
from numtok.files import write_file
from numtok.numbers.grammar import Grammar, check_grammar
from numtok.numbers.scan import scan
from numtok.tokenizer.saving import refuse_to_replace

END_OF_TEXT = "<|endoftext|>"
SMALLEST = 257  # every byte and END_OF_TEXT
NOWHERE, SPACE = 0xFF, 0x20  # the first is no byte of UTF-8
_BATCH = 1000


def train_tokenizer(
    texts: Iterable[Any],
    vocab_size: int,
    *,
    grammar: Grammar | str | None = None,
    min_frequency: int = 2,
    progress: bool = False,
) -> dict[str, Any]:
    """Train a tokenizer.json, ready for :meth:`numtok.Tokenizer.from_pretrained` once saved, or for
    ``tokenizers.Tokenizer.from_str``.

    Args:
        texts: ``str``, or Arrow string arrays; nulls are left out.
        vocab_size: tokens in all; fewer if the text has no more pairs to merge.
        grammar: what counts as a number, or its name.
        min_frequency: how often a pair must occur to be merged.
        progress: let ``tokenizers`` draw its bar on stderr.

    Raises:
        TokenizerError: if ``vocab_size`` is below 257.
        InputError: if there is no text between the numbers, or texts are not text.
    """
    if vocab_size < SMALLEST:
        raise TokenizerError(
            f"vocab_size={vocab_size} is too small: the 256 bytes and {END_OF_TEXT} need {SMALLEST}"
        )
    tokenizers = complete_library("training a tokenizer")
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = byte_level(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(byte_level.alphabet()),
        show_progress=progress,
    )
    rules, trained_on = check_grammar(grammar), 0

    def chunks() -> Iterator[list[str]]:  # `tokenizers` does not tell that it was given nothing
        nonlocal trained_on
        for batch in _batches(texts):
            some = between_numbers(TextRows.of(batch), rules)
            trained_on += len(some)
            yield some

    tokenizer.train_from_iterator(chunks(), trainer)
    if not trained_on:
        raise InputError("there is no text to train on; give files with words in them")
    config: dict[str, Any] = json.loads(tokenizer.to_str())
    # a third smaller than pairs, and as clear: no byte-level token contains a space
    config["model"]["merges"] = [" ".join(merge) for merge in config["model"]["merges"]]
    return config


def save_tokenizer(config: dict[str, Any], folder: str | Path, overwrite: bool = False) -> Path:
    """Write ``tokenizer.json`` into ``folder``, compactly; returns its path. Beside it goes the
    ``tokenizer_config.json`` that tells transformers the end token.
    """
    refuse_to_replace(folder, overwrite)
    path = Path(folder) / TOKENIZER_FILE
    stock = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END_OF_TEXT}
    write_file(path, json.dumps(config, ensure_ascii=False, separators=(",", ":")) + "\n")
    write_file(path.with_name("tokenizer_config.json"), json.dumps(stock, indent=2) + "\n")
    return path


def _batches(texts: Iterable[Any]) -> Iterator[Any]:
    """Yield Arrow arrays as they are, single texts in lists."""
    pending: list[str] = []
    for item in texts:
        if isinstance(item, pa.Array | pa.ChunkedArray):
            yield item
            continue
        pending.append(item)
        if len(pending) == _BATCH:
            yield pending
            pending = []
    if pending:
        yield pending


def between_numbers(rows: TextRows, grammar: Grammar) -> list[str]:
    """Return the chunks of the texts between numbers, without the space before a number and without
    ASCII digits. Empty chunks are left out.
    """
    numbers = scan(rows, grammar)
    first, last = int(rows.offsets[0]), int(rows.offsets[-1])
    text = rows.text[first:last].copy()
    starts = rows.offsets[numbers.document] + numbers.start - first
    stops = rows.offsets[numbers.document] + numbers.stop - first
    starts -= (numbers.start > 0) & (text[np.maximum(starts - 1, 0)] == SPACE)
    change = np.zeros(len(text) + 1, np.int8)
    change[starts] += 1  # spans do not overlap, but one may begin where another ends
    np.subtract.at(change, stops, 1)
    taken_out = np.cumsum(change[:-1], dtype=np.int8) > 0
    text[taken_out | ((text >= 0x30) & (text <= 0x39))] = NOWHERE
    ended = np.insert(text, rows.offsets[1:] - first, NOWHERE).tobytes()
    return [chunk.decode() for chunk in ended.split(bytes([NOWHERE])) if chunk]
