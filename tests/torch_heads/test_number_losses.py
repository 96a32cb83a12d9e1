"""Losses on the tokens of numbers: single ones, whole numbers of several tokens, and labels that are
left out.
"""

import math

import ntloss
import numpy as np
import pytest
import torch
import torch_models as tiny
import trained

from numtok import Tokenizer
from numtok.representations import B1999, FP15, P10, P1000, Digits, PlaceValue, Subword
from numtok_torch import CrossEntropyWith, DigitEntropyLoss, NumberTokenLoss, NumberValueLoss
from numtok_torch.heads.digit_tokens import DigitTokens

WEIGHT = 0.01  # of the digit entropy loss in its authors' code
DIGITS = {11 + k: str(k) for k in range(10)}
POINT, COMMA, POWER, MINUS, WORD = 21, 22, 23, 24, 25
PLAIN = DigitTokens(DIGITS, (POINT, COMMA), (MINUS,), (POWER,), points=(POINT,))
SPELLED = {
    "place": PlaceValue(),
    "place lsd": PlaceValue(order="lsd"),
    "digits:1": Digits(1),
    "digits:3": Digits(3),
    "p10": P10(),
}


def labels_of(text):
    return [
        11 + int(one)
        if one.isdigit()
        else {".": POINT, ",": COMMA, "e": POWER, "-": MINUS}.get(one, WORD)
        for one in text
    ]


def some_logits(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 3


def by_hand(logits, spans, labels, digits, kind, order="msd"):
    """The mean over numbers, each given by the places of its digits, in float64."""
    found = []
    for span in spans:
        written = expected = 0.0
        past = sum(len(digits[labels[at]]) for at in span)
        unit = 10.0**-past
        for at in span if order == "msd" else span[::-1]:
            symbol = digits[labels[at]]
            group = sorted(one for one in digits if len(digits[one]) == len(symbol))
            values = np.array([float(digits[one]) for one in group])
            mean = float(logits[at, group].double().softmax(-1).numpy() @ values)
            past -= len(symbol)
            expected += mean * 10.0**past * unit
            written += float(symbol) * 10.0**past * unit
        size = expected + written if kind == "symmetric" else max(written, unit)
        found.append(abs(expected - written) / size)
    return float(np.mean(found))


@pytest.mark.parametrize("kind", ["symmetric", "relative"])
@pytest.mark.parametrize("name", SPELLED)
def test_the_value_is_that_of_the_expected_digits_at_their_places(name, kind):
    """Of every number that was encoded, with its grouping, sign, fraction and exponent; digits of
    the text are no numbers.
    """
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), [SPELLED[name]])
    ids = tokenizer.encode(
        "B2B has -60.25 of 1,234,567 and 0.05, 7e-3 or 12e5; 1.2.3 is none, 007"
    ).input_ids
    loss = NumberValueLoss.from_tokenizer(tokenizer, kind=kind)
    digits, powers = dict(loss.tokens.digits), set(loss.tokens.powers)
    spans = []
    for start, stop, _ in tokenizer.numbers_in(ids):
        mantissa = next((at for at in range(start, stop) if int(ids[at]) in powers), stop)
        spans.append([at for at in range(start, mantissa) if int(ids[at]) in digits])
    assert len(spans) == 6
    logits = some_logits(len(ids), tokenizer.vocab_size)
    found = loss(logits[None], torch.tensor(ids.tolist())[None])
    assert found.item() == pytest.approx(
        by_hand(logits, spans, ids.tolist(), digits, kind, loss.tokens.order), rel=1e-4
    )


@pytest.mark.parametrize("floats", [False, True])
def test_whole_numbers_are_those_of_the_authors(floats):
    """Of random labels, of which every other one is a digit, with weights and without."""
    theirs = ntloss.NumberLevelLoss(Vocabulary(), float_level=floats, reweigh=False)
    ours = NumberValueLoss(DigitTokens(DIGITS, (POINT,) if floats else ()))
    close = {"rtol": 1e-4, "atol": 1e-6}
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        labels = torch.randint(9, 27, (3, 12), generator=generator)
        labels = torch.where(torch.rand(labels.shape, generator=generator) < 0.2, POINT, labels)
        labels[0, :2] = -100
        weights, logits = torch.rand(3, 12, generator=generator), some_logits(3, 12, 30, seed=seed)
        torch.testing.assert_close(ours(logits, labels), theirs(logits, labels), **close)
        weighted = ours(logits, labels, weights=weights)
        torch.testing.assert_close(weighted, theirs(logits, labels, weights), **close)


