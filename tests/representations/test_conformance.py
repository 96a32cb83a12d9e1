"""Every representation holds to what the others do, by the kit that is there for everybody's own."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from effort import examples

from numtok.representations import (
    B1999,
    FP15,
    P10,
    P1000,
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    NumeroLogic,
    PlaceValue,
    Representation,
    SpelledOut,
    Subword,
    XVal,
    registry,
)
from numtok.testing import check_representation

KINDS: list[Representation] = [
    XVal(),
    XVal(scale=0.25, clip=5.0, overflow="clip"),
    XVal(log=True),
    FloatBits(),
    FloatBits(compact=True, overflow="clip"),
    FloatBits(width=64),
    FoNE(6, 4),
    FoNE(0, 5),
    FoNE(30, 30),
    FoNE(20, 10, compact=True),
    FoNE(6, 4, bases=(10, 2, 5), chunk=5),
    PlaceValue(),
    PlaceValue("clip", "lsd", 50, 2**63 - 1),
    Digits(1),
    Digits(3),
    Digits(3, align="left"),
    NumeroLogic(),
    P10(),
    P10(18),
    P10(digits=2, decades=(-3, 3), form="decimal", overflow="error"),
    P1000(),
    B1999(),
    FP15(),
    ExponentBins(),
    ExponentBins(50, 1.0, 1e9, "clip"),
    LogFourier(4),
    Subword(),
]


@pytest.mark.parametrize("representation", KINDS, ids=str)
def test_a_representation_holds_to_the_kit(representation: Representation) -> None:
    check_representation(representation, examples(20, thorough=200))


def test_the_kit_tells_of_numbers_that_ids_do_not_give_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without brackets, each digit begins a number here, so that 12 is read as 1 and 2."""

    @dataclass(frozen=True)
    class Bare(Digits):
        name = "bare"
        bracketed = False
        shares_vocabulary = False
        first_symbols = range(12)
        added_tokens = SpelledOut.added_tokens

    monkeypatch.setitem(registry.REPRESENTATIONS, "bare", Bare)
    with pytest.raises(AssertionError):
        check_representation(Bare(1), examples=50)
