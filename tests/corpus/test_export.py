"""Exported twin files, read by a reader of its own, hold the tokens and the streams of the rows."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from input_files import write_texts
from numtok_cli.main import cli

import numtok
from numtok.corpus.read.encoded import read_encoded
from numtok.corpus.write.indexed import open_indexed
from numtok.errors import InputError, OutputError, SchemaError, TokenizerError
from numtok.tokenizer.layout import to_token_layout

MEGATRON = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f8", 7: "<f4", 8: "<u2"}
NEOX = MEGATRON | {6: "<f4", 7: "<f8"}
TEXTS = ["is -28.5 or 1,234", None, "", "none", "7 8 9.25", "the end 0"]


def read_twin(prefix: Path, codes: dict[int, str]) -> tuple[list[np.ndarray[Any, Any]], list[int]]:
    """(the sequences, the documents' first sequences) by the description of the format, byte by
    byte.
    """
    index, values = Path(f"{prefix}.idx").read_bytes(), Path(f"{prefix}.bin").read_bytes()
    magic, version, code, count, documents = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version) == (b"MMIDIDX\x00\x00", 1)
    sizes = struct.unpack_from(f"<{count}i", index, 34)
    pointers = struct.unpack_from(f"<{count}q", index, 34 + 4 * count)
    begins = struct.unpack_from(f"<{documents}q", index, 34 + 12 * count)
    assert len(index) == 34 + 12 * count + 8 * documents
    assert sum(sizes) * np.dtype(codes[code]).itemsize == len(values)
    return [
        np.frombuffer(values, codes[code], size, pointer)
        for size, pointer in zip(sizes, pointers, strict=True)
    ], list(begins)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    write_texts(folder / "in.jsonl", TEXTS * 4)
    exact = {"scale": 0.5, "keep_text": True}
    kept: dict[str, dict[str, Any]] = {
        "xval.parquet": {"numbers": "xval,bits,fone:3,2", "dense": True, **exact},
        "compact.arrow": {"numbers": "bits", "layout": "token"},
        "wide.parquet": {"numbers": "bits:64"},
        "place.parquet": {"numbers": "place"},
        "packed.parquet": {"numbers": "xval", "pack": 16, **exact},
    }
    for name, options in kept.items():
        numtok.encode_files(folder / "in.jsonl", folder / name, **options)
    return folder


@pytest.mark.parametrize("to", ["megatron", "gpt-neox"])
@pytest.mark.parametrize(
    "name", ["xval.parquet", "compact.arrow", "wide.parquet", "place.parquet", "packed.parquet"]
)
def test_every_stream_is_that_of_the_rows(name: str, to: str, folder: Path, tmp_path: Path) -> None:
    rows = [
        row
        for batch in read_encoded(folder / name)
        for row in to_token_layout(batch).to_pylist()
        if row["input_ids"]
    ]
    assert len(rows) >= 4
    result = CliRunner().invoke(
        cli, ["export", str(folder / name), "--to", to, str(tmp_path / "sub" / "out")]
    )
    assert result.exit_code == 0, result.output
    about = json.loads((tmp_path / "sub" / "out.json").read_text("utf-8"))
    assert (about["sequences"], about["tokens"]) == (
        len(rows),
        sum(len(row["input_ids"]) for row in rows),
    )
    texts = {"number_text", "text", "seq_lengths", "seq_documents", "seq_remaining", "seq_text"}
    assert texts.isdisjoint(about["streams"]) and set(about["streams"]) | texts >= set(rows[0])
    for stream, told in about["streams"].items():
        sequences, documents = read_twin(
            tmp_path / "sub" / told["file"], MEGATRON if to == "megatron" else NEOX
        )
        assert documents == list(range(len(rows) + 1))
        stored = "uint16" if stream == "input_ids" else told["stored"]
        assert sequences[0].dtype.name == told["stored"] == stored
        for values, row in zip(sequences, rows, strict=True):
            kind = told["dtype"]
            shaped = values.astype(kind) if stream == "input_ids" else values.view(kind)
            np.testing.assert_array_equal(
                shaped.reshape(-1, *told["shape"]),
                np.array(row[stream]).reshape(-1, *told["shape"]),
            )


@pytest.mark.parametrize("end", ["<|endoftext|>", 0])
def test_an_end_token_stands_behind_each_document(
    end: str | int, folder: Path, tmp_path: Path
) -> None:
    plain = [
        row
        for batch in read_encoded(folder / "place.parquet")
        for row in batch.to_pylist()
        if row["input_ids"] is not None
    ]
    exported = numtok.export_files(folder / "place.parquet", tmp_path / "out", end_token=end)
    # an empty document is its end token
    assert exported.sequences == len(plain) == 20 and exported.left_out == 4
    assert list(exported.files) == ["input_ids", "number_mask", "number_value", "place_value"]
    ids, places, masks = (
        read_twin(Path(exported.files[name]), MEGATRON)[0]
        for name in ("input_ids", "place_value", "number_mask")
    )
    for row, one, place, mask in zip(plain, ids, places, masks, strict=True):
        assert one.tolist() == [*row["input_ids"], 0]
        assert place.tolist() == [*row["place_value"], 0]
        assert np.flatnonzero(mask).tolist() == row["number_index"]


def test_several_files_follow_one_another(folder: Path, tmp_path: Path) -> None:
    seen = []
    exported = numtok.export_files(
        [folder / "place.parquet"] * 1, tmp_path / "one", progress=seen.append
    )
    numtok.encode_files(
        folder / "in.jsonl", tmp_path / "shards/", numbers="place", shards=3, workers=1
    )
    folders = numtok.export_files(tmp_path / "shards", tmp_path / "two")
    assert folders.tokens == exported.tokens
    for one, two in zip(exported.files.values(), folders.files.values(), strict=True):
        assert [
            Path(f"{one}{suffix}").read_bytes() == Path(f"{two}{suffix}").read_bytes()
            for suffix in (".bin", ".idx")
        ] == [True, True]
    assert seen[-1].tokens == exported.tokens and seen[-1].read == seen[-1].total


SEVERAL = ["place.parquet", "packed.parquet"]
REFUSED: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ("packed", {"end_token": 0}, SchemaError, "packed.parquet: .*end token already; leave out end"),
    ("place", {"end_token": 1 << 20}, SchemaError, "end_token=1048576 is no id .* has 16003"),
    ("place", {"end_token": "<stop>"}, TokenizerError, "'<stop>' is no token"),
    (
        "place",
        {"to": "jax"},
        InputError,
        "'jax' is unknown; .* 'megatron', 'gpt-neox', 'mds', 'webdataset'",
    ),
    (SEVERAL, {}, SchemaError, r"packed.parquet: its tokenizer is not that of .*place.parquet"),
    (["in.jsonl"], {}, InputError, "neither a Parquet nor an Arrow IPC file"),
]


@pytest.mark.parametrize(("name", "options", "kind", "message"), REFUSED)
def test_what_cannot_be_exported(
    name: Any,
    options: dict[str, Any],
    kind: type[Exception],
    message: str,
    folder: Path,
    tmp_path: Path,
) -> None:
    names = name if isinstance(name, list) else [f"{name}.parquet"]
    paths = [folder / one for one in names]
    with pytest.raises(kind, match=message):
        numtok.export_files(paths, tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []


def test_files_appear_whole_or_not_at_all(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out_number_value.idx").write_text("mine")
    with pytest.raises(OutputError, match=r"out_number_value\.idx exists already"):
        numtok.export_files(folder / "place.parquet", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out_number_value.idx"]
    numtok.export_files(folder / "place.parquet", tmp_path / "out", overwrite=True)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ZeroDivisionError):
        numtok.export_files(
            folder / "xval.parquet", tmp_path / "out", overwrite=True, progress=lambda _: 1 / 0
        )  # type: ignore[arg-type,return-value]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_sequence_has_a_limit(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="2,147,483,648 values, more than the format can tell"),
        open_indexed(str(tmp_path / "a"), "uint8", "megatron", False) as file,
    ):
        file.write(np.zeros(0, np.uint8), np.array([1 << 31]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["xval.parquet", "compact.arrow", "packed.parquet"])
@pytest.mark.parametrize("to", ["mds", "webdataset"])
def test_samples_are_read_by_their_own_packages(
    to: str, name: str, folder: Path, tmp_path: Path
) -> None:
    """Each stream of each row, with its dtype and shape."""
    package = pytest.importorskip({"mds": "streaming", "webdataset": "webdataset"}[to])
    told = numtok.export_files(folder / name, tmp_path / "out", to=to)
    if to == "mds":
        read = package.LocalDataset(str(tmp_path / "out"))
        samples = [read[row] for row in range(len(read))]
    else:
        tars = sorted(map(str, (tmp_path / "out").glob("*.tar")))
        stored = package.WebDataset(tars, shardshuffle=False).decode()
        samples = [
            {key[:-4]: value for key, value in sample.items() if key.endswith(".npy")}
            for sample in stored
        ]
    rows = [
        row
        for batch in read_encoded(folder / name)
        for row in to_token_layout(batch).to_pylist()
        if row["input_ids"]
    ]
    about = json.loads((tmp_path / "out" / "numtok.json").read_text())
    assert len(samples) == len(rows) == told.sequences == about["sequences"]
    for sample, row in zip(samples, rows, strict=True):
        assert sorted(sample) == sorted(about["streams"])
        for stream, described in about["streams"].items():
            values = sample[stream]
            assert values.dtype == described["stored"]
            assert list(values.shape) == [len(row["input_ids"]), *described["shape"]]
            np.testing.assert_array_equal(values, np.array(row[stream]).reshape(values.shape))


def test_a_folder_of_samples_replaces_its_like_alone(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("webdataset")
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(OutputError, match="out exists already"):
            numtok.export_files(folder / "place.parquet", out, to="webdataset", overwrite=overwrite)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "mine.txt"]
    (out / "mine.txt").unlink()
    out.rmdir()
    for overwrite in (False, True):
        numtok.export_files(folder / "place.parquet", out, to="webdataset", overwrite=overwrite)
    assert sorted(path.name for path in out.iterdir()) == ["000000.tar", "numtok.json"]
    with pytest.raises(OutputError, match="is written on this machine"):
        numtok.export_files(folder / "place.parquet", "memory://bucket/out", to="webdataset")
