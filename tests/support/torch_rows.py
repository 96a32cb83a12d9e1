"""Random rows for the tests of batches and masks, and the slow, obviously right way to put them
into a batch.
"""

import numpy as np
from hypothesis import strategies as st
from kept import kept

import numtok

PAD = 7777
SHAPES = {
    "number_value": (np.float64, 1.0, ()),
    "number_scaled": (np.float32, 1.0, ()),
    "number_bits": (np.uint8, 0, (32,)),
    "number_fourier": (np.float32, 0, (3, 2)),
    "number_digits": (np.uint8, 0, (4,)),
    "number_bin": (np.int64, 0, ()),
    "number_log_fourier": (np.float32, 0, (2, 2)),
}

# A row as (ids, places of numbers, seed of all else).
ROWS = st.integers(0, 9).flatmap(
    lambda length: st.tuples(
        st.lists(st.integers(0, 500), min_size=length, max_size=length),
        st.sets(st.integers(0, max(0, length - 1)), max_size=length).map(
            lambda places: sorted(places) if length else []
        ),
        st.integers(0, 2**32 - 1),
    )
)


@kept
def tokenizer(*numbers):
    """The default tokenizer, with these representations."""
    return numtok.Tokenizer.from_pretrained(None, list(numbers) or None)


def sparse(row, compact=False):
    """As :class:`NumberDataset` gives it."""
    ids, places, seed = row
    rng, made = np.random.default_rng(seed), {}
    for name, (dtype, _, inner) in SHAPES.items():
        shape = (len(places), *inner)
        made[name] = (
            rng.integers(0, 2 if name == "number_bits" else 10, shape)
            if dtype in (np.uint8, np.int64)
            else rng.normal(size=shape)
        ).astype(np.int16 if name == "number_bin" else dtype)
    if compact:
        made["number_bits"] = rng.integers(0, 2**32, len(places), dtype=np.uint32)
    place_value = rng.integers(-3, 4, len(ids)).astype(np.int16)
    return {
        "input_ids": np.array(ids, np.int32),
        "number_index": np.array(places, np.int32),
        **made,
        "place_value": place_value,
    }


def dense(row, kind="numpy"):
    """The same row with one value per token, and rubbish where there is no number."""
    import torch

    count = len(row["input_ids"])
    made = {"input_ids": row["input_ids"], "place_value": row["place_value"]}
    made["number_mask"] = np.zeros(count, np.bool_)
    made["number_mask"][row["number_index"]] = True
    for name in SHAPES:
        values = row[name]
        filled = np.full((count, *values.shape[1:]), 77).astype(values.dtype)
        filled[row["number_index"]] = values
        made[name] = filled
    if kind == "lists":
        return {name: values.tolist() for name, values in made.items()}
    return (
        {
            name: torch.tensor(values.astype(np.int64) if values.dtype == np.uint32 else values)
            for name, values in made.items()
        }
        if (kind == "tensors")
        else made
    )


def cut(row, max_length, side):
    """Truncate first: a row whose numbers are one token each."""
    count = len(row["input_ids"])
    first = max(0, count - max_length) if side == "left" else 0
    last = min(count, first + max_length)
    kept = (row["number_index"] >= first) & (row["number_index"] < last)
    made = {
        name: values[first:last] if name in ("input_ids", "place_value") else values[kept]
        for name, values in row.items()
    }
    made["number_index"] = made["number_index"] - first
    return made


def slow_batch(rows, side="right", multiple=1):
    """Token by token."""
    width = -(-max(1, *(len(row["input_ids"]) for row in rows)) // multiple) * multiple
    out = {
        "input_ids": np.full((len(rows), width), PAD, np.int64),
        "attention_mask": np.zeros((len(rows), width), np.int64),
        "labels": np.full((len(rows), width), -100, np.int64),
        "place_value": np.zeros((len(rows), width), np.int64),
        "number_mask": np.zeros((len(rows), width), np.bool_),
    }
    for name, (dtype, fill, _) in SHAPES.items():
        values = rows[0][name]
        kind = np.int64 if values.dtype == np.uint32 else dtype
        out[name] = np.full((len(rows), width, *values.shape[1:]), fill, kind)
    for r, row in enumerate(rows):
        shift = 0 if side == "right" else width - len(row["input_ids"])
        for t, number in enumerate(row["input_ids"].tolist()):
            out["input_ids"][r, shift + t] = out["labels"][r, shift + t] = number
            out["attention_mask"][r, shift + t] = 1
            out["place_value"][r, shift + t] = row["place_value"][t]
        for k, t in enumerate(row["number_index"].tolist()):
            out["number_mask"][r, shift + t] = True
            for name in SHAPES:
                out[name][r, shift + t] = row[name][k]
    return out


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, values in expected.items():
        values = np.asarray(values)
        assert found[name].numpy().dtype == values.dtype, name
        np.testing.assert_array_equal(found[name].numpy(), values, err_msg=name)
