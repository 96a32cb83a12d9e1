"""Teach a small GPT-2 to add, with numbers in any representation of numtok.

The whole way, as a file to copy from: text, the command line, Parquet, a ``NumberModel``, the
    Trainer of transformers, generated answers, metrics. Every sum is one line of text, ``123 + 456
    = 579;``. The model is trained on the text after ``=``, and asked for sums that it has not seen.

Needs ``pip install '.[torch,hf]'``.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

import numtok
from numtok.representations import SingleToken, SpelledOut, from_dict
from numtok.tokenizer.schema import read_metadata
from numtok_torch import (
    NumberCollator,
    NumberDataset,
    NumberModel,
    answers_only,
    embedding_from_schema,
    generate,
    head_from_schema,
    metrics,
)

# fp15 has 57,604 tokens: slow here
ALL = (
    "xval",
    "bits",
    "fone:3,0",
    "exponent_bins",
    "logfourier",
    "place",
    "digits:1",
    "digits:3",
    "p10",
    "p1000",
    "b1999",
    "subword",
)
LARGEST = (
    499  # operand; sums then have at most three digits, which all representations but bins hold
)
EPILOG = """examples:
  python examples/train_additions.py                        # FoNE: a clock for each digit
  python examples/train_additions.py --numbers p10 --steps 2000
  python examples/train_additions.py --numbers xval,fone:3,0   # several at once
  python examples/train_additions.py --all                  # every representation, and a table
  python examples/train_additions.py --output my-model      # keep text, tokenizer, Parquet and model"""


def numtok_command(*arguments: str | Path) -> None:
    """Run ``numtok ...`` as in a shell, with this interpreter."""
    command = [
        sys.executable,
        "-m",
        "numtok_cli.main",
        *map(str, arguments),
        "--overwrite",
        "--quiet",
    ]
    if subprocess.run(command).returncode:
        raise SystemExit(f"stopped, as this failed: numtok {' '.join(command[3:])}")


def write_sums(path: Path, pairs: Sequence[tuple[int, int]]) -> None:
    """Write one JSON object with a ``text`` per line."""
    with path.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"text": f"{a} + {b} = {a + b};"}) + "\n" for a, b in pairs)


def last_token(tokenizer: numtok.Tokenizer, text: str) -> int:
    """Return the id of the last token of a text."""
    return int(tokenizer.encode(text).input_ids[-1])


def build_model(
    schema: pa.Schema, tokenizer: numtok.Tokenizer, width: int, layers: int
) -> NumberModel:
    """Return a GPT-2 with random weights, and the layers of the representation: see
    docs/training.md.
    """
    sizes = {"n_embd": width, "n_layer": layers, "n_head": 4, "n_positions": 32}
    # sums are exact, so dropout only does harm
    no_dropout = {
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
    }
    config = GPT2Config(
        vocab_size=tokenizer.vocab_size, bos_token_id=None, eos_token_id=None, **sizes, **no_dropout
    )
    embedding = head = None
    first = tokenizer.representations[0]
    # [NUM] for every number: a layer that shows its value, and a head that predicts it
    if isinstance(first, SingleToken):
        embedding, head = embedding_from_schema(schema, width), head_from_schema(schema, width)
    elif isinstance(first, SpelledOut) and first.token_column is not None:
        # a token for every digit, and a layer that shows its decimal position
        embedding = embedding_from_schema(schema, width)
    return NumberModel(GPT2LMHeadModel(config), embedding, head)


