"""The conformance suite fails on tokenizers that are wrong: each check, on a subclass with one deliberate fault."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
from hf_cases import TAKES_ALL, build_ours, ours, source
from hf_oracle import Oracle, rebuild
from tokenizers import Encoding
from transformers import BatchEncoding

from numtok.representations import NUM, FoNE, PlaceValue, Representation, XVal

KIND = "bert"
COMBINED: tuple[Representation, ...] = (XVal(), FoNE(6, 4, overflow="clip"))
SPELLED: tuple[Representation, ...] = (PlaceValue(overflow="clip"),)
TEXT = "a 5 of -1,234 and 0 things"
CUT = {"truncation": True, "max_length": 5}


@functools.lru_cache(8)
def oracle(numbers: tuple[Representation, ...] = (TAKES_ALL,)) -> Oracle:
    return Oracle(source(KIND), ours(KIND, numbers).numtok)


class Result:
    """A fault in what a call returns: ``damage`` is given the result and may change it or return another."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        got = super().__call__(*arguments, **options)  # type: ignore[misc]
        changed = self.damage(got, arguments, options)  # type: ignore[attr-defined]
        return got if changed is None else changed


class Text:
    """A fault in what is encoded: ``change`` is given every string."""

    def __call__(self, text: Any, *arguments: Any, **options: Any) -> Any:
        return super().__call__(rebuild(text, self.change), *arguments, **options)  # type: ignore[misc, attr-defined]


def row(change: Callable[[list[Any]], list[Any]], key: str) -> type:
    """A fault in one field of an unbatched result."""

    def damage(self: Any, got: Any, arguments: Any, options: Any) -> None:
        if key in got:
            got[key] = change(list(got[key]))

    return type("Row", (Result,), {"damage": damage})


def encoded(name: str, change: Callable[[Any], Any]) -> type:
    """A fault in the ``Encoding`` objects alone, in the field of that name."""

    def rewritten(encoding: Encoding) -> Encoding:
        state = json.loads(encoding.__getstate__())
        state[name] = change(state[name])
        made = Encoding()
        made.__setstate__(json.dumps(state).encode())
        return made

    def damage(self: Any, got: Any, arguments: Any, options: Any) -> BatchEncoding:
        return BatchEncoding(dict(got), [rewritten(one) for one in got.encodings])

    return type("Encoded", (Result,), {"damage": damage})


class StreamsNotTruncated(Result):
    def damage(self, got: Any, arguments: Any, options: Any) -> None:
        if "number_values" in got and options.get("truncation"):
            whole = super().__call__(*arguments, return_numbers=True)  # type: ignore[misc]
            got["number_values"] = whole["number_values"]


class StreamsCutOnTheRight(Result):
    """The first values, whatever side is cut: right if and only if nothing is cut on the left."""

    def damage(self, got: Any, arguments: Any, options: Any) -> None:
        if "number_values" in got and options.get("truncation"):
            whole = super().__call__(*arguments, return_numbers=True)  # type: ignore[misc]
            got["number_values"] = whole["number_values"][: len(got["input_ids"])]


class ZeroIsNoNumber(Result):
    def damage(self, got: Any, arguments: Any, options: Any) -> None:
        if "number_mask" in got:
            got["number_mask"] = [bool(mask) and value != 0 for mask, value in zip(got["number_mask"], got["number_values"], strict=True)]


class SinglePrecision(Result):
    def damage(self, got: Any, arguments: Any, options: Any) -> None:
        if "number_values" in got:
            got["number_values"] = np.asarray(got["number_values"], np.float32)


class StreamsAlways(Result):
    def damage(self, got: Any, arguments: Any, options: Any) -> None:
        got["number_mask"] = [False] * len(got["input_ids"])


class NoOverflow(Result):
    def damage(self, got: Any, arguments: Any, options: Any) -> None:
        if "overflow_to_sample_mapping" in got:
            got["overflow_to_sample_mapping"] = [0] * len(got["overflow_to_sample_mapping"])


class PlainDict(Result):
    def damage(self, got: Any, arguments: Any, options: Any) -> dict[str, Any]:
        return dict(got)


class WideTensors(Result):
    def damage(self, got: Any, arguments: Any, options: Any) -> None:
        if options.get("return_tensors") == "np":
            got["input_ids"] = got["input_ids"].astype(np.int32)


class LiteralIsNumber(Text):
    def change(self, text: str) -> str:
        return text.replace(NUM, "1")


