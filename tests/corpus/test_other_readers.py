"""Parquet files as other programs read them: datasets, polars, DuckDB, pyarrow.

Plain lists, which a reader reshapes by FORMAT.md alone: of one dimension or two, of each width, or
compact. Which representation has them is nothing to a reader.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from input_files import write_texts
from kept import kept

import numtok
from numtok.corpus.encode import encode_corpus
from numtok.corpus.encode_options import EncodeOptions
from numtok.representations import FloatBits, FoNE, LogFourier, XVal
from numtok.tokenizer.schema import METADATA_KEY
from numtok_torch import NumberCollator, NumberDataset
from numtok_torch.data.rows import inner_shapes

TEXTS = ["is 28.5 or 1,234", None, "", "none", "7", "60.2 and 5 and 1e5", None]
CASES = {
    "compact": [FloatBits(width=64, compact=True), FoNE(7, 5, chunk=5, compact=True)],
    "dense": [
        XVal(),
        FloatBits(width=64, reciprocal=True),
        FoNE(6, 4, bases=(2, 5, 10)),
        LogFourier(4),
    ],
}
each = pytest.mark.parametrize("name", CASES)


@kept
def tokenizer_with(name):
    return numtok.Tokenizer.from_pretrained(None, CASES[name])


def encoded(folder, name, **options):
    """The file, and what it holds."""
    out, tokenizer = folder / f"{len(options)}.parquet", tokenizer_with(name)
    source = write_texts(folder / "in.jsonl", TEXTS)
    how = EncodeOptions(keep_columns=["id"], overwrite=True, **options)
    encode_corpus([source], out, tokenizer, how)
    return out, tokenizer.encode_batch(TEXTS)


def flattened(rows):
    """A column as nested lists, each tensor in one dimension."""
    return [row if row is None else [_flat(one) for one in row] for row in rows]


def _flat(value):
    return value if np.ndim(value) == 0 else np.ravel(value).tolist()


@each
def test_no_type_of_arrow_is_in_the_file(name, tmp_path):
    path, batch = encoded(tmp_path, name)
    for schema in (pq.read_schema(path), pq.ParquetFile(path).schema_arrow):
        assert "extension" not in str(schema)
    shapes = json.loads(pq.read_schema(path).metadata[METADATA_KEY]).get("shapes", {})
    table = pq.read_table(path)
    for field in batch.schema:
        if isinstance(field.type.value_type, pa.FixedShapeTensorType):
            tensors = table[field.name].combine_chunks().flatten()  # as FORMAT.md says
            values = tensors.flatten().to_numpy(zero_copy_only=False)
            expected = batch[field.name].flatten().to_numpy_ndarray()
            np.testing.assert_array_equal(values.reshape(-1, *shapes[field.name]), expected)


@each
def test_tensors_come_back(name, tmp_path):
    """From the file and from a table that somebody read; from files with Arrow's type too."""
    path, batch = encoded(tmp_path, name)
    kept, _ = encoded(tmp_path, name, tensors="extension")
    assert ("extension" in str(pq.read_schema(kept))) == ("fixed_shape_tensor" in str(batch.schema))
    rows = NumberDataset(batch, nulls="skip")
    table = pq.read_table(path)
    for data in (path, kept, table, pq.read_table(kept), table.to_batches()[0], table.slice(2)):
        found = NumberDataset(data, nulls="skip")
        for number in range(len(found)):
            for key, values in rows[number + len(rows) - len(found)].items():
                np.testing.assert_array_equal(found[number][key], values, strict=True)
        assert inner_shapes(found.schema) == inner_shapes(batch.schema)
    texts = tokenizer_with(name).decode_batch(batch)
    for one in (table, pq.read_table(kept)):
        read = one.combine_chunks().to_batches()[0]
        assert tokenizer_with(name).decode_batch(read).equals(texts)


@each
def test_datasets(name, tmp_path):
    datasets = pytest.importorskip("datasets")
    path, batch = encoded(tmp_path, name)
    how = {"data_files": str(path), "split": "train"}
    loaded = datasets.load_dataset("parquet", cache_dir=str(tmp_path / "cache"), **how)
    streamed = datasets.load_dataset("parquet", streaming=True, **how)
    for rows in (list(loaded), list(streamed)):
        assert [row["id"] for row in rows] == list(range(len(TEXTS)))
        for column in batch.schema.names:
            values = flattened(batch[column].to_pylist())
            assert [row[column] for row in rows] == values, column
    full = [row for row in loaded.remove_columns("id") if row["input_ids"] is not None]
    collate = NumberCollator.from_schema(pq.read_schema(path), pad_token_id=0, objective=None)
    ours = collate(list(map(NumberDataset(path, nulls="skip").__getitem__, range(len(full)))))
    for key, values in collate(full).items():
        assert values.shape == ours[key].shape and (values == ours[key]).all(), key


@each
def test_polars_and_duckdb(name, tmp_path):
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    path, batch = encoded(tmp_path, name)
    frame, lazy = polars.read_parquet(path), polars.scan_parquet(path).collect()
    with duckdb.connect() as connection:
        for column in batch.schema.names:
            values = flattened(batch[column].to_pylist())
            found = connection.execute(f"select {column} from '{path}'").fetchall()
            assert flattened(row for (row,) in found) == values, column
            for one in (frame, lazy):
                assert flattened(one[column].to_list()) == values, column
