"""Corpora of mixed formats, and folders of shards to look into."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 240


def row(name: str, number: int) -> dict[str, Any]:
    """A document, some without a number, a null one now and then."""
    text = (
        None
        if number % 97 == 13
        else f"{name} row {number}"
        if number % 5 == 0
        else f"{name}: {number * 1.5} of 1,234.{number} or -{number}e-3 é"
    )
    return {"id": f"{name}{number}", "text": text}


def make_corpus(folder: Path, rows: int = ROWS) -> Path:
    """A file of each kind that can be cut, and some that cannot."""
    folder.mkdir(parents=True)
    lines = {
        name: "".join(
            json.dumps(row(name, number)) + "\n\n"[: 1 + (number % 7 == 0)]
            for number in range(rows)
        )
        for name in "abc"
    }
    (folder / "a.jsonl").write_text(lines["a"], "utf-8")
    (folder / "b.jsonl").write_bytes(b"\xef\xbb\xbf" + lines["b"].removesuffix("\n").encode())
    with pa.CompressedOutputStream(str(folder / "c.jsonl.zst"), "zstd") as file:
        file.write(lines["c"].encode())
    table = pa.Table.from_pylist([row("d", number) for number in range(rows)])
    pq.write_table(table, folder / "d.parquet", row_group_size=rows // 8)
    (folder / "e.csv").write_text(
        "id,text\n" + "".join(f'e{number},"e {number}, {number / 8}"\n' for number in range(rows)),
        "utf-8",
    )
    (folder / "f.jsonl").touch()
    return folder


def shards(folder: Path) -> dict[str, str]:
    """The SHA-256 of every shard."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file()
    }


def files(folder: Path) -> dict[str, bytes]:
    """All that a job leaves, by its names in the folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def everything(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file that a job leaves."""
    own = shards(folder / "__numtok")
    return shards(folder) | {f"__numtok/{name}": digest for name, digest in own.items()}


def table(folder: Path) -> pa.Table:
    """All rows of all shards."""
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])


def manifest(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "__numtok" / "manifest.json").read_bytes())
    return content
