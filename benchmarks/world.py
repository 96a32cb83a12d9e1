"""The corpus as other countries write its numbers, to scan with their grammars beside the default.

In: the corpus and its numbers. Out: for each grammar, the texts with every number in its marks,
    checked to be read as the same values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import numtok
from benchmarks.corpus import Corpus
from benchmarks.timing import check


@dataclass(frozen=True)
class World:
    """A grammar and a corpus for it.

    Attributes:
        name: for people.
        grammar: that reads it.
        column: the texts.
    """

    name: str
    grammar: numtok.Grammar
    column: pa.LargeStringArray


def _in_lakhs(written: str) -> str:
    """``1,234,567`` as ``12,34,567``."""
    whole, point, behind = written.partition(".")
    if "," not in whole or not whole[-3:].isdigit():
        return written
    sign, digits = (whole[0], whole[1:]) if whole[0] in "-+\u2212" else ("", whole)
    head, last = digits.replace(",", "")[:-3], digits[-3:]
    twos = [head[max(end - 2, 0) : end] for end in range(len(head), 0, -2)][::-1]
    return sign + ",".join([*twos, last]) + point + behind


def _translated(marks: dict[str, str]) -> Callable[[str], str]:
    table = str.maketrans(marks)
    return lambda written: written.translate(table)


FORMS: dict[str, tuple[numtok.Grammar, Callable[[str], str]]] = {
    "european, 1.234,5": (numtok.Grammar.european(), _translated({",": ".", ".": ","})),
    "european, 1 234,5": (numtok.Grammar.european(), _translated({",": " ", ".": ","})),
    "indian, 12,34,567.8": (numtok.Grammar.indian(), _in_lakhs),
    "swiss, 1'234.5": (numtok.Grammar.swiss(), _translated({",": "'"})),
}


def worlds(corpus: Corpus, numbers: numtok.Numbers) -> list[World]:
    """The corpus in each of the :data:`FORMS`.

    Raises:
        WrongResult: if a grammar does not read nearly all numbers that are written with marks as
            the default reads them in the original. (Others may be read otherwise, as ``10,20`` by
            the european grammar.)
    """
    surfaces = numbers.text().to_pylist()
    values = Counter(
        value
        for surface, value in zip(surfaces, numbers.to_decimal(), strict=True)
        if {",", "."} & set(str(surface))
    )
    made = []
    for name, (grammar, write) in FORMS.items():
        world = World(
            name, grammar, pa.array(_rewritten(corpus.texts, numbers, write), pa.large_string())
        )
        read = Counter(numtok.scan(world.column, grammar).to_decimal())
        same = (values & read).total()
        check(
            same >= 0.98 * values.total(),
            f"{name}: of {values.total():,} numbers with marks {same:,} are read as they were",
        )
        made.append(world)
    return made


def _rewritten(texts: list[str], numbers: numtok.Numbers, write: Callable[[str], str]) -> list[str]:
    """The texts with each number as ``write`` gives it."""
    bounds, starts, stops = (
        numbers.per_document().tolist(),
        numbers.start.tolist(),
        numbers.stop.tolist(),
    )
    surfaces = [write(str(surface)).encode() for surface in numbers.text().to_pylist()]
    rewritten = []
    for document, text in enumerate(texts):
        data, pieces, at = text.encode(), [], 0
        for number in range(bounds[document], bounds[document + 1]):
            pieces += [data[at : starts[number]], surfaces[number]]
            at = stops[number]
        rewritten.append(b"".join([*pieces, data[at:]]).decode())
    return rewritten