@pytest.mark.parametrize("reweigh", [False, True])
@pytest.mark.parametrize("kind", ["was", "mse"])
def test_token_losses_are_those_of_the_authors(kind, reweigh):
    """With weights and without."""
    made = ntloss.NTLoss if kind == "was" else ntloss.NTLossDotProduct
    theirs = made(Vocabulary(), reweigh=reweigh)
    ours = NumberTokenLoss.from_digits(list(DIGITS), kind=kind, reweigh=reweigh)
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        labels = torch.randint(8, 27, (3, 9), generator=generator)
        logits, weights = some_logits(3, 9, 30, seed=seed), some_logits(3, 9, seed=seed).abs()
        torch.testing.assert_close(ours(logits, labels), theirs(logits, labels))
        if not reweigh:
            found = ours(logits, labels, weights=weights)
            torch.testing.assert_close(found, theirs(logits, labels, weights))


class Vocabulary:
    """What the authors' package asks of a tokenizer."""

    def __len__(self):
        return 30

    def add_tokens(self, tokens):
        return 0

    def get_vocab(self):
        return {DIGITS.get(one, f"w{one}"): one for one in range(30)}

    def convert_tokens_to_ids(self, token):
        return {".": POINT}[token]


@pytest.mark.parametrize(
    "representation", [P10(), P1000(), B1999(), FP15(2, (-1, 1)), P10(form="decimal")]
)
def test_groups_follow_from_the_file(representation):
    """Mantissas are compared with mantissas, exponents with exponents, and share the mean."""
    tokenizer = Tokenizer.from_pretrained(numbers=[representation])
    batch = tokenizer.encode_batch(["-6.02 7 and 0.35 6.02"])
    loss = NumberTokenLoss.from_schema(batch.schema)
    ids = torch.tensor(batch.column("input_ids")[0].as_py())
    values = [group[int(one)] for one in ids for group in loss.groups() if int(one) in group]
    expected = {
        "p10": [6, 0, 2, -2, 7, 0, 0, -2, 3, 5, 0, -3, 6, 0, 2, -2],
        "p1000": [602, -2, 700, -2, 350, -3, 602, -2],
        "b1999": [-602, -2, 700, -2, 350, -3, 602, -2],
        "fp15": [-6.0, 7.0, 0.35, 6.0],
    }[representation.name]
    if representation.form == "decimal":
        expected = [6, 0, 2, 0, 7, 0, 0, 0, 3, 5, 0, -1, 6, 0, 2, 0]
    assert values == pytest.approx(expected)
    logits = torch.randn(1, len(ids), tokenizer.vocab_size)
    counts = [sum(int(one) in group for one in ids) for group in loss.groups()]
    alone = [NumberTokenLoss([group])(logits, ids[None]).item() for group in loss.groups()]
    assert loss(logits, ids[None]).item() == pytest.approx(
        np.average(alone, weights=counts), rel=1e-5
    )


@pytest.mark.parametrize(
    "make", [lambda: NumberTokenLoss.from_digits(list(DIGITS)), lambda: NumberValueLoss(PLAIN)]
)
def test_names_are_left_out(make):
    """A phone number without weight costs as if its labels were none, also of a causal model, whose
    states stand one before.
    """
    loss, labels = make(), torch.tensor([labels_of("call 5551234 it costs 17.50 or 8")])
    counted = torch.ones_like(labels, dtype=torch.bool)
    counted[0, 5:12] = False
    logits = some_logits(1, labels.shape[1], 30)
    found = loss(logits, labels, weights=counted)
    torch.testing.assert_close(found, loss(logits, torch.where(counted, labels, -100)))
    assert abs(found.item() - loss(logits, labels).item()) > 1e-3
    assert loss(logits, labels, weights=torch.zeros_like(labels)).item() == 0
    before = torch.nn.functional.pad(labels, (1, 0), value=-100)
    behind = torch.cat([logits, logits[:, :1]], 1)
    weights = torch.nn.functional.pad(counted, (1, 0))
    torch.testing.assert_close(loss(behind, before, True, weights), found)


@pytest.mark.parametrize("kind", ["symmetric", "relative"])
@pytest.mark.parametrize(
    "text", ["0", "0.00", "", "e", "-", ".", "1e5", "9" * 60, "0" * 60, "1.2.3,4", "5e-07e7"]
)
def test_every_label_has_a_finite_loss_and_gradient(text, kind):
    """Those without a number one of 0."""
    logits = some_logits(2, len(text) + 1, 30).requires_grad_()
    labels = torch.tensor([labels_of(text + "w"), [-100] * (len(text) + 1)])
    loss = NumberValueLoss(PLAIN, kind)(logits, labels)
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(logits.grad).all()
    assert (loss.item() > 0) == any(one.isdigit() for one in text.split("e")[0])


def test_a_file_says_which_tokens_are_digits():
    groups = {}
    for name, representation in (SPELLED | {"bare": Digits(1, brackets=False)}).items():
        tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), [representation])
        schema = tokenizer.batch_schema()
        values = [NumberValueLoss.from_schema(schema), NumberValueLoss.from_tokenizer(tokenizer)]
        assert values[0].tokens == values[1].tokens
        groups[name] = NumberTokenLoss.from_tokenizer(tokenizer).groups()
        assert NumberTokenLoss.from_schema(schema).groups() == groups[name]
        if name == "place":
            assert groups[name] == [{tokenizer.tokens[str(k)]: float(k) for k in range(10)}]
    assert [len(group) for group in groups["digits:3"]] == [10, 100, 1000]
    assert values[0].tokens.joints == values[0].tokens.points and not values[0].tokens.opens