class TokensAreNotGuarded(Text):
    def change(self, text: str) -> str:
        return text.replace("<|0.00|>", "<|0.00| >")


class Stripped(Text):
    def change(self, text: str) -> str:
        return text.replace("\u212b", "\u00c5").replace("  ", " ")


class TruncationStays:
    limit = None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if self.limit is not None:
            options = {"truncation": True, "max_length": self.limit} | options
        if options.get("truncation") is True:
            vars(self)["limit"] = options.get("max_length")
        return super().__call__(*arguments, **options)  # type: ignore[misc]


class Counts:
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        vars(self)["calls"] = vars(self).get("calls", 0) + 1
        return super().__call__(*arguments, **options)  # type: ignore[misc]


class SpecialTokensAreWhole:
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return super().__call__(*arguments, **options | {"split_special_tokens": False})  # type: ignore[misc]


class TakesAnything:
    def __call__(self, text: Any, *arguments: Any, **options: Any) -> Any:
        return super().__call__(rebuild(text, str), *arguments, **options)  # type: ignore[misc]


class OtherErrors:
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().__call__(*arguments, **options)  # type: ignore[misc]
        except Exception as error:
            raise RuntimeError("something is wrong") from error


class NoPair:
    def __call__(self, text: Any, text_pair: Any = None, **options: Any) -> Any:
        return super().__call__(text, None, **options)  # type: ignore[misc]


class PadsStreamsOnTheRight:
    """The padding side goes to the ids only."""

    def pad(self, features: Any, *arguments: Any, **options: Any) -> Any:
        padded = super().pad(features, *arguments, **options)  # type: ignore[misc]
        if self.padding_side == "left":  # type: ignore[attr-defined]
            for name in set(padded) - {"input_ids", "attention_mask", "token_type_ids", "special_tokens_mask"}:
                rows = [list(one[name]) for one in features]
                neutral = 1.0 if name in ("number_values", "number_scaled") else np.zeros_like(rows[0][0])
                padded[name] = [one + [neutral] * (len(ids) - len(one)) for one, ids in zip(rows, padded["input_ids"], strict=True)]
        return padded


class PadsWithZero:
    def pad(self, *arguments: Any, **options: Any) -> Any:
        padded = super().pad(*arguments, **options)  # type: ignore[misc]
        if "number_values" in padded:
            both = zip(padded["number_values"], padded["attention_mask"], strict=True)
            padded["number_values"] = [np.asarray(values) * np.asarray(mask) for values, mask in both]
        return padded


class PadsWithoutStreams:
    def pad(self, features: Any, *arguments: Any, **options: Any) -> Any:
        kept = [{name: value for name, value in one.items() if not name.startswith("number_")} for one in features]
        return super().pad(kept, *arguments, **options)  # type: ignore[misc]


class IgnoresFlags:
    def decode(self, token_ids: Any, *arguments: Any, **options: Any) -> Any:
        options.pop("skip_special_tokens", None)
        return super().decode(token_ids, **options)  # type: ignore[misc]


class IgnoresCleaning:
    def decode(self, token_ids: Any, *arguments: Any, **options: Any) -> Any:
        options["clean_up_tokenization_spaces"] = False
        return super().decode(token_ids, *arguments, **options)  # type: ignore[misc]


class StripsDecoded:
    def decode(self, *arguments: Any, **options: Any) -> Any:
        text = super().decode(*arguments, **options)  # type: ignore[misc]
        return text.rstrip("]") if isinstance(text, str) else text


class ValuesByOrder:
    """Takes the k-th value for the k-th number, instead of the value at its place."""

    def decode(self, token_ids: Any, *arguments: Any, number_values: Any = None, **options: Any) -> Any:
        values = (
            None
            if number_values is None
            else rebuild(number_values if isinstance(number_values, list) else list(number_values), lambda _: 7.0)
        )
        return super().decode(token_ids, *arguments, number_values=values, **options)  # type: ignore[misc]


class OneRowForAll:
    def batch_decode(self, sequences: Any, *arguments: Any, number_values: Any = None, **options: Any) -> Any:
        return [self.decode(one, *arguments, number_values=number_values and number_values[0], **options) for one in sequences[:1]]  # type: ignore[attr-defined]


class HidesNumbers:
    def get_vocab(self) -> dict[str, int]:
        return {token: number for token, number in super().get_vocab().items() if token != NUM}  # type: ignore[misc]


class ShortByOne:
    def __len__(self) -> int:
        return int(super().__len__()) - 1  # type: ignore[misc]


