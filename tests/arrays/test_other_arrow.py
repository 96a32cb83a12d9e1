"""Columns and batches of other Arrow libraries, which hand them over by Arrow's PyCapsule
interface.
"""

import polars as pl
import pyarrow as pa
import pytest

import numtok
from numtok.errors import InputError

TEXTS = ["It is 12.5", None, "or 3,000", ""]


class Foreign:
    """An array, or a batch, that is no class of pyarrow and can do nothing else."""

    def __init__(self, array):
        self.__arrow_c_array__ = array.__arrow_c_array__


class ForeignPieces:
    def __init__(self, column):
        self.__arrow_c_stream__ = column.__arrow_c_stream__


@pytest.mark.parametrize(
    "texts",
    [
        Foreign(pa.array(TEXTS)),
        Foreign(pa.array(TEXTS, pa.string_view())),
        Foreign(pa.array(TEXTS).dictionary_encode()),
        ForeignPieces(pa.chunked_array([TEXTS[:1], TEXTS[1:]])),
        pl.Series(TEXTS),
        pl.Series(TEXTS, dtype=pl.Categorical),
    ],
    ids=["array", "view", "dictionary", "pieces", "polars", "polars categorical"],
)
def test_a_column_of_another_library(texts):
    tokenizer = numtok.Tokenizer.from_pretrained()
    assert tokenizer.encode_batch(texts, keep_text=True).equals(
        tokenizer.encode_batch(TEXTS, keep_text=True)
    )


@pytest.mark.parametrize(
    "texts", [Foreign(pa.array([1, 2])), ForeignPieces(pa.chunked_array([[1.5]])), pl.Series([1])]
)
def test_a_column_that_holds_no_text(texts):
    with pytest.raises(InputError, match="expected"):
        numtok.scan(texts)


def test_a_batch_of_another_library():
    tokenizer = numtok.Tokenizer.from_pretrained()
    batch = tokenizer.encode_batch(TEXTS, keep_text=True)
    assert tokenizer.decode_batch(Foreign(batch)).to_pylist() == TEXTS


@pytest.mark.parametrize(
    "batch", [7, [1], pa.array([1]), pa.table({"a": [1]}), Foreign(pa.array([1]))]
)
def test_what_is_no_batch(batch):
    with pytest.raises(InputError, match="expected a record batch"):
        numtok.Tokenizer.from_pretrained().decode_batch(batch)
