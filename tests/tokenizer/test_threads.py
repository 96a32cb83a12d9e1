"""Several threads give the batch that one gives, to the byte."""

import functools
import itertools
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
import trained
from hostile import rows, triples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from numtok import Tokenizer
from numtok.numbers import numbers
from numtok.representations import P10, FloatBits, FoNE, PlaceValue, Subword, XVal
from numtok.tokenizer import encoder, schema

REPRESENTATIONS = {
    "two": [XVal(), FloatBits()],
    "fone": [FoNE(3, 2, overflow="clip")],
    "place": [PlaceValue(max_offset=9)],
    "bare": [PlaceValue(max_offset=9, brackets=False)],
    "p10": [P10()],
    "subword": [Subword()],
}


@functools.cache
def tokenizer(kind, name):
    return Tokenizer(trained.config(kind), REPRESENTATIONS[name])


def written(batch):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize(
    ("kind", "name"),
    [*(("gpt2", name) for name in REPRESENTATIONS), ("roberta", "two"), ("bert", "two")],
)
@settings(max_examples=8)
@given(rows, st.integers(2, 4), st.booleans(), st.booleans(), st.booleans())
@example(
    [None, "a -5 and 1,234.5 <mask>", "", None, "6 7 8 e\u0301 " * 9, "no"], 3, True, True, True
)
def test_same_bytes(kind, name, documents, count, keep, frame, special):
    tok = tokenizer(kind, name)
    long = "of so many words 5.5 " * 5000  # there is a thread for each 64 kB
    texts = pa.array([*documents, long, *documents, long, "x 5"], pa.string()).slice(1)
    options = {"keep_text": keep, "add_special_tokens": frame, "parse_special": special}
    one, report = tok.encode_with_report(texts, **options)
    several, of_parts = tok.encode_with_report(texts, count, **options)
    several.validate(full=True)
    assert written(several) == written(one)
    assert of_parts == report


@pytest.mark.parametrize(
    ("kind", "name"),
    [("gpt2", "two"), ("gpt2", "subword"), ("qwen", "two"), ("metaspace_first", "two")],
)
def test_one_tokenizer_for_four_threads(kind, name):
    """Used for the first time by all at once; gigatoken itself takes one at a time ("Already
    mutably borrowed").
    """
    documents = triples(["5", "-3"])[::3]
    parts = [documents[k::4] for k in range(4)]
    shared = Tokenizer(trained.config(kind), REPRESENTATIONS[name])
    options = {"keep_text": True, "parse_special": True}
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda part: shared.encode_batch(part, **options), parts))
    alone = Tokenizer(trained.config(kind), REPRESENTATIONS[name])
    for batch, part in zip(got, parts, strict=True):
        assert batch.equals(alone.encode_batch(part, **options), check_metadata=True)
    assert shared.decode_batch(got[0]).to_pylist() == parts[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_a_process_forked_while_another_thread_encodes(kind, monkeypatch):
    """No lock that the thread holds keeps the forked process waiting."""
    tok, stop = Tokenizer(trained.config(kind), [XVal()]), threading.Event()
    texts = (f"word{k} -{k}.5 more{k}" for k in itertools.count())
    tok.encode_batch([next(texts)])

    def slow(function):
        def sleep_and_call(*arguments):
            time.sleep(0.02)
            return function(*arguments)

        return sleep_and_call

    def encode():
        while not stop.is_set():
            tok.encode_batch([next(texts)])

    monkeypatch.setattr(numbers, "to_floats", slow(numbers.to_floats))
    with ThreadPoolExecutor(1) as pool:
        encoding = pool.submit(encode)
        try:
            assert [in_a_fork(lambda: tok.encode_batch(["new words 7.5"])) for _ in range(6)] == [
                0
            ] * 6
        finally:
            stop.set()
        encoding.result()


def in_a_fork(call):
    """Return the status of a forked process that makes the call, 14 (SIGALRM) if it takes too long."""
    process = os.fork()
    if not process:
        try:
            signal.alarm(20)
            call()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(process, 0)[1]


def test_threads_are_used():
    tokenizer("gpt2", "two").encode_batch(["a 5 and 6 of 7 " * 500] * 40, threads=4)
    assert any(one.name.startswith("numtok-encode") for one in threading.enumerate())


def test_lists_that_need_wider_offsets(monkeypatch):
    """Each part alone would not."""
    tok, texts = tokenizer("gpt2", "two"), ["a 5 and 6 of 7 " * 500] * 40
    monkeypatch.setattr(schema, "LIST_LIMIT", 100_000)
    assert written(tok.encode_batch(texts, threads=4)) == written(tok.encode_batch(texts))


def _cores_of_worker(_):
    return encoder.cores()


def test_none_is_the_cores_but_one_in_a_worker():
    assert encoder.thread_count(None) == encoder.cores() >= 1
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(_cores_of_worker, [0]) == [1]