def train(
    model: NumberModel,
    data: NumberDataset,
    rows: Dataset[dict[str, Any]],
    folder: Path,
    settings: argparse.Namespace,
) -> None:
    """Train the model by the Trainer of transformers; only the collator is numtok's."""
    arguments = TrainingArguments(
        str(folder),
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=settings.steps // 10,
        logging_steps=max(settings.steps // 5, 1),
        save_strategy="no",
        report_to=[],
        seed=settings.seed,
        disable_tqdm=not sys.stderr.isatty(),
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    collator = NumberCollator.from_schema(data.schema, pad_token_id=0, objective="causal")
    Trainer(model, arguments, data_collator=collator, train_dataset=rows).train()


def whole_number(text: str) -> str:
    """Return the first number of an answer, rounded to a whole number (xval writes 578.96); the
    answer itself without a number.
    """
    numbers = numtok.extract(text)
    return (
        str(numbers[0].value.to_integral_value())
        if numbers and abs(numbers[0].value) < Decimal("1e20")
        else text
    )


def evaluate(
    model: NumberModel, tokenizer: numtok.Tokenizer, pairs: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """Ask the model for sums that it has not seen, and return how good its answers are."""
    end = last_token(tokenizer, "1 + 1 = 2;")
    texts = generate(
        model,
        tokenizer,
        [f"{a} + {b} =" for a, b in pairs],
        max_new_tokens=12,
        eos_token_id=end,
        batch_size=250,
    )
    answers, right = [whole_number(text) for text in texts], [str(a + b) for a, b in pairs]
    unparseable = metrics.share_unparseable(answers)
    return {
        "exact": metrics.exact_match(answers, right),
        "digits": metrics.digit_accuracy(answers, right),
        "r2": metrics.r_squared(answers, right, invalid="skip") if unparseable < 1 else math.nan,
        "unparseable": unparseable,
        "example": f"{pairs[0][0]} + {pairs[0][1]} ={texts[0]}",
    }


def run(numbers: str, folder: Path, settings: argparse.Namespace) -> dict[str, Any]:
    """Train and evaluate a model with one representation, from text on."""
    draw = random.Random(settings.seed)
    side = LARGEST + 1
    pairs = [
        divmod(one, side)
        for one in draw.sample(range(side * side), settings.sums + settings.held_out)
    ]
    unseen, seen = pairs[: settings.held_out], pairs[settings.held_out :]

    # 1. Text to tensors, as in a shell: numtok train sums.jsonl -o tokenizer; numtok encode
    # sums.jsonl -o sums.parquet --numbers ...
    folder.mkdir(parents=True, exist_ok=True)
    text, parquet, trained = folder / "sums.jsonl", folder / "sums.parquet", folder / "tokenizer"
    write_sums(text, seen)
    numtok_command("train", text, "-o", trained, "--vocab-size", "300")
    numtok_command("encode", text, "-o", parquet, "--tokenizer", trained, "--numbers", numbers)

    # 2. The tokenizer that wrote the file, with the fitted scale. NumberDataset refuses any other.
    described = read_metadata(pq.read_schema(parquet))["numbers"]
    tokenizer = numtok.Tokenizer.from_pretrained(trained, [from_dict(one) for one in described])
    data = NumberDataset(parquet, tokenizer=tokenizer)

    # 3. A model for the columns of the file, trained and evaluated.
    set_seed(settings.seed)
    model = build_model(data.schema, tokenizer, settings.width, settings.layers)
    began = time.perf_counter()
    train(
        model,
        data,
        answers_only(data, tokenizer, after="1 + 1 ="),
        folder / "trainer",
        settings,
    )
    seconds = time.perf_counter() - began
    scores = evaluate(model, tokenizer, unseen)
    model.save_pretrained(folder / "model")  # NumberModel.from_pretrained reads it
    parameters = sum(one.numel() for one in model.parameters())
    return {"numbers": numbers, "seconds": seconds, "parameters": parameters, **scores}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the results as a Markdown table."""
    head = [
        (
            "| representation | exact | digits right | R² | unparseable | parameters | seconds |"
            " for example |"
        ),
        "|---|" + "---:|" * 6 + "---|",
    ]
    return "\n".join(
        head
        + [
            f"| `{row['numbers']}` | {row['exact']:.1%} | {row['digits']:.1%} | {row['r2']:.4f} |"
            f" {row['unparseable']:.1%} | {row['parameters']:,} | {row['seconds']:.0f} |"
            f" `{row['example']}` |"
            for row in rows
        ]
    )


def settings_from(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--numbers",
        default="fone:3,0",
        metavar="LIST",
        help="as numtok encode takes it (default: %(default)s)",
    )
    which.add_argument("--all", action="store_true", help=f"one after the other: {' '.join(ALL)}")
    for name, default, meaning in (
        ("steps", 1000, "of training"),
        ("batch-size", 256, "sums per step"),
        ("sums", 100_000, "in the training data"),
        ("held-out", 1000, "sums to be asked for"),
        ("width", 64, "of the model, a multiple of 4"),
        ("layers", 2, "of the model"),
        ("threads", 1, "of torch; so small a model is hardly faster with more"),
        ("seed", 0, "of everything"),
    ):
        parser.add_argument(
            f"--{name}",
            type=int,
            default=default,
            metavar="N",
            help=f"{meaning} (default: {default:,})",
        )
    parser.add_argument(
        "--learning-rate",
        type=float,
        default=3e-3,
        metavar="X",
        help="at its highest (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="keep everything there, in a folder for each representation",
    )
    settings = parser.parse_args(arguments)
    for name in ("steps", "batch_size", "sums", "held_out", "width", "layers", "threads"):
        if getattr(settings, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if settings.width % 4:
        parser.error(
            f"--width {settings.width} must be a multiple of 4, the number of attention heads"
        )
    if settings.sums + settings.held_out > (possible := (LARGEST + 1) ** 2):
        parser.error(
            f"there are only {possible:,} sums of two numbers up to {LARGEST}; take fewer --sums or"
            " --held-out"
        )
    return settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and evaluate every representation of the command line."""
    settings = settings_from(arguments)
    torch.set_num_threads(settings.threads)
    with tempfile.TemporaryDirectory() as temporary:
        folder, rows = settings.output or Path(temporary), []
        for numbers in ALL if settings.all else [settings.numbers]:
            print(f"{numbers}: {settings.steps:,} steps", flush=True)
            rows.append(
                run(numbers, folder / numbers.replace(":", "-").replace(",", "-"), settings)
            )
            print(table(rows), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
