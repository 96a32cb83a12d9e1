"""Calls leave no state behind; what is changed between calls counts from then on; calls may run at
the same time; copies are equal and independent.
"""

import copy
import itertools
import lzma
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
import hf_inputs as inputs
from hf_cases import SETTINGS, SPELLED, TAKES_ALL, TEXTS, build_ours, oracle, ours, source
from hf_compare import same
from hf_inputs import NUMBER_TEXTS
from hf_oracle import Oracle
from tokenizers import AddedToken, decoders, normalizers, pre_tokenizers, processors

from numtok.hf import NumberTokenizer

CHARSMAP = Path(__file__).parents[2] / "benchmarks" / "nmt_nfkc.xz"

CUT = {
    "truncation": True,
    "max_length": 6,
    "stride": 1,
    "padding": "max_length",
    "return_overflowing_tokens": True,
}


@pytest.mark.parametrize("kind", ["bert", "llama"])
@settings(max_examples=examples(4))
@given(calls=st.lists(st.one_of(inputs.calls(), inputs.cuts()), min_size=2, max_size=5))
@example(
    calls=[
        inputs.Call(NUMBER_TEXTS, None, {"truncation_side": "left"}, CUT),
        inputs.Call("a 5", "6", {"padding_side": "left"}),
    ]
)
def test_no_state_is_kept(kind, calls):
    tok = ours(kind)
    names = set(vars(tok))
    for call in calls:
        checks.check_numbers(
            tok, oracle(kind), call.text, call.text_pair, call.sides, **call.options
        )
        checks.check_numbers(tok, oracle(kind), ["a 5 [NUM]", "another, longer text 1,234"])
    assert set(vars(tok)) <= names | {"cache", "deprecation_warnings"}


@pytest.mark.parametrize("kind", ["bert", "llama3"])
def test_the_backend_is_left_as_a_call_of_the_base_class_leaves_it(kind):
    """Whoever encodes with it next finds the truncation and padding of the last call."""
    tok, stock = build_ours(kind), copy.deepcopy(source(kind))
    for options in (
        CUT,
        {"truncation": True, "max_length": 7, "stride": 2},
        {"padding": True, "pad_to_multiple_of": 4},
        {},
    ):
        for one in (tok, stock):
            one(["a b c d e f g h", "a"], **options)
        assert tok.backend_tokenizer.truncation == stock.backend_tokenizer.truncation
        assert tok.backend_tokenizer.padding == stock.backend_tokenizer.padding


