"""Check what is refused of URLs, on the store in memory: what was there stays, and nothing else is left."""

import sys

import errors
import jobs
import memory_store

import numtok
from numtok.errors import (
    InputError,
    JobError,
    MissingDependencyError,
    MissingInputError,
    OutputError,
)

corpus, _ = jobs.fixtures(80)
OUT = "memory://out"
ERRORS = {
    OutputError: [
        (("in", "memory://one.parquet"), "one.parquet exists already; … overwrite=True"),
        (("in", "memory://theirs/"), "theirs holds a.parquet, which would be read as a"),
        (("memory://in/*.jsonl", "memory://in/"), "an input, but lies in the output folder"),
        (("in", "https://example.org/a.parquet"), "https:// is for reading; write to a pa"),
        (("in", "https://example.org/out/"), "https:// is for reading; write to a path"),
        (
            ("memory://in/d.parquet", "memory://in/d.parquet"),
            "memory://in/d.parquet is also an input",
        ),
        (("in", "ftp://127.0.0.1:1/a.parquet"), "cannot write ftp://127.0.0.1:1/a.parquet: …check"),
    ],
    InputError: [
        (("memory://no/a.jsonl", OUT), "memory://no/a.jsonl: no such file or folder"),
        (("memory://in/*.csvx", OUT), "no file matches this pattern"),
        (("nothing://a/b.jsonl", OUT), "nothing:// is unknown; known are paths, s3://"),
        (("file:///a.jsonl", OUT), "is a file of this machine: give its path, /a.jsonl"),
        (("memory://bad.jsonl", "memory://bad.parquet"), "memory://bad.jsonl:2"),
    ],
    MissingInputError: [
        (("ftp://127.0.0.1:1/a.jsonl", OUT), "ftp://127.0.0.1:1/a.jsonl: cannot be read: …check"),
        (("zip://a.jsonl::a.zip", OUT), "zip://a.jsonl::a.zip: cannot be read: …check the URL"),
    ],
    JobError: [(("memory://bad.jsonl", "memory://bad/"), "1 of 1 shards failed …://bad.jsonl:2")],
    MissingDependencyError: [
        (("in", "gs://bucket/out/"), "gs:// needs gcsfs, … install gcsfs"),
        (("in", "s3://bucket/out/", "fsspec"), "URLs need fsspec…'numtok[remote]'"),
    ],
}


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields, corpus, monkeypatch):
    given, output, *missing = call
    store = memory_store.empty()
    memory_store.upload(store, corpus, "in")
    store.pipe_file("/one.parquet", b"mine")
    store.pipe_file("/theirs/a.parquet", b"")
    store.pipe_file("/bad.jsonl", b'{"text": "1"}\n{"text": 2')
    for name in ("gcsfs", *missing):
        monkeypatch.setitem(sys.modules, name, None)
    inputs = corpus if given == "in" else given
    errors.check(lambda: numtok.encode_files(inputs, output, scale=1.0), kind, told, fields)
    left = [name for name in store.find("/") if name.endswith((".parquet", "/00000.json"))]
    assert left == ["/in/d.parquet", "/one.parquet", "/theirs/a.parquet"]
    assert store.cat_file("/one.parquet") == b"mine"
