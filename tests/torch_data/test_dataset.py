"""NumberDataset and IterableNumberDataset: files of every kind, shares, order, resuming, and a real
DataLoader.
"""

import copy
import itertools
import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from input_files import write_texts
from kept import kept
from numtok_cli.main import cli

import numtok
from numtok.corpus.write.encoded import open_writer
from numtok.errors import InputError, SchemaError
from numtok.representations import ExponentBins, FloatBits, FoNE, LogFourier, XVal
from numtok.tokenizer.layout import to_token_layout

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader

from numtok_torch.data import IterableNumberDataset, NumberCollator, NumberDataset

BOTH = pytest.mark.parametrize("make", [NumberDataset, IterableNumberDataset])
TEXTS = ["It is -28.5 or 10,000", "no number", "", "7 and 0 and 1e400", "0.5"] * 4


@kept
def tokenizer(*numbers):
    return numtok.Tokenizer.from_pretrained(None, list(numbers) or None)


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


KINDS = ["parquet", "arrow", "arrow-plain", "arrow-stream", "table", "slice"]


@pytest.mark.parametrize("kind", [*KINDS, "arrow-token", "parquet-token"])
@pytest.mark.parametrize("compact", [False, True])
def test_rows_are_those_of_the_batch(kind, compact, tmp_path):
    both = [FloatBits(compact=compact), FoNE(6, 4, compact=compact)]
    tok = tokenizer(XVal(), *both, ExponentBins(), LogFourier(4))
    data = stored(kind, tok.encode_batch(TEXTS, keep_text=True), tmp_path)
    by_number = NumberDataset(data, tokenizer=tok)
    stream = IterableNumberDataset(data, tokenizer=tok.fingerprint)
    for rows in (list(by_number), list(stream)):
        assert len(rows) == len(by_number) == len(stream) == len(TEXTS)
        for text, row in zip(TEXTS, rows, strict=True):
            expected = tok.encode(text)
            assert set(row) == {field.name for field in expected.batch.schema}
            for name, found in row.items():
                assert found.dtype == expected[name].dtype
                np.testing.assert_array_equal(found, expected[name])
    assert by_number.metadata["tokenizer"] == by_number.fingerprint == tok.fingerprint


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
    for wrong in (150, -151):
        with pytest.raises(IndexError, match=str(wrong)):
            data[wrong]
    some = NumberDataset([folder / "part-2.parquet", folder / "part-0.parquet"])
    assert values(some) == [*range(100, 150), *range(50)]


def test_null_rows():
    batch = tokenizer().encode_batch(["1", None, "", "2", None])
    strict = NumberDataset(batch)
    assert len(strict) == 5
    assert len(strict[2]["input_ids"]) == 0  # an empty document is one
    with pytest.raises(SchemaError, match=r"row 4 is null.*skip"):
        strict[-1]
    skipping = NumberDataset(batch, nulls="skip")
    assert [len(skipping[number]["input_ids"]) for number in range(len(skipping))] == [1, 0, 1]
    assert [len(row["input_ids"]) for row in IterableNumberDataset(batch)] == [1, 0, 1]


def test_no_rows_at_all(tmp_path):
    batch = tokenizer(XVal(), FloatBits()).encode_batch([])
    for data in (batch, stored("parquet", batch, tmp_path)):
        assert len(NumberDataset(data)) == len(NumberDataset(data, nulls="skip")) == 0
        assert list(IterableNumberDataset(data, shuffle=True)) == []


@BOTH
def test_files_of_another_tokenizer_are_refused(make, folder, tmp_path):
    other = tokenizer(XVal(scale=2.0))
    make(folder, tokenizer=tokenizer())
    with pytest.raises(SchemaError, match="another tokenizer"):
        make(folder, tokenizer=other)
    with pytest.raises(SchemaError, match="no fingerprint"):
        make(folder, tokenizer=object())
    pq.write_table(pa.Table.from_batches([other.encode_batch(["5"])]), tmp_path / "other.parquet")
    with pytest.raises(SchemaError, match="do not belong together"):
        make([folder, tmp_path / "other.parquet"])
    pq.write_table(counted(1, 1).drop_columns("number_scaled"), tmp_path / "less.parquet")
    with pytest.raises(SchemaError, match="same columns"):
        make([folder, tmp_path / "less.parquet"])


