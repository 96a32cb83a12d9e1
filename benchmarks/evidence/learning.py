"""One training loop for all experiments, so that every representation gets the same: steps,
batches, optimizer, schedule.

In: a ``NumberModel`` and all rows as one batch. Out: the model, trained, and its losses.
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
WATCHED = 10  # points of a learning curve
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SHOWN = 20  # losses that are kept, means over equal parts of the training


@dataclasses.dataclass(frozen=True)
class Course:
    """How a model is trained."""

    steps: int
    batch: int
    rate: float
    seed: int
    new_rate: float | None = None  # of layer and head around a pretrained model; None for ``rate``
    bfloat16: bool = False  # products of the forward pass; weights stay float32


def llama(
    encoded: Encoded,
    width: int,
    layers: int,
    *,
    places: bool = True,
    positions: int = 128,
    start: float = 0.02,
) -> NumberModel:
    """A Llama with random weights, four times as wide between, two keys for four queries (FoNE,
    table 6), and the layer and head of the file.

    The word head has weights of its own. Tied to the word vectors, as the paper's Llama 3.2 has
    them, FoNE's sums were 96.6% exact after the same training where they are 98.6% (6,400 samples,
    500 unseen sums, one seed). Without ``places`` digits do not show theirs. ``start`` is the
    standard deviation of the word vectors.
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
    trunk: Any = LlamaForCausalLM(config)
    with torch.no_grad():
        trunk.get_input_embeddings().weight.mul_(start / config.initializer_range)
    embedding, head = layers_of(encoded, width)
    return NumberModel(trunk, embedding if places else None, head)


def layers_of(encoded: Encoded, width: int) -> tuple[Any, Any]:
    """The embedding and the head that a file needs; None where tokens say all."""
    embedding = head = None
    with contextlib.suppress(SchemaError):
        embedding = embedding_from_schema(encoded.schema, width)
    with contextlib.suppress(SchemaError):
        head = head_from_schema(encoded.schema, width)
    return embedding, head


def train(
    model: NumberModel,
    batches: Iterator[dict[str, Tensor]],
    course: Course,
    watch: Callable[[], float] | None = None,
) -> dict[str, Any]:
    """Train in place, by AdamW with a warm-up and a cosine.

    Args:
        model: its parameters that need a gradient are trained.
        batches: at least one for each step, on the CPU; see :func:`shuffled`.
        course: how.
        watch: what is looked at after each :data:`WATCHED` part of the steps, such as the share of
            right answers.

    Returns:
        ``losses`` (means over twentieths of the steps), ``seconds`` of a processor, ``tokens``
        (those that were read, padding left out), ``parameters``, those that are trained, and, of
        what was watched, ``curve``: ``[step, seconds, value]`` each.

    Raises:
        FloatingPointError: if the loss is not finite.
    """
    model.to(DEVICE)
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(
        _groups(model, trained, course), betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, course.steps))
    losses, tokens, began, curve = [], 0, time.process_time(), []
    looked = {round(course.steps * part / WATCHED) for part in range(1, WATCHED + 1)}
    model.train()
    for rows in itertools.islice(batches, course.steps):
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=course.bfloat16):
            loss = model(**placed(rows)).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        tokens += int(
            rows["attention_mask"].sum() if "attention_mask" in rows else rows["input_ids"].numel()
        )
        if watch is not None and len(losses) in looked:
            now = time.process_time()
            curve.append([len(losses), round(now - began, 1), watch()])
            began += time.process_time() - now  # to look is not to train
            model.train()
    if not math.isfinite(sum(losses)):
        raise FloatingPointError("the loss is not finite")
    parameters = sum(one.numel() for one in trained)
    return {
        "losses": shown(losses),
        "seconds": round(time.process_time() - began, 1),
        "tokens": tokens,
        "parameters": parameters,
        **({"curve": curve} if curve else {}),
    }


def _groups(model: NumberModel, trained: list[Any], course: Course) -> list[dict[str, Any]]:
    """Return the parameters with their rates: those of layer and head may have one of their own."""
    parts = [one for one in (model.embedding, model.head) if one is not None]
    new = {id(one) for part in parts for one in part.parameters()}
    old = [one for one in trained if id(one) not in new]
    rates = (course.rate, course.new_rate or course.rate)
    groups = zip((old, [one for one in trained if id(one) in new]), rates, strict=True)
    return [{"params": some, "lr": rate} for some, rate in groups if some]


