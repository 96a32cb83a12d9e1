"""The drop-in tokenizer beside the plain fast tokenizer that it was made from: every kind of
tokenizer, each in a process of its own, every way to call one.
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
SHAPES = (  # of one short text
    "The mass is 12 kg",
    "-1.5e3 kg",
    "-3.5 \u00b0C at 12:30 on 2020-01-02",
    "In 2019, the company sold 1,234 units at $5.99 each.",
    "\uff12 \u00bd 3 and [NUM]",
    "<extra_id_0> 5 kg",
    "a text without numbers",
)
NEW = 40_000  # texts with numbers that a tokenizer never met, or has forgotten
SENTENCE = re.compile(r"[^.\n]{30,100}\.(?= |$)")


class Budget(NamedTuple):
    """How many times as fast as the plain tokenizer: (floor, aim) of each way to call."""

    bulk: tuple[float, float]
    streams: tuple[float, float]
    offsets: tuple[float, float]
    page: tuple[float, float]
    sentence: tuple[float, float] = (0.3, 0.6)


LONGER = Budget._fields  # ways that are timed for longer than a shape is
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
    """One row for each kind and way, and the budget of each."""
    section = Section("The drop-in and the plain fast tokenizer, every kind, one thread")
    try:
        from benchmarks import drop_in_tokenizers
        from numtok.hf import NumberTokenizer  # noqa: F401  # or transformers is not there
    except ImportError as error:
        section.error = f"left out: {error}; pip install '.[hf]'"
        return section
    kinds = list(drop_in_tokenizers.builders())[:: 3 if corpus.quick else 1]
    # In one process, a kind would be timed with the heap that others left in pieces.
    alone = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, alone, max_tasks_per_child=1) as pool:
        for one in pool.map(_timed, kinds, itertools.repeat(corpus)):
            section.checks += one.checks
            section.rows += one.rows
            section.goals += one.goals
    return section


def _timed(kind: str, corpus: Corpus) -> Section:
    """The rows of one kind."""
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
    spelled = NumberTokenizer.from_tokenizer(plain, numbers=[numtok.Digits(1)])
    _compare(section, f"{kind}, Digits(1)", corpus, _shapes(spelled, plain))
    written = NumberTokenizer.from_tokenizer(plain, numbers=[numtok.P1000()])
    _compare(section, f"{kind}, P1000()", corpus, _new_numbers(written, plain))
    return section


def _texts(corpus: Corpus) -> tuple[list[str], list[str]]:
    """Documents to take at once, and short sentences with a number in them."""
    texts, count = [], 0
    for text in corpus.texts:
        texts.append(text)
        count += len(text)
        if count > (BULK // 50 if corpus.quick else BULK):
            break
    found = (match.group().strip() for text in texts for match in SENTENCE.finditer(text))
    with_numbers = [sentence for sentence in found if len(numtok.scan([sentence]))]
    return texts, (with_numbers or [text[:SHORT] for text in texts])[:SENTENCES]


Pair = tuple[Callable[[], object], Callable[[], object]]


def _ways(ours: Any, plain: Any, texts: list[str], sentences: list[str]) -> dict[str, Pair]:
    """(numtok's, the plain tokenizer's) of every way to call."""

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
    """Likewise of one short text alone, of each shape."""
    shapes = {
        text: (_one_by_one(ours, [text] * 50), _one_by_one(plain, [text] * 50)) for text in SHAPES
    }
    return shapes | _new_numbers(ours, plain)


def _new_numbers(ours: Any, plain: Any) -> dict[str, Pair]:
    """Likewise of short texts, each with another number."""
    texts = [f"The mass is {number / 100} kg" for number in range(NEW)]
    one, other = itertools.cycle(texts), itertools.cycle(texts)
    return {
        "new": (
            lambda: [ours(next(one)) for _ in range(50)],
            lambda: [plain(next(other)) for _ in range(50)],
        )
    }


def _one_by_one(tokenizer: Any, few: list[str]) -> Callable[[], object]:
    return lambda: [tokenizer(text) for text in few]


SHOWN = {
    "bulk": "tokenizer(texts)",
    "streams": "with number streams",
    "offsets": "with offsets",
    "page": "one page at a time",
    "sentence": "one short sentence at a time",
    "new": "a number never met",
}


def _compare(section: Section, kind: str, corpus: Corpus, ways: dict[str, Pair]) -> None:
    """Time numtok and the plain tokenizer in turns."""
    for way, (ours, plain) in ways.items():
        shown = SHOWN.get(way, f"{way!r} alone")
        name, other = f"{kind}, numtok, {shown}", f"{kind}, plain, {shown}"
        timings = alternate({name: ours, other: plain}, corpus.budget(3 if way in LONGER else 1))
        section.add(timings, 0, name)
        floor, aim = getattr(BUDGETS[kind.split(",")[0]], way if way in LONGER else "sentence")
        section.goals.append(
            Goal(
                f"drop-in over plain, {kind}, {shown}",
                timings[other].over(timings[name]),
                floor,
                aim,
                "x",
            )
        )


def _check_same(kind: str, ours: Any, plain: Any, texts: list[str], sentences: list[str]) -> str:
    """Text without numbers has the ids and offsets of the plain tokenizer, and every way of calling
    gives the same.
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
