"""Check what is fuzzed: for each target a check of bytes, seeds to mutate, and pieces to put in."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import trained
from places import ROOT
from scanned import COMMON, RARE, UUID, rows_of, rows_of_oracle

import numtok
from numtok import Grammar, NumtokError, Statistics, Tokenizer
from numtok.corpus.jobs.folder import digest
from numtok.score import POLICIES, digits_right, equal, final_number

GOLDEN = ROOT / "tests" / "golden"
JOB = GOLDEN / "format2" / "job3"
GRAMMARS = [Grammar(), Grammar.data(), Grammar.european(), Grammar.indian(), Grammar.swiss()]
GRAMMARS += [Grammar.finance(), Grammar(accounting=True, unicode_digits=False, grouping="_")]
ANSWERS = r"""\boxed{\frac{3}{4}} #### -1,234.5|The answer is 25%.|= $3.5 million, or 2 1/2 km
|so \( 10^{5} \times 1{,}000 \) ½|1e5 ٤٢ (7, 8)|Answer: 1.234,56 €|x = 3/0"""
MARKS = r"\boxed{|\pm|minus |<think>|<<|\left(| or |, |!|\,|×|}|{|\frac{|####|answer is|%|million|k|^{|\times 10^|e999999999|/|{,}|½|$|\text{"


class Target(NamedTuple):
    """See the module."""

    check: Callable[[bytes], None]
    seeds: list[bytes]
    pieces: list[bytes]


def scan(data):
    """All grammars find what the oracle finds; broken UTF-8 is an error or found nothing in."""
    text = data.decode("utf-8", "replace")
    for grammar in GRAMMARS:
        assert rows_of(numtok.scan([text], grammar)) == rows_of_oracle([text], grammar), grammar
    sizes = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, len(data))))
    with contextlib.suppress(NumtokError):
        numtok.scan(pa.StringArray.from_buffers(1, sizes, pa.py_buffer(data)))


def encoded(data):
    """A file of either kind is decoded, or refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.parquet" if data.startswith(b"PAR1") else "a.arrow")
        path.write_bytes(data)
        with contextlib.suppress(NumtokError):
            numtok.decode_files(path, Path(folder, "out.jsonl"), workers=1)
        with contextlib.suppress(NumtokError):
            numtok.corpus_stats(path)


def metadata(data):
    """What a file says of itself, in a file that is whole."""
    with tempfile.TemporaryDirectory() as folder:
        table = pq.read_table(GOLDEN / "format2" / "dense.parquet")
        pq.write_table(table.replace_schema_metadata({b"numtok": data}), f"{folder}/a.parquet")
        with contextlib.suppress(NumtokError):
            numtok.decode_files(f"{folder}/a.parquet", f"{folder}/out.jsonl", workers=1)


def tokenizer(data):
    """A tokenizer.json is loaded and used, or refused."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tokenizer.json").write_bytes(data)
        with contextlib.suppress(NumtokError):
            loaded = Tokenizer.from_pretrained(folder)
            loaded.decode(loaded.encode("a -5.2 é7 <s> 1,234", keep_text=True))


def job(data):
    """The JSON files of a folder of shards by name, their digests made anew; else a plan."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(shutil.copytree(JOB, f"{folder}/job"))
        for name, content in _files(data):
            (output / name).write_bytes(content)
        for use in (
            lambda: numtok.job_status(output),
            lambda: numtok.decode_files(output, f"{folder}/out.jsonl", workers=1),
            lambda: numtok.finish_job(output),
            lambda: numtok.finish_job(output, check=True),
        ):
            with contextlib.suppress(NumtokError):
                use()


def _files(data):
    try:
        given = json.loads(data)
        named = {name: content for name, content in given.items() if name in _job_files()}
    except (ValueError, AttributeError, RecursionError):
        yield "__numtok/plan.json", data
        return
    for name, content in named.items():
        if isinstance(content, dict) and "check" in content:
            content.pop("check")
            content["check"] = digest(content)
        yield name, json.dumps(content).encode()


def _job_files():
    return {
        str(path.relative_to(JOB)): json.loads(path.read_bytes())
        for path in sorted(JOB.rglob("*.json"))
        if path.name != "tokenizer.json"
    }


def statistics(data):
    """Statistics as JSON."""
    with contextlib.suppress(ValueError, RecursionError):
        content = json.loads(data)
        with contextlib.suppress(NumtokError):
            Statistics.from_json(content).to_json()


def score(data):
    """No exception; an answer equals itself."""
    text = data.decode("utf-8", "replace")
    for policy in POLICIES.values():
        answer, other = final_number(text, policy), final_number(text[: len(text) // 2], policy)
        assert equal(text, text, policy=policy, target_policy=policy) == (answer is not None)
        equal(text, other, 0.01, policy, absolute="1e-9")
        if answer is not None and other is not None:
            digits_right(answer, other)


def _plain_files():
    """Golden tables as other writers have them: nothing is compressed, nothing has a checksum."""
    for path in sorted(GOLDEN.glob("format2/*.parquet")):
        table, sink = pq.read_table(path), pa.BufferOutputStream()
        pq.write_table(table, sink, compression="none", use_dictionary=False)
        yield sink.getvalue().to_pybytes()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        yield sink.getvalue().to_pybytes()


_TEXTS = [f"{UUID} 1,234 -5 1e5 (7) 10x6".encode(), " ".join(RARE).encode()]
_ANSWERS = [answer.encode() for answer in ANSWERS.split("|")]
_DESCRIBED = pq.read_schema(GOLDEN / "format2" / "dense.parquet").metadata[b"numtok"]
_TOKENIZERS = [json.dumps(trained.config(kind)).encode() for kind in ("gpt2", "bert", "t5")]
_DEFAULT = (ROOT / "numtok" / "default" / "tokenizer.json").read_bytes()
_ENCODED = [path.read_bytes() for path in sorted(GOLDEN.glob("format*/*.*"))]

TARGETS = {
    "scan": Target(scan, _TEXTS, [piece.encode() for piece in COMMON + RARE]),
    "encoded": Target(encoded, [*_ENCODED, *_plain_files()], []),
    "metadata": Target(metadata, [_DESCRIBED], []),
    "tokenizer": Target(tokenizer, [*_TOKENIZERS, _DEFAULT], []),
    "job": Target(job, [json.dumps(_job_files()).encode()], []),
    "statistics": Target(statistics, [(GOLDEN / "statistics.json").read_bytes()], []),
    "score": Target(score, _ANSWERS, [mark.encode() for mark in MARKS.split("|")]),
}
