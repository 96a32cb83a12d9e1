"""The process of :mod:`benchmarks.next_tokenizers` that runs in ``.venv-next``: encodes parts of
some texts with the ``tokenizers`` of that environment.

Arguments: a tokenizer.json, and texts as JSON lines. A line of input is the number of a part, then
``alone`` (the library on raw text) or an engine of numtok. The line of output is a checksum of the
ids.
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
    """Print the engines, then answer each line of input until the input ends."""
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
        number, _, encoder = line.partition(" ")
        if encoder == "alone":
            alone.encode_batch(parts[int(number)], add_special_tokens=False)
            print("done", flush=True)
        else:
            print(sum_of_ids(ours[encoder].encode_batch(columns[int(number)])), flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
