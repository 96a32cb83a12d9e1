"""What a head's number becomes: one decimal in text and streams, the same with and without cache,
alone and in a batch.
"""

import functools
import struct

import numpy as np
import pytest
import torch
import torch_models as tiny
import trained

from numtok import Tokenizer
from numtok.numbers.numbers import Numbers
from numtok.representations import ExponentBins, FloatBits, FoNE, LogFourier, XVal
from numtok.tokenizer.written import DIGITS, Reading, doubtful, held, number_ids, rounded
from numtok_torch import NumberModel, embedding_from_schema, head_from_config, head_from_schema
from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.dataset import NumberDataset
from numtok_torch.generation import generate_texts
from numtok_torch.generation.generate_texts import Generated, generate
from numtok_torch.generation.state import Writing
from numtok_torch.heads.base import NOISE

PROMPTS = ["The sum of 12.5 and 30 is", "7", "It was 60.2 degrees, then 1,234 or so: about 0.5 of"]
SOURCES = {
    "xval": [XVal(0.1)],
    "bits": [FloatBits(compact=True)],
    "fone": [FoNE(4, 2, compact=True)],
    "bins": [ExponentBins(50)],
    "logfourier": [LogFourier(4)],
    "xval fone bits": [XVal(0.1), FoNE(4, 2), FloatBits()],
    "all": [
        XVal(0.1, clip=5.0),
        FoNE(4, 2, compact=True, chunk=5),
        FloatBits(),
        ExponentBins(50),
        LogFourier(4),
    ],
}
HEADS = {
    "scalar": {"name": "scalar", "scale": 0.1},
    "mean": {"name": "mixture", "point": "mean", "scale": 0.1},
    "mode": {"name": "mixture", "components": 4, "space": "asinh"},
    "fone": {"name": "fone", "int_digits": 4, "frac_digits": 2},
    "bits": {"name": "bits"},
}


@functools.cache
def tokenizer_of(source):
    return Tokenizer.from_pretrained(trained.source("gpt2"), SOURCES[source])


def setting(source, head, seed=0, kind="gpt2"):
    """A model whose output depends strongly on the numbers; a tokenizer; options under which a
    third of the tokens are numbers.
    """
    tokenizer = tokenizer_of(source)
    backbone = tiny.backbone(kind, seed, vocab_size=tokenizer.vocab_size)
    torch.manual_seed(seed + 1)
    linear = {"projection": "linear"} if source == "all" or "fone" in source else {}
    layer = embedding_from_schema(tokenizer.batch_schema(), tiny.D, **linear)
    made = NumberModel(backbone, layer, head_from_config(HEADS[head], tiny.D)).eval()
    with torch.no_grad():
        for one in (*made.embedding.parameters(), *made.head.parameters()):
            one.mul_(3)
    return made, tokenizer, {"max_new_tokens": 10, "sequence_bias": biased(tokenizer)}


def biased(tokenizer):
    return [[[one], 6.0] for one in number_ids(tokenizer)]


@pytest.fixture
def writings(monkeypatch):
    """What is kept while texts are written, from now on."""
    kept = []

    def noted(*arguments):
        kept.append(Writing(*arguments))
        return kept[-1]

    monkeypatch.setattr(generate_texts, "Writing", noted)
    return kept


