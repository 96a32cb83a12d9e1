"""Text with numbers: ids as if ``[NUM]`` were an added token, offsets of the numbers as written, streams row for row, and back to text."""

from __future__ import annotations

import copy
import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
import hf_inputs as inputs
from hf_cases import BYTE_LEVEL, KINDS, TAKES_ALL, TRAINED, build_ours, ours, source
from hf_oracle import Oracle, canonical
from hostile import NUMBERS, texts, triples
from tokenizers import AddedToken, decoders, normalizers, pre_tokenizers, processors

from numtok.errors import NumtokError
from numtok.numbers.grammar import Grammar
from numtok.representations import (
    B1999,
    FP15,
    NUM,
    P10,
    P1000,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    Representation,
    Subword,
    XVal,
)

Numbers = tuple[Representation, ...]
SINGLE: dict[str, Numbers] = {
    "xval": (XVal(scale=0.5, clip=5.0),),
    "bits": (FloatBits(),),
    "compact bits": (FloatBits(compact=True),),
    "fone": (FoNE(6, 4, overflow="clip"),),
    "compact fone": (FoNE(3, 2, compact=True),),
    "bins": (ExponentBins(),),
    "log fourier": (LogFourier(4),),
    "all": (XVal(), FloatBits(), FoNE(6, 4, overflow="clip"), ExponentBins(overflow="clip"), LogFourier(3, overflow="clip")),
}
SPELLED: dict[str, Numbers] = {
    "place value": (PlaceValue(overflow="clip"),),
    "p10": (P10(overflow="clip"),),
    "p1000": (P1000(digits=2, overflow="clip"),),
    "b1999": (B1999(digits=2),),
    "fp15": (FP15(digits=2, overflow="clip"),),
}
TEXTS = [
    "It is -28.5 or 10,000",
    "5",
    " 5",
    "no number",
    "",
    "  -0 and 0, 1e400 1.5e-300",
    "a\n\n7 b  8 [NUM] 9 [/NUM]10",
    "10km 1st (−5) ½5 ٤٢ Ä3 naïve −0.50 <|0.00|>12<extra_id_7> 6 <mask> 4",
    "1,234,567.89 and 1, 2,3; 10-20 12:30 2020-01-02",
]
every_kind = pytest.mark.parametrize("kind", KINDS)


@functools.lru_cache(24)
def oracle(kind: str, numbers: Numbers = (TAKES_ALL,), grammar: Grammar | None = None, leading_space: str = "auto") -> Oracle:
    return Oracle(source(kind), ours(kind, numbers, grammar, leading_space).numtok)


@every_kind
@settings(max_examples=80)
@given(call=inputs.calls())
@example(call=inputs.Call(TEXTS, options={"padding": True, "return_tensors": "pt", "return_offsets_mapping": True}))
@example(call=inputs.Call(TEXTS[::-1], TEXTS, options={"return_offsets_mapping": True}))
@example(
    call=inputs.Call([["a", "5", "b -3", ""], ["-7", "[NUM]", " 8"]], options={"is_split_into_words": True, "return_offsets_mapping": True})
)
@example(call=inputs.Call("a <|2.5|> 5", options={"split_special_tokens": True, "return_offsets_mapping": True}))
def test_calls(kind: str, call: inputs.Call) -> None:
    checks.check_numbers(ours(kind), oracle(kind), call.text, call.text_pair, call.sides, **call.options)


@every_kind
@settings(max_examples=60)
@given(call=inputs.cuts())
@example(
    call=inputs.Call("1 2 a 3 4 b 5 6 7", options={"truncation": True, "max_length": 5, "stride": 1, "return_overflowing_tokens": True})
)
@example(call=inputs.Call("1 2 a 3", "4 b 5 6 7", {"truncation_side": "left"}, {"truncation": "only_second", "max_length": 9}))
def test_cut_and_filled(kind: str, call: inputs.Call) -> None:
    """Whatever cuts the ids cuts the streams, row for row."""
    checks.check_numbers(ours(kind), oracle(kind), call.text, call.text_pair, call.sides, **call.options)


@every_kind
def test_beside_every_fragment(kind: str) -> None:
    documents = triples(NUMBERS[1:2])[:: 3 if kind in TRAINED else 7]
    tok, reference = ours(kind), oracle(kind)
    expected = reference.call(documents, return_offsets_mapping=True)
    got = tok(documents, return_offsets_mapping=True, return_numbers=True)
    for text, ids, offsets, values, row in zip(
        documents, got["input_ids"], got["offset_mapping"], got["number_values"], expected.rows, strict=True
    ):
        assert ids == row.ids and list(values) == row.stream("number_values"), repr(text)
        assert offsets == row.offsets, repr(text)


