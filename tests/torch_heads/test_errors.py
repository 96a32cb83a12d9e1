"""Check what heads and losses on the tokens of numbers refuse: options, other widths, other targets."""

import math
from functools import partial

import errors
import torch

import numtok_torch as heads
from numtok import Tokenizer
from numtok.errors import RepresentationError, SchemaError
from numtok.representations import B1999, Digits, LogFourier, PlaceValue, XVal
from numtok_torch import CrossEntropyWith, DigitEntropyLoss, NumberTokenLoss, NumberValueLoss
from numtok_torch.heads.digit_tokens import DigitTokens

D = 24
BITS, QUANTILES = partial(heads.BitsHead, D), partial(heads.QuantileHead, D)
FOURIER = partial(heads.FourierHead, D)
OPTIONS = [
    (partial(heads.FoNEHead, 10, 5, 4, linear=False), "18 places for digits do not fit"),
    (partial(heads.MixtureHead, D, 0), "must be positive"),
    (partial(heads.MixtureHead, D, space="log"), "space='log'"),
    (partial(heads.ScalarHead, D, scale=0), "scale=0"),
    (partial(heads.ScalarHead, D, scale=math.inf), "scale=inf"),
    (partial(heads.MixtureHead, D, scale=math.nan), "scale=nan"),
    (partial(heads.MixtureHead, D, spread=math.nan, min_std=math.inf), "spread=nan, min_std=inf"),
    (partial(heads.QuantileHead, D, scale=math.inf), "scale=inf"),
    (partial(FOURIER, within=math.nan), "within=nan"),
    (partial(FOURIER, gamma=math.inf), "gamma=inf"),
    (partial(heads.ScalarHead, 0), "d_model=0"),
    (partial(BITS, width=16), "width=16"),
    (partial(BITS, reciprocal=True), "width=64"),
    (partial(BITS, slope=math.nan), "slope"),
    (partial(QUANTILES, (0.5, 0.5)), "each larger than the one before"),
    (partial(QUANTILES, ()), "each larger"),
    (partial(QUANTILES, (0.0, 0.5)), "between 0 and 1"),
    (partial(QUANTILES, space="cubic"), "space='cubic' must be one of"),
    (partial(FOURIER, 0), "frequencies=0 must be positive"),
    (partial(FOURIER, point="best"), "point='best' must be one of"),
    (partial(FOURIER, coverage=1.0), "coverage=1.0 below 1"),
]


def tokenizer(one):
    return Tokenizer.from_pretrained(numbers=[one])


def head_of(one, *names, **options):
    return heads.head_from_schema(tokenizer(one).batch_schema(), 32, *names, **options)


IDS = {11 + k: str(k) for k in range(10)}
PLAIN = DigitTokens(IDS, (21, 22), (24,), (23,), points=(21,))
LOSSES = [NumberValueLoss(PLAIN), NumberTokenLoss.from_digits(list(IDS)), DigitEntropyLoss(PLAIN)]
IDS_3 = torch.zeros(1, 3, dtype=torch.int64)
LOSS_INPUTS = [
    ((torch.zeros(1, 3, 15), IDS_3), "scores 15 tokens, and those of numbers go up to 20"),
    (
        (torch.zeros(1, 3, 30), torch.zeros(1, 4, dtype=torch.int64)),
        "differ in batch or sequence",
    ),
    ((torch.zeros(1, 3, 30), IDS_3, torch.ones(3)), "give each label one weight"),
]
WIDE_HEAD = BITS(width=64, reciprocal=True)
ERRORS = {
    RepresentationError: [
        *OPTIONS,
        (lambda: head_of(LogFourier(), "scalar", target="bits"), "target='bits' must be"),
        (lambda: head_of(XVal(), "oracle"), "unknown head 'oracle'"),
        (lambda: head_of(XVal(), colour=1), "no option colour"),
        *((partial(one, "mape"), "'mape' is unknown") for one in (
            partial(NumberValueLoss, PLAIN), partial(NumberTokenLoss, PLAIN.groups())
        )),
        (lambda: CrossEntropyWith([], 1.0), "a weight for each"),
        (lambda: CrossEntropyWith([NumberValueLoss(PLAIN)], [1.0, 2.0]), "a weight for each"),
        (lambda: NumberValueLoss(DigitTokens({})), "needs tokens that are digits"),
        *(
            (lambda one=one: DigitEntropyLoss.from_tokenizer(tokenizer(one)), "the most significant first")
            for one in (PlaceValue(order="lsd"), Digits(3))
        ),
    ],
    SchemaError: [
        (lambda: head_of(XVal(), "bits"), "BitsHead needs the stream of bits"),
        (lambda: head_of(PlaceValue()), "spelled out"),
        *(
            (lambda head=head: head.predict(torch.zeros(2, 5)), "d_model=24")
            for head in (heads.ScalarHead(D), heads.MixtureHead(D), heads.FoNEHead(D, 5, 4), BITS(), QUANTILES(), FOURIER())
        ),
        (lambda: heads.ScalarHead(D).loss(torch.zeros(3, D), torch.zeros(4)), "one row for each number"),
        (
            lambda: heads.FoNEHead(D, 5, 4).loss(torch.zeros(3, D), torch.zeros(3, 10, dtype=torch.uint8)),
            "made for 9 digits",
        ),
        (lambda: BITS().loss(torch.zeros(1, D), torch.tensor([2**40])), "more than 32 bits…width=64"),
        (
            lambda: WIDE_HEAD.loss(torch.zeros(3, D), torch.zeros(3, 64, dtype=torch.uint8)),
            "of 128 bits",
        ),
        *(
            (lambda one=one: NumberValueLoss.from_schema(tokenizer(one).batch_schema()), f"{one.name}, without a token for each digit")
            for one in (XVal(), B1999())
        ),
        (lambda: NumberTokenLoss.from_schema(tokenizer(XVal()).batch_schema()), "xval, without"),
        *(
            (lambda loss=loss, given=given: loss(*given[:2], weights=given[2] if given[2:] else None), told)
            for loss in LOSSES for given, told in LOSS_INPUTS
        ),
    ],
}  # fmt: skip


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields):
    errors.check(call, kind, told, fields)