def in_turn(source):
    """Two heads for each source: every head has its turn."""
    turn = list(SOURCES).index(source)
    return [list(HEADS)[(turn + k) % len(HEADS)] for k in (0, len(HEADS) // 2)]


@pytest.mark.parametrize(
    ("source", "kind", "head"),
    [
        *(("xval fone bits", "gpt2", head) for head in HEADS),
        *((source, "gpt2", in_turn(source)[0]) for source in SOURCES),
        *(pytest.param(one, "gpt2", in_turn(one)[1], marks=pytest.mark.slow) for one in SOURCES),
        *(("bits", kind, in_turn("bits")[0]) for kind in ("gpt_neox", "llama")),
        ("all", "llama", in_turn("all")[0]),
    ],
)
def test_cached_is_uncached_is_batched(source, kind, head):
    """To the last digit: texts, ids and values, of every embedding and every head."""
    made, tokenizer, options = setting(source, head, int(kind == "gpt2"), kind)
    found = []
    for use_cache in (True, False):
        known = options | {"details": True, "use_cache": use_cache}
        found.append(generate(made, tokenizer, PROMPTS, **known))
        alone = (generate(made, tokenizer, [prompt], **known) for prompt in PROMPTS)
        found.append(sum(alone, Generated([], [], [])))
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize(
    ("source", "head"),
    [
        *((source, head) for source in SOURCES if source != "all" for head in in_turn(source)),
        *(("all", head) for head in HEADS),
    ],
)
def test_what_is_fed_back_is_what_the_text_says(source, head, writings):
    """Every stream at every written number is, bit for bit, that of the tokenizer for its text."""
    made, tokenizer, options = setting(source, head)
    generate(made, tokenizer, PROMPTS, use_cache=False, **options)
    (writing,) = writings
    texts, shown = writing._texts, writing._shown
    assert len(texts) >= 5 and texts.keys() == shown.keys()
    encoded = tokenizer.encode_batch(list(texts.values()))
    collate = NumberCollator.from_schema(encoded.schema, 0, objective=None)
    batch = collate(list(NumberDataset(encoded)))
    assert batch["input_ids"].shape[1] == 1, texts  # each is one token again
    assert batch["number_mask"].all()
    for name in writing.streams:
        fed = torch.from_numpy(np.stack([streams[name] for streams in shown.values()]))
        assert torch.equal(fed.to(batch[name].dtype), batch[name][:, 0]), name


def test_rounding_that_noise_would_decide_is_read_again(monkeypatch):
    """A number next to the middle between two decimals is told by the text alone; others are not
    read twice.
    """
    bounds = np.array([[1.2344, 1.2346], [1.2341, 1.2342], [-8e-7, 8e-7]])
    assert doubtful(Reading(bounds.mean(-1), {}, bounds)).tolist() == [True, False, True]
    made, tokenizer, options = setting("xval fone bits", "scalar")
    again = []
    read = Writing._read_alone

    def noted(self, owner, ids):
        again.append(owner)
        return read(self, owner, ids)

    monkeypatch.setattr(Writing, "_read_alone", noted)
    found = generate(made, tokenizer, PROMPTS, details=True, **options)
    count = sum(map(len, found.values))
    assert len(again) < count / 2
    always = "numtok.tokenizer.written.doubtful"
    monkeypatch.setattr(always, lambda prediction: np.ones(len(prediction.values), bool))
    again.clear()
    assert generate(made, tokenizer, PROMPTS, details=True, **options) == found
    assert len(again) == count


def test_noise_is_what_it_is_said_to_be():
    """The head's output with and without padding, measured: far below what counts as noise."""
    made, tokenizer, _ = setting("xval", "scalar")
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


def test_a_decimal_that_all_representations_hold():
    several = [XVal(), FloatBits(), ExponentBins(50, 1e-4, 1e6), FoNE(4, 2)]
    numbers = Numbers.parse(["3.14159", "123456789", "0.00001", "12.5", "1e300", "0"])
    found = held(several, numbers)
    assert all(one.fits(found).all() for one in several)
    assert found.format().to_pylist()[3:4] == ["12.5"] and found.format().to_pylist()[0] == "3.14"


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize(
    "value", [0.30000000000000004, -5e-324, 1.7976931348623157e308, 9007199254740994.0, -0.0]
)
def test_a_float64_is_written_and_shown_to_the_last_bit(value, compact, writings):
    """A head that chose these 64 bits: they are the text, with 17 digits where it takes them, the
    value, and what the model reads from then on.
    """
    numbers = FloatBits(width=64, reciprocal=True, compact=compact)
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), [numbers])
    word, schema = struct.pack(">d", value), tokenizer.batch_schema()
    bits = torch.from_numpy(np.unpackbits(np.frombuffer(word, np.uint8)))
    head = head_from_schema(schema, tiny.D)
    with torch.no_grad():
        head.network.weight.zero_()
        head.network.bias.copy_(6.0 * bits - 3)
    layer = embedding_from_schema(schema, tiny.D, projection="linear")
    whole = tiny.backbone("gpt2", vocab_size=tokenizer.vocab_size)
    made = NumberModel(whole, layer, head).eval()
    options = {"max_new_tokens": 4, "sequence_bias": biased(tokenizer)}
    found = generate(made, tokenizer, PROMPTS, details=True, **options)
    told = np.concatenate(found.values)
    assert len(told) >= 3 and told.tobytes() == np.full(len(told), value).tobytes()
    writing = writings[0]
    (text,) = set(writing._texts.values())
    assert struct.pack(">d", float(text)) == word and text in found.texts[0]
    (shown, *_) = writing._shown.values()
    assert shown["number_value"].item() == value
    fed = shown["number_bits"]
    assert struct.pack(">q", int(fed)) == word if compact else fed[:64].tolist() == bits.tolist()
    assert generate(made, tokenizer, PROMPTS, details=True, use_cache=False, **options) == found
