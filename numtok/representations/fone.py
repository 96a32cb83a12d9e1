"""FoNE: one ``[NUM]`` per number, shown as cosine and sine of 2πx/T for periods T that are powers
of ten, one per digit.

In: n numbers, their magnitudes; the sign stays in the text, as in the paper. Out:
    ``number_fourier``, float32[n, m + n, 2]: cosine and sine for the periods 10**(1 - n) to 10**m,
    ascending, for m integer and n fraction digits; or compact, ``number_digits``, uint8[n, m + n]:
    the digits, least significant first, so that digit k is the leading one in feature k's phase.
    Inverse: from the least significant digit up (:func:`inverse_digits`); exact for every decimal
    with at most m integer and n fraction digits, at any m + n, through float32, float16 and
    bfloat16. FoNE: Precise Single-Token Number Embeddings via Fourier Features (Zhou et al. 2025),
    definition 3.1 and algorithm 1; 4.17 has the phases .7, .17 and .417.

Phases come from the digits, never from a float of the whole number: the fraction of a turn at
period 10**i is 0.ddd..., and each is the one before it after the next digit, divided by ten.
Features are within 1e-7 of their true value, whatever the length.

**Other bases.** ``bases=(2, 5, 10)`` has the periods 2, 5 and 10 times every 10**i from 10**-n up
to 10**(m + 1) - 1, sorted, as the authors' code does: (m + n) features for base 10, m + n + 1 for
each other. Every base has the same exact inverse: with X = x·10**n = b·J + r, the phases of base b
are those of the remainder r over b, then of the digits of J.

**Two decoders.** ``rule="nearest phase"`` is the paper's head: digit k is the j whose phase j/b is
nearest to that of feature k, for all bases together. It reads what a model that was trained on
digits puts out; it does not invert the encoder, where the digits below turn the phase further, so
that 4.96 reads as 5.06. ``rule="exact"`` inverts the encoder.

**Chunks.** ``chunk=5`` splits long numbers into groups of five digits (the paper's appendix on long
numbers), counted from the least significant, the last one filled up with zeros; the tensor is
[chunks, features of five digits, 2], or compact [chunks, 5], and each chunk is encoded by itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import allocating_kernel
from numtok.numbers.numbers import Numbers
from numtok.representations import decimals
from numtok.representations.base import Mask, SingleToken
from numtok.representations.columns import Column, tensor_array, tensor_values

MOST_DIGITS = 4096  # of one tensor

Digits = npt.NDArray[np.uint8]
Features = npt.NDArray[np.float32]


@dataclass(frozen=True)
class FoNE(SingleToken):
    """Fourier features of each number's magnitude, one period per digit.

    Attributes:
        int_digits, frac_digits: m and n, the digits before and after the point that are held;
            leading and trailing zeros do not count.
        bases: the numbers, 2 to 10, that the powers of ten are multiplied with to give the periods,
            divided by ten for base 10.
        compact: store the digits instead of the features; the torch layer takes either.
        overflow: for numbers with more digits (``"clip"``: the nearest with m and n digits; halves
            go to the even digit).
        chunk: the digits per chunk, or None for one tensor of all digits.

    Example:
        >>> import numtok
        >>> numbers = numtok.Numbers.parse(["60.2"])
        >>> numtok.FoNE(3, 2).encode(numbers)["number_fourier"].to_numpy_ndarray().shape
        (1, 5, 2)
        >>> digits = numtok.FoNE(3, 2, compact=True).encode(numbers)["number_digits"]
        >>> digits.to_numpy_ndarray().tolist()
        [[0, 2, 0, 6, 0]]
    """

    int_digits: int
    frac_digits: int
    bases: tuple[int, ...] = (10,)
    compact: bool = False
    overflow: str = "text"
    chunk: int | None = None
    exact = True
    name = "fone"
    declared = (  # with chunks, one more axis in front
        Column("number_fourier", pa.float32(), np.float32, (0, 2), encoding="plain"),
        Column("number_digits", pa.uint8(), np.uint8, (0,), encoding="split"),
    )
    carries_sign = False
    positional = ("int_digits", "frac_digits")

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.int_digits, self.frac_digits) < 0 or not 1 <= self.n_digits <= MOST_DIGITS:
            raise self.refused(
                f"int_digits={self.int_digits}, frac_digits={self.frac_digits} must not be"
                f" negative, nor both 0, nor above {MOST_DIGITS} together"
            )
        different = {*self.bases} & {*range(2, 11)}
        if not self.bases or len(different) < len(self.bases):
            raise self.refused(
                f"bases={self.bases} must be different integers from 2 to 10, such as (10,) or"
                " (2, 5, 10)"
            )
        if self.chunk is not None and not 1 <= self.chunk <= MOST_DIGITS:
            raise self.refused(
                f"chunk={self.chunk} must be a positive number of digits up to {MOST_DIGITS}, or"
                " None"
            )
        object.__setattr__(self, "bases", tuple(sorted(self.bases)))

    @property
    def n_digits(self) -> int:
        """The digits held, m + n."""
        return self.int_digits + self.frac_digits

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a number's features: (features, 2), or (chunks, features of a chunk, 2)."""
        features = len(self.periods)
        return (features, 2) if self.chunk is None else (self._chunks, features, 2)

    @property
    def periods(self) -> tuple[Decimal, ...]:
        """The period of each feature, ascending; of a chunk's features, with the chunk read as an
        integer.
        """
        digits, low = (self.n_digits, -self.frac_digits) if self.chunk is None else (self.chunk, 0)
        return tuple(
            Decimal(base).scaleb(low + k)
            for k in range(digits + 1)
            for base in self.bases
            if k < digits or base < 10
        )

    @property
    def _chunks(self) -> int:
        return -(-self.n_digits // (self.chunk or self.n_digits))

    @property
    def exact_digit_range(self) -> range:
        return range(-self.frac_digits, self.int_digits)

    def fits(self, numbers: Numbers) -> Mask:
        return decimals.fit(numbers, self.int_digits, self.frac_digits)

    def columns(self) -> dict[str, Column]:
        fourier, digits = self.declared
        if not self.compact:
            return {fourier.name: fourier.shaped(*self.shape)}
        shape = (self.n_digits,) if self.chunk is None else (self._chunks, self.chunk)
        return {digits.name: digits.shaped(*shape)}

    def encode(self, numbers: Numbers) -> dict[str, pa.Array]:
        digits = self.digits(numbers)
        (column,) = self.columns().values()
        values = self._by_chunk(digits) if self.compact else self.features(digits)
        return {column.name: tensor_array(values, column.type)}

    def decode(self, columns: Mapping[str, pa.Array]) -> Numbers:
        if self.compact:
            return self.numbers(self._stored_digits(columns["number_digits"]))
        return self.numbers(self.decode_digits(tensor_values(columns["number_fourier"])))

    def expand(self, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        if "number_digits" not in columns:
            return super().expand(columns)
        dense = dataclasses.replace(self, compact=False)
        (column,) = dense.columns().values()
        features = self.features(self._stored_digits(columns["number_digits"]))
        return {column.name: tensor_array(features, column.type)}

    def _stored_digits(self, column: pa.Array) -> Digits:
        """Return uint8[n, m + n] of the compact column."""
        digits = tensor_values(column).reshape(-1, self._chunks * (self.chunk or self.n_digits))
        if digits.size and digits.max() > 9:
            raise self.refused(f"number_digits holds {digits.max()}, which is not a digit")
        return np.ascontiguousarray(digits[:, : self.n_digits])

    def decode_prediction(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Numbers | None:
        # which no float may hold
        return self.numbers(arrays["number_digits"]) if "number_digits" in arrays else None

    def digits(self, numbers: Numbers) -> Digits:
        """Return uint8[n, m + n], the digits of the nearest number that is held, least significant
        first.
        """
        return decimals.in_slots(numbers, self.int_digits, self.frac_digits)

    def numbers(self, digits: Digits) -> Numbers:
        """Return the numbers of digits: the inverse of :meth:`digits`."""
        flat = np.ascontiguousarray(digits).reshape(-1)
        values, offsets, exponent = decimals.without_zeros(flat, self.n_digits, self.frac_digits)
        return Numbers.from_digits(np.zeros(len(digits), np.bool_), values, offsets, exponent)

    def features(self, digits: Digits) -> Features:
        """Convert digits, uint8[n, m + n], to features, float32[n, *shape]."""
        groups = self._by_chunk(digits)
        flat = np.ascontiguousarray(groups).reshape(-1, groups.shape[-1])  # [n * chunks, width]
        features, step = len(self.periods), len(self.bases)
        out = memory.empty(len(flat) * features * 2, np.float32).reshape(-1, features, 2)
        for place, base in enumerate(self.bases):
            slots = flat if base == 10 else decimals.divide(flat, base)
            _features(slots, base, out[:, place::step])
        return out.reshape(-1, *self.shape)

    def decode_digits(self, features: npt.NDArray[Any], rule: str = "exact") -> Digits:
        """Return the digits of features that a model predicted.

        Args:
            features: any float[n, *shape].
            rule: ``"exact"`` inverts the encoder, ``"nearest phase"`` reads each digit by itself.

        Returns:
            uint8[n, m + n], least significant first.

        Raises:
            RepresentationError: for features of another shape, or that are not finite.
        """
        rules = {"exact": inverse_digits, "nearest phase": nearest_phase}
        if rule not in rules:
            listing = ", ".join(map(repr, rules))
            raise self.refused(f"rule={rule!r} is unknown; use one of {listing}")
        if features.shape[1:] != self.shape:
            expected = ", ".join(map(str, self.shape))
            raise self.refused(
                f"features have the shape {features.shape}, expected (n, {expected})"
            )
        features = np.ascontiguousarray(features, np.float32)
        finite = np.isfinite(features).all(tuple(range(1, features.ndim)))
        if not finite.all():
            raise self.refused(
                f"the features of number {np.argmin(finite)} are not finite; mask it out before"
                " decoding"
            )
        groups, width = features.reshape(-1, len(self.periods), 2), self.chunk or self.n_digits
        slots = rules[rule](groups, width, self.bases)
        return slots.reshape(-1, self._chunks * width)[:, : self.n_digits]

    def _by_chunk(self, digits: Digits) -> Digits:
        """Convert uint8[n, m + n] to uint8[n, chunks, chunk], filled up with zeros, if there are
        any.
        """
        if self.chunk is None:
            return digits
        filled = memory.full(len(digits) * self._chunks * self.chunk, 0, np.uint8)
        filled.reshape(-1, self._chunks * self.chunk)[:, : self.n_digits] = digits
        return filled.reshape(len(digits), self._chunks, self.chunk)


def inverse_digits(features: Features, width: int, bases: tuple[int, ...] = (10,)) -> Digits:
    """Convert features, float32[n, features, 2], to digits, uint8[n, width], least significant
    first: the inverse of the encoder, by its largest base.

    Digit by digit, the digits found so far say how far they turn the next phase; what is left is a
    multiple of a tenth of a turn. Every phase may be off by up to a twentieth of a turn.
    """
    base = bases[-1]
    steps = width + (base < 10)
    slots = memory.empty(len(features) * steps, np.uint8).reshape(-1, steps)
    _inverse(features[:, len(bases) - 1 :: len(bases)], base, slots)
    return slots if base == 10 else decimals.multiply(slots, base)


def nearest_phase(features: Features, width: int, bases: tuple[int, ...] = (10,)) -> Digits:
    """Convert features, float32[n, features, 2], to digits, uint8[n, width], by the paper's head:
    digit k is the j that maximises Σ over bases of feature k · φ(j, base).
    """
    turns = np.arange(10)[:, None] / np.array(bases)  # [10, bases]
    table = np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], -1)  # [10, bases, 2]
    by_digit = features[:, : width * len(bases)].reshape(len(features), width, 2 * len(bases))
    return np.asarray(np.argmax(by_digit @ table.reshape(10, -1).T, axis=-1), np.uint8)


# turns are looked up to three digits, and the rest of the angle, below π/1000, is a short power
# series
_TABLE = 1000
_COSINES = np.array([math.cos(2 * math.pi * k / _TABLE) for k in range(_TABLE + 1)])
_SINES = np.array([math.sin(2 * math.pi * k / _TABLE) for k in range(_TABLE + 1)])
_COSINES[[_TABLE // 4, 3 * _TABLE // 4]] = 0.0  # as 2π is not exact
_SINES[[_TABLE // 2, _TABLE]] = 0.0


@allocating_kernel
def _features(slots, base, out):  # type: ignore[no-untyped-def]
    """Write cosine and sine of every slot's phase, uint8[n, k], to ``out``, float32[n, k, 2]."""
    for i in range(slots.shape[0]):
        # in [0, 1): correct to some units in the last place of a double, as each error is divided
        # by ten with the digits
        turn, radix = 0.0, float(base)
        for k in range(slots.shape[1]):
            turn = (turn + slots[i, k]) / radix
            radix = 10.0
            near = np.int64(turn * _TABLE + 0.5)
            rest = (turn - near / _TABLE) * (2 * math.pi)
            square = rest * rest
            sine = rest * (1 - square * (1 / 6 - square / 120))
            cosine = 1 - square * (0.5 - square / 24)
            out[i, k, 0] = _COSINES[near] * cosine - _SINES[near] * sine
            out[i, k, 1] = _SINES[near] * cosine + _COSINES[near] * sine


@allocating_kernel
def _inverse(features, base, out):  # type: ignore[no-untyped-def]
    """Decode slot by slot: the inverse of :func:`_features`."""
    for i in range(out.shape[0]):
        below, radix = 0.0, base
        for k in range(out.shape[1]):
            turn = math.atan2(features[i, k, 1], features[i, k, 0]) / (2 * math.pi)
            slot = np.int64(math.floor(turn * radix - below + 0.5)) % radix
            out[i, k] = slot
            below = (below + slot) / radix
            radix = 10
