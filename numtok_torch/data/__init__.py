"""Data: encoded files as torch datasets, and rows to batches. May import numtok only."""

from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.dataset import IterableNumberDataset, NumberDataset

__all__ = ["IterableNumberDataset", "NumberCollator", "NumberDataset"]
