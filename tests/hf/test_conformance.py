"""Text without numbers: the drop-in tokenizer is the source tokenizer, in everything that can be
asked of it.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
import hf_inputs as inputs
from hf_cases import BYTE_LEVEL, KINDS, oracle, ours, source
from hf_compare import compare
from hostile import texts

from numtok.representations import NUM, FoNE, PlaceValue, XVal

SAMPLES = [
    "a",
    "the number of things",
    "  Don't say \n we'll,  [NUM] naïve x₂",
    "",
    " ",
    "B2B and 1.2.3 <mask> </s> <|2.5|>",
]

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(15, thorough=50))
@given(call=inputs.calls())
@example(call=inputs.Call("a [NUM] b  [NUM] c"))
@example(call=inputs.Call("a <|0.00|> <|2.5|> b", options={"split_special_tokens": True}))
def test_calls(kind: str, call: inputs.Call) -> None:
    call = call.without_numbers(oracle(kind))
    checks.check_call(
        ours(kind), source(kind), call.text, call.text_pair, call.sides, **call.options
    )


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(10, thorough=30))
@given(call=inputs.cuts())
def test_truncation_and_padding(kind: str, call: inputs.Call) -> None:
    call = call.without_numbers(oracle(kind))
    checks.check_call(
        ours(kind), source(kind), call.text, call.text_pair, call.sides, **call.options
    )


@pytest.mark.parametrize(
    ("kind", "side"),
    [
        pytest.param(
            kind,
            side,
            marks=(
                []
                if (kind, side) in (("gpt2", "right"), ("bert", "left"), ("llama", "left"))
                else pytest.mark.slow
            ),
        )
        for kind, side in [
            *zip(KINDS, itertools.cycle(["left", "right"]), strict=False),
            ("gpt2", "right"),
            ("bert", "right"),
        ]
    ],
)
def test_every_strategy(kind: str, side: str) -> None:
    """All strategies of truncation and padding by each other, single and in pairs, on either side."""
    tok, stock = ours(kind), source(kind)
    sides = {"truncation_side": side, "padding_side": side}
    long, short = "the numbers of this nation and more text in it", "a few words"
    for truncation in inputs.TRUNCATIONS:
        for padding in inputs.PADDINGS:
            for text, pair in (
                (long, None),
                (short, long),
                ([long, short], None),
                ([long, short], [short, long]),
            ):
                options = {
                    "truncation": truncation,
                    "padding": padding,
                    "max_length": 8,
                    "return_overflowing_tokens": True,
                    "stride": 2,
                }
                checks.check_call(tok, stock, text, pair, sides, **options)
            checks.check_call(
                tok,
                stock,
                [long, short],
                None,
                sides,
                truncation=truncation,
                padding=padding,
                return_tensors="np",
            )
            checks.check_call(
                tok,
                stock,
                [long],
                [short],
                sides,
                truncation=truncation,
                padding=padding,
                return_tensors="pt",
            )


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(4, thorough=12))
@given(first=texts, second=texts, words=inputs.words)
@example(first="a naïve  text [NUM]", second="", words=["a", "", "[NUM]", "x y"])
def test_alignment(kind: str, first: str, second: str, words: list[str]) -> None:
    reference = oracle(kind)
    first, second = reference.strip_numbers(first[:60]), reference.strip_numbers(second[:30])
    checks.check_alignment(ours(kind), source(kind), first)
    checks.check_alignment(ours(kind), source(kind), [second], [first])
    words = [reference.strip_numbers(word[:20]) for word in words]
    checks.check_alignment(ours(kind), source(kind), words, is_split_into_words=True)


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(4, thorough=10))
@given(
    first=texts,
    second=texts,
    options=st.sampled_from(
        [{}, {"return_tensors": "np"}, {"max_length": 4, "return_special_tokens_mask": True}]
    ),
)
def test_other_ways_in(kind: str, first: str, second: str, options: dict[str, Any]) -> None:
    reference = oracle(kind)
    checks.check_other_ways_in(
        ours(kind),
        source(kind),
        reference.strip_numbers(first),
        reference.strip_numbers(second),
        **options,
    )


@every_kind
def test_batch_encoding(kind: str) -> None:
    checks.check_batch_encoding(ours(kind), source(kind), SAMPLES[:3])


@every_kind
def test_pad(kind: str) -> None:
    tok, stock = ours(kind), source(kind)
    features = [stock(text, return_special_tokens_mask=True) for text in SAMPLES[:4]]
    options = [
        {},
        {"padding": "max_length", "max_length": 20},
        {"pad_to_multiple_of": 8},
        {"padding_side": "left"},
        {"padding_side": "right"},
    ]
    options += [
        {"padding": False},
        {"return_tensors": "np"},
        {"return_tensors": "pt"},
        {"return_attention_mask": False},
    ]
    options += [
        {"padding": "nonsense"},
        {"padding_side": "middle"},
        {"padding": "max_length", "max_length": 2},
    ]
    columns = {key: [one[key] for one in features] for key in features[0]}
    shapes = [features, features[0], dict(features[1]), columns, [dict(one) for one in features]]
    shapes += [
        stock(SAMPLES[1], return_tensors="pt"),
        stock(SAMPLES[1:2], return_tensors="np"),
        {"input_ids": [[1, 2], [3]], "labels": [[1], [2]]},
    ]
    shapes += [
        {"attention_mask": [1]},
        [],
        {"input_ids": []},
        {"input_ids": [[], [1]]},
        [{"input_ids": ["a"]}],
    ]
    for shape in shapes:
        for one in options:
            checks.check_pad(tok, stock, shape, **one)


@every_kind
def test_bad_input(kind: str) -> None:
    tok, stock = ours(kind), source(kind)
    for text, pair in inputs.BAD:
        for options in (
            {},
            {"is_split_into_words": True},
            {"padding": True, "return_tensors": "np"},
        ):
            if not hasattr(text, "__next__"):
                checks.check_bad_input(tok, stock, text, pair, **options)
    for options in inputs.BAD_OPTIONS:
        checks.check_bad_input(tok, stock, ["a text without", "any of these"], **options)
        checks.check_bad_input(tok, stock, "a text without", "any of these", **options)
    for way in ("encode", "tokenize", "decode", "batch_decode", "pad"):
        for bad in (5.5, None, b"a", "nonsense", [["a"], 5], [5.5], [-1], [10**20], object()):
            compare(tok, stock, lambda one: getattr(one, way)(bad), (way, bad))


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(3, thorough=8))
@given(calls=st.lists(st.one_of(inputs.calls(), inputs.cuts()), min_size=2, max_size=5))
def test_no_state_is_kept(kind: str, calls: list[inputs.Call]) -> None:
    calls = [call.without_numbers(oracle(kind)) for call in calls]
    listed = [
        (
            call.text,
            call.options | ({"text_pair": call.text_pair} if call.text_pair is not None else {}),
        )
        for call in calls
    ]
    tok, stock = ours(kind), source(kind)
    plain = [
        (text, {name: value for name, value in one.items() if name != "text_pair"})
        for text, one in listed
    ]
    checks.check_state(tok, stock, plain)


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(8, thorough=25))
@given(data=st.data())
def test_decode(kind: str, data: st.DataObject) -> None:
    """Of ids that come from text, and of any ids."""
    stock = source(kind)
    any_ids = st.lists(st.integers(0, len(stock) - 1), max_size=12)
    ids = data.draw(
        st.one_of(any_ids, texts.map(lambda text: stock.encode(oracle(kind).strip_numbers(text))))
    )
    checks.check_decode(ours(kind), stock, ids)


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(8, thorough=25))
@given(data=st.data())
def test_streaming_decode(kind: str, data: st.DataObject) -> None:
    stock = source(kind)
    any_ids = st.lists(st.integers(0, len(stock) - 1), max_size=12)
    ids = data.draw(
        st.one_of(any_ids, texts.map(lambda text: stock.encode(oracle(kind).strip_numbers(text))))
    )
    checks.check_decode_stream(ours(kind), stock, ids)


@every_kind
def test_vocabulary(kind: str) -> None:
    tok = ours(kind)
    forms = [NUM, f" {NUM}"] if kind in BYTE_LEVEL else [NUM]
    tokens = {form: len(source(kind)) + k for k, form in enumerate(forms)}
    assert tok.numtok.tokens == tokens
    checks.check_vocabulary(tok, source(kind), tokens)


@pytest.mark.parametrize("kind", KINDS[2:])  # for the first two, <|2.5|> holds a number
def test_vocabulary_of_spelled_out_numbers(kind: str) -> None:
    """Digits that the source has as words keep their ids, and the words stay words."""
    tok, stock = ours(kind, (PlaceValue(overflow="clip"),)), source(kind)
    for token, number in tok.numtok.tokens.items():
        assert tok.convert_tokens_to_ids(token) == number
        assert stock.convert_tokens_to_ids(token) in (number, stock.unk_token_id)
    for text in SAMPLES:
        checks.check_call(tok, stock, text, return_offsets_mapping=True)


@pytest.mark.parametrize(
    "numbers", [(XVal(), FoNE(6, 4, overflow="clip")), (PlaceValue(),)], ids=["combined", "spelled"]
)
@pytest.mark.parametrize("kind", ["bert", "roberta", "legacy"])
@pytest.mark.thorough
@settings(max_examples=examples(5, thorough=15))
@given(call=inputs.calls())
def test_calls_with_other_representations(kind: str, numbers: Any, call: inputs.Call) -> None:
    tok = ours(kind, numbers)
    call = call.without_numbers(oracle(kind))
    checks.check_call(tok, source(kind), call.text, call.text_pair, call.sides, **call.options)


def test_is_a_fast_tokenizer() -> None:
    import transformers

    tok = ours("bert")
    assert isinstance(tok, transformers.PreTrainedTokenizerFast) and isinstance(
        tok, transformers.PreTrainedTokenizerBase
    )
    assert tok.is_fast is True and not type(tok).__name__.endswith("Fast")
    assert type(tok.backend_tokenizer).__module__.startswith("tokenizers")
    assert tok.decoder is not None
