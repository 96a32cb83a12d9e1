"""Text without numbers: the drop-in tokenizer is the source tokenizer, in everything that can be
asked of it.
"""

import copy
import pickle

import numpy as np
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

import hf_checks as checks
import hf_inputs as inputs
from hf_cases import BYTE_LEVEL, KINDS, oracle, ours, source
from hf_compare import FLAGS, attributes, compare, outcome, same
from hostile import texts
from tokenizers.decoders import DecodeStream
from transformers import PreTrainedTokenizerFast

from numtok.representations import NUM, PlaceValue

SAMPLES = [
    "a", "the number of things", "  Don't say \n we'll,  [NUM] naïve x₂", "", " ",
    "B2B and 1.2.3 <mask> </s> <|2.5|>",
]  # fmt: skip

every_kind = pytest.mark.parametrize("kind", KINDS)
few_kinds = pytest.mark.parametrize("kind", ["bert", "llama", "roberta"])  # padding sides, types


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(10, thorough=70))
@given(call=st.one_of(inputs.calls(), inputs.cuts()))
@example(call=inputs.Call("a [NUM] b  [NUM] c"))
@example(call=inputs.Call("a <|0.00|> <|2.5|> b", options={"split_special_tokens": True}))
def test_calls(kind, call):
    call = call.without_numbers(oracle(kind))
    checks.check_call(
        ours(kind), source(kind), call.text, call.text_pair, call.sides, **call.options
    )


@few_kinds
def test_other_ways_in(kind):
    """``encode``, ``tokenize``, keywords, ``text_target`` and the rest of what makes token ids of
    text.
    """
    text, pair = SAMPLES[2:0:-1]
    options, limits = {"return_tensors": "np"}, {"truncation": True, "max_length": 5}
    kwargs = {"add_special_tokens": False, "return_offsets_mapping": True}
    ways = [
        lambda one: one.encode(text, pair, **options),
        lambda one: one.encode(text, add_special_tokens=False),
        lambda one: one.tokenize(text, pair=pair, add_special_tokens=True),
        lambda one: one(text=text, text_pair=pair, return_special_tokens_mask=True, **limits),
        lambda one: one(text_target=[text, pair], text_pair_target=[pair, text]),
        lambda one: one(text, text_target=pair, **options),
        lambda one: one([text, pair], text_target=[pair, text], max_target_length=3, **limits),
        lambda one: one(text, tokenizer_kwargs=kwargs),
        # the backend knows the number token
        lambda one: one.backend_tokenizer.encode_batch([pair, (pair, pair)]),
    ]
    for k, way in enumerate(ways):
        compare(ours(kind), source(kind), way, k)


@few_kinds
def test_batch_encoding(kind):
    """Results have the items, slices, conversions, pickles and copies of the source tokenizer."""
    tok, stock = ours(kind), source(kind)
    ways = [
        lambda one: one[0],
        lambda one: one.input_ids,
        lambda one: one[0:1],
        lambda one: pickle.loads(pickle.dumps(one)),
        lambda one: one.copy(),
        lambda one: {**one},
        lambda one: one.to("cpu"),
        lambda one: type(one)(dict(one)).convert_to_tensors("np"),
    ]
    padded = [{"padding": True, "return_tensors": tensors} for tensors in ("pt", "np")]
    for k, way in enumerate(ways):
        for options in ({}, *padded):
            compare(tok, stock, lambda one: way(one(SAMPLES[:3], **options)), (k, options))


@few_kinds
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
        for some in options:  # `pad` changes what it is given
            compare(tok, stock, lambda one: one.pad(copy.deepcopy(shape), **some), (shape, some))


@few_kinds
def test_bad_input(kind):
    """Bad input raises the source tokenizer's type of exception, and changes nothing."""
    tok, stock = ours(kind), source(kind)
    split, padded = {"is_split_into_words": True}, {"padding": True, "return_tensors": "np"}
    good = (["a text without", "any of these"], None), ("a text without", "any of these")
    calls = [
        *((text, pair, options) for text, pair in inputs.BAD for options in ({}, split, padded)),
        *((text, pair, options) for text, pair in good for options in inputs.BAD_OPTIONS),
    ]
    for text, pair, options in calls:
        if not hasattr(text, "__next__"):
            compare(tok, stock, lambda one: one(text, pair, **options), (text, pair, options))
            compare(tok, stock, lambda one: one("a text"))
    for way in ("encode", "tokenize", "decode", "batch_decode", "pad"):
        for bad in (5.5, None, b"a", "nonsense", [["a"], 5], [5.5], [-1], [10**20], object()):
            compare(tok, stock, lambda one: getattr(one, way)(bad), (way, bad))


