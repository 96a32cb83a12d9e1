"""Rows at random from Parquet: the Arrow files in the user's cache folder give the rows of the file,
whatever becomes of them.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import pickle
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numtok
from numtok.corpus.write.encoded import open_writer
from numtok.errors import InputError, SchemaError
from numtok.representations import ExponentBins, FloatBits, FoNE, LogFourier, PlaceValue, XVal

pytest.importorskip("torch")
from torch.utils.data import DataLoader

from numtok_torch.data import IterableNumberDataset, NumberCollator, NumberDataset, storage

ROWS = 2400
POOLS: list[
    pa.MemoryPool
] = []  # that are never freed, as something may have been allocated from them
EVERY = [XVal(), FloatBits(), FoNE(6, 4), ExponentBins(), LogFourier(4)]


def texts(start: int = 0) -> list[str | None]:
    """Documents of up to 40 numbers, some empty, one null; document k begins with number k."""
    values = np.random.default_rng(start).normal(scale=1000, size=(ROWS, 40)).round(4)
    made: list[str | None] = [
        " and ".join([str(start + row), *map(repr, values[row, : row % 40].tolist())])
        if row % 9
        else ""
        for row in range(ROWS)
    ]
    made[700] = None
    return made


def write(
    path: Path, numbers: list[Any], start: int = 0, group_bytes: int = 1 << 22
) -> pa.RecordBatch:
    batch = numtok.Tokenizer.from_pretrained(None, numbers).encode_batch(
        texts(start), keep_text=True
    )
    with open_writer(path, batch.schema, row_group_bytes=group_bytes, overwrite=True) as writer:
        writer.write(batch)
    return batch


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several row groups, each of several pieces, with the columns of five representations."""
    path = tmp_path_factory.mktemp("encoded") / "data.parquet"
    write(path, EVERY)
    return path


@pytest.fixture
def file(original: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copy2(original, tmp_path))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rows"


def same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    return list(found) == list(expected) and all(
        found[name] == values
        if isinstance(values, list)
        else found[name].dtype == values.dtype
        and np.array_equal(found[name], values, equal_nan=values.dtype.kind == "f")
        for name, values in expected.items()
    )


def check(path: Path, step: int = 11, **options: Any) -> NumberDataset:
    """One of ``step`` rows, in a random order, is the one that is read without a cache."""
    plain = NumberDataset(path, nulls="skip", **options | {"disk_bytes": 0})
    cached = NumberDataset(path, nulls="skip", **options)
    assert len(plain) == len(cached) > 0
    for number in np.random.default_rng(0).permutation(len(cached))[::step].tolist():
        assert same(cached[number], plain[number]), number
    return cached


def files(cache: Path) -> set[Path]:
    return set(cache.glob("*.arrow"))


