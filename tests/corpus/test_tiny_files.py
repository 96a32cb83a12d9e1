"""Many tiny files: as quick as their rows in one file, nearly; every row, every error in its place."""

import json
import time

import pyarrow.json
import pyarrow.parquet as pq
import pytest

import numtok
from numtok.errors import NumtokError


def write_tiny(folder, count, row=lambda number: {"id": number, "text": f"item {number} of 5.5"}):
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:05}.jsonl").write_text(json.dumps(row(number)) + "\n")
    return folder


@pytest.mark.parametrize("call", ["encode", "folder", "stats"])
def test_a_tiny_file_takes_some_times_what_pyarrow_takes_to_read_it(call, tmp_path):
    """A millisecond or less on an idle machine, some six times pyarrow's share."""
    few, many = write_tiny(tmp_path / "few", 2), write_tiny(tmp_path / "many", 500)

    def seconds(inputs, output):
        started = time.process_time()
        if call == "stats":
            numtok.corpus_stats(inputs, workers=1)
        else:
            out = f"{tmp_path}/{output}{'/' if call == 'folder' else '.parquet'}"
            numtok.encode_files(inputs, out, workers=1)
        return time.process_time() - started

    def seconds_of_pyarrow():
        started = time.process_time()
        for path in many.iterdir():
            pyarrow.json.read_json(path)
        return time.process_time() - started

    seconds(few, "warm")
    seconds_of_pyarrow()
    assert seconds(many, "out") < 15 * seconds_of_pyarrow()


@pytest.mark.parametrize(
    ("output", "options"),
    [
        ("one.parquet", {}),
        ("folder/", {"pack": 64}),
        ("one.arrow", {"layout": "token"}),
    ],
)
def test_every_row_is_there_with_what_is_kept(output, options, tmp_path):
    count = 300
    inputs = write_tiny(tmp_path / "in", count)
    (inputs / "00007.jsonl").write_text("")
    (inputs / "00008.jsonl").write_text('{"id": 8, "text": null}\n')
    keep = {} if "pack" in options else {"keep_columns": ["id"]}
    out = f"{tmp_path}/{output}"
    summary = numtok.encode_files(inputs, out, keep_text=True, scale=1.0, **keep, **options)
    assert summary.documents == count - 1 and summary.without_text == 1
    assert summary.first_without_text == f"{inputs}/00008.jsonl, row 1"
    numtok.decode_files(out, tmp_path / "back.jsonl")
    texts = [json.loads(line)["text"] for line in (tmp_path / "back.jsonl").open()]
    expected = [f"item {number} of 5.5" for number in range(count) if number not in (7, 8)]
    found = [text for text in texts if text]
    assert found == expected
    if keep and output == "one.parquet":
        ids = pq.read_table(out)["id"].to_pylist()
        assert sorted(ids) == [number for number in range(count) if number != 7]


def test_the_first_error_names_its_file_and_row(tmp_path):
    """Be it of a document or of the file behind it."""
    inputs = write_tiny(tmp_path / "in", 40)
    (inputs / "00018.jsonl").write_text("no json\n")
    beyond = '{"text": "fine 1"}\n{"text": "1e60"}\n'
    for content, place in ((beyond, "00017.jsonl, row 2: "), (beyond[:19], "00018.jsonl:1")):
        (inputs / "00017.jsonl").write_text(content)
        with pytest.raises(NumtokError) as caught:
            numtok.encode_files(inputs, tmp_path / "o.parquet", numbers="bits", overflow="error")
        assert str(caught.value).startswith(f"{inputs}/{place}")
