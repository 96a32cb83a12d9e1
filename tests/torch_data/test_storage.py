"""Rows at random: the Arrow files in the user's cache folder give the rows of the encoded ones,
whatever becomes of them.
"""

import gc
import logging
import multiprocessing
import os
import pickle
import resource
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numtok
from numtok.corpus.write.encoded import open_writer
from numtok.errors import InputError, SchemaError
from numtok.representations import ExponentBins, FloatBits, FoNE, PlaceValue, XVal
from numtok.tokenizer.layout import to_token_layout

pytest.importorskip("torch")

from numtok_torch.data import IterableNumberDataset, NumberDataset, storage

ROWS = 900
POOLS = []  # never freed, as something may have been allocated from them
EVERY = (XVal(), FloatBits(), FoNE(6, 4), ExponentBins())


def encoded(start=0, numbers=EVERY):
    """Documents of up to 40 numbers, some empty, one null; document k begins with number k."""
    values = np.random.default_rng(start).normal(scale=1000, size=(ROWS, 40)).round(4)
    texts = [
        " and ".join([str(start + row), *map(repr, values[row, : row % 40].tolist())])
        if row % 9
        else ""
        for row in range(ROWS)
    ]
    texts[700] = None
    return numtok.Tokenizer.from_pretrained(None, list(numbers)).encode_batch(texts, keep_text=True)


def write(path, batch, groups=3):
    with open_writer(path, batch.schema, row_group_bytes=batch.nbytes // groups) as writer:
        writer.write(batch)


@pytest.fixture(scope="module")
def batch():
    return encoded()


@pytest.fixture
def file(batch, tmp_path):
    write(tmp_path / "data.parquet", batch)
    return tmp_path / "data.parquet"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(storage, "BATCH_BYTES", 1 << 16)
    return tmp_path / "cache" / "rows"


def check(path, batch, step=7, **options):
    """Rows of a file, in a random order, are those of the batch."""
    expected = NumberDataset(batch, nulls="skip", **options)
    found = NumberDataset(path, nulls="skip", **options)
    assert len(expected) == len(found) > 0
    for number in np.random.default_rng(0).permutation(len(found))[::step].tolist():
        assert list(found[number]) == list(expected[number])
        for name, values in expected[number].items():
            np.testing.assert_array_equal(found[number][name], values, err_msg=name)
    return found


def files(cache):
    return set(cache.glob("*.arrow"))


def in_children(count, work):
    """In other processes, all at the same time."""
    children = [multiprocessing.get_context("fork").Process(target=work) for _ in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * count


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"columns": ["number_bits", "number_text"]},
        {"columns": ["number_fourier"]},
        {"columns": ["number_bits"], "block_size": 700, "separator": 5, "separate": False},
    ],
)
@pytest.mark.parametrize("name", ["data.parquet", "tokens.parquet", "data.arrow"])
def test_rows_are_those_of_the_file(name, options, batch, tmp_path, cache):
    """In either layout; of Parquet in more chunks than the file has."""
    path = tmp_path / name
    write(path, to_token_layout(batch) if name == "tokens.parquet" else batch)
    data = check(path, batch, **options)
    assert len(files(cache)) == 1
    assert path.suffix == ".arrow" or len(data._storage.rows) > 9
    again = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(again[7]["input_ids"], data[7]["input_ids"])


def test_values_for_each_token(tmp_path, cache):
    batch = encoded(numbers=[PlaceValue()])
    write(tmp_path / "data.parquet", batch)
    check(tmp_path / "data.parquet", batch, block_size=50)
    assert files(cache)


def test_rows_are_views_of_the_converted_file(file, batch, cache):
    row = NumberDataset(file)[1]
    assert all(not values.flags.writeable and not values.flags.owndata for values in row.values())


def test_nothing_is_converted_in_order_or_without_a_cache(file, batch, cache, monkeypatch):
    stream = IterableNumberDataset(file, shuffle=True)
    assert len(stream._storage.rows) == pq.read_metadata(file).num_row_groups > 1
    monkeypatch.setenv("NUMTOK_CACHE", "0")
    check(file, batch)
    assert not cache.exists()


