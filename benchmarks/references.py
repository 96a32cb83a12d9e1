"""The representations' algorithms, written plainly in Python and numpy: what numtok is held to, and
timed beside.

In: numbers as decimal strings. Out: the array that numtok's representation gives, see
    ``representations.as_numpy``. Each ``_decode`` gives what ``Decimal`` reads.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.representations import ExponentBins, LogFourier, NumeroLogic, PlaceValue, QuantileBins

Strings = list[str]
Array = npt.NDArray[Any]


def xval_encode(strings: Strings) -> Array:
    """float32[n]."""
    return np.array([float(one) for one in strings], np.float32)


def xval_decode(values: Array) -> list[str]:
    """The shortest decimals."""
    return [str(value) for value in values]


def words_encode(strings: Strings, width: int = 32) -> Array:
    """uint32[n] or uint64[n], by struct."""
    word, value, kind = (">I", ">f", np.uint32) if width == 32 else (">Q", ">d", np.uint64)
    return np.array(
        [struct.unpack(word, struct.pack(value, float(one)))[0] for one in strings], kind
    )


def words_decode(words: Array) -> list[str]:
    """The inverse."""
    if words.dtype == np.uint64:
        return [repr(struct.unpack(">d", struct.pack(">Q", word))[0]) for word in words.tolist()]
    return [
        str(np.float32(struct.unpack(">f", struct.pack(">I", word))[0])) for word in words.tolist()
    ]


def bits_encode(strings: Strings, width: int = 32) -> Array:
    """uint8[n, width], by shifts."""
    words = np.array([float(one) for one in strings], f"f{width // 8}").view(f"u{width // 8}")
    return ((words[:, None] >> np.arange(width - 1, -1, -1, dtype=words.dtype)) & 1).astype(
        np.uint8
    )


def bits_decode(bits: Array) -> list[str]:
    """The inverse."""
    width = bits.shape[1]
    shifts = np.arange(width - 1, -1, -1, dtype=f"u{width // 8}")
    words = (bits.astype(shifts.dtype) << shifts).sum(1, dtype=shifts.dtype)
    return [str(value) for value in words.view(f"f{width // 8}")]


def fone_encode(strings: Strings, before: int, after: int) -> Array:
    """float32[n, m + n, 2] as published, in float64."""
    values = np.array([float(one) for one in strings])
    periods = 10.0 ** np.arange(1 - after, before + 1)
    angles = 2 * np.pi * ((values[:, None] / periods) % 1.0)
    return np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32)


def fone_exact(strings: Strings, before: int, after: int) -> Array:
    """The same by integers, for more digits than a float64 has."""
    whole = [int(Decimal(one).scaleb(after)) for one in strings]
    turns = [[x % 10**k / 10**k for k in range(1, before + after + 1)] for x in whole]
    angles = 2 * np.pi * np.array(turns).reshape(-1, before + after)
    return np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32)


def fone_digits(strings: Strings, before: int, after: int) -> Array:
    """uint8[n, m + n], least significant first."""
    rows = []
    for one in strings:
        integer, _, fraction = one.partition(".")
        rows.append(
            [int(digit) for digit in reversed(integer.zfill(before) + fraction.ljust(after, "0"))]
        )
    return np.array(rows, np.uint8).reshape(-1, before + after)


def fone_decode(features: Array, after: int) -> list[Decimal]:
    """From the least significant digit up."""
    decoded = []
    for turns in (np.arctan2(features[:, :, 1], features[:, :, 0]) / (2 * np.pi)).tolist():
        below, value = 0.0, 0
        for k, turn in enumerate(turns):
            digit = round(turn * 10 - below) % 10
            below = (below + digit) / 10
            value += digit * 10**k
        decoded.append(Decimal(value).scaleb(-after))
    return decoded


def digits_decode(digits: Array, after: int) -> list[Decimal]:
    """The inverse of :func:`fone_digits`."""
    return [Decimal("".join(map(str, reversed(row)))).scaleb(-after) for row in digits.tolist()]


def place_encode(strings: Strings) -> Array:
    """int64[3, symbols]: symbols, places, and the number that each belongs to."""
    symbols, places, which = [], [], []
    alphabet = {character: symbol for symbol, character in enumerate(PlaceValue.alphabet)}
    for number, text in enumerate(strings):
        mantissa, _, exponent = text.lower().partition("e")
        power = (
            sum(character.isdigit() for character in mantissa.partition(".")[0])
            - 1
            + int(exponent or 0)
        )
        for k, character in enumerate(text):
            digit = character.isdigit() and k < len(mantissa)
            symbols.append(alphabet["-" if character == "\u2212" else character])
            places.append((power + 1 if power >= 0 else power) if digit else 0)
            which.append(number)
            power -= digit
    return np.array([symbols, places, which], np.int64)


def place_decode(encoded: Array) -> list[str]:
    """The characters, without commas."""
    spoken: list[str] = []
    for symbol, number in zip(encoded[0].tolist(), encoded[2].tolist(), strict=True):
        if number == len(spoken):
            spoken.append("")
        if PlaceValue.alphabet[symbol] != ",":
            spoken[-1] += PlaceValue.alphabet[symbol]
    return spoken


def groups_encode(one: Any) -> Callable[[Strings], Array]:
    """int64[2, symbols]: symbols, and the number that each belongs to; runs of digits by a regular
    expression, integers from the right.
    """
    index = {symbol: number for number, symbol in enumerate(one.alphabet)}
    behind_the_point = re.compile(rf"\d{{1,{one.group}}}|\D")
    before_it = re.compile(rf"\d{{1,{one.group}}}(?=(?:\d{{{one.group}}})*(?!\d))|\D")

    def encode(strings: Strings) -> Array:
        symbols, which = [], []
        for number, text in enumerate(strings):
            mantissa, e, exponent = text.replace("\u2212", "-").partition(
                "e" if "e" in text else "E"
            )
            integer, point, fraction = mantissa.partition(".")
            words = [
                *before_it.findall(integer),
                *point,
                *behind_the_point.findall(fraction),
                *e,
                *before_it.findall(exponent),
            ]
            symbols += [index[word] for word in words]
            which += [number] * len(words)
        return np.array([symbols, which], np.int64)

    return encode


def groups_decode(one: Any) -> Callable[[Array], list[str]]:
    """The characters, without commas."""

    def decode(encoded: Array) -> list[str]:
        spoken: list[str] = []
        for symbol, number in zip(encoded[0].tolist(), encoded[1].tolist(), strict=True):
            if number == len(spoken):
                spoken.append("")
            spoken[-1] += one.alphabet[symbol]
        return [text.replace(",", "") for text in spoken]

    return decode


def charton_encode(one: Any) -> Callable[[Strings], Array]:
    """uint16[symbols]: the decimal in scientific notation, looked up in a dictionary."""
    index, name, count = (
        {symbol: number for number, symbol in enumerate(one.alphabet)},
        one.name,
        one.digits,
    )

    def encode(strings: Strings) -> Array:
        symbols = []
        for text in strings:
            value = Decimal(text)
            sign, digits, exponent = _scientific(value, count)
            symbols += [index[symbol] for symbol in _spelled(name, sign, digits, exponent)]
        return np.array(symbols, np.uint16)

    return encode


def float_digits_encode(strings: Strings) -> Array:
    """uint16[symbols], of FloatDigits(10, 1, 4): from the decimal in scientific notation."""
    symbols = []
    for text in strings:
        sign, digits, exponent = _scientific(Decimal(text), 4)
        power = exponent + 3 if int(digits) else 0
        symbols += [int(sign == "-"), 2 + (power < 0)]
        symbols += [int(digit) + 4 for digit in f"{abs(power)}{digits}"]
    return np.array(symbols, np.uint16)


def float_digits_decode(symbols: Array) -> list[Decimal]:
    """The same the other way round."""
    rows = symbols.reshape(-1, 7).tolist()
    signs = [(-1 if row[0] else 1, -1 if row[1] == 3 else 1) for row in rows]
    whole = [int("".join(str(one - 4) for one in row[3:])) for row in rows]
    return [
        sign * number * Decimal(10) ** (power * (row[2] - 4) - 3)
        for (sign, power), number, row in zip(signs, whole, rows, strict=True)
    ]


def counts_encode(strings: Strings) -> Array:
    """int64[2, symbols], of NumeroLogic: symbols, and the number that each belongs to."""
    symbols, which = [], []
    for number, text in enumerate(strings):
        whole, point, fraction = re.split("[eE]", text)[0].partition(".")
        counts = [sum(map(str.isdigit, part)) for part in (whole, fraction)[: 1 + len(point)]]
        written = f"{'.'.join(map(str, counts))}:{text}".replace("\u2212", "-")
        symbols += [NumeroLogic.alphabet.index(character) for character in written]
        which += [number] * len(written)
    return np.array([symbols, which], np.int64)


def counts_decode(encoded: Array) -> list[str]:
    """What stands behind the colons."""
    spoken: dict[int, str] = {}
    for symbol, number in encoded.T.tolist():
        spoken[number] = spoken.get(number, "") + NumeroLogic.alphabet[symbol]
    return [text.partition(":")[2].replace(",", "") for text in spoken.values()]


def _scientific(value: Decimal, count: int) -> tuple[str, str, int]:
    if value == 0:
        return ("-" if value.is_signed() else "+"), "0" * count, 0
    mantissa, _, exponent = f"{abs(value):.{count - 1}e}".partition("e")
    return ("-" if value.is_signed() else "+"), mantissa.replace(".", ""), int(exponent) - count + 1


def _spelled(name: str, sign: str, digits: str, exponent: int) -> list[str]:
    minus = "-" if sign == "-" else ""
    if name == "p10":
        return [sign, *digits, f"E{exponent}"]
    if name == "p1000":
        return [sign, digits, f"E{exponent}"]
    return [minus + digits, f"E{exponent}"] if name == "b1999" else [f"{minus}{digits}E{exponent}"]


def charton_decode(one: Any) -> Callable[[Array], list[Decimal]]:
    """The inverse."""
    alphabet, length = one.alphabet, one.length

    def decode(symbols: Array) -> list[Decimal]:
        words = [alphabet[symbol] for symbol in symbols.tolist()]
        return [Decimal("".join(words[k : k + length])) for k in range(0, len(words), length)]

    return decode


def bins_encode(strings: Strings, bins: ExponentBins) -> Array:
    """int16[n], by binary search in the edges."""
    magnitude = np.abs(np.array([float(one) for one in strings]))
    return np.where(
        magnitude == 0, 0, np.minimum(np.searchsorted(bins.edges, magnitude, "right"), bins.n)
    ).astype(np.int16)


def bins_decode(found: Array, bins: ExponentBins) -> list[str]:
    """The centres."""
    centres = bins.centres.tolist()
    return [repr(centres[one]) for one in found.tolist()]


def quantiles_encode(strings: Strings, bins: QuantileBins) -> Array:
    """float32[n], by interpolation between the edges."""
    values = np.array([float(one) for one in strings])
    return np.interp(values, bins.edges, np.arange(len(bins.edges))).astype(np.float32)


def quantiles_decode(found: Array, bins: QuantileBins) -> list[str]:
    """The same the other way round."""
    values = np.interp(found, np.arange(len(bins.edges)), bins.edges)
    return [repr(one) for one in values.tolist()]


def log_encode(strings: Strings, logs: LogFourier) -> Array:
    """float32[n, k + 1, 2]."""
    values = np.array([float(one) for one in strings])
    zero = values == 0
    logarithm = np.log10(np.abs(np.where(zero, 1, values)))
    angles = 2 * np.pi * (logarithm[:, None] / logs.periods)
    waves = np.where(zero[:, None, None], 0, np.stack([np.cos(angles), np.sin(angles)], -1))
    flags = np.stack([np.copysign(1, values), zero], -1)[:, None, :]
    return np.concatenate([flags, waves], 1).astype(np.float32)


def log_decode(features: Array, logs: LogFourier) -> list[Decimal]:
    """From the longest period to the shortest."""
    decoded, (longest, *shorter) = [], logs.periods.tolist()
    for flags, *waves in features.tolist():
        turns = [math.atan2(sine, cosine) / (2 * math.pi) for cosine, sine in waves]
        logarithm = longest * turns[0]
        for period, turn in zip(shorter, turns[1:], strict=True):
            logarithm = period * (turn + round(logarithm / period - turn))
        decoded.append(Decimal(0) if flags[1] > 0.5 else Decimal(repr(flags[0] * 10.0**logarithm)))
    return decoded