@every_kind
@pytest.mark.thorough
@settings(max_examples=examples(8, thorough=25))
@given(data=st.data())
def test_decode(kind, data):
    """Decode ids that come from text, and any ids, in every form and with every flag; at once and
    token by token: ``DecodeStream`` as servers use it, and the streamers of transformers.
    """
    tok, stock = ours(kind), source(kind)
    of_text = texts.map(lambda text: stock.encode(oracle(kind).strip_numbers(text)))
    any_ids = st.lists(st.integers(0, len(stock) - 1), max_size=12)
    ids = data.draw(st.one_of(any_ids, of_text))
    array, tensor = np.array(ids, np.int64), torch.tensor(ids, dtype=torch.int64)
    batch = [ids, ids[:1], ids[::-1]]
    of_one = [ids, tuple(ids), array, tensor, batch, {"input_ids": ids}, *ids[:1]]
    of_many = [batch, ids, np.array([ids, ids]), torch.tensor([ids, ids]), []]
    for options in FLAGS:
        for form in of_one:
            compare(tok, stock, lambda one: one.decode(form, **options), (form, options))
        for form in of_many:
            compare(tok, stock, lambda one: one.batch_decode(form, **options), (form, options))
        compare(tok, stock, lambda one: one.decode(token_ids=ids, **options), options)
    compare(tok, stock, lambda one: one.convert_tokens_to_string(one.convert_ids_to_tokens(ids)))
    corrupt = "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"
    corrupt = {corrupt: True, "clean_up_tokenization_spaces": True}
    with attributes(tok, corrupt), attributes(stock, corrupt):
        compare(tok, stock, lambda one: one.decode(ids))
    for flag in ({"skip_special_tokens": skip} for skip in (False, True)):
        mine, theirs = DecodeStream(**flag), DecodeStream(**flag)
        for number in ids:
            steps = (mine, tok.backend_tokenizer), (theirs, stock.backend_tokenizer)
            same(*(outcome(lambda: stream.step(one, number)) for stream, one in steps))
        assert checks.stream_text(tok, ids, **flag) == checks.stream_text(stock, ids, **flag)


@every_kind
def test_vocabulary(kind):
    """Names and ids: those of the source, and the number tokens."""
    tok, stock = ours(kind), source(kind)
    assert tok.is_fast and isinstance(tok, PreTrainedTokenizerFast)
    assert not type(tok).__name__.endswith("Fast")
    forms = [NUM, f" {NUM}"] if kind in BYTE_LEVEL else [NUM]
    tokens = {form: len(stock) + k for k, form in enumerate(forms)}
    old, decoder = stock.get_vocab(), tok.added_tokens_decoder
    assert tok.numtok.tokens == tokens
    assert tok.get_vocab() == tok.vocab == old | tokens
    assert len(tok) == len(stock) + len(tokens)
    assert tok.vocab_size == stock.vocab_size
    for token, number in tokens.items():
        assert tok.convert_tokens_to_ids(token) == number not in tok.all_special_ids
        assert tok.convert_ids_to_tokens(number) == token
        assert tok.convert_ids_to_tokens([number], skip_special_tokens=True) == [token]
        assert tok.get_special_tokens_mask([number], already_has_special_tokens=True) == [0]
        assert not decoder[number].special and not decoder[number].normalized
    assert tok.get_added_vocab() == stock.get_added_vocab() | tokens
    assert tok.added_tokens_encoder == stock.added_tokens_encoder | tokens
    assert checks.added_tokens(tok).items() >= checks.added_tokens(stock).items()
    assert decoder.keys() - stock.added_tokens_decoder.keys() == set(tokens.values())
    for name in checks.NAMES:
        compare(tok, stock, lambda one: getattr(one, name), name)
    words = [*list(old)[::29], "nowhere in it", "", stock.unk_token]
    ids = [*range(0, len(stock), 31), len(stock) + 1000]
    ways = [
        lambda one: one.convert_tokens_to_ids(words),
        lambda one: one.convert_ids_to_tokens(ids, skip_special_tokens=True),
        lambda one: one.convert_tokens_to_string(words[:20]),
        lambda one: one.num_special_tokens_to_add(pair=True),
        lambda one: one.get_special_tokens_mask(ids[:-1], already_has_special_tokens=True),
    ]
    for k, way in enumerate(ways):
        compare(tok, stock, way, k)


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
