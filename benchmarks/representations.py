"""Numbers to tokens and tensors and back: each representation beside its algorithm written plainly
in Python or numpy.

Both begin with what their world has: numtok with :class:`numtok.Numbers`, the reference with a list
    of decimal strings. The reference gives what numtok gives, checked number by number, or within
    the stated tolerance where the reference works in floating point.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

import numtok
from benchmarks import references as plain
from benchmarks.corpus import Corpus
from benchmarks.references import Array, Strings
from benchmarks.timing import Goal, Section, Timing, alternate, check
from numtok.representations import (
    B1999,
    FP15,
    P10,
    P1000,
    Digits,
    ExponentBins,
    FloatDigits,
    FoNE,
    LogFourier,
    NumeroLogic,
    PlaceValue,
    QuantileBins,
    Representation,
    SingleToken,
    Spelled,
    SpelledOut,
    XVal,
)

MOST, SLOW = 200_000, 10_000  # numbers for numtok, and of these for the references


@dataclass(frozen=True)
class Case:
    """One representation and its reference.

    Attributes:
        name: for people.
        representation: with its options.
        encode: decimal strings to what :func:`encoded` gives for the representation.
        decode: that back to decimal strings or Decimals.
        floor: of the encoder, in million numbers per second.
        tolerance: allowed between the two encodings; 0 for equal.
        exact: whether decoding gives the numbers back.
        as_written: whether the reference takes the numbers as they are written, rather than in
            plain digits.
    """

    name: str
    representation: Representation
    encode: Callable[[Strings], Array]
    decode: Callable[[Array], list[Any]]
    floor: float | None = None
    tolerance: float = 0.0
    exact: bool = False
    as_written: bool = False


def run(corpus: Corpus) -> Section:
    """All representations."""
    section = Section(
        "Representations, one thread: time for a million numbers; ours from exact Numbers,"
        " references from decimal strings"
    )
    found = numtok.scan(corpus.column)
    for case in cases():
        section.checks.append(measure(case, found, corpus, section))
    spelled_out(corpus, section)
    return section


def measure(case: Case, found: numtok.Numbers, corpus: Corpus, section: Section) -> str:
    """Compare, then time, one representation; rates are per million numbers, whatever number each
    side was given.
    """
    representation = case.representation
    numbers = found.select(np.flatnonzero(representation.fits(found))[:MOST])
    if not representation.carries_sign:
        numbers = numbers.without_sign()
    few = numbers.select(np.arange(min(SLOW, len(numbers))))
    strings = (few.text() if case.as_written else few.format()).to_pylist()
    ours, reference = as_numpy(representation, encode(representation, few)), case.encode(strings)
    same = (
        np.array_equal(ours, reference)
        if case.tolerance == 0
        else np.allclose(ours, reference, rtol=0, atol=case.tolerance)
    )
    check(same, f"{case.name}: the encoding differs from the reference's")
    back = decimals_of(decode(representation, encode(representation, few)))
    theirs = [Decimal(str(value)) for value in case.decode(ours)]
    wrong = [
        k
        for k, (a, b) in enumerate(zip(back, theirs, strict=True))
        if not _close(a, b, case.tolerance)
    ]
    check(
        not wrong,
        f"{case.name}: decoding differs from the reference's, as for"
        f" {strings[wrong[0]] if wrong else ''}",
    )
    if case.exact:
        expected = [Decimal(one.replace(",", "").replace("\u2212", "-")) for one in strings]
        check(back == expected, f"{case.name}: decode does not give the numbers back")

    made = encode(representation, numbers)
    timings = alternate(
        {
            "encode": lambda: encode(representation, fresh(numbers)),
            "decode": lambda: decode(representation, made),
            "reference encode": lambda: case.encode(strings),
            "reference decode": lambda: case.decode(ours),
        },
        corpus.budget(2),
    )
    scaled = {
        name: _per_million(timing, len(few) if "reference" in name else len(numbers))
        for name, timing in timings.items()
    }
    for what in ("encode", "decode"):
        pair = {
            f"{case.name} {what}": scaled[what],
            f"  reference {what}": scaled[f"reference {what}"],
        }
        section.add(pair, 1.0, f"{case.name} {what}", "M numbers")
    if case.floor is not None and not corpus.quick:
        section.goals.append(
            Goal(f"{case.name} encode", 1 / scaled["encode"].median, case.floor, None, "M/s")
        )
    return (
        f"{case.name}: {len(few):,} numbers encode and decode as the reference"
        f" does{', and come back exactly' if case.exact else ''}"
    )


def spelled_out(corpus: Corpus, section: Section) -> None:
    """From text to ids: digits one by one and in groups beside digits with their places."""
    tokenizers = {
        name: numtok.Tokenizer.from_pretrained(corpus.tokenizer, name)
        for name in ("place", "digits:1", "digits:3")
    }
    for name, tokenizer in tokenizers.items():
        back = tokenizer.decode_batch(
            tokenizer.encode_batch(corpus.column, keep_text=True)
        ).to_pylist()
        check(back == corpus.texts, f"{name}: encode_batch does not give the texts back")
    peers = {
        f"encode_batch, {name}": functools.partial(tokenizer.encode_batch, corpus.column)
        for name, tokenizer in tokenizers.items()
    }
    timings = alternate(peers, corpus.budget(6))
    ours = "encode_batch, place"
    section.add(timings, corpus.megabytes, ours)
    if not corpus.quick:
        for name in ("digits:1", "digits:3"):
            section.goals.append(
                Goal(
                    f"encode_batch of {name} over that of place",
                    timings[f"encode_batch, {name}"].over(timings[ours]),
                    1.05,
                    1.0,
                    "x",
                    True,
                )
            )


def _per_million(timing: Timing, count: int) -> Timing:
    return Timing(tuple(seconds * 1e6 / max(count, 1) for seconds in timing.seconds))


def _close(ours: Decimal, theirs: Decimal, tolerance: float) -> bool:
    return ours == theirs or (tolerance > 0 and abs(ours - theirs) <= Decimal("1e-5") * abs(theirs))


def fresh(numbers: numtok.Numbers) -> numtok.Numbers:
    """The same numbers without the floats they remember."""
    return dataclasses.replace(numbers)


Encoded = Spelled | dict[str, pa.Array]


def encode(representation: Representation, numbers: numtok.Numbers) -> Encoded:
    """The symbols of numbers that are spelled out, else their columns."""
    assert isinstance(representation, SingleToken | SpelledOut)
    return representation.encode(numbers)


def as_numpy(representation: Representation, encoded: Encoded) -> Array:
    """What was encoded as one array: [n, ...], or [symbols] for numbers that are spelled out in so
    many each; else with their stream, if they have one, and the number that each belongs to: [2 or
    3, symbols].
    """
    if isinstance(encoded, Spelled):
        if isinstance(representation, SpelledOut) and representation.length is not None:
            return np.asarray(encoded.symbols)
        which = np.repeat(np.arange(len(encoded.offsets) - 1), np.diff(encoded.offsets))
        streams = [] if encoded.stream is None else [encoded.stream]
        return np.stack([encoded.symbols.astype(np.int64), *streams, which])
    (column,) = encoded.values()
    return np.asarray(
        column.to_numpy_ndarray()
        if hasattr(column, "to_numpy_ndarray")
        else column.to_numpy(zero_copy_only=False)
    )


def decode(
    representation: Representation, encoded: Encoded
) -> numtok.Numbers | pa.LargeStringArray | None:
    """Numbers, or their text if they are spelled out."""
    if isinstance(encoded, Spelled):
        assert isinstance(representation, SpelledOut)
        return representation.decode(encoded)
    assert isinstance(representation, SingleToken)
    return representation.decode(encoded)


def decimals_of(decoded: Any) -> list[Decimal]:
    """Exact values of what :func:`decode` gives."""
    if isinstance(decoded, numtok.Numbers):
        return decoded.to_decimal()
    return [Decimal(text.replace(",", "").replace("\u2212", "-")) for text in decoded.to_pylist()]


def cases() -> list[Case]:
    """Every representation, with the published algorithm."""
    bins, logs = ExponentBins(), LogFourier(8)
    edges = tuple(np.unique(np.geomspace(1, 1e6, 33).round()).tolist())
    quantiles = QuantileBins(64, True, (*(-one for one in edges[::-1]), 0.0, *edges))
    return [
        Case("XVal", XVal(), plain.xval_encode, plain.xval_decode),
        Case("FloatBits", numtok.FloatBits(), plain.bits_encode, plain.bits_decode, floor=20),
        Case(
            "FloatBits compact",
            numtok.FloatBits(compact=True),
            plain.words_encode,
            plain.words_decode,
        ),
        Case(
            "FloatBits(64)",
            numtok.FloatBits(width=64),
            lambda strings: plain.bits_encode(strings, 64),
            plain.bits_decode,
            floor=10,
        ),
        Case(
            "FloatBits(64) compact",
            numtok.FloatBits(width=64, compact=True),
            lambda strings: plain.words_encode(strings, 64),
            plain.words_decode,
        ),
        _fone(6, 4, plain.fone_encode, tolerance=1e-5),
        _fone(10, 5, plain.fone_exact, tolerance=1e-6, floor=3),
        _fone(10, 5, plain.fone_digits, compact=True, floor=10),
        Case(
            "PlaceValue",
            PlaceValue(),
            plain.place_encode,
            plain.place_decode,
            exact=True,
            as_written=True,
        ),
        *(
            Case(
                f"Digits({one.group})",
                one,
                plain.groups_encode(one),
                plain.groups_decode(one),
                exact=True,
                as_written=True,
            )
            for one in (Digits(1), Digits(3))
        ),
        Case(
            "NumeroLogic",
            NumeroLogic(),
            plain.counts_encode,
            plain.counts_decode,
            exact=True,
            as_written=True,
        ),
        *(
            Case(
                one.name.upper(), one, plain.charton_encode(one), plain.charton_decode(one), floor=5
            )
            for one in (P10(), P1000(), B1999(), FP15())
        ),
        Case(
            "FloatDigits(10, 1, 4)",
            FloatDigits(),
            plain.float_digits_encode,
            plain.float_digits_decode,
        ),
        Case(
            "ExponentBins",
            bins,
            lambda strings: plain.bins_encode(strings, bins),
            lambda found: plain.bins_decode(found, bins),
        ),
        Case(
            "QuantileBins(64), soft",
            quantiles,
            lambda strings: plain.quantiles_encode(strings, quantiles),
            lambda found: plain.quantiles_decode(found, quantiles),
            tolerance=1e-5,
        ),
        Case(
            "LogFourier(8)",
            logs,
            lambda strings: plain.log_encode(strings, logs),
            lambda found: plain.log_decode(found, logs),
            tolerance=2e-6,
        ),
    ]


def _fone(
    before: int,
    after: int,
    encode: Callable[[Strings, int, int], Array],
    compact: bool = False,
    floor: float | None = None,
    tolerance: float = 0.0,
) -> Case:
    decode = plain.digits_decode if compact else plain.fone_decode
    return Case(
        f"FoNE({before}, {after}{', compact' if compact else ''})",
        FoNE(before, after, compact=compact),
        lambda strings: encode(strings, before, after),
        lambda array: decode(array, after),
        floor,
        tolerance,
        exact=True,
    )
