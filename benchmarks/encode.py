"""Text to token ids and number tensors: ``Tokenizer.encode_batch`` beside tokenizers that ignore
numbers, and the usual recipe.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import awkward as ak
import gigatoken
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import tokenizers

import numtok
from benchmarks.corpus import Corpus
from benchmarks.recipe import Recipe
from benchmarks.timing import Goal, Section, WrongResult, alternate, check

CHECKED_BYTES = 2_000_000  # bytes of text that slow references check
GPT2_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

Peer = Callable[[], object]


def run(corpus: Corpus) -> Section:
    """Check and time ``encode_batch`` beside its peers."""
    section = Section("Text to token ids with [NUM] and number tensors, one thread")
    bits = numtok.Tokenizer.from_pretrained(corpus.tokenizer, numbers=[numtok.FloatBits()])
    scaled = numtok.Tokenizer.from_pretrained(corpus.tokenizer, numbers=[numtok.XVal()])
    section.checks += [check_encoding(bits, corpus), check_encoding(scaled, corpus)]
    ours, plain = "numtok encode_batch, FloatBits", "tokenizers.encode_batch_fast, no numbers"
    fast: dict[str, Peer] = {
        ours: lambda: bits.encode_batch(corpus.column),
        "numtok encode_batch, XVal": lambda: scaled.encode_batch(corpus.column),
    }
    if bits.engine.name == "gigatoken":
        raw = gigatoken_alone(corpus)
        section.checks.append(check_gigatoken(raw, corpus))
        fast["gigatoken alone, no numbers"] = raw
    else:
        section.notes.append(
            f"the engine is {bits.engine.name}: gigatoken does not take this tokenizer"
        )
    section.add(alternate(fast, corpus.budget(6)), corpus.megabytes, ours)

    library = tokenizers.Tokenizer.from_file(str(corpus.tokenizer))
    recipe = Recipe(corpus.tokenizer)
    slow: dict[str, Peer] = {
        ours: fast[ours],
        plain: lambda: library.encode_batch_fast(corpus.texts, add_special_tokens=False),
        "usual recipe: re, float, tokenizers, bits": lambda: recipe(corpus.texts),
    }
    try:
        slow["tiktoken.encode_ordinary_batch, no numbers"] = tiktoken_alone(corpus)
    except (ImportError, WrongResult) as error:
        section.notes.append(f"tiktoken is left out: {error}")
    timings = alternate(slow, corpus.budget(25))
    ratio = timings[plain].over(timings[ours])
    section.add(timings, corpus.megabytes, ours)
    section.goals.append(
        Goal("encode_batch against tokenizers on the raw text", ratio, 40, 80, "x")
    )
    return section


def gigatoken_alone(corpus: Corpus) -> Callable[[], Any]:
    """Return a function that encodes the raw text, Arrow's buffer without a copy, as fast as
    gigatoken can.
    """
    tokenizer = gigatoken.Tokenizer.from_json(corpus.tokenizer.read_text("utf-8"))
    _, offsets, data = corpus.column.buffers()
    characters = ak.contents.NumpyArray(
        np.frombuffer(data, np.uint8), parameters={"__array__": "char"}
    )
    rows = ak.contents.ListOffsetArray(
        ak.index.Index64(np.frombuffer(offsets, np.int64)),
        characters,
        parameters={"__array__": "string"},
    )
    return lambda: tokenizer.encode_batch(ak.Array(rows), parallel=False)


def check_gigatoken(raw: Callable[[], Any], corpus: Corpus) -> str:
    """Compare gigatoken's ids of the first raw documents with those of ``tokenizers``."""
    texts = _few(corpus)
    library = tokenizers.Tokenizer.from_file(str(corpus.tokenizer))
    expected = [
        encoding.ids for encoding in library.encode_batch_fast(texts, add_special_tokens=False)
    ]
    check(
        raw()[: len(texts)].to_list() == expected,
        "gigatoken alone gives other ids than tokenizers on the raw text",
    )
    return f"gigatoken alone: the ids of {len(texts):,} raw documents equal those of tokenizers"


def tiktoken_alone(corpus: Corpus) -> Peer:
    """Return a function that encodes by tiktoken with the same vocabulary, without normalizer and
    added tokens, for which tiktoken has no equivalent.

    Raises:
        WrongResult: if tiktoken cannot represent the tokenizer.
    """
    import tiktoken

    config = json.loads(corpus.tokenizer.read_text("utf-8"))
    vocabulary, byte_of = config["model"]["vocab"], _bytes_of_characters()
    order = [
        vocabulary["".join(pair.split(" ") if isinstance(pair, str) else pair)]
        for pair in config["model"]["merges"]
    ]
    check(order == sorted(order), "its ids are not in the order of the merges")
    ranks = {
        bytes(byte_of[c] for c in token): number
        for token, number in vocabulary.items()
        if all(c in byte_of for c in token)
    }
    encoding = tiktoken.Encoding(
        "same vocabulary", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={}
    )
    bare = tokenizers.Tokenizer.from_str(
        json.dumps(config | {"added_tokens": [], "normalizer": None, "post_processor": None})
    )
    texts = _few(corpus)
    expected = [one.ids for one in bare.encode_batch_fast(texts, add_special_tokens=False)]
    check(
        encoding.encode_ordinary_batch(texts, num_threads=1) == expected,
        "it gives other ids than tokenizers",
    )
    return lambda: encoding.encode_ordinary_batch(corpus.texts, num_threads=1)


