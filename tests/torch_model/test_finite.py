"""Values that would make a model one of NaN: xVal's layer warns of them, and NumberModel refuses to
go on.
"""

import json
import warnings

import pytest
import torch
import torch_models as tiny
from places import SAMPLE

import numtok
from numtok import Numbers, XVal
from numtok.corpus import encode_corpus, tokenizer_of
from numtok.corpus.fit import ScaleFit
from numtok.representations import from_dict
from numtok_torch import (
    ModelError,
    NumberCollator,
    NumberDataset,
    NumberModel,
    XValEmbedding,
    embedding_from_schema,
    head_from_schema,
)

D = tiny.D
pytestmark = pytest.mark.filterwarnings("ignore:number_scaled reaches")


def small():
    return NumberModel(tiny.backbone("gpt2"), tiny.embedding("xval"), tiny.head("scalar"))


def batch_of(value=2.0):
    ids = torch.arange(12).reshape(2, 6) + 3
    mask = torch.zeros(2, 6, dtype=torch.bool)
    mask[:, 3] = mask[:, 5] = True
    scaled = torch.where(mask, 0.5, 1.0)
    scaled[1, 5] = value  # the last token, which no label depends on
    return {"input_ids": ids, "labels": ids.clone(), "number_mask": mask, "number_scaled": scaled}


# The layer warns


def test_the_layer_warns_once_and_names_the_way_out():
    layer, batch, words = XValEmbedding(D), batch_of(6.02e23), torch.randn(2, 6, D)
    with pytest.warns(UserWarning, match=r"number_scaled reaches 6\.02e\+23.*fitted scale.*XVal"):
        layer(words, batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(words, batch)
        layer = XValEmbedding(D)
        layer(words, batch_of(-999.0))
        batch["number_scaled"][0, 0] = 1e30  # of a token that is no number
        layer(words, {**batch, "number_mask": torch.zeros(2, 6, dtype=torch.bool)})
        none = {name: stream[:0] for name, stream in batch.items()}
        assert layer(words[:0], none).shape == (0, 6, D)
    compiled = torch.compile(XValEmbedding(D), fullgraph=True, backend="aot_eager")
    compiled(words, batch_of(6.02e23))  # no warning in a graph, and no break of it


# NumberModel refuses


@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_stream_that_is_not_finite_is_named(value, mode):
    """At the last token no loss depends on it; the gradient of its word vector is NaN all the same.
    What is no number may be anything.
    """
    expected = r"number_scaled is not finite at 1 places.*encode the text again"
    with pytest.raises(ModelError, match=expected):
        small().train(mode)(**batch_of(value))
    batch = batch_of()
    batch["number_scaled"][0, 0] = value
    assert torch.isfinite(small().train(mode)(**batch).loss)


def spoil(model, batch, what):
    """A number too large, parameters that an earlier step destroyed, a backbone that overflows."""
    if what == "input":
        batch["number_scaled"][0, 3] = 6.02e23
    elif what == "weight":
        model.get_parameter("backbone.transformer.h.0.mlp.c_fc.weight").data[0, 0] = float("nan")
    else:
        model.backbone.lm_head.register_forward_hook(lambda *seen: seen[2] * float("inf"))


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("input", r"number_loss is \w+, .*: number_scaled reaches 6\.02e\+23.*fitted scale"),
        ("weight", r"token_loss is nan.*1 of \d+ parameters are not finite, backbone\.transf"),
        ("logits", r"token_loss is nan.*the logits are not finite although all parameters are"),
    ],
)
def test_what_made_a_loss_not_finite_is_named(what, expected):
    model, batch = small(), batch_of()
    spoil(model, batch, what)
    with pytest.raises(ModelError, match=expected):
        model(**batch)


def test_infinite_gradients_under_a_scaler_are_no_error():
    """Under float16 a GradScaler tries how far it can go: it skips steps with infinite gradients,
    and the losses stay finite.
    """
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    found = []
    for _ in range(4):
        optimizer.zero_grad()
        scaler.scale(model(**batch_of()).loss).backward()
        gradients = [one.grad for one in model.parameters() if one.grad is not None]
        found.append(all(torch.isfinite(one).all() for one in gradients))
        scaler.step(optimizer)
        scaler.update()
    assert not found[0] and all(torch.isfinite(one).all() for one in model.parameters())


# From a corpus to losses


def losses_of(folder, numbers, fit, steps=5):
    """The losses of some steps on the sample, which holds an Avogadro number."""
    path, tokenizer = folder / "a.parquet", numtok.Tokenizer.from_pretrained(numbers=[numbers])
    encode_corpus([SAMPLE], path, tokenizer, fit=fit)
    data = NumberDataset(path, tokenizer=tokenizer_of(path), block_size=64)
    layers = embedding_from_schema(data.schema, D), head_from_schema(data.schema, D)
    model = NumberModel(tiny.backbone("gpt2", vocab_size=16_004), *layers)
    collate = NumberCollator.from_schema(data.schema, pad_token_id=0, objective="causal")
    return tiny.learn(model, collate(list(data)), steps), model


@pytest.mark.parametrize("log", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_fitted_scale_trains(log, tmp_path):
    found, model = losses_of(tmp_path, XVal(log=log), ScaleFit())
    assert found[-1] < found[0] - 0.5
    assert found[0] < 100
    assert all(torch.isfinite(one).all() for one in model.parameters())
    schema = NumberDataset(tmp_path / "a.parquet").schema
    described = json.loads(schema.metadata[b"numtok"])["numbers"][0]
    head, layer = model.head, model.embedding
    assert (head.scale, head.log, layer.config()["log"]) == (described["scale"], log, log)
    values = torch.tensor([0.0, 1.0, -2000.0], dtype=torch.float64)
    columns = from_dict(described).encode(Numbers.parse(["0", "1", "-2000"]))
    stream = torch.tensor(columns["number_scaled"].to_pylist())
    expected = values.sign() * torch.log10(1 + values.abs()) if log else values
    torch.testing.assert_close(stream.double(), expected * described["scale"])
    # the inverse of what the layer is given
    head.network, head.d_model = (torch.nn.Linear(1, 1, bias=False).double(), 1)
    torch.nn.init.ones_(head.network.weight)
    torch.testing.assert_close(head.predict(stream.unsqueeze(-1)).values, values, rtol=1e-5, atol=0)


def test_raw_values_end_in_an_error_and_not_in_nan(tmp_path):
    with (
        pytest.warns(UserWarning, match=r"number_scaled reaches"),
        pytest.raises(ModelError, match=r"number_scaled reaches.*XVal"),
    ):
        losses_of(tmp_path, XVal(), None)
