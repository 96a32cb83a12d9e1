"""Text to token ids and number tensors: ``Tokenizer.encode_batch`` beside tokenizers that know
nothing of numbers, and the usual recipe.
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
from benchmarks.timing import Goal, Row, Section, Timing, WrongResult, alternate, check, seconds_of

CHECKED_BYTES = 2_000_000  # of text, by the slower references
GPT2_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

Peer = Callable[[], object]


def run(corpus: Corpus) -> Section:
    """``encode_batch`` beside everything else."""
    section = Section("Text to token ids with [NUM] and number tensors, one thread")
    bits = numtok.Tokenizer.from_pretrained(corpus.tokenizer, numbers=[numtok.FloatBits()])
    scaled = numtok.Tokenizer.from_pretrained(corpus.tokenizer, numbers=[numtok.XVal()])
    section.checks.append(check_encoding(bits, corpus))
    section.checks.append(check_encoding(scaled, corpus))
    ours, ours_scaled = "numtok encode_batch, FloatBits", "numtok encode_batch, XVal"
    alone, plain = "gigatoken alone, no numbers", "tokenizers.encode_batch_fast, no numbers"
    encode: dict[str, Peer] = {
        ours: lambda: bits.encode_batch(corpus.column),
        ours_scaled: lambda: scaled.encode_batch(corpus.column),
    }

    raw = gigatoken_alone(corpus)
    if bits.engine.name == "gigatoken":
        section.checks.append(check_gigatoken(raw, corpus))
        timings = alternate(encode | {alone: raw}, corpus.budget(6))
        section.add(timings, corpus.megabytes, ours)
        for name, what in ((ours, "FloatBits"), (ours_scaled, "XVal")):
            cost = timings[name].over(timings[alone])
            section.goals.append(
                Goal(
                    f"cost of numbers, {what}: time over gigatoken's alone",
                    cost,
                    1.6,
                    1.2,
                    "x",
                    True,
                )
            )
    else:
        section.notes.append(
            f"the engine is {bits.engine.name}: gigatoken does not take this tokenizer"
        )

    library = tokenizers.Tokenizer.from_file(str(corpus.tokenizer))
    recipe = Recipe(corpus.tokenizer)
    slow: dict[str, Peer] = {
        ours: encode[ours],
        plain: lambda: library.encode_batch_fast(corpus.texts, add_special_tokens=False),
        "usual recipe: re, float, tokenizers, bits": lambda: recipe(corpus.texts),
    }
    try:
        slow["tiktoken.encode_ordinary_batch, no numbers"] = tiktoken_alone(corpus)
    except (ImportError, WrongResult) as error:
        section.notes.append(f"tiktoken is left out: {error}")
    timings = alternate(slow, corpus.budget(25))
    section.rows += [
        row for row in _rows(timings, corpus, ours) if row.name != ours or not section.rows
    ]
    section.goals.append(
        Goal(
            "encode_batch against tokenizers on the raw text",
            timings[plain].over(timings[ours]),
            40,
            80,
            "x",
        )
    )
    return section


def run_fallback(corpus: Corpus) -> Section:
    """The engine for every tokenizer, beside the library that it calls."""
    section = Section(
        "The engine `tokenizers`, for tokenizers that gigatoken does not take, one thread"
    )
    tokenizer = numtok.Tokenizer.from_pretrained(
        corpus.tokenizer, numbers=[numtok.FloatBits()], engine="tokenizers"
    )
    section.checks.append(check_encoding(tokenizer, corpus))
    library = tokenizers.Tokenizer.from_file(str(corpus.tokenizer))
    ours, plain = (
        "numtok encode_batch, engine='tokenizers'",
        "tokenizers.encode_batch_fast, ids in Python lists",
    )
    timings = alternate(
        {
            ours: lambda: tokenizer.encode_batch(corpus.column),
            plain: lambda: [
                encoding.ids
                for encoding in library.encode_batch_fast(corpus.texts, add_special_tokens=False)
            ],
        },
        corpus.budget(15),
    )
    unseen = numtok.Tokenizer.from_pretrained(
        corpus.tokenizer, numbers=[numtok.FloatBits()], engine="tokenizers"
    )
    first = Timing((seconds_of(lambda: unseen.encode_batch(corpus.column)),))
    section.add(timings, corpus.megabytes, ours)
    section.rows.append(
        Row(
            f"{ours}, all words new to it",
            first,
            corpus.megabytes,
            "MB",
            first.median / timings[ours].median,
        )
    )
    section.goals.append(
        Goal(
            "engine='tokenizers' against the library that it calls",
            timings[plain].over(timings[ours]),
            0.9,
            1,
            "x",
        )
    )
    section.goals.append(
        Goal(
            "the same on text whose words are all new to it",
            timings[plain].median / first.median,
            0.9,
            1,
            "x",
        )
    )
    return section


def _rows(timings: dict[str, Any], corpus: Corpus, ours: str) -> list[Any]:
    section = Section("")
    section.add(timings, corpus.megabytes, ours)
    return section.rows


def gigatoken_alone(corpus: Corpus) -> Callable[[], Any]:
    """Encode the raw text, taken from Arrow's buffer without a copy, the quickest way there is."""
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
    """The peer itself gives the ids of ``tokenizers``."""
    few = _few(corpus)
    library = tokenizers.Tokenizer.from_file(str(corpus.tokenizer))
    expected = [
        encoding.ids for encoding in library.encode_batch_fast(few, add_special_tokens=False)
    ]
    check(
        raw()[: len(few)].to_list() == expected,
        "gigatoken alone gives other ids than tokenizers on the raw text",
    )
    return f"gigatoken alone: the ids of {len(few):,} raw documents equal those of tokenizers"


