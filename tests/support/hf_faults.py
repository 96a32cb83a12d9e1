"""Deliberate faults: classes that, mixed into a drop-in tokenizer, make it wrong in one thing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from hf_shapes import rebuild
from tokenizers import Encoding
from transformers import BatchEncoding

from numtok.representations import NUM


class Result:
    """A fault in what a call returns: ``damage`` is given the result and may change it or return
    another.
    """

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
        if "number_value" in got and options.get("truncation"):
            whole = super().__call__(*arguments, return_numbers=True)  # type: ignore[misc]
            got["number_value"] = whole["number_value"]


class StreamsCutOnTheRight(Result):
    """The first values, whatever side is cut: right if and only if nothing is cut on the left."""

    def damage(self, got: Any, arguments: Any, options: Any) -> None:
        if "number_value" in got and options.get("truncation"):
            whole = super().__call__(*arguments, return_numbers=True)  # type: ignore[misc]
            got["number_value"] = whole["number_value"][: len(got["input_ids"])]


class ZeroIsNoNumber(Result):
    def damage(self, got: Any, arguments: Any, options: Any) -> None:
        if "number_mask" in got:
            got["number_mask"] = [
                bool(mask) and value != 0
                for mask, value in zip(got["number_mask"], got["number_value"], strict=True)
            ]


class SinglePrecision(Result):
    def damage(self, got: Any, arguments: Any, options: Any) -> None:
        if "number_value" in got:
            got["number_value"] = np.asarray(got["number_value"], np.float32)


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
            for name in set(padded) - {
                "input_ids",
                "attention_mask",
                "token_type_ids",
                "special_tokens_mask",
            }:
                rows = [list(one[name]) for one in features]
                neutral = (
                    1.0 if name in ("number_value", "number_scaled") else np.zeros_like(rows[0][0])
                )
                padded[name] = [
                    one + [neutral] * (len(ids) - len(one))
                    for one, ids in zip(rows, padded["input_ids"], strict=True)
                ]
        return padded


class PadsWithZero:
    def pad(self, *arguments: Any, **options: Any) -> Any:
        padded = super().pad(*arguments, **options)  # type: ignore[misc]
        if "number_value" in padded:
            both = zip(padded["number_value"], padded["attention_mask"], strict=True)
            padded["number_value"] = [
                np.asarray(values) * np.asarray(mask) for values, mask in both
            ]
        return padded


class PadsWithoutStreams:
    def pad(self, features: Any, *arguments: Any, **options: Any) -> Any:
        kept = [
            {name: value for name, value in one.items() if not name.startswith("number_")}
            for one in features
        ]
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

    def decode(
        self, token_ids: Any, *arguments: Any, number_value: Any = None, **options: Any
    ) -> Any:
        values = (
            None
            if number_value is None
            else rebuild(
                number_value if isinstance(number_value, list) else list(number_value),
                lambda _: 7.0,
            )
        )
        return super().decode(token_ids, *arguments, number_value=values, **options)  # type: ignore[misc]


class OneRowForAll:
    def batch_decode(
        self, sequences: Any, *arguments: Any, number_value: Any = None, **options: Any
    ) -> Any:
        return [
            self.decode(one, *arguments, number_value=number_value and number_value[0], **options)
            for one in sequences[:1]
        ]  # type: ignore[attr-defined]


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
