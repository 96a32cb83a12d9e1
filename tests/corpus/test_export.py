"""Exported twin files, read by a reader of its own, hold the tokens and the streams of the rows."""

import json
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
import trained
from command import ok
from input_files import read_encoded, write_texts

import numtok
from numtok.corpus.export import open_streams
from numtok.errors import OutputError
from numtok.tokenizer.layout import to_token_layout

MEGATRON = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f8", 7: "<f4", 8: "<u2"}
NEOX = MEGATRON | {6: "<f4", 7: "<f8"}
TEXTS = ["is -28.5 or 1,234", None, "", "none", "7 8 9.25", "the end 0"]

# also those that point at the command line
warnings_are_shown = pytest.mark.filterwarnings("default::UserWarning")


def read_twin(prefix, codes):
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
    pairs = zip(sizes, pointers, strict=True)
    return [np.frombuffer(values, codes[code], *pair) for pair in pairs], list(begins)


def token_rows(path):
    """Those that have tokens, with every column per token."""
    batches = (to_token_layout(batch).to_pylist() for batch in read_encoded(path))
    return [row for rows in batches for row in rows if row["input_ids"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    write_texts(folder / "in.jsonl", TEXTS * 4)
    exact = {"scale": 0.5, "keep_text": True}
    kept = {
        "xval.parquet": {"numbers": "xval,bits,fone:3,2", "dense": True, **exact},
        "compact.arrow": {"numbers": "bits", "layout": "token"},
        "wide.parquet": {"numbers": "bits:64"},
        "place.parquet": {"numbers": "place"},
        "packed.parquet": {"numbers": "xval", "pack": 16, **exact},
    }
    for name, options in kept.items():
        numtok.encode_files(folder / "in.jsonl", folder / name, **options)
    return folder


@warnings_are_shown
@pytest.mark.parametrize("to", ["megatron", "gpt-neox"])
@pytest.mark.parametrize("name", ["xval", "compact", "wide", "place", "packed"])
def test_every_stream_is_that_of_the_rows(name, to, folder, tmp_path):
    (path,) = folder.glob(f"{name}.*")
    rows, out = token_rows(path), tmp_path / "out"
    ok("export", path, "--to", to, out)
    about = json.loads(Path(f"{out}.json").read_text("utf-8"))
    tokens = sum(len(row["input_ids"]) for row in rows)
    assert (about["sequences"], about["tokens"]) == (len(rows), tokens) and len(rows) >= 4
    texts = {"number_text", "text", "seq_lengths", "seq_documents", "seq_remaining", "seq_text"}
    assert texts.isdisjoint(about["streams"]) and set(about["streams"]) | texts >= set(rows[0])
    for stream, told in about["streams"].items():
        codes = MEGATRON if to == "megatron" else NEOX
        sequences, documents = read_twin(out.parent / told["file"], codes)
        assert documents == list(range(len(rows) + 1))
        stored = "uint16" if stream == "input_ids" else told["stored"]
        assert sequences[0].dtype.name == told["stored"] == stored
        kind, shape = told["dtype"], (-1, *told["shape"])
        for values, row in zip(sequences, rows, strict=True):
            typed = values.astype(kind) if stream == "input_ids" else values.view(kind)
            expected = np.array(row[stream]).reshape(shape)
            np.testing.assert_array_equal(typed.reshape(shape), expected)


@pytest.mark.parametrize("end", ["<|endoftext|>", 0])
def test_an_end_token_stands_behind_each_document(end, folder, tmp_path):
    batches = (batch.to_pylist() for batch in read_encoded(folder / "place.parquet"))
    plain = [row for rows in batches for row in rows if row["input_ids"] is not None]
    exported = numtok.export_files(folder / "place.parquet", tmp_path / "out", end_token=end)
    # an empty document is its end token
    assert exported.sequences == len(plain) == 20 and exported.left_out == 4
    assert list(exported.files) == ["input_ids", "number_mask", "number_value", "place_value"]
    ids, masks, _, places = (read_twin(one, MEGATRON)[0] for one in exported.files.values())
    for row, one, place, mask in zip(plain, ids, places, masks, strict=True):
        assert one.tolist() == [*row["input_ids"], 0]
        assert place.tolist() == [*row["place_value"], 0]
        assert np.flatnonzero(mask).tolist() == row["number_index"]


def said(caught):
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("to", ["megatron", "gpt-neox"])
def test_documents_without_an_end_are_told(to, folder, tmp_path):
    """And how many are not written: of 24, four are empty and four null."""
    with pytest.warns(UserWarning) as caught:
        exported = numtok.export_files(folder / "place.parquet", tmp_path / "out", to=to)
    separated, left_out = said(caught)
    assert "nothing separates the documents" in separated and "end_token=" in separated
    assert left_out.startswith("empty and null documents, 8,") and "end_token=" in left_out
    assert exported.left_out == 24 - exported.sequences == 8
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))["left_out"] == 8
    with pytest.warns(UserWarning) as caught:
        numtok.export_files(folder / "place.parquet", tmp_path / "end", to=to, end_token=0)
    assert said(caught) == ["empty and null documents, 4, are not written"]


def test_documents_that_end_by_themselves_need_no_word(folder, tmp_path):
    """Packed ones; those that the tokenizer ends, as BERT's does."""
    how = {"tokenizer": trained.source("bert"), "add_special_tokens": True}
    numtok.encode_files(folder / "in.jsonl", tmp_path / "bert.parquet", **how)
    for path in (folder / "packed.parquet", tmp_path / "bert.parquet"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            numtok.export_files(path, tmp_path / f"{path.stem}_out")
        assert not any("separates" in one for one in said(caught))


def test_several_files_follow_one_another(folder, tmp_path):
    seen = []
    how = {"numbers": "place", "shards": 3, "workers": 1}
    numtok.encode_files(folder / "in.jsonl", tmp_path / "shards/", **how)
    whole, parts = folder / "place.parquet", tmp_path / "shards"
    exported = numtok.export_files(whole, tmp_path / "one", progress=seen.append)
    folders = numtok.export_files(parts, tmp_path / "two")
    for one, two in zip(exported.files.values(), folders.files.values(), strict=True):
        for suffix in (".bin", ".idx"):
            assert Path(f"{one}{suffix}").read_bytes() == Path(f"{two}{suffix}").read_bytes()
    assert seen[-1].tokens == exported.tokens == folders.tokens and seen[-1].read == seen[-1].total


def test_files_appear_whole_or_not_at_all(folder, tmp_path):
    out, mine = tmp_path / "out", tmp_path / "out_number_value.idx"
    mine.write_text("mine")
    with pytest.raises(OutputError, match=r"out_number_value\.idx exists already"):
        numtok.export_files(folder / "place.parquet", out)
    assert list(tmp_path.iterdir()) == [mine]
    numtok.export_files(folder / "place.parquet", out, overwrite=True)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    how = {"overwrite": True, "progress": lambda _: 1 / 0}
    with pytest.raises(ZeroDivisionError):
        numtok.export_files(folder / "xval.parquet", out, **how)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_sequence_has_a_limit(tmp_path):
    with (
        pytest.raises(OutputError, match="2,147,483,648 values, more than the format can tell"),
        open_streams(str(tmp_path / "a"), "megatron", {"a": np.dtype("u1")}, False) as files,
    ):
        files.write({"a": np.zeros(0, np.uint8)}, np.array([1 << 31]))
    assert list(tmp_path.iterdir()) == []
