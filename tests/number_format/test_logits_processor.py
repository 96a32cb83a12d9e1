"""A model writes one number of a format, with the tokens of any tokenizer, and ends."""

import functools

import numpy as np
import pytest
import trained
from made_tokenizers import SlowTokenizer, check_is_fast

from numtok import NumberFormat, Tokenizer
from numtok.errors import FormatError
from numtok.number_format.token_trie import token_contents_of

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from numtok_torch import GroundedLogitsProcessor

FORMATS = [
    NumberFormat(0, 999, decimals=2),
    NumberFormat(-50, 50, step="2.5"),
    NumberFormat(1000, 2_000_000, grouping=","),
    NumberFormat.of(["3.14", "1,789", "-12"]),
    NumberFormat("1e-9", "1e9", decimals=2, exponent=True),
]


@functools.cache
def stock(name):
    if name == "bytes":
        return transformers.ByT5Tokenizer()
    return trained.stock(name, eos_token="<|endoftext|>")


def write(processor, prompt, width, seed, most=40):
    """Return the ids that a model with random scores writes."""
    rng = np.random.default_rng(seed)
    ids = list(prompt)
    for _ in range(most):
        scores = torch.from_numpy(rng.normal(size=(1, width))).float()
        held = processor(torch.tensor([ids]), scores)
        token = int(held[0].softmax(-1).multinomial(1))
        if token in processor.ends:
            return ids[len(prompt) :]
        ids.append(token)
    raise AssertionError("the number does not end")


@pytest.mark.parametrize("name", ["neox", "gpt2", "bytes"])
@pytest.mark.parametrize("number_format", FORMATS, ids=str)
def test_random_scores_give_numbers_that_end(name, number_format):
    torch.manual_seed(0)
    tokenizer = stock(name)
    prompt = tokenizer("It is", add_special_tokens=False)["input_ids"]
    processor = number_format.logits_processor(tokenizer)
    for seed in range(20):
        ids = write(processor, prompt, len(tokenizer), seed)
        text = tokenizer.decode([*prompt, *ids]).removeprefix("It is").removeprefix(" ")
        assert number_format.matches(text), text


def test_every_way_to_cut_a_number_into_tokens_may_be_written():
    tokenizer = stock("gpt2")
    number_format = NumberFormat(0, 999)
    processor = number_format.logits_processor(tokenizer)
    held = processor(torch.tensor([[0, 1]]), torch.zeros(1, len(tokenizer)))[0]
    expected = {
        number
        for number, content in token_contents_of(tokenizer)
        if content == b" " or number_format.matches(content.decode("latin-1").removeprefix(" "))
    }
    assert set(torch.nonzero(held == 0).reshape(-1).tolist()) == expected


@pytest.mark.parametrize(
    "number_format",
    [
        NumberFormat(1000, 9999, grouping="\N{NARROW NO-BREAK SPACE}"),
        NumberFormat.of(["\N{ARABIC-INDIC DIGIT THREE}", "\N{MINUS SIGN}5"]),
    ],
)
def test_characters_that_are_no_single_token_are_written(number_format):
    tokenizer = stock("gpt2")
    processor = number_format.logits_processor(tokenizer)
    texts = {tokenizer.decode(write(processor, [0], len(tokenizer), seed)) for seed in range(40)}
    written = {text.removeprefix(" ") for text in texts}
    assert all(map(number_format.matches, written))
    assert number_format.texts is None or written == set(number_format.texts)


def test_rows_may_be_reordered_and_the_processor_used_again():
    tokenizer = stock("gpt2")
    processor = NumberFormat(0, 99).logits_processor(tokenizer)
    one, two = (tokenizer(text)["input_ids"][-1] for text in ("1", "2"))
    end = processor.ends[0]
    width = len(tokenizer)
    for _ in range(2):
        first = processor(torch.tensor([[5, 6], [7, 8]]), torch.zeros(2, width))
        assert (first[:, end] == -np.inf).all() and (first[:, one] == 0).all()
        second = processor(torch.tensor([[7, 8, one], [5, 6, two]]), torch.zeros(2, width))
        assert (second[:, end] == 0).all() and (second[:, one] == 0).all()
        third = processor(torch.tensor([[5, 6, two, one], [7, 8, one, end]]), torch.zeros(2, width))
        assert torch.nonzero(third > -np.inf)[:, 1].tolist() == [end, end]


PROMPT = "It has 17 rooms.\n"
BOTH = [NumberFormat(10, 17).logits_processor, GroundedLogitsProcessor]


@pytest.mark.parametrize("make", BOTH)
def test_other_constraints_alone_hold_where_nothing_may_follow(make):
    tokenizer = stock("gpt2")
    scores = torch.full((1, len(tokenizer)), -np.inf)
    scores[0, tokenizer("9")["input_ids"]] = 1.0
    assert (make(tokenizer)(torch.tensor([tokenizer(PROMPT)["input_ids"]]), scores) == scores).all()


@pytest.mark.parametrize("make", BOTH)
def test_there_may_be_no_end_tokens(make):
    """Then other constraints alone hold where no digit may follow."""
    tokenizer = stock("gpt2")
    hold = make(tokenizer, eos_token_id=[])
    scores, ids = torch.zeros(1, len(tokenizer)), tokenizer(PROMPT)["input_ids"]
    one, seven, nine = (tokenizer(text)["input_ids"][0] for text in "179")
    held = hold(torch.tensor([ids]), scores)[0]
    assert (held[one], held[nine]) == (0, -np.inf)
    if make is not GroundedLogitsProcessor:
        hold(torch.tensor([[*ids, one]]), scores)
        assert torch.equal(hold(torch.tensor([[*ids, one, seven]]), scores), scores)


def test_tokens_that_lead_nowhere_are_not_taken():
    """No token is a lone 5, so 5 and 50 cannot be written, and no 1 may follow where it would."""
    tokenizer = SlowTokenizer("</s>", "1", "25", "2")
    processor = NumberFormat.of([125, 15, 2]).logits_processor(tokenizer)
    held = processor(torch.tensor([[3]]), torch.zeros(1, 4))
    assert (held[0] == 0).tolist() == [False, True, False, True]
    held = processor(torch.tensor([[3, 1]]), torch.zeros(1, 4))
    assert (held[0] == 0).tolist() == [False, False, True, False]
    with pytest.raises(FormatError, match="cannot write"):
        NumberFormat.of([5]).logits_processor(tokenizer)


def test_a_tokenizer_of_numtok_has_the_texts_of_its_source():
    ours = Tokenizer.from_pretrained(trained.source("gpt2"), numbers="subword")
    theirs = dict(token_contents_of(stock("gpt2")))
    texts = {n: text for n, text in token_contents_of(ours) if n in theirs and text}
    assert texts == {n: text for n, text in theirs.items() if text}


@pytest.mark.parametrize(
    ("make", "tokens"),
    [
        (NumberFormat(-(10**9), 10**9, decimals=3).logits_processor, (124, 1002, 57, 0)),
        (
            functools.partial(GroundedLogitsProcessor, sources="17 of 1,234,567 are 2.5 in 2023"),
            (2000, 1003, 2, 235, 568, 3000),
        ),
    ],
)
def test_a_large_vocabulary_is_fast(make, tokens):
    check_is_fast(make, tokens)
