"""What a list of answers is worth: shares of exact and of near ones, digits right, and examples of
what could not be read.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from numtok.errors import NumtokError
from numtok.score.compare import Value, answer_of, digits_right, equal, magnitude
from numtok.score.policy import Policy, policy_named

EXAMPLES = 10
MOST_RIGHT = 15.0  # digits that an exact answer counts for, as a float64 has them
_LONGEST = 200


@dataclass
class Report:
    """How many answers of a model are right, and how near the others are.

    Attributes:
        total: pairs with a target that is a number.
        exact, within_1_percent, within_10_percent, same_magnitude: how many are; the last means
            the same sign and the same power of ten of the first digit.
        unparseable: predictions without a number; they count as wrong everywhere.
        without_target: targets without a number; counted here alone.
        digits_right: mean of :func:`numtok.score.digits_right` over those that could be read, an
            exact one counting ``MOST_RIGHT``.
        examples: (index, end of the prediction) of the first unparseable ones.
        mistakes: (index, number read, target) of the first that are not exact.
    """

    total: int = 0
    exact: int = 0
    within_1_percent: int = 0
    within_10_percent: int = 0
    same_magnitude: int = 0
    unparseable: int = 0
    without_target: int = 0
    digits_right: float = 0.0
    examples: list[tuple[int, str]] = field(default_factory=list)
    mistakes: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def accuracy(self) -> float:
        """Share of exact answers."""
        return self.exact / self.total if self.total else math.nan

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return dataclasses.asdict(self) | {"accuracy": self.accuracy if self.total else None}

    def __str__(self) -> str:
        rows = [
            ("exact", self.exact),
            ("within 1%", self.within_1_percent),
            ("within 10%", self.within_10_percent),
            ("same magnitude", self.same_magnitude),
            ("unparseable", self.unparseable),
        ]
        lines = [f"{'answers':<16}{self.total:>8,}"]
        share = 100 / self.total if self.total else 0.0
        lines += [f"{name:<16}{count:>8,}{count * share:>8.1f}%" for name, count in rows]
        lines.append(
            f"{'digits right':<16}{self.digits_right:>8.2f}  mean; {MOST_RIGHT:g} if exact"
        )
        if self.without_target:
            lines.append(f"{'no target':<16}{self.without_target:>8,}")
        lines += [f"  answer {at + 1}: no number in {end!r}" for at, end in self.examples]
        lines += [
            f"  answer {at + 1}: {found} is not {target}" for at, found, target in self.mistakes
        ]
        return "\n".join(lines)


def report(
    predictions: Iterable[Value], targets: Iterable[Value], policy: Policy | str = "default"
) -> Report:
    """Compare predictions with targets, pair by pair.

    Args:
        predictions: texts or numbers, see :func:`numtok.score.equal`.
        targets: likewise, as many.
        policy: how texts are read and what may differ.

    Raises:
        NumtokError: if there are more of one than of the other.
    """
    chosen, made, digits = policy_named(policy), Report(), 0.0
    try:
        for index, (prediction, target) in enumerate(zip(predictions, targets, strict=True)):
            digits += _count(made, index, prediction, target, chosen)
    except ValueError as error:
        raise NumtokError(f"there must be a target for each prediction: {error}") from error
    read = made.total - made.unparseable
    made.digits_right = digits / read if read else 0.0
    return made


def _count(made: Report, index: int, prediction: Value, target: Value, policy: Policy) -> float:
    """Count one pair; its digits that are right."""
    wanted = answer_of(target, policy)
    if wanted is None:
        made.without_target += 1
        return 0.0
    made.total += 1
    found = answer_of(prediction, policy)
    if found is None:
        made.unparseable += 1
        if len(made.examples) < EXAMPLES:
            made.examples.append((index, "" if prediction is None else str(prediction)[-_LONGEST:]))
        return 0.0
    exact = equal(found, wanted, 0, policy)
    made.exact += exact
    made.within_1_percent += equal(found, wanted, "0.01", policy)
    made.within_10_percent += equal(found, wanted, "0.1", policy)
    made.same_magnitude += exact or magnitude(found.value) == magnitude(wanted.value)
    if not exact and len(made.mistakes) < EXAMPLES:
        made.mistakes.append((index, found.text[:_LONGEST], wanted.text[:_LONGEST]))
    return MOST_RIGHT if exact else min(MOST_RIGHT, digits_right(found, wanted))
