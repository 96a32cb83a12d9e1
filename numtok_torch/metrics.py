"""Metrics of predicted numbers: as decimals, digit by digit, as values; and for a Trainer.

In: predictions and references of equal length n, each texts, numbers, a numpy array or a torch
tensor of one axis. Out: one float. Texts are read by numtok's grammar, and all are compared as
exact decimals, never through floats: integers of 60 digits stay what they are, and a float stands
for the shortest decimal that reads back as it, in its own precision.

A prediction is **unparseable** if it is not one finite number from end to end: ``"5 apples"``,
``""``, nan, inf. :func:`exact_match` and :func:`digit_accuracy` count it as wrong. The metrics of
values cannot give it a value: they refuse it, or leave it out with ``invalid="skip"``; report
:func:`share_unparseable` beside them. A reference that is unparseable is always an error, and so is
nothing to measure.

Errors are ``InputError`` (a ``ValueError``), and say which value is wrong.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from numtok.errors import InputError
from numtok.numbers.grammar import Grammar
from numtok.numbers.scan import scan

__all__ = [
    "digit_accuracy",
    "exact_match",
    "log_error",
    "mean_absolute_error",
    "median_log_error",
    "number_metrics",
    "numbers_only",
    "r_squared",
    "share_unparseable",
]
Floats = npt.NDArray[np.float64]
PADDING = -100  # of outputs that transformers gathers

# To more digits than a float has; its time goes by these 40 digits, not by the exponents, so that
# 1e999999 - 1 is no attack.
_CONTEXT = decimal.Context(prec=40, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])


def exact_match(predictions: Any, references: Any) -> float:
    """Return the share of predictions that are the reference, without tolerance: 1/n · Σ [p_i =
    r_i]. FoNE (Zhou et al. 2025) calls it number accuracy.

    Exact values are compared, so that ``1.50``, ``1.5``, ``15e-1`` and ``+1.5`` are one, and
    ``1,234`` is 1234; minus zero is zero. (The published code accepts a difference below
    10^-digits, which lets answers pass that are off by one in the last digit.)

    Args:
        predictions: n texts, numbers, or an array or tensor of shape (n,). One that is not a
            finite number is wrong.
        references: as many, in one of these forms.

    Example:
        >>> exact_match(["1.50", "1,234", "5 apples"], ["1.5", "1234", "5"])
        0.6666666666666666
    """
    return float(np.mean([one == right for one, right in _all_pairs(predictions, references)]))


def digit_accuracy(predictions: Any, references: Any) -> float:
    """Return the share of digits that are right, aligned at the decimal point: the mean over pairs
    of 1/|P| · Σ_{k in P} [digit_k(p) = digit_k(r)].

    P, of one pair, are the powers of ten from the first digit of either number (at least the units)
    down to the last that the reference is written with (at most the units), and those below it
    where the prediction has a digit that is not 0. Above its first digit a number has none, which
    is wrong; below its last digit it has zeros. So for 112, 12 has 2 of 3 right; for 12, 112 too;
    for 1.5, 1.50 has all, and 1.52 has 2 of 3. Signs do not count (:func:`exact_match` sees them).
    An unparseable prediction has none right. After the digit-wise accuracy of FoNE (Zhou et al.
    2025), section 4.

    Every pair weighs the same, so that one very long prediction does not outweigh the others; the
    time taken goes by the digits written, not by the exponent.

    Args:
        predictions: n texts, numbers, or an array or tensor of shape (n,). One that is not a
            finite number is wrong.
        references: as many, in one of these forms.

    Example:
        >>> digit_accuracy(["112", "1.52"], ["12", "1.5"])
        0.6666666666666666
    """
    pairs = _all_pairs(predictions, references)
    return float(
        np.mean([0.0 if one is None else _same_digits(one, right) for one, right in pairs])
    )


def share_unparseable(predictions: Any) -> float:
    """Return the share of predictions that are not one finite number: 1 - 1/n · Σ [p_i is a
    number].

    Args:
        predictions: n texts, numbers, or an array or tensor of shape (n,).

    Example:
        >>> share_unparseable(["5", "5 apples", "nan", "1e5"])
        0.5
    """
    predicted = _decimals(predictions, "predictions")
    _something(len(predicted))
    return float(np.mean([one is None for one in predicted]))


def mean_absolute_error(predictions: Any, references: Any, invalid: str = "error") -> float:
    """Return 1/n · Σ |p_i - r_i|, in units of the values; infinite beyond the range of float64.

    Args:
        predictions: n texts, numbers, or an array or tensor of shape (n,).
        references: as many, in one of these forms.
        invalid: ``"error"`` refuses a prediction that is not one finite number; ``"skip"``
            leaves out its pair.

    Raises:
        InputError: for such a prediction, or a reference that is not one finite number.

    Example:
        >>> mean_absolute_error(["2", "10.5", "none"], [1, 10, 5], invalid="skip")
        0.75
    """
    difference = np.abs(_differences(_pairs(predictions, references, invalid)))
    return float(np.sum(difference / len(difference)))  # a sum of all would overflow sooner


def log_error(predictions: Any, references: Any, invalid: str = "error") -> float:
    """Return 1/n · Σ |log10 |p_i| - log10 |r_i||, in decades: 1 is off by a factor of ten. Signs do
    not count.

    Two zeros differ by 0, zero and another number by infinity. Values beyond the range of float64
    have their true logarithm. The log-MAE of Berg-Kirkpatrick and Spokoyny (2020), section 5.

    Args:
        predictions: n texts, numbers, or an array or tensor of shape (n,).
        references: as many, in one of these forms.
        invalid: ``"error"`` refuses a prediction that is not one finite number; ``"skip"``
            leaves out its pair.

    Raises:
        InputError: for such a prediction, or a reference that is not one finite number.

    Example:
        >>> log_error([100, -10], [10, 10])
        0.5
    """
    return float(np.mean(_log_errors(predictions, references, invalid)))


def median_log_error(predictions: Any, references: Any, invalid: str = "error") -> float:
    """Return the median in place of the mean of :func:`log_error`, which one zero does not make
    infinite: half of the predictions are off by no more decades than this.

    Args:
        predictions: n texts, numbers, or an array or tensor of shape (n,).
        references: as many, in one of these forms.
        invalid: ``"error"`` refuses a prediction that is not one finite number; ``"skip"``
            leaves out its pair.

    Raises:
        InputError: for such a prediction, or a reference that is not one finite number.

    Example:
        >>> median_log_error([100, 10, 0], [10, 10, 10])
        1.0
    """
    return float(np.median(_log_errors(predictions, references, invalid)))


def _log_errors(predictions: Any, references: Any, invalid: str) -> list[float]:
    pairs = _pairs(predictions, references, invalid)
    logs = [(_log10(one), _log10(right)) for one, right in pairs]
    # equal infinities would give nan
    return [0.0 if one == right else abs(one - right) for one, right in logs]


def r_squared(predictions: Any, references: Any, invalid: str = "error") -> float:
    """Return the coefficient of determination, 1 - Σ (r_i - p_i)² / Σ (r_i - r̄)²; nan if all
    references are equal (Draper and Smith 1998, section 1.3).

    Args:
        predictions: n texts, numbers, or an array or tensor of shape (n,).
        references: as many, in one of these forms.
        invalid: ``"error"`` refuses a prediction that is not one finite number; ``"skip"``
            leaves out its pair.

    Raises:
        InputError: for such a prediction, or a reference that is not one finite number.

    Example:
        >>> r_squared([1, 2, 4], [1, 2, 3])
        0.5
    """
    pairs = _pairs(predictions, references, invalid)
    residuals = _differences(pairs)
    spread = _differences([(right, pairs[0][1]) for _, right in pairs])
    scale = np.abs(spread).max()
    if scale == 0:
        return float("nan")
    if not np.isfinite(scale):
        raise InputError(
            "the references lie further apart than float64 reaches, so R² cannot be computed; use"
            " log_error"
        )
    # so that neither sum overflows; R² does not change with the unit, nor with where the values are
    # counted from
    spread /= scale
    with np.errstate(over="ignore", under="ignore"):
        return float(1 - np.sum((residuals / scale) ** 2) / np.sum((spread - spread.mean()) ** 2))


def number_metrics(evaluated: Any) -> dict[str, float]:
    """Measure how near a head's numbers are to the right ones, for a Trainer: ``Trainer(...,
    compute_metrics=number_metrics, preprocess_logits_for_metrics=numbers_only)``.

    Args:
        evaluated: transformers' ``EvalPrediction``, whose predictions are those that
            :func:`numbers_only` left: (rows, seq, 3).

    Returns:
        ``numbers``, how many there were; :func:`exact_match`, :func:`mean_absolute_error`,
        :func:`median_log_error` and :func:`r_squared`.

    Example:
        >>> import numpy as np
        >>> from transformers import EvalPrediction
        >>> values = np.array([[[5.0, 5.0, 1.0], [8.0, 10.0, 1.0]]])  # as numbers_only has them
        >>> metrics = number_metrics(EvalPrediction(values, None))
        >>> metrics["numbers"], metrics["exact_match"], metrics["mean_absolute_error"]
        (2.0, 0.5, 1.0)
    """
    values = evaluated.predictions  # several arrays, unless numbers_only has made one of them
    batches = values if isinstance(values, list) else [values]  # with eval_do_concat_batches=False
    if not all(isinstance(one, np.ndarray) and one.ndim == 3 == one.shape[2] for one in batches):
        raise InputError("number_metrics needs preprocess_logits_for_metrics=numbers_only too")
    predicted, right, there = np.concatenate([one.reshape(-1, 3) for one in batches]).T
    predicted, right = predicted[there == 1], right[there == 1]
    if not len(right):
        return {"numbers": 0.0}
    measured = (mean_absolute_error, median_log_error, r_squared)
    return {
        "numbers": float(len(right)),
        "exact_match": exact_match(predicted, right),
        **{metric.__name__: metric(predicted, right) for metric in measured},
    }


def numbers_only(outputs: Any, labels: Any) -> torch.Tensor:
    """Reduce the outputs of a NumberModel to what :func:`number_metrics` needs, for a Trainer to
    collect in place of all logits: (batch, seq, 3), the number predicted, the right one, and 1
    where there is a number. Numbers that are infinite as float64 are left out, as from losses.

    Example:
        >>> import torch
        >>> logits, predicted = torch.zeros(1, 2, 10), torch.tensor([[torch.nan, 5.0]])
        >>> right = torch.tensor([[torch.nan, 6.0]])
        >>> numbers_only((logits, predicted, right), labels=None)
        tensor([[[nan, nan, 0.],
                 [5., 6., 1.]]])
    """
    if not isinstance(outputs, tuple | list) or len(outputs) < 2:
        raise InputError("the model predicts no numbers: give it a head, and rows with numbers")
    *_, predicted, right = outputs
    there = ~predicted.isnan() & right.isfinite() & ~_is_padding(outputs)
    return torch.stack([predicted, right, there.to(predicted.dtype)], -1)


def _is_padding(outputs: Sequence[Any]) -> torch.Tensor:
    """Find the columns that transformers appends where another process has wider rows: bool (seq,).
    All outputs are -100 there, in every row.
    """
    *_, predicted, right = outputs
    is_padding: torch.Tensor = ((predicted == PADDING) & (right == PADDING)).all(0)  # (seq,)
    (columns,) = is_padding.nonzero(as_tuple=True)
    for output in outputs if len(columns) else ():  # logits are large
        if isinstance(output, torch.Tensor) and output.shape[:2] == predicted.shape:
            values = output[:, columns].transpose(0, 1).flatten(1)  # (columns, ...)
            is_padding[columns] &= (values == PADDING).all(1)
    return is_padding


def _decimals(values: Any, name: str) -> list[Decimal | None]:
    """Convert texts, ints, floats, ``Decimal``, a numpy array or a tensor, as exact decimals; None
    for what is not one finite number. InputError if they are neither texts nor numbers, or have
    more than one axis.
    """
    if isinstance(values, str | bytes):
        raise InputError(f"{name} is a single text; give a list of them")
    if isinstance(values, torch.Tensor):
        values = _array(values)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(
            f"{name} has shape {values.shape}; give one axis, such as values.reshape(-1)"
        )
    if not isinstance(values, Sequence | np.ndarray):
        raise InputError(
            f"{name} is {type(values).__name__}; give a list, a numpy array or a tensor"
        )
    texts = [_text(value, name, number) for number, value in enumerate(values)]
    numbers = scan(texts, Grammar())
    sizes = np.array([len(text.encode()) for text in texts], np.int64)
    whole = (numbers.start == 0) & (numbers.stop == sizes[numbers.document])
    values_of_texts: list[Decimal | None] = [None] * len(texts)
    read = zip(numbers.document[whole].tolist(), numbers.select(whole).to_decimal(), strict=True)
    for document, value in read:
        values_of_texts[document] = value
    return values_of_texts


def _array(tensor: torch.Tensor) -> npt.NDArray[Any]:
    """Convert a tensor to an array of its own dtype; one of bfloat16, which numpy does not have, to
    the float64 of its shortest decimals.
    """
    values = tensor.detach().cpu()
    if values.dtype is not torch.bfloat16:
        return values.numpy()
    shortest = values.double()
    for digits in (4, 3, 2, 1):  # four are always enough
        texts = [f"{value:.{digits}g}" for value in values.flatten().tolist()]
        shorter = torch.tensor([*map(float, texts)], dtype=torch.float64).view_as(values)
        shortest = torch.where(shorter.to(torch.bfloat16) == values, shorter, shortest)
    return shortest.numpy()


def _text(value: Any, name: str, number: int) -> str:
    if isinstance(value, str):
        # a lone surrogate, which a decoder may give, is no number
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, torch.Tensor):
        value = _array(value.reshape(()))[()]
    if type(value) is int:
        return str(Decimal(value))  # str(int) refuses more than 4300 digits
    if isinstance(value, float | Decimal | np.integer | np.floating):
        return str(value)
    if value is None:
        return ""
    raise InputError(f"{name}: value {number} is {type(value).__name__}; give texts or numbers")


def _all_pairs(predictions: Any, references: Any) -> list[tuple[Decimal | None, Decimal]]:
    """Return (prediction, reference) as decimals; every reference is one."""
    predicted = _decimals(predictions, "predictions")
    expected: list[Any] = _decimals(references, "references")
    if len(predicted) != len(expected):
        raise InputError(
            f"there are {len(predicted)} predictions, but {len(expected)} references; each"
            " prediction needs its own"
        )
    _something(len(expected))
    if None in expected:
        raise InputError(
            f"reference {expected.index(None)} is not one finite number; leave this pair out"
        )
    return list(zip(predicted, expected, strict=True))


def _pairs(predictions: Any, references: Any, invalid: str) -> list[tuple[Decimal, Decimal]]:
    """Return (prediction, reference) as decimals, without the pairs that are left out."""
    if invalid not in ("error", "skip"):
        raise InputError(f"invalid={invalid!r} is unknown; use 'error' or 'skip'")
    pairs = []
    for number, (one, right) in enumerate(_all_pairs(predictions, references)):
        if one is not None:
            pairs.append((one, right))
        elif invalid == "error":
            raise InputError(
                f"prediction {number} is not one finite number; leave such pairs out with"
                " invalid='skip', and report share_unparseable beside it"
            )
    _something(len(pairs))
    return pairs


def _something(count: int) -> None:
    if not count:
        raise InputError("there is nothing to measure: no prediction is left")


def _digits(value: Decimal) -> tuple[dict[int, int], int, int]:
    """Return ({power of ten: digit, if not 0}, the first digit's power, the last one's)."""
    _, written, power = value.as_tuple()
    assert isinstance(power, int)  # it is finite
    digits = {power + place: digit for place, digit in enumerate(reversed(written)) if digit}
    return digits, max(0, *digits) if digits else 0, min(0, power)


def _same_digits(prediction: Decimal, reference: Decimal) -> float:
    predicted, predicted_first, _ = _digits(prediction)
    right, right_first, last = _digits(reference)
    below = sum(1 for place in predicted if place < last)
    common = min(predicted_first, right_first)
    wrong = sum(
        1
        for place in predicted.keys() | right.keys()
        if last <= place <= common and predicted.get(place) != right.get(place)
    )
    return (common - last + 1 - wrong) / (max(predicted_first, right_first) - last + 1 + below)


def _differences(pairs: Sequence[tuple[Decimal, Decimal]]) -> Floats:
    """Return the differences, float64[n], rounded once; infinite beyond the range."""
    return np.array([float(_CONTEXT.subtract(a, b)) for a, b in pairs], np.float64)


def _log10(value: Decimal) -> float:
    """Return the logarithm of the magnitude: -inf for zero, finite for every other value, however
    large.
    """
    if not value:
        return -math.inf
    leading = _CONTEXT.scaleb(_CONTEXT.plus(value), -value.adjusted())  # from 1 to 10
    return math.log10(abs(float(leading))) + value.adjusted()
