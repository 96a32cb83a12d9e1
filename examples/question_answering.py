"""The common parts of ``finetune_fermat.py`` and ``finetune_drop.py``: a GPT-NeoX with places,
extended pretraining on text, fine-tuning on questions with their answers, and asking.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import (
    AutoModelForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    Trainer,
    TrainingArguments,
    set_seed,
)
from word_problems import Problem

import numtok
from numtok.tokenizer.train import save_tokenizer, train_tokenizer
from numtok_torch import (
    NumberCollator,
    NumberDataset,
    NumberModel,
    PlaceValueEmbedding,
    answers_only,
    generate,
)

Rows = Dataset[dict[str, Any]]
PASSAGE = 500  # characters of a row of the extended pretraining, about


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    try:
        with path.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read as JSON lines: {error}") from None


def passages(path: Path, count: int) -> list[str]:
    """Return the texts of a file of JSON lines with a ``text``, cut at line ends into passages of
    about :data:`PASSAGE` characters; at most ``count`` passages.
    """
    pieces: list[str] = []
    for row in read_lines(path):
        if not isinstance(row.get("text"), str):
            raise SystemExit(
                f'{path}: every line must have a "text"; there is one with'
                f" {', '.join(row) or 'nothing'}"
            )
        piece = ""
        for line in row["text"].splitlines(keepends=True):
            piece += line
            if len(piece) >= PASSAGE:
                pieces.append(piece)
                piece = ""
        pieces += [piece] if piece.strip() else []
        if len(pieces) >= count:
            break
    return pieces[:count]


def prompt(problem: Problem) -> str:
    """Return a question as the model reads it. An answer is a space, the number, and the end of the
    line.
    """
    return f"{problem.question}\nAnswer:"


def with_answer(problem: Problem) -> str:
    """Return a question with its answer, as a text to train on."""
    return f"{prompt(problem)} {problem.answer}\n"


def make_tokenizer(texts: Sequence[str], settings: argparse.Namespace) -> numtok.Tokenizer:
    """Return the tokenizer of ``--tokenizer`` or ``--model``; for the tiny model, a small one that
    is trained on the texts.
    """
    source = settings.tokenizer or settings.model
    if source is None:
        source = save_tokenizer(train_tokenizer(texts, settings.vocab_size), settings.folder)
    return numtok.Tokenizer.from_pretrained(source, [numtok.PlaceValue(order=settings.order)])


def encoded(tokenizer: numtok.Tokenizer, texts: Iterable[str]) -> NumberDataset:
    """Encode texts to rows in memory."""
    return NumberDataset(tokenizer.encode_batch(list(texts)), tokenizer=tokenizer)


def last_token(tokenizer: numtok.Tokenizer, text: str) -> int:
    """Return the id of the last token of a text."""
    return int(tokenizer.encode(text).input_ids[-1])


def build_model(
    tokenizer: numtok.Tokenizer, settings: argparse.Namespace, places: bool = True
) -> NumberModel:
    """Return the backbone with room for the number tokens, and with an embedding of decimal
    positions if ``places``.

    In training, the digits of an answer are shown as they will be while the model writes them
    (``written``): with the least significant digit first, positions are known at once; with the
    most significant first, they are unknown.
    """
    backbone: Any
    if settings.model:
        backbone = AutoModelForCausalLM.from_pretrained(settings.model, dtype=torch.float32)
    else:
        width = settings.width
        sizes = {
            "hidden_size": width,
            "num_hidden_layers": settings.layers,
            "num_attention_heads": 4,
            "intermediate_size": 4 * width,
        }
        ends = {"bos_token_id": None, "eos_token_id": None}
        backbone = GPTNeoXForCausalLM(
            GPTNeoXConfig(
                vocab_size=tokenizer.vocab_size,
                max_position_embeddings=max(512, settings.longest),
                **sizes,
                **ends,
            )
        )
    width = backbone.get_input_embeddings().embedding_dim
    embedding = (
        PlaceValueEmbedding(width, zero_init=True, written=settings.order) if places else None
    )
    return NumberModel(backbone, embedding, tokenizer=tokenizer)


def trainer(
    model: NumberModel,
    rows: Rows,
    held_out: Rows | None,
    collator: NumberCollator,
    steps: int,
    settings: argparse.Namespace,
) -> Trainer:
    """Return the Trainer of transformers, for the pretraining or the fine-tuning."""
    arguments = TrainingArguments(
        str(settings.folder / "trainer"),
        max_steps=steps,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=steps // 10,
        logging_steps=max(steps // 10, 1),
        save_strategy="no",
        report_to=[],
        seed=settings.seed,
        prediction_loss_only=True,
        disable_tqdm=not sys.stderr.isatty(),
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    return Trainer(
        model, arguments, data_collator=collator, train_dataset=rows, eval_dataset=held_out
    )


def pretrain(
    model: NumberModel,
    tokenizer: numtok.Tokenizer,
    texts: Sequence[str],
    settings: argparse.Namespace,
) -> None:
    """Pretrain the model further on text, and print the perplexity of unseen text before and after."""
    unseen = max(len(texts) // 20, 1)
    rows, held_out = encoded(tokenizer, texts[unseen:]), encoded(tokenizer, texts[:unseen])
    collator = NumberCollator.from_tokenizer(
        tokenizer, pad_token_id=0, objective="causal", max_length=settings.longest
    )
    training = trainer(model, rows, held_out, collator, settings.pretrain_steps, settings)
    before = math.exp(training.evaluate()["eval_loss"])
    training.train()
    after = math.exp(training.evaluate()["eval_loss"])
    print(
        f"extended pretraining: perplexity {before:,.1f} before, {after:,.1f} after"
        f" {settings.pretrain_steps:,} steps",
        flush=True,
    )


def finetune(
    model: NumberModel,
    tokenizer: numtok.Tokenizer,
    texts: Sequence[str],
    settings: argparse.Namespace,
) -> None:
    """Fine-tune the model on questions with their answers; only answers have a loss."""
    collator = NumberCollator.from_tokenizer(
        tokenizer,
        pad_token_id=0,
        objective="causal",
        max_length=settings.longest,
        truncation_side="left",
    )
    rows = answers_only(encoded(tokenizer, texts), tokenizer, after=prompt(Problem("", "")))
    trainer(model, rows, None, collator, settings.steps, settings).train()


def say(
    model: NumberModel, tokenizer: numtok.Tokenizer, asked: Sequence[Problem], batch_size: int
) -> list[str]:
    """Return the text that the model writes after each prompt, up to the end of the line."""
    end = last_token(tokenizer, with_answer(Problem("", "1")))
    return generate(
        model,
        tokenizer,
        [prompt(one) for one in asked],
        max_new_tokens=20,
        eos_token_id=end,
        batch_size=batch_size,
    )


def common_options(parser: argparse.ArgumentParser, longest: int, **defaults: int) -> None:
    """Add the options of the model, its tokenizer and its training.

    Args:
        parser: the parser.
        longest: default of ``--longest``.
        defaults: other defaults of the numeric options, by name.
    """
    beside = Path(__file__).resolve().parent.parent.parent / "shared"
    add = parser.add_argument
    add(
        "--shared",
        type=Path,
        default=os.environ.get("NUMTOK_SHARED", beside),
        metavar="FOLDER",
        help="with fermat/ and corpora/",
    )
    add(
        "--text",
        type=Path,
        metavar="FILE",
        help='JSON lines with a "text", to pretrain on (default: corpora/wiki.jsonl in --shared)',
    )
    add(
        "--model",
        metavar="NAME",
        help="a GPT-NeoX, as a folder or hub id (default: a tiny one with random weights)",
    )
    add(
        "--tokenizer",
        metavar="NAME",
        help="a tokenizer.json, a folder or hub id (default: that of --model, else a new one)",
    )
    add(
        "--order",
        choices=("lsd", "msd"),
        default="lsd",
        help="write the least or the most significant digit first (default: %(default)s)",
    )
    numbers = {
        "pretrain_steps": (100, "of extended pretraining; 0 for none"),
        "passages": (4000, "of the text, to pretrain on"),
        "steps": (2000, "of fine-tuning"),
        "questions": (100, "of each test set; 0 for all"),
        "batch_size": (32, "rows per step"),
        "longest": (longest, "tokens of a row"),
        "width": (128, "of the tiny model, a multiple of 8"),
        "layers": (2, "of the tiny model"),
        "vocab_size": (2000, "of the tiny model's tokenizer, without number tokens"),
        "threads": (torch.get_num_threads(), "of torch"),
        "seed": (0, "of everything"),
    }
    for name, (usual, meaning) in numbers.items():
        default = defaults.get(name, usual)
        add(
            f"--{name.replace('_', '-')}",
            type=int,
            default=default,
            metavar="N",
            help=f"{meaning} (default: {default:,})",
        )
    add(
        "--learning-rate",
        type=float,
        default=1e-3,
        metavar="X",
        help="at its highest (default: %(default)s)",
    )
    add("--output", type=Path, metavar="FOLDER", help="keep the model and its tokenizer there")


def check_options(
    parser: argparse.ArgumentParser, settings: argparse.Namespace, *more: str
) -> None:
    """Stop at impossible values: numeric options below 1, those named in ``more`` too, and missing
    text.
    """
    for name in (
        "steps",
        "batch_size",
        "longest",
        "width",
        "layers",
        "threads",
        "passages",
        "vocab_size",
        *more,
    ):
        if getattr(settings, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if settings.pretrain_steps < 0 or settings.questions < 0:
        parser.error("--pretrain-steps and --questions must not be negative")
    if settings.width % 8:
        parser.error(
            f"--width {settings.width} must be a multiple of 8: four heads, of an even size"
        )
    settings.text = settings.text or settings.shared / "corpora" / "wiki.jsonl"
    if settings.pretrain_steps and not settings.text.is_file():
        parser.error(
            f"there is no text at {settings.text}; name a file with --text, or do without:"
            " --pretrain-steps 0"
        )


def text_to_pretrain_on(settings: argparse.Namespace) -> list[str]:
    """Return the passages of ``--text``; none without pretraining."""
    texts = passages(settings.text, settings.passages) if settings.pretrain_steps else []
    if settings.pretrain_steps and len(texts) < 2:
        raise SystemExit(f"{settings.text} has too little text; --pretrain-steps 0 does without")
    return texts


def trained(
    tokenizer: numtok.Tokenizer,
    texts: Sequence[str],
    solved: Sequence[str],
    settings: argparse.Namespace,
    places: bool = True,
) -> NumberModel:
    """Return a model after pretraining and fine-tuning."""
    set_seed(settings.seed)
    model = build_model(tokenizer, settings, places)
    print(
        f"{sum(one.numel() for one in model.parameters()):,} parameters, {tokenizer.vocab_size:,}"
        " tokens",
        flush=True,
    )
    if texts:
        pretrain(model, tokenizer, texts, settings)
    finetune(model, tokenizer, solved, settings)
    return model
