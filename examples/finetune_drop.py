"""Questions of DROP whose answer is a number, with place values and without: fine-tuning of a
GPT-NeoX, exact match and F1.

1. A GPT-NeoX (tiny with random weights, or ``--model``, such as a Pythia) is pretrained further on
   text and fine-tuned on passages, questions and
   answers: once with digits that know their place, once with the same digits without.
2. Each answers the questions of passages that it has not seen; answers are compared as DROP's own
   evaluation does.

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

LONGEST = 512  # tokens of a passage with its question and answer; passages are cut behind
ANSWER = 24  # of them, for the answer
UNSEEN = 10  # one passage in so many is asked, where no file of others is given
ARTICLES = {"a", "an", "the"}
PUNCTUATION = re.compile(r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]""")
EPILOG = """examples:
  python examples/finetune_drop.py --drop drop_dataset_train.json --asked drop_dataset_dev.json
  python examples/finetune_drop.py --drop drop_dataset_train.json --variants places     # without the comparison
  python examples/finetune_drop.py --drop drop_dataset_train.json --pretrain-steps 0 --steps 9000 --questions 0
  python examples/finetune_drop.py --drop drop_dataset_train.json --model path/to/pythia --longest 1024 --batch-size 8 --learning-rate 3e-5"""


@dataclass(frozen=True)
class Asked:
    """A question of a passage, and every answer that counts as right; the first is DROP's own."""

    passage: str
    question: str
    answers: tuple[str, ...]

    def problem(self, passage: str) -> Problem:
        """The question behind as much of the passage."""
        return Problem(f"{passage}\n{self.question}", self.answers[0])


def read_drop(path: Path) -> list[list[Asked]]:
    """The questions of each passage whose answer is a number.

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
    """An answer that other people gave counts too, if it is a number."""
    found = []
    for pair in pairs:
        given = [pair["answer"], *pair.get("validated_answers", [])]
        numbers = tuple(
            dict.fromkeys(str(answer["number"]) for answer in given if answer.get("number"))
        )
        if pair["answer"].get("number"):
            found.append(Asked(passage, pair["question"].strip(), numbers))
    return found


def fitting(tokenizer: numtok.Tokenizer, one: Asked, longest: int) -> Problem:
    """The question, with as much of the beginning of its passage as fits."""
    passage, problem = one.passage, one.problem(one.passage)
    while (
        passage and (tokens := len(tokenizer.encode(prompt(problem)).input_ids)) > longest - ANSWER
    ):
        kept = min(int(len(passage) * (longest - ANSWER) / tokens), len(passage) - 1)
        passage = passage[:kept].rpartition(" ")[0]
        problem = one.problem(passage)
    return problem


def bag(text: str) -> list[str]:
    """The words of an answer as DROP's evaluation compares them: lower case, without punctuation
    and articles, numbers as floats.
    """
    words = [_word(one) for one in re.split("[ -]", text.lower())]
    return [word for word in words if word and word not in ARTICLES]


def _word(text: str) -> str:
    for number in (text, PUNCTUATION.sub("", text)):
        try:
            return str(float(number))
        except ValueError:
            continue
    return number.strip()


def score(said: str, answers: Sequence[str]) -> tuple[float, float]:
    """Exact match and F1 of an answer, 0 to 1: the best over all that are right; F1 is 0 unless a
    number is that of the answer.
    """
    found, best = bag(said), (0.0, 0.0)
    for answer in answers:
        right = bag(answer)
        common = len({*found} & {*right})
        if found and common:
            precision, recall = common / len({*found}), common / len({*right})
            best = max(best, (float(found == right), 2 * precision * recall / (precision + recall)))
    return best


def measure(
    model: NumberModel,
    tokenizer: numtok.Tokenizer,
    asked: Sequence[Asked],
    settings: argparse.Namespace,
) -> tuple[float, float]:
    """Means over questions."""
    problems = [fitting(tokenizer, one, settings.longest) for one in asked]
    said = say(model, tokenizer, problems, settings.batch_size)
    scores = [score(text.strip(), one.answers) for text, one in zip(said, asked, strict=True)]
    return sum(exact for exact, _ in scores) / len(scores), sum(f1 for _, f1 in scores) / len(
        scores
    )


def run(settings: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """Train and ask; exact match and F1 of each variant."""
    passages = read_drop(settings.drop)
    if settings.asked is None:
        random.Random(settings.seed).shuffle(passages)
    others = passages[::UNSEEN] if settings.asked is None else read_drop(settings.asked)
    own = [
        one
        for index, some in enumerate(passages)
        if settings.asked or index % UNSEEN
        for one in some
    ]
    asked = [one for some in others for one in some]
    if not own or not asked:
        raise SystemExit(
            f"{settings.drop} has too few questions whose answer is a number; name a file of others"
            " to be asked with --asked"
        )
    asked = random.Random(settings.seed).sample(
        asked, min(settings.questions or len(asked), len(asked))
    )
    texts = text_to_pretrain_on(settings)
    tokenizer = make_tokenizer(
        [*texts, *(f"{one.passage}\n{one.question}" for one in own)], settings
    )
    solved = [with_answer(fitting(tokenizer, one, settings.longest)) for one in own]
    found = {}
    for variant in settings.variants:
        model = trained(tokenizer, texts, solved, settings, places=variant == "places")
        if settings.output:
            model.save_pretrained(settings.output / variant)
            tokenizer.save_pretrained(settings.output / variant)
        found[variant] = measure(model, tokenizer, asked, settings)
    print("\n| | trained on | asked | exact | F1 |\n|---|---:|---:|---:|---:|", flush=True)
    for variant, (exact, f1) in found.items():
        print(f"| {variant} | {len(own):,} | {len(asked):,} | {exact:.1%} | {f1:.1%} |", flush=True)
    return found


def settings_from(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
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
    """What the command line asks for."""
    settings = settings_from(arguments)
    torch.set_num_threads(settings.threads)
    with tempfile.TemporaryDirectory() as temporary:
        settings.folder = Path(temporary)  # for what is only needed meanwhile
        run(settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
