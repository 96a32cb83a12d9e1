"""A representation that was given another name: what was written under the former one is read, and
its fingerprint stays.
"""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numtok
from numtok.representations import ExponentBins

# of ExponentBins(50) and the default tokenizer, when its name was "bins"
FINGERPRINT = "5c61e0fe5bd3c1c8"
TEXT = "It is 12.5 or 3,000"


@pytest.mark.parametrize("numbers", ["bins:50", "exponent_bins:50", ExponentBins(50)])
def test_what_has_the_former_name_is_read(numbers, tmp_path):
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=numbers)
    assert tokenizer.fingerprint == FINGERPRINT
    tokenizer.save_pretrained(tmp_path)
    saved = tmp_path / "numtok.json"
    saved.write_text(saved.read_text("utf-8").replace("exponent_bins", "bins"), "utf-8")
    read = numtok.Tokenizer.from_pretrained(tmp_path)
    assert (read.fingerprint, read.representations) == (FINGERPRINT, (ExponentBins(50),))

    batch = tokenizer.encode_batch([TEXT], keep_text=True)
    described = batch.schema.metadata[b"numtok"].replace(b"exponent_bins", b"bins")
    former = pa.Table.from_batches([batch]).replace_schema_metadata({"numtok": described})
    assert tokenizer.decode_batch(former.to_batches()[0]).to_pylist() == [TEXT]
    pq.write_table(former, tmp_path / "former.parquet")
    numtok.decode_files([tmp_path / "former.parquet"], tmp_path / "texts.jsonl")
    assert json.loads((tmp_path / "texts.jsonl").read_text("utf-8")) == {"text": TEXT}
