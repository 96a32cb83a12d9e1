"""Columns are declared once: FORMAT.md says what the representations declare, names are given once,
and streams have the type that is declared. A representation of one's own, with its layers: the
stranger's package of tests/torch_model.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import numtok
from numtok.numbers.numbers import Numbers
from numtok.representations import REPRESENTATIONS, Column, SingleToken
from numtok.representations.columns import ALWAYS, WITH_TEXT
from numtok.representations.values import numbers_from_floats
from numtok.tokenizer.generated_numbers import streams_of

FORMAT = Path(numtok.__file__).with_name("FORMAT.md")


@dataclass(frozen=True)
class Magnitude(SingleToken):
    """A throw-away representation: the inverse hyperbolic sine, rounded down."""

    overflow: str = "text"
    name = "magnitude"
    declared = (Column("number_magnitude", pa.int32(), np.int64),)

    def fits(self, numbers):
        return np.isfinite(numbers.to_float64())

    def encode(self, numbers):
        return {"number_magnitude": pa.array(np.arcsinh(numbers.to_float64()).astype(np.int32))}

    def decode(self, columns):
        return numbers_from_floats(np.sinh(columns["number_magnitude"].to_numpy()), self.name)


def test_what_a_model_wrote_has_the_declared_type():
    tokenizer = numtok.Tokenizer.from_pretrained(None, [Magnitude()])
    stream = streams_of(tokenizer, Numbers.parse(["1e3", "-2"]))["number_magnitude"]
    assert stream.dtype == np.int64 and stream.tolist() == [7, -1]


def test_format_md_says_what_is_declared():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+?) \| (token|number|row) \|", FORMAT.read_text(), re.M)
    told = [
        (name, re.sub(r"\[.*\]", "[]", kind.replace("\\", "")), per) for name, kind, per in rows
    ]
    # some of them by two kinds
    declared = dict.fromkeys(one for kind in REPRESENTATIONS.values() for one in kind.declared)
    columns = (*ALWAYS, *declared, *WITH_TEXT)
    assert sorted(told) == sorted((one.name, written(one), one.per) for one in columns)


def written(column):
    """A type as the table has it, shapes left out."""
    kind = str(column.value_type)
    kind = {"float": "float32", "double": "float64"}.get(kind, kind)
    kind = f"fixed_shape_tensor<{kind}>[]" if column.shape else kind
    return kind if column.per == "row" else f"list<{kind}>"
