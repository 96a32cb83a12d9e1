"""Packed rows: every token of every document once, in order, no number cut that fits, and the
documents back from them.
"""

import functools
import itertools
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trained
from command import ok
from hypothesis import example, given, settings
from hypothesis import strategies as st
from input_files import decoded, lines_of, write_texts

import numtok
from numtok.corpus import pack
from numtok.corpus.pack import PackedRows, best_fit
from numtok.corpus.unpack import Unpacker
from numtok.errors import SchemaError
from numtok.tokenizer.layout import conform, to_token_layout
from numtok.tokenizer.packing import end_token
from numtok.tokenizer.schema import check_rows

WORDS = ["one", "-3.25", "12", "0", "the mass", "999999.5", "7 8 9", "1234567890123456789012345"]
WORDS.append("=")
DOCUMENTS = st.lists(
    st.none() | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), max_size=10
)
NUMBERS = ["xval,fone:3,2,bits", "place", "p10", "place:bare", "digits:3,bare"]
MODES = ["sequential", "best-fit"]
END = "<|endoftext|>"


@functools.cache
def tokenizer(numbers):
    return numtok.Tokenizer.from_pretrained(None, numbers)


def packed(tok, batch, length, mode, step):
    rows = PackedRows(batch.schema, length, mode, end_token(tok))
    coming = (batch.slice(at, step) for at in range(0, batch.num_rows, step))
    batches = [*itertools.chain.from_iterable(rows.arrange(part) for part in coming), *rows.rest()]
    for one in batches:
        one.validate(full=True)
        check_rows(conform(one))
    return pa.Table.from_batches(batches, rows.schema).combine_chunks()


def pieces(table):
    """(document, what remains of it, every column per token) of each piece, row by row."""
    found = []
    for row in table.to_pylist():
        begin, told = 0, (row.pop(f"seq_{name}") for name in ("lengths", "documents", "remaining"))
        row.pop("seq_text", None)
        for length, document, remaining in zip(*told, strict=True):
            part = {name: values[begin : begin + length] for name, values in row.items()}
            found.append((document, remaining, part))
            begin += length
    return found


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=25, deadline=None)
@example("place", ["12 -3.25 999999.5 12 12 12"] * 3, 9, 1, 100)
@example("p10", ["-3.25 one 12", None, "", None], 4, 2, 100)  # five tokens a number, four a row
@example("p10", [None, None], 4, 2, 100)
@given(
    st.sampled_from(NUMBERS), DOCUMENTS, st.integers(1, 40), st.integers(1, 4), st.integers(1, 60)
)
def test_nothing_is_lost(mode, numbers, texts, length, step, window):
    tok = tokenizer(numbers)
    batch = tok.encode_batch(texts, keep_text=True)
    documents = to_token_layout(batch).drop_columns(["text"]).to_pylist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack, "WINDOW_TOKENS", window)
        patch.setattr(pack, "WINDOW_ROWS", 1)
        patch.setattr(pack, "WRITTEN_BYTES", 1000)
        table = packed(tok, batch, length, mode, step)
        # whatever the batches
        assert table.equals(packed(tok, batch, length, mode, max(1, len(texts))))
    assert all(len(row) <= length for row in table["input_ids"].to_pylist())
    back = {}
    left = {}
    for document, remaining, part in pieces(table):
        whole = back.setdefault(document, {name: [] for name in part})
        for name, values in part.items():
            whole[name] += values
        before = remaining + len(part["input_ids"])
        assert left.get(document, before) == before
        left[document] = remaining
    assert set(left.values()) <= {0} and len(back) == len(texts)
    for number, document in enumerate(documents):
        if document["input_ids"] is None:
            assert not any(back[number].values())
            continue
        ended = [values.pop() for values in back[number].values()]
        assert ended[0] == end_token(tok)
        assert back[number] == document
    if mode == "sequential":
        order = [document for document, _, _ in pieces(table)]
        assert order == sorted(order)
    check_cuts(tok, documents, table, length, mode)
    unpacker = Unpacker(table.schema, "a file")
    unpacked = [batch for part in table.to_batches(step) for batch in unpacker.documents(part)]
    unpacker.finish()
    assert [text for batch in unpacked for text in tok.decode_batch(batch).to_pylist()] == texts


