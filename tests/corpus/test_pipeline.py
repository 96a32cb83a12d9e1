"""Files to encoded files and back, through the library."""

import threading
import time
from collections import Counter
from functools import partial

import pyarrow.parquet as pq
import pytest
from input_files import decoded, read_encoded, write_texts

import numtok
from numtok.corpus.pipeline import run_ordered
from numtok.errors import InputError, OutputError

TOKENIZER = numtok.Tokenizer.from_pretrained(numbers=[numtok.XVal(), numtok.FloatBits()])


def column(path, name):
    return [value for batch in read_encoded(path) for value in batch.column(name).to_pylist()]


# The flow


def flow(items, work=lambda item: item, sink=lambda result: None, workers=3, **more):
    """Each item takes ten bytes, and a batch twenty."""
    run_ordered(items, work, sink, lambda item: 10, workers, 20, **more)


def test_no_more_than_the_budget_is_on_its_way():
    lock, now, most = threading.Lock(), 0, 0

    def items():
        nonlocal now, most
        for k in range(50):
            with lock:
                now += 1
                most = max(most, now)
            yield k

    def take(result):
        nonlocal now
        time.sleep(0.001)
        with lock:
            now -= 1

    flow(items(), sink=take, workers=4)
    assert most <= 12 + 2  # one is read ahead, one is being given back


@pytest.mark.parametrize("where", ["read", "work", "write"])
def test_the_first_failure_in_order_is_raised_after_what_came_before(where):
    before, taken = threading.active_count(), []

    def fails(place, item):
        if place == where and item in (20, 21):
            time.sleep(0.05 * (21 - item))  # the later one comes first
            raise InputError(f"number {item}")
        return item

    items = (fails("read", item) for item in range(1000))
    with pytest.raises(InputError, match="number 20"):
        flow(items, partial(fails, "work"), lambda item: taken.append(fails("write", item)))
    assert taken == list(range(20)) and threading.active_count() == before


@pytest.mark.parametrize("where", ["read", "tick", "write"])
def test_an_interrupt_ends_the_threads_as_an_error_does(where):
    before, done = threading.active_count(), Counter()

    def reach(place):
        done[place] += 1
        if place == where and done[place] == 50:
            raise KeyboardInterrupt

    items = (reach("read") for _ in range(10**9))
    with pytest.raises(KeyboardInterrupt):
        flow(items, sink=lambda result: reach("write"), tick=lambda: reach("tick"))
    assert threading.active_count() == before


# Encoding


def test_rows_are_those_of_encode_batch_in_order_for_any_workers(tmp_path):
    texts = [f"row {k}: {k * 37 % 1001} of {k}.{k:03} " + "word " * (k % 200) for k in range(3000)]
    source = write_texts(tmp_path / "in.jsonl", texts)
    expected = TOKENIZER.encode_batch(texts)
    for workers, batch_bytes in ((1, 1 << 20), (8, 1 << 12)):
        output = tmp_path / f"{workers}.parquet"
        how = {"workers": workers, "batch_bytes": batch_bytes, "keep_columns": ["id"]}
        summary = numtok.encode_files(source, output, tokenizer=TOKENIZER, **how)
        assert column(output, "id") == list(range(3000))
        for name in ("input_ids", "number_index", "number_value", "number_scaled", "number_bits"):
            assert column(output, name) == expected.column(name).to_pylist(), name
        assert summary.documents == 3000
        assert summary.tokens == sum(map(len, column(output, "input_ids")))
        assert summary.output_bytes == output.stat().st_size


@pytest.mark.parametrize("keep", [[], ["id"]])
def test_an_empty_input_gives_a_file_without_rows(keep, tmp_path):
    source, out = write_texts(tmp_path / "empty.jsonl", []), tmp_path / "o.parquet"
    summary = numtok.encode_files(source, out, tokenizer=TOKENIZER, keep_columns=keep)
    assert summary.documents == 0
    assert pq.read_metadata(out).num_rows == 0 and decoded(out, TOKENIZER) == []


def test_progress_is_told_from_the_calling_thread_and_ends_complete(tmp_path):
    source = write_texts(tmp_path / "in.jsonl", ["row 1 " * 100] * 2000)
    seen, threads = [], set()

    def progress(one):
        seen.append(one)
        threads.add(threading.current_thread())

    how = {"batch_bytes": 1 << 14, "progress": progress}
    numtok.encode_files(source, tmp_path / "o.parquet", tokenizer=TOKENIZER, **how)
    assert threads == {threading.main_thread()}
    assert seen[-1].read == seen[-1].total == source.stat().st_size
    assert seen[-1].documents == 2000
    assert [one.read for one in seen] == sorted(one.read for one in seen)


# Failures


def test_lines_of_text_cannot_hold_line_breaks(tmp_path):
    (tmp_path / "in.txt").write_text("one 1\n\ntwo 2\n")
    write_texts(tmp_path / "in.jsonl", ["fine", "a\nb"])
    for name in ("in.txt", "in.jsonl"):
        numtok.encode_files(tmp_path / name, tmp_path / f"{name}.arrow", keep_text=True)
    numtok.decode_files(tmp_path / "in.txt.arrow", tmp_path / "b.txt")
    assert (tmp_path / "b.txt").read_bytes() == (tmp_path / "in.txt").read_bytes()
    with pytest.raises(OutputError, match=r"document 2 has a line break.*jsonl"):
        numtok.decode_files(tmp_path / "in.jsonl.arrow", tmp_path / "c.txt")
    assert not (tmp_path / "c.txt").exists()
