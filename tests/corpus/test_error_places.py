"""Errors carry their place as attributes: the document and byte of a call, the row of a file; their
text is made of these.
"""

import copy
import pickle

import pytest

from numtok import Grammar, Tokenizer
from numtok.corpus import encode_corpus
from numtok.corpus.encode_options import EncodeOptions
from numtok.errors import (
    GrammarError,
    InputError,
    MissingDependencyError,
    NumtokError,
    OutputError,
    RepresentationError,
    SchemaError,
)


def place_of(error):
    named = {
        name: getattr(error, name)
        for name in ("path", "line", "column", "row", "document", "byte", "character")
    }
    return {name: value for name, value in named.items() if value is not None}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (NumtokError("wrong"), "wrong"),
        (RepresentationError("wrong", document=3, byte=17), "document 3, byte 17: wrong"),
        (InputError("wrong", document=1, character=0), "document 1, character 0: wrong"),
        (InputError("wrong", "a.jsonl", 3, 8), "a.jsonl:3:8: wrong"),
        (SchemaError("wrong", path="a.parquet", row=0), "a.parquet, row 0: wrong"),
        (SchemaError("wrong", row=0), "row 0: wrong"),
        (OutputError("wrong", path="a.parquet"), "a.parquet: wrong"),
        (MissingDependencyError("wrong"), "wrong"),
    ],
)
def test_the_text_of_an_error_is_its_place_and_its_message(error, told):
    for same in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(same) is type(error)
        assert (str(same), same.message, place_of(same)) == (told, "wrong", place_of(error))


@pytest.mark.parametrize(
    ("first", "on_error", "place"),
    [('{"text": "5"}', "raise", "row 3: byte 1: "), ("{", "skip", "near row 2: byte 1: ")],
)
def test_a_corpus_names_the_row_of_every_error_about_a_document(first, on_error, place, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(first + '\n{"text": "6"}\n{"text": "ab"}\n')
    made = Tokenizer.from_pretrained(numbers="xval", grammar=Grammar.from_pattern(r"\d|b"))
    with pytest.raises(GrammarError, match="does not read as a decimal number") as failed:
        encode_corpus([path], tmp_path / "out.parquet", made, EncodeOptions(on_error=on_error))
    assert str(failed.value).startswith(f"{path}, {place}")
    assert (failed.value.path, failed.value.byte, failed.value.document) == (str(path), 1, None)
    assert not list(tmp_path.glob("*.parquet"))
