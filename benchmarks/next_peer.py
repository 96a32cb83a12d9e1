"""Encode texts on the ``tokenizers`` of this environment, each time that a line asks for it: what
:mod:`benchmarks.next_tokenizers` runs in ``.venv-next``.

Arguments: a tokenizer.json, and texts as JSON lines. A line of input is ``alone`` (the library on
raw text) or an engine of numtok; the line of output is the sum of the ids, for numtok.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa

import numtok
from numtok.engines.hf_tokenizers import library

ENGINES = ("auto", "tokenizers")


def sum_of_ids(batch: pa.RecordBatch) -> str:
    """Return a hash of the token ids, row by row."""
    column = batch["input_ids"]
    values, offsets = (one.to_numpy() for one in (column.values, column.offsets))
    return hashlib.sha256(values.tobytes() + offsets.astype("int64").tobytes()).hexdigest()


def main(tokenizer: Path, lines: Path) -> None:
    """Answer until the input ends; the first line says what there is."""
    warnings.simplefilter("ignore")
    texts = [json.loads(line)["text"] for line in lines.read_bytes().splitlines()]
    column = pa.array(texts, pa.large_string())
    alone = library().Tokenizer.from_file(tokenizer)
    numbers = [numtok.XVal(overflow="clip")]
    ours: dict[str, Any] = {
        engine: numtok.Tokenizer.from_pretrained(tokenizer, numbers, engine=engine)
        for engine in ENGINES
    }
    names = {engine: made.engine.name for engine, made in ours.items()}
    print(json.dumps({"version": library().__version__, "engines": names}), flush=True)
    for line in map(str.strip, sys.stdin):
        if line == "alone":
            alone.encode_batch(texts, add_special_tokens=False)
            print("done", flush=True)
        elif line.startswith("check "):
            print(sum_of_ids(ours[line.removeprefix("check ")].encode_batch(column)), flush=True)
        else:
            ours[line].encode_batch(column)
            print("done", flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
