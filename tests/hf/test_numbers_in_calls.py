"""Text with numbers: ids as if ``[NUM]`` were an added token, offsets of the numbers as written,
streams row for row.
"""

import itertools
import json
import math

import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
import hf_inputs as inputs
import trained
from hf_cases import (
    BYTE_LEVEL,
    KINDS,
    MIXED_TEXTS,
    REAL,
    SINGLE,
    SPELLED,
    TAKES_ALL,
    build_ours,
    enlarged,
    oracle,
    ours,
    ours_experienced,
    source,
)
from hf_compare import outcome, same
from hf_inputs import NUMBER_TEXTS
from hostile import PRIVATE_USE, texts
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from numtok import Numbers
from numtok.hf import NumberTokenizer
from numtok.numbers.grammar import Grammar
from numtok.representations import NUM, Digits, Subword

every_kind = pytest.mark.parametrize("kind", KINDS)


SETTINGS = {
    "default": {},
    "one form": {"leading_space": "separate"},  # the space before a number is its own token
    "data": {"grammar": Grammar.data()},
    "pattern": {"grammar": Grammar.from_pattern(r"\d+")},
}
CASES = [(kind, "default") for kind in KINDS] + [(kind, "one form") for kind in BYTE_LEVEL]
CASES += [(kind, grammar) for kind in ("bert", "roberta") for grammar in ("data", "pattern")]


def call(*arguments, **options):
    return inputs.Call(*arguments, options=options)


OFFSETS = {"return_offsets_mapping": True}
PADDED = {"padding": True, "return_tensors": "pt"}
CUT = {"truncation": True, "max_length": 5}
WORDS = [["a", "5", "b -3", ""], ["-7", "[NUM]", " 8"]]


def check(kind, call, large=False, **settings):
    tok = (ours_experienced if large else ours)(kind, **settings)
    words = call.options.get("is_split_into_words")
    text = enlarged(call.text) if large and call.text_pair is None and not words else call.text
    checks.check_numbers(
        tok, oracle(kind, **settings), text, call.text_pair, call.sides, **call.options
    )


@pytest.mark.parametrize(("kind", "name"), CASES)
@pytest.mark.thorough
@settings(max_examples=examples(12, thorough=40))
@given(call=st.one_of(inputs.calls(), inputs.cuts()), large=st.booleans())
@example(call=call(NUMBER_TEXTS, **PADDED, **OFFSETS), large=False)
@example(call=call(NUMBER_TEXTS[::-1], NUMBER_TEXTS, **OFFSETS), large=False)
@example(call=call(WORDS, is_split_into_words=True, **OFFSETS), large=False)
@example(call=call("a <|2.5|> 5", split_special_tokens=True, **OFFSETS), large=False)
@example(
    call=call("1 2 a 3 4 b 5 6 7", stride=1, return_overflowing_tokens=True, **CUT), large=False
)
@example(call=call(MIXED_TEXTS, padding=True, **CUT), large=True)
@example(call=call(["5 <mask> 6", "7", "of 8"], return_tensors="np"), large=True)
@example(call=call("5 <mask> 6 of 7", return_length=True), large=True)
@example(call=call(["", ""], padding=True, return_special_tokens_mask=True), large=True)
@example(
    call=inputs.Call(
        *("1 2 a 3", "4 b 5 6 7", {"truncation_side": "left"}),
        {"truncation": "only_second", "max_length": 9},
    ),
    large=False,
)
def test_calls(kind, name, call, large):
    """Ids, offsets, words, streams; whatever cuts the ids cuts the streams, row for row; by the
    quick way for large batches too.
    """
    assert name != "one form" or f" {NUM}" not in ours(kind, **SETTINGS[name]).get_vocab()
    check(kind, call, large, **SETTINGS[name])


@pytest.mark.parametrize(
    "kind", [*(pytest.param(kind, marks=pytest.mark.slow) for kind in REAL), *KINDS]
)
def test_same_ids_as_the_core(kind):
    # each way to spell numbers with two of the kinds
    spelled = () if kind in REAL else [*SPELLED.values()][KINDS.index(kind) % 4 :: 4]
    for numbers in ((TAKES_ALL,), *spelled):
        checks.check_same_ids_as_core(ours(kind, numbers), [*NUMBER_TEXTS, *PRIVATE_USE])


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        *zip(itertools.cycle(["bert", "roberta"]), [*SINGLE, *SPELLED], strict=False),
        *(("bert", "all"), ("bert", "p10"), ("roberta", "place value"), ("roberta", "bare digits")),
        # whose text beside digits is none as beside added tokens, if there are no brackets
        *itertools.product(["llama"], ["place value", "p10"]),
        ("llama3", "bare digits"),
    ],
)
@settings(max_examples=examples(2))
@given(call=inputs.calls(), large=st.booleans())
@example(call=call(NUMBER_TEXTS, padding=True, return_tensors="np"), large=True)
@example(call=call(NUMBER_TEXTS, padding_side="left", **PADDED), large=False)
@example(call=call(["none", "a"], padding=True, return_tensors="np"), large=False)
@example(call=call(NUMBER_TEXTS[0], return_overflowing_tokens=True, **CUT), large=False)
@example(call=call(["a -5", "7"], is_split_into_words=True), large=False)
@example(call=call("E"), large=False)  # a symbol that BERT's vocabulary lacks
@example(call=call(["Every EGG", "1E5 Eggs"], **OFFSETS), large=True)
def test_representations(kind, numbers, call, large):
    """Ids, and what each representation adds, under the names of the schema."""
    check(kind, call, large, numbers=(SINGLE | SPELLED)[numbers])


