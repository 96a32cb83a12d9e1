"""Models that classify texts or tokens, with numbers in what they read: the backbone's own loss, on
disk, and in the Trainer.
"""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch_models as tiny
import transformers
from torch_models import same

from numtok_torch import ModelError, NumberModel
from numtok_torch.data.collator import NumberCollator

TEXTS = pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2", "llama"])
SIZES = tiny.SIZES | {"max_position_embeddings": 66, "pad_token_id": tiny.PAD}


def backbone(kind: str, task: str = "Sequence", **options: Any) -> Any:
    names = {"bert": "Bert", "roberta": "Roberta", "gpt2": "GPT2", "llama": "Llama"}
    sizes = (
        {
            "n_embd": tiny.D,
            "n_layer": 2,
            "n_head": 2,
            "vocab_size": tiny.VOCAB,
            "pad_token_id": tiny.PAD,
        }
        if kind == "gpt2"
        else SIZES
    )
    config = getattr(transformers, f"{names[kind]}Config")(**sizes, **options)
    torch.manual_seed(0)
    made = getattr(transformers, f"{names[kind]}For{task}Classification")(config).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=0.3)
    return made


def wrapped(
    kind: str, task: str = "Sequence", embedding: str = "fone", **options: Any
) -> NumberModel:
    return NumberModel(backbone(kind, task, **options), tiny.embedding(embedding)).eval()


def inputs(labels: torch.Tensor) -> dict[str, torch.Tensor]:
    return tiny.batch(labels=False) | {"labels": labels}


@TEXTS
@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 3), (3, 0)])
def test_texts(kind: str, left: int, right: int) -> None:
    """Without numbers it is the stock model, with padding too; with them, they matter, and
    gradients reach them; a row's padding does not.
    """
    if kind in ("bert", "roberta") and left:
        return  # the stock models do not take padding on the left into account
    given = tiny.padded(tiny.batch(labels=False), left, right)
    labels = torch.tensor([0, 2, 1])
    stock = backbone(kind, num_labels=3)
    plain = given | {"number_mask": torch.zeros_like(given["number_mask"])}
    made = NumberModel(copy.deepcopy(stock), tiny.embedding("fone")).eval()
    ids = {name: given[name] for name in ("input_ids", "attention_mask")}
    if left:
        ids["position_ids"] = (
            (torch.arange(given["input_ids"].shape[1]) - left)
            .clamp(min=0)
            .expand_as(given["input_ids"])
        )
    expected, found = stock(**ids, labels=labels), made(**plain, labels=labels)
    same(found.logits, expected.logits)
    same(found.loss, expected.loss)
    same(found.token_loss, expected.loss)
    numbers = made(**given, labels=labels)
    assert numbers.logits.shape == (3, 3) and not torch.allclose(
        numbers.logits, found.logits, atol=1e-3
    )
    same(numbers.logits, made(**tiny.batch(labels=False), labels=labels).logits, atol=1e-5)
    numbers.loss.backward()
    assert all(one.grad.isfinite().all() and one.grad.any() for one in made.embedding.parameters())
    assert made(**given).loss is None


@TEXTS
def test_the_places_of_digits_do_not_need_labels_of_tokens(kind: str) -> None:
    """The classes of texts are no tokens in which a digit's place would have to be found."""
    made = NumberModel(backbone(kind, num_labels=3), tiny.embedding("place", written="msd")).eval()
    labels = torch.tensor([0, 2, 1])
    with_labels = made(**inputs(labels))
    assert with_labels.loss.isfinite()
    same(with_labels.logits, made(**tiny.batch(labels=False)).logits)


def test_regression_and_several_labels() -> None:
    for kind in ("bert", "gpt2"):
        stock = backbone(kind, num_labels=1)
        made, labels = (
            NumberModel(stock, tiny.embedding("fone")).eval(),
            torch.tensor([0.5, -1.0, 2.0]),
        )
        found = made(**inputs(labels))
        same(found.loss, (found.logits.squeeze(-1) - labels).square().mean())
        several = wrapped(kind, num_labels=9, problem_type="multi_label_classification")
        labels = torch.zeros(3, 9)  # as many as tokens, which they are not
        found = several(**inputs(labels))
        same(found.loss, torch.nn.functional.binary_cross_entropy_with_logits(found.logits, labels))


