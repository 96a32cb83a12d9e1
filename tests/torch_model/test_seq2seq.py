"""Encoders with a decoder: numbers read, numbers written, in training, on disk, in the Trainer and
in generation.
"""

import copy
import math

import numpy as np
import pytest
import torch
import torch_models as tiny
import trained
import transformers
from torch.utils.data import StackDataset
from torch_generators import PROMPTS, setting
from torch_models import number_model as model
from torch_models import same

from numtok import Tokenizer
from numtok.errors import SchemaError
from numtok.representations import FoNE, XVal
from numtok_torch import (
    NumberDataset,
    NumberModel,
    Seq2SeqNumberCollator,
    embedding_from_schema,
    generate,
    head_from_schema,
)

KINDS = pytest.mark.parametrize("kind", tiny.SEQ2SEQ)


# What it computes


@KINDS
def test_without_numbers_it_is_the_stock_model(kind):
    """Logits and loss, with labels that are ignored, padding, and the decoder's start."""
    stock, given = tiny.backbone(kind), tiny.pairs()
    given["attention_mask"][1, 6:] = 0
    given["labels"][2, 5:] = -100
    given["number_mask"][:], given["number_labels_mask"][:] = False, False
    if kind == "mbart":
        given["labels"][2, 5:] = tiny.PAD
    made = NumberModel(copy.deepcopy(stock), tiny.embedding("fone"), tiny.head("fone")).eval()
    names = ("input_ids", "attention_mask", "labels")
    with torch.no_grad():
        expected, found = stock(**{name: given[name] for name in names}), made(**given)
    same(found.logits, expected.logits)
    same(found.token_loss, expected.loss)
    assert found.number_loss == 0 and found.number_predictions.isnan().all()
    # any collator of labels will do
    alone = NumberModel(stock, None).eval()(**{name: given[name] for name in names})
    same(alone.loss, expected.loss)


@KINDS
def test_numbers_of_both_sides(kind):
    """State t, which has seen the targets before t, predicts the number at t.

    By hand: the decoder's ids and numbers one to the right.
    """
    made, given = model(kind), tiny.pairs()
    stock, mask = made.backbone, given["number_labels_mask"]
    ids = stock.prepare_decoder_input_ids_from_labels(labels=given["labels"])
    written = {
        "number_mask": torch.zeros_like(mask),
        "number_scaled": torch.ones_like(given["number_scaled_labels"]),
    }
    written["number_mask"][:, 1:] = mask[:, :-1]
    written["number_scaled"][:, 1:] = given["number_scaled_labels"][:, :-1]
    output = stock(
        inputs_embeds=made.embedding(stock.get_encoder().embed_tokens(given["input_ids"]), given),
        decoder_inputs_embeds=made.embedding(stock.get_decoder().embed_tokens(ids), written),
        attention_mask=given["attention_mask"],
        output_hidden_states=True,
    )
    found = made(**given)
    same(found.logits, output.logits)
    rows = found.hidden[mask]
    same(found.number_loss, made.head.loss(rows, given["number_scaled_labels"][mask]))
    same(found.number_predictions[mask], made.head.predict(rows).values.double())
    assert found.number_predictions[~mask].isnan().all()
    assert found.hidden.shape == output.decoder_hidden_states[-1].shape


@KINDS
def test_gradients_reach_what_they_reach_in_the_stock_model(kind):
    """It has none of T5's relative positions beyond short rows, nor of those of cross attention."""
    made, stock, given = model(kind, "sum", "fone"), tiny.backbone(kind), tiny.pairs()
    made.train()(**given).loss.backward()
    stock(
        **{name: given[name] for name in ("input_ids", "attention_mask", "labels")}
    ).loss.backward()
    without = {f"backbone.{name}" for name, one in stock.named_parameters() if one.grad is None}
    gradients = {name: one.grad for name, one in made.named_parameters()}
    assert {name for name, one in gradients.items() if one is None} <= without
    assert all(one.isfinite().all() for one in gradients.values() if one is not None)
    ours = [one for name, one in gradients.items() if name.startswith("embedding.")]
    assert all(one.any() for one in ours)


def test_an_encoder_alone():
    """Of T5: as it is, and as T5EncoderModel."""
    given = tiny.batch(labels=False)
    whole = tiny.backbone("t5")
    for alone in (whole.get_encoder(), transformers.T5EncoderModel(whole.config)):
        found = NumberModel(alone, tiny.embedding("xval"), tiny.head("scalar")).eval()(**given)
        assert found.hidden.shape == (3, 9, tiny.D) and torch.isfinite(found.number_loss)


