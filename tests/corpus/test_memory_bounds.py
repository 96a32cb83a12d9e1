"""Long rows and long files in bounded memory: of a compressed line without end, an error that names it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

ZEROS = b"0" * (8 << 20)
READ = r"""
import json, re, sys
from numtok.corpus.read.documents import find_inputs, read_batches
from numtok.errors import InputError
for path, unit, keep in json.loads(sys.argv[1]):
    try:
        [source] = find_inputs([path])
        said = str(sum(len(batch.texts) for batch in read_batches(source, batch_bytes=1 << 20, text_unit=unit, keep_columns=keep.split())))
    except InputError as error:
        said = str(error)
    status = open("/proc/self/status").read()
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) >> 10  # not ru_maxrss, which counts the process that was forked
    print(json.dumps([said, peak]))
"""


def bomb(path: Path, head: bytes, times: int = 160) -> Path:
    """More than 1.3 GB in a file of a megabyte or less."""
    pack = (
        gzip.compress
        if path.suffix == ".gz"
        else lambda data: bytes(pa.compress(data, codec="zstd", asbytes=True))
    )
    path.write_bytes(pack(head) + pack(ZEROS) * times)
    assert path.stat().st_size < 2_000_000
    return path


def read_apart(*files: tuple[Path, str, str]) -> list[tuple[str, int]]:
    """(what came of it, peak memory in MiB so far) of each (path, unit, columns to keep), in one
    process.
    """
    asked = json.dumps([(str(path), unit, keep) for path, unit, keep in files])
    done = subprocess.run(
        [sys.executable, "-c", READ, asked], capture_output=True, text=True, check=True, timeout=120
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


ENDLESS = [
    ("a.jsonl.gz", b'{"text": "fine"}\n{"text": "', "line"),
    ("a.txt.gz", b"fine\n", "line"),
    ("a.txt.zst", b"", "file"),
    ("a.csv.gz", b"id,text\n" + b"1,fine\n" * 300_000 + b"2,", "line"),
    ("a.csv.zst", b"", "line"),
    ("a.json.zst", b'[{"text": "', "line"),
    ("a.json.gz", b"", "line"),
]


@pytest.mark.parametrize(
    "names",
    [
        ["a.jsonl.gz", "a.csv.zst"],
        pytest.param([name for name, *_ in ENDLESS], marks=pytest.mark.slow),
    ],
)
def test_one_endless_line(names: list[str], tmp_path: Path) -> None:
    files = [
        (bomb(tmp_path / name, head), unit, "") for name, head, unit in ENDLESS if name in names
    ]
    for (path, *_), (said, peak) in zip(files, read_apart(*files), strict=True):
        assert said.startswith(str(path)) and "longer than" in said
        assert peak < 1024, f"MiB, with {path}"


def test_endless_small_rows_are_read_piece_by_piece(tmp_path: Path) -> None:
    row = b'{"text": "12 of 34"}\n'
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(row * 400_000) * 20)
    [(said, peak)] = read_apart((path, "line", ""))
    assert said == "8000000"
    assert peak < 500, "MiB"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_row_group(tmp_path: Path) -> None:
    words = "It was 1,234.5 m or 7% more than -0.5e-3, in all of them, and so on. " * 200
    texts = pa.array([f"{row} {words}" for row in range(20_000)])
    assert texts.nbytes > 270_000_000
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", compression="zstd")
    del texts
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups == 1
    [(said, peak)] = read_apart((tmp_path / "a.parquet", "line", ""))
    assert said == "20000" and peak < 700, "MiB"
