"""A vocabulary that grows: tokens added by the user, tokenizers trained anew."""

import copy

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
from hf_cases import build_ours, build_source, ours, source
from hf_compare import FLAGS, compare, same
from hf_oracle import Oracle
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from numtok.errors import NumtokError
from numtok.representations import NUM, Subword


def stock_with_numbers(kind):
    """A new source with the number tokens added in the way that everybody adds tokens."""
    stock = build_source(kind)
    for token in ours(kind).numtok.tokens:
        stock.add_tokens([AddedToken(token, normalized=False, special=False)])
    return stock


def stock_without_numbers(tok, kind):
    """A source whose added tokens are those of ``tok``; the stand-ins of the oracle come after
    them.
    """
    stock = copy.deepcopy(source(kind))
    added = tok.added_tokens_decoder
    own = {
        token: AddedToken(f"\ue100{number}\ue100", normalized=False)
        for token, number in tok.numtok.tokens.items()
    }
    for number in sorted(set(added) - set(stock.added_tokens_decoder)):
        stock.add_tokens([own.get(added[number].content, added[number])])
    return stock


ADDITIONS = {
    "words": lambda one: one.add_tokens(["zyx", "new word", "the", "<9>", "zyx"]),
    "one": lambda one: one.add_tokens("q8q"),
    "nothing": lambda one: one.add_tokens([]),
    "flags": lambda one: one.add_tokens(
        [
            AddedToken("<left 3>", lstrip=True, normalized=False),
            AddedToken("single", single_word=True),
        ]
    ),
    "special": lambda one: one.add_tokens(["<special 4>"], special_tokens=True),
    "extra": lambda one: one.add_special_tokens(
        {"extra_special_tokens": ["<extra 6>", AddedToken("<extra>", rstrip=True)]}
    ),
    "more": lambda one: one.add_special_tokens(
        {"extra_special_tokens": ["<extra 6>"]}, replace_extra_special_tokens=False
    ),
    "pad": lambda one: one.add_special_tokens(
        {"pad_token": "[PAD]", "mask_token": AddedToken("<m 1>", lstrip=True)}
    ),
    "attribute": lambda one: setattr(one, "pad_token", one.convert_ids_to_tokens(7)),
    "bad": lambda one: one.add_tokens([5]),
    "bad key": lambda one: one.add_special_tokens({"nonsense_token": "a"}),
}

PIECES = [
    "zyx the new word zyxthe",
    "x <9>y <9> q8q",
    "a  <left 3> <left 3>b single singles",
    " <special 4> <extra 6> <extra>  c",
    "<m 1> [PAD]",
]


@pytest.mark.parametrize(
    ("kind", "addition"),
    [
        *(("roberta", name) for name in ADDITIONS),
        *(("bert", name) for name in ("words", "flags", "extra")),
        *(("t5", "flags"), ("llama", "extra"), ("llama", "words")),
    ],
)
def test_added_tokens(kind, addition):
    tok, stock = build_ours(kind), stock_with_numbers(kind)

    def texts_now():
        now = Oracle(stock_without_numbers(tok, kind), tok.numtok)
        return [now.strip_numbers(piece) for piece in PIECES]

    compare(tok, stock, ADDITIONS[addition], "add")
    assert len(tok) == len(stock) and tok.get_vocab() == stock.get_vocab()
    assert checks.added_tokens(tok) == checks.added_tokens(stock)
    for name in (*checks.NAMES[:4], "pad_token_id", "mask_token_id"):
        compare(tok, stock, lambda one: getattr(one, name), name)
    compare(tok, stock, ADDITIONS[addition], "add again")
    flags = {"return_offsets_mapping": True, "return_special_tokens_mask": True}
    for text in texts_now():
        checks.check_call(tok, stock, text, **flags)
        for options in FLAGS:
            compare(tok, stock, lambda one: one.decode(one(text)["input_ids"], **options), text)
        checks.check_same_ids_as_core(tok, [text])
    reference = Oracle(stock_without_numbers(tok, kind), tok.numtok)
    for text in ("<9> 5 zyx 7<9>8", "5 new word -3", "<left 3>  4 <special 4>5<extra 6>"):
        checks.check_numbers(tok, reference, text, return_offsets_mapping=True)
        checks.check_numbers(tok, reference, text, split_special_tokens=True)
    checks.check_call(tok, stock, ["a text", "a longer text"], padding=True)


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_the_number_token_added_again(kind):
    """Refused in words, or without effect; in either case all goes on as before."""
    tok = build_ours(kind)
    for token in (NUM, AddedToken(NUM, special=True)):
        try:
            tok.add_tokens([token])
        except NumtokError as error:
            assert NUM in str(error)
        for text in ("a 5 [NUM] b", "none"):
            same(tok(text, return_numbers=True), ours(kind)(text, return_numbers=True))


