"""The drop-in tokenizer beside the plain fast tokenizer that it was made from, for every kind of
tokenizer, each in a process of its own, and every way to call one. Half of the text is read before
the clock starts; documents and sentences that are timed are of the other half, as tokenizers cache
words.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numtok
from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Section, Timing, alternate, check, on_new_text

PARTS = 8  # of the text of each way to call, one for a turn
SENTENCES = 200  # in a part
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
CALLS = 50  # with short texts, in one turn
SENTENCE = re.compile(r"[^.\n]{30,100}\.(?= |$)")


class Budget(NamedTuple):
    """Speed relative to the plain tokenizer, (floor, aim), of each way to call."""

    bulk: tuple[float, float]
    streams: tuple[float, float]
    offsets: tuple[float, float]
    page: tuple[float, float]
    sentence: tuple[float, float] = (0.3, 0.6)


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
LABELS = {
    "bulk": "tokenizer(texts)",
    "streams": "with number streams",
    "offsets": "with offsets",
    "page": "one page at a time",
    "sentence": "one short sentence at a time",
}
OPTIONS: dict[str, dict[str, bool]] = {  # of the ways that take a list
    "bulk": {},
    "streams": {"return_numbers": True},
    "offsets": {"return_offsets_mapping": True},
}
PLAIN_WAYS = {"streams": "bulk"}  # the plain tokenizer has no number streams


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
    plain = PreTrainedTokenizerFast(tokenizer_object=drop_in_tokenizers.builders()[kind](corpus))
    ours = NumberTokenizer.from_tokenizer(plain, numbers=[numtok.XVal()])
    seen, new = corpus.texts[::2], corpus.texts[1::2] or corpus.texts
    parts = {way: _parts(new[k :: len(LABELS)] or new) for k, way in enumerate(LABELS)}
    parts["sentence"] = [_sentences(part) for part in parts["sentence"]]
    section.checks.append(_check_same(kind, ours, plain, seen[:20], _sentences(seen)))
    for tokenizer in (ours, plain):
        tokenizer(seen)
    for way, label in LABELS.items():
        timings = on_new_text(
            {
                "numtok": _each_part(_encode(ours, way), parts[way]),
                "plain": _each_part(_encode(plain, PLAIN_WAYS.get(way, way)), parts[way]),
            },
            PARTS,
            warm_up=1,
        )
        _add(section, kind, label, timings, getattr(BUDGETS[kind], way))
    _time_shapes(section, kind, corpus, ours, plain)
    for numbers, shapes in (("digits:1", SHAPES), ("p1000", ())):
        other = NumberTokenizer.from_tokenizer(plain, numbers=numbers)
        _time_shapes(section, f"{kind}, {numbers}", corpus, other, plain, shapes)
    return section


def _parts(texts: list[str]) -> list[list[str]]:
    """Return documents in parts of about the same size; all of them in each if they are few."""
    return [texts[k::PARTS] or texts for k in range(PARTS)]


def _sentences(texts: list[str]) -> list[str]:
    """Return the short sentences with a number of some documents; where there are none, the
    beginnings of the documents.
    """
    stripped = (match.group().strip() for text in texts for match in SENTENCE.finditer(text))
    with_numbers = [sentence for sentence in stripped if len(numtok.scan([sentence]))]
    return (with_numbers or [text[:SHORT] for text in texts])[:SENTENCES]


def _encode(tokenizer: Any, way: str) -> Callable[[list[str]], object]:
    """Return a way to encode texts."""
    if way in OPTIONS:
        return functools.partial(tokenizer, **OPTIONS[way])
    return functools.partial(_one_by_one, tokenizer)


def _each_part(
    encode: Callable[[list[str]], object], parts: list[list[str]]
) -> Callable[[int], object]:
    """Return a function that encodes the part of a number."""
    return lambda k: encode(parts[k])


def _one_by_one(tokenizer: Any, texts: Iterable[str]) -> list[object]:
    """Return what a tokenizer makes of each text alone."""
    return [tokenizer(text) for text in texts]


def _time_shapes(
    section: Section,
    kind: str,
    corpus: Corpus,
    ours: Any,
    plain: Any,
    shapes: Iterable[str] = SHAPES,
) -> None:
    """Time a short text alone, of every shape and with numbers never met, and add the rows."""
    cases = {f"{shape!r} alone": [shape] for shape in shapes}
    cases["a number never met"] = [f"The mass is {number / 100} kg" for number in range(NEW)]
    for label, texts in cases.items():
        calls = {}
        for name, tokenizer in (("numtok", ours), ("plain", plain)):
            some = functools.partial(itertools.islice, itertools.cycle(texts), CALLS)
            calls[name] = lambda one=tokenizer, some=some: _one_by_one(one, some())
        _add(section, kind, label, alternate(calls, corpus.budget(1)), BYTE_LEVEL.sentence)


def _add(
    section: Section,
    kind: str,
    label: str,
    timings: dict[str, Timing],
    budget: tuple[float, float],
) -> None:
    """Add both rows, and the budget."""
    named = {f"{kind}, {name}, {label}": timing for name, timing in timings.items()}
    section.add(named, 0, f"{kind}, numtok, {label}")
    ratio = timings["plain"].over(timings["numtok"])
    section.goals.append(Goal(f"drop-in over plain, {kind}, {label}", ratio, *budget, "x"))


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
