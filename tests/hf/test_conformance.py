"""Text without numbers: the drop-in tokenizer is the source tokenizer, in everything that can be asked of it."""

from __future__ import annotations

import copy
import functools
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
import hf_inputs as inputs
from hf_cases import BYTE_LEVEL, KINDS, TRAINED, build_ours, build_source, ours, source
from hf_oracle import Oracle
from hostile import texts
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from numtok.errors import NumtokError
from numtok.representations import NUM, FoNE, PlaceValue, XVal

SAMPLES = ["a", "the number of things", "  Don't say \n we'll,  [NUM] naïve x₂", "", " ", "B2B and 1.2.3 <mask> </s> <|2.5|>"]
every_kind = pytest.mark.parametrize("kind", KINDS)


@functools.lru_cache(24)
def oracle(kind: str) -> Oracle:
    return Oracle(source(kind), ours(kind).numtok)


@every_kind
@settings(max_examples=90)
@given(call=inputs.calls())
@example(call=inputs.Call("a [NUM] b  [NUM] c"))
@example(call=inputs.Call("a <|0.00|> <|2.5|> b", options={"split_special_tokens": True}))
def test_calls(kind: str, call: inputs.Call) -> None:
    call = call.without_numbers(oracle(kind))
    checks.check_call(ours(kind), source(kind), call.text, call.text_pair, call.sides, **call.options)


@every_kind
@settings(max_examples=60)
@given(call=inputs.cuts())
def test_truncation_and_padding(kind: str, call: inputs.Call) -> None:
    call = call.without_numbers(oracle(kind))
    checks.check_call(ours(kind), source(kind), call.text, call.text_pair, call.sides, **call.options)


@every_kind
@pytest.mark.parametrize("side", ["left", "right"])
def test_every_strategy(kind: str, side: str) -> None:
    """All strategies of truncation and padding by each other, single and in pairs, on both sides."""
    tok, stock = ours(kind), source(kind)
    sides = {"truncation_side": side, "padding_side": side}
    long, short = "the numbers of this nation and more text in it", "a few words"
    for truncation in inputs.TRUNCATIONS:
        for padding in inputs.PADDINGS:
            for text, pair in ((long, None), (short, long), ([long, short], None), ([long, short], [short, long])):
                options = {"truncation": truncation, "padding": padding, "max_length": 8, "return_overflowing_tokens": True, "stride": 2}
                checks.check_call(tok, stock, text, pair, sides, **options)
            checks.check_call(tok, stock, [long, short], None, sides, truncation=truncation, padding=padding, return_tensors="np")
            checks.check_call(tok, stock, [long], [short], sides, truncation=truncation, padding=padding, return_tensors="pt")


@every_kind
@settings(max_examples=12)
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
@settings(max_examples=10)
@given(
    first=texts,
    second=texts,
    options=st.sampled_from([{}, {"return_tensors": "np"}, {"max_length": 4, "return_special_tokens_mask": True}]),
)
def test_other_ways_in(kind: str, first: str, second: str, options: dict[str, Any]) -> None:
    reference = oracle(kind)
    checks.check_other_ways_in(ours(kind), source(kind), reference.strip_numbers(first), reference.strip_numbers(second), **options)


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
    options += [{"padding": False}, {"return_tensors": "np"}, {"return_tensors": "pt"}, {"return_attention_mask": False}]
    options += [{"padding": "nonsense"}, {"padding_side": "middle"}, {"padding": "max_length", "max_length": 2}]
    columns = {key: [one[key] for one in features] for key in features[0]}
    shapes = [features, features[0], dict(features[1]), columns, [dict(one) for one in features]]
    shapes += [
        stock(SAMPLES[1], return_tensors="pt"),
        stock(SAMPLES[1:2], return_tensors="np"),
        {"input_ids": [[1, 2], [3]], "labels": [[1], [2]]},
    ]
    shapes += [{"attention_mask": [1]}, [], {"input_ids": []}, {"input_ids": [[], [1]]}, [{"input_ids": ["a"]}]]
    for shape in shapes:
        for one in options:
            checks.check_pad(tok, stock, shape, **one)


@every_kind
def test_bad_input(kind: str) -> None:
    tok, stock = ours(kind), source(kind)
    for text, pair in inputs.BAD:
        for options in ({}, {"is_split_into_words": True}, {"padding": True, "return_tensors": "np"}):
            if not hasattr(text, "__next__"):
                checks.check_bad_input(tok, stock, text, pair, **options)
    for options in inputs.BAD_OPTIONS:
        checks.check_bad_input(tok, stock, ["a text without", "any of these"], **options)
        checks.check_bad_input(tok, stock, "a text without", "any of these", **options)
    for way in ("encode", "tokenize", "decode", "batch_decode", "pad"):
        for bad in (5.5, None, b"a", "nonsense", [["a"], 5], [5.5], [-1], [10**20], object()):
            checks.compare(tok, stock, lambda one: getattr(one, way)(bad), (way, bad))  # noqa: B023


