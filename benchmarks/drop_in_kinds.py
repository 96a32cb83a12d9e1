"""The drop-in tokenizer beside the plain fast tokenizer that it was made from, for every kind of
tokenizer, each in a process of its own, and every way to call one.
"""

from __future__ import annotations

import itertools
import multiprocessing
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numtok
from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Section, alternate, check

BULK = 400_000  # characters of text for the calls of large batches
PAGES, SENTENCES = 20, 200
SHORT = 100  # characters of a sentence
SHAPES = (  # short texts of all shapes
    "The mass is 12 kg",
    "-1.5e3 kg",
    "-3.5 \u00b0C at 12:30 on 2020-01-02",
    "In 2019, the company sold 1,234 units at $5.99 each.",
    "\uff12 \u00bd 3 and [NUM]",
    "<extra_id_0> 5 kg",
    "a text without numbers",
)
NEW = 40_000  # texts with different numbers, more than a tokenizer caches
SENTENCE = re.compile(r"[^.\n]{30,100}\.(?= |$)")


class Budget(NamedTuple):
    """Speed relative to the plain tokenizer, (floor, aim), of each way to call."""

    bulk: tuple[float, float]
    streams: tuple[float, float]
    offsets: tuple[float, float]
    page: tuple[float, float]
    sentence: tuple[float, float] = (0.3, 0.6)


LONGER = Budget._fields  # ways that are timed for longer than one shape
BYTE_LEVEL = Budget((10, 30), (8, 15), (2, 7), (0.9, 5))
OTHERS = Budget((1, 6), (1, 5), (1, 2), (0.8, 2))
BUDGETS = {
    "GPT-2": BYTE_LEVEL,
    "GPT-NeoX": BYTE_LEVEL,
    "RoBERTa": BYTE_LEVEL,
    "BERT": OTHERS,
    "T5": OTHERS,
    "Phi-3": OTHERS,
}


def run(corpus: Corpus) -> Section:
    """Check and time every kind of tokenizer."""
    section = Section("The drop-in and the plain fast tokenizer, every kind, one thread")
    try:
        from benchmarks import drop_in_tokenizers
        from numtok.hf import NumberTokenizer  # noqa: F401  # fails without transformers
    except ImportError as error:
        section.error = f"left out: {error}; pip install '.[hf]'"
        return section
    kinds = list(drop_in_tokenizers.builders())[:: 3 if corpus.quick else 1]
    # in one process, a kind would be timed with a heap that others have fragmented
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        for one in pool.map(_timed, kinds, itertools.repeat(corpus)):
            section.checks += one.checks
            section.rows += one.rows
            section.goals += one.goals
    return section


def _timed(kind: str, corpus: Corpus) -> Section:
    """Return the checks and timings of one kind."""
    from transformers import PreTrainedTokenizerFast

    from benchmarks import drop_in_tokenizers
    from numtok.hf import NumberTokenizer

    section = Section(kind)
    texts, sentences = _texts(corpus)
    plain = PreTrainedTokenizerFast(tokenizer_object=drop_in_tokenizers.builders()[kind](corpus))
    ours = NumberTokenizer.from_tokenizer(plain, numbers=[numtok.XVal()])
    if not corpus.quick:
        ours(texts)  # enough text for its engine
    section.checks.append(_check_same(kind, ours, plain, texts, sentences))
    _compare(section, kind, corpus, _ways(ours, plain, texts, sentences) | _shapes(ours, plain))
    digits = NumberTokenizer.from_tokenizer(plain, numbers=[numtok.Digits(1)])
    _compare(section, f"{kind}, Digits(1)", corpus, _shapes(digits, plain))
    scientific = NumberTokenizer.from_tokenizer(plain, numbers=[numtok.P1000()])
    _compare(section, f"{kind}, P1000()", corpus, _new_numbers(scientific, plain))
    return section


