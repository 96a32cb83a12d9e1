"""Back to text: the numbers stand where they stood, and ``[NUM]`` where there are no values."""

import itertools
import math
import re

import numpy as np
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
from hf_cases import KINDS, SPELLED, TAKES_ALL, build_ours, oracle, ours, source
from hf_inputs import NUMBER_TEXTS
from hf_oracle import canonical
from hostile import PRIVATE_USE, texts
from tokenizers.decoders import DecodeStream

from numtok.errors import NumtokError
from numtok.hf import NumberTokenizer
from numtok.numbers.grammar import Grammar
from numtok.representations import NUM

every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        *((kind, (TAKES_ALL,)) for kind in KINDS),
        # from BERT's ids alone 5 5 is read as 55 where nothing marks a number
        *(("bert", SPELLED[name]) for name in SPELLED if name != "bare digits"),
        *(("roberta", numbers) for numbers in SPELLED.values()),
        *itertools.product(("llama", "t5"), (SPELLED["place value"], SPELLED["p10"])),
    ],
    ids=str,
)
@settings(max_examples=examples(2))
@given(documents=st.lists(texts, min_size=1, max_size=3))
@example(documents=["a 5 b", "-3 and 1,234 [NUM]", "", "none", "007 . , 5 's +0.50"])
@example(documents=["1e-5 0.1 123456789.125", "-0"])
def test_decode(kind, numbers, documents):
    tok, reference = ours(kind, numbers), oracle(kind, numbers)
    places = reference.places(documents)
    finite = [
        text
        for text, own in zip(documents, places, strict=True)
        if all(math.isfinite(place.value) for place in own)
    ]
    checks.check_number_decode(tok, reference, finite or ["5"])


def test_decode_refuses():
    """Values that do not go with the ids."""
    tok = ours("bert")
    got = tok("a 5 b", return_numbers=True)
    count = len(got["input_ids"])
    for bad in ([5.0, 6.0], [[1.0] * count], "nonsense", [1.0] * (count + 1)):
        with pytest.raises((NumtokError, ValueError, TypeError)):
            tok.decode(got["input_ids"], number_value=bad)
    for bad in (-1, -100):  # as in labels; refused as the source refuses it
        with pytest.raises(OverflowError):
            tok.decode([bad, *got["input_ids"]], number_value=[5.0])
    with pytest.raises((NumtokError, ValueError, TypeError)):
        tok.batch_decode([got["input_ids"]] * 2, number_value=[got["number_value"]])


def test_decode_one_id():
    tok = ours("bert")
    number = tok.convert_tokens_to_ids(NUM)
    assert tok.decode(number) == NUM and tok.decode([number], number_value=[7.0]) == "7"
    assert tok.decode([number], number_value=np.array([7.0])) == "7" == canonical([7.0])[0]
    for one in (number, {"input_ids": [number]}):
        assert tok.decode(one, number_value=[7.0]) == "7"
    assert tok.decode([], number_value=[]) == ""


@every_kind
def test_streaming_decode(kind):
    """Without values ``[NUM]`` streams as itself, in what servers and transformers use."""
    tok, skip = ours(kind), {"skip_special_tokens": True}
    for text in NUMBER_TEXTS[:4]:
        ids = tok.encode(text)
        stream, whole = DecodeStream(**skip), tok.decode(ids, **skip)
        pieces = [stream.step(tok.backend_tokenizer, number) for number in ids]
        assert "".join(filter(None, pieces)) == whole
        assert "".join(checks.stream_text(tok, ids, **skip)).strip() == whole.strip()
        assert whole.count(NUM) == len(oracle(kind).places([text])[0])


@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5", "llama"])
def test_private_use_characters_come_back(kind):
    """Whichever of them stands in for numbers."""
    tok, stock = ours(kind), source(kind)
    for text in PRIVATE_USE:
        got = tok(text, add_special_tokens=False, return_numbers=True)
        decoded = tok.decode(got["input_ids"], number_value=got["number_value"])
        as_source = stock.decode(stock(text, add_special_tokens=False)["input_ids"])
        assert re.sub("[\0-\ud7ff]", "", decoded) == re.sub("[\0-\ud7ff]", "", as_source)


def test_a_number_token_without_a_number_is_written_with_one_space():
    """Beside numbers that can be read, where the opening token of a number is followed by none."""
    tok = ours("gpt2", SPELLED["place value"])
    ids = tok("a 5 b")["input_ids"]
    (spaced,) = {one for one in ids if tok.convert_ids_to_tokens(one).strip(" Ġ") == NUM}
    assert tok.decode([*ids, spaced]) == "a 5 b [NUM]"


@pytest.mark.parametrize("numbers", [(TAKES_ALL,), SPELLED["place value"]])
def test_numbers_are_written_in_the_marks_of_the_grammar(numbers, tmp_path):
    text, values = "Es sind 1234,5 kg oder 3,25 kg", [1234.5, 3.25]
    tok = build_ours("gpt2", numbers, Grammar.european(), return_numbers=True)
    tok.save_pretrained(tmp_path)
    for one in (tok, NumberTokenizer.from_pretrained(tmp_path)):
        got = one(text)
        marked = zip(got["number_value"], got["number_mask"], strict=True)
        assert [value for value, is_number in marked if is_number] == values
        told = {"number_value": got["number_value"]} if numbers == (TAKES_ALL,) else {}
        assert one.decode(got["input_ids"], **told) == text
