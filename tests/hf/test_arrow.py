"""Arrow in, Arrow out: ``encode_arrow`` gives what a call gives, with the other columns of the
table, in ``datasets`` too.
"""

import itertools

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import numpy as np
import pyarrow as pa
from hf_cases import MIXED_TEXTS, REPRESENTATIONS, TEXTS, build_ours, build_source

from numtok.errors import InputError
from numtok.hf import NumberTokenizer
from numtok.representations import FloatBits


@pytest.mark.parametrize(("removed", "num_proc"), [(None, None), (["text"], None), (None, 2)])
def test_map_to_arrow_keeps_the_other_columns(removed, num_proc, tmp_path):
    """Their values, order and kinds (a class label, nested lists), as after an ordinary map."""
    datasets = pytest.importorskip("datasets")
    tok = build_ours("gpt2", return_numbers=True)
    kinds = {
        "id": datasets.Value("string"),
        "text": datasets.Value("string"),
        "labels": datasets.ClassLabel(names=["no", "yes"]),
        "spans": datasets.List(datasets.Value("int64")),
    }
    columns = {
        "id": [f"row {n}" for n in range(7)],
        "text": [f"it is {n}.5" for n in range(7)],
        "labels": [n % 2 for n in range(7)],
        "spans": [[n] * (n % 3) for n in range(7)],
    }
    made = datasets.Dataset.from_dict(columns, features=datasets.Features(kinds))
    made.save_to_disk(str(tmp_path / "data"))
    dataset = datasets.load_from_disk(str(tmp_path / "data"))
    arrow = dataset.with_format("arrow")
    options = {"batched": True, "batch_size": 3, "remove_columns": removed}
    ordinary = dataset.map(lambda rows: dict(tok(rows["text"])), **options)
    kept = {} if removed else {"fn_kwargs": {"keep_column": True}}
    mapped = arrow.map(tok.encode_arrow, num_proc=num_proc, **options, **kept).with_format(None)
    assert mapped.column_names == ordinary.column_names
    assert mapped[:] == ordinary[:]
    assert all(mapped.features[name] == kinds[name] for name in kinds if name in mapped.features)
    again = mapped.with_format("arrow").map(
        tok.encode_arrow, fn_kwargs={"column": "id"}, batched=True
    )
    assert "id" not in again.column_names
    # replaced, as by an ordinary map
    assert again.with_format(None)["input_ids"][:] == tok(columns["id"])["input_ids"]


def test_arrow_of_any_kind():
    """A table, a batch, a column, a chunked one; other types of text."""
    tok = build_ours("bert")
    table = pa.table({"words": pa.chunked_array([TEXTS[:1], TEXTS[1:]])})
    expected = tok(TEXTS)["input_ids"]
    whole = table.combine_chunks()
    for texts in (
        table,
        whole.to_batches()[0],
        table["words"].cast(pa.large_string()),
        whole["words"].chunk(0),
        pa.array(["", *TEXTS])[1:],
    ):
        assert tok.encode_arrow(texts, column="words")["input_ids"].to_pylist() == expected
    assert tok.encode_arrow(pa.array([], pa.string())).num_rows == 0


@pytest.mark.parametrize("name", REPRESENTATIONS)
@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5"])
def test_arrow_is_the_call(kind, name):
    tokenizer = NumberTokenizer.from_tokenizer(build_source(kind), numbers=REPRESENTATIONS[name])
    rows = [text for text in MIXED_TEXTS if "1e400" not in text]
    for options, called in (
        ({"return_numbers": True}, {}),
        ({"return_numbers": False, "max_length": 6}, {"truncation": True}),
        ({"add_special_tokens": False}, {}),
    ):
        expected = dict(tokenizer(rows, **options, **called))
        for given in (pa.table({"text": rows}), pa.chunked_array([rows[:2], rows[2:]])):
            assert tokenizer.encode_arrow(given, **options).to_pydict() == expected


@pytest.mark.parametrize("compact", [False, True])
def test_every_bit_of_a_float64(compact):
    """In a call, as lists and as tensors, padded, and in Arrow: compact, as int64 of the same bits,
    as torch has them.
    """
    numbers = FloatBits(width=64, compact=compact)
    tokenizer = NumberTokenizer.from_pretrained(
        None, numbers=numbers, return_numbers=True, pad_token="<|endoftext|>"
    )
    rows = ["a -0.30000000000000004 and 5e-324", "none", "7.000000000000001"]
    values = np.array([-0.30000000000000004, 5e-324, 7.000000000000001])
    expected = values.view(np.int64)
    if not compact:
        expected = np.unpackbits(values.astype(">f8").view(np.uint8)).reshape(-1, 64)
    called = dict(tokenizer(rows))
    flat = zip(
        *(itertools.chain(*called[f"number_{one}"]) for one in ("bits", "mask")), strict=True
    )
    assert [bits for bits, is_number in flat if is_number] == expected.tolist()
    assert tokenizer.encode_arrow(pa.array(rows)).to_pydict() == called
    padded = tokenizer(rows, padding=True, return_tensors="pt")
    assert padded["number_bits"][padded["number_mask"]].tolist() == expected.tolist()
    if compact:  # a file holds them without a sign, and so do the lists that datasets makes of it
        unsigned = [[one % 2**64 for one in row] for row in called["number_bits"]]
        for given in (called, called | {"number_bits": unsigned}):
            assert tokenizer.pad(given)["number_bits"] == padded["number_bits"].tolist()


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (pa.table({"body": ["a"]}), {}, "no column 'text', only body; name"),
        (pa.array(["a", None]), {}, "row 1 of the text column is null"),
        (pa.array([1]), {}, "got int64"),
        (pa.array(["a"]), {"max_length": 1}, "max_length=1 leaves no room for the special tokens"),
    ],
)
def test_arrow_says_what_is_wrong(given, options, message):
    with pytest.raises(InputError, match=message):
        build_ours("bert").encode_arrow(given, **options)
