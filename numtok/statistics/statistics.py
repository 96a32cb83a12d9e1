"""All that is counted of a corpus's numbers, in one value of bounded size, which adds up in any order
and grouping with the same result, but for values and units of which there are more than are kept.
What was not there to be seen is not counted as absent: ``written`` and ``in_text`` say of how many
numbers the text was known.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays.text_rows import TextRows, Texts
from numtok.errors import InputError
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan
from numtok.representations import magnitudes
from numtok.representations.magnitudes import ColumnMagnitudes
from numtok.statistics.counters import LABELS, Frequent, Histograms
from numtok.statistics.surfaces import count_surfaces, count_units
from numtok.statistics.tokens import TokenCosts
from numtok.statistics.values import Examples, Values, count_values, written
from numtok.tokenizer.tokenizer import Tokenizer

FORMAT = "numtok statistics 1"
VALUES, UNITS = 512, 256  # of which the most frequent are kept
_COUNTS = ("documents", "without_text", "bytes", "numbers", "number_bytes", "written", "in_text")


@dataclass(frozen=True, eq=False)
class Statistics:
    """Counts of the numbers that texts hold. Those of parts add up to those of the whole. Two are
    equal if all counts are.

    Attributes:
        documents, without_text, bytes: of the texts: rows, null rows among them, bytes of UTF-8
            where the text is known.
        numbers: found.
        number_bytes: of their text, where it stands in a known one.
        written: numbers whose text is known.
        in_text: numbers that were found in a known text: ``units`` are of these.
        counts: histograms of digits, magnitudes, forms and documents, by name.
        values: the most frequent ones.
        units: the most frequent words and symbols right after a number.
        examples: values of every shape, on which representations are tried.
        tokens: what numbers cost, on a part of the texts.
        smallest, largest: the ends of the finite values, as float64; None without numbers.
        columns: magnitudes in each column, where a template made the texts of columns.

    Example:
        >>> import numtok
        >>> statistics = numtok.Statistics.of_batch(["5 km and 10 km", "no number"])
        >>> statistics.documents, statistics.numbers, statistics.units.counts
        (2, 2, {'km': 2})
    """

    documents: int = 0
    without_text: int = 0
    bytes: int = 0
    numbers: int = 0
    number_bytes: int = 0
    written: int = 0
    in_text: int = 0
    counts: Histograms = field(default_factory=lambda: Histograms({}))
    values: Frequent = field(default_factory=lambda: Frequent(VALUES))
    units: Frequent = field(default_factory=lambda: Frequent(UNITS))
    examples: Examples = field(default_factory=Examples.none)
    tokens: TokenCosts = field(default_factory=TokenCosts)
    smallest: float | None = None
    largest: float | None = None
    columns: ColumnMagnitudes = field(default_factory=ColumnMagnitudes)

    @classmethod
    def of_batch(
        cls, texts: Texts, grammar: Grammar | str | None = None, tokenizer: Tokenizer | None = None
    ) -> Statistics:
        """Compute the statistics of texts.

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
        statistics = cls.of_numbers(scan(rows, grammar))
        if tokenizer is None:
            return statistics
        return dataclasses.replace(statistics, tokens=TokenCosts.of(rows, tokenizer))

    @classmethod
    def of_numbers(cls, numbers: Numbers) -> Statistics:
        """Compute the statistics of numbers in their texts, as :func:`numtok.scan` returns them.
        ``numbers.rows`` are taken for the documents.
        """
        rows = numbers.rows
        nulls = int(np.count_nonzero(~rows.valid))
        return dataclasses.replace(
            cls.of_values(numbers, numbers.per_document(), nulls, written=True),
            bytes=rows.nbytes,
            number_bytes=int((numbers.stop - numbers.start).sum()),
            in_text=len(numbers),
            units=Frequent.of(count_units(numbers), UNITS),
        )

    @classmethod
    def of_values(
        cls,
        numbers: Numbers,
        offsets: npt.NDArray[np.int64],
        without_text: int = 0,
        written: bool = False,
    ) -> Statistics:
        """Compute the statistics of numbers whose texts are gone, so that ``bytes`` and ``units`` stay
        empty. Values with too many digits to be compared are not among the most frequent.

        Args:
            numbers: those of all documents, in order.
            offsets: int64[documents + 1]; document ``d`` has ``numbers[offsets[d]:offsets[d + 1]]``.
            without_text: how many of the documents are null.
            written: whether the text of each number is as it was in the corpus, and so its form
                is counted.
        """
        values, counts = count_values(numbers)
        if written:
            counts |= count_surfaces(numbers)
        last = len(LABELS["per_document"]) - 1
        bins = np.searchsorted(1 << np.arange(last, dtype=np.int64), np.diff(offsets), "right")
        counts["per_document"] = np.bincount(bins, minlength=last + 1)
        floats = numbers.to_float64()
        finite = floats[np.isfinite(floats)]
        return cls(
            documents=len(offsets) - 1,
            without_text=without_text,
            numbers=len(numbers),
            written=len(numbers) if written else 0,
            counts=Histograms(counts),
            values=_most_frequent(values.chosen(~values.is_cut())),
            examples=Examples.of(values),
            smallest=float(finite.min()) if len(finite) else None,
            largest=float(finite.max()) if len(finite) else None,
        )

    @property
    def negative(self) -> int:
        """Numbers with a minus sign, minus zero too."""
        return int(self.counts["negative_decades"].sum() + self.counts["zeros"][1])

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return quantiles of the nonzero magnitudes, at most 3% too low. There must be such
        numbers.
        """
        values, counts = magnitudes.lower_ends(self.counts["magnitudes"])
        below = np.cumsum(counts)
        return [float(values[int(np.searchsorted(below, share * below[-1]))]) for share in shares]

    def __add__(self, other: Statistics) -> Statistics:
        sums: dict[str, Any] = {
            "smallest": _end(min, self.smallest, other.smallest),
            "largest": _end(max, self.largest, other.largest),
        }
        for name in (one.name for one in dataclasses.fields(self) if one.name not in sums):
            sums[name] = getattr(self, name) + getattr(other, name)
        return Statistics(**sums)

    @classmethod
    def merge(cls, parts: Iterable[Statistics]) -> Statistics:
        """Add up any number of statistics; without any, return the statistics of no text.

        Example:
            >>> import numtok
            >>> halves = [numtok.Statistics.of_batch([text]) for text in ("1 and 2", "3")]
            >>> numtok.Statistics.merge(halves).numbers
            3
        """
        return functools.reduce(lambda one, other: one + other, parts, cls())

    def __eq__(self, other: object) -> bool:
        return (
            self.to_json() == other.to_json() if isinstance(other, Statistics) else NotImplemented
        )

    __hash__ = None  # type: ignore[assignment]  # as for arrays

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready dict of at most some 60 kB: histograms without their empty bins.

        :meth:`from_json` is the inverse.
        """
        return {
            "format": FORMAT,
            **{name: getattr(self, name) for name in _COUNTS},
            "smallest": self.smallest,
            "largest": self.largest,
            **self.counts.to_json(),
            "values": self.values.to_json(),
            "units": self.units.to_json(),
            "examples": self.examples.to_json(),
            "tokens": dataclasses.asdict(self.tokens),
            **({"columns": self.columns.to_json()} if self.columns.counts else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Statistics:
        """Read what :meth:`to_json` returned.

        Raises:
            InputError: for what :meth:`to_json` did not give.
        """
        parsed: Any = data
        if not isinstance(parsed, dict) or parsed.get("format") != FORMAT:
            raise InputError(
                f"these are no statistics of this version ({FORMAT!r}); count them anew"
            )
        try:
            return cls(
                **{name: int(data[name]) for name in _COUNTS},
                smallest=data["smallest"],
                largest=data["largest"],
                counts=Histograms.from_json(data),
                values=Frequent.from_json(data["values"], VALUES),
                units=Frequent.from_json(data["units"], UNITS),
                examples=Examples.from_json(data["examples"]),
                tokens=TokenCosts(**data["tokens"]),
                columns=ColumnMagnitudes.from_json(data.get("columns", {})),
            )
        except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, AttributeError) as e:
            raise InputError(
                f"these statistics are damaged: {type(e).__name__}: {e}; count them anew"
            ) from e


def _end(choose: Any, *ends: float | None) -> float | None:
    extreme: float | None = choose((end for end in ends if end is not None), default=None)
    return extreme


def _most_frequent(values: Values) -> Frequent:
    """Return the most frequent of distinct values. Only values that can be among them are
    formatted.
    """
    top = values.chosen(np.argsort(values.times)[-VALUES - 1 :])
    rows = zip(*(column.tolist() for column in top[1:]), strict=True)
    return Frequent.of({written(mantissa, power): n for mantissa, power, n in rows}, VALUES)