def placed(rows: dict[str, Tensor]) -> dict[str, Tensor]:
    """Where models are trained."""
    return {name: stream.to(DEVICE) for name, stream in rows.items()}


def loss_curve(found: dict[str, Any], steps: int) -> dict[str, Any]:
    """The losses that a training of so many steps kept, as its ``curve``: each at the end of its
    part of the steps, and of the seconds.
    """
    parts = len(found["losses"])
    points = enumerate(found["losses"], 1)
    return {"curve": [[steps * k / parts, found["seconds"] * k / parts, one] for k, one in points]}


def orders(count: int, course: Course) -> Iterator[Tensor]:
    """Which rows are in each batch, int64 (batch,): every row once before any comes again."""
    if not count:
        raise ValueError("there are no rows to learn from: the text has none of this kind")
    generator, order = torch.Generator().manual_seed(course.seed), torch.empty(0, dtype=torch.long)
    while True:
        while len(order) < course.batch:
            order = torch.cat([order, torch.randperm(count, generator=generator)])
        yield order[: course.batch]
        order = order[course.batch :]


def of_one_length(lengths: Tensor, course: Course) -> Iterator[Tensor]:
    """The same, of rows that are about as long, int64 (rows,)."""
    several = dataclasses.replace(course, batch=8 * course.batch)
    for chosen in orders(len(lengths), several):
        parts = chosen[lengths[chosen].argsort()].split(course.batch)
        yield from sorted(parts, key=lambda rows: int(rows[0]))  # short and long ones mixed


def shuffled(batch: dict[str, Tensor], course: Course) -> Iterator[dict[str, Tensor]]:
    """Batches without end, of rows that lie in one batch."""
    for chosen in orders(len(batch["input_ids"]), course):
        yield cut({name: stream[chosen] for name, stream in batch.items()})


def say(
    model: NumberModel,
    encoded: Encoded,
    prompts: Sequence[str],
    end: str,
    tokens: int,
    rows: int = 500,
) -> list[str]:
    """What the model writes after each prompt.

    Args:
        model: in any mode.
        encoded: its tokenizer reads and writes.
        prompts: none of them empty.
        end: a text whose last token ends an answer.
        tokens: of an answer, at most.
        rows: prompts at once.
    """
    options: dict[str, Any] = {
        "max_new_tokens": tokens,
        "eos_token_id": encoded.token(end),
        "batch_size": rows,
    }
    return cast(list[str], generate(model, encoded.tokenizer, prompts, **options))


def loss_of(model: NumberModel, batch: dict[str, Tensor], rows: int = 500) -> float:
    """The mean loss on rows that the model was not trained on, so many at once."""
    model.eval()
    parts = range(0, len(batch["input_ids"]), rows)
    with torch.no_grad():
        found = [
            model(
                **placed(
                    cut({name: stream[first : first + rows] for name, stream in batch.items()})
                )
            ).loss.item()
            for first in parts
        ]
    return float(round(sum(found) / len(found), 6))


def _rate(step: int, steps: int) -> float:
    warm = max(int(WARM_UP * steps), 1)
    if step < warm:
        return (step + 1) / warm
    return 0.1 + 0.9 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1))) / 2


def cut(rows: dict[str, Tensor]) -> dict[str, Tensor]:
    """Without the columns that are padding in every row; blocks, which have no mask, as they are."""
    if "attention_mask" not in rows:
        return rows
    longest = int(rows["attention_mask"].sum(1).max())
    return {
        name: stream[:, :longest] if stream.dim() > 1 else stream for name, stream in rows.items()
    }


def shown(losses: list[float]) -> list[float]:
    """Means over equal parts."""
    parts = min(SHOWN, len(losses))
    edges = [len(losses) * part // parts for part in range(parts + 1)]
    return [
        round(sum(losses[low:high]) / (high - low), 6) for low, high in itertools.pairwise(edges)
    ]
