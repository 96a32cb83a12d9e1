"""Word problems with place values: extended pretraining of a GPT-NeoX, fine-tuning, and accuracy on each aspect of FERMAT.

1. A GPT-NeoX (tiny with random weights, or ``--model``, such as a Pythia) gets numbers as digits that know their place. The vectors of the places
   start at zero, so a pretrained model starts as it was, and learns them from ordinary text.
2. It is fine-tuned on questions and answers. FERMAT's published data are test sets only, so these come from the templates in ``word_problems.py``.
3. It answers the test sets, one for each aspect: numbers above 1000, grouped, decimal, in words, ... An answer is right if it is the same decimal.

FERMAT: the Fine-grained Evaluation dataset of Sivakumar and Moosavi (2023). Its folder has ``questions/*.q`` and ``answers/*.a``, JSON lines.
Needs ``pip install '.[torch,hf]'``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, GPTNeoXConfig, GPTNeoXForCausalLM, Trainer, TrainingArguments, set_seed
from word_problems import Problem, problems

import numtok
from numtok.engines.train import save_tokenizer, train_tokenizer
from numtok_torch import NumberCollator, NumberDataset, NumberModel, PlaceValueEmbedding, generate, metrics

Rows = Dataset[dict[str, Any]]
WIDEST = 192  # tokens of a row; the longest question of FERMAT has about 110
PASSAGE = 500  # characters of text per row of the extended pretraining, about
OWN = "own templates"
ASPECTS = {  # of FERMAT, by the names of its files; others are measured too
    OWN: "the fine-tuning's own, unseen",
    "Original": "as published",
    "Commuted": "operands change places",
    "Worded": "numbers in words",
    "Integers_0_to_1000": "whole, up to 1000",
    "2_digit_integer": "whole",
    "3_digit_integer": "whole",
    "4_digit_integer": "whole",
    "1000+": "whole, above 1000",
    "1000+_comma": "1,234",
    "1000+_spac": "1 234",
    "1000+_sam": "the original's, times 100",
    "1dp_random": "one decimal",
    "2dp_random": "two decimals",
    "Original_as_1dp": "3 as 3.0",
    "Original_as_2dp": "3 as 3.00",
    "Original_made_1dp": "3 as 0.3",
    "Original_made_1dp_without_0": "3 as .3",
    "Original_made_2dp": "3 as 0.03",
    "Original_made_2dp_without_0": "3 as .03",
}
EPILOG = """examples:
  python examples/finetune_fermat.py                             # tiny, random, ten minutes on a CPU
  python examples/finetune_fermat.py --steps 9000 --questions 0  # longer, and all questions of all test sets
  python examples/finetune_fermat.py --model path/to/pythia --text my-corpus.jsonl --pretrain-steps 5000 --learning-rate 3e-5
  python examples/finetune_fermat.py --order msd                 # digits as written; their places are then not known while writing"""


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    try:
        with path.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read as JSON lines: {error}") from None


def passages(path: Path, count: int) -> list[str]:
    """The first texts of a file of JSON lines with a ``text``, cut at line ends into pieces of about PASSAGE characters; at most ``count`` pieces."""
    found: list[str] = []
    for row in read_lines(path):
        if not isinstance(row.get("text"), str):
            raise SystemExit(f'{path}: every line must have a "text"; there is one with {", ".join(row) or "nothing"}')
        piece = ""
        for line in row["text"].splitlines(keepends=True):
            piece += line
            if len(piece) >= PASSAGE:
                found.append(piece)
                piece = ""
        found += [piece] if piece.strip() else []
        if len(found) >= count:
            break
    return found[:count]


def read_aspects(folder: Path, count: int, seed: int) -> dict[str, list[Problem]]:
    """``count`` questions of each test set (0: all), the same ones of each; questions and answers are joined by their ``index``."""
    files = sorted((folder / "questions").glob("*.q"), key=lambda path: ([*ASPECTS, path.stem].index(path.stem), path.stem))
    if not files:
        raise SystemExit(
            f"there are no FERMAT test sets in {folder}: it must have questions/*.q and answers/*.a; say where with --fermat FOLDER"
        )
    found = {}
    for path in files:
        asked = {row["index"]: row["question"] for row in read_lines(path)}
        answers = {row["index"]: row["answer"] for row in read_lines(folder / "answers" / f"{path.stem}.a")}
        if asked.keys() != answers.keys():
            raise SystemExit(f"{path}: the questions and the answers do not have the same indices")
        order = random.Random(seed).sample(sorted(asked), len(asked))
        usable = (number for number in order if answers[number] != "Not commutable")
        found[path.stem] = [Problem(asked[number].strip(), answers[number]) for number in itertools.islice(usable, count or None)]
    return found


def prompt(problem: Problem) -> str:
    """What the model is given; it continues with a space, the number, and the end of the line."""
    return f"{problem.question}\nAnswer:"