def in_children(count: int, work: Callable[[], None]) -> None:
    """In other processes, all at the same time."""
    children = [multiprocessing.get_context("fork").Process(target=work) for _ in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * count


@pytest.mark.parametrize(
    "columns", [None, ["number_bits", "number_text", "number_fourier"], ["number_fourier"]]
)
def test_rows_are_those_of_the_file(columns: list[str] | None, file: Path, cache: Path) -> None:
    data = check(file, 1, columns=columns)
    assert len(files(cache)) == 1
    assert len(data._storage.rows) > 2 * pq.read_metadata(file).num_row_groups > 2
    assert same(pickle.loads(pickle.dumps(data))[7], data[7])
    with pytest.raises(SchemaError, match="row 700 is null"):
        NumberDataset(file, columns=columns)[700]


@pytest.mark.parametrize(
    "options",
    [{}, {"block_size": 50}, {"block_size": 700, "separator": 5, "separate": False}],
)
@pytest.mark.parametrize("numbers", [EVERY, [PlaceValue()]])
def test_blocks_and_values_for_each_token(
    numbers: list[Any], options: dict[str, Any], tmp_path: Path, cache: Path
) -> None:
    write(tmp_path / "data.parquet", numbers)
    check(tmp_path / "data.parquet", **options)
    assert files(cache)


def test_what_is_read_as_it_is(
    file: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, with small row groups, and where the cache is switched off."""
    groups = pq.read_metadata(file).num_row_groups
    assert len(IterableNumberDataset(file, shuffle=True)._storage.rows) == groups
    write(tmp_path / "small.parquet", EVERY, group_bytes=1 << 18)
    check(tmp_path / "small.parquet")
    assert len(NumberDataset(file, disk_bytes=0)[1]["input_ids"])
    monkeypatch.setenv("NUMTOK_CACHE", "0")
    assert len(NumberDataset(file)[1]["input_ids"])
    assert not cache.exists()


def test_another_process_reads_what_is_cached(
    file: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = NumberDataset(file, nulls="skip", disk_bytes=0)
    expected = [plain[number] for number in range(ROWS - 1)]
    assert caplog.text == ""
    in_children(1, lambda: check(file) and None)
    before = file.stat()
    with open(file, "r+b") as opened:
        opened.seek(4)
        opened.write(bytes(100_000))  # of the pages
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # no trace but the change itself
    with caplog.at_level(logging.WARNING, "numtok"):
        data = NumberDataset(file)
    assert caplog.text == ""  # nothing is converted any more
    assert all(same(data[number + (number >= 700)], row) for number, row in enumerate(expected))
    with pytest.raises(InputError):
        NumberDataset(file, disk_bytes=0)[0]


def test_a_changed_file_is_converted_anew(
    file: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = check(file)
    assert str(cache) in caplog.text
    assert "NUMTOK_CACHE" in caplog.text
    before = files(cache)
    write(file, EVERY, start=5000)
    assert opened[1]["number_value"][0] == 1  # what it was when it was opened
    assert check(file)[1]["number_value"][0] == 5001
    assert before < files(cache)
    for path in files(cache):
        path.unlink()
    with pytest.raises(InputError, match="was changed"):
        pickle.loads(pickle.dumps(opened))[1]


@pytest.mark.parametrize("damage", ["bit", "footer", "head", "cut", "empty", "gone"])
@pytest.mark.parametrize("opened", [False, True])
def test_damage_of_what_is_cached_is_made_good(
    damage: str, opened: bool, file: Path, cache: Path
) -> None:
    columns = ["number_fourier"]
    data = check(file, columns=columns)
    (path,) = files(cache)
    content = path.read_bytes()
    at = {"bit": len(content) // 2, "footer": len(content) - 9, "head": 3}.get(damage, 0)
    cut = {"cut": content[: len(content) // 2], "empty": b""}
    path.write_bytes(cut.get(damage, content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]))
    if damage == "gone":
        path.unlink()
    if opened:
        data = pickle.loads(pickle.dumps(data))
        plain = NumberDataset(file, columns, disk_bytes=0, nulls="skip")
        assert all(same(data[number], plain[number]) for number in range(0, ROWS - 1, 4))
    else:
        check(file, 1 if damage == "bit" else 4, columns=columns)  # one bit is of one row
    assert path.read_bytes() == content


def test_a_file_cut_short_below_an_open_map(file: Path, cache: Path) -> None:
    data = check(file, columns=["number_fourier"])
    (path,) = files(cache)
    os.truncate(path, path.stat().st_size // 2)
    plain = NumberDataset(file, ["number_fourier"], disk_bytes=0, nulls="skip")
    assert all(same(data[number], plain[number]) for number in range(0, ROWS - 1, 4))


def test_many_at_once(file: Path, cache: Path) -> None:
    in_children(3, lambda: check(file) and None)
    assert {path.name for path in cache.iterdir()} == {"lock", *(p.name for p in files(cache))}
    data = NumberDataset(file, nulls="skip")
    loader = DataLoader(
        data,
        100,
        shuffle=True,
        num_workers=2,
        collate_fn=NumberCollator.from_schema(data.schema, 0, objective=None),
    )
    assert sum(int(batch["number_mask"].sum()) for batch in loader) == sum(
        len(data[number]["number_index"]) for number in range(len(data))
    )


def test_without_room(file: Path, cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    check(file, disk_bytes=1)
    assert not files(cache)
    assert "disk_bytes" in caplog.text

    def on_a_full_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        check(file)
        assert not files(cache)

    in_children(1, on_a_full_disk)
    shutil.rmtree(cache)
    cache.write_bytes(b"no folder")
    check(file)


def test_what_nobody_opened_makes_room(file: Path, cache: Path) -> None:
    check(file, columns=["number_fourier"])
    check(file)
    first = min(files(cache), key=lambda path: path.stat().st_mtime_ns)
    os.utime(first, (time.time() - 2 * storage.DAY,) * 2)
    used = sum(path.stat().st_size for path in files(cache))
    check(file, columns=["number_fourier", "number_bin"], disk_bytes=used + (1 << 20))
    assert not first.exists()
    assert len(files(cache)) == 2


def test_rows_that_do_not_hold_together_are_not_cached(file: Path, cache: Path) -> None:
    table = pq.read_table(file)
    index = table["number_index"].to_pylist()
    index[1999] = index[1999][::-1]
    place = table.schema.get_field_index("number_index")
    table = table.set_column(
        place, table.schema.field(place), pa.array(index, table.schema.field(place).type)
    )
    pq.write_table(table, file, row_group_size=1200)
    data = NumberDataset(file)
    assert len(data[5]["input_ids"])
    for number in (1998, 1999):
        with pytest.raises(SchemaError, match="row 1999"):
            data[number]
    assert not files(cache)


def test_memory_is_a_part_of_the_row_group(tmp_path: Path, cache: Path) -> None:
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
