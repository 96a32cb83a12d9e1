"""Predictions and references, of whatever kind, as exact decimals and as floats: what
:mod:`numtok_torch.metrics.metrics` measures.

In: n values: texts, ints, floats, ``Decimal``, numpy arrays or torch tensors. Out:
:class:`Decimals`, with ``Numbers`` for those that are a finite number, and a mask of which they
are. Texts are read by numtok's grammar and have to be one number from end to end: ``"1,234"`` and
``"-5e3"`` are, ``"5 apples"``, ``""``, ``"nan"`` and ``"inf"`` are not. Nothing passes through a
float on the way, so integers of 60 digits stay what they are; a float stands for the shortest
decimal that reads back as it, in its own precision: float32 0.1 is 0.1.
"""

from __future__ import annotations

import decimal
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from numtok.errors import InputError
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# A difference of two decimals, rounded once, to more digits than a float has. Arithmetic in it
# takes time in proportion to its 40 digits, not to the exponents, so that 1e999999 - 1 is no
# attack.
_CONTEXT = decimal.Context(prec=40, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])


@dataclass(frozen=True)
class Decimals:
    """n values.

    Attributes:
        numbers: those that are a finite number, in order.
        valid: bool[n], which of them are.
    """

    numbers: Numbers
    valid: Mask

    def __len__(self) -> int:
        return len(self.valid)

    @functools.cached_property
    def keys(self) -> list[tuple[bool, bytes, int]]:
        """Per valid number (negative, significant digits, power of ten of the last): equal exactly
        if the values are; minus zero is zero.
        """
        offsets = self.numbers.digit_offsets.tolist()
        digits = self.numbers.digits.tobytes()
        keys = []
        for number, (minus, power) in enumerate(
            zip(self.numbers.negative.tolist(), self.numbers.exponent.tolist(), strict=True)
        ):
            written = digits[offsets[number] : offsets[number + 1]]
            kept = written.rstrip(b"\0")
            significant = kept.lstrip(b"\0")
            keys.append(
                (minus, significant, power + len(written) - len(kept))
                if significant
                else (False, b"", 0)
            )
        return keys

    def log10(self) -> Floats:
        """float64[valid numbers]: log10 of the magnitudes, -inf for zero, finite for every other,
        however large.
        """
        logarithms = np.full(len(self.keys), -np.inf)
        for number, (_, significant, power) in enumerate(self.keys):
            if significant:
                leading = significant[:18]  # more than a float holds
                whole = int(bytes(digit + 48 for digit in leading))
                logarithms[number] = np.log10(whole) + (power + len(significant) - len(leading))
        return logarithms


def decimals(values: Any, name: str) -> Decimals:
    """``values`` as exact decimals.

    Raises:
        InputError: if they are neither texts nor numbers, or have more than one axis.
    """
    texts = _texts(values, name)
    numbers = scan(texts, Grammar())
    sizes = np.array([len(text.encode()) for text in texts], np.int64)
    whole = (numbers.start == 0) & (numbers.stop == sizes[numbers.document])
    valid = np.zeros(len(texts), np.bool_)
    valid[numbers.document[whole]] = True
    return Decimals(numbers.select(whole), valid)


def _texts(values: Any, name: str) -> list[str]:
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
    return [_text(value, name, number) for number, value in enumerate(values)]


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


def differences(minuends: Decimals, subtrahends: Decimals) -> Floats:
    """float64[n]: ``minuends`` minus ``subtrahends``, of n valid numbers each, exact decimals
    rounded once; infinite beyond the range.
    """
    return _subtract(minuends.numbers.to_decimal(), subtrahends.numbers.to_decimal())


def deviations(values: Decimals) -> Floats:
    """float64[n]: each valid number minus the first of them, exact decimals rounded once."""
    exact = values.numbers.to_decimal()
    return _subtract(exact, exact[:1] * len(exact))


def _subtract(minuends: list[Decimal], subtrahends: list[Decimal]) -> Floats:
    return np.array(
        [float(_CONTEXT.subtract(a, b)) for a, b in zip(minuends, subtrahends, strict=True)],
        np.float64,
    )