def check_cuts(tok, documents, table, length, mode):
    """No number that fits a row lies in two, and in sequence a row is short only before a number
    that it has no room for.
    """
    spans = [dict(number_spans(tok, document)) for document in documents]
    read, before = [0] * len(documents), length
    for row in table.to_pylist():
        own = zip(row["seq_lengths"], row["seq_documents"], strict=True)
        for at, (size, document) in enumerate(own):
            first, read[document] = read[document], read[document] + size
            if at == 0 and mode == "sequential" and before < length:
                assert before + spans[document][first] - first > length
            for begin, stop in spans[document].items():
                assert not begin < read[document] < stop <= begin + length
        before = len(row["input_ids"])


def number_spans(tok, document):
    """First token and end of each number of a document, by a search of its own."""
    ids, first = document["input_ids"] or [], tok.representations[0]
    begins = [at for at, here in enumerate(document["number_mask"] or []) if here]
    if getattr(first, "bracketed", False):
        return [(at, ids.index(tok.tokens["[/NUM]"], at) + 1) for at in begins]
    if not getattr(first, "marks_begin", True):
        return [(at, stop) for at, stop, _ in tok.numbers_in(np.array(ids, np.int32))]
    return [(at, at + (getattr(first, "length", None) or 1)) for at in begins]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=30), st.integers(12, 20))
def test_best_fit_is_that_of_a_search(lengths, size):
    rows, count = best_fit(np.array(lengths, np.int64), size)
    room = []
    for piece in sorted(range(len(lengths)), key=lambda k: -lengths[k]):
        least = min((left for left in room if left >= lengths[piece]), default=size)
        taken = room[rows[piece]] if rows[piece] < len(room) else size
        assert taken == least
        room += [size] if rows[piece] == len(room) else []
        room[rows[piece]] -= lengths[piece]
    assert len(room) == count


TEXTS = [f"{n} is -{n}.50 of 1,{n:03}.5\n" * (n % 9) if n % 5 else None for n in range(40)]


@pytest.mark.parametrize(
    ("mode", "suffix", "numbers"),
    [("sequential", "parquet", "place"), ("best-fit", "arrow", "xval,fone:6,4")],
)
def test_the_command_packs_and_gives_every_byte_back(mode, suffix, numbers, tmp_path):
    source, output = write_texts(tmp_path / "in.jsonl", TEXTS), tmp_path / f"packed.{suffix}"
    options = ["--numbers", numbers, "--keep-text", "--pack", "64", "--pack-mode", mode, "--quiet"]
    ok("encode", source, "-o", output, *options)
    back = str(tmp_path / "back.jsonl")
    ok("decode", output, "-o", back)
    assert [row["text"] for row in lines_of(tmp_path / "back.jsonl")] == TEXTS
    counted = numtok.corpus_stats(output)
    assert (counted.documents, counted.without_text) == (len(TEXTS), TEXTS.count(None))
    how = {"keep_text": True, "pack": 64, "pack_mode": mode, "end_token": END, "workers": 1}
    numtok.encode_files(source, tmp_path / f"again.{suffix}", numbers=numbers, **how)
    assert (tmp_path / f"again.{suffix}").read_bytes() == output.read_bytes()


def test_a_normalizing_tokenizer_gives_its_texts_back(tmp_path):
    """``seq_text`` has what ids and numbers do not say; frames belong to documents, not to rows."""
    tok = numtok.Tokenizer(trained.config("bert"), ["xval"])
    texts = ["Héllo 5 WORLDS " * 9, None, "", "plain 7.50", "ALSO -1"]
    how = {"keep_text": True, "add_special_tokens": True, "pack": 16}
    source = write_texts(tmp_path / "in.jsonl", texts)
    numtok.encode_files(source, tmp_path / "a.parquet", tokenizer=tok, **how)
    table = pq.read_table(tmp_path / "a.parquet")
    described = json.loads(table.schema.metadata[b"numtok"])
    assert described["pack"] == {"length": 16, "mode": "sequential"}
    # ends with [SEP] already
    framed = json.loads(tok.batch_schema(add_special_tokens=True).metadata[b"numtok"])
    assert described["frame"] == framed["frame"]
    assert decoded(tmp_path / "a.parquet", tok) == texts


def test_missing_rows_are_noticed(tmp_path):
    tok = tokenizer("place")
    table = packed(tok, tok.encode_batch(TEXTS), 32, "sequential", 7)
    rows = list(range(table.num_rows))
    for kept in (rows[:5] + rows[6:], rows[:-1], [1, 0, *rows[2:]]):
        unpacker = Unpacker(table.schema, "a.parquet")
        told = r"a\.parquet: .*(not whole|do not follow one another)"
        with pytest.raises(SchemaError, match=told):
            for batch in table.take(kept).combine_chunks().to_batches():
                list(unpacker.documents(batch))
            unpacker.finish()
