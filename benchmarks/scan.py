"""Text to exact numbers: ``numtok.scan`` beside loops over ``re`` and ``regex`` with a pattern of
nearly the same meaning.
"""

from __future__ import annotations

import re
from typing import Any

import regex

import numtok
from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Section, alternate, check
from numtok.numbers.extract import read

# numtok's grammar as far as one short expression goes: signs, digit groups, fractions, exponents,
# no digits within words.
LIKE = r"(?:(?<![\w)\]}%.+\-])[-+])?(?<![\w.])(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
BY_RE, BY_REGEX = re.compile(LIKE), regex.compile(LIKE)
ORACLE_BYTES = 500_000


def find(pattern: Any, texts: list[str]) -> list[list[str]]:
    """Return the numbers of each text as strings, the least that such a loop does."""
    return [[match.group() for match in pattern.finditer(text)] for text in texts]


def run(corpus: Corpus) -> Section:
    """Check the numbers of the corpus, and time the scan beside the loops."""
    section = Section("Scan text to exact numbers, one thread")
    numbers = numtok.scan(corpus.column)
    section.checks.append(check_numbers(numbers, corpus))
    looped = sum(map(len, find(BY_RE, corpus.texts)))
    section.notes.append(f"scan finds {len(numbers):,} numbers, the loop {looped:,}")
    ours, plain = "numtok.scan", "re.finditer loop"
    timings = alternate(
        {
            ours: lambda: numtok.scan(corpus.column),
            plain: lambda: find(BY_RE, corpus.texts),
            "regex.finditer loop": lambda: find(BY_REGEX, corpus.texts),
        },
        corpus.budget(12),
    )
    section.add(timings, corpus.megabytes, ours)
    section.goals.append(
        Goal("scan against a re.finditer loop", timings[plain].over(timings[ours]), 40, 60, "x")
    )
    return section


def check_numbers(numbers: numtok.Numbers, corpus: Corpus) -> str:
    """Compare the numbers of the first documents with those of the grammar as one regular
    expression.
    """
    bounds = numbers.per_document().tolist()
    written, values = numbers.text().to_pylist(), numbers.to_decimal()
    compared, size, document = 0, 0, 0
    limit = ORACLE_BYTES // 10 if corpus.quick else ORACLE_BYTES
    while document < len(corpus.texts) and size < limit:
        part = slice(bounds[document], bounds[document + 1])
        expected = [
            (number.text, number.value) for number in read(corpus.texts[document], numtok.Grammar())
        ]
        check(
            list(zip(written[part], values[part], strict=True)) == expected,
            f"document {document}: scan differs from the expression",
        )
        compared += len(expected)
        size += len(corpus.texts[document])
        document += 1
    return (
        f"{compared:,} numbers of the first {document:,} documents equal those of the regular"
        " expression"
    )