@every_kind
@settings(max_examples=8)
@given(calls=st.lists(st.one_of(inputs.calls(), inputs.cuts()), min_size=2, max_size=5))
def test_no_state_is_kept(kind: str, calls: list[inputs.Call]) -> None:
    calls = [call.without_numbers(oracle(kind)) for call in calls]
    listed = [(call.text, call.options | ({"text_pair": call.text_pair} if call.text_pair is not None else {})) for call in calls]
    tok, stock = ours(kind), source(kind)
    plain = [(text, {name: value for name, value in one.items() if name != "text_pair"}) for text, one in listed]
    checks.check_state(tok, stock, plain)


@every_kind
@settings(max_examples=25)
@given(data=st.data())
def test_decode(kind: str, data: st.DataObject) -> None:
    """Of ids that come from text, and of any ids."""
    stock = source(kind)
    any_ids = st.lists(st.integers(0, len(stock) - 1), max_size=12)
    ids = data.draw(st.one_of(any_ids, texts.map(lambda text: stock.encode(oracle(kind).strip_numbers(text)))))
    checks.check_decode(ours(kind), stock, ids)


@every_kind
@settings(max_examples=25)
@given(data=st.data())
def test_streaming_decode(kind: str, data: st.DataObject) -> None:
    stock = source(kind)
    any_ids = st.lists(st.integers(0, len(stock) - 1), max_size=12)
    ids = data.draw(st.one_of(any_ids, texts.map(lambda text: stock.encode(oracle(kind).strip_numbers(text)))))
    checks.check_decode_stream(ours(kind), stock, ids)


@every_kind
def test_vocabulary(kind: str) -> None:
    tok = ours(kind)
    forms = [NUM, f" {NUM}"] if kind in BYTE_LEVEL else [NUM]
    tokens = {form: len(source(kind)) + k for k, form in enumerate(forms)}
    assert tok.numtok.tokens == tokens
    checks.check_vocabulary(tok, source(kind), tokens)


@pytest.mark.parametrize("kind", TRAINED)
def test_vocabulary_of_spelled_out_numbers(kind: str) -> None:
    """Digits that the source has as words keep their ids, and the words stay words."""
    tok, stock = ours(kind, (PlaceValue(overflow="clip"),)), source(kind)
    for token, number in tok.numtok.tokens.items():
        assert tok.convert_tokens_to_ids(token) == number
        assert stock.convert_tokens_to_ids(token) in (number, stock.unk_token_id)
    for text in SAMPLES:
        checks.check_call(tok, stock, text, return_offsets_mapping=True)


def stock_with_numbers(kind: str) -> Any:
    """A new source with the number tokens added in the way that everybody adds tokens."""
    stock = build_source(kind)
    stock.add_tokens([AddedToken(token, normalized=False, special=False) for token in ours(kind).numtok.tokens])
    return stock


ADDITIONS: dict[str, Any] = {
    "words": lambda one: one.add_tokens(["zyx", "new word", "the", "<9>", "zyx"]),
    "one": lambda one: one.add_tokens("q8q"),
    "nothing": lambda one: one.add_tokens([]),
    "flags": lambda one: one.add_tokens([AddedToken("<left 3>", lstrip=True, normalized=False), AddedToken("single", single_word=True)]),
    "special": lambda one: one.add_tokens(["<special 4>"], special_tokens=True),
    "extra": lambda one: one.add_special_tokens({"extra_special_tokens": ["<extra 6>", AddedToken("<extra>", rstrip=True)]}),
    "more": lambda one: one.add_special_tokens({"extra_special_tokens": ["<extra 6>"]}, replace_extra_special_tokens=False),
    "pad": lambda one: one.add_special_tokens({"pad_token": "[PAD]", "mask_token": AddedToken("<m 1>", lstrip=True)}),
    "attribute": lambda one: setattr(one, "pad_token", one.convert_ids_to_tokens(7)),
    "bad": lambda one: one.add_tokens([5]),
    "bad key": lambda one: one.add_special_tokens({"nonsense_token": "a"}),
}


PIECES = [
    "zyx the new word zyxthe",
    "x <9>y <9> q8q",
    "a  <left 3> <left 3>b single singles",
    " <special 4> <extra 6> <extra>  c",
    "<m 1> [PAD]",
]


