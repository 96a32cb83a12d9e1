"""The numbers of one short text: those that are found in many texts."""

import itertools

import pytest
import trained
from effort import examples
from hostile import texts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kept import kept

import numtok
from numtok.arrays.text_rows import TextRows
from numtok.numbers.grammar import Grammar
from numtok.numbers.scanner import SHORT_BYTES
from numtok.representations import (
    B1999,
    FP15,
    P10,
    P1000,
    Digits,
    ExponentBins,
    FloatBits,
    FloatDigits,
    FoNE,
    LogFourier,
    NumeroLogic,
    PlaceValue,
    XVal,
)
from numtok.representations.charton import Scientific
from numtok.tokenizer.tokenizer import Tokenizer

ONE_TOKEN = [XVal(overflow="clip"), FoNE(3, 2), ExponentBins()]
GRAMMARS = [Grammar(), Grammar.data(), Grammar.european(), Grammar(accounting=True)]

SPELLED = [Digits(1), Digits(1, places=True), Digits(2, "left"), Digits(3), PlaceValue()]
SPELLED += [Digits(1, brackets=False), Digits(3, brackets=False), PlaceValue(brackets=False)]
SPELLED += [PlaceValue(order="lsd"), PlaceValue(max_offset=32_740)]
SPELLED += [P10(), P10(4, (-2, 12), "decimal"), P1000(), B1999(), FP15(), NumeroLogic()]
SPELLED += [FloatDigits(), FloatDigits(10, 2, 17)]
HELD = [FloatBits(), FloatBits(width=64), LogFourier(), FoNE(17, 3), *SPELLED]
HELD += [ExponentBins(), ExponentBins(5, 0.02, 3e4)]
SPELLED += [FloatDigits(2, 3, 10)]  # which only all of its digits tell


@kept
def tokenizer(kind, grammar, representation):
    return Tokenizer(trained.config(kind), representation, GRAMMARS[grammar])


@settings(max_examples=examples(80))
@given(
    st.sampled_from(["gpt2", "t5", "llama3"]),
    st.integers(0, len(GRAMMARS) - 1),
    st.sampled_from([*ONE_TOKEN, *SPELLED]),
    texts,
    st.booleans(),
)
@example("t5", 0, XVal(), "<extra_id_0> -1.5e3 °C １２ ½ <extra_id_1>7 1,234.5 (5) 10-20", True)
@example("gpt2", 0, XVal(), "", False)
@example("gpt2", 0, XVal(), "1e40 5", False)
@example("t5", 3, FoNE(4, 1), "(1,234.5) -5 +7.e1 \u22125 -1.25 １２ <extra_id_0> -5", True)
@example("gpt2", 3, SPELLED[0], "(1,234.5) -5 +7.e3 \u22125 １２ 1_000 .5E-05 007", False)
@example("gpt2", 0, SPELLED[2], "-1,234,567.8901e-1000 12345.6789", False)
@example("gpt2", 0, SPELLED[5], "-123.45e6 +5 0", False)
@example("gpt2", 0, SPELLED[7], "999.5 99949e3 0.0000001234 -0 1245 1.2450001 1e8 -0.00", False)
@example("gpt2", 2, SPELLED[8], "1.234,5678 -99.999,5 0,01 1e-2", False)
@example("gpt2", 3, SPELLED[11], "(1,234) 1'000.5 1_0 .5 2.5e3 +7", False)
@example("gpt2", 0, SPELLED[12], "-1,234.5e6 .5e-10 007", False)
@example("gpt2", 0, SPELLED[13], "99995 99994.5 -1e8 0", False)
@example("gpt2", 0, SPELLED[6], "1234567 1e-29 1e27 1e26 " + "9" * 28, False)
def test_found_and_spelled_as_in_many_texts(kind, grammar, representation, text, special):
    ours = tokenizer(kind, grammar, representation)
    if (found := ours.selector.in_short_text(text.encode(), special)) is None:
        assert not 0 < len(text.encode()) <= SHORT_BYTES
        return
    numbers = ours.selector.select(TextRows.of([text]), special).numbers
    places = list(zip(numbers.start.tolist(), numbers.stop.tolist(), strict=True))
    # What surely fits does; of the others some may not.
    assert {(start, stop) for start, stop, sure in found if sure} <= set(places)
    assert set(places) <= {(start, stop) for start, stop, _ in found}
    slots = ours.encode_numbers(numbers).slots
    edges = itertools.pairwise(slots.offsets.tolist())
    ids = [slots.unspaced[first:last].tolist() for first, last in edges]
    many = dict(zip(places, ids, strict=True))
    for start, stop, sure in found:
        if sure and representation in SPELLED:
            written = text.encode()[start:stop]
            one = ours.ids_of_one(written)
            # Decimals that are rounded are told of ASCII alone.
            assert one == many[start, stop] or (one is None and not written.isascii())
            assert one or isinstance(representation, Scientific)


@pytest.mark.parametrize(
    "representation",
    [XVal(), XVal(1e-12), XVal(7e9, log=True), XVal(clip=2.0), *HELD],
    ids=repr,
)
def test_what_is_surely_held_fits(representation):
    held = representation.exact_digit_range
    literals = [
        f"{digit}e{power}"
        for digit in ("1", "100000", "9" * 15, "0", "000", "12345", "99")
        for power in (held.start, 0, held.stop - len(digit))
        if held.start <= power <= held.stop - len(digit)
    ]
    numbers = numtok.scan(literals)
    assert len(numbers) == len(literals) > 8 and representation.fits(numbers).all()