@TEXTS
def test_tokens(kind: str) -> None:
    if kind == "llama":
        return
    labels = torch.randint(0, 3, (3, 9))
    labels[0, :4] = -100
    made = wrapped(kind, "Token", num_labels=3)
    found = made(**inputs(labels))
    assert found.logits.shape == (3, 9, 3)
    same(
        found.loss,
        torch.nn.functional.cross_entropy(
            found.logits.flatten(0, 1), labels.flatten(), ignore_index=-100
        ),
    )


@TEXTS
def test_a_head_beside_it_and_saved(kind: str, tmp_path: Path) -> None:
    made = NumberModel(
        backbone(kind, num_labels=3), tiny.embedding("xval"), tiny.head("scalar"), number_weight=0.5
    ).eval()
    given = inputs(torch.tensor([0, 2, 1]))
    found = made(**given)
    same(found.loss, found.token_loss + 0.5 * found.number_loss)
    made.save_pretrained(tmp_path)
    back = NumberModel.from_pretrained(tmp_path)
    assert type(back.backbone) is type(made.backbone)
    same(back(**given).loss, found.loss, 0, 0)


@pytest.mark.parametrize("kind", ["bert", pytest.param("gpt2", marks=pytest.mark.slow)])
def test_trainer(kind: str, tmp_path: Path) -> None:
    """Whether a number is large: learnt, evaluated, and loaded from a checkpoint."""
    pytest.importorskip("accelerate")
    draw = np.random.default_rng(0)
    rows = []
    for _ in range(64):
        value = float(draw.uniform(-2, 2))
        ids = [3, tiny.NUM, *draw.integers(4, 40, draw.integers(1, 5)).tolist()]
        rows.append(
            {
                "input_ids": ids,
                "number_index": [1],
                "number_value": [value],
                "number_scaled": [value],
                "labels": int(value > 0),
            }
        )
    torch.manual_seed(0)
    made = NumberModel(backbone(kind, num_labels=2), tiny.embedding("xval"))
    arguments = transformers.TrainingArguments(
        str(tmp_path),
        max_steps=60,
        per_device_train_batch_size=16,
        learning_rate=1e-2,
        logging_steps=10,
        save_steps=60,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(
        made,
        arguments,
        data_collator=NumberCollator(tiny.PAD, objective=None),
        train_dataset=rows,
        eval_dataset=rows,
        compute_metrics=lambda found: {
            "right": float((np.asarray(found.predictions).argmax(-1) == found.label_ids).mean())
        },
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert all(math.isfinite(loss) for loss in losses) and losses[-1] < 0.5 * losses[0], losses
    assert trainer.evaluate()["eval_right"] > 0.9
    batch = NumberCollator(tiny.PAD, objective=None)(rows[:5])
    same(
        NumberModel.from_pretrained(tmp_path / "checkpoint-60")(**batch).loss,
        made.eval()(**batch).loss,
        0,
        0,
    )


def test_what_is_refused() -> None:
    bart = transformers.BartConfig(
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        vocab_size=tiny.VOCAB,
    )
    for made, expected in (
        (
            transformers.BertForQuestionAnswering(transformers.BertConfig(**SIZES)),
            "a task that NumberModel does not support",
        ),
        (
            transformers.BertForMultipleChoice(transformers.BertConfig(**SIZES)),
            "a task that NumberModel does not support",
        ),
        (
            transformers.BartForSequenceClassification(bart),
            "to classify, take an encoder or a decoder alone",
        ),
    ):
        with pytest.raises(ModelError, match=expected):
            NumberModel(made, None)
    nameless = wrapped("gpt2", num_labels=2)
    nameless.config.pad_token_id = None
    with pytest.raises(ModelError, match="has no pad_token_id"):
        nameless(**inputs(torch.tensor([0, 1, 1])))