def tiktoken_alone(corpus: Corpus) -> Peer:
    """Encode by tiktoken with the same vocabulary, without normaliser and added tokens, which it
    has no like of.

    Raises:
        WrongResult: if the tokenizer is not one that tiktoken can stand in for.
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
    few = _few(corpus)
    expected = [one.ids for one in bare.encode_batch_fast(few, add_special_tokens=False)]
    check(
        encoding.encode_ordinary_batch(few, num_threads=1) == expected,
        "it gives other ids than tokenizers",
    )
    return lambda: encoding.encode_ordinary_batch(corpus.texts, num_threads=1)


def _bytes_of_characters() -> dict[str, int]:
    """The byte that each character of a byte-level vocabulary stands for: itself if it prints, else
    U+0100 and up, in order.
    """
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {
        chr(256 + k): byte for k, byte in enumerate(hidden)
    }


def check_encoding(tokenizer: numtok.Tokenizer, corpus: Corpus) -> str:
    """Ids are what the contract says, values are those of the numbers, and decoding gives every
    byte back.
    """
    few = _few(corpus)
    batch = tokenizer.encode_batch(few, keep_text=True)
    check(
        tokenizer.decode_batch(batch).to_pylist() == few,
        "decode_batch does not give the texts back",
    )
    fast = tokenizer.encode_batch(corpus.column)
    check(
        fast.column("input_ids")[: len(few)].equals(batch.column("input_ids")),
        "keep_text=True changes the ids",
    )
    expected = contract(tokenizer, few)
    given = batch.column("input_ids").to_pylist()
    for document, (ours, theirs) in enumerate(zip(given, expected, strict=True)):
        check(
            theirs is None or ours == theirs,
            f"document {document}: the ids are not those of tokenizers with [NUM] for each number",
        )
    texts = batch.column("number_text").flatten()
    literals = pc.replace_substring(pc.replace_substring(texts, ",", ""), "\u2212", "-")
    plain = pc.match_substring_regex(literals, r"^[-+]?[0-9]+(\.[0-9]+)?$")
    values = pc.cast(literals.filter(plain).cast(pa.string()), pa.float32()).to_numpy(
        zero_copy_only=False
    )
    which = plain.to_numpy(zero_copy_only=False)
    encoding = numtok.Encoding(batch)
    tensors = {"number_bits": lambda: _bits(values), "number_scaled": lambda: values}
    for name in set(tensors) & set(batch.schema.names):
        check(
            np.array_equal(encoding[name][which], tensors[name]()),
            f"{name} is not what the numbers' text says",
        )
    compared = sum(theirs is not None for theirs in expected)
    kinds = ", ".join(type(one).__name__ for one in tokenizer.representations)
    found = (
        f"ids of {compared:,} documents equal the contract, tensors of {len(values):,} numbers"
        " their text, bytes come back"
    )
    return f"{kinds}, {tokenizer.engine.name}: {found}"


def _bits(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    return np.unpackbits(values.astype(">f4").view(np.uint8)).reshape(-1, 32)


def contract(tokenizer: numtok.Tokenizer, texts: list[str]) -> list[list[int] | None]:
    """The ids that ``tokenizers`` gives to the texts with [NUM], an added token, written for each
    number.

    None for a text that has [NUM] itself, or a number that a representation cannot hold.
    """
    library = tokenizers.Tokenizer.from_str(json.dumps(tokenizer.config))
    library.encode_special_tokens = True
    numbers = numtok.scan(texts, tokenizer.grammar)
    left = set(numbers.document[_not_held(tokenizer, numbers)].tolist())
    places: list[list[tuple[int, int]]] = [[] for _ in texts]
    for document, start, stop in zip(
        numbers.document.tolist(), numbers.start.tolist(), numbers.stop.tolist(), strict=True
    ):
        places[document].append((start, stop))
    written = []
    for text, spans in zip(texts, places, strict=True):
        data, pieces, at = text.encode(), [], 0
        for start, stop in spans:
            pieces += [data[at:start], b"[NUM]"]
            at = stop
        written.append(b"".join([*pieces, data[at:]]).decode())
    encodings = library.encode_batch_fast(written, add_special_tokens=False)
    skipped = [document in left or "[NUM]" in text for document, text in enumerate(texts)]
    return [
        None if skip else encoding.ids for skip, encoding in zip(skipped, encodings, strict=True)
    ]


def _not_held(tokenizer: numtok.Tokenizer, numbers: numtok.Numbers) -> npt.NDArray[np.bool_]:
    """Numbers that stay text, as a representation cannot hold them."""
    return ~functools.reduce(
        np.logical_and, [one.fits(numbers) for one in tokenizer.representations]
    )


def _few(corpus: Corpus) -> list[str]:
    """The first documents, for the slower checks."""
    limit, count = CHECKED_BYTES // 10 if corpus.quick else CHECKED_BYTES, 0
    while count < len(corpus.texts) and limit > 0:
        limit -= len(corpus.texts[count])
        count += 1
    return corpus.texts[:count]
