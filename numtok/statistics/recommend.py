"""Which representation suits a corpus, and why, in plain words.

In: :class:`~numtok.statistics.Statistics` and what each representation would lose. Out:
    :class:`Recommendation`. The first rule that holds decides:

1. there are no numbers: ``subword``, as nothing is to be shown;
2. float32 changes more than 1% of the numbers, so their digits matter: ``fone`` if it holds 95% of
   them in up to 16 digits on either side of the point, else ``place``;
3. at least 80% are integers of up to four digits, as years and counts are: ``fone``, which tells
   each from the next;
4. at least half have a fraction, and a scale loses at most 1% of the numbers: ``xval``;
5. the middle 99.8% of the magnitudes span 10 powers of ten or more: ``bits``, or ``logfourier`` if
   float32 cannot hold 0.1% of them;
6. ``fone``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numtok.statistics.candidates import fitted_xval
from numtok.statistics.histograms import LARGEST_DECADE, MARKS
from numtok.statistics.losses import Loss
from numtok.statistics.statistics import Statistics
from numtok.statistics.wanted_grammar import EXAMPLES, hints, wanted_grammar

CHANGED, TOO_LONG, FEW_DIGITS = 0.01, 0.05, 0.8
FRACTIONS, LOST, WIDE, NOT_HELD = 0.5, 0.01, 10.0, 0.001
TOLD = 0.01  # of the numbers: from such a share on, something odd is worth a remark


@dataclass(frozen=True)
class Recommendation:
    """What to encode a corpus with.

    Attributes:
        numbers: the representation, as ``--numbers`` takes it.
        options: of ``numtok encode``, beside its inputs and its output.
        reasons: sentences, the decisive one first.
        remarks: sentences about what looks odd in the corpus, whatever the representation.
        grammar: another grammar that the corpus looks as if it wanted, see
            :mod:`numtok.statistics.wanted_grammar`; then the counts are of misread numbers.
    """

    numbers: str
    options: str
    reasons: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    grammar: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The attributes by name."""
        return dataclasses.asdict(self) | {
            "reasons": list(self.reasons),
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True)
class Traits:
    """What the rules look at: shares of all numbers, and the powers of ten between the 0.1% and the
    99.9% quantile of the magnitudes other than zero.
    """

    small_integers: float
    fractions: float
    float32_changes: float
    float32_refuses: float
    fone_refuses: float
    scale_loses: float
    three_digits_change: float
    span: float


def recommend(statistics: Statistics, compared: Sequence[Loss]) -> Recommendation:
    """The first rule that holds; ``compared`` are the losses of all representations that
    :func:`~numtok.statistics.candidates.candidates` gives.
    """
    by_name = {
        loss.representation.name: loss for loss in reversed(compared)
    }  # of two xvals, the plain one
    if not statistics.numbers:
        return Recommendation(
            "subword",
            "--numbers subword",
            ("There are no numbers in these texts, so there is nothing to show to a model.",),
        )
    traits = traits_of(statistics, by_name)
    name, reasons = _decided(traits, by_name)
    chosen = by_name[name]
    reasons.append(_kept(chosen))
    remarks, grammar = tuple(_remarks(statistics, chosen)), wanted_grammar(statistics)
    if grammar is not None:
        remarks = (
            (
                f"This looks like text for another grammar: count again with --grammar {grammar},"
                " and encode with it."
            ),
            *remarks,
        )
    return Recommendation(
        chosen.name, _options(statistics, chosen), tuple(reasons), remarks, grammar
    )


def traits_of(statistics: Statistics, by_name: dict[str, Loss]) -> Traits:
    """What the rules look at; of at least one number."""
    total = statistics.numbers
    shape = np.arange(len(statistics.examples.shapes))
    significant, decade = (
        shape // (2 * LARGEST_DECADE + 1),
        shape % (2 * LARGEST_DECADE + 1) - LARGEST_DECADE,
    )
    integer = (significant == 0) | (decade >= significant - 1)
    small = int(statistics.examples.shapes[integer & (decade <= 3)].sum())
    whole = int(statistics.examples.shapes[integer].sum())
    bits, xval, three = by_name["bits"], by_name["xval"], by_name["p1000"]
    return Traits(
        small_integers=small / total,
        fractions=1 - whole / total,
        float32_changes=(bits.rounded + bits.left_as_text) / total,
        float32_refuses=bits.left_as_text / total,
        fone_refuses=by_name["fone"].left_as_text / total,
        scale_loses=(xval.clipped + xval.vanishing + xval.left_as_text) / total,
        three_digits_change=(three.rounded + three.left_as_text) / total,
        span=(
            float(np.diff(np.log10(statistics.quantiles((0.001, 0.999))))[0])
            if statistics.counts.magnitude.any()
            else 0.0
        ),
    )


