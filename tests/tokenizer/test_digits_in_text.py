"""Digits without brackets: the tokens that the text itself has, with columns that say which of them
are numbers.
"""

import json
import logging

import numpy as np
import pytest
import tokenizers
import trained

from numtok import Tokenizer
from numtok.representations import Digits, PlaceValue, Subword
from numtok.tokenizer.generated_numbers import PlaceTracker

BARE = Digits(1, brackets=False)
KINDS = ["gpt2", "neox", "qwen", "llama3", "metaspace_first", "metaspace_always", "metaspace_never"]
KINDS += ["llama_legacy", "t5"]
TEXTS = [
    "In 2019 the 5.25 kg, 1,234 km (3) and 10-20 5km.", "5 km", "x5 and v1.2.3", "12:30", "7",
    "It is 3. The 4th; [1,2,3] and 1e5", "ab\n12\n\nc", "no number",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_that_cuts_digits_keeps_its_ids(kind):
    config = trained.cuts_digits(kind)
    source = tokenizers.Tokenizer.from_str(json.dumps(config))
    plain = [source.encode(text, add_special_tokens=False).ids for text in TEXTS]
    config = json.loads(source.to_str())
    tok = Tokenizer(config, [BARE])
    assert not tok.own_tokens and tok.vocab_size == Tokenizer(config, [Subword()]).vocab_size
    batch = tok.encode_batch(TEXTS, keep_text=True)
    assert batch["input_ids"].to_pylist() == plain
    assert batch["number_value"].to_pylist()[:3] == [[2019, 5.25, 1234, 3, 10, 20, 5], [5], []]
    assert tok.decode_batch(batch).to_pylist() == TEXTS


@pytest.mark.slow
def test_a_real_tokenizer_that_cuts_digits_keeps_its_ids():
    """SmolLM2's, around a chat too, as the drop-in tokenizer and in batches."""
    transformers = pytest.importorskip("transformers")
    from pretrained import smollm2

    from numtok.hf import NumberTokenizer

    folder = smollm2()
    stock = transformers.AutoTokenizer.from_pretrained(folder)

    bare = NumberTokenizer.from_tokenizer(stock, numbers=[BARE])
    tok = Tokenizer.from_pretrained(folder, numbers=[BARE])
    assert len(bare) == len(stock)
    chat = [{"role": "user", "content": "What is 1,234 + 5.5 in 2019?"}]
    texts = [*TEXTS, stock.apply_chat_template(chat, tokenize=False)]
    expected = stock(texts)["input_ids"]
    assert bare(texts)["input_ids"] == expected
    assert tok.encode_batch(texts, parse_special=True)["input_ids"].to_pylist() == expected
    assert [bare.decode(ids) for ids in expected] == texts


@pytest.mark.parametrize("kind", ["gpt2", "neox", "qwen", "llama3"])
def test_ids_are_those_of_a_plain_export(kind, tmp_path):
    """Signs, leading points and white space too, where all digits are numbers."""
    Tokenizer(trained.config(kind), [BARE]).export(tmp_path)
    exported = Tokenizer.from_pretrained(tmp_path, [Subword()])
    texts = ["x = -5.25,  7 8 and\n\n.5; 1,234 1e-9 is 12.", "-3", "(+4)  5"]
    ids = Tokenizer(trained.config(kind), [BARE]).encode_batch(texts)["input_ids"]
    assert ids.to_pylist() == exported.encode_batch(texts)["input_ids"].to_pylist()


def test_what_is_no_number_is_as_the_source_cuts_it():
    tok, source = Tokenizer(trained.config("gpt2"), [BARE]), trained.source("gpt2")
    text = "v12 and 1.2.3 of 192.168.0.1 in covid-19abc <|0.00|>"
    numbers = tok.encode("is 12").input_ids.tolist()[-2:]
    assert numbers == [tok.tokens["1"], tok.tokens["2"]]
    assert tok.encode("v12 of 1.2.3").input_ids.tolist() == source.encode("v12 of 1.2.3").ids
    assert tok.decode(tok.encode(text)) == tok.decode(tok.encode(text).input_ids) == text


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("in 2019. The 12, 13", ["2019", "12", "13"]),
        ("v2 and 1.2.3 or -4", ["-4"]),
        ("10-20 is 1,234", ["10", "20", "1,234"]),
        ("[1,2,3] 5e", ["1", "2", "3", "5"]),
    ],
)
def test_the_grammar_reads_what_a_model_writes(text, numbers):
    for kind in ("gpt2", "t5", "llama_legacy"):
        tok = Tokenizer(trained.config(kind), [BARE])
        encoding = tok.encode(text)
        found = tok.numbers_in(encoding.input_ids)
        assert [read for _, _, read in found] == numbers
        assert [first for first, _, _ in found] == encoding.number_index.tolist()
        assert [stop - first for first, stop, _ in found] == [len(one) for one in numbers]


def test_a_number_in_a_token_of_the_text_is_read_too():
    tok = Tokenizer(trained.config("gpt2"), [BARE])
    ids = trained.source("gpt2").encode("In 2019, 12").ids
    for given in (ids, np.array(ids, np.uint64), [*ids, 2**40]):
        assert [text for _, _, text in tok.numbers_in(given)] == ["2019", "12"]
    assert tok.decode(ids) == "In 2019, 12"


@pytest.mark.parametrize(
    "representation", [PlaceValue(brackets=False), Digits(2, places=True, brackets=False)]
)
def test_places_follow_from_what_is_written(representation):
    """Of a fraction, as a model that writes knows no place of an integer digit yet."""
    tok = Tokenizer(trained.config("gpt2"), [representation])
    encoding = tok.encode("It is -12.375 or 1,234.5. A 7 and .25, 4e10, in v1.5, 3 of [1,2.5]")
    tracker = PlaceTracker.of(tok)
    assert tracker is not None
    places = [int(tracker.step([one])[0]) for one in encoding.input_ids.tolist()]
    assert places == np.minimum(encoding["place_value"], 0).tolist()


@pytest.mark.parametrize(
    ("kind", "numbers", "told"),
    [
        ("qwen", "digits:1", ["'digits:1,bare'"]),
        ("qwen", "place", ["'place:bare'"]),
        ("qwen", "digits:1,bare", []),
        ("qwen", "digits:2", []),
        ("qwen", "place:lsd", []),
        ("gpt2", "digits:1", []),
    ],
)
def test_a_tokenizer_that_cuts_digits_is_told_of(kind, numbers, told, caplog, tmp_path):
    with caplog.at_level(logging.WARNING, "numtok"):
        tok = Tokenizer.from_pretrained(trained.source(kind), numbers)
    said = [one.getMessage() for one in caplog.records if "[/NUM]" in one.getMessage()]
    assert len(said) == len(told) and all(way in one for way, one in zip(told, said, strict=True))
    caplog.clear()
    tok.save_pretrained(tmp_path)
    with caplog.at_level(logging.WARNING, "numtok"):
        Tokenizer.from_pretrained(tmp_path)  # as it was saved: nothing was chosen
    assert not [one for one in caplog.records if "[/NUM]" in one.getMessage()]
