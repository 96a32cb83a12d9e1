"""What encoding gives back besides a record batch: what became of the numbers, and one text's batch
as an object.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.tokenizer import schema


@dataclass
class EncodeReport:
    """What became of the numbers; reports add up with ``+``.

    Attributes:
        documents, bytes, tokens: of the input and output.
        numbers: found by the grammar.
        left_as_text: numbers that stay ordinary text, by the representation that cannot hold them.
        clipped: numbers replaced by the nearest that the representation holds, by representation.
        in_added_tokens: digits inside the tokenizer's own added tokens, which are not numbers.
        vanishing: numbers so near to zero after scaling that a model can hardly tell, by
            representation.
    """

    documents: int = 0
    bytes: int = 0
    tokens: int = 0
    numbers: int = 0
    left_as_text: dict[str, int] = field(default_factory=dict)
    clipped: dict[str, int] = field(default_factory=dict)
    in_added_tokens: int = 0
    vanishing: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: EncodeReport) -> EncodeReport:
        def add(a: Any, b: Any) -> Any:
            return (
                {key: a.get(key, 0) + b.get(key, 0) for key in a | b}
                if isinstance(a, dict)
                else a + b
            )

        names = [count.name for count in dataclasses.fields(self)]
        return EncodeReport(
            **{name: add(getattr(self, name), getattr(other, name)) for name in names}
        )


class Encoding:
    """One encoded text: a record batch of one row.

    ``encoding["number_scaled"]`` is that column as numpy, ``input_ids`` and the like are
    attributes.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        values, _ = schema.flat(schema.column(self.batch, name))
        if isinstance(values, pa.ExtensionArray):
            return np.asarray(values.to_numpy_ndarray())
        return memory.from_arrow(values)

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if (
            name.startswith("_") or name == "batch"
        ):  # copy and pickle ask for such before there is a batch
            raise AttributeError(name)
        if name not in self.batch.schema.names:
            raise AttributeError(
                f"Encoding has no {name!r}; its columns are {', '.join(self.batch.schema.names)}"
            )
        return self[name]

    def __len__(self) -> int:
        return len(self["input_ids"])

    def __repr__(self) -> str:
        return f"Encoding({len(self)} tokens, {len(self['number_index'])} numbers)"
