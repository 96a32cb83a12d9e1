"""Text to exact numbers: ``numtok.scan`` beside loops over ``re`` and ``regex`` with a pattern of
nearly the same meaning, and beside its other grammars.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import regex

import numtok
from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Section, alternate, check
from benchmarks.world import worlds
from numtok.numbers.extract import read

# What numtok's grammar says, as far as one short expression goes: signs, digit groups, fractions,
# exponents, no digits within words.
LIKE = r"(?:(?<![\w)\]}%.+\-])[-+])?(?<![\w.])(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
BY_RE, BY_REGEX = re.compile(LIKE), regex.compile(LIKE)
ORACLE_BYTES = 500_000


def find(pattern: Any, texts: list[str]) -> list[list[str]]:
    """The numbers' surfaces: the least that such a loop does."""
    return [[match.group() for match in pattern.finditer(text)] for text in texts]


def find_floats(pattern: Any, texts: list[str]) -> list[list[float]]:
    """With their values, as the papers' code has them."""
    return [
        [float(match.group().replace(",", "")) for match in pattern.finditer(text)]
        for text in texts
    ]


def find_decimals(pattern: Any, texts: list[str]) -> list[list[Decimal]]:
    """With their exact values."""
    return [
        [Decimal(match.group().replace(",", "")) for match in pattern.finditer(text)]
        for text in texts
    ]


def run(corpus: Corpus) -> Section:
    """Compare, then time."""
    section = Section("Scan text to exact numbers, one thread")
    numbers = numtok.scan(corpus.column)
    section.checks.append(check_against_loop(numbers, corpus.texts))
    section.checks += check_against_expression(numbers, corpus)
    ours, plain = "numtok.scan", "re.finditer loop"
    texts = corpus.texts
    timings = alternate(
        {
            ours: lambda: numtok.scan(corpus.column),
            "numtok.scan and float64": lambda: numtok.scan(corpus.column).to_float64(),
            "numtok.scan of a list of str": lambda: numtok.scan(texts),
            plain: lambda: find(BY_RE, texts),
            "regex.finditer loop": lambda: find(BY_REGEX, texts),
            "re.finditer loop, float": lambda: find_floats(BY_RE, texts),
            "re.finditer loop, Decimal": lambda: find_decimals(BY_RE, texts),
        },
        corpus.budget(12),
    )
    section.add(timings, corpus.megabytes, ours)
    section.goals.append(
        Goal("scan against a re.finditer loop", timings[plain].over(timings[ours]), 40, 60, "x")
    )
    time_the_world(section, corpus, numbers)
    return section


def time_the_world(section: Section, corpus: Corpus, numbers: numtok.Numbers) -> None:
    """Each grammar on the corpus as its country writes the numbers, beside the default on the
    corpus as it is.
    """
    made = worlds(corpus, numbers)
    section.checks.append(
        f"{len(made)} rewritten corpora: their grammars read the numbers with marks as the same"
        " values, but for at most 2%"
    )
    scans: dict[str, Callable[[], object]] = {
        "the default grammar": lambda: numtok.scan(corpus.column)
    }
    scans |= {
        world.name: functools.partial(numtok.scan, world.column, world.grammar) for world in made
    }
    timings = alternate(scans, corpus.budget(4))
    section.add(timings, corpus.megabytes, "the default grammar")
    slowest = max(timings[world.name].over(timings["the default grammar"]) for world in made)
    section.goals.append(
        Goal("the slowest other grammar over the default", slowest, 1.25, 1.05, "x", at_most=True)
    )


def check_against_loop(numbers: numtok.Numbers, texts: list[str]) -> str:
    """Where scan and loop find a number at the same place, its value must be the same; and those
    must be nearly all.
    """
    places = zip(
        numbers.document.tolist(), numbers.start.tolist(), numbers.stop.tolist(), strict=True
    )
    exact = dict(zip(places, numbers.to_decimal(), strict=True))
    both, found = 0, 0
    for document, text in enumerate(texts):
        ascii_only = text.isascii()
        at, offset = 0, 0
        for match in BY_RE.finditer(text):
            start, stop = match.span()
            if not ascii_only:  # characters to bytes
                offset += len(text[at:start].encode()) - (start - at)
                at = start
            found += 1
            value = exact.get((document, start + offset, stop + offset))
            if value is not None:
                both += 1
                right = value.as_tuple() == Decimal(match.group().replace(",", "")).as_tuple()
                check(right, f"document {document}: scan reads {match.group()!r} as {value}")
    check(
        both >= 0.9 * len(exact),
        f"of {len(exact)} numbers of the scan only {both} are also found by the loop",
    )
    return f"{both:,} values equal Decimal's; scan finds {len(exact):,} numbers, the loop {found:,}"


def check_against_expression(numbers: numtok.Numbers, corpus: Corpus) -> list[str]:
    """The first documents, number for number, by the grammar as one regular expression."""
    per_document, values, surfaces = (
        numbers.per_document().tolist(),
        numbers.to_decimal(),
        numbers.text().to_pylist(),
    )
    compared, size, document = 0, 0, 0
    while document < len(corpus.texts) and size < (
        ORACLE_BYTES // 10 if corpus.quick else ORACLE_BYTES
    ):
        which = slice(per_document[document], per_document[document + 1])
        expected = [
            (number.text, number.value) for number in read(corpus.texts[document], numtok.Grammar())
        ]
        check(
            list(zip(surfaces[which], values[which], strict=True)) == expected,
            f"document {document}: scan differs from the expression",
        )
        compared += len(expected)
        size += len(corpus.texts[document])
        document += 1
    return [
        f"{compared:,} numbers of the first {document:,} documents equal those of the regular expression"
    ]