def _bytes_of_characters() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for: itself if it
    prints, else U+0100 and up, in order.
    """
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {
        chr(256 + k): byte for k, byte in enumerate(hidden)
    }


def check_encoding(tokenizer: numtok.Tokenizer, corpus: Corpus) -> str:
    """Check that ids are those of ``tokenizers`` with [NUM] for each number, that values are those
    of the numbers, and that decoding returns every byte.
    """
    texts = _few(corpus)
    batch = tokenizer.encode_batch(texts, keep_text=True)
    check(
        tokenizer.decode_batch(batch).to_pylist() == texts,
        "decode_batch does not give the texts back",
    )
    fast = tokenizer.encode_batch(corpus.column)
    check(
        fast.column("input_ids")[: len(texts)].equals(batch.column("input_ids")),
        "keep_text=True changes the ids",
    )
    expected = contract(tokenizer, texts)
    encoded = batch.column("input_ids").to_pylist()
    for document, (ids, wanted) in enumerate(zip(encoded, expected, strict=True)):
        check(
            wanted is None or ids == wanted,
            f"document {document}: the ids are not those of tokenizers with [NUM] for each number",
        )
    numbers_as_text = batch.column("number_text").flatten()
    literals = pc.replace_substring(pc.replace_substring(numbers_as_text, ",", ""), "\u2212", "-")
    plain = pc.match_substring_regex(literals, r"^[-+]?[0-9]+(\.[0-9]+)?$")
    values = pc.cast(literals.filter(plain).cast(pa.string()), pa.float32()).to_numpy(
        zero_copy_only=False
    )
    is_plain = plain.to_numpy(zero_copy_only=False)
    encoding = numtok.Encoding(batch)
    tensors = {"number_bits": lambda: _bits(values), "number_scaled": lambda: values}
    for name in set(tensors) & set(batch.schema.names):
        check(
            np.array_equal(encoding[name][is_plain], tensors[name]()),
            f"{name} is not what the numbers' text says",
        )
    compared = sum(wanted is not None for wanted in expected)
    kinds = ", ".join(type(one).__name__ for one in tokenizer.representations)
    summary = (
        f"ids of {compared:,} documents equal the contract, tensors of {len(values):,} numbers"
        " their text, bytes come back"
    )
    return f"{kinds}, {tokenizer.engine.name}: {summary}"


def _bits(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Return the bits of float32 values, uint8 [n, 32], the most significant first."""
    return np.unpackbits(values.astype(">f4").view(np.uint8)).reshape(-1, 32)


def contract(tokenizer: numtok.Tokenizer, texts: list[str]) -> list[list[int] | None]:
    """Return the ids of ``tokenizers`` for texts with the added token [NUM] in place of each
    number; None for a text that has [NUM] itself, or a number that a representation cannot hold.
    """
    library = tokenizers.Tokenizer.from_str(json.dumps(tokenizer.config))
    library.encode_special_tokens = True
    numbers = numtok.scan(texts, tokenizer.grammar)
    not_held = set(numbers.document[_not_held(tokenizer, numbers)].tolist())
    spans_of_texts: list[list[tuple[int, int]]] = [[] for _ in texts]
    for document, start, stop in zip(
        numbers.document.tolist(), numbers.start.tolist(), numbers.stop.tolist(), strict=True
    ):
        spans_of_texts[document].append((start, stop))
    written = []
    for text, spans in zip(texts, spans_of_texts, strict=True):
        data, pieces, end = text.encode(), [], 0
        for start, stop in spans:
            pieces += [data[end:start], b"[NUM]"]
            end = stop
        written.append(b"".join([*pieces, data[end:]]).decode())
    encodings = library.encode_batch_fast(written, add_special_tokens=False)
    skipped = [document in not_held or "[NUM]" in text for document, text in enumerate(texts)]
    return [
        None if skip else encoding.ids for skip, encoding in zip(skipped, encodings, strict=True)
    ]


def _not_held(tokenizer: numtok.Tokenizer, numbers: numtok.Numbers) -> npt.NDArray[np.bool_]:
    """Return which numbers stay text, as a representation cannot hold them: bool [n]."""
    return ~functools.reduce(
        np.logical_and, [one.fits(numbers) for one in tokenizer.representations]
    )


def _few(corpus: Corpus) -> list[str]:
    """Return the first documents, for the slower checks."""
    limit, count = CHECKED_BYTES // 10 if corpus.quick else CHECKED_BYTES, 0
    while count < len(corpus.texts) and limit > 0:
        limit -= len(corpus.texts[count])
        count += 1
    return corpus.texts[:count]