@pytest.mark.parametrize("kind", ["roberta", "bert", "t5", "llama"])
def test_train_new_from_iterator(kind):
    """Trained anew on text without numbers, it is the source trained anew, and knows numbers as
    before.
    """
    corpus = [
        ["the nation and the station", "naïve café texts"],
        ["a number of tokens in text"] * 3,
    ]
    options = {"vocab_size": 400, "show_progress": False, "new_special_tokens": ["<new>"]}
    old = ours(kind)
    stock, tok = (one.train_new_from_iterator(corpus, **options) for one in (source(kind), old))
    assert type(tok) is type(old)
    for name in ("representations", "grammar"):
        assert getattr(tok.numtok, name) == getattr(old.numtok, name)
    assert tok.numtok.tokens.keys() == old.numtok.tokens.keys()
    for name in (
        *("special_tokens_map", "all_special_ids", "extra_special_tokens", "model_max_length"),
    ):
        assert getattr(tok, name) == getattr(stock, name), name
    # tokenizers trains these another way each time: compare with what it trained this time
    if kind in ("bert", "t5"):
        settings = dict(stock.init_kwargs)
        stock = PreTrainedTokenizerFast(tokenizer_object=tok.backend_tokenizer, **settings)
    for text in ("the nations <new> and texts", "a </s> naïve", "tokens"):
        got, expected = (one(text, return_offsets_mapping=True) for one in (tok, stock))
        same(dict(got), dict(expected))
        assert tok.decode(got["input_ids"]) == stock.decode(got["input_ids"])
    assert tok("[NUM]", add_special_tokens=False)["input_ids"] != [tok.convert_tokens_to_ids(NUM)]
    got = tok("the number 5, -3", return_numbers=True)
    marked = zip(got["number_value"], got["number_mask"], strict=True)
    assert [value for value, is_number in marked if is_number] == [5.0, -3.0]
    checks.check_same_ids_as_core(tok, ["the nation 5", "7 a"])
    assert old("the nation")["input_ids"] == source(kind)("the nation")["input_ids"]


def test_numbers_take_no_part_in_a_vocabulary():
    """Numbers that are text do."""
    corpus = [["of 1234 and 1234 "] * 50, "1234"]
    tok = ours("roberta").train_new_from_iterator(corpus, vocab_size=300, show_progress=False)
    assert not any("12" in token for token in tok.get_vocab().keys() - ours("roberta").get_vocab())
    assert "Ġand" in tok.get_vocab()
    options = {"vocab_size": 300, "show_progress": False}
    subword = build_ours("bert", [Subword()]).train_new_from_iterator(corpus, **options)
    stock = source("bert").train_new_from_iterator(corpus, **options)
    assert subword.tokenize("of 1234") == stock.tokenize("of 1234") == ["of", "1234"]


def test_an_added_token_in_another_case():
    """Where the source lower-cases, it sees its added token in any case; the digits in it are no
    numbers in any case.
    """
    tok, stock = build_ours("bert"), copy.deepcopy(source("bert"))
    for one in (tok, stock):
        one.add_tokens(["<9A>"])
    for text in ("x <9A> y", "x <9a> y"):
        assert tok.tokenize(text) == stock.tokenize(text), text