# On disk and in the Trainer


def pairs(texts, tokenizer):
    """(pairs of rows, their schema)."""
    sides = [NumberDataset(tokenizer.encode_batch(list(side))) for side in zip(*texts, strict=True)]
    return StackDataset(*sides), sides[0].schema


def test_the_collator():
    """Each side as its own collator makes it; the targets by the names of labels, and an end behind
    each.
    """
    tokenizer = Tokenizer.from_pretrained(numbers=[XVal(), FoNE(3, 2, compact=True)])
    texts = [("add 1 and 2", "it is 3.5"), ("4", "that is 4 again"), ("no", "no")]
    data, schema = pairs(texts, tokenizer)
    rows = [data[number] for number in range(3)]
    collator = Seq2SeqNumberCollator.from_schema(schema, 0, eos_token_id=7)
    found, source = collator(rows), collator.sources([row for row, _ in rows])
    assert all(torch.equal(found[name], stream) for name, stream in source.items())
    target = collator.targets([row for _, row in rows])
    shown = ("input_ids", "attention_mask", "number_mask")
    lengths = target["attention_mask"].sum(1)
    for row, length in enumerate(lengths.tolist()):
        ids, labels = target["input_ids"][row, :length].tolist(), found["labels"][row].tolist()
        assert labels == [*ids, 7] + [-100] * (len(labels) - length - 1)
    width = target["number_mask"].shape[1]
    assert torch.equal(found["number_labels_mask"][:, :width], target["number_mask"])
    assert not found["number_labels_mask"][:, width:].any()
    assert found["number_value_labels"][found["number_labels_mask"]].tolist() == [3.5, 4.0]
    assert torch.equal(found["number_digits_labels"][:, :width], target["number_digits"])
    streams = {f"{name}_labels" for name in target if name not in shown}
    assert set(found) - set(source) == {"labels", "number_labels_mask", *streams}
    collator = Seq2SeqNumberCollator.from_schema(schema, 0, eos_token_id=7, pad_to_multiple_of=4)
    assert {one.shape[1] % 4 for one in collator(rows).values()} == {0}
    with pytest.raises(SchemaError, match="StackDataset"):
        collator([row for row, _ in rows[:2]])


def test_it_learns_in_a_trainer(tmp_path):
    pytest.importorskip("accelerate")
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), [FoNE(2, 0, compact=True)])
    texts = [(f"say {value}", f"it is {value}") for value in range(20)]
    data, schema = pairs(texts, tokenizer)
    torch.manual_seed(0)
    whole = tiny.backbone("bart", vocab_size=tokenizer.vocab_size, d_model=32)
    made = NumberModel(whole, embedding_from_schema(schema, 32), head_from_schema(schema, 32))
    sizes = {"per_device_train_batch_size": 20, "learning_rate": 1e-2, "max_steps": 20}
    arguments = tiny.arguments(tmp_path, **sizes)
    collator = Seq2SeqNumberCollator.from_schema(schema, tiny.PAD, eos_token_id=2)
    trainer = transformers.Trainer(
        made, arguments, data_collator=collator, train_dataset=data, eval_dataset=data
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert all(math.isfinite(loss) for loss in losses) and losses[-1] < 0.5 * losses[0], losses
    evaluated = trainer.predict(data)
    assert evaluated.predictions[0].shape[0] == len(texts)
    assert math.isfinite(evaluated.metrics["test_loss"])


# Generation


def test_a_number_read_again_is_read_behind_its_own_prompt(monkeypatch):
    """Where float noise decides how a number is rounded; here for all of them."""
    made, tokenizer, options = setting("xval", "t5")
    options["details"] = True
    found = generate(made, tokenizer, PROMPTS, **options)
    always = "numtok.tokenizer.generated_numbers.needs_reread"
    monkeypatch.setattr(always, lambda one: np.ones(len(one.values), np.bool_))
    for use_cache in (True, False):
        assert generate(made, tokenizer, PROMPTS, use_cache=use_cache, **options) == found
    alone = [generate(made, tokenizer, [prompt], **options) for prompt in PROMPTS]
    assert [one.values[0] for one in alone] == found.values and sum(map(len, found.values)) >= 4


def test_limits_of_generation():
    made, tokenizer, options = setting("xval", "bart")
    endless = options | {"max_new_tokens": 100, "eos_token_id": 10**6}
    long = generate(made, tokenizer, ["7"], details=True, **endless)
    assert len(long.ids[0]) == 64  # all positions of the decoder, and no more
