"""Rows at random from Parquet: the Arrow files in the user's cache folder give the rows of the file,
whatever becomes of them.
"""

import gc
import logging
import multiprocessing
import os
import pickle
import resource
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numtok
from numtok.corpus.write.encoded import open_writer
from numtok.errors import InputError, SchemaError
from numtok.representations import ExponentBins, FloatBits, FoNE, PlaceValue, XVal

pytest.importorskip("torch")

from numtok_torch.data import IterableNumberDataset, NumberDataset, storage

ROWS = 2400
POOLS = []  # never freed, as something may have been allocated from them
EVERY = [XVal(), FloatBits(), FoNE(6, 4), ExponentBins()]


def texts(start=0):
    """Documents of up to 40 numbers, some empty, one null; document k begins with number k."""
    values = np.random.default_rng(start).normal(scale=1000, size=(ROWS, 40)).round(4)
    made = [
        " and ".join([str(start + row), *map(repr, values[row, : row % 40].tolist())])
        if row % 9
        else ""
        for row in range(ROWS)
    ]
    made[700] = None
    return made


def write(path, numbers, start=0, group_bytes=1 << 22):
    tok = numtok.Tokenizer.from_pretrained(None, numbers)
    batch = tok.encode_batch(texts(start), keep_text=True)
    with open_writer(path, batch.schema, row_group_bytes=group_bytes, overwrite=True) as writer:
        writer.write(batch)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Several row groups, each of several pieces."""
    path = tmp_path_factory.mktemp("encoded") / "data.parquet"
    write(path, EVERY)
    return path


@pytest.fixture
def file(original, tmp_path):
    """A copy, to be changed."""
    return Path(shutil.copy2(original, tmp_path))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rows"


def same(found, expected):
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def check(path, step=11, **options):
    """One of ``step`` rows, in a random order, is the one that is read without a cache."""
    plain = NumberDataset(path, nulls="skip", **options | {"disk_bytes": 0})
    cached = NumberDataset(path, nulls="skip", **options)
    assert len(plain) == len(cached) > 0
    for number in np.random.default_rng(0).permutation(len(cached))[::step].tolist():
        same(cached[number], plain[number])
    return cached


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


@pytest.mark.parametrize("whole", [storage.GROUP_BYTES, 0])
@pytest.mark.parametrize("columns", [None, ["number_bits", "number_text"], ["number_fourier"]])
def test_rows_are_those_of_the_file(columns, whole, file, cache, monkeypatch):
    """Whether row groups are small enough to be converted several at a time, or not."""
    monkeypatch.setattr(storage, "GROUP_BYTES", whole)
    data = check(file, 1, columns=columns)
    assert len(files(cache)) == 1
    assert len(data._storage.rows) > pq.read_metadata(file).num_row_groups > 1
    same(pickle.loads(pickle.dumps(data))[7], data[7])
    with pytest.raises(SchemaError, match="row 700 is null"):
        NumberDataset(file, columns=columns)[700]
    check(file, columns=["number_bits"], block_size=700, separator=5, separate=False)


def test_values_for_each_token(tmp_path, cache):
    write(tmp_path / "data.parquet", [PlaceValue()])
    check(tmp_path / "data.parquet", block_size=50)
    assert files(cache)


def test_what_is_read_as_it_is(file, tmp_path, cache, monkeypatch):
    """In order, with small row groups, and where the cache is switched off."""
    groups = pq.read_metadata(file).num_row_groups
    assert len(IterableNumberDataset(file, shuffle=True)._storage.rows) == groups
    write(tmp_path / "small.parquet", EVERY, group_bytes=1 << 18)
    check(tmp_path / "small.parquet")
    assert len(NumberDataset(file, disk_bytes=0)[1]["input_ids"])
    monkeypatch.setenv("NUMTOK_CACHE", "0")
    assert len(NumberDataset(file)[1]["input_ids"])
    assert not cache.exists()


def test_many_processes_convert_once(file, cache, caplog):
    """And later ones read what is cached: not the file, whose pages may be damaged meanwhile."""
    plain = NumberDataset(file, nulls="skip", disk_bytes=0)
    expected = [plain[number] for number in range(0, ROWS - 1, 7)]
    in_children(3, lambda: check(file))
    assert {path.name for path in cache.iterdir()} == {"lock", *(p.name for p in files(cache))}
    before = file.stat()
    with open(file, "r+b") as opened:
        opened.seek(4)
        opened.write(bytes(100_000))  # of the pages
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # no trace but the change itself
    with caplog.at_level(logging.WARNING, "numtok"):
        data = NumberDataset(file)
    assert caplog.text == ""
    for number, row in zip(range(0, ROWS - 1, 7), expected, strict=True):
        same(data[number + (number >= 700)], row)
    with pytest.raises(InputError):
        NumberDataset(file, disk_bytes=0)[0]


def test_a_changed_file_is_converted_anew(file, cache, caplog):
    opened = check(file)
    assert str(cache) in caplog.text and "NUMTOK_CACHE" in caplog.text
    before = files(cache)
    write(file, EVERY, start=5000)
    assert opened[1]["number_value"][0] == 1  # what it was when it was opened
    assert check(file)[1]["number_value"][0] == 5001
    assert before < files(cache)
    for path in files(cache):
        path.unlink()
    with pytest.raises(InputError, match="was changed"):
        pickle.loads(pickle.dumps(opened))[1]


@pytest.mark.parametrize("damage", ["bit", "footer", "head", "cut", "gone"])
def test_damage_of_what_is_cached_is_made_good(damage, file, cache):
    """Met when the data set is made, and in one that was made before."""
    data = check(file, columns=["number_fourier"])
    (path,) = files(cache)
    content = path.read_bytes()
    at = {"bit": len(content) // 2, "footer": len(content) - 9, "head": 3}.get(damage, 0)
    flipped = content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]
    for opened in (True, False):
        path.unlink()
        if damage != "gone":
            path.write_bytes(content[: len(content) // 2] if damage == "cut" else flipped)
        if opened:
            again = pickle.loads(pickle.dumps(data))
            plain = NumberDataset(file, ["number_fourier"], disk_bytes=0, nulls="skip")
            for number in range(0, ROWS - 1, 4):
                same(again[number], plain[number])
        else:
            check(file, 1 if damage == "bit" else 4, columns=["number_fourier"])
        assert path.read_bytes() == content


def test_without_room(file, cache, caplog):
    check(file, disk_bytes=1)
    assert not files(cache) and "disk_bytes" in caplog.text

    def on_a_full_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        check(file)
        assert not files(cache)

    in_children(1, on_a_full_disk)
    shutil.rmtree(cache)
    cache.write_bytes(b"no folder")
    check(file)


@pytest.mark.parametrize(("free", "converts"), [(19 << 30, True), (1 << 30, False)])
def test_some_of_the_disk_stays_free(free, converts, file, cache, caplog, monkeypatch):
    """A gibibyte, not a share: of a large disk that would be more than anyone can spare."""
    usage = SimpleNamespace(total=252 << 30, free=free)
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda folder: usage)
    check(file)
    assert bool(files(cache)) == converts
    assert ("1024 MiB stay so" in caplog.text) != converts


def test_what_nobody_opened_makes_room(file, cache):
    check(file, columns=["number_fourier"])
    check(file)
    first = min(files(cache), key=lambda path: path.stat().st_mtime_ns)
    os.utime(first, (time.time() - 2 * storage.DAY,) * 2)
    used = sum(path.stat().st_size for path in files(cache))
    check(file, columns=["number_fourier", "number_bin"], disk_bytes=used + (1 << 20))
    assert not first.exists() and len(files(cache)) == 2


def test_rows_that_do_not_hold_together_are_not_cached(file, cache):
    table = pq.read_table(file)
    place, index = table.schema.get_field_index("number_index"), table["number_index"].to_pylist()
    index[1999] = index[1999][::-1]
    field = table.schema.field(place)
    pq.write_table(
        table.set_column(place, field, pa.array(index, field.type)), file, row_group_size=1200
    )
    data = NumberDataset(file)
    assert len(data[5]["input_ids"]) and not files(cache)
    with pytest.raises(SchemaError, match="row 1999"):
        data[1998]


def test_memory_is_a_part_of_the_row_group(tmp_path, cache):
    path = tmp_path / "large.parquet"
    batch = numtok.Tokenizer.from_pretrained(None, [FoNE(6, 4)]).encode_batch(texts()[:600])
    pq.write_table(pa.Table.from_batches([batch] * 80), path, row_group_size=1 << 20)
    POOLS.append(pa.proxy_memory_pool(pa.default_memory_pool()))
    pa.set_memory_pool(POOLS[-1])
    try:
        data = NumberDataset(path)
        assert len(data[599 + 600 * 30]["input_ids"])
    finally:
        pa.set_memory_pool(pa.default_memory_pool())
        del data
        gc.collect()
    (cached,) = files(cache)
    assert 0 < POOLS[-1].max_memory() < cached.stat().st_size / 3