CHANGES = {
    "split_special_tokens": lambda one: setattr(one, "split_special_tokens", True),
    "add_bos_token": lambda one: setattr(one, "add_bos_token", True),
    "model_max_length": lambda one: setattr(one, "model_max_length", 5),
    "no pad_token": lambda one: setattr(one, "pad_token", None),
    "pad_token": lambda one: setattr(one, "pad_token", one.convert_ids_to_tokens(9)),
    "sides": lambda one: (
        setattr(one, "padding_side", "left"),
        setattr(one, "truncation_side", "left"),
    ),
    "inputs": lambda one: setattr(one, "model_input_names", ["input_ids"]),
    "post-processor": lambda one: setattr(
        one.backend_tokenizer, "post_processor", processors.ByteLevel(trim_offsets=True)
    ),
    "normalizer": lambda one: setattr(
        one.backend_tokenizer, "normalizer", normalizers.Replace("a", "bb")
    ),
    "pre-tokenizer": lambda one: setattr(
        one.backend_tokenizer, "pre_tokenizer", pre_tokenizers.WhitespaceSplit()
    ),
    "decoder": lambda one: setattr(one.backend_tokenizer, "decoder", decoders.Replace("a", "ccc")),
    "backend, one token more": lambda one: one.backend_tokenizer.add_tokens(
        [AddedToken("<8 a>", normalized=False)]
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["bert", "llama3"])
def test_changed_after_use(kind, change):
    """Attributes and parts of the backend that are set after calls count from then on."""
    tok, stock = build_ours(kind), copy.deepcopy(source(kind))
    tok(NUMBER_TEXTS, return_numbers=True)
    tok.decode(tok.encode("a 5"))
    made = tok.numtok  # of before
    assert made.tokens == ours(kind).numtok.tokens
    CHANGES[change](stock)
    CHANGES[change](tok)
    added = [tok.numtok.tokens[form] for form in tok.numtok.tokens]
    if change == "backend, one token more":  # its id comes after theirs
        assert tok.convert_tokens_to_ids("<8 a>") == max(added) + 1
        assert (
            tok("a <8 a> 5", return_numbers=True)["number_value"].count(1.0)
            == len(tok("a <8 a> 5")["input_ids"]) - 1
        )
        return
    reference = Oracle(stock, tok.numtok)
    for text in ("a 5 of a [NUM] -3", ["aa 1,234 <|2.5|>", "x"], "none <|2.5|> at all"):
        for options in ({}, {"padding": True, "truncation": True, "return_offsets_mapping": True}):
            checks.check_numbers(tok, reference, text, **options)
    if change in ("normalizer", "pre-tokenizer", "decoder", "post-processor"):
        checks.check_number_decode(tok, reference, ["a 5 of", "a -3"])


def test_encodings_of_a_large_batch_are_of_its_time():
    """What is done to the tokenizer after a call does not reach back."""
    tok = build_ours("llama3")
    documents = [
        "a zyx 5 of [NUM] words " * 40
    ] * 7  # above the size at which encodings are made later
    got, expected = (
        tok(documents, truncation=True, max_length=9),
        ours("llama3")(documents[:1], truncation=True, max_length=9),
    )
    tok.add_tokens(["zyx"])
    tok.truncation_side = "left"
    tok.pad_token = "<|endoftext|>"
    tok.backend_tokenizer.post_processor = source("bert").backend_tokenizer.post_processor
    assert got["input_ids"][-1] == expected["input_ids"][0]
    same(got.encodings[-1], expected.encodings[0])
    assert len(got.encodings) == len(documents) and got.word_ids(3) == expected.word_ids(0)


def test_another_table_of_sentencepiece():
    """Its state, which takes half a millisecond to write out, is not compared; what it does is."""
    tok, found = build_ours("t5"), []
    table = lzma.decompress(CHARSMAP.read_bytes())
    for one in (table, table.replace(b"\0fi\0", b"\0FI\0")):  # what a ligature becomes
        steps = [normalizers.Precompiled(one), normalizers.Strip(left=False)]
        tok.backend_tokenizer.normalizer = normalizers.Sequence(steps)
        assert tok.backend_state() is tok.backend_state()
        found.append(tok("\ufb01 5 \u00bd")["input_ids"])
        assert found[-1] == NumberTokenizer.from_tokenizer(tok)("\ufb01 5 \u00bd")["input_ids"]
    assert found[0] != found[1]


@pytest.mark.parametrize(("kind", "numbers"), [("bert", (TAKES_ALL,)), ("t5", SPELLED["p10"])])
def test_in_threads(kind, numbers):
    """Calls at the same time, of which some need what is made on demand. What is learnt while other
    calls cut and fill, which all share one backend as in transformers, is right afterwards.
    """
    tok, reference = build_ours(kind, numbers), ours(kind, numbers)
    documents = ["a 5 b -3", "[NUM] 7", "none", "1,234 [NUM] <|0.00|>", " - 5 - 6"] * 20
    plain = [{"return_numbers": True}, {}]
    cutting = [{"truncation": True, "max_length": 3}, {"padding": "max_length", "max_length": 12}]

    def at_once(texts, ways):
        with ThreadPoolExecutor(4) as pool:
            return list(
                pool.map(lambda text, way: dict(tok(text, **way)), texts, itertools.cycle(ways))
            )

    calls = list(zip(documents, itertools.cycle(plain)))
    assert at_once(documents, plain) == [dict(reference(text, **way)) for text, way in calls]
    new = [text.replace("5", "8").replace("7", "9 x") for text in documents]
    at_once(new, plain + cutting)
    assert [dict(tok(text)) for text in new] == [dict(reference(text)) for text in new]


def dilled(tok):
    import dill

    return dill.loads(dill.dumps(tok))


COPIES = {
    "pickle": lambda tok: pickle.loads(pickle.dumps(tok)),
    "dill": dilled,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", ["default", "combined", "spelled"])
def test_copies(name, way):
    for kind in ("bert", "roberta"):
        tok = build_ours(kind, **SETTINGS[name])
        # before anything is made on demand
        checks.check_same_tokenizer(tok, COPIES[way](tok), TEXTS)
        checks.check_same_tokenizer(tok, COPIES[way](tok), TEXTS)  # and after
        assert ("number_value" in COPIES[way](tok)("a 5")) == bool(
            SETTINGS[name].get("return_numbers")
        )


def test_a_deep_copy_is_independent():
    tok = build_ours("bert")
    tok(TEXTS)
    other = copy.deepcopy(tok)
    other.add_tokens(["<9>"])
    other.padding_side = "left"
    assert "<9>" not in tok.get_vocab() and len(other) == len(tok) + 1
    assert tok.padding_side == "right"
    values = [one("<9> 5", return_numbers=True)["number_value"] for one in (tok, other)]
    assert [sum(value != 1 for value in one) for one in values] == [2, 1]


def test_class_may_be_swapped():
    """As serving engines do it: a copy whose class is a subclass made on the spot."""
    tok = build_ours("roberta")
    other = copy.copy(tok)
    other.__class__ = type(
        f"Cached{type(tok).__name__}", (type(tok),), {"get_vocab": lambda self: tok.get_vocab()}
    )
    same(other(TEXTS, return_numbers=True), tok(TEXTS, return_numbers=True))
    assert other.decode(tok(TEXTS[0])["input_ids"]) == tok.decode(tok(TEXTS[0])["input_ids"])
