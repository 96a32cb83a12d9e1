"""Check what a head's number becomes: one decimal in text and streams, the same with and without cache,
alone and in a batch.
"""

import itertools
import struct

import numpy as np
import pytest
import torch
import torch_models as tiny
import trained
from torch_generators import HEADS, model_for, scripted, setting

import numtok
from numtok import Tokenizer, extract
from numtok.numbers.numbers import Numbers
from numtok.representations import FloatBits, FoNE, XVal
from numtok.tokenizer.generated_numbers import (
    DIGITS,
    Reading,
    finalize,
    number_ids,
    rounded,
)
from numtok_torch import (
    ScalarHead,
    XValEmbedding,
    embedding_from_config,
    embedding_from_schema,
    head_from_config,
    head_from_schema,
)
from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.dataset import NumberDataset
from numtok_torch.generation.generate_texts import generate, read_prompts
from numtok_torch.heads.base import NOISE

PROMPTS = ["The sum of 12.5 and 30 is", "7", "It was 60.2 degrees, then 1,234 or so: about 0.5 of"]
SOURCES = ("xval", "bits compact", "fone", "bins", "logfourier", "bits:64", "xval fone bits")


@pytest.mark.parametrize(
    ("source", "head"),
    [
        *zip(SOURCES, itertools.cycle(HEADS), strict=False),
        *zip(SOURCES, itertools.cycle(["bits", "mode", "scalar"]), strict=False),
        *(("all", head) for head in HEADS),
    ],
)
def test_what_is_fed_back_is_what_the_text_says(source, head):
    """Every stream at every written number is, bit for bit, that of the tokenizer for its text."""
    made, tokenizer, options = setting(source, head=head)
    read = []
    made.embedding.register_forward_pre_hook(lambda _, given: read.append(given[1]))
    options |= {"use_cache": False, "details": True}
    found = generate(made, tokenizer, PROMPTS, **options)
    *_, fed = (batch for batch in read if len(batch["input_ids"]) == len(PROMPTS))
    fed = {name: one[:, read[0]["input_ids"].shape[1] :] for name, one in fed.items()}
    counts = fed["number_mask"].sum(1).tolist()
    values = [one for row, count in zip(found.values, counts, strict=True) for one in row[:count]]
    assert len(values) == sum(counts) >= 5
    words = Numbers.parse([repr(value) for value in values]).format()
    encoded = tokenizer.encode_batch(words)
    collate = NumberCollator.from_schema(encoded.schema, 0, objective=None)
    batch = collate(list(NumberDataset(encoded)))
    assert (
        batch["number_mask"].all() and batch["input_ids"].shape[1] == 1
    )  # each is one token again
    for name in batch.keys() & fed.keys() - {"input_ids"}:
        assert torch.equal(fed[name][fed["number_mask"]], batch[name][:, 0]), name


def test_noise_is_what_it_is_said_to_be():
    """The head's output with and without padding, measured: far below what counts as noise."""
    made, tokenizer, _ = setting("xval")
    encoded = tokenizer.encode_batch(PROMPTS)
    rows = list(NumberDataset(encoded))
    collate = NumberCollator.from_schema(encoded.schema, 0, padding_side="left", objective=None)

    def read(some):
        return made.head.network(made(**collate(some)).hidden[:, -1])[:, 0]

    with torch.no_grad():
        together, alone = read(rows), torch.cat([read([row]) for row in rows])
    assert ((together - alone).abs() <= NOISE * alone.abs().clamp(min=1) / 8).all()


def test_four_digits():
    values = np.array([[802.461237, -1e-300, 0.0], [123456789.0, np.inf, 0.1 + 0.2]])
    assert rounded(values).tolist() == [[802.5, -1e-300, 0.0], [123500000.0, np.inf, 0.3]]
    assert np.isnan(rounded(np.array([np.nan])))[0] and DIGITS == 4


