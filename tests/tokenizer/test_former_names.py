"""A representation that was given another name: what was written under the former one is read, and
its fingerprint stays.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numtok
from numtok.errors import RepresentationError
from numtok.representations import REPRESENTATIONS, ExponentBins, from_dict, parse

FINGERPRINT = (
    "5c61e0fe5bd3c1c8"  # of ExponentBins(50) and the default tokenizer, when its name was "bins"
)
TEXT = "It is 12.5 or 3,000"


def test_class_file_and_name_agree() -> None:
    assert ExponentBins.name == "exponent_bins" == ExponentBins.__module__.rpartition(".")[2]
    assert REPRESENTATIONS["exponent_bins"] is ExponentBins
    assert "bins" not in REPRESENTATIONS, "a list of what there is names each once"


def test_the_former_name_is_read() -> None:
    made = ExponentBins(50)
    assert made.to_dict()["name"] == "exponent_bins"
    assert parse("bins:50,xval") == parse("exponent_bins:50,xval") == (made, numtok.XVal())
    assert from_dict(made.to_dict() | {"name": "bins"}) == from_dict(made.to_dict()) == made
    with pytest.raises(RepresentationError, match="given twice"):
        parse("bins,exponent_bins")


@pytest.mark.parametrize("numbers", ["bins:50", "exponent_bins:50", ExponentBins(50)])
def test_a_new_name_leaves_the_fingerprint(numbers: str | ExponentBins) -> None:
    assert numtok.Tokenizer.from_pretrained(numbers=numbers).fingerprint == FINGERPRINT


def test_a_saved_tokenizer_of_the_former_name_is_read(tmp_path: Path) -> None:
    numtok.Tokenizer.from_pretrained(numbers=ExponentBins(50)).save_pretrained(tmp_path)
    path = tmp_path / "numtok.json"
    settings = json.loads(path.read_text("utf-8"))
    settings["numbers"][0]["name"] = "bins"
    path.write_text(json.dumps(settings), "utf-8")
    read = numtok.Tokenizer.from_pretrained(tmp_path)
    assert (read.fingerprint, read.representations) == (FINGERPRINT, (ExponentBins(50),))


def test_a_file_of_the_former_name_is_read(tmp_path: Path) -> None:
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
