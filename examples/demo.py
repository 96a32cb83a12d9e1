"""Encode the sample, print its tokens and values, decode it, and compare every byte: ``python
examples/demo.py``, or ``make demo``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import numtok
from numtok.corpus import decode_files
from numtok.tokenizer.inspect import inspect_text

SAMPLE = Path(__file__).with_name("sample.jsonl")
SHOWN = ("doc-01", "doc-04", "doc-13")


def texts_of(path: Path) -> dict[str, str]:
    """Return the texts of the sample by id."""
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return {row["id"]: row["text"] for row in rows}


def show(text: str, tokenizer: numtok.Tokenizer) -> None:
    """Print a document with its numbers, tokens, ids and values."""
    (view,) = inspect_text(text, [tokenizer]).views
    encoding = tokenizer.encode(text)
    print(f"  text     {text}")
    print(
        f"  numbers  {'  '.join(number.text for number in numtok.extract(text, tokenizer.grammar))}"
    )
    print(f"  tokens   {'|'.join(token.text for token in view.tokens)}")
    print(f"  ids      {' '.join(map(str, encoding.input_ids[:16]))} ...")
    print(f"  values   {' '.join(map(str, encoding.number_scaled))}")
    bits = "".join(map(str, encoding.number_bits[0]))
    print(f"  bits     {bits[0]} {bits[1:9]} {bits[9:]}, the first number as float32\n")


def main() -> int:
    """Run the demonstration, and return 0 if every byte came back."""
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=[numtok.XVal(), numtok.FloatBits()])
    original = texts_of(SAMPLE)
    print(
        f"numtok {numtok.__version__}: {len(original)} documents, a vocabulary of"
        f" {tokenizer.vocab_size:,} tokens, engine {tokenizer.engine.name}\n"
    )
    for name in SHOWN:
        show(original[name], tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        encoded, decoded = Path(folder, "sample.parquet"), Path(folder, "sample.jsonl")
        summary = numtok.encode_files(
            SAMPLE, encoded, tokenizer=tokenizer, keep_columns=["id"], keep_text=True
        )
        columns = ", ".join(pq.read_schema(encoded).names)
        decode_files([encoded], decoded, tokenizer)
        is_same = texts_of(decoded) == original
    print(
        f"{summary.documents} documents with {summary.numbers} numbers became {summary.tokens:,}"
        f" tokens. Left as text, being outside float32: {sum(summary.left_as_text.values())}."
    )
    print(f"Columns: {columns}")
    print("Decoded: every byte is the same." if is_same else "Decoded: THE TEXT CHANGED.")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