@pytest.mark.parametrize("numbers", ["xval:log", "bits:64", "logfourier"])
@pytest.mark.parametrize("value", [1.7976931348623157e308, -1.7975e308, np.inf])
def test_what_is_nearly_infinite_is_written_as_a_number(numbers, value):
    """As heads say it that take logarithms, where they have learnt little."""
    tokenizer = Tokenizer.from_pretrained(numbers=numbers)
    (text,), streams = finalize(tokenizer, Reading(np.array([value]), {}), lambda _: value)
    assert text == ("-1.797e+308" if value < 0 else "1.797e+308")
    assert streams["number_value"].tolist() == [float(text)]


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("value", [0.30000000000000004, -5e-324, 1.7976931348623157e308])
def test_a_float64_is_written_and_shown_to_the_last_bit(value, compact):
    """A head that chose these 64 bits: they are the text, with 17 digits where it takes them, and the
    value, from which the model reads on.
    """
    numbers = FloatBits(width=64, reciprocal=True, compact=compact)
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), [numbers])
    word, schema = struct.pack(">d", value), tokenizer.batch_schema()
    bits = torch.from_numpy(np.unpackbits(np.frombuffer(word, np.uint8)))
    head = head_from_schema(schema, tiny.D)
    with torch.no_grad():
        head.network.weight.zero_()
        head.network.bias.copy_(6.0 * bits - 3)
    made = model_for(tokenizer, embedding_from_schema(schema, tiny.D, projection="linear"), head)
    options = {"sequence_bias": [[[one], 6.0] for one in number_ids(tokenizer)], "details": True}
    found = generate(made, tokenizer, PROMPTS, max_new_tokens=4, **options)
    told = np.concatenate(found.values)
    assert len(told) >= 3 and told.tobytes() == np.full(len(told), value).tobytes()
    assert word in [struct.pack(">d", float(one.value)) for one in extract(found.texts[0])]


def test_digits_that_no_float_holds():
    """All 30 of them, as the head says them, in the text and fed back."""
    fone = FoNE(30, 0, compact=True)
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), [fone])
    torch.manual_seed(0)
    sizes = {"name": "fone", "int_digits": 30, "frac_digits": 0}
    layer = embedding_from_config(sizes | {"projection": "linear"}, tiny.D)
    made = model_for(tokenizer, layer, head_from_config(sizes | {"linear": True}, tiny.D))
    with torch.no_grad():
        made.embedding.projection.weight.mul_(5)
    script = [tokenizer.tokens[" [NUM]"], *tokenizer.encode(" of").input_ids.tolist()] * 4
    options = scripted(tokenizer, "It is", script)
    (text,) = generate(made, tokenizer, ["It is"], full_text=True, **options)
    batch = read_prompts(tokenizer, [text], 0, 0, False, torch.device("cpu"))
    words = [number.text for number in numtok.extract(text)]
    assert len(words) == 4 and any(int(word) != int(float(word)) for word in words)
    with torch.no_grad():
        hidden = made(**batch).hidden
    for at in batch["number_mask"][0].nonzero().flatten().tolist():
        said = made.head.predict(hidden[:, at - 1]).streams["number_digits"]
        assert torch.equal(said[0], batch["number_digits"][0, at])


def test_a_zero_that_is_written_is_a_number():
    """It is in the text, and the next step sees a number that is 0, not the filler 1.

    So near to zero noise has a say: each is read again, alone.
    """
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), [XVal()])
    head = ScalarHead(tiny.D)
    with torch.no_grad():  # it says 0 whatever it is given
        for parameter in head.parameters():
            parameter.zero_()
    made, seen = model_for(tokenizer, XValEmbedding(tiny.D), head), []
    made.embedding.register_forward_pre_hook(lambda _, given: seen.append(dict(given[1])))
    options = {"max_new_tokens": 4, "sequence_bias": [[[tokenizer.tokens[" [NUM]"]], 1000.0]]}
    written = generate(made, tokenizer, ["It is 5 or"], details=True, **options)
    assert written.values == [[0.0] * 4] and written.texts == [" 0" * 4]
    # one new token each, thanks to the cache
    steps = [batch for batch in seen if batch["number_mask"].shape[1] == 1]
    assert [batch["number_scaled"].tolist() for batch in steps] == [[[0.0]]] * 3
    assert all(batch["number_mask"].all() for batch in steps)
    # behind the prompt and what was written so far
    again = [batch for batch in seen if batch["number_mask"].shape[1] > 1][1:]
    assert [batch["number_scaled"][batch["number_mask"]].tolist() for batch in again] == [
        [5.0, *[0.0] * count] for count in range(4)
    ]
