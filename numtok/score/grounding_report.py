"""Report how many figures of many answers are in their sources, and which are not."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from numtok.score.claims import KINDS
from numtok.score.computed import MOST_OPERANDS
from numtok.score.grounding import Figure, Sources
from numtok.score.policy import Policy
from numtok.score.report import paired

EXAMPLES = 10  # that are printed
_CONTEXT = 40  # characters of the answer on each side of a figure


class Missing(NamedTuple):
    """A figure that the sources do not have: the answer's index, its text and span, and the text
    around it.
    """

    answer: int
    text: str
    start: int
    stop: int
    context: str


@dataclass
class GroundedReport:
    """A count of the figures of answers that the sources have, and those that they do not.

    Attributes:
        answers: how many there are.
        grounded_answers: those without an ungrounded figure.
        figures: the figures that claim something.
        found: of these, how many were found in each way, see :class:`numtok.score.Figure`.
        computed: those found by computing with two figures.
        ungrounded: those that were not found.
        ignored: figures that claim nothing, by kind.
        missing: the ungrounded figures.
        capped: answers whose sources have more figures than are computed with.

    Example:
        >>> report = GroundedReport(figures=4, ungrounded=1)
        >>> report.share
        0.75
    """

    answers: int = 0
    grounded_answers: int = 0
    figures: int = 0
    found: dict[str, int] = field(default_factory=dict)
    computed: int = 0
    ungrounded: int = 0
    ignored: dict[str, int] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    capped: int = 0

    @property
    def share(self) -> float:
        """The share of figures that were found; NaN without figures."""
        return (self.figures - self.ungrounded) / self.figures if self.figures else math.nan

    def add(self, answer: str, figures: Sequence[Figure]) -> None:
        """Count the figures of the next answer."""
        index = self.answers
        self.answers += 1
        self.grounded_answers += not any(one.ungrounded for one in figures)
        for one in figures:
            if one.ignored:
                self.ignored[one.ignored] = self.ignored.get(one.ignored, 0) + 1
                continue
            self.figures += 1
            self.computed += one.computed
            if one.found:
                self.found[one.how] = self.found.get(one.how, 0) + 1
            else:
                self.ungrounded += 1
                context = answer[max(0, one.start - _CONTEXT) : one.stop + _CONTEXT]
                self.missing.append(Missing(index, one.text, one.start, one.stop, context))

    def to_dict(self) -> dict[str, object]:
        """Return the fields for JSON; the share is None without figures."""
        share = self.share
        values = dataclasses.asdict(self) | {"share": None if math.isnan(share) else share}
        return values | {"missing": [one._asdict() for one in self.missing]}

    def __str__(self) -> str:
        rows = [("answers", self.answers, 0), ("  grounded", self.grounded_answers, self.answers)]
        rows += [("figures", self.figures, 0)]
        rows += [
            (f"  {how}", count, self.figures) for how, count in Counter(self.found).most_common()
        ]
        rows += [("  ungrounded", self.ungrounded, self.figures)]
        rows += [("no claims", sum(self.ignored.values()), 0)]
        rows += [(f"  {kind}", count, 0) for kind, count in Counter(self.ignored).most_common()]
        if self.capped:
            rows += [(f"over {MOST_OPERANDS} figures", self.capped, 0)]
        lines = [
            f"{name:<23}{count:>8,}" + (f"{100 * count / of:>8.1f}%" if of else "")
            for name, count, of in rows
        ]
        lines += [
            f"  answer {one.answer + 1}: {one.text!r} is not in the sources: {one.context!r}"
            for one in self.missing[:EXAMPLES]
        ]
        return "\n".join(lines)


def grounded_report(
    answers: Iterable[str | None],
    sources: Iterable[str | Sequence[str]],
    tolerance: str | float | Decimal = "rounding",
    policy: Policy | str = "default",
    ignore: Iterable[str] = KINDS,
    *,
    compute: bool = True,
    source_policy: Policy | str | None = None,
) -> GroundedReport:
    """Check the figures of answers, each against its own sources.

    Args:
        answers: the texts to check; None is an empty one.
        sources: a text, or several, for each answer.
        tolerance: what a figure may differ, as in :func:`numtok.score.grounded`.
        policy: how figures of the answers are written.
        ignore: the kinds of figures that are not held against an answer.
        compute: whether a figure may be computed from two of the sources.
        source_policy: how figures of the sources are written; by default as those of the answers.

    Raises:
        NumtokError: if there are more of one than of the other.

    Example:
        >>> made = grounded_report(["It has 12 rooms.", "It has 13."], ["12 rooms", "12 rooms"])
        >>> made.figures, made.ungrounded, made.share
        (2, 1, 0.5)
    """
    report, kinds = GroundedReport(), tuple(ignore)
    read_as = policy if source_policy is None else source_policy
    for answer, texts in paired(answers, sources, "there must be sources for each answer"):
        text = "" if answer is None else answer
        read_sources = Sources(texts, read_as)
        report.add(text, read_sources.check(text, tolerance, policy, kinds, compute=compute))
        report.capped += compute and read_sources.left_out > 0
    return report
