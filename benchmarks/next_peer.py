"""Encode texts on the ``tokenizers`` of this environment, a part of them each time that a line asks
for it: what :mod:`benchmarks.next_tokenizers` runs in ``.venv-next``.

Arguments: a tokenizer.json, and texts as JSON lines. A line of input is the number of a part, then
``alone`` (the library on raw text) or an engine of numtok, whose ids the line of output sums up.
"""

from __future__ import annotations

import json
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

import numtok
from numtok.engines.hf_tokenizers import library

ENGINES = ("auto", "tokenizers")
PARTS = 12


def parts_of(texts: list[str]) -> list[list[str]]:
    """Return the texts in parts of about the same size."""
    return [texts[first::PARTS] for first in range(PARTS)]


def sum_of_ids(batch: pa.RecordBatch) -> str:
    """Return a checksum of the token ids of the rows."""
    column = batch["input_ids"]
    return str(
        zlib.crc32(column.offsets.to_numpy().data, zlib.crc32(column.values.to_numpy().data))
    )


def main(tokenizer: Path, lines: Path) -> None:
    """Answer until the input ends; the first line says what there is."""
    warnings.simplefilter("ignore")
    texts = [json.loads(line)["text"] for line in lines.read_bytes().splitlines()]
    parts = parts_of(texts)
    columns = [pa.array(part, pa.large_string()) for part in parts]
    alone = library().Tokenizer.from_file(tokenizer)
    numbers = [numtok.XVal(overflow="clip")]
    ours: dict[str, Any] = {
        engine: numtok.Tokenizer.from_pretrained(tokenizer, numbers, engine=engine)
        for engine in ENGINES
    }
    names = {engine: type(made.engine).__name__ for engine, made in ours.items()}
    if names["auto"] == names["tokenizers"]:  # one row is enough
        del names["tokenizers"]
    print(json.dumps(names), flush=True)
    for line in map(str.strip, sys.stdin):
        number, _, what = line.partition(" ")
        if what == "alone":
            alone.encode_batch(parts[int(number)], add_special_tokens=False)
            print("done", flush=True)
        else:
            print(sum_of_ids(ours[what].encode_batch(columns[int(number)])), flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