def test_digits_of_a_plain_vocabulary():
    """Of a model that knows nothing of numtok, and of numtok's Subword: tokens of one digit, and
    the point.
    """
    plain = trained.stock("gpt2")
    for tokenizer in (plain, Tokenizer.from_pretrained(trained.source("gpt2"), [Subword()])):
        loss = NumberValueLoss.from_tokenizer(tokenizer)
        assert loss.tokens.digits == {
            plain.convert_tokens_to_ids(str(k)): str(k) for k in range(10)
        }
        assert loss.tokens.joints == (plain.convert_tokens_to_ids("."),) and not loss.tokens.opens
        assert NumberTokenLoss.from_tokenizer(tokenizer).groups() == loss.tokens.groups()
    labels = torch.tensor([[plain.convert_tokens_to_ids(one) for one in "a12.5b"]])
    assert loss(some_logits(1, 6, len(plain)), labels) > 0


def test_digit_entropy_is_that_of_the_authors():
    """The value that ``DEL`` of their train-qwen-deepseek.py gave of these logits."""
    text = "w 305.62w7w1234567.w0.001w.5"
    logits, labels = some_logits(1, len(text), 30), torch.tensor([labels_of(text)])
    found = DigitEntropyLoss(PLAIN)(logits, labels).item()
    assert WEIGHT * found == pytest.approx(0.01932017132639885, rel=1e-5)


@pytest.mark.parametrize(
    ("literal", "weights"),
    [
        ("12.5", [4, 2, 1.02**-2]),
        (".25", [1.02**-2, 1.02**-3]),
        ("-.5e3", [1.02**-2, 2]),  # of the exponent as of any other integer
        ("6 and .5", [2, 1.02**-2]),
    ],
)
def test_digit_entropy_weighs_numbers_that_begin_with_a_point(literal, weights):
    tokenizer = Tokenizer.from_pretrained(numbers=[Digits(1)])
    labels = torch.tensor([tokenizer.encode(f"It is {literal} kg").input_ids.tolist()])
    logits = torch.zeros(*labels.shape, tokenizer.vocab_size)  # each digit costs as much
    found = DigitEntropyLoss.from_tokenizer(tokenizer)(logits, labels).item()
    assert found == pytest.approx(np.mean(weights) * 0.1 * math.log(2), rel=1e-5)


@pytest.mark.parametrize("count", [1, 3])
def test_losses_beside_the_cross_entropy_over_batches_of_a_step(count):
    """Of a model that scores more tokens than there are; the cross-entropy is that of all rows at
    once, and each batch's other loss counts by its tokens.
    """
    losses = [NumberTokenLoss.from_digits(list(DIGITS)), NumberValueLoss(PLAIN)]
    together = CrossEntropyWith(losses, [0.5, 2.0])
    rows = ["a 12.5 b 7", "12345 is 6", "none at all"]
    labels = torch.tensor([labels_of(row.ljust(11)) for row in rows])
    labels[0, :4] = -100
    logits = some_logits(3, 11, 64)
    tokens = int((labels[:, 1:] != -100).sum())
    shown, wanted = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    expected = torch.nn.functional.cross_entropy(shown, wanted)
    found = 0
    for some in torch.arange(3).chunk(count):
        found += together({"logits": logits[some]}, labels[some], tokens)
        share = (labels[some, 1:] != -100).sum() / tokens
        for weight, loss in zip((0.5, 2.0), losses, strict=True):
            expected = expected + weight * share * loss(logits[some], labels[some], causal=True)
    torch.testing.assert_close(found, expected)
    if count == 1:
        torch.testing.assert_close(together({"logits": logits}, labels), expected)
        assert together({"logits": logits}, torch.full_like(labels, -100)) == 0


@pytest.mark.slow
def test_every_loss_compiles_to_one_graph_for_any_number_of_tokens():
    brackets = DigitTokens(DIGITS, joints=(POINT,), opens=(COMMA,), closes=(POWER,))
    again = NumberTokenLoss(PLAIN.groups(), "mse", reweigh=True)
    every = [NumberTokenLoss(PLAIN.groups()), again, NumberValueLoss(brackets)]
    every.append(DigitEntropyLoss(PLAIN))

    def inputs(rows):
        labels = torch.randint(8, 25, (rows, 8), generator=torch.Generator().manual_seed(rows))
        return some_logits(rows, 8, 30, seed=rows), labels

    tiny.check_one_graph(
        lambda logits, labels: [loss(logits, labels, causal=True) for loss in every],
        [inputs(rows) for rows in (7, 11)],
    )
