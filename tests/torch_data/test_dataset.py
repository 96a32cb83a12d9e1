"""NumberDataset and IterableNumberDataset: files of every kind, shares, order, resuming, and a real
DataLoader.
"""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import kept
from torch_ranks import read_share, values

import numtok
from numtok.corpus.write.encoded import open_writer
from numtok.errors import InputError, SchemaError
from numtok.representations import ExponentBins, FloatBits, FoNE, LogFourier, XVal

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader

from numtok_torch.data import IterableNumberDataset, NumberCollator, NumberDataset
from numtok_torch.data.storage import Storage

TEXTS = ["It is -28.5 or 10,000", "no number", "", "7 and 0 and 1e400", "0.5"] * 4
EVERY = [XVal(), FloatBits(), FoNE(6, 4), ExponentBins(), LogFourier(4)]


def numbered(count: int, start: int = 0) -> list[str]:
    """Documents that say which they are."""
    return [f"document {number} of many" for number in range(start, start + count)]


@kept
def tokenizer(*numbers: Any) -> numtok.Tokenizer:
    return numtok.Tokenizer.from_pretrained(None, list(numbers) or None)


@pytest.fixture(scope="module")
def xval() -> numtok.Tokenizer:
    return tokenizer(XVal())


@pytest.fixture(scope="module")
def folder(xval: numtok.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three Parquet files of 50 documents each, number 0 to 149, in row groups of 8 rows."""
    made = tmp_path_factory.mktemp("encoded")
    for part in range(3):
        table = pa.Table.from_batches([xval.encode_batch(numbered(50, 50 * part))])
        pq.write_table(table, made / f"part-{part}.parquet", row_group_size=8)
    (made / ".hidden.parquet").write_bytes(b"not data")
    (made / "notes.txt").write_text("not data")
    return made


# --- datasets
# -------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["parquet", "arrow", "arrow-plain", "stream", "batch", "table", "slice"]
)
@pytest.mark.parametrize("compact", [False, True])
def test_rows_are_those_of_the_batch(kind: str, compact: bool, tmp_path: Path) -> None:
    tok = tokenizer(
        XVal(),
        FloatBits(compact=compact),
        FoNE(6, 4, compact=compact),
        ExponentBins(),
        LogFourier(4),
    )
    batch = tok.encode_batch(TEXTS, keep_text=True)
    data: Any = batch
    if kind in ("parquet", "arrow", "arrow-plain"):
        data = tmp_path / f"data.{kind.split('-')[0]}"
        with open_writer(
            data, batch.schema, compression=None if kind == "arrow-plain" else "zstd"
        ) as writer:
            writer.write(batch.slice(0, 7))
            writer.write(batch.slice(7))
    elif kind == "stream":
        data = tmp_path / "data.arrow"
        with pa.ipc.new_stream(data, batch.schema) as stream:
            stream.write_batch(batch.slice(0, 7))
            stream.write_batch(batch.slice(7))
    elif kind == "table":
        data = pa.Table.from_batches([batch.slice(0, 3), batch.slice(3)])
    elif kind == "slice":
        data = pa.concat_batches([batch, batch]).slice(len(TEXTS), len(TEXTS))
    for dataset in (
        NumberDataset(data, tokenizer=tok),
        IterableNumberDataset(data, tokenizer=tok.fingerprint),
    ):
        rows = (
            list(dataset)
            if isinstance(dataset, IterableNumberDataset)
            else [dataset[number] for number in range(len(dataset))]
        )
        assert len(rows) == len(dataset) == len(TEXTS)
        assert dataset.metadata["tokenizer"] == dataset.fingerprint == tok.fingerprint
        for text, row in zip(TEXTS, rows, strict=True):
            expected = tok.encode(text)
            assert set(row) == {field.name for field in expected.batch.schema}
            for name, values_ in row.items():
                assert values_.dtype == expected[name].dtype
                np.testing.assert_array_equal(values_, expected[name])


def test_texts_come_if_they_are_named() -> None:
    batch = tokenizer().encode_batch(["5 and 07"], keep_text=True)
    row = NumberDataset(batch, columns=["number_text", "number_scaled"])[0]
    assert set(row) == {"input_ids", "number_index", "number_text", "number_scaled"}
    assert row["number_text"] == ["5", "07"]
    assert (
        NumberCollator(0, objective=None)([row])["number_scaled"].shape
        == row["input_ids"][None].shape
    )


def test_map_style(folder: Path) -> None:
    data = NumberDataset(folder)
    assert len(data) == 150
    assert values(data[number] for number in (0, 149, -1, -150, 49, 50)) == [0, 149, 149, 0, 49, 50]
    assert values(data.__getitems__([120, 3, 120, 4])) == [120, 3, 120, 4]
    for wrong in (150, -151):
        with pytest.raises(IndexError, match=str(wrong)):
            data[wrong]
    assert values(NumberDataset([folder / "part-2.parquet", folder / "part-0.parquet"])) == [
        *range(100, 150),
        *range(50),
    ]


def test_only_some_chunks_are_kept(folder: Path) -> None:
    storage = Storage(folder, None, cache_bytes=1)
    for number in (0, 5, 0):
        storage.read(number)
        assert list(storage._cache) == [number]
    storage = Storage(folder, None, cache_bytes=1 << 30)
    assert storage.read(0) is storage.read(0)


def test_null_rows() -> None:
    batch = tokenizer().encode_batch(["1", None, "", "2", None])
    strict = NumberDataset(batch)
    assert len(strict) == 5
    assert len(strict[2]["input_ids"]) == 0  # an empty document is one
    with pytest.raises(SchemaError, match=r"row 4 is null.*skip"):
        strict[-1]
    skipping = NumberDataset(batch, nulls="skip")
    assert [len(skipping[number]["input_ids"]) for number in range(len(skipping))] == [1, 0, 1]
    assert [len(row["input_ids"]) for row in IterableNumberDataset(batch)] == [1, 0, 1]


def test_no_rows_at_all(tmp_path: Path) -> None:
    batch = tokenizer(*EVERY).encode_batch([])
    with open_writer(tmp_path / "empty.parquet", batch.schema) as writer:
        writer.write(batch)
    for data in (batch, tmp_path / "empty.parquet"):
        assert len(NumberDataset(data)) == len(NumberDataset(data, nulls="skip")) == 0
        assert list(IterableNumberDataset(data, shuffle=True)) == []


def test_files_of_another_tokenizer_are_refused(
    folder: Path, tmp_path: Path, xval: numtok.Tokenizer
) -> None:
    other = tokenizer(XVal(scale=2.0))
    for make in (NumberDataset, IterableNumberDataset):
        make(folder, tokenizer=xval)
        with pytest.raises(SchemaError, match="another tokenizer"):
            make(folder, tokenizer=other)
    with pytest.raises(SchemaError, match="no fingerprint"):
        NumberDataset(folder, tokenizer=object())
    pq.write_table(pa.Table.from_batches([other.encode_batch(["5"])]), tmp_path / "other.parquet")
    with pytest.raises(SchemaError, match="do not belong together"):
        NumberDataset([folder, tmp_path / "other.parquet"])
    pq.write_table(
        pa.Table.from_batches([xval.encode_batch(["5"])]).drop_columns("number_scaled"),
        tmp_path / "less.parquet",
    )
    with pytest.raises(SchemaError, match="same columns"):
        NumberDataset([folder, tmp_path / "less.parquet"])


def test_what_is_no_data_set(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "part-0.parquet").read_bytes()
    pq.write_table(pa.table({"input_ids": [[1]]}), tmp_path / "foreign.parquet")
    (tmp_path / "short.parquet").write_bytes(whole[:100])
    (tmp_path / "text.parquet").write_text("hello")
    (tmp_path / "empty").mkdir()
    cases: list[tuple[Any, str]] = [
        (tmp_path / "none.parquet", "no such file"),
        (tmp_path / "empty", "holds no"),
        (tmp_path / "foreign.parquet", "not written by numtok"),
        (tmp_path / "short.parquet", "short.parquet"),
        (tmp_path / "text.parquet", "neither a Parquet"),
        (5, "int"),
        ([], "list"),
    ]
    for source, message in cases:
        with pytest.raises((InputError, SchemaError), match=message):
            NumberDataset(source)
    with pytest.raises(SchemaError, match="no column 'number_bits'"):
        NumberDataset(folder, columns=["number_bits"])
    damaged = bytearray(whole)
    damaged[200:260] = bytes(60)
    (tmp_path / "damaged.parquet").write_bytes(damaged)
    with pytest.raises(InputError, match=r"damaged\.parquet"):
        list(IterableNumberDataset(tmp_path / "damaged.parquet"))


def test_columns_that_disagree_are_damage(xval: numtok.Tokenizer) -> None:
    batch = xval.encode_batch(["5 and 6"])
    wrong = batch.set_column(
        2, batch.schema.field(2), pa.array([[1.0]], batch.schema.field(2).type)
    )
    with pytest.raises(SchemaError, match=r"number_value.*damaged"):
        NumberDataset(wrong)[0]


@pytest.mark.parametrize("make", [NumberDataset, IterableNumberDataset])
def test_datasets_can_be_pickled_and_copied(make: Any, folder: Path) -> None:
    data = make(folder)
    before = values(data)
    assert (
        values(pickle.loads(pickle.dumps(data)))
        == values(copy.deepcopy(data))
        == before
        == list(range(150))
    )
    memory = make(tokenizer(*EVERY).encode_batch(TEXTS))
    assert len(list(pickle.loads(pickle.dumps(memory)))) == len(TEXTS)


# --- sharing, shuffling, resuming
# -----------------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.integers(1, 7), st.booleans(), st.integers(0, 3), st.integers(1, 5))
def test_shares_are_the_order_cut_up(world: int, shuffle: bool, epoch: int, window: int) -> None:
    batch = tokenizer().encode_batch([str(number) for number in range(40)])
    table = pa.Table.from_batches([batch.slice(at, 6) for at in range(0, 40, 6)])

    def share(rank: int, world: int) -> list[int]:
        data = IterableNumberDataset(
            table, shuffle=shuffle, window=window, rank=rank, world_size=world
        )
        data.set_epoch(epoch)
        found = values(data)
        assert len(found) == len(data)
        return found

    shares = [share(rank, world) for rank in range(world)]
    assert list(itertools.chain(*shares)) == share(0, 1)
    assert sorted(list(itertools.chain(*shares))) == list(range(40))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_epochs_and_seeds_have_their_own_order(folder: Path) -> None:
    data = IterableNumberDataset(folder, shuffle=True, seed=3)
    first = values(data)
    assert first != list(range(150))
    assert values(data) == first == values(IterableNumberDataset(folder, shuffle=True, seed=3))
    data.set_epoch(1)
    assert sorted(values(data)) == sorted(first)
    assert values(data) != first
    assert values(IterableNumberDataset(folder, shuffle=True, seed=4)) != first
    assert np.abs(np.diff(first)).mean() > 20  # not merely within the row groups of 8


def test_chunks_and_windows_are_shuffled_each_by_itself() -> None:
    batch = tokenizer().encode_batch([str(number) for number in range(80)])
    data = IterableNumberDataset(
        pa.Table.from_batches([batch.slice(at, 8) for at in range(0, 80, 8)]),
        shuffle=True,
        window=1,
    )
    orders = []
    for epoch in range(2):
        data.set_epoch(epoch)
        windows = np.array(values(data)).reshape(10, 8)  # one chunk each
        assert (windows // 8 == windows[:, :1] // 8).all()
        orders.append((windows[:, 0] // 8).tolist())
        assert len({tuple(window % 8) for window in windows}) > 5
    assert orders[0] != orders[1]


def test_even_shares() -> None:
    batch = tokenizer().encode_batch([str(number) for number in range(11)])
    shares = [
        values(IterableNumberDataset(batch, rank=rank, world_size=4, even=True))
        for rank in range(4)
    ]
    assert [len(share) for share in shares] == [2] * 4
    assert len(set(list(itertools.chain(*shares)))) == 8


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("stop", [0, 1, 17, 74, 75])
def test_resuming(shuffle: bool, stop: int, folder: Path) -> None:
    def make() -> IterableNumberDataset:
        return IterableNumberDataset(folder, shuffle=shuffle, rank=1, world_size=2)

    running = make()
    running.set_epoch(2)
    rows = iter(running)
    passed = values(next(rows) for _ in range(stop))
    state = json.loads(json.dumps(running.state_dict()))
    rest = values(rows)
    resumed = make()
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    assert resumed.epoch == 2
    resumed.set_epoch(2)  # a loop over epochs sets it again
    assert values(resumed) == rest
    assert values(resumed) == passed + rest  # the next time, all of it
    resumed.load_state_dict(state)
    resumed.set_epoch(3)
    assert len(values(resumed)) == 75


def test_resuming_reads_only_what_is_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = IterableNumberDataset(folder, shuffle=True, window=1)
    rows = iter(data)
    for _ in range(140):
        next(rows)
    state, read = data.state_dict(), []
    original = Storage.read
    monkeypatch.setattr(
        Storage, "read", lambda self, number: read.append(number) or original(self, number)
    )
    data.load_state_dict(state)
    assert len(values(data)) == 10
    assert len(read) <= 3


def test_states_that_do_not_belong(folder: Path, xval: numtok.Tokenizer) -> None:
    state = IterableNumberDataset(folder, shuffle=True).state_dict()
    with pytest.raises(SchemaError, match="shuffle"):
        IterableNumberDataset(folder).load_state_dict(state)
    with pytest.raises(SchemaError, match="rows"):
        IterableNumberDataset(xval.encode_batch(["5"]), shuffle=True).load_state_dict(state)
    with pytest.raises(SchemaError, match="version"):
        IterableNumberDataset(folder, shuffle=True).load_state_dict({})
    other = IterableNumberDataset(folder, shuffle=True, rank=0, world_size=2)
    other.load_state_dict(state)
    with pytest.raises(SchemaError, match="share 0 of 1"):
        iter(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "together"),
        ({"rank": 2, "world_size": 2}, "rank=2"),
        ({"window": 0}, "window"),
        ({"seed": -1}, "seed"),
    ],
)
def test_iterable_options(options: dict[str, Any], message: str, folder: Path) -> None:
    with pytest.raises(SchemaError, match=message):
        IterableNumberDataset(folder, **options)


def test_ranks_of_torch_distributed(folder: Path, tmp_path: Path) -> None:
    torch.multiprocessing.start_processes(
        read_share, (str(folder), str(tmp_path)), nprocs=2, start_method="fork"
    )  # raises what a process raises
    shares = [pickle.loads((tmp_path / f"rank{rank}").read_bytes()) for rank in range(2)]
    assert sorted(shares[0][0] + shares[1][0]) == list(range(150))
    for rows, unpacked in shares:
        assert len(rows) == 75
        assert unpacked == rows


# --- through a DataLoader
# -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_workers_share_the_rows(workers: int, folder: Path) -> None:
    data = IterableNumberDataset(folder, shuffle=True)
    loader = DataLoader(
        data,
        batch_size=4,
        num_workers=workers,
        collate_fn=NumberCollator.from_schema(data.schema, 0, objective="causal"),
    )
    found = [batch["number_value"][batch["number_mask"]] for batch in loader]
    assert sorted(torch.cat(found).int().tolist()) == list(range(150))


def test_workers_that_stay_see_the_next_epoch(folder: Path) -> None:
    data = IterableNumberDataset(folder, shuffle=True)
    loader = DataLoader(data, batch_size=None, num_workers=1, persistent_workers=True)
    first = values(loader)
    data.set_epoch(1)
    second = values(loader)
    assert sorted(first) == sorted(second) == list(range(150))
    assert first != second
    data.set_epoch(0)
    assert values(loader) == first


def test_batches_of_a_map_style_loader(folder: Path) -> None:
    data = NumberDataset(folder)
    loader = DataLoader(
        data,
        batch_size=16,
        shuffle=True,
        collate_fn=NumberCollator.from_schema(data.schema, 0, objective=None),
        num_workers=2,
    )
    found = [batch["number_value"][batch["number_mask"]] for batch in loader]
    assert sorted(torch.cat(found).int().tolist()) == list(range(150))


def test_a_batch_asks_for_each_chunk_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And for its file, which takes as long as a row."""
    data, asked = NumberDataset(folder), []
    numbers = [17, 149, 16, 3, 16]
    expected = [data[number]["input_ids"].tolist() for number in numbers]
    own = Storage.read
    monkeypatch.setattr(
        Storage, "read", lambda storage, number: asked.append(number) or own(storage, number)
    )
    assert [row["input_ids"].tolist() for row in data.__getitems__(numbers)] == expected
    assert len(asked) == len(set(asked)) > 1


def test_command_line_to_a_spawned_worker(tmp_path: Path) -> None:
    """`numtok encode`, then a spawned worker with pinned memory where there is a GPU: every value
    arrives, bit for bit.
    """
    from numtok_cli.main import cli

    lines = [
        json.dumps({"text": f"row {number}: {number}.5 and {-number} of 1e{number % 38}"})
        for number in range(200)
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    arguments = [
        "encode",
        str(tmp_path / "in.jsonl"),
        "-o",
        str(tmp_path / "out.parquet"),
        "--numbers",
        "xval,bits",
        "--quiet",
    ]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    data = IterableNumberDataset(tmp_path / "out.parquet")
    loader = DataLoader(
        data,
        batch_size=8,
        num_workers=1,
        multiprocessing_context="spawn",
        pin_memory=torch.cuda.is_available(),
        collate_fn=NumberCollator.from_schema(data.schema, 0, objective="causal"),
    )
    found: list[float] = []
    for batch in loader:
        assert batch["number_bits"].shape == batch["input_ids"].shape  # the compact form
        assert batch["number_mask"].sum() == 4 * len(batch["input_ids"])
        found += batch["number_value"][batch["number_mask"]].tolist()
    assert sorted(found) == sorted(
        value
        for number in range(200)
        for value in (number, number + 0.5, -number, float(f"1e{number % 38}"))
    )
