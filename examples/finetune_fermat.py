"""Word problems with place values: extended pretraining of a GPT-NeoX, fine-tuning, and accuracy on
each aspect of FERMAT.

1. A GPT-NeoX (tiny with random weights, or ``--model``, such as a Pythia) reads numbers as digits
   that know their decimal position. The vectors of the positions start at zero, so that a
   pretrained model starts unchanged, and are learnt from ordinary text.
2. The model is fine-tuned on questions and answers. FERMAT's published data are test sets only, so
   these questions come from the templates in ``word_problems.py``.
3. The model answers the test sets, one for each aspect: numbers above 1000, grouped, decimal, in
   words, ... An answer is right if it is the same decimal.

FERMAT: the Fine-grained Evaluation dataset of Sivakumar and Moosavi (2023). Its folder has
    ``questions/*.q`` and ``answers/*.a``, JSON lines. Needs ``pip install '.[torch,hf]'``.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from question_answering import (
    check_options,
    common_options,
    make_tokenizer,
    read_lines,
    say,
    text_to_pretrain_on,
    trained,
    with_answer,
)
from word_problems import Problem, problems

import numtok
from numtok_torch import NumberModel, metrics

WIDEST = 192  # tokens of a row; the longest question of FERMAT has about 110
OWN = "own templates"
ASPECTS = {  # descriptions of FERMAT's test sets, by file name; other files are measured too
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
  python examples/finetune_fermat.py --order msd                 # digits as written; their positions are unknown while writing"""


def read_aspects(folder: Path, count: int, seed: int) -> dict[str, list[Problem]]:
    """Return ``count`` questions of each test set (0: all), the same ones of each set. Questions
    and answers are joined by their ``index``.
    """
    files = sorted(
        (folder / "questions").glob("*.q"),
        key=lambda path: ([*ASPECTS, path.stem].index(path.stem), path.stem),
    )
    if not files:
        raise SystemExit(
            f"there are no FERMAT test sets in {folder}: it must have questions/*.q and"
            " answers/*.a; say where with --fermat FOLDER"
        )
    aspects = {}
    for path in files:
        questions = {row["index"]: row["question"] for row in read_lines(path)}
        answers = {
            row["index"]: row["answer"] for row in read_lines(folder / "answers" / f"{path.stem}.a")
        }
        if questions.keys() != answers.keys():
            raise SystemExit(f"{path}: the questions and the answers do not have the same indices")
        order = random.Random(seed).sample(sorted(questions), len(questions))
        usable = (number for number in order if answers[number] != "Not commutable")
        aspects[path.stem] = [
            Problem(questions[number].strip(), answers[number])
            for number in itertools.islice(usable, count or None)
        ]
    return aspects


def answers_to(
    model: NumberModel, tokenizer: numtok.Tokenizer, asked: Sequence[Problem], batch_size: int
) -> list[str]:
    """Return the first number that the model writes after each prompt, or all it wrote if that has
    no number.
    """
    texts = say(model, tokenizer, asked, batch_size)
    numbers_of_texts = [numtok.extract(text, tokenizer.grammar) for text in texts]
    return [
        numbers[0].text if numbers else text
        for numbers, text in zip(numbers_of_texts, texts, strict=True)
    ]


def measure(answers: Sequence[str], asked: Sequence[Problem]) -> tuple[float, float, float]:
    """Return the shares of right answers, of right digits, and of answers that are no number."""
    right = [problem.answer for problem in asked]
    return (
        metrics.exact_match(answers, right),
        metrics.digit_accuracy(answers, right),
        metrics.share_unparseable(answers),
    )


def settings_from(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--fermat",
        type=Path,
        metavar="FOLDER",
        help="test sets (default: fermat/test_sets in --shared)",
    )
    parser.add_argument(
        "--problems",
        type=int,
        default=50_000,
        metavar="N",
        help="to fine-tune on (default: 50,000)",
    )
    common_options(parser, WIDEST)
    settings = parser.parse_args(arguments)
    check_options(parser, settings, "problems")
    settings.fermat = settings.fermat or settings.shared / "fermat" / "test_sets"
    return settings


def run(settings: argparse.Namespace) -> dict[str, tuple[float, float, float]]:
    """Run all three parts, and return the result of :func:`measure` for each aspect."""
    # read before the training, so that a wrong path fails at once
    aspects = read_aspects(settings.fermat, settings.questions, settings.seed)
    aspects = {OWN: problems(max(map(len, aspects.values())), settings.seed + 1)} | aspects
    texts = text_to_pretrain_on(settings)
    solved = [with_answer(problem) for problem in problems(settings.problems, settings.seed)]
    tokenizer = make_tokenizer([*texts, *solved], settings)
    model = trained(tokenizer, texts, solved, settings)
    if settings.output:
        model.save_pretrained(settings.output)
        tokenizer.save_pretrained(settings.output)
    print(
        "\n| aspect | | questions | exact | digits right | unparseable"
        " |\n|---|---|---:|---:|---:|---:|",
        flush=True,
    )
    scores = {}
    for name, asked in aspects.items():
        exact, digits, unparseable = scores[name] = measure(
            answers_to(model, tokenizer, asked, 50), asked
        )
        print(
            f"| {name} | {ASPECTS.get(name, '')} | {len(asked)} | {exact:.1%} | {digits:.1%} |"
            f" {unparseable:.1%} |",
            flush=True,
        )
    return scores


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    settings = settings_from(arguments)
    torch.set_num_threads(settings.threads)
    with tempfile.TemporaryDirectory() as temporary:
        settings.folder = Path(temporary)  # for files that are not kept
        run(settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
