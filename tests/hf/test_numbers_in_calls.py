"""Text with numbers: ids as if ``[NUM]`` were an added token, offsets of the numbers as written,
streams row for row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
import hf_inputs as inputs
import hf_number_checks as number_checks
from hf_cases import (
    BYTE_LEVEL,
    KINDS,
    MIXED_TEXTS,
    REAL,
    SINGLE,
    SPELLED,
    build_ours,
    oracle,
    ours,
    source,
)
from hf_compare import outcome, same
from hf_inputs import NUMBER_TEXTS
from hostile import NUMBERS, texts, triples

from numtok.errors import NumtokError
from numtok.hf import batch as quick_way
from numtok.numbers.grammar import Grammar
from numtok.representations import (
    NUM,
    Subword,
    XVal,
)

every_kind = pytest.mark.parametrize("kind", KINDS)


SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "one form": {"leading_space": "separate"},  # the space before a number is its own token
    "data": {"grammar": Grammar.data()},
    "pattern": {"grammar": Grammar.from_pattern(r"\d+")},
}
CASES = [(kind, "default") for kind in KINDS] + [(kind, "one form") for kind in BYTE_LEVEL]
CASES += [(kind, grammar) for kind in ("bert", "roberta") for grammar in ("data", "pattern")]


@pytest.mark.parametrize(("kind", "name"), CASES)
@pytest.mark.thorough
@settings(max_examples=examples(12, thorough=40))
@given(call=st.one_of(inputs.calls(), inputs.cuts()), quick=st.booleans())
@example(
    call=inputs.Call(
        NUMBER_TEXTS,
        options={"padding": True, "return_tensors": "pt", "return_offsets_mapping": True},
    ),
    quick=False,
)
@example(
    call=inputs.Call(NUMBER_TEXTS[::-1], NUMBER_TEXTS, options={"return_offsets_mapping": True}),
    quick=False,
)
@example(
    call=inputs.Call(
        [["a", "5", "b -3", ""], ["-7", "[NUM]", " 8"]],
        options={"is_split_into_words": True, "return_offsets_mapping": True},
    ),
    quick=False,
)
@example(
    call=inputs.Call(
        "a <|2.5|> 5", options={"split_special_tokens": True, "return_offsets_mapping": True}
    ),
    quick=False,
)
@example(
    call=inputs.Call(
        "1 2 a 3 4 b 5 6 7",
        options={
            "truncation": True,
            "max_length": 5,
            "stride": 1,
            "return_overflowing_tokens": True,
        },
    ),
    quick=False,
)
@example(
    call=inputs.Call(MIXED_TEXTS, options={"padding": True, "truncation": True, "max_length": 5}),
    quick=True,
)
@example(call=inputs.Call(["5 <mask> 6", "7", "of 8"]), quick=True)
@example(
    call=inputs.Call(["", ""], options={"padding": True, "return_special_tokens_mask": True}),
    quick=True,
)
@example(
    call=inputs.Call(
        "1 2 a 3",
        "4 b 5 6 7",
        {"truncation_side": "left"},
        {"truncation": "only_second", "max_length": 9},
    ),
    quick=False,
)
def test_calls(kind: str, name: str, call: inputs.Call, quick: bool) -> None:
    """Ids, offsets, words, streams; whatever cuts the ids cuts the streams, row for row; by the
    quick way for large batches too.
    """
    tok, reference = ours(kind, **SETTINGS[name]), oracle(kind, **SETTINGS[name])
    assert name != "one form" or f" {NUM}" not in tok.get_vocab()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quick_way, "SMALL", 0 if quick else quick_way.SMALL)
        number_checks.check_numbers(
            tok, reference, call.text, call.text_pair, call.sides, **call.options
        )


@every_kind
def test_beside_every_fragment(kind: str) -> None:
    documents = triples(NUMBERS[1:2])[KINDS.index(kind) :: 11]  # other ones for every kind
    tok, reference = ours(kind), oracle(kind)
    expected = reference.call(documents, return_offsets_mapping=True)
    got = tok(documents, return_offsets_mapping=True, return_numbers=True)
    for text, ids, offsets, values, row in zip(
        documents,
        got["input_ids"],
        got["offset_mapping"],
        got["number_value"],
        expected.rows,
        strict=True,
    ):
        assert ids == row.ids and list(values) == row.stream("number_value"), repr(text)
        assert offsets == row.offsets, repr(text)


@pytest.mark.parametrize(
    "kind", [*(pytest.param(kind, marks=pytest.mark.slow) for kind in REAL), *KINDS]
)
def test_same_ids_as_the_core(kind: str) -> None:
    checks.check_same_ids_as_core(ours(kind), NUMBER_TEXTS)


@pytest.mark.parametrize("numbers", SINGLE)
@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.thorough
@settings(max_examples=examples(2, thorough=6))
@given(call=inputs.calls())
@example(call=inputs.Call(NUMBER_TEXTS, options={"padding": True, "return_tensors": "np"}))
@example(
    call=inputs.Call(
        NUMBER_TEXTS, options={"padding": True, "return_tensors": "pt", "padding_side": "left"}
    )
)
@example(call=inputs.Call(["none", "a"], options={"padding": True, "return_tensors": "np"}))
def test_streams(kind: str, numbers: str, call: inputs.Call) -> None:
    """What each representation adds, under the names of the schema."""
    tok, reference = ours(kind, SINGLE[numbers]), oracle(kind, SINGLE[numbers])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quick_way, "SMALL", 0)
        number_checks.check_numbers(
            tok, reference, call.text, call.text_pair, call.sides, **call.options
        )


@pytest.mark.parametrize("numbers", SPELLED)
@pytest.mark.parametrize("kind", ["bert", "roberta", "llama"])
@pytest.mark.thorough
@settings(max_examples=examples(2, thorough=7))
@given(call=inputs.calls())
@example(call=inputs.Call(NUMBER_TEXTS, options={"padding": True, "return_tensors": "pt"}))
@example(
    call=inputs.Call(
        NUMBER_TEXTS[0],
        options={"truncation": True, "max_length": 5, "return_overflowing_tokens": True},
    )
)
@example(call=inputs.Call(["a -5", "7"], options={"is_split_into_words": True}))
def test_spelled_out(kind: str, numbers: str, call: inputs.Call) -> None:
    tok, reference = ours(kind, SPELLED[numbers]), oracle(kind, SPELLED[numbers])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quick_way, "SMALL", 0)
        number_checks.check_numbers(
            tok, reference, call.text, call.text_pair, call.sides, **call.options
        )


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_subword(kind: str) -> None:
    """The baseline: numbers are what the source makes of them."""
    tok = ours(kind, (Subword(),))
    for text in NUMBER_TEXTS:
        checks.check_call(tok, source(kind), text, return_offsets_mapping=True)


@every_kind
def test_same_ids_as_the_core_spelled_out(kind: str) -> None:
    for numbers in SPELLED.values():
        checks.check_same_ids_as_core(ours(kind, numbers), NUMBER_TEXTS)


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(8, thorough=25))
@given(text=texts)
@example(text="ﬁ½ 5 Å -3 \u0301 1,234 ÄÖ − 7e5 ٤٢")
def test_offsets_are_the_surface(kind: str, text: str) -> None:
    number_checks.check_surfaces(ours(kind), oracle(kind), text)


@every_kind
def test_number_tokens(kind: str) -> None:
    """``[NUM]`` is an ordinary token; what looks like it in a text is text."""
    tok = ours(kind)
    tokens = set(tok.numtok.tokens.values())
    literal = "a [NUM] [NUM][/NUM] b"
    assert not tokens & set(tok(literal)["input_ids"])
    assert tok(literal)["input_ids"] == source(kind)(literal)["input_ids"]
    both = tok("a [NUM] 5 [NUM]", return_numbers=True)
    assert [k in tokens for k in both["input_ids"]] == [
        bool(k) for k in both["number_mask"]
    ] and sum(both["number_mask"]) == 1
    five = tok("a 5")["input_ids"]
    assert NUM in tok.decode(five, skip_special_tokens=True)
    assert tokens & set(tok("a 5", split_special_tokens=True)["input_ids"])
    assert not tokens & set(tok("x <|0.00|> y")["input_ids"])


def test_exact_values() -> None:
    """Longer than float64, beyond its range, the smallest, and both zeros."""
    tok = ours("bert")
    texts = ["9007199254740993", "0.1", "-0", "0", "1e400", "-1e400", "4.9e-324"]
    texts += ["123456789012345678901234567890", "1" + "0" * 5000]
    got = tok(texts, add_special_tokens=False, return_numbers=True, return_tensors="np")
    assert got["number_value"].dtype == np.float64
    expected = [float(text) for text in texts]
    assert got["number_value"][:, 0].tolist() == expected
    assert [math.copysign(1, value) for value in got["number_value"][:, 0]] == [
        math.copysign(1, value) for value in expected
    ]


def test_a_number_that_does_not_fit_stays_text() -> None:
    tok = ours("bert", (XVal(),))
    assert tok("a 1e300")["input_ids"] == source("bert")("a 1e300")["input_ids"]
    refusing = ours("bert", (XVal(overflow="error"),))
    with pytest.raises(NumtokError, match="1e300"):
        refusing("a 1e300")
    assert refusing("a 5")["input_ids"] == tok("a 5")["input_ids"]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_off_unless_asked(kind: str) -> None:
    """The switch of a call goes before that of the instance."""
    asked, unasked = build_ours(kind, return_numbers=True), ours(kind)
    names = {"number_value", "number_mask", "number_scaled"}
    for tok, switch, expected in (
        (unasked, None, False),
        (unasked, False, False),
        (unasked, True, True),
        (asked, None, True),
        (asked, True, True),
        (asked, False, False),
    ):
        for text in ("a 5", ["a 5", "b"], "none"):
            assert bool(names & set(tok(text, return_numbers=switch))) == expected
            assert (names <= set(tok(text, return_numbers=switch))) == expected
    assert names <= set(asked("a 5")) and not names & set(unasked("a 5"))
    got = unasked("a 5", text_target="6 7 8", return_numbers=True)
    assert (
        got["labels"] == unasked("6 7 8")["input_ids"]
        and got["number_value"] == unasked("a 5", return_numbers=True)["number_value"]
    )
    assert unasked.encode("a 5", return_numbers=True) == unasked.encode("a 5")


@every_kind
def test_bad_input_beside_numbers(kind: str) -> None:
    tok, stock = ours(kind), source(kind)
    for text, pair in (
        ([5, "5"], None),
        (["5", 5], None),
        (["5", None], None),
        ([["5", 5]], None),
        ("5", 5),
        (["5"], "5"),
        ("5 \ud800", None),
    ):
        for options in ({}, {"is_split_into_words": True}, {"return_numbers": True}):
            theirs = outcome(
                lambda: stock(
                    text, pair, **{k: v for k, v in options.items() if k != "return_numbers"}
                )
            )
            assert isinstance(theirs, BaseException)
            same(outcome(lambda: tok(text, pair, **options)), theirs, (text, pair))
    number_checks.check_numbers(tok, oracle(kind), "a 5")