def make_tokenizer(texts: Sequence[str], settings: argparse.Namespace) -> numtok.Tokenizer:
    """That of ``--tokenizer`` or ``--model``; for the tiny model a small one of its own, trained on the texts."""
    source = settings.tokenizer or settings.model
    if source is None:
        source = save_tokenizer(train_tokenizer(texts, settings.vocab_size), settings.folder)
    return numtok.Tokenizer.from_pretrained(source, [numtok.PlaceValue(order=settings.order)])


def encoded(tokenizer: numtok.Tokenizer, texts: Iterable[str]) -> NumberDataset:
    """Texts as rows, in memory."""
    return NumberDataset(tokenizer.encode_batch(list(texts)), tokenizer=tokenizer)


class AnswersOnly(Rows):
    """Rows whose labels are -100 up to the end of the question: it is read, and not learnt to be said.

    Args:
        rows: questions with their answers.
        mark: the id of the token that ends every question.
    """

    def __init__(self, rows: NumberDataset, mark: int) -> None:
        self.rows, self.mark = rows, mark

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = self.rows[index]
        labels = row["input_ids"].copy()  # (tokens,)
        labels[: np.flatnonzero(labels == self.mark)[-1] + 1] = -100
        return {**row, "labels": labels}


def last_token(tokenizer: numtok.Tokenizer, text: str) -> int:
    """The id of the token that a text ends with."""
    return int(tokenizer.encode(text).input_ids[-1])


def build_model(tokenizer: numtok.Tokenizer, settings: argparse.Namespace) -> NumberModel:
    """The backbone, with room for the number tokens, and a vector for each place.

    Digits that the model has to write are shown in training as they will be when it writes them (``written``): least significant digit first, their
    places are known at once; most significant first, they are not.
    """
    backbone: Any
    if settings.model:
        backbone = AutoModelForCausalLM.from_pretrained(settings.model, dtype=torch.float32)
    else:
        width = settings.width
        sizes = {"hidden_size": width, "num_hidden_layers": settings.layers, "num_attention_heads": 4, "intermediate_size": 4 * width}
        ends = {"bos_token_id": None, "eos_token_id": None}
        backbone = GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=tokenizer.vocab_size, max_position_embeddings=512, **sizes, **ends))
    embedding = PlaceValueEmbedding(backbone.get_input_embeddings().embedding_dim, zero_init=True, written=settings.order)
    return NumberModel(backbone, embedding, vocab_size=tokenizer.vocab_size)


def trainer(
    model: NumberModel, rows: Rows, held_out: Rows | None, collator: NumberCollator, steps: int, settings: argparse.Namespace
) -> Trainer:
    """The Trainer of transformers, for either part."""
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
    return Trainer(model, arguments, data_collator=collator, train_dataset=rows, eval_dataset=held_out)