@pytest.mark.parametrize("kind", ["roberta", "bert", "t5", "llama"])
@pytest.mark.parametrize("addition", ADDITIONS)
def test_added_tokens(kind: str, addition: str) -> None:
    tok, stock = build_ours(kind), stock_with_numbers(kind)

    def texts_now() -> list[str]:
        now = Oracle(stock_without_numbers(tok, kind), tok.numtok)
        return [now.strip_numbers(piece) for piece in PIECES]

    checks.check_added_tokens(tok, stock, ADDITIONS[addition], texts_now)
    reference = Oracle(stock_without_numbers(tok, kind), tok.numtok)
    for text in ("<9> 5 zyx 7<9>8", "5 new word -3", "<left 3>  4 <special 4>5<extra 6>"):
        checks.check_numbers(tok, reference, text, return_offsets_mapping=True)
        checks.check_numbers(tok, reference, text, split_special_tokens=True)
    checks.check_call(tok, stock, ["a text", "a longer text"], padding=True)


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_the_number_token_added_again(kind: str) -> None:
    """Refused in words, or without effect; in either case all goes on as before."""
    tok = build_ours(kind)
    for token in (NUM, AddedToken(NUM, special=True)):
        try:
            tok.add_tokens([token])
        except NumtokError as error:
            assert NUM in str(error)
        for text in ("a 5 [NUM] b", "none"):
            checks.same(tok(text, return_numbers=True), ours(kind)(text, return_numbers=True), text)


def stock_without_numbers(tok: Any, kind: str) -> Any:
    """A source whose added tokens are those of ``tok``; the stand-ins of the oracle come after them."""
    stock = copy.deepcopy(source(kind))
    added = tok.added_tokens_decoder
    names = {token: f"\ue100{number}\ue100" for token, number in tok.numtok.tokens.items()}
    for number in sorted(set(added) - set(stock.added_tokens_decoder)):
        token = added[number]
        stock.add_tokens([AddedToken(names[token.content], normalized=False) if token.content in names else token])
    return stock


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_resize(kind: str) -> None:
    """A model that is resized to ``len(tokenizer)`` has a row for every id."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    tok = ours(kind)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(source(kind)), n_positions=64, n_embd=8, n_layer=1, n_head=1))
    model.resize_token_embeddings(len(tok))
    batch = tok(["a 5 b -3", "7"], padding=True, return_tensors="pt")
    assert int(batch["input_ids"].max()) < model.get_input_embeddings().weight.shape[0]
    assert model(**{key: value for key, value in batch.items() if key != "token_type_ids"}).logits.shape[-1] == len(tok)


@pytest.mark.parametrize("kind", TRAINED)
def test_train_new_from_iterator(kind: str) -> None:
    """Trained anew on text without numbers, it is the source trained anew, and knows numbers as before."""
    corpus = [["the nation and the station", "naïve café texts"], ["a number of tokens in text"] * 3]
    options: dict[str, Any] = {"vocab_size": 400, "show_progress": False, "new_special_tokens": ["<new>"]}
    stock, tok = source(kind).train_new_from_iterator(corpus, **options), ours(kind).train_new_from_iterator(corpus, **options)
    assert type(tok) is type(ours(kind))
    assert tok.numtok.numbers == ours(kind).numtok.numbers and tok.numtok.grammar == ours(kind).numtok.grammar
    assert tok.numtok.tokens.keys() == ours(kind).numtok.tokens.keys()
    assert tok.special_tokens_map == stock.special_tokens_map and tok.all_special_ids == stock.all_special_ids
    assert tok.extra_special_tokens == stock.extra_special_tokens and tok.model_max_length == stock.model_max_length
    if kind in ("bert", "t5"):  # tokenizers trains these another way each time: compare with what it trained this time
        stock = PreTrainedTokenizerFast(tokenizer_object=tok.backend_tokenizer, **dict(stock.init_kwargs))
    for text in ("the nations <new> and texts", "a </s> naïve", "tokens"):
        got, expected = tok(text, return_offsets_mapping=True), stock(text, return_offsets_mapping=True)
        checks.same(dict(got), dict(expected), text)
        assert tok.decode(got["input_ids"]) == stock.decode(got["input_ids"])
    assert tok("[NUM]", add_special_tokens=False)["input_ids"] != [tok.convert_tokens_to_ids(NUM)]
    got = tok("the number 5, -3", return_numbers=True)
    assert [value for value, one in zip(got["number_values"], got["number_mask"], strict=True) if one] == [5.0, -3.0]
    checks.check_same_ids_as_core(tok, ["the nation 5", "7 a"])
    assert ours(kind)("the nation")["input_ids"] == source(kind)("the nation")["input_ids"]


@pytest.mark.parametrize("numbers", [(XVal(), FoNE(6, 4, overflow="clip")), (PlaceValue(),)], ids=["combined", "spelled"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "legacy"])
@settings(max_examples=15)
@given(call=inputs.calls())
def test_calls_with_other_representations(kind: str, numbers: Any, call: inputs.Call) -> None:
    tok = ours(kind, numbers)
    call = call.without_numbers(oracle(kind))
    checks.check_call(tok, source(kind), call.text, call.text_pair, call.sides, **call.options)


def test_is_a_fast_tokenizer() -> None:
    import transformers

    tok = ours("bert")
    assert isinstance(tok, transformers.PreTrainedTokenizerFast) and isinstance(tok, transformers.PreTrainedTokenizerBase)
    assert tok.is_fast is True and not type(tok).__name__.endswith("Fast")
    assert type(tok.backend_tokenizer).__module__.startswith("tokenizers")
    assert tok.decoder is not None
