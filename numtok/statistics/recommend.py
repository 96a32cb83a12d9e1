"""Which representation suits a corpus, and why, in plain words. The first rule that holds decides:

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numtok.statistics.counters import LARGEST_DECADE
from numtok.statistics.losses import Loss
from numtok.statistics.statistics import Statistics

CHANGED, TOO_LONG, FEW_DIGITS = 0.01, 0.05, 0.8
FRACTIONS, LOST, WIDE, NOT_HELD = 0.5, 0.01, 10.0, 0.001
# shares of the numbers from which on something odd, and lakhs, which nothing else looks like, are
# told
TOLD, RARE = 0.01, 0.001
# Numbers side by side: as which one they look, and the grammar that reads them as it.
_HINTS = {
    "decimal comma": ("3,14 with a comma for the decimal point", "european"),
    "grouped by space": ("12 345, grouped by spaces", None),
    "grouped by thin space": ("12 345, grouped by thin spaces", None),
    "grouped by apostrophe": ("12'345, grouped by apostrophes", "swiss"),
    "grouped in lakhs": ("12,34,567, grouped in lakhs", "indian"),
}
# What was seen to speak against each that the rules may choose.
_AGAINST = {
    "fone": "it needs a layer and a head of its own, and learnt fewer products of two digits from few pairs"
    " than place:lsd; digits:1 is for models that see tokens only.",
    "place": "it takes a token for each digit and mark; without its column of places it is digits:1.",
    "xval": "it says values that are near and seldom exact ones, and bins were well ahead of it"
    " in models of clinical events (arXiv 2604.16775): compare quantile_bins:64,soft, fitted to one"
    " kind of numbers.",
    "bits": "sums were not learnt with it in short training, and a wrong bit of the exponent is wrong"
    " by orders of magnitude; where the magnitude is enough, compare exponent_bins that reach as far"
    " as the numbers.",
    "logfourier": "digits beyond the seventh are lost; digits:1 keeps them all.",
}
ALTERNATIVES = 3  # that hold as many numbers exactly, and are named


@dataclass(frozen=True)
class Recommendation:
    """What to encode a corpus with."""

    numbers: str  # the name of the representation, as :func:`numtok.encode_files` takes it
    # for that call, by name: ``numbers``, and the ``scale`` and the ``clip`` of xVal
    options: dict[str, Any]
    reasons: tuple[str, ...]  # sentences, the decisive one first
    # sentences about what looks odd in the corpus, whatever the representation
    remarks: tuple[str, ...] = ()
    # another grammar that the corpus looks as if it wanted, see :func:`wanted_grammar`; then the
    # counts are of misread numbers
    grammar: str | None = None
    # sentences about what speaks against it, and which others hold as much
    against: tuple[str, ...] = ()


def recommend(statistics: Statistics, compared: Sequence[Loss]) -> Recommendation:
    """The first rule that holds, by the losses of all candidates."""
    if not statistics.numbers:
        nothing = "There are no numbers in these texts, so there is nothing to show to a model."
        return Recommendation("subword", {"numbers": "subword"}, (nothing,))
    # of two xvals, the plain one
    by_name = {loss.representation.name: loss for loss in reversed(compared)}
    name, reasons = _decided(statistics, by_name)
    chosen, representation = by_name[name], by_name[name].representation
    options: dict[str, Any] = {"numbers": chosen.name}
    if representation.has_scale:
        fitted: Any = representation
        options |= {"scale": fitted.scale, "clip": fitted.clip}
    remarks, grammar = tuple(_remarks(statistics, chosen)), wanted_grammar(statistics)
    reasons, against = [*reasons, _kept(chosen)], tuple(_against(name, chosen, compared))
    return Recommendation(chosen.name, options, tuple(reasons), remarks, grammar, against)


def _decided(of: Statistics, by_name: dict[str, Loss]) -> tuple[str, list[str]]:
    """The representation's name, and the reasons."""
    bits, xval, fone, three = (by_name[name] for name in ("bits", "xval", "fone", "p1000"))
    changed = bits.rounded + bits.left_as_text
    lost = xval.clipped + xval.vanishing + xval.left_as_text
    small, whole = _integers(of)
    digits: int = fone.representation.n_digits  # type: ignore[attr-defined]

    def share(count: int) -> str:
        return _percent(count / of.numbers)

    if changed > CHANGED * of.numbers:
        reason = (
            f"{share(changed)} of the numbers have digits that float32 does not keep, so xval and"
            " bits would change them."
        )
        if fone.left_as_text <= TOO_LONG * of.numbers:
            kept = f"With {digits} digits, fone keeps them in one token, to the last digit."
            return "fone", [reason, kept]
        each = "so each digit gets a token with its place."
        return "place", [reason, f"Too many are too long for the digits of one token, {each}"]
    if small >= FEW_DIGITS * of.numbers:
        reasons = [
            f"{share(small)} are integers of up to four digits, as years and counts are: they have"
            " to be told apart, not measured."
        ]
        if (rounded := three.rounded + three.left_as_text) > CHANGED * of.numbers:
            reasons.append(
                "Three significant digits (p10, p1000, b1999, fp15) would change"
                f" {share(rounded)} of the numbers."
            )
        near = "and shows numbers as near as 2019 and 2020 as nearly the same."
        return "fone", [*reasons, f"A scale of xval loses {share(lost)}, {near}"]
    if of.numbers - whole >= FRACTIONS * of.numbers and lost <= LOST * of.numbers:
        fits = f"as measured values do, and one scale fits them: {share(lost)} are lost to it."
        other = "Take fone instead if a model has to repeat their digits."
        return "xval", [f"{share(of.numbers - whole)} have a fraction, {fits}", other]
    if (span := _span(of)) >= WIDE:
        scales = f"no scale of xval suits them ({share(lost)} lost)."
        wide = f"The magnitudes span {span:.0f} powers of ten: {scales}"
        if bits.left_as_text > NOT_HELD * of.numbers:
            beyond = f"float32 cannot hold {share(bits.left_as_text)} of them;"
            return "logfourier", [wide, f"{beyond} logfourier reaches from 1e-499 to 1e499."]
        return "bits", [wide, "The bits of float32 show magnitudes from 1e-45 to 3e38 alike."]
    few = "which is few enough for one token that shows each of them."
    return "fone", [f"{digits} digits hold 99% of the numbers, {few}"]