def test_what_is_no_data_set(folder, tmp_path):
    whole = (folder / "part-0.parquet").read_bytes()
    pq.write_table(pa.table({"input_ids": [[1]]}), tmp_path / "foreign.parquet")
    (tmp_path / "short.parquet").write_bytes(whole[:100])
    (tmp_path / "text.parquet").write_text("hello")
    (tmp_path / "empty").mkdir()
    batch = tokenizer().encode_batch(["5 and 6"])
    field = batch.schema.field("number_value")
    damaged = batch.set_column(2, field, pa.array([[1.0]], field.type))
    cases = [
        (tmp_path / "none.parquet", "no such file"),
        (tmp_path / "empty", "holds no"),
        (tmp_path / "foreign.parquet", "not written by numtok"),
        (tmp_path / "short.parquet", "short.parquet"),
        (tmp_path / "text.parquet", "neither a Parquet"),
        ("s3://bucket/data", "copy it to this machine"),
        (5, "int"),
        ([], "list"),
        (damaged, "number_value.*damaged"),
    ]
    for source, message in cases:
        with pytest.raises((InputError, SchemaError), match=message):
            NumberDataset(source)[0]
    with pytest.raises(SchemaError, match="no column 'number_bits'"):
        NumberDataset(folder, columns=["number_bits"])
    (tmp_path / "damaged.parquet").write_bytes(whole[:200] + bytes(60) + whole[260:])
    with pytest.raises(InputError, match=r"damaged\.parquet"):
        list(IterableNumberDataset(tmp_path / "damaged.parquet"))


@BOTH
def test_they_can_be_pickled_and_copied(make, folder):
    data = make(folder)
    assert values(data) == list(range(150))
    for other in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data)):
        assert values(other) == list(range(150))
    assert values(pickle.loads(pickle.dumps(make(counted(9, 4))))) == list(range(9))


# --- sharing, shuffling, resuming


@settings(max_examples=examples(30))
@given(st.integers(1, 7), st.booleans(), st.integers(0, 3), st.integers(1, 5))
def test_shares_are_the_order_cut_up(world, shuffle, epoch, window):
    table = counted(40, 6)

    def share(rank, world):
        options = {"shuffle": shuffle, "window": window, "rank": rank, "world_size": world}
        data = IterableNumberDataset(table, **options)
        data.set_epoch(epoch)
        found = values(data)
        assert len(found) == len(data)
        return found

    shares, whole = [share(rank, world) for rank in range(world)], share(0, 1)
    assert sorted(whole) == list(range(40))
    assert list(itertools.chain(*shares)) == whole
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_epochs_and_seeds_have_their_own_order(folder):
    data = IterableNumberDataset(folder, shuffle=True, seed=3)
    first = values(data)
    assert values(data) == first == values(IterableNumberDataset(folder, shuffle=True, seed=3))
    data.set_epoch(1)
    assert sorted(values(data)) == sorted(first) == list(range(150))
    assert values(data) != first != values(IterableNumberDataset(folder, shuffle=True, seed=4))
    assert np.abs(np.diff(first)).mean() > 20  # not merely within the row groups of 8


