"""Report how good a list of answers is: shares of exact and of near ones, digits right, errors of
estimates, and examples of what could not be read.
"""

from __future__ import annotations

import dataclasses
import decimal
import math
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from numtok.errors import NumtokError
from numtok.score.compare import (
    ROUNDED,
    TARGETS,
    Value,
    answer_of,
    equal,
    is_same_kind,
    leading_digits_right,
    magnitude,
    rounded,
    value_pairs,
)
from numtok.score.cut import looks_cut
from numtok.score.policy import Policy, policy_named

EXAMPLES = 10
MOST_RIGHT = 15.0  # digits that an exact answer counts for, as a float64 has them
_LONGEST = 200


@dataclass
class Report:
    """Score of a model's answers: the number that are right, and how near the others are.

    Attributes:
        total: pairs with a target that is a number.
        exact, within_1_percent, within_10_percent, same_magnitude: how many are, of the target's
            kind (per cent, unit, currency, as the policy has it); the last means the same sign and
            the same power of ten of the first digit.
        unparseable: predictions without a number; they count as wrong everywhere.
        looks_cut: predictions that seem to stop before their end, with or without a number, see
            :func:`numtok.score.looks_cut`.
        without_target: targets without a number; counted here alone.
        digits_right: mean of :func:`numtok.score.digits_right` over those that could be read, an
            exact one counting 15, one of another kind than the target 0.
        compared: answers that the next three are made of: those that could be read and are of the
            target's kind.
        mean_absolute_error: mean of \\|answer - target\\|.
        median_relative_error: median of \\|answer - target\\| / \\|target\\|, 0.05 for 5%; without
            targets of 0.
        r_squared: coefficient of determination, 1 - Σ(answer - target)² / Σ(target - mean target)².
            All three are NaN where there is nothing to make them of.
        examples: (index, end of the prediction) of the first unparseable ones.
        cut_examples: (index, end of the prediction) of the first that look cut and have a number.
        target_examples: (index, target) of the first targets without a number.
        mistakes: (index, number read, target) of the first that are not exact.

    Example:
        >>> Report(total=4, exact=3).accuracy
        0.75
    """

    total: int = 0
    exact: int = 0
    within_1_percent: int = 0
    within_10_percent: int = 0
    same_magnitude: int = 0
    unparseable: int = 0
    looks_cut: int = 0
    without_target: int = 0
    digits_right: float = 0.0
    compared: int = 0
    mean_absolute_error: float = math.nan
    median_relative_error: float = math.nan
    r_squared: float = math.nan
    examples: list[tuple[int, str]] = field(default_factory=list)
    cut_examples: list[tuple[int, str]] = field(default_factory=list)
    target_examples: list[tuple[int, str]] = field(default_factory=list)
    mistakes: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def accuracy(self) -> float:
        """Share of exact answers."""
        return self.exact / self.total if self.total else math.nan

    def to_dict(self) -> dict[str, object]:
        """Return the fields for JSON: None for what is NaN or beyond a float."""
        values = dataclasses.asdict(self) | {"accuracy": self.accuracy}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()
        }

    def __str__(self) -> str:
        counts = [
            ("exact", self.exact),
            ("within 1%", self.within_1_percent),
            ("within 10%", self.within_10_percent),
            ("same magnitude", self.same_magnitude),
            ("unparseable", self.unparseable),
            ("looks cut", self.looks_cut),
        ]
        share = 100 / self.total if self.total else 0.0
        rows = [("answers", f"{self.total:>8,}")]
        rows += [(name, f"{count:>8,}{count * share:>8.1f}%") for name, count in counts]
        rows.append(("digits right", f"{self.digits_right:>8.2f}  mean; {MOST_RIGHT:g} if exact"))
        if self.compared:
            rows += self._error_rows()
        if self.without_target:
            rows.append(("no target", f"{self.without_target:>8,}"))
        lines = [f"{name:<23}{content}" for name, content in rows]
        lines += [f"  answer {at + 1}: no number in {end!r}" for at, end in self.examples]
        lines += [f"  answer {at + 1}: looks cut, {end!r}" for at, end in self.cut_examples]
        lines += [f"  target {at + 1}: no number in {one!r}" for at, one in self.target_examples]
        lines += [
            f"  answer {at + 1}: {found} is not {target}" for at, found, target in self.mistakes
        ]
        return "\n".join(lines)

    def _error_rows(self) -> list[tuple[str, str]]:
        relative = 100 * self.median_relative_error
        values = [
            ("mean absolute error", self.mean_absolute_error, f"{self.mean_absolute_error:.4g}"),
            ("median relative error", relative, f"{relative:.3g}%"),
            ("R²", self.r_squared, f"{self.r_squared:.4f}"),
        ]
        of = "" if self.compared == self.total else f"  of {self.compared:,} answers"
        return [
            (name, f"{'-' if math.isnan(value) else text:>8}{of}") for name, value, text in values
        ]


