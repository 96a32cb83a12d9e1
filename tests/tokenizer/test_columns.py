"""Columns are declared once: FORMAT.md says what the representations declare, and a representation
of one's own needs no other file.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
import torch
import torch_models as tiny

import numtok
import numtok_torch
from numtok.corpus import encode_corpus
from numtok.errors import RepresentationError
from numtok.hf import NumberTokenizer
from numtok.numbers.numbers import Numbers
from numtok.representations import (
    REPRESENTATIONS,
    Column,
    SingleToken,
    XVal,
    from_dict,
    parse,
    register,
)
from numtok.representations.columns import ALWAYS, WITH_TEXT
from numtok.representations.values import numbers_from_floats, tensor_array, tensor_values
from numtok.tokenizer.written import streams_of
from numtok_torch import NumberEmbedding

FORMAT = Path(numtok.__file__).with_name("FORMAT.md")
TEXTS = ["It weighs 12.5 kg, not -3", "none", "0 and 7e3"]
ALL = [12.5, -3.0, 0.0, 7000.0]


@dataclass(frozen=True)
class Hyperbolic(SingleToken):
    """A throw-away representation: the inverse hyperbolic sine, and two powers of it."""

    powers: int = 3
    overflow: str = "text"
    name: ClassVar[str] = "hyperbolic"
    positional: ClassVar[tuple[str, ...]] = ("powers",)
    declared: ClassVar[tuple[Column, ...]] = (
        Column("number_powers", pa.float32(), np.float32, (0,), fill=-1.0),
    )

    def fits(self, numbers):
        return np.isfinite(numbers.to_float64())

    def columns(self):
        return {"number_powers": self.declared[0].shaped(self.powers)}

    def encode(self, numbers):
        # [n, powers]
        powers = np.arcsinh(numbers.to_float64())[:, None] ** np.arange(1, self.powers + 1)
        return {
            "number_powers": tensor_array(
                powers.astype(np.float32), self.columns()["number_powers"].type
            )
        }

    def decode(self, columns):
        return numbers_from_floats(
            np.sinh(tensor_values(columns["number_powers"])[:, 0]), self.name
        )


def expected(values):
    return (np.arcsinh(np.array(values))[:, None] ** np.arange(1, 4)).astype(np.float32)  # [n, 3]


class Layer(NumberEmbedding):
    """An embedding for it: adds a linear map of the powers, and keeps those that it was shown in
    ``shown``, [n, 3] each.
    """

    name, streams = "hyperbolic", ("number_powers",)

    def __init__(self):
        super().__init__(tiny.D)
        self.linear, self.shown = torch.nn.Linear(3, tiny.D), []

    def embed(self, words, rows):
        self.shown.append(rows)
        return words + self.linear(rows.to(words.dtype))


@pytest.fixture
def hyperbolic():
    register(Hyperbolic)
    try:
        yield Hyperbolic()
    finally:
        del REPRESENTATIONS[Hyperbolic.name]


def test_a_representation_of_ones_own_is_known_by_its_name(hyperbolic):
    assert parse("xval,hyperbolic:4") == (XVal(), Hyperbolic(4))
    assert from_dict(Hyperbolic(2).to_dict()) == Hyperbolic(2)
    tokenizer = numtok.Tokenizer.from_pretrained(None, "hyperbolic")
    batch = tokenizer.encode_batch(TEXTS, keep_text=True)
    assert batch.schema.field("number_powers").type == pa.list_(
        pa.fixed_shape_tensor(pa.float32(), [3])
    )
    np.testing.assert_array_equal(
        batch.column("number_powers").values.to_numpy_ndarray(), expected(ALL)
    )
    assert tokenizer.decode_batch(batch).to_pylist() == TEXTS


def test_a_representation_of_ones_own_goes_through_files_and_batches_into_a_model(
    hyperbolic, tmp_path
):
    tokenizer = numtok.Tokenizer.from_pretrained(None, [hyperbolic, XVal()])
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    encode_corpus([tmp_path / "texts.txt"], tmp_path / "out.parquet", tokenizer)
    data = numtok_torch.NumberDataset(tmp_path / "out.parquet")
    rows = [data[number] for number in range(3)]
    collate = numtok_torch.NumberCollator.from_schema(data.schema, 0, objective="causal")
    batch = collate(rows)
    powers, mask = batch["number_powers"], batch["number_mask"]
    assert powers.dtype == torch.float32 and powers.shape == (*mask.shape, 3)
    np.testing.assert_array_equal(powers[mask].numpy(), expected(ALL))
    assert (powers[~mask] == -1.0).all()
    blocks = numtok_torch.NumberDataset(tmp_path / "out.parquet", block_size=8)
    for some in (rows, blocks):
        found = np.concatenate([row["number_powers"].reshape(-1, 3) for row in some])
        np.testing.assert_array_equal(found, expected(ALL))
    drop_in = NumberTokenizer.from_pretrained(None, numbers=[hyperbolic], return_numbers=True)
    drop_in.pad_token = drop_in.convert_ids_to_tokens(0)
    got = drop_in(TEXTS, padding=True, return_tensors="np")
    np.testing.assert_array_equal(got["number_powers"][got["number_mask"]], expected(ALL))
    assert (got["number_powers"][~got["number_mask"]] == -1.0).all()

    model = numtok_torch.NumberModel(tiny.backbone("gpt2", vocab_size=len(tokenizer)), Layer())
    # the Trainer drops what is not in the signature
    assert "number_powers" in inspect.signature(model.forward).parameters
    model(**batch)["loss"].backward()
    assert model.embedding.linear.weight.grad.abs().sum() > 0
    shown = model.train(False)(**batch)["hidden"]
    other = model(**batch | {"number_powers": powers + mask[..., None]})["hidden"]
    assert not torch.equal(shown, other)


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_model_reads_what_it_writes_by_a_representation_of_ones_own(hyperbolic, use_cache):
    tokenizer = numtok.Tokenizer.from_pretrained(None, [hyperbolic, XVal()])
    head = numtok_torch.head_from_schema(tokenizer.batch_schema(), tiny.D)
    whole = tiny.backbone("gpt2", vocab_size=len(tokenizer))
    model = numtok_torch.NumberModel(whole, Layer(), head)
    words = sorted({*range(len(tokenizer))} - {*tokenizer.tokens.values()})  # all but [NUM]
    options = {"max_new_tokens": 4, "suppress_tokens": words, "use_cache": use_cache}
    prompt = ["It weighs 12.5 and"]
    got = numtok_torch.generate(model, tokenizer, prompt, details=True, **options)
    assert len(got.values[0]) == 4 and len(set(got.values[0])) > 1
    shown = torch.cat(model.embedding.shown[-3:] if use_cache else model.embedding.shown[-1:])
    np.testing.assert_array_equal(shown.numpy()[-3:], expected(got.values[0][:3]))


def test_what_a_model_wrote_has_the_declared_type():
    @dataclass(frozen=True)
    class Magnitude(Hyperbolic):
        declared: ClassVar[tuple[Column, ...]] = (Column("number_magnitude", pa.int32(), np.int64),)

        def columns(self):
            return {"number_magnitude": self.declared[0]}

        def encode(self, numbers):
            return {"number_magnitude": pa.array(np.arcsinh(numbers.to_float64()).astype(np.int32))}

    tokenizer = numtok.Tokenizer.from_pretrained(None, [Magnitude()])
    streams = streams_of(tokenizer, Numbers.parse(["1e3", "-2"]))
    assert streams["number_magnitude"].dtype == np.int64 and streams[
        "number_magnitude"
    ].tolist() == [7, -1]


def test_names_are_given_once():
    @dataclass(frozen=True)
    class Other(Hyperbolic):
        name: ClassVar[str] = "xval"

    @dataclass(frozen=True)
    class Clashing(Hyperbolic):
        name: ClassVar[str] = "clashing"
        declared: ClassVar[tuple[Column, ...]] = (Column("place_value", pa.float32(), np.float32),)

    with pytest.raises(RepresentationError, match="there is a representation 'xval' already, XVal"):
        register(Other)
    with pytest.raises(RepresentationError, match="there is a column 'place_value' already"):
        register(Clashing)
    assert "clashing" not in REPRESENTATIONS and REPRESENTATIONS["xval"] is XVal


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