LARGE: dict[str, dict[str, Any]] = {
    "plain": {},
    "padded": {"padding": True, "return_tensors": "np", "return_special_tokens_mask": True, "return_token_type_ids": True},
    "padded on the left": {"padding": True, "padding_side": "left", "pad_to_multiple_of": 8, "return_length": True},
    "cut": {"truncation": True, "max_length": 6, "return_tensors": "pt", "padding": "max_length", "return_attention_mask": False},
    "cut, alone": {"truncation": "only_first", "max_length": 4, "add_special_tokens": False},
    "longer than the padding": {"padding": "max_length", "max_length": 3, "truncation": False},
    "with offsets": {"return_offsets_mapping": True},
    "overflow": {"truncation": True, "max_length": 6, "stride": 1, "return_overflowing_tokens": True},
    "split": {"split_special_tokens": True},
}


@pytest.mark.parametrize("kind", ["gpt2", "neox", "llama3", "roberta"])
def test_large_batches(kind: str) -> None:
    """So large that a faster way may be taken; with and without numbers, on either side."""
    tok, reference = ours(kind), oracle(kind)
    tok(["some words and no number " * 20] * 1100)
    documents = [*triples(NUMBERS[:1])[:: 53 if kind in TRAINED else 97], *TEXTS, "a text without numbers", "", "5"]
    for name, options in LARGE.items():
        side = "left" if len(name) % 2 else "right"
        if name != "overflow":
            checks.check_large_batch(tok, reference, documents, {"truncation_side": side, "padding_side": side}, **options)
        checks.check_numbers(tok, reference, [*documents[::9], *["many words " * 4] * 100], **options)


@pytest.mark.slow
def test_encodings_of_a_large_batch_are_of_its_time() -> None:
    """What is done to the tokenizer after a call does not reach back."""
    tok = build_ours("llama3")
    documents = ["a zyx 5 of [NUM] words " * 40] * 700
    got, expected = tok(documents, truncation=True, max_length=9), ours("llama3")(documents[:1], truncation=True, max_length=9)
    tok.add_tokens(["zyx"])
    tok.truncation_side = "left"
    tok.pad_token = "<|endoftext|>"
    tok.backend_tokenizer.post_processor = source("bert").backend_tokenizer.post_processor
    assert got["input_ids"][-1] == expected["input_ids"][0]
    checks.same(got.encodings[-1], expected.encodings[0])
    assert len(got.encodings) == len(documents) and got.word_ids(3) == expected.word_ids(0)


@pytest.mark.parametrize("kind", BYTE_LEVEL)
@settings(max_examples=25)
@given(call=inputs.calls())
def test_one_form(kind: str, call: inputs.Call) -> None:
    """``leading_space="separate"``: the space before a number is a token of its own."""
    tok = ours(kind, leading_space="separate")
    assert f" {NUM}" not in tok.get_vocab()
    checks.check_numbers(tok, oracle(kind, leading_space="separate"), call.text, call.text_pair, call.sides, **call.options)


@pytest.mark.parametrize("kind", ["bert", "llama", "roberta"])
@settings(max_examples=25)
@given(call=inputs.calls())
def test_other_grammars(kind: str, call: inputs.Call) -> None:
    for grammar in (Grammar.data(), Grammar.from_pattern(r"\d+")):
        tok, reference = ours(kind, grammar=grammar), oracle(kind, grammar=grammar)
        checks.check_numbers(tok, reference, call.text, call.text_pair, call.sides, **call.options)


@pytest.mark.parametrize("numbers", SINGLE)
@pytest.mark.parametrize("kind", ["bert", "roberta"])
@settings(max_examples=12)
@given(call=inputs.calls())
@example(call=inputs.Call(TEXTS, options={"padding": True, "return_tensors": "np"}))
@example(call=inputs.Call(TEXTS, options={"padding": True, "return_tensors": "pt", "padding_side": "left"}))
@example(call=inputs.Call(["none", "a"], options={"padding": True, "return_tensors": "np"}))
def test_streams(kind: str, numbers: str, call: inputs.Call) -> None:
    """What each representation adds, under the names of the schema."""
    tok, reference = ours(kind, SINGLE[numbers]), oracle(kind, SINGLE[numbers])
    checks.check_numbers(tok, reference, call.text, call.text_pair, call.sides, **call.options)