class NumbersAreSpecial:
    @property
    def all_special_ids(self) -> list[int]:
        return [*super().all_special_ids, self.convert_tokens_to_ids(NUM)]  # type: ignore[misc, attr-defined]


class AddsTwice:
    def add_tokens(self, *arguments: Any, **options: Any) -> int:
        return int(super().add_tokens(*arguments, **options)) + 1  # type: ignore[misc]


class PutsBehind:
    def encode(self, *arguments: Any, **options: Any) -> Any:
        return [*super().encode(*arguments, **options), 0]  # type: ignore[misc]


@dataclass
class Fault:
    """A wrong class, and a check that a right one passes and this one must not."""

    broken: type
    check: Callable[[Any, Any, Oracle], None]
    numbers: tuple[Representation, ...] = (TAKES_ALL,)
    fresh: bool = field(default=False)


def numbers(text: Any = TEXT, pair: Any = None, sides: Any = None, **options: Any) -> Callable[[Any, Any, Oracle], None]:
    return lambda tok, stock, reference: checks.check_numbers(tok, reference, text, pair, sides, **options)


def plain(text: Any = "a naïve  text [NUM] <|0.00|>", pair: Any = None, **options: Any) -> Callable[[Any, Any, Oracle], None]:
    return lambda tok, stock, reference: checks.check_call(tok, stock, text, pair, **options)


def decoded(tok: Any, stock: Any, reference: Oracle) -> None:
    checks.check_decode(tok, stock, stock("a [NUM] .", "don ' t")["input_ids"])


def decoded_numbers(tok: Any, stock: Any, reference: Oracle) -> None:
    checks.check_number_decode(tok, reference, [TEXT, "7 . b", "[NUM]"])


def streamed(tok: Any, stock: Any, reference: Oracle) -> None:
    checks.check_decode_stream(tok, stock, stock("a [NUM]")["input_ids"][:-1])


def padded(tok: Any, stock: Any, reference: Oracle) -> None:
    for side in ("right", "left"):
        checks.check_number_padding(tok, reference, [TEXT, "a 7", "b"], side)


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
    checks.check_surfaces(tok, reference, TEXT)


def added(tok: Any, stock: Any, reference: Oracle) -> None:
    from test_conformance import stock_with_numbers

    checks.check_added_tokens(tok, stock_with_numbers(KIND), lambda one: one.add_tokens(["zyx"]), lambda: ["a zyx"])


def last_by_one(ids: list[Any]) -> list[Any]:
    return [*ids[:-1], ids[-1] + 1]


def collapsed(offsets: list[Any]) -> list[Any]:
    """What a normalizer that replaces numbers gives: the last character of each."""
    return [(stop - 1, stop) if stop - start > 1 else (start, stop) for start, stop in offsets]


