"""Which tokens groups of digits are: those of the source if it has all of them, else tokens of
numtok's own; in every kind of tokenizer.
"""

import numpy as np
import pytest
import trained

from numtok import Digits, PlaceValue, Tokenizer
from numtok.representations.digit_symbols import groups
from numtok.tokenizer.packing import NumberTokens

TEXTS = [
    "At 1,234,567.8901 of -007 (.5e3) B2B 60 1.2.3 [NUM:602] 602 -0 0.000, no 12:30.",
    "",
    None,
    "5",
]
KINDS = ["gpt2", "neox", "llama3", "bert", "bert_lower", "t5", "llama_legacy"]


def with_all_groups():
    """A source that has all 1,110 of them, in no order."""
    config = trained.config("gpt2")
    known = config["model"]["vocab"]
    first = 1 + max([*known.values(), *(token["id"] for token in config["added_tokens"])])
    missing = [group for group in groups(3) if group not in known]
    ids = (first + np.random.default_rng(0).permutation(len(missing))).tolist()
    config["model"]["vocab"] = known | dict(zip(missing, ids, strict=True))
    return config


@pytest.mark.parametrize("kind", KINDS)
def test_single_digits_are_those_of_the_source(kind):
    tok = Tokenizer(trained.config(kind), [Digits(1, places=True)])
    place = Tokenizer(trained.config(kind), [PlaceValue()])
    assert tok.tokens == place.tokens
    ours, theirs = tok.encode_batch(TEXTS), place.encode_batch(TEXTS)
    assert ours.to_pylist() == theirs.to_pylist()


def test_a_source_with_all_groups_gives_its_tokens():
    config = with_all_groups()
    tok = Tokenizer(config, [Digits()])
    source = config["model"]["vocab"]
    assert all(tok.tokens[group] == source[group] for group in groups(3))
    assert tok.vocab_size == Tokenizer(config, "xval").vocab_size + 1, "[/NUM]"
    batch = tok.encode_batch(["a 1234567.89 b"])
    ids = batch["input_ids"][0].as_py()
    assert [source.get(name) for name in ("1", "234", "567", ".", "89")] == ids[2:7]
    assert tok.decode_batch(batch).to_pylist() == ["a 1234567.89 b"]


def test_a_source_that_lacks_one_group_gives_none():
    config = with_all_groups()
    del config["model"]["vocab"]["038"]
    tok = Tokenizer(config, [Digits()])
    own = {f"[NUM:{group}]" for group in groups(3)}
    assert own <= tok.tokens.keys() and not set(groups(3)) & tok.tokens.keys()
    assert own <= tok.own_tokens.keys()
    assert min(tok.tokens[name] for name in own) > max(config["model"]["vocab"].values())


@pytest.mark.parametrize(
    "config", [trained.config("gpt2"), with_all_groups()], ids=["own", "shared"]
)
def test_what_the_metadata_tell(config):
    """Every token of a number is named; only those that no text has are told as numtok's own."""
    tok = Tokenizer(config, [Digits()])
    spans = NumberTokens.from_schema(tok.batch_schema())
    assert set(spans.ids) == set(tok.tokens.values())
    assert set(spans.own) == {
        number
        for content, number in tok.tokens.items()
        if content.strip().startswith(("[NUM", "[/NUM"))
    }
    batch = tok.encode_batch(["602 and B602 are 602,000.5"])
    ids, index = np.array(batch["input_ids"][0].as_py()), np.array(batch["number_index"][0].as_py())
    stops = spans.stops(ids, index, np.full(len(index), len(ids)))
    assert (stops - index).tolist() == [3, 7]
