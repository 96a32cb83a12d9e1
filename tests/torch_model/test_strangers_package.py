"""A stranger's package: a representation with its embedding and its head, found by its entry point,
trained, saved, loaded and decoded.
"""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "roots"
version = "1.0"

[project.entry-points."numtok.representations"]
root = "roots"
"""
REPRESENTATION = '''
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from numtok import Numbers
from numtok.representations import Column, SingleToken, register


@register(embedding="roots.layers:RootEmbedding", head="roots.layers:RootHead")
@dataclass(frozen=True)
class Root(SingleToken):
    """The cube root of a number's float64, as a float32: small for large numbers."""

    name = "root"
    declared = (Column("number_root", pa.float32(), np.float32),)
    overflow: str = "text"

    def fits(self, numbers):
        return np.isfinite(numbers.to_float64())

    def encode(self, numbers):
        return {"number_root": pa.array(np.cbrt(numbers.to_float64()).astype(np.float32))}

    def decode(self, columns):
        roots = np.asarray(columns["number_root"], np.float64)
        return Numbers.parse([repr(float(root) ** 3) for root in roots])
'''
LAYERS = """
import torch
from torch import nn

from numtok_torch import NumberEmbedding, NumberHead, NumberPrediction


class RootEmbedding(NumberEmbedding):
    name = "root"
    streams = ("number_root",)

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)
        self.vector = nn.Parameter(torch.randn(d_model))

    def embed(self, words, rows):
        return words + rows[:, None] * self.vector


class RootHead(NumberHead):
    name = "root"
    target = "number_root"

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)
        self.layer = nn.Linear(d_model, 1)

    def loss(self, hidden, target):
        return (self.layer(self.checked(hidden, target)).squeeze(-1) - target).square().mean()

    @torch.no_grad()
    def predict(self, hidden):
        return NumberPrediction(self.layer(self.checked(hidden)).squeeze(-1).double() ** 3)
"""
PROGRAM = '''
import sys

import numtok
from numtok.errors import RepresentationError, SchemaError

assert "roots" not in sys.modules
try:
    numtok.Tokenizer.from_pretrained(numbers="roots")
except RepresentationError as error:
    assert "unknown representation 'roots'" in str(error)
tokenizer = numtok.Tokenizer.from_pretrained(numbers="root")
assert "roots" in sys.modules and "torch" not in sys.modules
rows = tokenizer.encode_batch(["It weighs 8 kg.", "Here we owe -27 of them."])
assert rows["number_root"].to_pylist() == [[2.0], [-3.0]]

import torch
import transformers

from numtok.testing import check_representation
from numtok_torch import NumberCollator, NumberDataset, NumberModel, generate
from numtok_torch import embedding_from_schema, head_from_schema

check_representation(tokenizer.representations[0], examples=20)
torch.manual_seed(0)
config = transformers.GPT2Config(
    vocab_size=tokenizer.vocab_size, n_embd=16, n_layer=1, n_head=2, n_positions=32, bos_token_id=None, eos_token_id=None,
    resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
)
embedding, head = embedding_from_schema(rows.schema, 16), head_from_schema(rows.schema, 16)
assert type(embedding).__module__ == type(head).__module__ == "roots.layers"
model = NumberModel(transformers.GPT2LMHeadModel(config), embedding, head)
data = NumberDataset(rows)
batch = NumberCollator.from_schema(rows.schema, 0, objective="causal")([data[0], data[1]])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
losses = []
for _ in range(30):
    optimizer.zero_grad()
    found = model(**batch)
    found.loss.backward()
    optimizer.step()
    losses.append(float(found.number_loss))
assert losses[-1] < losses[0] / 2, losses
model.save_pretrained(sys.argv[1])
loaded = NumberModel.from_pretrained(sys.argv[1])
written = generate(loaded, tokenizer, ["It weighs"], max_new_tokens=1, details=True, eos_token_id=-1)
assert len(numtok.extract("It weighs" + written.texts[0])) == 1, written
print("decoded", written.values)

from dataclasses import dataclass
from numtok.representations import register

@dataclass(frozen=True)
class Lost(type(tokenizer.representations[0])):
    """Forgets the second number of a text."""

    name = "lost"

    def encode(self, numbers):
        found = super().encode(numbers)["number_root"].to_pylist()
        return {"number_root": __import__("pyarrow").array(found[:1] + [0.0] * len(found[1:]), "float32")}

register(Lost)
try:
    check_representation(Lost(), examples=50)
except AssertionError:
    print("the kit tells")
lost = numtok.Tokenizer.from_pretrained(numbers=[Lost()]).encode_batch(["1 and 2"])
for choose in (embedding_from_schema, head_from_schema):
    try:
        choose(lost.schema, 16)
    except (RepresentationError, SchemaError) as error:
        assert "numtok.representations.register(Lost, " in str(error), error
    else:
        raise AssertionError
'''


def test_a_representation_with_its_layers_comes_from_an_entry_point(tmp_path):
    """The package is built and installed as a user would, into a folder of its own."""
    project, installed = tmp_path / "project", tmp_path / "installed"
    package = project / "roots"
    package.mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT)
    (package / "__init__.py").write_text(REPRESENTATION)
    (package / "layers.py").write_text(LAYERS)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(installed)]
    subprocess.run([*pip, *offline, str(project)], check=True, timeout=240)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "saved")],
        env=os.environ | {"PYTHONPATH": str(installed), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "decoded" in ran.stdout
    assert "the kit tells" in ran.stdout
