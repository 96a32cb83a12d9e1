"""Text without numbers: the drop-in tokenizer is the source tokenizer, in everything that can be
asked of it.
"""

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
from transformers import PreTrainedTokenizerFast

from numtok.representations import NUM, PlaceValue

SAMPLES = [
    "a", "the number of things", "  Don't say \n we'll,  [NUM] naïve x₂", "", " ",
    "B2B and 1.2.3 <mask> </s> <|2.5|>",
]  # fmt: skip

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(20, thorough=70))
@given(call=st.one_of(inputs.calls(), inputs.cuts()))
@example(call=inputs.Call("a [NUM] b  [NUM] c"))
@example(call=inputs.Call("a <|0.00|> <|2.5|> b", options={"split_special_tokens": True}))
def test_calls(kind, call):
    call = call.without_numbers(oracle(kind))
    checks.check_call(
        ours(kind), source(kind), call.text, call.text_pair, call.sides, **call.options
    )


@every_kind
@settings(max_examples=examples(4))
@given(
    first=texts,
    second=texts,
    options=st.sampled_from(
        [{}, {"return_tensors": "np"}, {"max_length": 4, "return_special_tokens_mask": True}]
    ),
)
def test_other_ways_in(kind, first, second, options):
    reference = oracle(kind)
    checks.check_other_ways_in(
        ours(kind),
        source(kind),
        reference.strip_numbers(first),
        reference.strip_numbers(second),
        **options,
    )


@every_kind
def test_batch_encoding(kind):
    checks.check_batch_encoding(ours(kind), source(kind), SAMPLES[:3])


@every_kind
def test_pad(kind):
    tok, stock = ours(kind), source(kind)
    features = [stock(text, return_special_tokens_mask=True) for text in SAMPLES[:4]]
    columns = {key: [one[key] for one in features] for key in features[0]}
    options = [
        *({}, {"padding": "max_length", "max_length": 20}, {"pad_to_multiple_of": 8}),
        *({"padding_side": "left"}, {"padding_side": "right"}, {"padding_side": "middle"}),
        *({"padding": False}, {"padding": "nonsense"}, {"return_attention_mask": False}),
        *({"return_tensors": "np"}, {"return_tensors": "pt"}),
        {"padding": "max_length", "max_length": 2},
    ]
    shapes = [
        *(features, features[0], dict(features[1]), columns, [dict(one) for one in features]),
        stock(SAMPLES[1], return_tensors="pt"),
        stock(SAMPLES[1:2], return_tensors="np"),
        {"input_ids": [[1, 2], [3]], "labels": [[1], [2]]},
        *({"attention_mask": [1]}, [], {"input_ids": []}, {"input_ids": [[], [1]]}),
        [{"input_ids": ["a"]}],
    ]
    for shape in shapes:
        for one in options:
            checks.check_pad(tok, stock, shape, **one)


@every_kind
def test_bad_input(kind):
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
@settings(max_examples=examples(8, thorough=25))
@given(data=st.data())
def test_decode(kind, data):
    """Of ids that come from text, and of any ids; at once and token by token."""
    stock = source(kind)
    of_text = texts.map(lambda text: stock.encode(oracle(kind).strip_numbers(text)))
    any_ids = st.lists(st.integers(0, len(stock) - 1), max_size=12)
    ids = data.draw(st.one_of(any_ids, of_text))
    checks.check_decode(ours(kind), stock, ids)
    checks.check_decode_stream(ours(kind), stock, ids)


@every_kind
def test_vocabulary(kind):
    tok = ours(kind)
    assert tok.is_fast and isinstance(tok, PreTrainedTokenizerFast)
    assert not type(tok).__name__.endswith("Fast")
    forms = [NUM, f" {NUM}"] if kind in BYTE_LEVEL else [NUM]
    tokens = {form: len(source(kind)) + k for k, form in enumerate(forms)}
    assert tok.numtok.tokens == tokens
    checks.check_vocabulary(tok, source(kind), tokens)


@pytest.mark.parametrize("brackets", [True, False])
@pytest.mark.parametrize("kind", KINDS[2:])  # for the first two, <|2.5|> holds a number
def test_vocabulary_of_spelled_out_numbers(kind, brackets):
    """Digits that the source has as words keep their ids, and the words stay words."""
    tok, stock = ours(kind, (PlaceValue(overflow="clip", brackets=brackets),)), source(kind)
    for token, number in tok.numtok.tokens.items():
        assert tok.convert_tokens_to_ids(token) == number
        assert stock.convert_tokens_to_ids(token) in (number, stock.unk_token_id)
    for text in SAMPLES:
        checks.check_call(tok, stock, text, return_offsets_mapping=True)