def report(
    predictions: Iterable[Value],
    targets: Iterable[Value],
    policy: Policy | str = "default",
    target_policy: Policy | str = TARGETS,
) -> Report:
    """Compare predictions with targets, pair by pair.

    Args:
        predictions: texts or numbers, see :func:`numtok.score.equal`.
        targets: texts or numbers, one for each prediction.
        policy: how predictions are read, and what may differ.
        target_policy: how targets that are texts are read.

    Raises:
        NumtokError: if there are more of one than of the other.

    Example:
        >>> scored = report(["It is 12.", "None."], ["12", "7"])
        >>> scored.total, scored.exact, scored.unparseable
        (2, 1, 1)
    """
    answers_as, targets_as = policy_named(policy), policy_named(target_policy)
    result, digits, compared = Report(), list[float](), list[tuple[Decimal, Decimal]]()
    pairs = paired(predictions, targets, "there must be a target for each prediction")
    for index, (prediction, target) in enumerate(pairs):
        wanted = answer_of(target, targets_as)
        if wanted is None:
            result.without_target += 1
            _note(result.target_examples, index, target)
            continue
        result.total += 1
        is_cut = isinstance(prediction, str) and looks_cut(prediction, answers_as)
        result.looks_cut += is_cut
        answer = answer_of(prediction, answers_as)
        if answer is None:
            result.unparseable += 1
            _note(result.examples, index, prediction)
            continue
        if is_cut:
            _note(result.cut_examples, index, prediction)
        exact = equal(answer, wanted, 0, answers_as)
        result.exact += exact
        result.within_1_percent += equal(answer, wanted, "0.01", answers_as)
        result.within_10_percent += equal(answer, wanted, "0.1", answers_as)
        right = 0.0
        if is_same_kind(answer, wanted, answers_as):
            readings = value_pairs(answer, wanted, answers_as)
            values = max(readings, key=lambda pair: leading_digits_right(*pair))
            right = MOST_RIGHT if exact else min(MOST_RIGHT, leading_digits_right(*values))
            result.same_magnitude += exact or magnitude(values[0]) == magnitude(values[1])
            compared.append((rounded(values[0]), rounded(values[1])))
        digits.append(right)
        if not exact and len(result.mistakes) < EXAMPLES:
            result.mistakes.append((index, answer.text[:_LONGEST], wanted.text[:_LONGEST]))
    result.digits_right = statistics.fmean(digits) if digits else 0.0
    result.compared = len(compared)
    errors = _errors(compared)
    result.mean_absolute_error, result.median_relative_error, result.r_squared = errors
    return result


def paired(one: Iterable[Any], other: Iterable[Any], otherwise: str) -> Iterator[tuple[Any, Any]]:
    """Yield pairs; raise a NumtokError that begins with ``otherwise`` if one has more than the other."""
    try:
        yield from zip(one, other, strict=True)
    except ValueError as error:
        raise NumtokError(f"{otherwise}: {error}") from error


def _note(examples: list[tuple[int, str]], index: int, value: Value) -> None:
    """Keep the end of an example, while there are few."""
    if len(examples) < EXAMPLES:
        examples.append((index, "" if value is None else str(value)[-_LONGEST:]))


def _errors(pairs: list[tuple[Decimal, Decimal]]) -> tuple[float, float, float]:
    """Return mean absolute error, median relative error and R² of (answer, target), to 60 digits."""
    if not pairs:
        return math.nan, math.nan, math.nan
    count = len(pairs)
    with decimal.localcontext(ROUNDED):
        errors = [abs(value - target) for value, target in pairs]
        relative = [e / abs(target) for e, (_, target) in zip(errors, pairs, strict=True) if target]
        offsets = [target - pairs[0][1] for _, target in pairs]  # all 0 if the targets are equal
        mean = sum(offsets, Decimal(0)) / count
        spread = sum(((offset - mean) ** 2 for offset in offsets), Decimal(0))
        squares = sum((error * error for error in errors), Decimal(0))
        return (
            float(sum(errors) / count),
            float(statistics.median(relative)) if relative else math.nan,
            float(1 - squares / spread) if spread else math.nan,
        )