FAULTS: dict[str, Fault] = {
    "ids off by one": Fault(row(last_by_one, "input_ids"), numbers()),
    "ids off by one, text": Fault(row(last_by_one, "input_ids"), plain()),
    "ids off by one, spelled": Fault(row(last_by_one, "input_ids"), numbers(), SPELLED),
    "types": Fault(row(last_by_one, "token_type_ids"), plain()),
    "attention": Fault(row(lambda mask: [0, *mask[1:]], "attention_mask"), numbers()),
    "special mask": Fault(row(lambda mask: [0] * len(mask), "special_tokens_mask"), plain(return_special_tokens_mask=True)),
    "offsets": Fault(row(collapsed, "offset_mapping"), numbers(return_offsets_mapping=True)),
    "offsets, surfaces": Fault(row(collapsed, "offset_mapping"), surfaces),
    "offsets, text": Fault(row(collapsed, "offset_mapping"), plain(return_offsets_mapping=True)),
    "offsets of encodings": Fault(encoded("offsets", collapsed), numbers()),
    "offsets of encodings, text": Fault(encoded("offsets", collapsed), aligned),
    "ids of encodings": Fault(encoded("ids", last_by_one), numbers()),
    "words of encodings": Fault(encoded("words", lambda words: words[::-1]), numbers()),
    "words of encodings, text": Fault(encoded("words", lambda words: words[::-1]), aligned),
    "tokens of encodings": Fault(encoded("tokens", lambda tokens: [token.replace(NUM, "\ue000") for token in tokens]), numbers()),
    "sequences of encodings": Fault(encoded("sequence_ranges", lambda ranges: {}), numbers(TEXT, "a 7")),
    "overflow of encodings": Fault(encoded("overflowing", lambda rows: []), numbers(**CUT)),
    "special mask of encodings": Fault(encoded("special_tokens_mask", lambda mask: [0] * len(mask)), numbers()),
    "streams not truncated": Fault(StreamsNotTruncated, numbers(**CUT)),
    "streams cut on the right": Fault(StreamsCutOnTheRight, numbers(sides={"truncation_side": "left"}, **CUT)),
    "values off by one": Fault(row(lambda values: [values[-1], *values[:-1]], "number_values"), numbers()),
    "values of zero": Fault(ZeroIsNoNumber, numbers()),
    "values in single precision": Fault(SinglePrecision, numbers("a 0.1")),
    "values are zero elsewhere": Fault(row(lambda values: [0.0 if value == 1 else value for value in values], "number_values"), numbers()),
    "no mask": Fault(row(lambda mask: [False] * len(mask), "number_mask"), numbers()),
    "another scale": Fault(row(lambda values: [2 * value for value in values], "number_scaled"), numbers()),
    "other phases": Fault(row(lambda values: [-value for value in map(np.asarray, values)], "number_fourier"), numbers(), COMBINED),
    "other places": Fault(row(lambda values: [0] * len(values), "place_value"), numbers(), SPELLED),
    "streams always": Fault(StreamsAlways, numbers()),
    "overflow mapping": Fault(NoOverflow, numbers(["a", TEXT], return_overflowing_tokens=True, **CUT)),
    "no class": Fault(PlainDict, plain()),
    "other tensors": Fault(WideTensors, plain(return_tensors="np")),
    "literal": Fault(LiteralIsNumber, plain()),
    "literal beside numbers": Fault(LiteralIsNumber, numbers("5 [NUM]")),
    "guard": Fault(TokensAreNotGuarded, plain()),
    "guard beside numbers": Fault(TokensAreNotGuarded, numbers("5 <|0.00|>")),
    "changed text": Fault(Stripped, plain(return_offsets_mapping=True)),
    "truncation stays": Fault(TruncationStays, state),
    "attributes appear": Fault(Counts, state),
    "special tokens are not split": Fault(SpecialTokensAreWhole, plain("a [SEP] b", split_special_tokens=True)),
    "special tokens are not split beside numbers": Fault(SpecialTokensAreWhole, numbers("<|2.5|> 7", split_special_tokens=True)),
    "takes anything": Fault(TakesAnything, refused([5])),
    "other errors": Fault(OtherErrors, refused([5])),
    "other errors beside numbers": Fault(OtherErrors, numbers(["5", "a b"], return_tensors="pt")),
    "no pair": Fault(NoPair, plain("a", "b")),
    "no pair beside numbers": Fault(NoPair, numbers("a", "5")),
    "pads streams on the right": Fault(PadsStreamsOnTheRight, padded, COMBINED),
    "pads streams with zero": Fault(PadsWithZero, padded),
    "pads without streams": Fault(PadsWithoutStreams, padded),
    "ignores skip_special_tokens": Fault(IgnoresFlags, decoded),
    "ignores skip_special_tokens beside numbers": Fault(IgnoresFlags, decoded_numbers),
    "ignores cleaning": Fault(IgnoresCleaning, decoded),
    "strips": Fault(StripsDecoded, streamed),
    "values by order": Fault(ValuesByOrder, decoded_numbers),
    "one row for all": Fault(OneRowForAll, decoded_numbers),
    "spelled, decoded": Fault(StripsDecoded, decoded_numbers, SPELLED),
    "vocabulary": Fault(HidesNumbers, vocabulary),
    "length": Fault(ShortByOne, vocabulary),
    "special": Fault(NumbersAreSpecial, vocabulary),
    "count of added tokens": Fault(AddsTwice, added, fresh=True),
    "encode": Fault(PutsBehind, other_ways),
}


@pytest.mark.parametrize("name", FAULTS)
def test_it_bites(name: str) -> None:
    fault = FAULTS[name]
    right = build_ours(KIND, fault.numbers) if fault.fresh else ours(KIND, fault.numbers)
    wrong = copy.deepcopy(right)
    fault.check(right, source(KIND), oracle(fault.numbers))
    wrong.__class__ = type(f"Broken{type(right).__name__}", (fault.broken, type(right)), {})
    with pytest.raises(AssertionError):
        fault.check(wrong, source(KIND), oracle(fault.numbers))


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
