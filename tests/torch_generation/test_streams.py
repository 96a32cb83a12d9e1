"""Text as it is written: what a streamer is given is what ``generate`` returns, numbers whole."""

import threading

import pytest
import torch
import torch_models as tiny
import trained
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch_generators import PROMPTS, model_for, scripted, setting
from transformers import TextIteratorStreamer, TextStreamer
from transformers.generation.streamers import BaseStreamer

import numtok
from numtok.representations import FP15, P1000, Digits, SingleToken, Subword, XVal
from numtok_torch import generate


class Pieces(TextStreamer):
    """The pieces of text, as they come."""

    def __init__(self, tokenizer=None, **options):
        super().__init__(tokenizer, **options)
        self.pieces = []
        self.ended = 0

    def on_finalized_text(self, text, stream_end=False):
        assert not self.ended
        self.pieces.append(text)
        self.ended += stream_end


def streamed(made, tokenizer, prompt, **options):
    """The pieces, and the text of the same call without a streamer."""
    pieces = Pieces()
    torch.manual_seed(7)
    (text,) = generate(made, tokenizer, [prompt], streamer=pieces, **options)
    torch.manual_seed(7)
    assert generate(made, tokenizer, [prompt], **options) == [text] and pieces.ended
    return pieces.pieces, text


@settings(max_examples=examples(12))
@example("metaspace_first", Digits(1), "a日日", 1, False)  # bytes in a row are one text
@given(
    st.sampled_from(["gpt2", "bert", "metaspace_first", "t5", "t5_words"]),
    st.sampled_from([Digits(1), Digits(3), P1000(), FP15(), Subword(), XVal()]),
    st.lists(
        st.sampled_from([" a", " -1500", "2.5", " 007", ", ", "é", "日", " kg", "\n", " 3 4"]),
        min_size=1,
        max_size=9,
    ).map(lambda parts: "a" + "".join(parts)),  # of white space alone, BERT makes no token
    st.integers(0, 3),
    st.booleans(),
)
def test_what_is_streamed_is_what_is_returned(source, representation, text, cut, well_formed):
    """Any tokenizer's ids, also numbers and characters that are cut off at the end."""
    tokenizer = numtok.Tokenizer.from_pretrained(trained.source(source), [representation])
    ids = tokenizer.encode(text).input_ids.tolist()
    ids = ids[: max(1, len(ids) - cut)]
    one_token = isinstance(representation, SingleToken)
    layers = (tiny.embedding("xval"), tiny.head("scalar")) if one_token else ()
    made = model_for(tokenizer, *layers)
    options = scripted(tokenizer, "these 5", ids) | {"eos_token_id": [], "well_formed": well_formed}
    pieces, whole = streamed(made, tokenizer, "these 5", **options)
    assert "".join(pieces) == whole


@pytest.mark.parametrize("name", ["mixture", "fone chunks", "bits", "place lsd"])
def test_drawn_text_is_streamed_too(name):
    """Behind a prompt that is shown first."""
    made, tokenizer, options = setting(name)
    drawn = {"do_sample": True, "top_k": 0, "full_text": True}
    pieces, text = streamed(made, tokenizer, PROMPTS[2], **options, **drawn)
    assert "".join(pieces) == text and not any("NUM" in piece for piece in pieces)


def test_streamers_of_transformers():
    """Of the drop-in tokenizer, of the core, and, in another thread, one that is iterated over."""
    hf = pytest.importorskip("numtok.hf")
    made, tokenizer, options = setting("xval")
    stock = trained.stock("gpt2")
    wrapped = hf.NumberTokenizer.from_tokenizer(stock, numbers=[XVal(0.1)])
    (text,) = generate(made, tokenizer, PROMPTS[:1], full_text=True, **options)
    for known in (wrapped, tokenizer):
        for skip in (False, True):
            pieces = Pieces(known, skip_prompt=skip)
            generate(made, known, PROMPTS[:1], full_text=True, streamer=pieces, **options)
            assert "".join(pieces.pieces) == (text.removeprefix(PROMPTS[0]) if skip else text)
        streamer = TextIteratorStreamer(known, timeout=60)
        given = {"full_text": True, "streamer": streamer, **options}
        thread = threading.Thread(target=generate, args=(made, known, PROMPTS[:1]), kwargs=given)
        thread.start()
        assert "".join(streamer) == text
        thread.join()


def test_other_streamers_get_ids():
    class Ids(BaseStreamer):
        def __init__(self):
            self.ids = []

        def put(self, value):
            self.ids += value.flatten().tolist()

        def end(self):
            self.ids.append(-1)

    made, tokenizer, options = setting("place")
    streamer = Ids()
    found = generate(made, tokenizer, PROMPTS[:1], details=True, streamer=streamer, **options)
    prompt = tokenizer.encode(PROMPTS[0]).input_ids.tolist()
    assert streamer.ids[:-1][: len(prompt) + len(found.ids[0])] == [*prompt, *found.ids[0]]
    assert streamer.ids[-1] == -1
