"""Values that would make a model one of NaN: xVal's layer warns of them, and NumberModel refuses to
go on.
"""

import warnings

import pytest
import torch
import torch_models as tiny

from numtok_torch import ModelError, XValEmbedding

D = tiny.D
pytestmark = pytest.mark.filterwarnings("ignore:number_scaled reaches")


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


# NumberModel refuses


@pytest.mark.parametrize(("value", "mode"), [(float("nan"), True), (-float("inf"), False)])
def test_a_stream_that_is_not_finite_is_named(value, mode):
    """At the last token no loss depends on it; the gradient of its word vector is NaN all the same.
    What is no number may be anything.
    """
    expected = r"number_scaled is not finite at 1 places.*encode the text again"
    with pytest.raises(ModelError, match=expected):
        tiny.number_model().train(mode)(**batch_of(value))
    batch = batch_of()
    batch["number_scaled"][0, 0] = value
    assert torch.isfinite(tiny.number_model().train(mode)(**batch).loss)


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
    model, batch = tiny.number_model(), batch_of()
    spoil(model, batch, what)
    with pytest.raises(ModelError, match=expected):
        model(**batch)
