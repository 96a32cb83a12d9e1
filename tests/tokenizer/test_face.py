"""How a tokenizer behaves as an object: called, measured, compared, shown; which of the text's
numbers it says it took; and a representation that was given another name, under which what was
written is read.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trained
from tokenizers import AddedToken

import numtok
from numtok import Grammar, Tokenizer
from numtok.arrays.text_rows import TextRows
from numtok.representations import ExponentBins
from numtok.tokenizer.inspect import inspect_text


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.from_pretrained()


def test_called_measured_shown_and_compared(tok):
    assert tok("a 5", keep_text=True).batch.equals(tok.encode("a 5", keep_text=True).batch)
    assert tok(["a 5", None]).equals(tok.encode_batch(["a 5", None]))
    assert len(tok) == tok.vocab_size == 1 + max(tok.tokens.values())
    assert repr(tok).startswith("Tokenizer([XVal(scale=1.0") and f"={len(tok)}" in repr(tok)
    same = Tokenizer.from_pretrained(engine="tokenizers")
    other = Tokenizer.from_pretrained(grammar=Grammar.data())
    assert tok == same and hash(tok) == hash(same) and len({tok, same, other}) == 2
    assert tok != other and tok != "a tokenizer"  # equal if ids are equal


@pytest.mark.parametrize("numbers", ["xval", "fone:2,1", "place"])
def test_which_numbers_were_taken(numbers):
    tok = Tokenizer.from_pretrained(numbers=numbers)
    texts = ["5 -1234 and 5", "1e400", "-7.5"]
    found, scanned = tok.selector.select(TextRows.of(texts)), numtok.scan(texts)
    assert len(found.is_selected) == len(scanned) == 5
    expected = scanned.select(found.is_selected)
    assert found.numbers.stop.tolist() == expected.stop.tolist()
    assert found.numbers.document.tolist() == expected.document.tolist()
    assert np.count_nonzero(~found.is_selected) == sum(found.report.left_as_text.values())


def test_equal_numbers_of_which_only_one_is_taken():
    """The first 9 is in a token of the tokenizer itself: it is not the one that was taken."""
    source = trained.source("gpt2")
    source.add_tokens([AddedToken("<9>", normalized=False)])
    (view,) = inspect_text("a <9> and 9", [Tokenizer.from_pretrained(source)]).views
    assert view.selected == (1,)


# of ExponentBins(50) and the default tokenizer, when its name was "bins"
FORMER = "5c61e0fe5bd3c1c8"
FORMER_TEXT = "It is 12.5 or 3,000"


@pytest.mark.parametrize("numbers", ["bins:50", "exponent_bins:50", ExponentBins(50)])
def test_what_has_the_former_name_is_read(numbers, tmp_path):
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=numbers)
    assert tokenizer.fingerprint == FORMER
    tokenizer.save_pretrained(tmp_path)
    saved = tmp_path / "numtok.json"
    saved.write_text(saved.read_text("utf-8").replace("exponent_bins", "bins"), "utf-8")
    read = numtok.Tokenizer.from_pretrained(tmp_path)
    assert (read.fingerprint, read.representations) == (FORMER, (ExponentBins(50),))

    batch = tokenizer.encode_batch([FORMER_TEXT], keep_text=True)
    described = batch.schema.metadata[b"numtok"].replace(b"exponent_bins", b"bins")
    former = pa.Table.from_batches([batch]).replace_schema_metadata({"numtok": described})
    assert tokenizer.decode_batch(former.to_batches()[0]).to_pylist() == [FORMER_TEXT]
    pq.write_table(former, tmp_path / "former.parquet")
    numtok.decode_files([tmp_path / "former.parquet"], tmp_path / "texts.jsonl")
    assert json.loads((tmp_path / "texts.jsonl").read_text("utf-8")) == {"text": FORMER_TEXT}
