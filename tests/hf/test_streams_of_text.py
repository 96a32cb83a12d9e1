"""Text as it is written, token by token: numbers whole, and all of it what ``decode`` gives."""

import numpy as np
import pytest

pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

from effort import examples
from hf_cases import ours
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from transformers import TextIteratorStreamer

from numtok.hf import DecodeStream
from numtok.representations import NUM, P1000, Digits, NumeroLogic, PlaceValue, XVal

SPELLED = [Digits(1), Digits(3), PlaceValue(), Digits(1, brackets=False), P1000(2), NumeroLogic()]
KINDS = ["gpt2", "t5", "bert"]
TEXT = "The mass is -1500 kg, 2.5 m; été 日本 7\U0001f600 12"
words = st.lists(
    st.sampled_from(
        ["a", " b", " -1500", "2.5", " 007", ", ", "é", "日", "😀", " kg", ";", " 3 4", "e", "½"]
    ),
    max_size=12,
).map("".join)


def streamed(kind, representation, ids):
    return in_pieces(ours(kind, (representation,)), ids)


def in_pieces(tok, ids):
    stream = DecodeStream()
    pieces = [stream.step(tok, one) for one in ids]
    assert not any("[NUM" in piece for piece in pieces if piece)
    return [piece for piece in [*pieces, stream.finish(tok)] if piece is not None]


@settings(max_examples=examples(30))
@given(st.sampled_from(KINDS), st.sampled_from(SPELLED), words)
@example("gpt2", PlaceValue(), TEXT)
@example("t5", Digits(1), TEXT)
@example("llama3", P1000(2), TEXT)
def test_the_stream_is_what_decode_gives(kind, representation, text):
    assume(kind != "bert" or representation.marks_begin)
    tok = ours(kind, (representation,))
    ids = tok(text, add_special_tokens=False)["input_ids"]
    assert "".join(streamed(kind, representation, ids)) == tok.decode(ids)
    assert "".join(in_pieces(tok.numtok, ids)) == tok.numtok.decode(ids)
    if kind == "bert" and representation == NumeroLogic():
        return  # the streamers of transformers show all up to a space, which digits may take back
    streamer = TextIteratorStreamer(tok, timeout=10)
    for one in ids:
        streamer.put(torch.tensor([one]))
    streamer.end()
    assert "".join(streamer) == tok.decode(ids)


@pytest.mark.parametrize("representation", [one for one in SPELLED if one.marks_begin], ids=repr)
def test_numbers_come_whole(representation):
    tok = ours("gpt2", (representation,))
    pieces = streamed("gpt2", representation, tok("of -1500 kg or 2.5")["input_ids"])
    assert [piece.strip() for piece in pieces if piece.strip()[-1] in "05"] == ["-1500", "2.5"]


@settings(max_examples=examples(40))
@given(st.sampled_from(["gpt2", "t5", "bert"]), st.sampled_from(SPELLED), st.data())
def test_what_is_no_number_comes_too(kind, representation, data):
    """Symbols as no encoder writes them, numbers that begin late or are cut off, words with digits."""
    assume(kind != "bert" or representation.marks_begin)
    tok = ours(kind, (representation,)).numtok
    tokens = list((tok.own_tokens or tok.tokens).values())
    symbols, words = st.sampled_from(tokens), st.integers(0, tok.vocab_size - 1)
    ids = data.draw(st.lists(symbols | words, max_size=20))
    stream = DecodeStream()
    pieces = [stream.step(tok, one) for one in ids]
    assert "".join(filter(None, [*pieces, stream.finish(tok)])) == tok.decode(ids)


def test_digits_of_the_text_come_as_the_text_does():
    tok = ours("gpt2", (Digits(1, brackets=False),))
    ids = tok("of -15, 2.5")["input_ids"]
    pieces = ["-", "1", "5", ",", " ", "2", ".", "5"]
    assert in_pieces(tok, ids)[-8:] == in_pieces(tok.numtok, ids)[-8:] == pieces
    for some in (torch.tensor(ids), np.array(ids, np.int32)):  # and so do their elements
        assert in_pieces(tok, some)[-8:] == pieces


@pytest.mark.parametrize("core", [False, True])
def test_numbers_that_are_one_token(core):
    tok = ours("gpt2", (XVal(),))
    ids = tok("of -1500 kg")["input_ids"]
    at = ids.index(tok.convert_tokens_to_ids(f" {NUM}"))
    tok = tok.numtok if core else tok
    plain, valued, prompted = DecodeStream(), DecodeStream(), DecodeStream(np.array(ids[:at]))
    assert "".join(filter(None, (plain.step(tok, one) for one in ids))) == f"of {NUM} kg"
    pieces = [valued.step(tok, one, -1500.0 if one == ids[at] else None) for one in ids]
    assert "".join(filter(None, pieces)) == "of -1500 kg" and pieces[at] == " -1500"
    assert prompted.step(tok, ids[at + 1 :]) == " kg"


@pytest.mark.parametrize("core", [False, True])
def test_a_value_reads_alike_alone_and_among_others(core):
    tok = ours("gpt2", (XVal(),))
    ids, values = tok("a 1 b 2 c 3")["input_ids"], [3, -2.0, "2.0"]
    numbers = iter(values)
    number = tok.convert_tokens_to_ids(f" {NUM}")
    given = [next(numbers) if one == number else None for one in ids]
    tok, options = (tok.numtok, {"numbers": values}) if core else (tok, {"number_value": values})
    stream = DecodeStream()
    pieces = [stream.step(tok, one, value) for one, value in zip(ids, given, strict=True)]
    assert "".join(filter(None, pieces)) == tok.decode(ids, **options) == "a 3 b -2 c 2.0"
