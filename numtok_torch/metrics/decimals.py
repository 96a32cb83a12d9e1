"""Predictions and references, of whatever kind, as exact decimals.

Texts are read by numtok's grammar and have to be one number from end to end: ``"1,234"`` and
``"-5e3"`` are, ``"5 apples"``, ``""``, ``"nan"`` and ``"inf"`` are not. Nothing passes through a
float on the way, so integers of 60 digits stay what they are; a float stands for the shortest
decimal that reads back as it, in its own precision: float32 0.1 is 0.1.
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

Floats = npt.NDArray[np.float64]

# To more digits than a float has; its time goes by these 40 digits, not by the exponents, so that
# 1e999999 - 1 is no attack.
_CONTEXT = decimal.Context(prec=40, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])


def decimals(values: Any, name: str) -> list[Decimal | None]:
    """Texts, ints, floats, ``Decimal``, a numpy array or a tensor, as exact decimals; None for what
    is not one finite number. InputError if they are neither texts nor numbers, or have more than
    one axis.
    """
    if isinstance(values, str | bytes):
        raise InputError(f"{name} is a single text; give a list of them")
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        values = (values.float() if values.dtype is torch.bfloat16 else values).numpy()
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
    found: list[Decimal | None] = [None] * len(texts)
    read = zip(numbers.document[whole].tolist(), numbers.select(whole).to_decimal(), strict=True)
    for document, value in read:
        found[document] = value
    return found


def _text(value: Any, name: str, number: int) -> str:
    if isinstance(value, str):
        # a lone surrogate, which a decoder may give, is no number
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, torch.Tensor):
        value = value.item()
    if type(value) is int:
        return str(Decimal(value))  # str(int) refuses more than 4300 digits
    if isinstance(value, float | Decimal | np.integer | np.floating):
        return str(value)
    if value is None:
        return ""
    raise InputError(f"{name}: value {number} is {type(value).__name__}; give texts or numbers")


def differences(minuends: Sequence[Decimal], subtrahends: Sequence[Decimal]) -> Floats:
    """float64[n], rounded once; infinite beyond the range."""
    pairs = zip(minuends, subtrahends, strict=True)
    return np.array([float(_CONTEXT.subtract(a, b)) for a, b in pairs], np.float64)


def log10(value: Decimal) -> float:
    """Of the magnitude: -inf for zero, finite for every other, however large."""
    if not value:
        return -math.inf
    leading = _CONTEXT.scaleb(_CONTEXT.plus(value), -value.adjusted())  # from 1 to 10
    return math.log10(abs(float(leading))) + value.adjusted()
