"""Questions of DROP whose answer is a number, with place values and without: fine-tuning of a
GPT-NeoX, exact match and F1.

1. A GPT-NeoX (tiny with random weights, or ``--model``, such as a Pythia) is pretrained further on
   text and fine-tuned on passages, questions and answers: once with digits that know their decimal
   position, once with the same digits without.
2. Each model answers questions about passages that it has not seen. Answers are compared as in
   DROP's own evaluation.

DROP: A Reading Comprehension Benchmark Requiring Discrete Reasoning Over Paragraphs (Dua et al.
    2019). Its files are JSON: an object of passages, each with ``passage`` and ``qa_pairs``, whose
    ``answer`` has ``number``, ``date`` and ``spans``. Needs ``pip install '.[torch,hf]'``.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from question_answering import (
    check_options,
    common_options,
    make_tokenizer,
    prompt,
    say,
    text_to_pretrain_on,
    trained,
    with_answer,
)
from word_problems import Problem

import numtok
from numtok_torch import NumberModel

LONGEST = 512  # tokens of a passage with its question and answer; longer passages are truncated
ANSWER = 24  # tokens left for the answer
UNSEEN = 10  # one passage of so many is asked, unless --asked names a file
ARTICLES = {"a", "an", "the"}
PUNCTUATION = re.compile(r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]""")
EPILOG = """examples:
  python examples/finetune_drop.py --drop drop_dataset_train.json --asked drop_dataset_dev.json
  python examples/finetune_drop.py --drop drop_dataset_train.json --variants places     # no comparison
  python examples/finetune_drop.py --drop drop_dataset_train.json --pretrain-steps 0 --steps 9000 --questions 0
  python examples/finetune_drop.py --drop drop_dataset_train.json --model path/to/pythia --longest 1024 --batch-size 8 --learning-rate 3e-5"""


@dataclass(frozen=True)
class Asked:
    """A question about a passage, and all answers that count as right; the first is DROP's own."""

    passage: str
    question: str
    answers: tuple[str, ...]

    def problem(self, passage: str) -> Problem:
        """Return the question after ``passage``, the passage or its beginning."""
        return Problem(f"{passage}\n{self.question}", self.answers[0])


def read_drop(path: Path) -> list[list[Asked]]:
    """Read the questions whose answer is a number, by passage.

    Raises:
        SystemExit: if the file is none of DROP's.
    """
    try:
        content = json.loads(path.read_text("utf-8"))
        return [_numeric(one["passage"], one["qa_pairs"]) for one in content.values()]
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read as JSON: {error}") from None
    except (AttributeError, KeyError, TypeError) as error:
        raise SystemExit(
            f'{path} is no file of DROP: each passage needs "passage" and "qa_pairs" with'
            f' "question" and "answer" ({error!r})'
        ) from None


def _numeric(passage: str, pairs: Sequence[dict[str, Any]]) -> list[Asked]:
    """Return the questions whose answer is a number. Numbers in the answers of other people count
    as right too.
    """
    questions = []
    for pair in pairs:
        answers = [pair["answer"], *pair.get("validated_answers", [])]
        numbers = tuple(
            dict.fromkeys(str(answer["number"]) for answer in answers if answer.get("number"))
        )
        if pair["answer"].get("number"):
            questions.append(Asked(passage, pair["question"].strip(), numbers))
    return questions


def fitting(tokenizer: numtok.Tokenizer, asked: Asked, longest: int) -> Problem:
    """Return a question with as much of the beginning of its passage as fits into ``longest``
    tokens.
    """
    passage, problem = asked.passage, asked.problem(asked.passage)
    while (
        passage and (tokens := len(tokenizer.encode(prompt(problem)).input_ids)) > longest - ANSWER
    ):
        length = min(int(len(passage) * (longest - ANSWER) / tokens), len(passage) - 1)
        passage = passage[:length].rpartition(" ")[0]
        problem = asked.problem(passage)
    return problem