@pytest.mark.parametrize("numbers", SPELLED)
@pytest.mark.parametrize("kind", ["bert", "roberta", "llama"])
@settings(max_examples=15)
@given(call=inputs.calls())
@example(call=inputs.Call(TEXTS, options={"padding": True, "return_tensors": "pt"}))
@example(call=inputs.Call(TEXTS[0], options={"truncation": True, "max_length": 5, "return_overflowing_tokens": True}))
@example(call=inputs.Call(["a -5", "7"], options={"is_split_into_words": True}))
def test_spelled_out(kind: str, numbers: str, call: inputs.Call) -> None:
    tok, reference = ours(kind, SPELLED[numbers]), oracle(kind, SPELLED[numbers])
    checks.check_numbers(tok, reference, call.text, call.text_pair, call.sides, **call.options)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_subword(kind: str) -> None:
    """The baseline: numbers are what the source makes of them."""
    tok = ours(kind, (Subword(),))
    for text in TEXTS:
        checks.check_call(tok, source(kind), text, return_offsets_mapping=True)


@every_kind
def test_same_ids_as_the_core(kind: str) -> None:
    checks.check_same_ids_as_core(ours(kind), TEXTS)
    for numbers in SPELLED.values() if kind in TRAINED else ():
        checks.check_same_ids_as_core(ours(kind, numbers), TEXTS)


@every_kind
@settings(max_examples=40)
@given(text=texts)
@example(text="ﬁ½ 5 Å -3 \u0301 1,234 ÄÖ − 7e5 ٤٢")
def test_offsets_are_the_surface(kind: str, text: str) -> None:
    checks.check_surfaces(ours(kind), oracle(kind), text)


@every_kind
def test_number_tokens(kind: str) -> None:
    """``[NUM]`` is an ordinary token; what looks like it in a text is text."""
    tok = ours(kind)
    tokens = set(tok.numtok.tokens.values())
    literal = "a [NUM] [NUM][/NUM] b"
    assert not tokens & set(tok(literal)["input_ids"])
    assert tok(literal)["input_ids"] == source(kind)(literal)["input_ids"]
    both = tok("a [NUM] 5 [NUM]", return_numbers=True)
    assert [k in tokens for k in both["input_ids"]] == [bool(k) for k in both["number_mask"]] and sum(both["number_mask"]) == 1
    five = tok("a 5")["input_ids"]
    assert NUM in tok.decode(five, skip_special_tokens=True)
    assert tokens & set(tok("a 5", split_special_tokens=True)["input_ids"])
    assert not tokens & set(tok("x <|0.00|> y")["input_ids"]) or kind not in TRAINED


def test_exact_values() -> None:
    """Longer than float64, beyond its range, the smallest, and both zeros."""
    tok = ours("bert")
    texts = ["9007199254740993", "0.1", "-0", "0", "1e400", "-1e400", "4.9e-324", "123456789012345678901234567890", "1" + "0" * 5000]
    got = tok(texts, add_special_tokens=False, return_numbers=True, return_tensors="np")
    assert got["number_values"].dtype == np.float64
    expected = [float(text) for text in texts]
    assert got["number_values"][:, 0].tolist() == expected
    assert [math.copysign(1, value) for value in got["number_values"][:, 0]] == [math.copysign(1, value) for value in expected]


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
    names = {"number_values", "number_mask", "number_scaled"}
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
    assert got["labels"] == unasked("6 7 8")["input_ids"] and got["number_values"] == unasked("a 5", return_numbers=True)["number_values"]
    assert unasked.encode("a 5", return_numbers=True) == unasked.encode("a 5")