@pytest.mark.parametrize("kind", ["gpt2", "qwen", "metaspace_first", "llama_legacy", "t5"])
def test_a_tokenizer_that_cuts_digits_keeps_its_ids(kind):
    """Cut, padded, in pairs and as words, and its text comes back as from the stock tokenizer."""
    backend = Tokenizer.from_str(json.dumps(trained.cuts_digits(kind)))
    stock = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="a")
    bare = NumberTokenizer.from_tokenizer(stock, numbers=[Digits(1, brackets=False)])
    texts = ["In 2019 the 5.25 kg, 1,234 km (3) and 10-20 5km.", "5 km", "x5, v1.2.3", "none"]
    for options in (
        {},
        {"padding": True},
        {"truncation": True, "max_length": 7, "return_overflowing_tokens": True},
        {"text_pair": texts[::-1]},
    ):
        assert bare(texts, **options)["input_ids"] == stock(texts, **options)["input_ids"]
    for text in texts:
        ids = stock(text)["input_ids"]
        assert bare(text)["input_ids"] == ids and bare.decode(ids) == stock.decode(ids)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_subword(kind):
    """The baseline: numbers are what the source makes of them."""
    tok = ours(kind, (Subword(),))
    for text in NUMBER_TEXTS:
        checks.check_call(tok, source(kind), text)
        checks.check_call(tok, source(kind), text, return_offsets_mapping=True)


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(8, thorough=25))
@given(text=texts)
@example(text="ﬁ½ 5 Å -3 \u0301 1,234 ÄÖ − 7e5 ٤٢")
def test_offsets_are_the_surface(kind, text):
    """Whatever the normalizer does: the text there reads as the value."""
    got = ours(kind)(text, return_numbers=True, return_offsets_mapping=True)
    marked = [k for k, one in enumerate(got["number_mask"]) if one]
    for k, place in zip(marked, oracle(kind).places([text])[0], strict=True):
        start, stop = got["offset_mapping"][k]
        surface = text[start:stop].strip(" ")
        assert stop == place.stop and surface == text[place.start : place.stop]
        value = Numbers.parse([surface]).to_float64()[0]
        assert got["number_value"][k] == value or math.isinf(value)


@every_kind
def test_number_tokens_are_ordinary_ones(kind):
    tok = ours(kind)
    tokens = set(tok.numtok.tokens.values())
    assert NUM in tok.decode(tok("a 5")["input_ids"], skip_special_tokens=True)
    assert tokens & set(tok("a 5", split_special_tokens=True)["input_ids"])
    assert not tokens & set(tok("x <|0.00|> [NUM][/NUM] y")["input_ids"])


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize(
    ("of_instance", "of_call", "expected"),
    [(False, None, 0), (False, False, 0), (False, True, 1), (True, None, 1), (True, False, 0)],
)
def test_off_unless_asked(kind, of_instance, of_call, expected):
    """The switch of a call goes before that of the instance."""
    tok = build_ours(kind, return_numbers=True) if of_instance else ours(kind)
    names = {"number_value", "number_mask", "number_scaled"}
    for text in ("a 5", ["a 5", "b"], "none"):
        found = tok(text, return_numbers=of_call)
        assert names & set(found) == (names if expected else set())
    targets = tok("a 5", text_target="6 7 8", return_numbers=True)
    assert targets["labels"] == tok("6 7 8")["input_ids"]
    assert targets["number_value"] == tok("a 5", return_numbers=True)["number_value"]
    assert tok.encode("a 5", return_numbers=True) == tok.encode("a 5")


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_bad_input_beside_numbers(kind):
    tok, stock = ours(kind), source(kind)
    for text, pair in (
        *(([5, "5"], None), (["5", 5], None), (["5", None], None), ([["5", 5]], None)),
        *(("5", 5), (["5"], "5"), ("5 \ud800", None)),
    ):
        for options in ({}, {"is_split_into_words": True}):
            theirs = outcome(lambda: stock(text, pair, **options))
            assert isinstance(theirs, BaseException)
            for ours_too in ({}, {"return_numbers": True}):
                same(outcome(lambda: tok(text, pair, **options, **ours_too)), theirs)
    checks.check_numbers(tok, oracle(kind), "a 5")
