"""Check what a user may write, with the types that a type checker must see: read by ``make check``, never
run.

``assert_type`` refuses Any, and a slip that is no longer told is an error itself: ``mypy --strict``
warns of a ``type: ignore`` that nothing needs."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import numtok
from numtok.representations import FoNE, Representation, parse

grammar = numtok.Grammar.data()
tok = numtok.Tokenizer.from_pretrained(None, numbers=[numtok.XVal(), FoNE(6, 4)], grammar=grammar)

encoding = tok.encode("pH 7.4 at -12.5e-3")
assert_type(tok, numtok.Tokenizer)
assert_type(encoding, numtok.Encoding)
assert_type(tok.decode(encoding), str)
assert_type(tok.vocab_size, int)
assert_type(parse("xval"), tuple[Representation, ...])

numbers = numtok.scan(["1 and 2.5"])
assert_type(numbers, numtok.Numbers)
assert_type(numbers.negative.dtype, np.dtype[np.bool_])


class Column:
    """An array of any Arrow library."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        raise NotImplementedError


numtok.scan(Column())
tok.decode_batch(tok.encode_batch(Column()))
tok.encode_batch(text for text in ("a", None))
tok.decode(np.array([1, 2]), [])
assert_type(tok("a"), numtok.Encoding)
assert_type(numtok.FoNE(6, frac_digits=4), numtok.FoNE)

found = numtok.extract("about 1,234.5 kg")
assert_type(found, list[numtok.Number])
assert_type(found[0].start, int)

summary = numtok.encode_files(
    "in.jsonl", "a.parquet", numbers="xval", keep_columns=["id"], on_error="skip"
)
assert_type(summary.documents, int)
assert_type(numtok.encode_files("in/", "out/", shards=8, shard=(1, 2), workers=4).shards_done, int)
assert_type(numtok.finish_job("out/", check=True).share, bool)

# Slips, each told before the script runs.
tok.encode_batch(["a"], keep_tekst=True)  # type: ignore[call-arg]
numtok.encode_files("in.jsonl", "a.parquet", keep_colums=["id"])  # type: ignore[call-arg]
numtok.encode_files("in/", "out/", shard="1/2")  # type: ignore[arg-type]
numtok.encode_files("in.jsonl", "a.parquet", on_error="skp")  # type: ignore[arg-type]
tok.encode_batch(7)  # type: ignore[arg-type]
tok.encode(["a"])  # type: ignore[arg-type]
tok(7)  # type: ignore[call-overload]
tok.decode_batch([1, 2])  # type: ignore[arg-type]
tok.decode(7)  # type: ignore[arg-type]
numtok.scan(7)  # type: ignore[arg-type]
numtok.FoNE(6, "4")  # type: ignore[arg-type]
numtok.FoNE(6, 4, chunks=5)  # type: ignore[call-arg]
numtok.XVal(scale="large")  # type: ignore[arg-type]
numtok.Grammar(grouping=",", digits=3)  # type: ignore[call-arg]