def bag(text: str) -> list[str]:
    """Return the words of an answer as DROP's evaluation compares them: lower case, without
    punctuation and articles, numbers as floats.
    """
    words = [_word(one) for one in re.split("[ -]", text.lower())]
    return [word for word in words if word and word not in ARTICLES]


def _word(text: str) -> str:
    """Return a number as a float, and any other word without punctuation."""
    for number in (text, PUNCTUATION.sub("", text)):
        try:
            return str(float(number))
        except ValueError:
            continue
    return number.strip()


def score(answer_text: str, answers: Sequence[str]) -> tuple[float, float]:
    """Return exact match and F1 of an answer, 0 to 1 each: the best over all right answers."""
    words, best = bag(answer_text), (0.0, 0.0)
    for answer in answers:
        right = bag(answer)
        common = len({*words} & {*right})
        if common:
            precision, recall = common / len({*words}), common / len({*right})
            f1 = 2 * precision * recall / (precision + recall)
            best = max(best, (float(words == right), f1))
    return best


def measure(
    model: NumberModel,
    tokenizer: numtok.Tokenizer,
    asked: Sequence[Asked],
    settings: argparse.Namespace,
) -> tuple[float, float]:
    """Return the means of exact match and F1 over questions."""
    problems = [fitting(tokenizer, one, settings.longest) for one in asked]
    texts = say(model, tokenizer, problems, settings.batch_size)
    scores = [score(text.strip(), one.answers) for text, one in zip(texts, asked, strict=True)]
    exact, f1 = (sum(column) / len(scores) for column in zip(*scores, strict=True))
    return exact, f1


def run(settings: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """Train every variant, ask it, and return exact match and F1 by variant."""
    passages = read_drop(settings.drop)
    if settings.asked is None:
        random.Random(settings.seed).shuffle(passages)
    others = passages[::UNSEEN] if settings.asked is None else read_drop(settings.asked)
    seen = [
        question
        for index, questions in enumerate(passages)
        if settings.asked or index % UNSEEN
        for question in questions
    ]
    asked = [question for questions in others for question in questions]
    if not seen or not asked:
        raise SystemExit(
            f"{settings.drop} has too few questions whose answer is a number; name a file of others"
            " to be asked with --asked"
        )
    asked = random.Random(settings.seed).sample(
        asked, min(settings.questions or len(asked), len(asked))
    )
    texts = text_to_pretrain_on(settings)
    tokenizer = make_tokenizer(
        [*texts, *(f"{question.passage}\n{question.question}" for question in seen)], settings
    )
    solved = [with_answer(fitting(tokenizer, question, settings.longest)) for question in seen]
    scores = {}
    for variant in settings.variants:
        model = trained(tokenizer, texts, solved, settings, places=variant == "places")
        if settings.output:
            model.save_pretrained(settings.output / variant)
            tokenizer.save_pretrained(settings.output / variant)
        scores[variant] = measure(model, tokenizer, asked, settings)
    print("\n| | trained on | asked | exact | F1 |\n|---|---:|---:|---:|---:|", flush=True)
    for variant, (exact, f1) in scores.items():
        print(
            f"| {variant} | {len(seen):,} | {len(asked):,} | {exact:.1%} | {f1:.1%} |", flush=True
        )
    return scores


def settings_from(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--drop",
        type=Path,
        required=True,
        metavar="FILE",
        help="drop_dataset_train.json, or another file of its form",
    )
    parser.add_argument(
        "--asked",
        type=Path,
        metavar="FILE",
        help=f"with the questions to be asked (default: one in {UNSEEN} of --drop's passages)",
    )
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=("places", "no-places"),
        default=["places", "no-places"],
        help="default: both",
    )
    common_options(parser, LONGEST)
    settings = parser.parse_args(arguments)
    check_options(parser, settings)
    if settings.longest <= 2 * ANSWER:
        parser.error(
            f"--longest {settings.longest} leaves no room for a passage beside the {ANSWER} tokens"
            " of an answer"
        )
    return settings


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
