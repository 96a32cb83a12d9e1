"""Numbers in decoded text, of tokenizers whose ids do not tell where a space stood."""

import functools

import pytest
import trained
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

import numtok
from numtok.representations import P10, Digits, FoNE, PlaceValue, XVal
from numtok.tokenizer.generated_numbers import DecodeStream

WORDS = ["a", "room", "12", "-5", "7", "0.5", "(", ")", "-", "$", ".", ",", "/", "#", "e", "+", "="]
REPRESENTATIONS = [XVal(), Digits(1), PlaceValue(), P10(), FoNE(4, 2)]


@functools.cache
def make(representation):
    return numtok.Tokenizer.from_pretrained(trained.source("t5_words"), [representation])


@pytest.mark.parametrize("representation", REPRESENTATIONS, ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("12 34", "12 34"), ("room 7", "room 7"), ("12  34 5", "12 34 5"), ("rooms (7", "rooms (7"),
        ("It is so. 7 rooms", "It is so. 7 rooms"), ("x = 7", "x = 7"), ("so $7", "so $7"),
        ("covid-19", "covid-19"), ("7", "7"), ("1 , 2", "1 , 2"), ("a: 7", "a: 7"),
    ],
)  # fmt: skip
def test_the_space_is_written_back(representation, text, decoded):
    tok = make(representation)
    assert tok.decode_batch(tok.encode_batch([text])).to_pylist() == [decoded]
    assert tok.decode_batch(tok.encode_batch([text], keep_text=True)).to_pylist() == [text]


@pytest.mark.parametrize("representation", REPRESENTATIONS, ids=lambda one: one.name)
@settings(max_examples=examples(30))
@given(words=st.lists(st.sampled_from(WORDS), max_size=8), joint=st.sampled_from(["", " "]))
@example(["10", "-", "5"], " ")
@example(["7", "e", "-", "5"], " ")
@example(["a", "-", "5"], "")
@example(["12", "12", "12"], "")  # more than some representations hold
def test_every_number_is_read_from_the_decoded_text(representation, words, joint):
    """With its value; where the sign is text, without it."""
    tok, text = make(representation), joint.join(words)
    batch = tok.encode_batch([text])
    (decoded,) = tok.decode_batch(batch).to_pylist()
    read = iter([float(one.value) for one in numtok.extract(decoded)])
    sign = abs if not tok.carries_sign else float
    for value in batch.column("number_value").to_pylist()[0]:  # some are left as text
        assert any(sign(one) == pytest.approx(sign(value), rel=0.01) for one in read), decoded
    stream = DecodeStream()
    ids = batch.column("input_ids").to_pylist()[0]
    pieces = [*(stream.step(tok, one) for one in ids), stream.finish(tok)]
    assert "".join(filter(None, pieces)) == tok.decode(ids)
