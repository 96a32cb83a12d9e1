"""Batches from worker processes: what arrives is what was made, bit for bit, whatever its size, and
whatever was done to it meanwhile.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader

from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.messages import ALIGNMENT, PIPE_BYTES, Message

# What does not survive float16, float32, or a comparison with zero.
HOSTILE = [
    0.0,
    -0.0,
    70000.0,
    1e-9,
    2049.0,
    0.1,
    5e-324,
    1e300,
    float("inf"),
    float("-inf"),
    float("nan"),
]
ROW = {
    "input_ids": np.arange(len(HOSTILE), dtype=np.int32),
    "number_index": np.arange(len(HOSTILE), dtype=np.int32),
    "number_value": np.array(HOSTILE),
    "number_bits": np.arange(2**32 - len(HOSTILE), 2**32, dtype=np.uint32),
}
DTYPES = st.sampled_from([np.int64, np.float64, np.float32, np.uint8, np.bool_, np.int32])


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert type(found) is dict
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype and found[name].shape == values.shape, name
        assert found[name].numpy().tobytes() == values.numpy().tobytes(), name


@given(
    st.lists(st.tuples(DTYPES, st.lists(st.integers(0, 4), max_size=3)), max_size=6),
    st.integers(0, 2**32 - 1),
)
def test_what_is_packed_is_unpacked(kinds: list[Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = {
        str(k): rng.integers(0, 2, shape).astype(dtype) for k, (dtype, shape) in enumerate(kinds)
    }
    message = Message(arrays)
    found = pickle.loads(pickle.dumps(message))
    same(found, {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
    places = [tensor.data_ptr() for tensor in found.values() if tensor.numel()]
    assert all((place - places[0]) % ALIGNMENT == 0 for place in places)
    for tensor in found.values():
        tensor += tensor  # they can be written to


def test_what_is_changed_on_the_way() -> None:
    """A collator around ours may replace, add and remove."""
    message = Message({name: np.ones(3) for name in ("a", "b", "c", "d")})
    message["b"] = torch.zeros(2, requires_grad=True)
    message["e"] = "text"
    message["a"][0] = 7
    del message["c"]
    for found in (pickle.loads(pickle.dumps(message)), copy.deepcopy(message)):
        assert list(found) == ["a", "b", "d", "e"]
        assert found["a"].tolist() == [7, 1, 1] and found["e"] == "text"
        assert found["b"].tolist() == [0, 0] and found["b"].requires_grad


@pytest.mark.parametrize("padding", ["longest", "max_length"])
def test_from_a_worker(padding: str) -> None:
    """Through the pipe, and through shared memory."""
    collator = NumberCollator(0, objective="causal", max_length=PIPE_BYTES // 60, padding=padding)
    expected = collator([ROW] * 2)
    assert (sum(tensor.nbytes for tensor in expected.values()) > PIPE_BYTES) == (
        padding == "max_length"
    )
    found = list(DataLoader([ROW] * 6, batch_size=2, num_workers=1, collate_fn=collator))
    assert len(found) == 3
    for batch in found:
        same(batch, expected)
    assert (
        len({batch["input_ids"].data_ptr() for batch in found}) == 3
    )  # each has a memory of its own
    found[0]["labels"][:] = 5
    same(found[1], expected)


def _with_more(rows: Any) -> dict[str, Any]:
    return {
        **NumberCollator(0, objective=None)(rows),
        "names": [f"row {k}" for k in range(len(rows))],
        "ones": torch.ones(2),
    }


def test_a_collator_around_it() -> None:
    (found,) = DataLoader([ROW] * 2, batch_size=2, num_workers=1, collate_fn=_with_more)
    assert found.pop("names") == ["row 0", "row 1"] and found.pop("ones").tolist() == [1, 1]
    same(found, NumberCollator(0, objective=None)([ROW] * 2))
