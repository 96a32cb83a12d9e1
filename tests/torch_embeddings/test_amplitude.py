"""Check what a number's vector is as long as when training starts: the word vectors of the model that the
layer is put in front of.
"""

import copy
from functools import partial

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import numtok_torch as layers
from numtok_torch import NumberModel

D, ROWS = 64, 120
BITS, DIGITS = "number_bits", "number_digits"
MAKERS = {
    "bits": (partial(layers.FloatBitsEmbedding, D), BITS),
    "bits, bias": (partial(layers.FloatBitsEmbedding, D, bias=True), BITS),
    "bits:64": (partial(layers.FloatBitsEmbedding, D, width=64), BITS),
    "bits, zero_pad": (partial(layers.FloatBitsEmbedding, D, combine="zero_pad"), BITS),
    "bits, linear": (
        partial(layers.FloatBitsEmbedding, D, combine="add", projection="linear"),
        BITS,
    ),
    "fone": (partial(layers.FoNEEmbedding, D, 5, 4), DIGITS),
    "fone, linear": (partial(layers.FoNEEmbedding, D, 5, 4, projection="linear"), DIGITS),
    "bins": (partial(layers.ExponentBinsEmbedding, D), "number_bin"),
    "quantile bins": (partial(layers.QuantileBinsEmbedding, D), "number_quantile_bin"),
    "logfourier": (partial(layers.LogFourierEmbedding, D, 8), "number_log_fourier"),
    "place": (partial(layers.PlaceValueEmbedding, D, zero_init=False), "place_value"),
    "fone_digits": (
        partial(layers.FoNEDigitEmbedding, D, range(40, 50), combine="replace"),
        "input_ids",
    ),
}
# norms as published of features that do not learn: they are never made shorter
LEAST = {"bits:64": 8.0, "bits, zero_pad": D**0.5, "fone": 3.0}
EVERY = pytest.mark.parametrize("name", MAKERS)
STDS = pytest.mark.parametrize("std", [0.02, 0.125, 1.0])


def made(name, **options):
    torch.manual_seed(0)
    return MAKERS[name][0](**options)


def in_front_of(layer, std=0.02):
    """A model whose word vectors have this standard deviation."""
    torch.manual_seed(1)
    sizes = {"vocab_size": 60, "n_embd": D, "n_layer": 1, "n_head": 2, "n_positions": ROWS}
    config = GPT2Config(**sizes, initializer_range=std)
    return NumberModel(GPT2LMHeadModel(config), layer).eval()


def streams(name):
    """A row of numbers of many magnitudes, as each layer reads them."""
    torch.manual_seed(2)
    values = 10 ** (8 * torch.rand(1, ROWS) - 3)
    angles = 6.28 * torch.rand(1, ROWS, 8)
    signs = torch.tensor([1.0, 0.0]).expand(1, ROWS, 1, 2)
    stream = {
        "number_bits": values.view(torch.int32).to(torch.int64),
        "number_digits": torch.randint(10, (1, ROWS, 9)),
        "number_bin": torch.randint(200, (1, ROWS)),
        "number_quantile_bin": torch.randint(64, (1, ROWS)),
        "number_log_fourier": torch.cat([signs, torch.stack([angles.cos(), angles.sin()], -1)], 2),
        "place_value": torch.randint(1, 60, (1, ROWS)),
        "input_ids": torch.randint(40, 50, (1, ROWS)),
    }[MAKERS[name][1]]
    if name == "bits:64":
        stream = values.double().view(torch.int64)
    return {MAKERS[name][1]: stream, "number_mask": torch.ones(1, ROWS, dtype=torch.bool)}


def length(layer, name):
    """Root mean square of the norms of what the layer adds, or puts in the words' place."""
    with torch.no_grad():
        vectors = layer(torch.zeros(1, ROWS, D), streams(name))
    return float(vectors.square().sum(-1).mean().sqrt())


def of_words(model):
    return float(model.get_input_embeddings().weight.detach().square().sum(-1).mean().sqrt())


@EVERY
@STDS
def test_a_number_starts_as_long_as_a_word_once(name, std):
    """A second model does not change what was trained."""
    model = in_front_of(made(name), std)
    before = length(model.embedding, name)
    assert before == pytest.approx(max(of_words(model), LEAST.get(name, 0.0)), rel=0.15)
    assert length(in_front_of(model.embedding, std=1.5).embedding, name) == before


@EVERY
def test_an_amplitude_that_is_given_is_kept(name):
    """1.0 is the published start, whatever the word vectors."""
    published = length(in_front_of(made(name, amplitude=1.0), std=1.0).embedding, name)
    assert published == pytest.approx(length(made(name), name))
    double = in_front_of(made(name, amplitude=2.0)).embedding
    assert length(double, name) == pytest.approx(2 * published, rel=1e-4)


@EVERY
def test_what_is_saved_is_as_long_when_it_is_loaded(name, tmp_path):
    model = in_front_of(made(name), std=0.3)
    before = length(model.embedding, name)
    model.save_pretrained(tmp_path)
    assert length(NumberModel.from_pretrained(tmp_path).embedding, name) == before
    resumed = in_front_of(made(name), std=0.02)  # as a Trainer that resumes loads it
    resumed.load_state_dict(copy.deepcopy(model.state_dict()))
    assert length(resumed.embedding, name) == before


def test_each_part_of_a_sum_is_as_long_as_a_word():
    names = ("bins", "fone")
    model = in_front_of(layers.SumEmbedding([made(name) for name in names]), std=0.3)
    resumed = in_front_of(layers.SumEmbedding([made(name) for name in names]))
    resumed.load_state_dict(model.state_dict())
    for one in (model, resumed):
        for part, name in zip(one.embedding.embeddings, names, strict=True):
            wanted = max(of_words(model), LEAST.get(name, 0.0))
            assert length(part, name) == pytest.approx(wanted, rel=0.15)
