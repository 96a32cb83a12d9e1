"""Tokenizers with the grammars of the world: values, text that comes back in the grammar's own
marks, and saved forms that keep the grammar.
"""

import pytest

from numtok import Grammar, Tokenizer
from numtok.numbers.grammar import LATER_OPTIONS
from numtok.representations import parse
from numtok.tokenizer.schema import read_metadata

TEXTS = {
    "european": (
        "Es kostet 1.234,56 € und 12 345,5 oder -3,5e3 und ,5, am 12.03.2024 um 14.30 Uhr.",
        [1234.56, 12345.5, -3500.0, 0.5],
    ),
    "indian": (
        "It costs Rs 12,34,567.89, not 1,234.5 or -1,23,456.",
        [1234567.89, 1234.5, -123456.0],
    ),
    "swiss": ("Es kostet 1'234.56 oder 12’345’678 und -3.5e3.", [1234.56, 12345678.0, -3500.0]),
}


def grammar_of(name):
    return getattr(Grammar, name)()


@pytest.mark.parametrize(
    "representation", ["xval", "fone:12,4", "place", "digits:3", "digits:1", "digits:1,bare"]
)
@pytest.mark.parametrize("name", TEXTS)
def test_what_is_written_without_the_text_is_read_as_the_same_numbers(name, representation):
    """With the default's marks, European 1234.5 would be no number and 1.234 another one."""
    text, _ = TEXTS[name]
    tokenizer = Tokenizer.from_pretrained(None, parse(representation), grammar_of(name))
    batch = tokenizer.encode_batch([text])
    again = tokenizer.encode_batch(tokenizer.decode_batch(batch))
    assert again.column("number_value").to_pylist() == batch.column("number_value").to_pylist()


def test_numbers_are_written_in_the_marks_of_the_grammar():
    tokenizer = Tokenizer.from_pretrained(None, parse("xval"), Grammar.european())
    batch = tokenizer.encode_batch(["1.234,50 kg"])
    assert tokenizer.decode_batch(batch).to_pylist() == ["1234,5 kg"]
    ids = batch.column("input_ids")[0].as_py()
    assert tokenizer.decode(ids, [0.25]) == "0,25 kg"
    bare = Tokenizer.from_pretrained(None, parse("digits:1,bare"), Grammar.european())
    ids = bare.encode("Es sind 1.234,5 kg.").input_ids
    assert bare.decode(ids) == "Es sind 1.234,5 kg." and bare.numbers_in(ids)[0][2] == "1.234,5"


@pytest.mark.parametrize("representation", ["place", "digits:3", "digits:1"])
def test_digits_have_the_same_tokens_in_every_grammar(representation):
    """A model trained on one country's text reads another's."""

    def tokenizer(name):
        return Tokenizer.from_pretrained(None, parse(representation), grammar_of(name))

    written = {"prose": "1,234.5", "european": "1.234,5", "swiss": "1’234.5"}
    ids = [tokenizer(name).encode(text).input_ids.tolist() for name, text in written.items()]
    european = tokenizer("european")
    assert ids[0] == ids[1] == ids[2] == european.encode("1 234,5").input_ids.tolist()
    spaced = european.encode_batch(["1.234,5 x 1 234,5"])
    assert european.decode_batch(spaced).to_pylist() == ["1.234,5 x 1.234,5"]


@pytest.mark.parametrize("name", TEXTS)
def test_saved_tokenizers_and_metadata_keep_the_grammar(name, tmp_path):
    tokenizer = Tokenizer.from_pretrained(None, parse("xval"), grammar_of(name))
    tokenizer.save_pretrained(tmp_path)
    loaded = Tokenizer.from_pretrained(tmp_path)
    text, values = TEXTS[name]
    assert loaded.grammar == grammar_of(name) and loaded.fingerprint == tokenizer.fingerprint
    batch = loaded.encode_batch([text])
    assert batch.column("number_value").to_pylist() == [values]
    assert Grammar.from_dict(read_metadata(batch.schema)["grammar"]) == grammar_of(name)


def test_the_default_is_saved_as_ever():
    prose = Tokenizer.from_pretrained(None, parse("xval"), grammar_of("prose"))
    assert not prose.grammar.to_dict().keys() & set(LATER_OPTIONS)
    assert prose.fingerprint == Tokenizer.from_pretrained(None).fingerprint
    others = [Tokenizer.from_pretrained(None, parse("xval"), grammar_of(name)) for name in TEXTS]
    assert len({one.fingerprint for one in (*others, prose)}) == 4
