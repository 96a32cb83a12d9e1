"""The conformance suite fails on tokenizers that are wrong: each check, on a subclass with one
deliberate fault.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
import hf_faults as faults
import hf_number_checks as number_checks
from hf_cases import TAKES_ALL, build_ours, oracle, ours, source, stock_with_numbers
from hf_oracle import Oracle

from numtok.representations import NUM, FoNE, PlaceValue, Representation, XVal

KIND = "bert"

COMBINED: tuple[Representation, ...] = (XVal(), FoNE(6, 4, overflow="clip"))

SPELLED: tuple[Representation, ...] = (PlaceValue(overflow="clip"),)

TEXT = "a 5 of -1,234 and 0 things"

CUT = {"truncation": True, "max_length": 5}


@dataclass
class Fault:
    """A wrong class, and a check that a right one passes and this one must not."""

    broken: type
    check: Callable[[Any, Any, Oracle], None]
    numbers: tuple[Representation, ...] = (TAKES_ALL,)
    fresh: bool = field(default=False)


def numbers(
    text: Any = TEXT, pair: Any = None, sides: Any = None, **options: Any
) -> Callable[[Any, Any, Oracle], None]:
    return lambda tok, stock, reference: number_checks.check_numbers(
        tok, reference, text, pair, sides, **options
    )


def plain(
    text: Any = "a naïve  text [NUM] <|0.00|>", pair: Any = None, **options: Any
) -> Callable[[Any, Any, Oracle], None]:
    return lambda tok, stock, reference: checks.check_call(tok, stock, text, pair, **options)


def decoded(tok: Any, stock: Any, reference: Oracle) -> None:
    checks.check_decode(tok, stock, stock("a [NUM] .", "don ' t")["input_ids"])


def decoded_numbers(tok: Any, stock: Any, reference: Oracle) -> None:
    number_checks.check_number_decode(tok, reference, [TEXT, "7 . b", "[NUM]"])


def streamed(tok: Any, stock: Any, reference: Oracle) -> None:
    checks.check_decode_stream(tok, stock, stock("a [NUM]")["input_ids"][:-1])


def padded(tok: Any, stock: Any, reference: Oracle) -> None:
    for side in ("right", "left"):
        number_checks.check_number_padding(tok, reference, [TEXT, "a 7", "b"], side)


def vocabulary(tok: Any, stock: Any, reference: Oracle) -> None:
    checks.check_vocabulary(tok, stock, {NUM: len(stock)})


def refused(text: Any) -> Callable[[Any, Any, Oracle], None]:
    return lambda tok, stock, reference: checks.check_bad_input(tok, stock, text)


def state(tok: Any, stock: Any, reference: Oracle) -> None:
    checks.check_state(tok, stock, [("some words of a text", CUT), (["a"], {})])


def other_ways(tok: Any, stock: Any, reference: Oracle) -> None:
    checks.check_other_ways_in(tok, stock, "a text", "of words")


def aligned(tok: Any, stock: Any, reference: Oracle) -> None:
    checks.check_alignment(tok, stock, "a naïve text")


def surfaces(tok: Any, stock: Any, reference: Oracle) -> None:
    number_checks.check_surfaces(tok, reference, TEXT)


def added(tok: Any, stock: Any, reference: Oracle) -> None:
    checks.check_added_tokens(
        tok, stock_with_numbers(KIND), lambda one: one.add_tokens(["zyx"]), lambda: ["a zyx"]
    )


def last_by_one(ids: list[Any]) -> list[Any]:
    return [*ids[:-1], ids[-1] + 1]


def collapsed(offsets: list[Any]) -> list[Any]:
    """What a normalizer that replaces numbers gives: the last character of each."""
    return [(stop - 1, stop) if stop - start > 1 else (start, stop) for start, stop in offsets]


FAULTS: dict[str, Fault] = {
    "ids off by one": Fault(faults.row(last_by_one, "input_ids"), numbers()),
    "ids off by one, text": Fault(faults.row(last_by_one, "input_ids"), plain()),
    "ids off by one, spelled": Fault(faults.row(last_by_one, "input_ids"), numbers(), SPELLED),
    "types": Fault(faults.row(last_by_one, "token_type_ids"), plain()),
    "attention": Fault(faults.row(lambda mask: [0, *mask[1:]], "attention_mask"), numbers()),
    "special mask": Fault(
        faults.row(lambda mask: [0] * len(mask), "special_tokens_mask"),
        plain(return_special_tokens_mask=True),
    ),
    "offsets": Fault(faults.row(collapsed, "offset_mapping"), numbers(return_offsets_mapping=True)),
    "offsets, surfaces": Fault(faults.row(collapsed, "offset_mapping"), surfaces),
    "offsets, text": Fault(
        faults.row(collapsed, "offset_mapping"), plain(return_offsets_mapping=True)
    ),
    "offsets of encodings": Fault(faults.encoded("offsets", collapsed), numbers()),
    "offsets of encodings, text": Fault(faults.encoded("offsets", collapsed), aligned),
    "ids of encodings": Fault(faults.encoded("ids", last_by_one), numbers()),
    "words of encodings": Fault(faults.encoded("words", lambda words: words[::-1]), numbers()),
    "words of encodings, text": Fault(faults.encoded("words", lambda words: words[::-1]), aligned),
    "tokens of encodings": Fault(
        faults.encoded("tokens", lambda tokens: [token.replace(NUM, "\ue000") for token in tokens]),
        numbers(),
    ),
    "sequences of encodings": Fault(
        faults.encoded("sequence_ranges", lambda ranges: {}), numbers(TEXT, "a 7")
    ),
    "overflow of encodings": Fault(faults.encoded("overflowing", lambda rows: []), numbers(**CUT)),
    "special mask of encodings": Fault(
        faults.encoded("special_tokens_mask", lambda mask: [0] * len(mask)), numbers()
    ),
    "streams not truncated": Fault(faults.StreamsNotTruncated, numbers(**CUT)),
    "streams cut on the right": Fault(
        faults.StreamsCutOnTheRight, numbers(sides={"truncation_side": "left"}, **CUT)
    ),
    "values off by one": Fault(
        faults.row(lambda values: [values[-1], *values[:-1]], "number_value"), numbers()
    ),
    "values of zero": Fault(faults.ZeroIsNoNumber, numbers()),
    "values in single precision": Fault(faults.SinglePrecision, numbers("a 0.1")),
    "values are zero elsewhere": Fault(
        faults.row(
            lambda values: [0.0 if value == 1 else value for value in values], "number_value"
        ),
        numbers(),
    ),
    "no mask": Fault(faults.row(lambda mask: [False] * len(mask), "number_mask"), numbers()),
    "another scale": Fault(
        faults.row(lambda values: [2 * value for value in values], "number_scaled"), numbers()
    ),
    "other phases": Fault(
        faults.row(lambda values: [-value for value in map(np.asarray, values)], "number_fourier"),
        numbers(),
        COMBINED,
    ),
    "other places": Fault(
        faults.row(lambda values: [0] * len(values), "place_value"), numbers(), SPELLED
    ),
    "streams always": Fault(faults.StreamsAlways, numbers()),
    "overflow mapping": Fault(
        faults.NoOverflow, numbers(["a", TEXT], return_overflowing_tokens=True, **CUT)
    ),
    "no class": Fault(faults.PlainDict, plain()),
    "other tensors": Fault(faults.WideTensors, plain(return_tensors="np")),
    "literal": Fault(faults.LiteralIsNumber, plain()),
    "literal beside numbers": Fault(faults.LiteralIsNumber, numbers("5 [NUM]")),
    "guard": Fault(faults.TokensAreNotGuarded, plain()),
    "guard beside numbers": Fault(faults.TokensAreNotGuarded, numbers("5 <|0.00|>")),
    "changed text": Fault(faults.Stripped, plain(return_offsets_mapping=True)),
    "truncation stays": Fault(faults.TruncationStays, state),
    "attributes appear": Fault(faults.Counts, state),
    "special tokens are not split": Fault(
        faults.SpecialTokensAreWhole, plain("a [SEP] b", split_special_tokens=True)
    ),
    "special tokens are not split beside numbers": Fault(
        faults.SpecialTokensAreWhole, numbers("<|2.5|> 7", split_special_tokens=True)
    ),
    "takes anything": Fault(faults.TakesAnything, refused([5])),
    "other errors": Fault(faults.OtherErrors, refused([5])),
    "other errors beside numbers": Fault(
        faults.OtherErrors, numbers(["5", "a b"], return_tensors="pt")
    ),
    "no pair": Fault(faults.NoPair, plain("a", "b")),
    "no pair beside numbers": Fault(faults.NoPair, numbers("a", "5")),
    "pads streams on the right": Fault(faults.PadsStreamsOnTheRight, padded, COMBINED),
    "pads streams with zero": Fault(faults.PadsWithZero, padded),
    "pads without streams": Fault(faults.PadsWithoutStreams, padded),
    "ignores skip_special_tokens": Fault(faults.IgnoresFlags, decoded),
    "ignores skip_special_tokens beside numbers": Fault(faults.IgnoresFlags, decoded_numbers),
    "ignores cleaning": Fault(faults.IgnoresCleaning, decoded),
    "strips": Fault(faults.StripsDecoded, streamed),
    "values by order": Fault(faults.ValuesByOrder, decoded_numbers),
    "one row for all": Fault(faults.OneRowForAll, decoded_numbers),
    "spelled, decoded": Fault(faults.StripsDecoded, decoded_numbers, SPELLED),
    "vocabulary": Fault(faults.HidesNumbers, vocabulary),
    "length": Fault(faults.ShortByOne, vocabulary),
    "special": Fault(faults.NumbersAreSpecial, vocabulary),
    "count of added tokens": Fault(faults.AddsTwice, added, fresh=True),
    "encode": Fault(faults.PutsBehind, other_ways),
}


@pytest.mark.parametrize("name", FAULTS)
def test_it_bites(name: str) -> None:
    fault = FAULTS[name]
    right = build_ours(KIND, fault.numbers) if fault.fresh else ours(KIND, fault.numbers)
    wrong = copy.deepcopy(right)
    fault.check(right, source(KIND), oracle(KIND, fault.numbers))
    wrong.__class__ = type(f"Broken{type(right).__name__}", (fault.broken, type(right)), {})
    with pytest.raises(AssertionError):
        fault.check(wrong, source(KIND), oracle(KIND, fault.numbers))


def test_another_tokenizer_is_not_the_same() -> None:
    tok = ours(KIND)
    checks.check_same_tokenizer(tok, tok, [TEXT])
    changed = build_ours(KIND)
    changed.padding_side = "left"
    more = build_ours(KIND)
    more.add_tokens(["zyx"])
    for other in (ours(KIND, COMBINED), ours(KIND, SPELLED), source(KIND), changed, more):
        with pytest.raises(AssertionError):
            checks.check_same_tokenizer(tok, other, [TEXT])
