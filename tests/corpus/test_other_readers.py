"""Parquet files as other programs read them: datasets, polars, DuckDB, pyarrow.

Plain lists, which a reader reshapes by FORMAT.md alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kept import kept

import numtok
from numtok.corpus.encode import encode_corpus
from numtok.representations import FloatBits, FoNE, LogFourier, Representation, XVal
from numtok.tokenizer.layout import conform, plain
from numtok.tokenizer.schema import METADATA_KEY
from numtok_torch import NumberCollator, NumberDataset
from numtok_torch.data.rows import inner_shapes

TEXTS = ["is 28.5 or 1,234", None, "", "none", "7", "60.2 and 5 and 1e5", None]
CASES: dict[str, list[Representation]] = {
    "bits": [FloatBits()],
    "bits-compact": [FloatBits(compact=True)],
    "bits-64": [FloatBits(width=64)],
    "bits-64-compact": [FloatBits(width=64, compact=True)],
    "bits-64-reciprocal": [FloatBits(width=64, reciprocal=True)],
    "fone": [FoNE(6, 4)],
    "fone-compact": [FoNE(6, 4, compact=True)],
    "fone-chunk": [FoNE(7, 5, chunk=5)],
    "fone-chunk-compact": [FoNE(7, 5, chunk=5, compact=True)],
    "logfourier": [LogFourier(4)],
    "xval": [XVal()],
    "all": [XVal(), FloatBits(), FoNE(6, 4, bases=(2, 5, 10)), LogFourier(4)],
}
each = pytest.mark.parametrize("name", CASES)


@kept
def tokenizer_with(name: str) -> numtok.Tokenizer:
    return numtok.Tokenizer.from_pretrained(None, CASES[name])


def encoded(folder: Path, name: str, **options: Any) -> tuple[Path, pa.RecordBatch]:
    """The file, and what it holds."""
    source = folder / "in.jsonl"
    source.write_text(
        "".join(json.dumps({"text": text, "id": n}) + "\n" for n, text in enumerate(TEXTS))
    )
    tokenizer = tokenizer_with(name)
    encode_corpus(
        [source], folder / "out.parquet", tokenizer, keep_columns=["id"], overwrite=True, **options
    )
    return folder / "out.parquet", tokenizer.encode_batch(TEXTS)


def flattened(batch: pa.RecordBatch) -> dict[str, list[Any]]:
    """The rows as nested lists, each tensor in one dimension."""
    return {
        name: [
            row if row is None else [_flat(one) for one in row] for row in batch[name].to_pylist()
        ]
        for name in batch.schema.names
    }


def _flat(value: Any) -> Any:
    return value if np.ndim(value) == 0 else np.ravel(value).tolist()


@each
def test_no_type_of_arrow_is_in_the_file(name: str, tmp_path: Path) -> None:
    path, batch = encoded(tmp_path, name)
    for schema in (pq.read_schema(path), pq.ParquetFile(path).schema_arrow):
        assert "extension" not in str(schema)
    shapes = json.loads(pq.read_schema(path).metadata[METADATA_KEY]).get("shapes", {})
    table = pq.read_table(path)
    for field in batch.schema:
        if isinstance(field.type.value_type, pa.FixedShapeTensorType):
            tensors = table[field.name].combine_chunks().flatten()  # as FORMAT.md says
            matrix = (
                tensors.flatten().to_numpy(zero_copy_only=False).reshape(-1, *shapes[field.name])
            )
            np.testing.assert_array_equal(matrix, batch[field.name].flatten().to_numpy_ndarray())


@each
def test_tensors_come_back(name: str, tmp_path: Path) -> None:
    """From the file and from a table that somebody read; from files with Arrow's type too."""
    path, batch = encoded(tmp_path, name)
    (tmp_path / "extension").mkdir()
    kept, _ = encoded(tmp_path / "extension", name, tensors="extension")
    assert ("extension" in str(pq.read_schema(kept))) == ("fixed_shape_tensor" in str(batch.schema))
    rows = NumberDataset(batch, nulls="skip")
    table = pq.read_table(path)
    for data in (path, kept, table, pq.read_table(kept), table.to_batches()[0], table.slice(2)):
        found = NumberDataset(data, nulls="skip")
        offset = len(rows) - len(found)
        for number in range(len(found)):
            expected = rows[number + offset]
            for key, values in expected.items():
                assert (
                    found[number][key].dtype == values.dtype
                    and found[number][key].shape == values.shape
                )
                np.testing.assert_array_equal(found[number][key], values)
        assert inner_shapes(found.schema) == inner_shapes(batch.schema)
    tokenizer = tokenizer_with(name)
    for one in (table, pq.read_table(kept)):
        assert tokenizer.decode_batch(one.combine_chunks().to_batches()[0]).equals(
            tokenizer.decode_batch(batch)
        )


def test_the_values_are_not_copied() -> None:
    tokenizer = tokenizer_with("fone")
    batch = tokenizer.encode_batch(TEXTS).slice(3)
    stored = plain(batch)
    again = conform(stored)
    assert again.equals(batch) and again.schema.equals(batch.schema, check_metadata=True)
    addresses = {one["number_fourier"].buffers()[-1].address for one in (batch, stored, again)}
    assert len(addresses) == 1


@each
def test_datasets(name: str, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    path, batch = encoded(tmp_path, name)
    expected = flattened(batch)
    loaded = datasets.load_dataset(
        "parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
    )
    streamed = datasets.load_dataset("parquet", data_files=str(path), split="train", streaming=True)
    for rows in (list(loaded), list(streamed)):
        assert [row["id"] for row in rows] == list(range(len(TEXTS)))
        for column, values in expected.items():
            assert [row[column] for row in rows] == values, column
    full = [row for row in loaded.remove_columns("id") if row["input_ids"] is not None]
    collate = NumberCollator.from_schema(pq.read_schema(path), pad_token_id=0, objective=None)
    ours = collate(list(map(NumberDataset(path, nulls="skip").__getitem__, range(len(full)))))
    for key, values in collate(full).items():
        assert values.shape == ours[key].shape and (values == ours[key]).all(), key


@each
def test_polars(name: str, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    path, batch = encoded(tmp_path, name)
    for frame in (polars.read_parquet(path), polars.scan_parquet(path).collect()):
        for column, values in flattened(batch).items():
            assert [
                row if row is None else list(map(_flat, row)) for row in frame[column].to_list()
            ] == values, column


@each
def test_duckdb(name: str, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path, batch = encoded(tmp_path, name)
    with duckdb.connect() as connection:
        found = connection.execute(
            f"select {', '.join(batch.schema.names)} from '{path}'"
        ).fetchall()
    for column, values in zip(flattened(batch).values(), zip(*found, strict=True), strict=True):
        assert [row if row is None else list(map(_flat, row)) for row in values] == column
