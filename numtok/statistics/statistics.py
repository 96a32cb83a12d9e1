"""All that is counted of a corpus's numbers, in one value of bounded size.

In: texts, or numbers that were found or stored. Out: :class:`Statistics`. ``+`` and
    :meth:`Statistics.merge` add them up, in any order and grouping with
the same result: all is exact but what is most frequent, which is so up to a capacity and within its
    stated bound beyond it. :meth:`Statistics.from_json` is the inverse of
    :meth:`Statistics.to_json`.

What was not there to be seen is not counted as absent: ``written`` says of how many numbers the
text was known, ``in_text`` of how many also what stands around them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays.text_rows import TextRows, Texts
from numtok.errors import InputError
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan
from numtok.statistics import examples, words
from numtok.statistics.digits import LONG, Digits, count_digits
from numtok.statistics.distinct import Counted, counted
from numtok.statistics.examples import Examples
from numtok.statistics.frequent import Frequent
from numtok.statistics.histograms import (
    digits_from_json,
    digits_to_json,
    written_from_json,
    written_to_json,
)
from numtok.statistics.surfaces import Written, count_written
from numtok.statistics.tokens import TokenCosts
from numtok.statistics.words import words_behind
from numtok.tokenizer.tokenizer import Tokenizer

FORMAT = "numtok statistics 1"
VALUES, UNITS = 512, 256  # of which the most frequent are kept
PER_DOCUMENT = 48  # bins of documents by their numbers: none, 1, 2 to 3, 4 to 7, and so on
_COUNTS = ("documents", "without_text", "bytes", "numbers", "number_bytes", "written", "in_text")


@dataclass(frozen=True, eq=False)
class Statistics:
    """What numbers some texts hold; equal if all counts are.

    Attributes:
        documents, without_text, bytes: of the texts: rows, null rows among them, bytes of UTF-8
            where the text is known.
        numbers: found.
        number_bytes: of their text, where it stands in a known one.
        written: numbers whose text is known: ``forms`` are of these.
        in_text: numbers that were found in a known text: ``units`` are of these.
        per_document: int64[48], documents by how many numbers they have: 0, 1, 2 to 3, 4 to 7, ...
        digits: histograms of digits, decades and magnitudes.
        forms: histograms of how they are written.
        values: the most frequent ones, by mantissa and power.
        units: the most frequent words and symbols right behind a number.
        examples: values of every shape, on which representations are tried.
        tokens: what numbers cost, on a part of the texts.
        smallest, largest: the ends of the finite values, as float64; None without numbers.
    """

    documents: int = 0
    without_text: int = 0
    bytes: int = 0
    numbers: int = 0
    number_bytes: int = 0
    written: int = 0
    in_text: int = 0
    per_document: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(PER_DOCUMENT, np.int64)
    )
    digits: Digits = field(default_factory=Digits.none)
    forms: Written = field(default_factory=Written.none)
    values: Frequent = field(default_factory=lambda: Frequent(Counted.none(), VALUES))
    units: Frequent = field(default_factory=lambda: Frequent(Counted.none(), UNITS))
    examples: Examples = field(default_factory=Examples.none)
    tokens: TokenCosts = field(default_factory=TokenCosts)
    smallest: float | None = None
    largest: float | None = None

    @classmethod
    def of_batch(
        cls, texts: Texts, grammar: Grammar | None = None, tokenizer: Tokenizer | None = None
    ) -> Statistics:
        """Of some texts.

        Args:
            texts: as for :func:`numtok.scan`; a null row is a document without text.
            grammar: what counts as a number; ``Grammar()`` if not given.
            tokenizer: also count the tokens that its source alone gives to all of these texts,
                which takes longer than all the rest.

        Raises:
            InputError: for texts that are not text.
            GrammarError: if a user's pattern matches something that does not read as a decimal
                number.
        """
        rows = TextRows.of(texts)
        made = cls.of_numbers(scan(rows, grammar))
        if tokenizer is None:
            return made
        return dataclasses.replace(made, tokens=TokenCosts.of(rows, tokenizer))

    @classmethod
    def of_numbers(cls, numbers: Numbers) -> Statistics:
        """Of numbers as :func:`numtok.scan` finds them, in their texts."""
        rows = numbers.rows
        made = cls.of_values(numbers, numbers.per_document(), int(np.count_nonzero(~rows.valid)))
        units = counted(*words_behind(numbers))
        return dataclasses.replace(
            made,
            bytes=rows.nbytes,
            number_bytes=int((numbers.stop - numbers.start).sum()),
            written=len(numbers),
            in_text=len(numbers),
            forms=count_written(numbers),
            units=Frequent.of(units.chosen((units.first != 0) | (units.second != 0)), UNITS),
        )

    @classmethod
    def of_values(
        cls,
        numbers: Numbers,
        offsets: npt.NDArray[np.int64],
        without_text: int = 0,
        written: bool = False,
    ) -> Statistics:
        """Of numbers without their texts, those of document ``d`` from ``offsets[d]`` to
        ``offsets[d + 1]``; ``written``: their own text is as it was.
        """
        digits, keys = count_digits(numbers)
        short = keys.significant < LONG
        distinct = (
            counted(keys.mantissa, keys.power)
            if short.all()
            else counted(keys.mantissa[short], keys.power[short])
        )
        values = numbers.to_float64()
        finite = values[np.isfinite(values)] if digits.beyond[0] else values
        bins = np.minimum(np.searchsorted(_LEAST, np.diff(offsets), side="right"), PER_DOCUMENT - 1)
        return cls(
            documents=len(offsets) - 1,
            without_text=without_text,
            numbers=len(numbers),
            written=len(numbers) if written else 0,
            per_document=np.bincount(bins, minlength=PER_DOCUMENT),
            digits=digits,
            forms=count_written(numbers, side_by_side=False) if written else Written.none(),
            values=Frequent.of(distinct, VALUES),
            examples=Examples.of(keys, distinct),
            smallest=float(finite.min()) if len(finite) else None,
            largest=float(finite.max()) if len(finite) else None,
        )

    def __add__(self, other: Statistics) -> Statistics:
        ends = {
            "smallest": _end(min, self.smallest, other.smallest),
            "largest": _end(max, self.largest, other.largest),
        }
        names = [one.name for one in dataclasses.fields(self) if one.name not in ends]
        return Statistics(
            **{name: getattr(self, name) + getattr(other, name) for name in names}, **ends
        )

    @classmethod
    def merge(cls, parts: Iterable[Statistics]) -> Statistics:
        """The sum of any number of them; of none, the statistics of no text."""
        return functools.reduce(lambda one, other: one + other, parts, cls())

    def __eq__(self, other: object) -> bool:
        return (
            self.to_json() == other.to_json() if isinstance(other, Statistics) else NotImplemented
        )

    __hash__ = None  # type: ignore[assignment]  # as for arrays

    def to_json(self) -> dict[str, Any]:
        """As a JSON-ready dict of at most some 60 kB: histograms without their empty bins.

        :meth:`from_json` is the inverse.
        """
        return {
            "format": FORMAT,
            **{name: getattr(self, name) for name in _COUNTS},
            "per_document": {
                str(int(_LEAST[bin - 1]) if bin else 0): int(self.per_document[bin])
                for bin in np.flatnonzero(self.per_document)
            },
            "smallest": self.smallest,
            "largest": self.largest,
            **digits_to_json(self.digits),
            **written_to_json(self.forms),
            "values": self.values.to_json(examples.written),
            "units": self.units.to_json(words.word),
            "examples": self.examples.to_json(),
            "tokens": self.tokens.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Statistics:
        """The inverse of :meth:`to_json`.

        Raises:
            InputError: for what :meth:`to_json` did not give.
        """
        given: Any = data
        if not isinstance(given, dict) or given.get("format") != FORMAT:
            raise InputError(
                f"these are no statistics of this version ({FORMAT!r}); count them anew with"
                " `numtok stats`"
            )
        try:
            per_document = np.zeros(PER_DOCUMENT, np.int64)
            for least, count in data["per_document"].items():
                per_document[int(least).bit_length()] = count
            return cls(
                **{name: int(data[name]) for name in _COUNTS},
                per_document=per_document,
                smallest=data["smallest"],
                largest=data["largest"],
                digits=digits_from_json(data),
                forms=written_from_json(data),
                values=Frequent.from_json(data["values"], VALUES, examples.read),
                units=Frequent.from_json(data["units"], UNITS, words.key_of),
                examples=Examples.from_json(data["examples"]),
                tokens=TokenCosts.from_json(data["tokens"]),
            )
        except (KeyError, TypeError, ValueError, IndexError, ArithmeticError) as error:
            raise InputError(
                f"these statistics are damaged: {type(error).__name__}: {error}; count them anew"
                " with `numtok stats`"
            ) from error


_LEAST = 1 << np.arange(
    PER_DOCUMENT - 1, dtype=np.int64
)  # numbers of a document from which on each bin but the first counts


def _end(choose: Any, mine: float | None, other: float | None) -> Any:
    given = [value for value in (mine, other) if value is not None]
    return choose(given) if given else None
