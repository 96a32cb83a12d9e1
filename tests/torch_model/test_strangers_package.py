"""A stranger's package: a representation with its embedding and its head, found by its entry point,
trained, saved, loaded and decoded.
"""

import tomllib

import pytest
from new_process import run

pytest.importorskip("torch")

PROJECT = """
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
    """The cube root of a number's float64, and further powers of it: small for large numbers."""

    powers: int = 2
    overflow: str = "text"
    name = "root"
    positional = ("powers",)
    declared = (Column("number_root", pa.float32(), np.float32, (0,), fill=-1.0),)

    def fits(self, numbers):
        return np.isfinite(numbers.to_float64())

    def columns(self):
        return {"number_root": self.declared[0].shaped(self.powers)}

    def encode(self, numbers):
        roots = np.cbrt(numbers.to_float64())[:, None] ** np.arange(1, self.powers + 1)
        flat = pa.array(roots.astype(np.float32).ravel())
        kind = self.columns()["number_root"].type
        lists = pa.FixedSizeListArray.from_arrays(flat, type=kind.storage_type)
        return {"number_root": pa.ExtensionArray.from_storage(kind, lists)}

    def decode(self, columns):
        roots = np.array(columns["number_root"].to_pylist()).reshape(-1, self.powers)[:, 0]
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
        self.linear = nn.Linear(2, d_model)
        self.shown = []

    def embed(self, words, rows):
        self.shown.append(rows)
        return words + self.linear(rows)


class RootHead(NumberHead):
    name = "root"
    target = "number_root"

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)
        self.layer = nn.Linear(d_model, 1)

    def loss(self, hidden, target):
        return (self.layer(self.checked(hidden, target)) - target[:, :1]).square().mean()

    @torch.no_grad()
    def predict(self, hidden):
        return NumberPrediction(self.layer(self.checked(hidden)).squeeze(-1).double() ** 3)
"""
PROGRAM = """
import sys

import numtok

tokenizer = numtok.Tokenizer.from_pretrained(numbers="root")
assert "roots" in sys.modules and "torch" not in sys.modules
rows = tokenizer.encode_batch(["It weighs 8 kg.", "Here we owe -27 of them."])
assert rows["number_root"].to_pylist() == [[[2.0, 4.0]], [[-3.0, 9.0]]]
assert numtok.representations.parse("xval,root:3")[1].powers == 3

import inspect

import numpy as np
import pyarrow.parquet as pq
import torch
import transformers

from numtok.errors import RepresentationError, SchemaError
from numtok.hf import NumberTokenizer
from numtok.testing import check_representation
from numtok_torch import NumberCollator, NumberDataset, NumberModel, generate
from numtok_torch import embedding_from_schema, head_from_schema

check_representation(tokenizer.representations[0], examples=5)

# Into files, blocks, batches and the drop-in, as it is declared.
texts = ["It weighs 8 kg, not -27", "none", "0 and 64e3"]
roots = [[2, 4], [-3, 9], [0, 0], [40, 1600]]
with open(sys.argv[1] + ".txt", "w") as file:
    print(*texts, sep=chr(10), file=file)
numtok.encode_files(sys.argv[1] + ".txt", sys.argv[1] + ".parquet", numbers="root,xval")
for options in ({}, {"block_size": 8}):
    data = NumberDataset(pq.read_table(sys.argv[1] + ".parquet"), **options)
    found = np.concatenate([row["number_root"].reshape(-1, 2) for row in data])
    assert found.tolist() == roots, found
batch = NumberCollator.from_schema(data.schema, 0, objective="causal")(list(data))
drop_in = NumberTokenizer.from_pretrained(None, numbers="root")
drop_in.pad_token = drop_in.convert_ids_to_tokens(0)
for given in (batch, drop_in(texts, padding=True, return_tensors="pt", return_numbers=True)):
    stream, mask = given["number_root"], given["number_mask"]
    assert stream.dtype == torch.float32 and stream.shape == (*mask.shape, 2)
    assert stream[mask].tolist() == roots and (stream[~mask] == -1).all()

torch.manual_seed(0)
sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32}
ends = {"bos_token_id": None, "eos_token_id": None}
config = transformers.GPT2Config(vocab_size=tokenizer.vocab_size, **sizes, **ends)
data = NumberDataset(rows)
model = NumberModel.build(transformers.GPT2LMHeadModel(config), data, tokenizer, head="root")
assert type(model.embedding).__module__ == type(model.head).__module__ == "roots.layers"
# a Trainer drops what is not in the signature
assert "number_root" in inspect.signature(model.forward).parameters
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
losses = []
for _ in range(30):
    optimizer.zero_grad()
    found = model(**model.collator(list(data)))
    found.loss.backward()
    optimizer.step()
    losses.append(float(found.number_loss))
assert losses[-1] < losses[0] / 2, losses
model.save_pretrained(sys.argv[1])
loaded = NumberModel.from_pretrained(sys.argv[1])

# What it writes it reads: the stream of each number that it wrote, with a cache and without.
words = sorted({*range(len(tokenizer))} - {*tokenizer.tokens.values()})  # all but [NUM]
for use_cache in (True, False):
    loaded.embedding.shown.clear()
    options = {"max_new_tokens": 4, "suppress_tokens": words, "use_cache": use_cache}
    written = generate(loaded, tokenizer, ["It weighs 8 and"], details=True, **options)
    shown = loaded.embedding.shown[-3:] if use_cache else loaded.embedding.shown[-1:]
    read = (torch.cat(shown)[-3:, 0].double() ** 3).tolist()
    assert np.allclose(read, written.values[0][:3], rtol=1e-5)
    assert [float(one.value) for one in numtok.extract(written.texts[0])] == written.values[0]


@numtok.representations.register
class Bare(type(tokenizer.representations[0])):
    name = "bare"


bare = numtok.Tokenizer.from_pretrained(numbers=[Bare()]).encode_batch(["1 and 2"])
for choose in (embedding_from_schema, head_from_schema):
    try:
        choose(bare.schema, 16)
    except (RepresentationError, SchemaError) as error:
        assert "numtok.representations.register(Bare, " in str(error), error
    else:
        raise AssertionError
"""


def test_a_representation_with_its_layers_comes_from_an_entry_point(tmp_path, monkeypatch):
    """The package lies in a folder as an installer puts it there."""
    project = tomllib.loads(PROJECT)["project"]
    described = tmp_path / "installed" / f"{project['name']}-{project['version']}.dist-info"
    points = [
        line
        for group, names in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {at}" for name, at in names.items()))
    ]
    package = tmp_path / "installed" / "roots"
    for path, content in {
        described / "METADATA": "Name: roots\nVersion: 1.0\n",
        described / "entry_points.txt": "\n".join(points),
        package / "__init__.py": REPRESENTATION,
        package / "layers.py": LAYERS,
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    run(PROGRAM, tmp_path, tmp_path / "saved")
