"""The training loop of all experiments, so that every representation gets the same steps, batches,
optimizer and schedule.

In: a ``NumberModel`` and all rows as one batch. Out: the model, trained in place, and its losses.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.evidence.corpus import Encoded
from numtok.errors import SchemaError
from numtok_torch import NumberModel, embedding_from_schema, generate, head_from_schema

WARM_UP = 0.2  # of the steps; then a cosine to a tenth of the rate
CURVE_POINTS = 10  # points of a learning curve; fewer in trainings of less than 100 steps
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STORED_LOSSES = 20  # stored losses, means over equal parts of the training


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Steps, batch size, learning rate and seed of a training."""

    steps: int
    batch: int
    rate: float
    seed: int
    new_rate: float | None = None  # of the layer and head of a pretrained model; None for ``rate``
    bfloat16: bool = False  # whether the forward pass computes in bfloat16; weights stay float32


def build_llama(
    encoded: Encoded,
    width: int,
    layers: int,
    *,
    places: bool = True,
    positions: int = 128,
    start: float = 0.02,
) -> NumberModel:
    """Return a Llama with random weights, and the embedding layer and head that the data need.

    The feed-forward layers are four times as wide as the model, and two key heads serve four query
    heads (FoNE, table 6). The word head has weights of its own. Tied to the word vectors, as in the
    paper's Llama 3.2, 96.6% of FoNE's sums were exact after the same training, and 98.6% untied
    (6,400 samples, 500 unseen sums, one seed).

    Args:
        encoded: training data.
        width: dimension of the word vectors.
        layers: transformer layers.
        places: whether the model gets the embedding layer; without, digits have no position.
        positions: tokens of a row, at most.
        start: initial standard deviation of the word vectors.
    """
    config = LlamaConfig(
        vocab_size=encoded.tokenizer.vocab_size,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    backbone: Any = LlamaForCausalLM(config)
    with torch.no_grad():
        backbone.get_input_embeddings().weight.mul_(start / config.initializer_range)
    embedding, head = number_layers(encoded, width)
    return NumberModel(backbone, embedding if places else None, head)


def number_layers(encoded: Encoded, width: int) -> tuple[Any, Any]:
    """Return the embedding layer and the head of the data's representation, None where it has none."""
    embedding = head = None
    with contextlib.suppress(SchemaError):
        embedding = embedding_from_schema(encoded.schema, width)
    with contextlib.suppress(SchemaError):
        head = head_from_schema(encoded.schema, width)
    return embedding, head


def train(
    model: NumberModel,
    batches: Iterator[dict[str, Tensor]],
    schedule: Schedule,
    measure: Callable[[], float] | None = None,
) -> dict[str, Any]:
    """Train a model in place, by AdamW with a warm-up and a cosine.

    Args:
        model: the parameters that need a gradient are trained.
        batches: at least one batch for each step, on the CPU; see :func:`shuffled_batches`.
        schedule: steps and rates.
        measure: returns a point of the learning curve, such as the share of right answers. Called
            up to :data:`CURVE_POINTS` times at equal distances.

    Returns:
        ``losses`` (means over twentieths of the steps), ``seconds`` of a processor, ``tokens``
        (read, without padding), ``parameters`` (trained) and, with ``measure``, ``curve``: a list
        of ``[step, seconds, value]``.

    Raises:
        FloatingPointError: if the loss is not finite.
    """
    model.to(DEVICE)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(
        _parameter_groups(model, trained, schedule), betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: _rate(step, schedule.steps)
    )
    losses, tokens, began, curve = [], 0, time.process_time(), []
    points = min(CURVE_POINTS, max(schedule.steps // 10, 1))
    measured = {round(schedule.steps * part / points) for part in range(1, points + 1)}
    model.train()
    for rows in itertools.islice(batches, schedule.steps):
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=schedule.bfloat16):
            loss = model(**to_device(rows)).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        tokens += int(
            rows["attention_mask"].sum() if "attention_mask" in rows else rows["input_ids"].numel()
        )
        if measure is not None and len(losses) in measured:
            now = time.process_time()
            curve.append([len(losses), round(now - began, 1), measure()])
            began += time.process_time() - now  # measuring is not training
            model.train()
    if not math.isfinite(sum(losses)):
        raise FloatingPointError("the loss is not finite")
    return {
        "losses": mean_losses(losses),
        "seconds": round(time.process_time() - began, 1),
        "tokens": tokens,
        "parameters": sum(parameter.numel() for parameter in trained),
        **({"curve": curve} if curve else {}),
    }


def _parameter_groups(
    model: NumberModel, trained: list[Any], schedule: Schedule
) -> list[dict[str, Any]]:
    """Return AdamW's parameter groups: the backbone, then the embedding layer and head."""
    layers = [layer for layer in (model.embedding, model.head) if layer is not None]
    new = {id(parameter) for layer in layers for parameter in layer.parameters()}
    groups = [
        {
            "params": [parameter for parameter in trained if id(parameter) not in new],
            "lr": schedule.rate,
        },
        {
            "params": [parameter for parameter in trained if id(parameter) in new],
            "lr": schedule.new_rate or schedule.rate,
        },
    ]
    return [group for group in groups if group["params"]]


def to_device(rows: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a batch on the device on which models are trained."""
    return {name: stream.to(DEVICE) for name, stream in rows.items()}


def loss_curve(result: dict[str, Any], steps: int) -> dict[str, Any]:
    """Return the stored losses of a training as a ``curve``; each loss stands at the end of its
    part of the steps and of the seconds.
    """
    losses, seconds = result["losses"], result["seconds"]
    shares = [(part / len(losses), loss) for part, loss in enumerate(losses, 1)]
    return {"curve": [[steps * share, seconds * share, loss] for share, loss in shares]}


def shuffled_rows(count: int, schedule: Schedule) -> Iterator[Tensor]:
    """Yield the rows of each batch, int64 (batch,), without end; every row comes once before any
    comes again.
    """
    if not count:
        raise ValueError("there are no rows to learn from: the text has none of this kind")
    generator = torch.Generator().manual_seed(schedule.seed)
    order = torch.empty(0, dtype=torch.long)
    while True:
        while len(order) < schedule.batch:
            order = torch.cat([order, torch.randperm(count, generator=generator)])
        yield order[: schedule.batch]
        order = order[schedule.batch :]


def similar_rows(lengths: Tensor, schedule: Schedule) -> Iterator[Tensor]:
    """Yield the rows of each batch, int64 (rows,), without end; rows of a batch are similarly long.

    Args:
        lengths: tokens of each row, int64 (rows,).
        schedule: batch size and seed.
    """
    several = dataclasses.replace(schedule, batch=8 * schedule.batch)
    for rows in shuffled_rows(len(lengths), several):
        batches = rows[lengths[rows].argsort()].split(schedule.batch)
        yield from sorted(batches, key=lambda rows: int(rows[0]))  # short and long batches mixed


def shuffled_batches(batch: dict[str, Tensor], schedule: Schedule) -> Iterator[dict[str, Tensor]]:
    """Yield batches of the rows of one large batch, shuffled, without end."""
    for rows in shuffled_rows(len(batch["input_ids"]), schedule):
        yield without_padding({name: stream[rows] for name, stream in batch.items()})


def write_answers(
    model: NumberModel,
    encoded: Encoded,
    prompts: Sequence[str],
    end: str,
    tokens: int,
    rows: int = 500,
) -> list[str]:
    """Return the text that the model writes after each prompt.

    Args:
        model: in any mode.
        encoded: training data, whose tokenizer reads and writes.
        prompts: texts, none empty.
        end: a text whose last token ends an answer.
        tokens: tokens of an answer, at most.
        rows: prompts in a batch.
    """
    options: dict[str, Any] = {
        "max_new_tokens": tokens,
        "eos_token_id": encoded.last_token(end),
        "batch_size": rows,
    }
    return cast(list[str], generate(model, encoded.tokenizer, prompts, **options))


def mean_loss(model: NumberModel, batch: dict[str, Tensor], rows: int = 500) -> float:
    """Return the mean loss of a model over batches of ``rows`` rows."""
    model.eval()
    losses = []
    with torch.no_grad():
        for first in range(0, len(batch["input_ids"]), rows):
            part = {name: stream[first : first + rows] for name, stream in batch.items()}
            losses.append(model(**to_device(without_padding(part))).loss.item())
    return float(round(sum(losses) / len(losses), 6))


def _rate(step: int, steps: int) -> float:
    """Return the factor of the learning rate at a step."""
    warm = max(int(WARM_UP * steps), 1)
    if step < warm:
        return (step + 1) / warm
    return 0.1 + 0.9 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1))) / 2


def without_padding(rows: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a batch without the columns that are padding in every row. Rows of packed text have no
    ``attention_mask`` and no padding, and are returned as they are.
    """
    if "attention_mask" not in rows:
        return rows
    longest = int(rows["attention_mask"].sum(1).max())
    return {
        name: stream[:, :longest] if stream.dim() > 1 else stream for name, stream in rows.items()
    }


def mean_losses(losses: list[float]) -> list[float]:
    """Return the means of losses over :data:`STORED_LOSSES` equal parts of the steps."""
    parts = min(STORED_LOSSES, len(losses))
    edges = [len(losses) * part // parts for part in range(parts + 1)]
    return [
        round(sum(losses[low:high]) / (high - low), 6) for low, high in itertools.pairwise(edges)
    ]
