"""The quick way of the drop-in tokenizer against its general way, Arrow against lists, and the example that a user would copy."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")
import numpy as np
import pyarrow as pa
from hf_cases import build_source
from hf_checks import compare
from hostile import texts
from hypothesis import example, given, settings
from hypothesis import strategies as st

from numtok import FloatBits, PlaceValue, Subword, XVal
from numtok.errors import InputError, TokenizerError
from numtok.hf import NumberTokenizer
from numtok.hf import batch as hf_fast
from numtok.representations import FP15, P10, FoNE

KINDS = ["gpt2", "llama3"]
REPRESENTATIONS: dict[str, list[Any]] = {
    "xval and bits": [XVal(scale=0.5), FloatBits(compact=True)],
    "bits and fone": [FloatBits(), FoNE(6, 4)],
    "place": [PlaceValue()],
    "p10": [P10()],
    "fp15": [FP15()],
    "subword": [Subword()],
}
TEXTS = ["a -1.5e3 kg", "", "none [NUM] <|0.00|>12", "1,234.5 é 7 8 9\n\n  10km <mask> 3", "5", "x" * 40 + " 1e400"]


@pytest.fixture(scope="module", autouse=True)
def every_batch_is_worth_while() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hf_fast, "SMALL", 0)
        yield


_made: dict[tuple[str, str], tuple[NumberTokenizer, NumberTokenizer]] = {}


def both_ways(kind: str, name: str) -> tuple[NumberTokenizer, NumberTokenizer]:
    """Two tokenizers: one takes the quick way, one does not."""
    if (kind, name) not in _made:
        _made.clear()
        pair = tuple(NumberTokenizer.from_tokenizer(build_source(kind), numbers=REPRESENTATIONS[name]) for _ in range(2))
        assert pair[0].numtok.has_fast_engine(parse_special=True)
        for tokenizer, fast in zip(pair, (True, False), strict=True):
            tokenizer.core().fast = fast
        _made[kind, name] = pair[0], pair[1]
    return _made[kind, name]


calls = st.fixed_dictionaries(
    {},
    optional={
        "add_special_tokens": st.booleans(),
        "padding": st.sampled_from([False, True, "longest", "max_length"]),
        "truncation": st.sampled_from([False, True, "longest_first", "only_first"]),
        "max_length": st.integers(2, 12),
        "pad_to_multiple_of": st.sampled_from([None, 4]),
        "padding_side": st.sampled_from([None, "left", "right"]),
        "return_token_type_ids": st.sampled_from([None, True, False]),
        "return_attention_mask": st.sampled_from([None, True, False]),
        "return_special_tokens_mask": st.booleans(),
        "return_length": st.booleans(),
        "return_numbers": st.booleans(),
    },
)


@pytest.mark.parametrize("name", REPRESENTATIONS)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(rows=st.lists(texts, min_size=1, max_size=4), options=calls, sides=st.tuples(*[st.sampled_from(["left", "right"])] * 2))
@example(rows=TEXTS, options={"return_numbers": True}, sides=("right", "right"))
@example(rows=TEXTS, options={"return_numbers": True, "padding": True, "truncation": True, "max_length": 5}, sides=("left", "left"))
@example(rows=["", ""], options={"return_numbers": True, "padding": True, "return_special_tokens_mask": True}, sides=("right", "left"))
def test_quick_is_general(kind: str, name: str, rows: list[str], options: dict[str, Any], sides: tuple[str, str]) -> None:
    quick, general = both_ways(kind, name)
    for tokenizer in (quick, general):
        tokenizer.padding_side, tokenizer.truncation_side = sides
    padded = options.get("padding", False) is not False and not (options["padding"] == "max_length" and not options.get("truncation"))
    for tensors in (None, "np", "pt") if padded else (None,):
        compare(quick, general, lambda one: one(rows, **options, return_tensors=tensors), (rows, options, tensors))  # noqa: B023


def test_the_quick_way_is_taken() -> None:
    quick, general = both_ways("gpt2", "xval and bits")
    assert isinstance(hf_fast.encode_fast(quick, TEXTS, None, True, {}), hf_fast.LazyBatchEncoding)
    assert hf_fast.encode_fast(general, TEXTS, None, True, {}) is None
    for options in ({"return_offsets_mapping": True}, {"is_split_into_words": True}, {"split_special_tokens": True}, {"stride": 1}):
        assert hf_fast.encode_fast(quick, TEXTS, None, True, options) is None, options
    assert hf_fast.encode_fast(quick, TEXTS, TEXTS, True, {}) is None
    assert hf_fast.encode_fast(quick, "a 5", None, True, {}) is None


def test_encodings_are_those_of_the_call() -> None:
    """They are made later, with the sides and tokens of the moment of the call."""
    quick, general = both_ways("gpt2", "place")
    for tokenizer in (quick, general):
        tokenizer.padding_side, tokenizer.truncation_side = "left", "left"
    ours, theirs = (one(TEXTS, padding=True, truncation=True, max_length=6) for one in (quick, general))
    quick.padding_side, quick.truncation_side = "right", "right"
    assert [one.ids for one in ours.encodings] == [one.ids for one in theirs.encodings] == ours["input_ids"]
    assert ours.char_to_token(0, 3) == theirs.char_to_token(0, 3)


# Arrow -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPRESENTATIONS)
@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5"])
def test_arrow_is_the_call(kind: str, name: str) -> None:
    tokenizer = NumberTokenizer.from_tokenizer(build_source(kind), numbers=REPRESENTATIONS[name])
    rows = [text for text in TEXTS if "1e400" not in text]
    for given_rows in (pa.table({"text": rows}), pa.record_batch({"text": rows}), pa.chunked_array([rows[:2], rows[2:]]), pa.array(rows)):
        for options in ({"return_numbers": True}, {"return_numbers": False, "max_length": 6}, {"add_special_tokens": False}):
            table = tokenizer.encode_arrow(given_rows, **options)
            cut = {"truncation": True, "max_length": options["max_length"]} if "max_length" in options else {}
            called = tokenizer(rows, **({name: value for name, value in options.items() if name != "max_length"} | cut))
            assert table.to_pydict() == dict(called)


def test_arrow_says_what_is_wrong() -> None:
    tokenizer = NumberTokenizer.from_pretrained(None)
    with pytest.raises(InputError, match="no column 'text', only body; name"):
        tokenizer.encode_arrow(pa.table({"body": ["a"]}))
    with pytest.raises(InputError, match="row 1 of the text column is null"):
        tokenizer.encode_arrow(pa.array(["a", None]))
    with pytest.raises(InputError, match="got int64"):
        tokenizer.encode_arrow(pa.array([1]))


def test_arrow_in_datasets(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    tokenizer = NumberTokenizer.from_pretrained(None, numbers=[XVal(), FloatBits(), FoNE(6, 4)], return_numbers=True)
    rows = ["a 0.1 and -3", "none", "7"] * 5
    dataset = datasets.Dataset.from_dict({"text": rows})
    mapped = dataset.with_format("arrow").map(tokenizer.encode_arrow, batched=True, batch_size=4, remove_columns=["text"])
    expected = tokenizer(rows)
    got = mapped.with_format("numpy", dtype=None)[:]
    for name, values in expected.items():
        for ours, theirs in zip(got[name], values, strict=True):
            assert np.array_equal(np.asarray(ours, np.asarray(theirs).dtype), np.asarray(theirs)), name
    assert got["number_values"][0].dtype == np.float64 and got["number_fourier"][0].shape[1:] == (10, 2)
    mapped.save_to_disk(str(tmp_path / "saved"))
    assert datasets.load_from_disk(str(tmp_path / "saved")).with_format(None)[0]["number_values"] == expected["number_values"][0]


def test_a_path_that_is_none() -> None:
    with pytest.raises(TokenizerError, match="does not exist; give"):
        NumberTokenizer.from_pretrained("/nowhere/tokenizer")


# The example -----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_example_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    path = Path(__file__).parents[2] / "examples" / "huggingface.py"
    spec = importlib.util.spec_from_file_location("example_huggingface", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", [str(path), "--steps", "100", "--batch-size", "32"])
    module.main()
    out = capsys.readouterr().out
    assert len(re.findall(r"^\d+ \+ \d+ = ?-?[\d.]+    \(right: \d+\)$", out, re.M)) == 5
    after, before = map(float, re.search(r"off by ([\d.]+) on average, before training by ([\d.]+)$", out, re.M).groups())  # type: ignore[union-attr]
    assert after < 20 < 80 < before  # 6.3 in one run; always writing 99 is off by 33
