"""NumberDataset and IterableNumberDataset: files of every kind, converted once; order, shares and
resuming as datasets has them; and the workers of a real DataLoader.
"""

import copy
import itertools
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from torch_rows import tokenizer

import numtok
from numtok.corpus.write import open_writer
from numtok.errors import InputError
from numtok.representations import ExponentBins, FloatBits, FoNE, LogFourier, XVal
from numtok.tokenizer.layout import to_token_layout

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader

from numtok_torch.data import IterableNumberDataset, NumberCollator, NumberDataset

BOTH = pytest.mark.parametrize("make", [NumberDataset, IterableNumberDataset])
TEXTS = ["It is -28.5 or 10,000", "no number", "", "7 and 0 and 1e400", "0.5"] * 4


def values(rows):
    return [int(row["number_value"][0]) for row in rows]


def counted(count, rows):
    """The numbers up to ``count``, a document each, in chunks of so many rows."""
    batch = tokenizer().encode_batch([str(number) for number in range(count)])
    return pa.Table.from_batches([batch.slice(at, rows) for at in range(0, count, rows)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three Parquet files of 50 documents each, number 0 to 149, in row groups of 8 rows."""
    made = tmp_path_factory.mktemp("encoded")
    table = counted(150, 150)
    for part in range(3):
        path = made / f"part-{part}.parquet"
        pq.write_table(table.slice(50 * part, 50), path, row_group_size=8)
    (made / ".hidden.parquet").write_bytes(b"not data")
    (made / "notes.txt").write_text("not data")
    return made


def stored(kind, batch, folder):
    """The batch in a file or in memory, in two chunks."""
    if kind == "table":
        return pa.Table.from_batches([batch.slice(0, 3), batch.slice(3)])
    if kind == "slice":
        return pa.concat_batches([batch, batch]).slice(len(batch), len(batch))
    path = folder / f"data.{kind.split('-')[0]}"
    batch = to_token_layout(batch) if kind.endswith("token") else batch
    compression = None if kind == "arrow-plain" else "zstd"
    if kind == "arrow-stream":
        with pa.ipc.new_stream(path, batch.schema) as stream:
            stream.write_table(pa.Table.from_batches([batch.slice(0, 7), batch.slice(7)]))
        return path
    with open_writer(path, batch.schema, compression=compression) as writer:
        writer.write(batch.slice(0, 7))
        writer.write(batch.slice(7))
    return path


@pytest.mark.parametrize(
    ("kind", "compact"),
    [
        *(("parquet", False), ("parquet", True), ("arrow", False), ("arrow-plain", True)),
        *(("arrow-stream", False), ("table", True), ("slice", False)),
        *(("arrow-token", True), ("parquet-token", False)),
    ],
)
def test_rows_are_those_of_the_batch(kind, compact, tmp_path):
    both = [FloatBits(compact=compact), FoNE(6, 4, compact=compact)]
    tok = tokenizer(XVal(), *both, ExponentBins(), LogFourier(4))
    source = stored(kind, tok.encode_batch(TEXTS, keep_text=True), tmp_path)
    data = NumberDataset(source, tokenizer=tok)
    assert data.metadata["tokenizer"] == data.fingerprint == tok.fingerprint
    assert len(data) == len(TEXTS)
    rows = list(data)
    if kind not in ("table", "slice"):
        rows += IterableNumberDataset(source, tokenizer=tok.fingerprint)
    for text, row in zip(itertools.cycle(TEXTS), rows, strict=False):
        expected = tok.encode(text)
        assert set(row) == {field.name for field in expected.batch.schema}
        for name, found in row.items():
            assert found.dtype == expected[name].dtype
            np.testing.assert_array_equal(found, expected[name])
    assert len(rows) % len(TEXTS) == 0
    if kind not in ("table", "slice"):  # views of the mapped file
        assert all(
            not values.flags.writeable and not values.flags.owndata for values in data[1].values()
        )


def test_texts_come_if_they_are_named():
    batch = tokenizer().encode_batch(["5 and 07"], keep_text=True)
    row = NumberDataset(batch, columns=["number_text", "number_scaled"])[0]
    assert set(row) == {"input_ids", "number_index", "number_text", "number_scaled"}
    assert row["number_text"] == ["5", "07"]
    made = NumberCollator(0, objective=None)([row])
    assert made["number_scaled"].shape == (1, len(row["input_ids"]))


def test_rows_by_number(folder):
    data = NumberDataset(folder)
    assert len(data) == 150
    assert values(data[number] for number in (0, 149, -1, -150, 49, 50)) == [0, 149, 149, 0, 49, 50]
    some = NumberDataset([folder / "part-2.parquet", folder / "part-0.parquet"])
    assert values(some) == [*range(100, 150), *range(50)]


def test_a_folder_inside_may_be_called_like_a_file(folder, tmp_path):
    """As Spark calls those that it writes."""
    shutil.copytree(folder, tmp_path / "data.parquet")
    assert len(NumberDataset(tmp_path)) == 150


def test_a_kept_column_is_no_stream_whatever_its_name(tmp_path):
    lines = [
        json.dumps({"text": f"{k} and 5", "number_bin": k, "number_bits": [1.5, 2]}) for k in (1, 2)
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    options = {"numbers": "xval", "scale": 1.0, "keep_columns": ["number_bin", "number_bits"]}
    numtok.encode_files(tmp_path / "in.jsonl", tmp_path / "a.parquet", **options)
    data = NumberDataset(tmp_path / "a.parquet")
    assert list(data[0]) == ["input_ids", "number_index", "number_value", "number_scaled"]
    collate = NumberCollator.from_schema(
        pq.read_schema(tmp_path / "a.parquet"), 0, objective="causal"
    )
    assert not {"number_bin", "number_bits"} & collate([data[0], data[1]]).keys()


def test_null_rows(tmp_path):
    batch = tokenizer().encode_batch(["1", None, "", "2", None])
    for source in (batch, stored("parquet", batch, tmp_path)):
        skipping = NumberDataset(source, nulls="skip")
        assert [len(row["input_ids"]) for row in skipping] == [1, 0, 1]  # an empty document is one
    assert [len(row["input_ids"]) for row in IterableNumberDataset(source)] == [1, 0, 1]


def test_no_rows_at_all(tmp_path):
    batch = tokenizer(XVal(), FloatBits()).encode_batch([])
    for data in (batch, stored("parquet", batch, tmp_path)):
        assert len(NumberDataset(data)) == len(NumberDataset(data, block_size=4)) == 0
    assert list(IterableNumberDataset(data, shuffle=True)) == []


def cache_files():
    """All Arrow files in the cache of ``datasets``."""
    return sorted(Path(os.environ["HF_DATASETS_CACHE"]).rglob("*.arrow"))


def test_files_are_converted_once_and_anew_when_they_change(tmp_path):
    """Also where a program that copies or unpacks has set the time of modification back."""
    path = tmp_path / "data.parquet"
    pq.write_table(counted(20, 20), path)
    opened = NumberDataset(path)
    converted = cache_files()
    assert len(NumberDataset(path)) == 20 and cache_files() == converted
    before = path.stat()
    pq.write_table(counted(20, 20).slice(0, 10), path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(NumberDataset(path)) == 10 and values(opened) == list(range(20))
    changed = path.read_bytes()
    path.write_bytes(changed[:200] + bytes(60) + changed[260:])
    with pytest.raises(InputError, match=r"data\.parquet"):
        NumberDataset(path)


@BOTH
def test_they_can_be_pickled_and_copied(make, folder):
    data = make(folder)
    assert values(data) == list(range(150))
    for other in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data)):
        assert values(other) == list(range(150))
    if make is NumberDataset:
        assert values(pickle.loads(pickle.dumps(make(counted(9, 4))))) == list(range(9))


# --- the stream: shuffled, shared among ranks and resumed by datasets


def test_epochs_and_seeds_have_their_own_order(folder):
    data = IterableNumberDataset(folder, shuffle=True, seed=3)
    first = values(data)
    assert values(data) == first == values(IterableNumberDataset(folder, shuffle=True, seed=3))
    data.set_epoch(1)
    assert sorted(values(data)) == sorted(first) == list(range(150))
    assert values(data) != first != values(IterableNumberDataset(folder, shuffle=True, seed=4))
    assert np.abs(np.diff(first)).mean() > 20  # not merely within the row groups of 8


@pytest.mark.parametrize(("shuffle", "world_size"), [(False, 2), (True, 3), (True, 7)])
def test_ranks_share_the_rows(shuffle, world_size, folder):
    ranks = [
        IterableNumberDataset(folder, shuffle=shuffle, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    assert sorted(itertools.chain(*map(values, ranks))) == list(range(150))


@pytest.mark.parametrize("stop", [0, 17, 150])
def test_resuming(stop, folder):
    running = IterableNumberDataset(folder)
    rows = iter(running)
    passed = values(next(rows) for _ in range(stop))
    state = json.loads(json.dumps(running.state_dict()))
    resumed = IterableNumberDataset(folder)
    resumed.load_state_dict(state)
    assert passed + values(resumed) == list(range(150))


# --- through a DataLoader


@BOTH
def test_workers_share_the_rows(make, folder):
    data = make(folder)
    collate = NumberCollator.from_schema(data.schema, 0, objective="causal")
    loader = DataLoader(data, batch_size=4, num_workers=2, collate_fn=collate)
    found = [batch["number_value"][batch["number_mask"]] for batch in loader]
    assert sorted(torch.cat(found).int().tolist()) == list(range(150))


def test_workers_that_stay_see_the_next_epoch(folder):
    data = IterableNumberDataset(folder, shuffle=True)
    loader = DataLoader(data, batch_size=None, num_workers=1, persistent_workers=True)
    first = values(loader)
    data.set_epoch(1)
    second = values(loader)
    assert sorted(first) == sorted(second) == list(range(150)) and first != second
    data.set_epoch(0)
    assert values(loader) == first


def with_more(rows):
    """A collator around ours, which adds what no array of NumPy can hold."""
    batch = NumberCollator(0, objective=None)(rows)
    batch["half"], batch["words"] = torch.ones(2, dtype=torch.bfloat16), np.array(["a", "b"])
    return batch


def test_a_worker_hands_over_what_a_collator_around_ours_makes():
    rows = [{"input_ids": [1, 2], "number_index": [0], "number_value": [5e-324]}] * 2
    (found,) = DataLoader(rows, batch_size=2, num_workers=1, collate_fn=with_more, timeout=60)
    expected = with_more(rows)
    assert type(found) is dict and found.keys() == expected.keys()
    assert found.pop("words").tolist() == expected.pop("words").tolist()
    for name, values in expected.items():
        torch.testing.assert_close(found[name], values, rtol=0, atol=0)