def _against(name: str, chosen: Loss, compared: Sequence[Loss]) -> Iterator[str]:
    """What speaks against the one that is chosen, of all that were compared."""
    if name in _AGAINST:
        yield f"Against {chosen.name}: {_AGAINST[name]}"
    others = [
        loss
        for loss in compared
        if loss.exact >= chosen.exact and loss.tokens is not None and loss.name != chosen.name
    ]
    others.sort(key=lambda loss: (-loss.exact, loss.tokens))
    if told := [
        f"{loss.name} ({_percent(loss.exact / loss.numbers)}, {loss.tokens:.3g} tokens each)"
        for loss in others[:ALTERNATIVES]
    ]:
        yield f"At least as many numbers are exact in {', '.join(told)}."


def _integers(of: Statistics) -> tuple[int, int]:
    """(those of up to four digits, all of them)."""
    significant, decade = np.divmod(np.arange(len(of.examples.shapes)), 2 * LARGEST_DECADE + 1)
    decade -= LARGEST_DECADE
    integer = (significant == 0) | (decade >= significant - 1)
    small = of.examples.shapes[integer & (decade <= 3)]
    return int(small.sum()), int(of.examples.shapes[integer].sum())


def _span(of: Statistics) -> float:
    """Powers of ten between the 0.1% and the 99.9% quantile of the magnitudes other than zero."""
    if not of.counts["magnitudes"].any():
        return 0.0
    return float(np.diff(np.log10(of.quantiles((0.001, 0.999))))[0])


def _kept(chosen: Loss) -> str:
    """What becomes of the numbers in the one that is chosen."""
    counts = (
        (chosen.exact, "of the numbers are read back exactly"),
        (chosen.rounded, f"are rounded by at most {chosen.worst_error:.1g} of their value"),
        (chosen.clipped, "are clipped"),
        (chosen.left_as_text, "stay text"),
    )
    told = [(count, what) for place, (count, what) in enumerate(counts) if count or not place]
    parts = (f"{_percent(count / chosen.numbers)} {what}" for count, what in told)
    return f"In {chosen.name}, {', '.join(parts)}."


def _remarks(of: Statistics, chosen: Loss) -> Iterator[str]:
    """What looks odd."""
    if grammar := wanted_grammar(of):
        yield (
            f"This looks like text for another grammar: count again with grammar={grammar!r}, and"
            " encode with it."
        )
    zeros = of.counts.labelled("marks").get("leading zeros", 0)
    if zeros > TOLD * of.written:
        yield (
            f"{_percent(zeros / of.written)} are written with leading zeros, as codes are; only"
            " place and digits keep those (with keep_text=True, decoding gives them back)."
        )
    hyphens = of.counts.labelled("marks").get("minus after a word", 0)
    if hyphens > RARE * of.written:
        yield (
            f"{hyphens:,} have a minus sign after a word and a space, as the -300 of 75 -300mm and"
            " the -19 of COVID -19: look whether these are hyphens, which the grammar reads as signs."
        )
    for kind, count in _hints(of).items():
        yield (
            f"{count:,} times numbers look like one: {_HINTS[kind][0]}; the grammar that was used"
            " reads several."
        )
    negative = int(of.counts["negative_decades"].sum())
    if not chosen.representation.carries_sign and negative > TOLD * of.numbers:
        yield (
            f"{_percent(negative / of.numbers)} are negative; {chosen.representation.name} shows"
            " magnitudes, so their sign is a token of text before them."
        )
    if beyond := int(of.counts["beyond_float64"].sum()):
        yield f"{beyond:,} numbers are beyond float64 (1.8e308, or nearer to zero than 5e-324)."


def wanted_grammar(of: Statistics) -> str | None:
    """The name of the grammar that the written forms ask for in place of the one that was used; None
    if none does.

    The most frequent kind of numbers side by side decides, of those that make more than 1% of all
    numbers, or 0.1% for lakhs, as nothing else looks like them in running text. The decimal comma
    also has to be more frequent than numbers with one, two, or more than three digits after a
    point: with three, the point may be a european separator.
    """
    asking = {kind: count for kind, count in _hints(of).items() if _HINTS[kind][1]}
    return _HINTS[max(asking, key=asking.__getitem__)][1] if asking else None


def _hints(of: Statistics) -> dict[str, int]:
    """The kinds of numbers side by side that are frequent enough to tell."""
    counts, fraction = of.counts.labelled("side_by_side"), of.counts["fraction_digits"]
    if counts.get("decimal comma", 0) <= int(fraction.sum() - fraction[0] - fraction[3]):
        counts.pop("decimal comma", None)
    least = {"grouped in lakhs": RARE}
    return {
        kind: count for kind, count in counts.items() if count > least.get(kind, TOLD) * of.in_text
    }


def _percent(share: float) -> str:
    """``12%``, ``0.3%``; ``less than 0.1%`` rather than 0."""
    if 0 < share < 0.001:
        return "less than 0.1%"
    return f"{100 * share:.1f}".removesuffix(".0") + "%"
