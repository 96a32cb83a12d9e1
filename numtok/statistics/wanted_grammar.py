"""Whether a corpus looks as if its numbers were written by another grammar than the one that read
it.

In: :class:`~numtok.statistics.Statistics`, which count the numbers that stand side by side as the
    parts of one would, ``3`` and ``14`` in ``3,14``. Out: the name of a grammar, or the kinds of
    such neighbours that are worth a remark.
"""

from __future__ import annotations

from numtok.statistics.histograms import SIDE_BY_SIDE
from numtok.statistics.statistics import Statistics

# shares of the numbers from which on something odd, and something that nothing else looks like, are
# told
TOLD, RARE = 0.01, 0.001
_ASKS_FOR = {
    "decimal comma": "european",
    "grouped by apostrophe": "swiss",
    "grouped in lakhs": "indian",
}
EXAMPLES = {
    "decimal comma": "3,14 with a comma for the decimal point",
    "grouped by space": "12 345, grouped by spaces",
    "grouped by thin space": "12 345, grouped by thin spaces",
    "grouped by apostrophe": "12'345, grouped by apostrophes",
    "grouped in lakhs": "12,34,567, grouped in lakhs",
}


def wanted_grammar(statistics: Statistics) -> str | None:
    """The grammar, as ``--grammar`` takes it, that the written forms ask for in place of the one
    that was used; None if none does.

    The most frequent kind of numbers side by side decides, of those that make more than 1% of all
    numbers, or 0.1% for lakhs, as nothing else looks like them in running text. The decimal comma
    also has to be more frequent than numbers with one, two, or more than three digits behind a
    point: with three, the point may be a european separator.
    """
    asking = {kind: count for kind, count in hints(statistics).items() if kind in _ASKS_FOR}
    return _ASKS_FOR[max(asking, key=asking.__getitem__)] if asking else None


def hints(statistics: Statistics) -> dict[str, int]:
    """The kinds of numbers side by side that are frequent enough to tell."""
    counts = dict(zip(SIDE_BY_SIDE, statistics.counts.side_by_side.tolist(), strict=True))
    fraction = statistics.counts.fraction
    if counts["decimal comma"] <= int(fraction.sum() - fraction[0] - fraction[3]):
        del counts["decimal comma"]
    return {
        kind: count
        for kind, count in counts.items()
        if count > (RARE if kind == "grouped in lakhs" else TOLD) * statistics.in_text
    }
