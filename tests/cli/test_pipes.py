"""Standard output as the output of ``numtok encode``: what ``jq``, ``head`` and programs that read
Arrow are given.
"""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from numtok_cli.main import cli
from places import SAMPLE

from numtok.corpus.write import sinks
from numtok.corpus.write.sinks import json_lines
from numtok.tokenizer.stored import plain

NUMTOK = [sys.executable, "-m", "numtok_cli.main"]
NUMBERS = "xval,bits,fone:6,4"


def encoded(output: str, *more: str) -> bytes:
    result = CliRunner().invoke(
        cli,
        ["encode", str(SAMPLE), "-o", output, "--numbers", NUMBERS, "--keep-column", "id", *more],
    )
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


def test_what_comes_out_is_what_a_file_would_hold(tmp_path: Path) -> None:
    encoded(str(tmp_path / "file.arrow"))
    rows = pa.Table.from_batches(
        [
            plain(batch)
            for batch in pa.ipc.open_file(tmp_path / "file.arrow").read_all().to_batches()
        ]
    )
    lines = [json.loads(line) for line in encoded("-").decode().splitlines()]
    assert lines == rows.to_pylist() and len(lines) > 20
    stream = pa.ipc.open_stream(io.BytesIO(encoded("-", "--output-format", "arrow"))).read_all()
    assert stream.to_pylist() == lines
    assert b"numtok" in stream.schema.metadata


def test_the_summary_does_not_mingle_with_it() -> None:
    result = CliRunner().invoke(cli, ["encode", "-", "-o", "-"], input=SAMPLE.read_bytes())
    assert all(line.startswith('{"input_ids"') for line in result.stdout.splitlines())
    assert "standard output" in result.stderr and "documents" in result.stderr


@pytest.mark.parametrize("format", ["jsonl", "arrow"])
def test_a_closed_pipe_is_no_error(tmp_path: Path, format: str) -> None:
    (tmp_path / "many.jsonl").write_bytes(SAMPLE.read_bytes() * 30)
    command = [
        *NUMTOK,
        "encode",
        "many.jsonl",
        "-o",
        "-",
        "--output-format",
        format,
        "--quiet",
        "--scale",
        "1",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        assert running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_disk_that_is_full_is_one_error() -> None:
    with open("/dev/full", "wb") as full:
        command = [*NUMTOK, "encode", str(SAMPLE), "-o", "-", "--scale", "1"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "numtok: error: cannot write to standard output: No space left on device, after 0 bytes"
    ]


def test_a_format_that_is_no_stream() -> None:
    result = CliRunner().invoke(
        cli, ["encode", str(SAMPLE), "-o", "-", "--output-format", "parquet"]
    )
    assert result.exit_code == 1 and "give it a name with -o" in result.stderr
    result = CliRunner().invoke(cli, ["encode", str(SAMPLE), "-o", "x.txt"])
    assert result.exit_code == 1 and "cannot tell the format" in result.stderr


def test_a_file_of_json_lines_is_what_goes_to_standard_output(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    encoded(str(out), "--output-format", "jsonl")
    assert out.read_bytes() == encoded("-")


def test_infinite_values_are_numbers_that_read_back() -> None:
    batch = pa.record_batch(
        {
            "id": ['"Infinity" is a word'],
            "value": [[1e400, -math.inf, math.nan, 0.5]],
            "none": pa.nulls(1),
        }
    )
    (line,) = json_lines(batch.replace_schema_metadata({}))
    assert (
        line
        == '{"id": "\\"Infinity\\" is a word", "value": [1e999, -1e999, null, 0.5], "none": null}\n'
    )
    assert json.loads(line)["value"] == [math.inf, -math.inf, None, 0.5]


def test_a_long_row_is_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = pa.array([[0.5, math.inf, 3e7], None, [], [math.nan]])
    tensors = pa.array(
        [[[1, 2], [3, 4]], None, [], [[5, 6]]], pa.large_list(pa.list_(pa.uint8(), 2))
    )
    batch = pa.record_batch(
        {
            "id": ["½", None, "", "d"],
            "ids": [[1, 2, 3, None], None, [], [4]],
            "numbers": numbers,
            "tensors": tensors,
        }
    )
    batch = batch.replace_schema_metadata({})
    whole = "".join(json_lines(batch)).encode()
    assert whole.startswith(
        '{"id": "½", "ids": [1, 2, 3, null], "numbers": [0.5, 1e999, 30000000.0], "tensors": [[1,'
        " 2], [3, 4]]}\n".encode()
    )
    monkeypatch.setattr(sinks, "LONG", 0)
    for piece in (1, 2, 1000):
        monkeypatch.setattr(sinks, "CHUNK", piece)
        out = io.BytesIO()
        sinks.FORMATS["jsonl"].sink(out, batch.schema, sinks.SinkOptions()).write(batch)
        assert out.getvalue() == whole
    monkeypatch.setattr(sinks, "CHUNK", 3)
    assert max(map(len, sinks.json_pieces(batch))) < len(whole) / 3
