"""Check what the rules let a model write reads as it was written: walks over their tables."""

import itertools

import pytest
import trained
from walks import misread, walk

from numtok import Grammar, Tokenizer, extract
from numtok.representations import (
    B1999,
    FP15,
    P10,
    P1000,
    Digits,
    FloatDigits,
    FoNE,
    NumeroLogic,
    PlaceValue,
    XVal,
)

GRAMMARS = {
    "prose": Grammar(),
    "data": Grammar.data(),
    "european": Grammar.european(),
    "indian": Grammar.indian(),
    "swiss": Grammar.swiss(),
    "finance": Grammar.finance(),
    "eEdD": Grammar(exponents="eEdD"),
    "plain": Grammar(exponent=False, signs=False, leading_dot=False, unicode_digits=False),
}
REPRESENTATIONS = {
    "xval": XVal(),
    "fone": FoNE(5, 2),
    "p10": P10(2, (-3, 3)),
    "p1000": P1000(1, (-3, 3)),
    "b1999": B1999(1, (-3, 3), "decimal"),
    "fp15": FP15(1, (-1, 1)),
    "float digits": FloatDigits(),
    "place": PlaceValue(),
    "place lsd": PlaceValue(order="lsd"),
    "digits": Digits(2),
    "digits of 3": Digits(3),
    "bare digits": Digits(1, brackets=False),
    "numerologic": NumeroLogic(),
}
COSTLY = ["fp15", "numerologic"]
QUICK = [one for one in REPRESENTATIONS if one not in COSTLY]


@pytest.mark.parametrize(
    ("kind", "grammar", "name"),
    [
        *itertools.product(["gpt2"], GRAMMARS, QUICK),
        *itertools.product(["gpt2"], ["prose", "swiss", "plain"], COSTLY),
        *itertools.product(["bert", "t5"], ["prose"], ["xval", "p10", "place"]),
    ],
)
def test_numbers_read_as_they_were_written(kind, grammar, name):
    options = [REPRESENTATIONS[name]], GRAMMARS[grammar]
    tokenizer = Tokenizer.from_pretrained(trained.source(kind), *options)
    texts, numbers = misread(tokenizer, walk(tokenizer, 40, 20, seed=len(name + grammar)))
    assert texts == []
    assert numbers > 2


def test_what_is_no_number_is_decoded_as_it_was_written():
    """By a model that nothing holds to numbers, for a grammar that reads no exponents."""
    tokenizer = Tokenizer.from_pretrained(None, [PlaceValue()], Grammar(exponent=False))
    begin, end = (tokenizer.tokens[name] for name in ("[NUM]", "[/NUM]"))
    for text, decoded in [("1e--", "1e--"), ("1,234e2", "123400"), ("e5", "e5"), ("2E-3", "0.002")]:
        ids = [begin, *(tokenizer.tokens[one] for one in text), end]
        assert tokenizer.decode(ids) == decoded


@pytest.mark.parametrize("name", ["xval", "fp15:1", "float_digits", "bins", "bits"])
def test_small_and_large_numbers_are_written_as_the_grammar_reads_them(name):
    """Without an exponent where the grammar reads none."""
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), [name], GRAMMARS["plain"])
    values = ["0.0000005", "3" + "0" * 25]
    [back] = tokenizer.decode_batch(tokenizer.encode_batch([" and ".join(values)])).to_pylist()
    read = [float(one.value) for one in extract(back, tokenizer.grammar)]
    assert read == pytest.approx([float(value) for value in values], rel=0.5)
