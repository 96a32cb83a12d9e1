"""How well numbers are predicted: as texts, digit by digit, as values; and perplexity and top-k
accuracy of tokens.

In: predictions and references of equal length n, each texts, numbers, a numpy array or a torch
tensor of one axis (:mod:`numtok_torch.metrics.decimals`). Out: one float. Texts and integers are
compared as exact decimals, never through floats.

A prediction is **unparseable** if it is not one finite number from end to end: ``"5 apples"``,
``""``, nan, inf. :func:`exact_match` and :func:`digit_accuracy` count it as wrong. The metrics of
values cannot give it a value: they refuse it, or leave it out with ``invalid="skip"``; report
:func:`share_unparseable` beside them. A reference that is unparseable is always an error, and so is
nothing to measure.

Errors are ``InputError`` (a ``ValueError``), and say which value is wrong.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from numtok.errors import InputError
from numtok_torch.metrics.decimals import Floats, decimals, differences, log10

IGNORED = -100


def exact_match(predictions: Any, references: Any, canonical: bool = False) -> float:
    """The share of predictions that are the reference, without tolerance: 1/n · Σ [p_i = r_i]. FoNE
    (Zhou et al. 2025) calls it number accuracy.

    (The published code accepts a difference below 10^-digits, which lets answers pass that are off
    by one in the last digit.)

    Args:
        predictions: n texts; any values if ``canonical``.
        references: n of the same kind.
        canonical: compare exact values, so that ``1.50``, ``1.5``, ``15e-1`` and ``+1.5`` are one,
            and ``1,234`` is 1234; minus zero is zero. Else the texts have to be the same, character
            by character.
    """
    if canonical:
        pairs = _read(predictions, references)
    else:
        pairs = _equally_long(
            _text_list(predictions, "predictions"), _text_list(references, "references")
        )
    return float(np.mean([one == right for one, right in zip(*pairs, strict=True)]))


def digit_accuracy(predictions: Any, references: Any) -> float:
    """The share of digits that are right, aligned at the decimal point: the mean over pairs of
    1/|P| · Σ_{k in P} [digit_k(p) = digit_k(r)].

    P, of one pair, are the powers of ten from the first digit of either number (at least the units)
    down to the last that the reference is written with (at most the units), and those below it
    where the prediction has a digit that is not 0. Above its first digit a number has none, which
    is wrong; below its last digit it has zeros. So for 112, 12 has 2 of 3 right; for 12, 112 too;
    for 1.5, 1.50 has all, and 1.52 has 2 of 3. Signs do not count (:func:`exact_match` sees them).
    An unparseable prediction has none right. After the digit-wise accuracy of FoNE (Zhou et al.
    2025), section 4.

    Every pair weighs the same, so that one very long prediction does not outweigh the others; the
    time taken goes by the digits written, not by the exponent.
    """
    pairs = zip(*_read(predictions, references), strict=True)
    return float(
        np.mean([0.0 if one is None else _same_digits(one, right) for one, right in pairs])
    )


def share_unparseable(predictions: Any) -> float:
    """The share of predictions that are not one finite number: 1 - 1/n · Σ [p_i is a number]."""
    predicted = decimals(predictions, "predictions")
    _something(len(predicted))
    return float(np.mean([one is None for one in predicted]))


def mean_squared_error(predictions: Any, references: Any, invalid: str = "error") -> float:
    """1/n · Σ (p_i - r_i)², in squared units of the values; infinite beyond the range of float64."""
    difference = differences(*_values(predictions, references, invalid))
    with np.errstate(over="ignore", under="ignore"):
        return float(np.mean(difference**2))


def mean_absolute_error(predictions: Any, references: Any, invalid: str = "error") -> float:
    """1/n · Σ |p_i - r_i|, in units of the values; infinite beyond the range of float64."""
    difference = np.abs(differences(*_values(predictions, references, invalid)))
    return float(np.sum(difference / len(difference)))  # a sum of all would overflow sooner


def log_error(predictions: Any, references: Any, invalid: str = "error") -> float:
    """1/n · Σ |log10 |p_i| - log10 |r_i||, in decades: 1 is off by a factor of ten. Signs do not
    count.

    Two zeros differ by 0, zero and another number by infinity. Values beyond the range of float64
    have their true logarithm. The log-MAE of Berg-Kirkpatrick and Spokoyny (2020), section 5.
    """
    pairs = zip(*_values(predictions, references, invalid), strict=True)
    logs = [(log10(one), log10(right)) for one, right in pairs]
    # equal infinities would give nan
    return float(np.mean([0.0 if one == right else abs(one - right) for one, right in logs]))


def r_squared(predictions: Any, references: Any, invalid: str = "error") -> float:
    """The coefficient of determination, 1 - Σ (r_i - p_i)² / Σ (r_i - r̄)²; nan if all references
    are equal (Draper and Smith 1998, section 1.3).
    """
    predicted, expected = _values(predictions, references, invalid)
    spread = differences(expected, expected[:1] * len(expected))
    residuals = differences(predicted, expected)
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


def token_losses(logits: Any, labels: Any, ignore_index: int = IGNORED) -> Floats:
    """-log softmax(logits)[label] of each token that has a label, in nats.

    Args:
        logits: (..., vocabulary).
        labels: (...), integers. Both are aligned: shift the labels of a causal model first,
            ``token_losses(logits[:, :-1], labels[:, 1:])``.
        ignore_index: labels that are this are left out.

    Shape: float64 (labels that are not ignored,). Losses of several batches are concatenated.
    """
    scores, chosen = _scores(logits, labels, ignore_index)
    losses = torch.nn.functional.cross_entropy(
        torch.from_numpy(scores), torch.from_numpy(chosen), reduction="none"
    )
    return np.asarray(losses.numpy())


def number_metrics(evaluated: Any) -> dict[str, float]:
    """How near a head's numbers are to the right ones, for a Trainer: ``Trainer(...,
    compute_metrics=number_metrics, preprocess_logits_for_metrics=numbers_only)``.

    Args:
        evaluated: transformers' ``EvalPrediction``, whose predictions are those that
            :func:`numbers_only` left: (rows, seq, 3).

    Returns:
        ``numbers``, how many there were; :func:`mean_absolute_error`, :func:`log_error`,
        :func:`r_squared`, and as ``exact_match`` the share that is exactly right.
    """
    values = np.asarray(evaluated.predictions)
    if values.ndim != 3 or values.shape[-1] != 3:
        raise InputError("number_metrics needs preprocess_logits_for_metrics=numbers_only too")
    predicted, right, there = values.reshape(-1, 3).T
    predicted, right = predicted[there == 1], right[there == 1]
    if not len(right):
        return {"numbers": 0.0}
    measured = (mean_absolute_error, log_error, r_squared)
    return {
        "numbers": float(len(right)),
        "exact_match": exact_match(predicted, right, canonical=True),
        **{metric.__name__: metric(predicted, right) for metric in measured},
    }


def numbers_only(outputs: Any, labels: Any) -> torch.Tensor:
    """What :func:`number_metrics` needs of the outputs of a NumberModel, for a Trainer to collect
    in place of all logits: (batch, seq, 3), the number predicted, the right one, and 1 where there
    is a number.
    """
    if not isinstance(outputs, tuple | list) or len(outputs) < 2:
        raise InputError("the model predicts no numbers: give it a head, and rows with numbers")
    *_, predicted, right = outputs
    there = ~(predicted.isnan() | right.isnan())
    return torch.stack([predicted, right, there.to(predicted.dtype)], -1)


def perplexity(losses: Any) -> float:
    """exp(1/n · Σ loss_i), of losses in nats such as :func:`token_losses` gives; infinite from a
    mean of 709.8 on (Jelinek et al. 1977).
    """
    values = _array(losses).astype(np.float64).reshape(-1)
    _something(len(values))
    if np.isnan(values).any():
        raise InputError(
            f"loss {_first(np.isnan(values))} is nan; leave out tokens without a label before"
        )
    with np.errstate(over="ignore"):
        return float(np.exp(values.mean()))


def top_k_accuracy(logits: Any, labels: Any, k: int = 5, ignore_index: int = IGNORED) -> float:
    """The share of labels that are among the k classes with the highest logits: 1/n · Σ [#{c before
    l_i} < k].

    Class c is before label l if its logit is higher, or equal with c < l: of equal ones only as
    many count as fit, so that constant logits do not score 1. Arguments as in :func:`token_losses`.
    """
    if k < 1:
        raise InputError(f"k={k} must be positive")
    scores, chosen = _scores(logits, labels, ignore_index)
    own = np.take_along_axis(scores, chosen[:, None], axis=-1)  # (n, 1)
    # (n, vocabulary)
    before = (scores > own) | ((scores == own) & (np.arange(scores.shape[-1]) < chosen[:, None]))
    return float(np.mean(before.sum(axis=-1) < k))


def _read(predictions: Any, references: Any) -> tuple[list[Decimal | None], list[Decimal]]:
    """Both as decimals; every reference is one."""
    predicted, expected = _equally_long(
        decimals(predictions, "predictions"), decimals(references, "references")
    )
    if None in expected:
        raise InputError(
            f"reference {expected.index(None)} is not one finite number; leave this pair out"
        )
    return predicted, expected


def _values(predictions: Any, references: Any, invalid: str) -> tuple[list[Decimal], list[Decimal]]:
    """Both as decimals, without the pairs that are left out."""
    if invalid not in ("error", "skip"):
        raise InputError(f"invalid={invalid!r} is unknown; use 'error' or 'skip'")
    predicted, expected = _read(predictions, references)
    if None in predicted and invalid == "error":
        raise InputError(
            f"prediction {predicted.index(None)} is not one finite number; leave such pairs out"
            " with invalid='skip', and report share_unparseable beside it"
        )
    pairs = zip(predicted, expected, strict=True)
    kept = [(one, right) for one, right in pairs if one is not None]
    _something(len(kept))
    return [one for one, _ in kept], [right for _, right in kept]


def _digits(value: Decimal) -> tuple[dict[int, int], int, int]:
    """({power of ten: digit, if not 0}, the first digit's power, the last one's)."""
    _, written, power = value.as_tuple()
    assert isinstance(power, int)  # it is finite
    digits = {power + place: digit for place, digit in enumerate(reversed(written)) if digit}
    return digits, max(0, *digits) if digits else 0, min(0, power)


def _same_digits(prediction: Decimal, reference: Decimal) -> float:
    given, given_first, _ = _digits(prediction)
    right, right_first, last = _digits(reference)
    below = sum(1 for place in given if place < last)
    common = min(given_first, right_first)
    wrong = sum(
        1
        for place in given.keys() | right.keys()
        if last <= place <= common and given.get(place) != right.get(place)
    )
    return (common - last + 1 - wrong) / (max(given_first, right_first) - last + 1 + below)


def _text_list(values: Any, name: str) -> list[str]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise InputError(
            f"{name} must be a list of texts, as these are compared character by character; give"
            " canonical=True to compare values"
        )
    return list(values)


def _equally_long(predictions: Any, references: Any) -> tuple[Any, Any]:
    if len(predictions) != len(references):
        raise InputError(
            f"there are {len(predictions)} predictions, but {len(references)} references; each"
            " prediction needs its own"
        )
    _something(len(references))
    return predictions, references


def _something(count: int) -> None:
    if not count:
        raise InputError("there is nothing to measure: no prediction is left")


def _first(mask: npt.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(mask)[0])


def _array(values: Any) -> npt.NDArray[Any]:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        return np.asarray((values.double() if values.is_floating_point() else values).numpy())
    return np.asarray(values)


def _scores(logits: Any, labels: Any, ignore_index: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """((n, vocabulary), (n,)) of the labels that count."""
    scores, chosen = _array(logits), _array(labels)
    if scores.ndim < 1 or scores.shape[:-1] != chosen.shape:
        raise InputError(
            f"logits have shape {scores.shape}, labels {chosen.shape}; labels need the shape of the"
            " logits without the last axis"
        )
    if chosen.size and chosen.dtype.kind not in "iu":
        raise InputError(f"labels are {chosen.dtype}; give integers")
    kept = chosen != ignore_index
    _something(int(kept.sum()))
    scores, chosen = scores[kept].astype(np.float64), chosen[kept].astype(np.int64)
    highest = scores.max(axis=-1)  # (n,); -inf is a logit, if there are others
    if not np.isfinite(highest).all():
        raise InputError(
            f"the logits of label {_first(~np.isfinite(highest))} of those measured are nan or"
            " infinite"
        )
    if ((chosen < 0) | (chosen >= scores.shape[-1])).any():
        raise InputError(
            f"labels must be from 0 to {scores.shape[-1] - 1}, the classes of the logits, or"
            f" {ignore_index}"
        )
    return scores, chosen
