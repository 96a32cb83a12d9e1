"""A representation that was given another name: what was written under the former one is read, and
its fingerprint stays.
"""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numtok
from numtok.representations import ExponentBins

FINGERPRINT = (
    "5c61e0fe5bd3c1c8"  # of ExponentBins(50) and the default tokenizer, when its name was "bins"
)
TEXT = "It is 12.5 or 3,000"


@pytest.mark.parametrize("numbers", ["bins:50", "exponent_bins:50", ExponentBins(50)])
def test_a_saved_tokenizer_of_the_former_name_is_read(numbers, tmp_path):
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=numbers)
    assert tokenizer.fingerprint == FINGERPRINT
    tokenizer.save_pretrained(tmp_path)
    path = tmp_path / "numtok.json"
    settings = json.loads(path.read_text("utf-8"))
    settings["numbers"][0]["name"] = "bins"
    path.write_text(json.dumps(settings), "utf-8")
    read = numtok.Tokenizer.from_pretrained(tmp_path)
    assert (read.fingerprint, read.representations) == (FINGERPRINT, (ExponentBins(50),))


def test_a_file_of_the_former_name_is_read(tmp_path):
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=ExponentBins(50))
    batch = tokenizer.encode_batch([TEXT], keep_text=True)
    described = json.loads(batch.schema.metadata[b"numtok"])
    described["numbers"][0]["name"] = "bins"
    former = pa.Table.from_batches([batch]).replace_schema_metadata(
        {"numtok": json.dumps(described)}
    )
    assert tokenizer.decode_batch(former.to_batches()[0]).to_pylist() == [TEXT]
    pq.write_table(former, tmp_path / "former.parquet")
    numtok.decode_files([tmp_path / "former.parquet"], tmp_path / "texts.jsonl")
    assert json.loads((tmp_path / "texts.jsonl").read_text("utf-8")) == {"text": TEXT}