def test_many_processes_convert_once(file, batch, cache, caplog):
    """And later ones read what is cached, unless the file was written to meanwhile."""
    in_children(3, lambda: check(file, batch))
    assert {path.name for path in cache.iterdir()} == {"lock", *(p.name for p in files(cache))}
    with caplog.at_level(logging.WARNING, "numtok"):
        check(file, batch)
    assert caplog.text == ""
    before = file.stat()
    with open(file, "r+b") as opened:
        opened.seek(4)
        opened.write(bytes(100_000))  # of the pages
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(InputError, match=r"data\.parquet"):
        NumberDataset(file)
    shutil.rmtree(cache)
    with pytest.raises(InputError, match=r"data\.parquet"):
        NumberDataset(file)
    assert not files(cache)


@pytest.mark.parametrize("way", ["written over", "moved here"])
def test_another_file_of_the_same_size_and_time_is_read(way, tmp_path, cache):
    """As unpacking and copying with the times leave it."""
    path, other = tmp_path / "data.arrow", tmp_path / "other.arrow"
    tokenizer = numtok.Tokenizer.from_pretrained(None, [XVal()])
    texts = [f"It is {number}." for number in range(1, 9)]
    batch, another = tokenizer.encode_batch(texts), tokenizer.encode_batch(texts[::-1])
    for place, rows in ((path, batch), (other, another)):
        with pa.ipc.new_file(place, rows.schema) as writer:  # not compressed
            writer.write(rows)
    before = path.stat()
    assert before.st_size == other.stat().st_size
    check(path, batch, 1)
    if way == "written over":
        path.write_bytes(other.read_bytes())
    else:
        other.replace(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    check(path, another, 1)
    assert len(files(cache)) == 1


def test_a_changed_file_is_converted_anew(file, batch, cache, caplog):
    opened = check(file, batch)
    assert str(cache) in caplog.text and "NUMTOK_CACHE" in caplog.text
    before, another = files(cache), encoded(start=5000)
    file.unlink()
    write(file, another)
    check(file, another)
    assert len(files(cache)) == 1 and not files(cache) & before
    assert opened[1]["number_value"][0] == 1  # what it was when it was opened
    with pytest.raises(InputError, match="make the data set again"):
        pickle.loads(pickle.dumps(opened))[1]
    (before,) = files(cache)
    os.utime(file, (0, 0))  # as after a change that leaves the size
    check(file, another, 100)
    assert len(files(cache)) == 1 and before not in files(cache)


@pytest.mark.parametrize("damage", ["end", "cut", "gone"])
def test_damage_of_what_is_cached_is_made_good(damage, file, batch, cache):
    check(file, batch)
    (path,) = files(cache)
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        kept = len(content) // 2 if damage == "cut" else len(content) - 9
        path.write_bytes(content[:kept])
    check(file, batch)
    assert path.read_bytes() == content


def test_without_room(file, batch, cache, caplog):
    def on_a_full_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        check(file, batch, 100)
        assert not files(cache)

    in_children(1, on_a_full_disk)
    shutil.rmtree(cache)
    cache.write_bytes(b"no folder")
    check(file, batch, 100)
    assert "make room" in caplog.text


def test_rows_that_do_not_hold_together_are_refused(file, cache):
    table = pq.read_table(file)
    place, index = table.schema.get_field_index("number_index"), table["number_index"].to_pylist()
    index[799] = index[799][::-1]
    field = table.schema.field(place)
    pq.write_table(table.set_column(place, field, pa.array(index, field.type)), file)
    with pytest.raises(SchemaError, match="row 799"):
        NumberDataset(file)
    assert not files(cache)


def test_memory_is_a_part_of_the_row_group(batch, tmp_path, cache):
    path = tmp_path / "large.parquet"
    pq.write_table(pa.Table.from_batches([batch] * 40), path, row_group_size=1 << 20)
    POOLS.append(pa.proxy_memory_pool(pa.default_memory_pool()))
    pa.set_memory_pool(POOLS[-1])
    try:
        data = NumberDataset(path)
        assert len(data[599 + ROWS * 30]["input_ids"])
    finally:
        pa.set_memory_pool(pa.default_memory_pool())
        del data
        gc.collect()
    (cached,) = files(cache)
    assert 0 < POOLS[-1].max_memory() < cached.stat().st_size / 3


def test_a_relative_path_is_found_again(file, batch, cache, monkeypatch):
    check(file, batch)
    monkeypatch.chdir(file.parent)
    check(Path(file.name), batch)
    assert len(files(cache)) == 1