def _texts(corpus: Corpus) -> tuple[list[str], list[str]]:
    """Return documents to encode at once, and short sentences with a number."""
    texts, count = [], 0
    for text in corpus.texts:
        texts.append(text)
        count += len(text)
        if count > (BULK // 50 if corpus.quick else BULK):
            break
    stripped = (match.group().strip() for text in texts for match in SENTENCE.finditer(text))
    with_numbers = [sentence for sentence in stripped if len(numtok.scan([sentence]))]
    return texts, (with_numbers or [text[:SHORT] for text in texts])[:SENTENCES]


Pair = tuple[Callable[[], object], Callable[[], object]]  # by numtok, by the plain tokenizer


def _ways(ours: Any, plain: Any, texts: list[str], sentences: list[str]) -> dict[str, Pair]:
    """Return both calls of every way to call a tokenizer, by its name."""
    pages = texts[:PAGES]
    return {
        "bulk": (lambda: ours(texts), lambda: plain(texts)),
        "streams": (lambda: ours(texts, return_numbers=True), lambda: plain(texts)),
        "offsets": (
            lambda: ours(texts, return_offsets_mapping=True),
            lambda: plain(texts, return_offsets_mapping=True),
        ),
        "page": (_one_by_one(ours, pages), _one_by_one(plain, pages)),
        "sentence": (_one_by_one(ours, sentences), _one_by_one(plain, sentences)),
    }


def _shapes(ours: Any, plain: Any) -> dict[str, Pair]:
    """Return both calls with one short text alone, for each shape."""
    shapes = {
        text: (_one_by_one(ours, [text] * 50), _one_by_one(plain, [text] * 50)) for text in SHAPES
    }
    return shapes | _new_numbers(ours, plain)


def _new_numbers(ours: Any, plain: Any) -> dict[str, Pair]:
    """Return both calls with short texts that each have another number."""
    texts = [f"The mass is {number / 100} kg" for number in range(NEW)]
    one, other = itertools.cycle(texts), itertools.cycle(texts)
    return {
        "new": (
            lambda: [ours(next(one)) for _ in range(50)],
            lambda: [plain(next(other)) for _ in range(50)],
        )
    }


def _one_by_one(tokenizer: Any, texts: list[str]) -> Callable[[], object]:
    """Return a call that encodes texts one by one."""
    return lambda: [tokenizer(text) for text in texts]


LABELS = {
    "bulk": "tokenizer(texts)",
    "streams": "with number streams",
    "offsets": "with offsets",
    "page": "one page at a time",
    "sentence": "one short sentence at a time",
    "new": "a number never met",
}


def _compare(section: Section, kind: str, corpus: Corpus, ways: dict[str, Pair]) -> None:
    """Time numtok and the plain tokenizer in turns, and add rows and budgets."""
    for way, (ours, plain) in ways.items():
        label = LABELS.get(way, f"{way!r} alone")
        name, other = f"{kind}, numtok, {label}", f"{kind}, plain, {label}"
        timings = alternate({name: ours, other: plain}, corpus.budget(3 if way in LONGER else 1))
        section.add(timings, 0, name)
        floor, aim = getattr(BUDGETS[kind.split(",")[0]], way if way in LONGER else "sentence")
        section.goals.append(
            Goal(
                f"drop-in over plain, {kind}, {label}",
                timings[other].over(timings[name]),
                floor,
                aim,
                "x",
            )
        )


def _check_same(kind: str, ours: Any, plain: Any, texts: list[str], sentences: list[str]) -> str:
    """Check that text without numbers has the ids and offsets of the plain tokenizer, and that
    every way of calling gives the same.
    """
    few = texts[:20]
    bare = [re.sub(r"\d+", "", text) for text in few]
    for options in ({}, {"return_offsets_mapping": True}):
        check(
            dict(ours(bare, **options)) == dict(plain(bare, **options)),
            f"{kind}: text without numbers is encoded in another way",
        )
    whole = ours(texts, return_offsets_mapping=True, return_numbers=True)
    for k in range(len(few)):
        alone = ours(few[k], return_offsets_mapping=True, return_numbers=True)
        check(
            all(whole[name][k] == alone[name] for name in alone),
            f"{kind}: text {k} alone is encoded in another way",
        )
    check(ours(texts)["input_ids"] == whole["input_ids"], f"{kind}: offsets change the ids")
    check(
        ours(sentences)["input_ids"] == [ours(one)["input_ids"] for one in sentences],
        f"{kind}: a sentence alone has other ids",
    )
    return (
        f"{kind}: {len(few)} documents alone and at once, and {len(sentences)} sentences; without"
        " numbers as plain"
    )