@pytest.mark.parametrize("numbers", ["fone", "all", "bits"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["bert", "llama", "roberta"])
def test_padding_of_streams(kind: str, side: str, numbers: str) -> None:
    tok, reference = ours(kind, SINGLE[numbers]), oracle(kind, SINGLE[numbers])
    for options in (
        {},
        {"padding": "max_length", "max_length": 40},
        {"pad_to_multiple_of": 8},
        {"return_tensors": "np"},
        {"return_tensors": "pt"},
    ):
        checks.check_number_padding(tok, reference, ["a 5", "no number", "-3 4 5 b 1,234 text"], side, **options)


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_padding_of_place_values(kind: str) -> None:
    tok, reference = ours(kind, SPELLED["place value"]), oracle(kind, SPELLED["place value"])
    for side in ("left", "right"):
        checks.check_number_padding(tok, reference, ["a 5", "no number", "-3.25 text"], side, return_tensors="pt")


def test_padding_forms() -> None:
    """One feature, columns, tensors, and features whose order of keys differs."""
    tok = ours("bert")
    features = [dict(tok(text, return_numbers=True)) for text in ("a 5 b 6", "7")]
    columns = {key: [one[key] for one in features] for key in features[0]}
    padded = tok.pad(features)
    assert tok.pad(columns)["number_values"] == padded["number_values"]
    assert tok.pad([features[0], dict(reversed(features[1].items()))])["number_values"] == padded["number_values"]
    alone = tok.pad(features[1], padding="max_length", max_length=6)
    assert list(alone["number_values"]) == [1.0, 7.0, 1.0, 1.0, 1.0, 1.0] and [bool(k) for k in alone["number_mask"]] == [0, 1, 0, 0, 0, 0]
    arrays = [{key: np.array(value) for key, value in one.items()} for one in features]
    both = tok.pad(arrays)
    assert isinstance(both["input_ids"], np.ndarray) and both["number_values"].dtype == np.float64
    assert both["number_values"].tolist() == [list(row) for row in padded["number_values"]]


@every_kind
@settings(max_examples=15)
@given(documents=st.lists(texts, min_size=1, max_size=3))
@example(documents=["a 5 b", "-3 and 1,234 [NUM]", "", "none", "007 . , 5 's"])
@example(documents=["1e-5 0.1 123456789.125", "-0"])
def test_decode(kind: str, documents: list[str]) -> None:
    texts_ = [text for text in documents if all(math.isfinite(place.value) for place in oracle(kind).places([text])[0])] or ["5"]
    checks.check_number_decode(ours(kind), oracle(kind), texts_)


@pytest.mark.parametrize("numbers", SPELLED)
@pytest.mark.parametrize("kind", ["bert", "roberta", "llama", "t5"])
@settings(max_examples=10)
@given(documents=st.lists(texts, min_size=1, max_size=3))
@example(documents=["a 5 b", "-3 and 1,234 [NUM]", "none", "007 . , 5 's +0.50"])
def test_decode_spelled_out(kind: str, numbers: str, documents: list[str]) -> None:
    checks.check_number_decode(ours(kind, SPELLED[numbers]), oracle(kind, SPELLED[numbers]), documents)


def test_place_value_is_lossless() -> None:
    tok = ours("gpt2", SPELLED["place value"])
    for text in (TEXTS[0], TEXTS[8], "+0.50 007 1,234"):
        assert tok.decode(tok.encode(text)) == text


def test_decode_refuses() -> None:
    """Values that do not go with the ids."""
    tok = ours("bert")
    got = tok("a 5 b", return_numbers=True)
    for bad in ([5.0, 6.0], [[1.0] * len(got["input_ids"])], "nonsense", [1.0] * (len(got["input_ids"]) + 1)):
        with pytest.raises((NumtokError, ValueError, TypeError)):
            tok.decode(got["input_ids"], number_values=bad)
    with pytest.raises((NumtokError, ValueError, TypeError)):
        tok.batch_decode([got["input_ids"]] * 2, number_values=[got["number_values"]])


def test_decode_one_id() -> None:
    tok = ours("bert")
    number = tok.convert_tokens_to_ids(NUM)
    assert tok.decode(number) == NUM and tok.decode([number], number_values=[7.0]) == "7"
    assert tok.decode([number], number_values=np.array([7.0])) == canonical(7.0) == "7"
    assert tok.decode([], number_values=[]) == ""


@every_kind
def test_streaming_decode(kind: str) -> None:
    """Without values ``[NUM]`` streams as itself, in what servers and transformers use."""
    from tokenizers.decoders import DecodeStream

    tok = ours(kind)
    for text in TEXTS[:4]:
        ids = tok.encode(text)
        stream = DecodeStream(skip_special_tokens=True)
        pieces = [stream.step(tok._tokenizer, number) for number in ids]
        whole = tok.decode(ids, skip_special_tokens=True)
        assert (
            "".join(filter(None, pieces)) == whole
            and "".join(checks.stream_text(tok, ids, skip_special_tokens=True)).strip() == whole.strip()
        )
        assert whole.count(NUM) == len(oracle(kind).places([text])[0])


@pytest.mark.parametrize("kind", ["bert", "roberta", "llama"])
@settings(max_examples=10)
@given(calls=st.lists(st.one_of(inputs.calls(), inputs.cuts()), min_size=2, max_size=5))
def test_no_state_is_kept(kind: str, calls: list[inputs.Call]) -> None:
    tok = ours(kind)
    names = set(vars(tok))
    for call in calls:
        checks.check_numbers(tok, oracle(kind), call.text, call.text_pair, call.sides, **call.options)
        checks.check_numbers(tok, oracle(kind), ["a 5 [NUM]", "another, longer text 1,234"])
    assert set(vars(tok)) <= names | {"cache", "deprecation_warnings"}


def test_an_added_token_in_another_case() -> None:
    """Where the source lower-cases, it sees its added token in any case; the digits in it are no numbers in any case."""
    tok, stock = build_ours("bert"), copy.deepcopy(source("bert"))
    for one in (tok, stock):
        one.add_tokens(["<9A>"])
    for text in ("x <9A> y", "x <9a> y"):
        assert tok.tokenize(text) == stock.tokenize(text), text


CHANGES: dict[str, Any] = {
    "split_special_tokens": lambda one: setattr(one, "split_special_tokens", True),
    "add_bos_token": lambda one: setattr(one, "add_bos_token", True),
    "model_max_length": lambda one: setattr(one, "model_max_length", 5),
    "no pad_token": lambda one: setattr(one, "pad_token", None),
    "pad_token": lambda one: setattr(one, "pad_token", one.convert_ids_to_tokens(9)),
    "sides": lambda one: (setattr(one, "padding_side", "left"), setattr(one, "truncation_side", "left")),
    "inputs": lambda one: setattr(one, "model_input_names", ["input_ids"]),
    "post-processor": lambda one: setattr(one.backend_tokenizer, "post_processor", processors.ByteLevel(trim_offsets=True)),
    "normalizer": lambda one: setattr(one.backend_tokenizer, "normalizer", normalizers.Replace("a", "bb")),
    "pre-tokenizer": lambda one: setattr(one.backend_tokenizer, "pre_tokenizer", pre_tokenizers.WhitespaceSplit()),
    "decoder": lambda one: setattr(one.backend_tokenizer, "decoder", decoders.Replace("a", "ccc")),
    "backend, one token more": lambda one: one.backend_tokenizer.add_tokens([AddedToken("<8 a>", normalized=False)]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["bert", "t5", "llama", "llama3"])
def test_changed_after_use(kind: str, change: str) -> None:
    """Attributes and parts of the backend that are set after calls count from then on."""
    tok, stock = build_ours(kind), copy.deepcopy(source(kind))
    tok(TEXTS, return_numbers=True)
    tok.decode(tok.encode("a 5"))
    made = tok.numtok  # of before
    assert made.tokens == ours(kind).numtok.tokens
    CHANGES[change](stock)
    CHANGES[change](tok)
    added = [tok.numtok.tokens[form] for form in tok.numtok.tokens]
    if change == "backend, one token more":  # its id comes after theirs
        assert tok.convert_tokens_to_ids("<8 a>") == max(added) + 1
        assert tok("a <8 a> 5", return_numbers=True)["number_values"].count(1.0) == len(tok("a <8 a> 5")["input_ids"]) - 1
        return
    reference = Oracle(stock, tok.numtok)
    for text in ("a 5 of a [NUM] -3", ["aa 1,234 <|2.5|>", "x"], "none <|2.5|> at all"):
        for options in ({}, {"padding": True, "truncation": True, "return_offsets_mapping": True}):
            checks.check_numbers(tok, reference, text, **options)
    if change in ("normalizer", "pre-tokenizer", "decoder", "post-processor"):
        checks.check_number_decode(tok, reference, ["a 5 of", "a -3"])


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
            theirs = checks.outcome(lambda: stock(text, pair, **{k: v for k, v in options.items() if k != "return_numbers"}))  # noqa: B023
            assert isinstance(theirs, BaseException)
            checks.same(checks.outcome(lambda: tok(text, pair, **options)), theirs, (text, pair))  # noqa: B023
    checks.check_numbers(tok, oracle(kind), "a 5")


def test_in_threads() -> None:
    """Calls at the same time, of which some need what is made on demand."""
    from concurrent.futures import ThreadPoolExecutor

    tok = build_ours("bert")
    documents = ["a 5 b -3", "[NUM] 7", "none", "1,234 [NUM] <|0.00|>"] * 20
    expected = [ours("bert")(text, return_numbers=True)["number_values"] for text in documents]
    with ThreadPoolExecutor(4) as pool:
        got: list[Any] = list(pool.map(lambda text: tok(text, return_numbers=True)["number_values"], documents))
    assert got == expected
