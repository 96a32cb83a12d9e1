"""Columns are declared once: FORMAT.md says what the representations declare, names are given once,
and streams have the type that is declared. A representation of one's own, with its layers: the
stranger's package of tests/torch_model.
"""

import re
from pathlib import Path

import numpy as np

import numtok
from numtok.numbers.numbers import Numbers
from numtok.representations import REPRESENTATIONS, ExponentBins
from numtok.representations.columns import ALWAYS, WITH_TEXT
from numtok.tokenizer.generated_numbers import streams_of

FORMAT = Path(numtok.__file__).with_name("FORMAT.md")


def test_what_a_model_wrote_has_the_declared_type():
    """Expect the type that the stream has in a batch, not the one in a file."""
    tokenizer = numtok.Tokenizer.from_pretrained(None, [ExponentBins()])
    stream = streams_of(tokenizer, Numbers.parse(["1e3", "0"]))["number_bin"]
    assert stream.dtype == np.int64 and stream.tolist() == [141, 0]


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