def _decided(traits: Traits, by_name: dict[str, Loss]) -> tuple[str, list[str]]:
    """The representation's name, and the reasons."""
    digits: int = by_name["fone"].representation.n_digits  # type: ignore[attr-defined]
    if traits.float32_changes > CHANGED:
        reason = (
            f"{_percent(traits.float32_changes)} of the numbers have digits that float32 does not"
            " keep, so xval and bits would change them."
        )
        if traits.fone_refuses <= TOO_LONG:
            return "fone", [
                reason,
                f"With {digits} digits, fone keeps them in one token, to the last digit.",
            ]
        return "place", [
            reason,
            (
                "Too many are too long for the digits of one token, so each digit gets a token with"
                " its place."
            ),
        ]
    if traits.small_integers >= FEW_DIGITS:
        reasons = [
            f"{_percent(traits.small_integers)} are integers of up to four digits, as years and"
            " counts are: they have to be told apart, not measured."
        ]
        if traits.three_digits_change > CHANGED:
            reasons.append(
                "Three significant digits (p10, p1000, b1999, fp15) would change"
                f" {_percent(traits.three_digits_change)} of the numbers."
            )
        reasons.append(
            f"A scale of xval loses {_percent(traits.scale_loses)}, and shows numbers as near as"
            " 2019 and 2020 as nearly the same."
        )
        return "fone", reasons
    if traits.fractions >= FRACTIONS and traits.scale_loses <= LOST:
        measured = (
            f"{_percent(traits.fractions)} have a fraction, as measured values do, and one scale"
            " fits them:"
        )
        return "xval", [
            f"{measured} {_percent(traits.scale_loses)} are lost to it.",
            "Take fone instead if a model has to repeat their digits.",
        ]
    if traits.span >= WIDE:
        wide = (
            f"The magnitudes span {traits.span:.0f} powers of ten: no scale of xval suits them"
            f" ({_percent(traits.scale_loses)} lost)."
        )
        if traits.float32_refuses > NOT_HELD:
            return "logfourier", [
                wide,
                (
                    f"float32 cannot hold {_percent(traits.float32_refuses)} of them; logfourier"
                    " reaches from 1e-499 to 1e499."
                ),
            ]
        return "bits", [wide, "The bits of float32 show magnitudes from 1e-45 to 3e38 alike."]
    return "fone", [
        f"{digits} digits hold 99% of the numbers, which is few enough for one token that shows"
        " each of them."
    ]


def _kept(chosen: Loss) -> str:
    """What becomes of the numbers in the one that is chosen."""
    parts = [f"{_percent(chosen.exact / chosen.numbers)} of the numbers are read back exactly"]
    if chosen.rounded:
        parts.append(
            f"{_percent(chosen.rounded / chosen.numbers)} are rounded by at most"
            f" {chosen.worst_error:.1g} of their value"
        )
    if chosen.clipped:
        parts.append(f"{_percent(chosen.clipped / chosen.numbers)} are clipped")
    if chosen.left_as_text:
        parts.append(f"{_percent(chosen.left_as_text / chosen.numbers)} stay text")
    return f"In {chosen.name}, {', '.join(parts)}."


def _options(statistics: Statistics, chosen: Loss) -> str:
    parts = [f"--numbers {chosen.name}"]
    if chosen.representation.has_scale:
        xval = fitted_xval(statistics)
        parts.append(f"--scale {xval.scale!r} --clip {xval.clip:g}")
    return " ".join(parts)


def _remarks(statistics: Statistics, chosen: Loss) -> Iterator[str]:
    """What looks odd."""
    marks = dict(zip(MARKS, statistics.counts.marks.tolist(), strict=True))
    if marks["leading zeros"] > TOLD * statistics.written:
        share = _percent(marks["leading zeros"] / statistics.written)
        yield (
            f"{share} are written with leading zeros, as codes are; only place and digits keep"
            " those (with --keep-text, decoding gives them back)."
        )
    for kind, count in hints(statistics).items():
        yield (
            f"{count:,} times numbers look like one: {EXAMPLES[kind]}; the grammar that was used"
            " reads several."
        )
    negative = int(statistics.counts.negative.sum())
    if not chosen.representation.carries_sign and negative > TOLD * statistics.numbers:
        share = _percent(negative / statistics.numbers)
        yield (
            f"{share} are negative; {chosen.representation.name} shows magnitudes, so their sign is"
            " a token of text before them."
        )
    if beyond := int(statistics.counts.beyond.sum()):
        yield f"{beyond:,} numbers are beyond float64 (1.8e308, or nearer to zero than 5e-324)."


def _percent(share: float) -> str:
    """``12%``, ``0.3%``; ``less than 0.1%`` rather than 0."""
    if 0 < share < 0.001:
        return "less than 0.1%"
    return f"{100 * share:.1f}".removesuffix(".0") + "%"
