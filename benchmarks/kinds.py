"""Six kinds of text on which number awareness is measured, so that nothing is tuned to one file.

In: the corpus. Out: documents of each kind, with the budget for the time of ``encode_batch`` over
    gigatoken's own time on the same text. Prose is the corpus itself, code is Python's standard
    library, and the other kinds are generated from a fixed seed: equal inputs give equal texts.
"""

from __future__ import annotations

import json
import random
import re
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus import Corpus

SIZE = 4_000_000  # bytes of each kind, about
SEED = 20
DIGITS = re.compile(r"\d")
WORDS = re.compile(r"[A-Za-z]{2,12}")

Documents = Iterable[str]


@dataclass(frozen=True)
class Kind:
    """A kind of text.

    Attributes:
        name: name for the report.
        floor, aim: times gigatoken's own time on the same text.
        documents: yields documents from the corpus and a source of random numbers, possibly without
            end.
    """

    name: str
    floor: float
    aim: float
    documents: Callable[[Corpus, random.Random], Documents]

    def texts(self, corpus: Corpus, size: int = SIZE) -> list[str]:
        """Return documents of about ``size`` bytes, or all documents if they are fewer."""
        documents: list[str] = []
        for text in self.documents(corpus, random.Random(SEED)):
            documents.append(text)
            size -= len(text.encode())
            if size <= 0:
                break
        return documents


def _pages_with_tables(corpus: Corpus, chance: random.Random) -> Iterator[str]:
    """Yield every page with tables after some of its lines, a quarter of the text.

    Cells are separated by tabs, or each stands on a line of its own after tabs, as in web pages.
    """
    words = WORDS.findall(" ".join(corpus.texts[:50]))
    for text in corpus.texts:
        lines = []
        for line in text.split("\n"):
            lines.append(line)
            if chance.random() < 0.02:
                lines += _table(words, chance)
        yield "\n".join(lines)


def _table(words: list[str], chance: random.Random) -> list[str]:
    """Return the lines of a random table of words and numbers."""
    columns, indent = chance.randint(2, 7), chance.choice(("", "\t", "\t\t"))
    between = chance.choice(("\t", f"\n{indent}\t"))
    rows = [between.join(chance.choice(words).title() for _ in range(columns))]
    for _ in range(chance.randint(3, 20)):
        rows.append(
            between.join(
                chance.choice(words) if chance.random() < 0.4 else _number(chance)
                for _ in range(columns)
            )
        )
    return [indent + row for row in rows]


def _number(chance: random.Random) -> str:
    """Return a random number as tables write it."""
    return chance.choice(
        (
            str(chance.randint(0, 99)),
            str(chance.randint(1800, 2030)),
            f"{chance.randint(1000, 9999999):,}",
            f"{chance.gauss(0, 100):.2f}",
            f"{chance.random() * 100:.1f}%",
        )
    )


def _without_numbers(corpus: Corpus, chance: random.Random) -> Iterator[str]:
    """Yield the pages without their digits."""
    for text in corpus.texts:
        yield DIGITS.sub("", text)


def _code(corpus: Corpus, chance: random.Random) -> Iterator[str]:
    """Yield the modules of Python's standard library in random order."""
    paths = sorted(
        path
        for path in Path(sysconfig.get_path("stdlib")).rglob("*.py")
        if "site-packages" not in path.parts
    )
    chance.shuffle(paths)
    for path in paths:
        try:
            yield path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):  # the library's tests have unreadable files
            continue


def _json(corpus: Corpus, chance: random.Random) -> Iterator[str]:
    """Yield lists of records with readings, on one line or indented."""
    words = WORDS.findall(" ".join(corpus.texts[:50]))
    while True:
        records = [
            {
                "id": chance.randint(1, 10**9),
                "name": " ".join(chance.choices(words, k=2)).title(),
                "active": chance.random() < 0.5,
                "position": {
                    "lat": round(chance.uniform(-90, 90), 5),
                    "lon": round(chance.uniform(-180, 180), 5),
                },
                "readings": [round(chance.gauss(20, 8), 2) for _ in range(chance.randint(0, 8))],
                "tags": chance.choices(words, k=chance.randint(0, 4)),
                "updated": (
                    f"20{chance.randint(10, 29)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}T08:{chance.randint(10, 59)}:00Z"
                ),
                "note": " ".join(chance.choices(words, k=chance.randint(3, 25))),
            }
            for _ in range(chance.randint(1, 40))
        ]
        yield json.dumps(records, indent=chance.choice((None, None, 2)))


def _maths(corpus: Corpus, chance: random.Random) -> Iterator[str]:
    """Yield word problems with worked steps."""
    people, things = (
        ("Ada", "Ben", "Chloe", "Deepak", "Ewa"),
        ("apples", "pencils", "marbles", "tickets", "litres of paint"),
    )
    while True:
        lines = []
        for _ in range(chance.randint(3, 30)):
            who, what = chance.choice(people), chance.choice(things)
            a, b, price = (
                chance.randint(2, 400),
                chance.randint(2, 60),
                round(chance.uniform(0.2, 30), 2),
            )
            lines += [
                (
                    f"Question: {who} buys {a} boxes with {b} {what} each, at {price} dollars a"
                    " box. How much does one of them cost?"
                ),
                (
                    f"First, there are {a} * {b} = {a * b} {what}. All boxes cost {a} x {price} ="
                    f" {a * price:.2f} dollars."
                ),
                (
                    f"So one costs {a * price:.2f} / {a * b} = {price / b:.4f} dollars, or about"
                    f" {100 * price / b:.1f} cents."
                ),
                f"#### {price / b:.4f}\n",
            ]
        yield "\n".join(lines)


def _csv(corpus: Corpus, chance: random.Random) -> Iterator[str]:
    """Yield tables of numbers, one number every nine bytes."""
    while True:
        columns = chance.randint(3, 12)
        header = ",".join(f"channel_{chr(97 + k)}" for k in range(columns))
        rows = [
            ",".join(_reading(k, chance) for k in range(columns))
            for _ in range(chance.randint(50, 500))
        ]
        yield "\n".join([header, *rows, ""])


def _reading(column: int, chance: random.Random) -> str:
    """Return a random value of a column."""
    if column % 3 == 0:
        return str(chance.randint(0, 10**8))
    return f"{chance.gauss(0, 50):.{3 + column % 3}f}"


KINDS = (
    Kind("prose and tables with tabs", 1.5, 1.2, _pages_with_tables),
    Kind("no numbers at all", 1.15, 0.8, _without_numbers),
    Kind("Python code", 1.3, 0.8, _code),
    Kind("JSON", 1.4, 0.9, _json),
    Kind("worked maths", 1.6, 1.1, _maths),
    Kind("CSV of numbers", 3.0, 1.6, _csv),
)