def test_chunks_and_windows_are_shuffled_each_by_itself():
    data = IterableNumberDataset(counted(80, 8), shuffle=True, window=1)
    orders = []
    for epoch in range(2):
        data.set_epoch(epoch)
        windows = np.array(values(data)).reshape(10, 8)  # one chunk each
        assert (windows // 8 == windows[:, :1] // 8).all()
        orders.append((windows[:, 0] // 8).tolist())
        assert len({tuple(window % 8) for window in windows}) > 5
    assert orders[0] != orders[1]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("stop", [0, 17, 75])
def test_resuming(shuffle, stop, folder):
    def make():
        return IterableNumberDataset(folder, shuffle=shuffle, rank=1, world_size=2)

    running = make()
    running.set_epoch(2)
    rows = iter(running)
    passed = values(next(rows) for _ in range(stop))
    state = json.loads(json.dumps(running.state_dict()))
    rest = values(rows)
    resumed = make()
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state and resumed.epoch == 2
    resumed.set_epoch(2)  # a loop over epochs sets it again
    assert values(resumed) == rest
    assert values(resumed) == passed + rest  # the next time, all of it
    resumed.load_state_dict(state)
    resumed.set_epoch(3)
    assert len(values(resumed)) == 75


def test_resuming_reads_only_what_is_left(folder):
    data = IterableNumberDataset(folder, shuffle=True, window=1)
    for _ in itertools.islice(iter(data), 140):
        pass
    state = data.state_dict()
    before = data._storage.read.cache_info().misses
    data.load_state_dict(state)
    assert len(values(data)) == 10 and data._storage.read.cache_info().misses - before <= 3


def test_states_that_do_not_belong(folder):
    state = IterableNumberDataset(folder, shuffle=True).state_dict()
    for source, shuffle, known, message in (
        (folder, False, state, "shuffle"),
        (counted(1, 1), True, state, "rows"),
        (folder, True, {}, "version"),
    ):
        with pytest.raises(SchemaError, match=message):
            IterableNumberDataset(source, shuffle=shuffle).load_state_dict(known)
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
def test_options_of_the_stream(options, message, folder):
    with pytest.raises(SchemaError, match=message):
        IterableNumberDataset(folder, **options)


def read_share(rank, folder, meeting):
    """The share of one of two ranks, and the same again after a pickle."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}/rendezvous", rank=rank, world_size=2
    )
    data = IterableNumberDataset(folder, shuffle=True)
    rows = values(data)
    packed = pickle.dumps(data)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    # a spawned worker does not know of torch.distributed; the data set takes the rank along
    (meeting / f"rank{rank}").write_bytes(pickle.dumps((rows, values(pickle.loads(packed)))))


def test_ranks_of_torch_distributed(folder, tmp_path):
    # raises what a process raises
    torch.multiprocessing.start_processes(
        read_share, (folder, tmp_path), nprocs=2, start_method="fork"
    )
    shares = [pickle.loads((tmp_path / f"rank{rank}").read_bytes()) for rank in range(2)]
    assert sorted(shares[0][0] + shares[1][0]) == list(range(150))
    assert all(len(rows) == 75 and unpacked == rows for rows, unpacked in shares)


# --- through a DataLoader


@BOTH
@pytest.mark.parametrize("workers", [0, 2])
def test_workers_share_the_rows(make, workers, folder):
    data = make(folder)
    collate = NumberCollator.from_schema(data.schema, 0, objective="causal")
    loader = DataLoader(data, batch_size=4, num_workers=workers, collate_fn=collate)
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


@pytest.mark.parametrize("block_size", [None, 3])
@BOTH
def test_torchs_own_batches_are_refused_by_name(make, block_size):
    data = make(tokenizer().encode_batch(["5 and 6", "7"]), block_size=block_size)
    with pytest.raises(SchemaError, match=r"collate_fn=NumberCollator\.from_schema"):
        next(iter(DataLoader(data, batch_size=2)))


def test_command_line_to_a_spawned_worker(tmp_path):
    """`numtok encode`, then a spawned worker with pinned memory where there is a GPU: every value
    arrives, bit for bit.
    """
    lines = [f"row {n}: {n}.5 and {-n} of 1e{n % 38}" for n in range(200)]
    given, encoded = write_texts(tmp_path / "in.jsonl", lines), tmp_path / "out.parquet"
    arguments = ["encode", str(given), "-o", str(encoded), "--numbers", "xval:log,bits", "--quiet"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    data = IterableNumberDataset(encoded)
    collate = NumberCollator.from_schema(data.schema, 0, objective="causal")
    spawned = {"num_workers": 1, "multiprocessing_context": "spawn"}
    pinned = {"pin_memory": torch.cuda.is_available()}
    found = []
    for batch in DataLoader(data, batch_size=8, collate_fn=collate, **spawned, **pinned):
        assert batch["number_bits"].shape == batch["input_ids"].shape  # the compact form
        found += batch["number_value"][batch["number_mask"]].tolist()
    expected = [(n, n + 0.5, -n, float(f"1e{n % 38}")) for n in range(200)]
    assert sorted(found) == sorted(itertools.chain(*expected))
