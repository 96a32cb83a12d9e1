"""Check what the public functions do with arguments of every type: the obvious thing, or an error of
numtok that says what was wanted.
"""

import dataclasses
import functools
import re

import numpy as np
import pyarrow as pa
import pytest

from numtok import Number, Tokenizer, extract
from numtok.errors import NumtokError
from numtok.numbers.scan import scan
from numtok.representations import REPRESENTATIONS, FoNE, XVal, from_dict

pd = pytest.importorskip("pandas")


@functools.cache
def tok():
    return Tokenizer.from_pretrained()


def ids_of(texts):
    return tok().encode_batch(texts)["input_ids"].to_pylist()


def shown(value):
    """The name of a case: without addresses, which differ between the processes of a run."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


WANT = [[65, 16001], None]  # a 5, and nothing
MISSING = [pd.NA, None, float("nan"), np.float64("nan")]


@pytest.mark.parametrize(
    "texts",
    [
        ("a 5", None),
        iter(["a 5", None]),
        np.array(["a 5", None], object),
        [np.str_("a 5"), None],
        pa.array(["a 5", None], pa.string_view()),
        *(
            pd.Series(["a 5", None], dtype=kind)
            for kind in ("string", "string[pyarrow]", "category", object, None)
        ),
        *(pd.Series(["a 5", missing], dtype=object) for missing in MISSING),
        pd.Series(["a 5", pd.NA], dtype="string").array,
        pd.Series(["a 5", pd.NA], dtype="string").tolist(),
    ],
    ids=shown,
)
def test_texts_of_many_kinds(texts):
    assert ids_of(texts) == WANT == ids_of(["a 5", None])
    assert ids_of(np.array(["a 5", "b"])) == ids_of(["a 5", "b"])


@pytest.mark.parametrize(
    "texts", [pd.DataFrame({"text": ["a"]}), pd.Series([1, 2])], ids=["frame", "numbers"]
)
def test_what_is_not_texts_in_pandas(texts):
    for call in (tok().encode_batch, scan):
        with pytest.raises(NumtokError, match="expected"):
            call(texts)


REQUIRED = {
    "fone": {"int_digits": 6, "frac_digits": 4},
    "quantile_bins": {"edges": (-10.0, 0.0, 10.0)},
}
WRONG = ["a", None, float("nan"), float("inf"), -1, 1.5, 10**30, -(10**30), [], {}, True, b"x"]
WRONG += [(1, 2, 3), ("a",), "\ud800"]
OPTIONS = [
    (name, field.name)
    for name, kind in REPRESENTATIONS.items()
    for field in dataclasses.fields(kind)
]


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_options_of_representations(name, option):
    """Each value is refused when the representation is made, or it works and can be written and
    read.
    """
    for value in WRONG:
        try:
            made = REPRESENTATIONS[name](**REQUIRED.get(name, {}) | {option: value})
        except NumtokError as error:
            assert option in str(error) or name in str(error)
            continue
        assert from_dict(made.to_dict()) == made
        if not made.needs_fit:
            Tokenizer.from_pretrained(numbers=[made]).encode("a -5.25 7")


def test_options_of_numpy_are_plain():
    assert XVal(scale=np.float32(0.5)).to_dict() == XVal(scale=0.5).to_dict()
    assert repr(FoNE(np.int64(6), np.int8(4), bases=[10])) == repr(FoNE(6, 4))
    assert XVal(scale=1) == XVal()
    assert extract(np.str_("5")) == [Number("5", 0, 1, extract("5")[0].value)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("xval", (XVal(),)),
        ("xval,fone:6,4", (XVal(), FoNE(6, 4))),
        (["xval", "fone:6,4"], (XVal(), FoNE(6, 4))),
        (["xval", FoNE(6, 4)], (XVal(), FoNE(6, 4))),
        (XVal(scale=2), (XVal(scale=2),)),
        ([XVal], (XVal(),)),
        (XVal, (XVal(),)),
        (iter([XVal()]), (XVal(),)),
    ],
    ids=shown,
)
def test_representations_by_name(given, expected):
    assert Tokenizer.from_pretrained(numbers=given).representations == expected
