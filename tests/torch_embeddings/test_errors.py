"""Check what embedding layers refuse: options, other widths, streams that are missing or of another shape."""

from functools import partial

import errors
import pyarrow as pa
import torch
import torch_models as tiny
from torch_models import schema_of

import numtok_torch as layers
from numtok import Digits, Tokenizer
from numtok.errors import RepresentationError, SchemaError
from numtok.representations import P10, XVal

D, IDS = 24, list(range(40, 50))
BITS, FONE = partial(layers.FloatBitsEmbedding, D), partial(layers.FoNEEmbedding, D, 5, 4)
PLACES, OF_DIGITS = layers.PlaceValueEmbedding, layers.FoNEDigitEmbedding
ZERO_REPLACED = {"projection": "linear", "zero_init": True, "combine": "replace"}
FROM_CONFIG = layers.embedding_from_config
OPTIONS = [
    (partial(layers.FoNEEmbedding, 10, 5, 4), "18 features do not fit into d_model=10"),
    (partial(FONE, projection="pad", zero_init=True), "projection='linear'"),
    (partial(FONE, projection="mlp"), "'mlp' is unknown"),
    (partial(BITS, depth=0), "depth=0"),
    (partial(BITS, width=16), "width=16 must be 32 or 64"),
    (partial(BITS, reciprocal=True), "take width=64"),
    (partial(BITS, combine="sum"), "combine='sum' is unknown"),
    (partial(BITS, combine="zero_pad", projection="linear"), "leave projection and zero_init out"),
    (partial(BITS, combine="zero_pad", zero_init=True), "leave projection and zero_init out"),
    (partial(BITS, width=64, bias=True), "take combine='replace'"),
    (partial(BITS, width=64), "64 features do not fit into d_model=24"),
    (partial(PLACES, D, max_place=0), "max_place=0"),
    (partial(PLACES, D, written="up"), "'up' is unknown"),
    (partial(PLACES, D, read_as_written=True), "read_as_written needs an order of writing"),
    (partial(PLACES, D, max_offset=100), "max_offset=100 must be below max_place=64"),
    (partial(OF_DIGITS, D, [1, 2]), "ten ids"),
    (partial(OF_DIGITS, D, IDS, combine="mean"), "'mean' is unknown"),
    (partial(OF_DIGITS, D, IDS, **ZERO_REPLACED), "combine='add'"),
    (partial(layers.SumEmbedding, []), "at least one"),
    (lambda: layers.SumEmbedding([*map(layers.XValEmbedding, (2, 3))]), "same d_model"),
    (partial(layers.XValEmbedding, D, bias=True, zero_init=True), "leave one out"),
    (partial(FROM_CONFIG, {"name": "word2v"}, D), "unknown embedding 'word2v"),
    (partial(FROM_CONFIG, {"name": "xval", "colour": 1}, D), "colour"),
]


def embed(layer, width=D, seq=9, batch=None):
    """Call a layer on word vectors of a width and a length, and a batch of nine tokens a row."""
    return layer(torch.zeros(3, seq, width), tiny.batch() if batch is None else batch)


def rows_of(*size):
    return layers.start_as_fone(
        torch.nn.Embedding(*size), Tokenizer.from_pretrained(numbers="digits:3")
    )


SHAPES = [
    (partial(embed, layers.XValEmbedding(D), seq=3), "batch and sequence differ"),
    (partial(embed, layers.XValEmbedding(D), 5), "made for d_model=24"),
    (partial(embed, layers.FoNEEmbedding(32, 6, 6), 32), "made for 12 digits"),
    (partial(embed, layers.FoNEEmbedding(32, 4, 4), 32), "made for 8 digits"),
    (
        lambda: embed(  # 9 to 12 digits in chunks of 4
            layers.FoNEEmbedding(32, 3, 2, projection="linear"),
            32,
            batch=tiny.batch() | {"number_digits": torch.zeros(3, 9, 3, 4, dtype=torch.uint8)},
        ),
        "made for 5 digits",
    ),
    (partial(embed, layers.LogFourierEmbedding(D, 7)), "number_log_fourier"),
    (
        lambda: embed(BITS(), batch=tiny.batch() | {"number_bits": torch.full((3, 9), 2**40)}),
        "more than 32 bits…width=64",
    ),
    (
        lambda: embed(
            layers.FloatBitsEmbedding(64, width=64),
            64,
            batch=tiny.batch() | {"number_bits": torch.zeros(3, 9, 32, dtype=torch.uint8)},
        ),
        "of 64 bits",
    ),
]


def without_streams(layer):
    batch = {name: one for name, one in tiny.batch().items() if name not in layer.streams}
    return embed(layer, layer.d_model, batch=batch)


EACH = [*(layers.embedding_from_config(one, tiny.D) for one in tiny.EMBEDDINGS.values())]
EACH += [tiny.embedding("sum"), OF_DIGITS(D, IDS, projection="linear")]
EACH += [layers.QuantileBinsEmbedding(D, 9, soft=soft) for soft in (False, True)]
ERRORS = {
    RepresentationError: [
        *OPTIONS,
        (lambda: rows_of(20000, 17), "18 features do not fit into rows of 17"),
        (lambda: rows_of(5, 24), "is not among its 5"),
        (
            lambda: layers.embedding_from_schema(schema_of(XVal()), D, depth=3),
            "none of xval has the option depth",
        ),
    ],
    SchemaError: [
        *SHAPES,
        *(
            (partial(without_streams, one), "the batch has no … reads; encode the text")
            for one in EACH
        ),
        *(
            (lambda one=one: layers.embedding_from_schema(schema_of(one), D), "tokens alone")
            for one in (P10(), Digits())
        ),
        (lambda: layers.embedding_from_schema(pa.schema([]), D), "not written by numtok"),
    ],
}


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields):
    errors.check(call, kind, told, fields)
