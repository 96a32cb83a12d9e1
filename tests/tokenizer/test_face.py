"""How a tokenizer behaves as an object: called, measured, compared, shown; and which of the text's
numbers it says it took.
"""

from __future__ import annotations

import numpy as np
import pytest

import numtok
from numtok import FoNE, Grammar, PlaceValue, Tokenizer, XVal
from numtok.arrays.text_rows import TextRows
from numtok.tokenizer.inspect import inspect_text


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_pretrained()


def test_a_call_encodes_one_text_or_many(tok: Tokenizer) -> None:
    assert tok("a 5", keep_text=True).batch.equals(tok.encode("a 5", keep_text=True).batch)
    assert tok(["a 5", None]).equals(tok.encode_batch(["a 5", None]))


def test_length_is_the_rows_of_an_embedding(tok: Tokenizer) -> None:
    assert len(tok) == tok.vocab_size == 1 + max(tok.tokens.values())


def test_shown_with_what_it_was_made_of(tok: Tokenizer) -> None:
    assert repr(tok).startswith("Tokenizer([XVal(scale=1.0") and f"vocab_size={len(tok)}" in repr(
        tok
    )


def test_equal_if_ids_are_equal(tok: Tokenizer) -> None:
    same, other = (
        Tokenizer.from_pretrained(engine="tokenizers"),
        Tokenizer.from_pretrained(grammar=Grammar.data()),
    )
    assert tok == same and hash(tok) == hash(same) and len({tok, same, other}) == 2
    assert tok != other and tok != "a tokenizer"


@pytest.mark.parametrize("numbers", [XVal(), FoNE(2, 1), PlaceValue()], ids=lambda one: one.name)
def test_which_numbers_were_taken(numbers: numtok.representations.Representation) -> None:
    tok = Tokenizer.from_pretrained(numbers=[numbers])
    texts = ["5 -1234 and 5", "1e400", "-7.5"]
    found, scanned = tok.finder.find(TextRows.of(texts)), numtok.scan(texts)
    assert len(found.taken) == len(scanned) == 5
    expected = scanned.select(found.taken)
    assert np.array_equal(found.numbers.stop, expected.stop) and np.array_equal(
        found.numbers.document, expected.document
    )
    assert np.count_nonzero(~found.taken) == sum(found.report.left_as_text.values())


def test_equal_numbers_of_which_only_one_is_taken() -> None:
    """The first 9 is in a token of the tokenizer itself: it is not the one that was taken."""
    import json

    from tokenizers import AddedToken
    from tokenizers import Tokenizer as Source

    from numtok.engines.tokenizer_json import load_source

    source = Source.from_str(json.dumps(load_source(None)))
    source.add_tokens([AddedToken("<9>", normalized=False)])
    (view,) = inspect_text("a <9> and 9", [Tokenizer.from_pretrained(source)]).views
    assert view.taken == (1,)
