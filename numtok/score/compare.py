"""Whether two numbers are the same answer, and how near they are, in exact arithmetic."""

from __future__ import annotations

import itertools
import math
import numbers
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from fractions import Fraction

from numtok.errors import NumtokError
from numtok.score.final import final_number
from numtok.score.policy import Policy, policy_named
from numtok.score.reading import Answer

Value = str | Answer | numbers.Real | Decimal | None
Exact = Decimal | Fraction
TARGETS = "default"  # the policy that reads targets: plain decimals, as programs write them
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_FAR = 10_000  # powers of ten between two numbers that need no exact comparison
_SHORT = Context(prec=_FAR, Emax=MAX_EMAX, Emin=MIN_EMIN)
ROUNDED = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def equal(
    prediction: Value,
    target: Value,
    tolerance: float | str | Decimal = 0,
    policy: Policy | str = "default",
    *,
    absolute: float | str | Decimal = 0,
    target_policy: Policy | str = TARGETS,
) -> bool:
    """Whether a prediction gives the target's number.

    Args:
        prediction: a text, whose :func:`final_number` counts, or a number. A float is the decimal
            that it prints as: 0.1 is 0.1, also in float32. None and texts without a number equal nothing.
        target: a text or a number, as the prediction.
        tolerance: relative to the target, in decimals: 0.01 allows 1%.
        policy: how predictions are read, and what may differ (per cent, unit, currency).
        absolute: another tolerance, that is not relative; the larger one counts.
        target_policy: how a target that is a text is read. ``"default"`` reads plain decimals, such
            as 1.5, whatever the policy of the predictions.

    Raises:
        NumtokError: for a tolerance below 0 or a policy that does not exist.

    Example:
        >>> equal("The answer is 1,072 clips.", "1072")
        True
        >>> equal("about 3.14", "3.14159", tolerance=0.01)
        True
    """
    chosen = policy_named(policy)
    predicted, wanted = (
        answer_of(prediction, chosen),
        answer_of(target, policy_named(target_policy)),
    )
    if predicted is None or wanted is None or not is_same_kind(predicted, wanted, chosen):
        return False
    relative, fixed = _tolerance(tolerance), _tolerance(absolute)
    pairs = value_pairs(predicted, wanted, chosen)
    return any(_close(one, other, relative, fixed) for one, other in pairs)


def answer_of(value_or_text: Value, policy: Policy) -> Answer | None:
    """Read a text's final number as an answer, or take a number as one.

    Raises:
        NumtokError: for what is neither.
    """
    if value_or_text is None or isinstance(value_or_text, Answer):
        return value_or_text
    if isinstance(value_or_text, str):
        return final_number(value_or_text, policy)
    if isinstance(value_or_text, Fraction):
        # Python writes decimals of any length, and integers of at most 4,300 digits
        over, under = map(Decimal, value_or_text.as_integer_ratio())
        return Answer(value_or_text, f"{over}/{under}", 0, 0)
    if isinstance(value_or_text, Decimal):
        value = value_or_text
    elif isinstance(value_or_text, numbers.Integral):
        value = Decimal(int(value_or_text))
    elif isinstance(value_or_text, numbers.Real):
        value = Decimal(str(value_or_text))  # as it prints in its own width, float32 too
    else:
        raise NumtokError(f"{value_or_text!r:.60} is neither a text nor a number")
    return Answer(value, str(value), 0, 0) if value.is_finite() else None


def digits_right(prediction: Answer, target: Answer) -> float:
    """Return the number of correct leading digits: minus log10 of the relative error (McCullough
    1998, "log relative error"), at least 0; infinite if the two are equal.

    Example:
        >>> round(digits_right(final_number("3.14"), final_number("3.14159")), 1)
        3.3
    """
    return leading_digits_right(prediction.value, target.value)


def leading_digits_right(value: Exact, wanted: Exact) -> float:
    """Return :func:`digits_right` of two values."""
    if value == wanted:
        return math.inf
    divisor = rounded(wanted)
    if not divisor:
        return 0.0
    error = ROUNDED.divide(ROUNDED.subtract(rounded(value), divisor), divisor).copy_abs()
    return max(0.0, -float(ROUNDED.log10(error))) if error else float(ROUNDED.prec)


def magnitude(value: Exact) -> tuple[int, int]:
    """Return (sign, power of ten) of the first digit."""
    if not value:
        return 0, 0
    if isinstance(value, Decimal):
        return (-1 if value < 0 else 1), value.adjusted()
    power = math.floor(math.log10(abs(value.numerator)) - math.log10(value.denominator))
    power += abs(value) >= Fraction(10) ** (power + 1)  # the logarithm is rounded
    power -= abs(value) < Fraction(10) ** power
    return (-1 if value < 0 else 1), power


def is_same_kind(prediction: Answer, target: Answer, policy: Policy) -> bool:
    """Whether per cent, currency and unit agree where the policy asks for it."""
    return (
        (policy.percent != "match" or prediction.percent == target.percent)
        and (policy.currency != "match" or prediction.currency == target.currency)
        and (policy.units != "match" or prediction.unit == target.unit)
    )


def value_pairs(prediction: Answer, target: Answer, policy: Policy) -> list[tuple[Exact, Exact]]:
    """Return the pairs of values to compare: one, or several if a per cent has two readings.

    Two per cents are read in the same way.
    """
    readings = _readings(prediction, policy), _readings(target, policy)
    if prediction.percent and target.percent:
        return list(zip(*readings, strict=True))
    return list(itertools.product(*readings))


def _readings(answer: Answer, policy: Policy) -> list[Exact]:
    """Return the values that an answer may have."""
    if not answer.percent or policy.percent in ("ignore", "match"):
        return [answer.value]
    value = answer.value
    hundredth = value / 100 if isinstance(value, Fraction) else value.scaleb(-2, _EXACT)
    return [hundredth] if policy.percent == "divide" else [value, hundredth]


def _close(one: Exact, other: Exact, relative: Fraction, fixed: Fraction) -> bool:
    if one == other:
        return True
    powers = magnitude(one)[1], magnitude(other)[1]
    if fixed and max(powers) < _FAR:
        near = [0 if power < -_FAR else v for v, power in zip((one, other), powers, strict=True)]
        if abs(_exactly(near[0]) - _exactly(near[1])) <= fixed:
            return True
    if not one:
        return relative >= 1
    if not (other and relative) or abs(powers[0] - powers[1]) > _FAR:
        return False
    if isinstance(one, Decimal) and isinstance(other, Decimal):  # near 1, for short fractions
        one, other = one.scaleb(-powers[1], _EXACT), other.scaleb(-powers[1], _EXACT)
    left, right = _exactly(one), _exactly(other)
    return abs(left - right) <= relative * abs(right)


def _exactly(value: Exact | int) -> Fraction:
    """Convert to a fraction of at most ``_FAR`` digits. More digits take long, and only decimals
    have them.
    """
    return Fraction(_SHORT.plus(value) if isinstance(value, Decimal) else value)


def rounded(value: Exact) -> Decimal:
    """Return the value to 60 significant digits."""
    if isinstance(value, Decimal):
        return ROUNDED.plus(value)
    return ROUNDED.divide(Decimal(value.numerator), Decimal(value.denominator))


def _tolerance(tolerance: float | str | Decimal) -> Fraction:
    try:
        value = Fraction(str(tolerance))
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if value < 0:
        raise NumtokError(
            f"a tolerance is a number from 0 on, such as 0.01 for 1%, not {tolerance!r}"
        )
    return value