def pretrain(model: NumberModel, tokenizer: numtok.Tokenizer, texts: Sequence[str], settings: argparse.Namespace) -> None:
    """Extended pretraining on text, and the perplexity of unseen text before and after."""
    unseen = max(len(texts) // 20, 1)
    rows, held_out = encoded(tokenizer, texts[unseen:]), encoded(tokenizer, texts[:unseen])
    collator = NumberCollator.from_tokenizer(tokenizer, pad_token_id=0, objective="causal", max_length=WIDEST)
    training = trainer(model, rows, held_out, collator, settings.pretrain_steps, settings)
    before = math.exp(training.evaluate()["eval_loss"])
    training.train()
    after = math.exp(training.evaluate()["eval_loss"])
    print(f"extended pretraining: perplexity {before:,.1f} before, {after:,.1f} after {settings.pretrain_steps:,} steps", flush=True)


def finetune(model: NumberModel, tokenizer: numtok.Tokenizer, texts: Sequence[str], settings: argparse.Namespace) -> None:
    """On questions with their answers; only answers have a loss."""
    collator = NumberCollator.from_tokenizer(tokenizer, pad_token_id=0, objective="causal", max_length=WIDEST, truncation_side="left")
    rows = AnswersOnly(encoded(tokenizer, texts), last_token(tokenizer, prompt(Problem("", ""))))
    trainer(model, rows, None, collator, settings.steps, settings).train()


def answers_to(model: NumberModel, tokenizer: numtok.Tokenizer, asked: Sequence[Problem], batch_size: int) -> list[str]:
    """The first number that the model writes behind each prompt; what it wrote if there is none."""
    end = last_token(tokenizer, f"{prompt(asked[0])} 1\n")
    texts = generate(model, tokenizer, [prompt(one) for one in asked], max_new_tokens=20, eos_token_id=end, batch_size=batch_size)
    found = [numtok.extract(text, tokenizer.grammar) for text in texts]
    return [numbers[0].text if numbers else text for numbers, text in zip(found, texts, strict=True)]


def measure(answers: Sequence[str], asked: Sequence[Problem]) -> tuple[float, float, float]:
    """Share of the same decimals, of right digits, and of answers that are no number."""
    right = [problem.answer for problem in asked]
    return (metrics.exact_match(answers, right, canonical=True), metrics.digit_accuracy(answers, right), metrics.share_unparseable(answers))


def settings_from(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared"
    parser = argparse.ArgumentParser(description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--shared", type=Path, default=os.environ.get("NUMTOK_SHARED", beside), metavar="FOLDER", help="with fermat/ and corpora/")
    add("--fermat", type=Path, metavar="FOLDER", help="test sets (default: fermat/test_sets in --shared)")
    add("--text", type=Path, metavar="FILE", help='JSON lines with a "text", to pretrain on (default: corpora/wiki.jsonl in --shared)')
    add("--model", metavar="NAME", help="a GPT-NeoX, as a folder or hub id (default: a tiny one with random weights)")
    add("--tokenizer", metavar="NAME", help="a tokenizer.json, a folder or hub id (default: that of --model, else a new one)")
    add("--order", choices=("lsd", "msd"), default="lsd", help="write the least or the most significant digit first (default: %(default)s)")
    for name, default, meaning in (
        ("pretrain-steps", 100, "of extended pretraining; 0 for none"),
        ("passages", 4000, "of the text, to pretrain on"),
        ("steps", 2000, "of fine-tuning"),
        ("problems", 50_000, "to fine-tune on"),
        ("questions", 100, "of each test set; 0 for all"),
        ("batch-size", 32, "rows per step"),
        ("width", 128, "of the tiny model, a multiple of 8"),
        ("layers", 2, "of the tiny model"),
        ("vocab-size", 2000, "of the tiny model's tokenizer, without number tokens"),
        ("threads", torch.get_num_threads(), "of torch"),
        ("seed", 0, "of everything"),
    ):
        add(f"--{name}", type=int, default=default, metavar="N", help=f"{meaning} (default: {default:,})")
    add("--learning-rate", type=float, default=1e-3, metavar="X", help="at its highest (default: %(default)s)")
    add("--output", type=Path, metavar="FOLDER", help="keep the model and its tokenizer there")
    settings = parser.parse_args(arguments)
    for name in ("steps", "problems", "batch_size", "width", "layers", "threads", "passages", "vocab_size"):
        if getattr(settings, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if settings.pretrain_steps < 0 or settings.questions < 0:
        parser.error("--pretrain-steps and --questions must not be negative")
    if settings.width % 8:
        parser.error(f"--width {settings.width} must be a multiple of 8: four heads, of an even size")
    settings.fermat = settings.fermat or settings.shared / "fermat" / "test_sets"
    settings.text = settings.text or settings.shared / "corpora" / "wiki.jsonl"
    if settings.pretrain_steps and not settings.text.is_file():
        parser.error(f"there is no text at {settings.text}; name a file with --text, or do without: --pretrain-steps 0")
    return settings


def run(settings: argparse.Namespace) -> dict[str, tuple[float, float, float]]:
    """All three parts; what :func:`measure` gives for each aspect."""
    aspects = read_aspects(settings.fermat, settings.questions, settings.seed)  # before the long work: a wrong path shows at once
    aspects = {OWN: problems(max(map(len, aspects.values())), settings.seed + 1)} | aspects
    texts = passages(settings.text, settings.passages) if settings.pretrain_steps else []
    if settings.pretrain_steps and len(texts) < 2:
        raise SystemExit(f"{settings.text} has too little text; --pretrain-steps 0 does without")
    solved = [f"{prompt(problem)} {problem.answer}\n" for problem in problems(settings.problems, settings.seed)]
    tokenizer = make_tokenizer([*texts, *solved], settings)
    set_seed(settings.seed)
    model = build_model(tokenizer, settings)
    print(f"{sum(one.numel() for one in model.parameters()):,} parameters, {tokenizer.vocab_size:,} tokens", flush=True)
    if settings.pretrain_steps:
        pretrain(model, tokenizer, texts, settings)
    finetune(model, tokenizer, solved, settings)
    if settings.output:
        model.save_pretrained(settings.output)
        tokenizer.save_pretrained(settings.output)
    print("\n| aspect | | questions | exact | digits right | unparseable |\n|---|---|---:|---:|---:|---:|", flush=True)
    found = {}
    for name, asked in aspects.items():
        exact, digits, unparseable = found[name] = measure(answers_to(model, tokenizer, asked, 50), asked)
        print(f"| {name} | {ASPECTS.get(name, '')} | {len(asked)} | {exact:.1%} | {digits:.1%} | {unparseable:.1%} |", flush=True)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """What the command line asks for."""
    settings = settings_from(arguments)
    torch.set_num_threads(settings.threads)
    with tempfile.TemporaryDirectory() as temporary:
        settings.folder = Path(temporary)  # for what is only needed meanwhile
        run(settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
