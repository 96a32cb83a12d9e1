"""Batches from worker processes: what arrives is what was made, bit for bit, whatever was done to it
meanwhile.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader

from numtok_torch.data import NumberCollator

# What does not survive float16, float32, or a comparison with zero.
HOSTILE = [0.0, -0.0, 70000.0, 1e-9, 2049.0, 0.1, 5e-324, 1e300, np.inf, -np.inf, np.nan]
ROW = {
    "input_ids": np.arange(len(HOSTILE), dtype=np.int32),
    "number_index": np.arange(len(HOSTILE), dtype=np.int32),
    "number_value": np.array(HOSTILE),
    "number_bits": np.arange(2**32 - len(HOSTILE), 2**32, dtype=np.uint32),
}


def same(found, expected):
    assert type(found) is dict and list(found) == list(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype and found[name].shape == values.shape, name
        assert found[name].numpy().tobytes() == values.numpy().tobytes(), name


@pytest.mark.parametrize("max_length", [11, 20_000])
def test_from_a_worker(max_length):
    """Small and large batches, each in a memory of its own, which can be written to."""
    collator = NumberCollator(0, "causal", max_length=max_length, padding="max_length")
    expected = collator([ROW] * 2)
    found = list(DataLoader([ROW] * 6, batch_size=2, num_workers=1, collate_fn=collator))
    assert len(found) == 3
    found[0]["labels"][:] = 5
    for batch in found[1:]:
        same(batch, expected)


def _with_more(rows):
    """A collator around ours, which replaces, adds and removes."""
    batch = NumberCollator(0, objective=None)(rows)
    batch["number_bits"] = torch.zeros(2, requires_grad=True)
    batch["names"] = [f"row {k}" for k in range(len(rows))]
    del batch["number_mask"]
    return batch


def test_a_collator_around_it():
    (found,) = DataLoader([ROW] * 2, batch_size=2, num_workers=1, collate_fn=_with_more)
    assert found.pop("names") == ["row 0", "row 1"] and found.pop("number_bits").requires_grad
    expected = NumberCollator(0, objective=None)([ROW] * 2)
    same(found, {name: expected[name] for name in expected if name in found})
    assert "number_mask" not in found and "number_value" in found
