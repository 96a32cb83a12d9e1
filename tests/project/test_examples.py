"""The training examples, small: every kind of representation through the whole way, and what they
compute by themselves.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import re
import shlex
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch

import numtok

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from numtok_cli.main import cli
from places import EXAMPLES


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def example(name: str) -> Any:
    """An example as a module; they import each other as scripts do, from their own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        return importlib.import_module(name)


@pytest.fixture
def commands_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands that an example would start a process for run here, in a second less each."""

    def run(*words: str | Path) -> None:
        cli([*map(str, words), "--overwrite", "--quiet"], standalone_mode=False)

    monkeypatch.setattr(additions, "numtok_command", run)


additions, fermat, drop = (
    example("train_additions"),
    example("finetune_fermat"),
    example("finetune_drop"),
)
questions, word_problems = example("question_answering"), example("word_problems")
TINY = shlex.split("--steps 3 --sums 200 --held-out 12 --width 16 --layers 1 --batch-size 8")


@pytest.mark.parametrize("numbers", ["xval,fone:3,0", "logfourier", "place", "p1000"])
def test_additions_the_whole_way(
    numbers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    """One of them with the commands as processes, as it is in a shell."""
    from numtok_torch import NumberDataset, NumberModel

    if numbers != "place":
        request.getfixturevalue("commands_in_process")
    assert additions.main([*TINY, "--numbers", numbers, "--output", str(tmp_path)]) == 0
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.startswith(f"| `{numbers}` | ")
    assert 0 <= float(row.split("|")[2].strip().rstrip("%")) <= 100
    folder = tmp_path / numbers.replace(":", "-").replace(",", "-")
    texts = [
        json.loads(line)["text"] for line in (folder / "sums.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(set(texts)) == 200
    assert len(NumberDataset(folder / "sums.parquet")) == 200
    assert NumberModel.from_pretrained(folder / "model").causal


@pytest.mark.slow
@pytest.mark.usefixtures("commands_in_process")
def test_additions_are_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of numbers up to 60, with FoNE; untrained, hardly any is right."""
    monkeypatch.setattr(additions, "LARGEST", 60)
    sizes = shlex.split("--sums 3000 --held-out 200 --batch-size 128 --learning-rate 6e-3")
    torch.set_num_threads(1)
    before = additions.run(
        "fone:3,0", tmp_path / "before", additions.settings_from([*sizes, "--steps", "1"])
    )
    after = additions.run(
        "fone:3,0", tmp_path / "after", additions.settings_from([*sizes, "--steps", "250"])
    )
    assert before["exact"] < 0.1 and before["digits"] < 0.5
    assert after["exact"] > 0.8 and after["digits"] > 0.9 and after["r2"] > 0.98
    assert after["unparseable"] == 0


@pytest.mark.parametrize("module", [additions, questions])
@pytest.mark.parametrize("numbers", ["xval", "place", "p10", "subword"])
def test_only_answers_have_labels(module: Any, numbers: str) -> None:
    from numtok.representations import parse
    from numtok_torch import NumberDataset

    tokenizer = numtok.Tokenizer.from_pretrained(numbers=parse(numbers))
    question, answer = (
        ("123 + 4 =", " 127;")
        if module is additions
        else (questions.prompt(questions.Problem("What: 3 or 4?", "")), " 3\n")
    )
    row = module.AnswersOnly(
        NumberDataset(tokenizer.encode_batch([question + answer])),
        module.last_token(tokenizer, question),
    )[0]
    labels, ids, given = row["labels"], row["input_ids"], tokenizer.encode(question).input_ids
    assert ids[: len(given)].tolist() == given.tolist()
    assert labels.tolist() == [-100] * len(given) + ids[len(given) :].tolist()


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        (additions, ["--steps", "0"], "--steps must be at least 1"),
        (additions, ["--sums", "250000"], "only 250,000 sums"),
        (additions, ["--width", "30"], "multiple of 4"),
        (additions, ["--all", "--numbers", "xval"], "not allowed"),
        (fermat, ["--width", "12"], "multiple of 8"),
        (fermat, ["--questions", "-1"], "must not be negative"),
        (fermat, ["--text", "nowhere.jsonl"], "no text at nowhere.jsonl"),
        (fermat, ["--order", "none"], "invalid choice"),
        (drop, [], "required: --drop"),
        (
            drop,
            shlex.split("--drop x --pretrain-steps 0 --longest 40"),
            "no room for a passage",
        ),
    ],
)
def test_wrong_arguments(
    module: Any, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        module.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("module", [additions, fermat, drop])
def test_help_has_examples(module: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        module.main(["--help"])
    assert stopped.value.code == 0
    commands = re.findall(
        rf"^  python examples/{module.__name__}\.py *([^#\n]*)", capsys.readouterr().out, re.M
    )
    assert len(commands) >= 4
    for command in commands:
        module.settings_from(
            [*command.split(), *([] if module is additions else ["--pretrain-steps", "0"])]
        )


def test_an_unknown_representation_stops(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"numtok encode .*--numbers nothing"):
        additions.run("nothing", tmp_path, additions.settings_from(TINY))
    assert "unknown representation 'nothing'" in capfd.readouterr().err


def test_problems_are_right() -> None:
    """The answer is the equation's value, exactly; the question has the equation's numbers."""
    made = word_problems.problems(1500, seed=3)
    assert made == word_problems.problems(1500, seed=3) != word_problems.problems(1500, seed=4)
    forms = set()
    for problem in made:
        exact = re.sub(r"[\d.]+", lambda number: f"Fraction('{number[0]}')", problem.equation)
        assert eval(exact, {"Fraction": Fraction}) == Fraction(problem.answer), problem
        assert re.fullmatch(r"(0|[1-9]\d*)(\.\d*[1-9])?", problem.answer), problem
        forms.add(re.sub(r"[\d.]+", "n", problem.equation))
        found = sorted(number.value for number in numtok.extract(problem.question))
        written = sorted(
            numtok.extract(one)[0].value for one in re.findall(r"[\d.]+", problem.equation)
        )
        in_words = re.search(
            r"\b(zero|one|two|three|four|five|six|seven|eight|nine|\w+teen|\w+ty|ten|eleven|twelve)\b",
            problem.question,
            re.I,
        )
        assert found == written or in_words or re.search(r"\d \d{3}", problem.question), problem
        assert "{" not in problem.question
    assert len(forms) == 9


def test_numbers_in_words() -> None:
    assert word_problems.in_words(136) == "one hundred and thirty-six"
    assert word_problems.in_words(2315) == "two thousand, three hundred and fifteen"
    assert word_problems.in_words(1028) == "one thousand and twenty-eight"
    assert (
        word_problems.in_words(40) == "forty"
        and word_problems.in_words(100_000) == "one hundred thousand"
    )
    assert len({word_problems.in_words(value) for value in range(20_000)}) == 20_000


def write_aspects(folder: Path, count: int = 8) -> None:
    """Test sets in FERMAT's format: questions and answers in orders of their own."""
    draw = random.Random(5)
    for place, aspect in enumerate(("Original", "Commuted", "1000+_comma")):
        made = word_problems.problems(count, seed=place)
        rows = [
            {"index": number, "question": f" {one.question} ", "answer": f"{float(one.answer)}"}
            for number, one in enumerate(made)
        ]
        if aspect == "Commuted":
            rows[3] |= {"question": "Not commutable", "answer": "Not commutable"}
        for kind, key in (("questions", "question"), ("answers", "answer")):
            path = folder / kind / f"{aspect}.{kind[0]}"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = [
                json.dumps({"index": row["index"], key: row[key]})
                for row in draw.sample(rows, len(rows))
            ]
            path.write_text("\n".join(lines) + "\n", "utf-8")


SMALL = shlex.split("--steps 3 --problems 40 --questions 4 --width 16 --layers 1 --batch-size 4")
SMALL += ["--threads", "1", "--vocab-size", "300"]


@pytest.mark.parametrize("order", ["lsd", pytest.param("msd", marks=pytest.mark.slow)])
def test_fermat_the_whole_way(
    order: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then again from what it wrote, as from a pretrained model."""
    from numtok_torch import NumberModel

    write_aspects(tmp_path / "fermat")
    text = tmp_path / "text.jsonl"
    text.write_text(
        "".join(
            json.dumps({"text": f"The year {year} had 12.5 days of rain.\n" * 40}) + "\n"
            for year in range(30)
        ),
        "utf-8",
    )
    sources = ["--fermat", str(tmp_path / "fermat"), "--text", str(text), "--order", order]
    assert (
        fermat.main([*sources, *SMALL, "--pretrain-steps", "2", "--output", str(tmp_path / "out")])
        == 0
    )
    out = capsys.readouterr().out
    before, after = re.search(r"perplexity ([\d.,]+) before, ([\d.,]+) after 2 steps", out).groups()  # type: ignore[union-attr]
    assert float(after.replace(",", "")) < float(before.replace(",", ""))
    rows = [line.split(" | ") for line in out.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[1:]] == [
        "| own templates",
        "| Original",
        "| Commuted",
        "| 1000+_comma",
    ]
    assert all(row[2] == "4" for row in rows[1:])
    model = NumberModel.from_pretrained(tmp_path / "out")
    assert (
        model.embedding is not None
        and model.embedding.written == order
        and model.embedding.vectors.weight.abs().sum() > 0
    )
    tokenizer = numtok.Tokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.representations == (numtok.PlaceValue(order=order),)
    model.backbone.save_pretrained(tmp_path / "backbone")
    again = [
        "--model",
        str(tmp_path / "backbone"),
        "--tokenizer",
        str(tmp_path / "out"),
        "--pretrain-steps",
        "0",
    ]
    assert fermat.main([*sources, *SMALL, *again]) == 0


def test_a_few_problems_are_learnt_by_heart(tmp_path: Path) -> None:
    """Encoding, training, writing and reading fit together: what was learnt comes out."""
    asked = word_problems.problems(12, seed=1)
    texts = [questions.with_answer(one) for one in asked]
    sizes = shlex.split(
        "--width 64 --layers 1 --steps 120 --batch-size 12 --learning-rate 5e-3 --vocab-size 400"
    )
    settings = fermat.settings_from([*sizes, "--order", "lsd", "--pretrain-steps", "0"])
    settings.folder = tmp_path
    torch.set_num_threads(1)
    tokenizer = questions.make_tokenizer(texts, settings)
    torch.manual_seed(0)
    model = questions.build_model(tokenizer, settings)
    assert fermat.measure(fermat.answers_to(model, tokenizer, asked, 5), asked)[0] < 0.2
    questions.finetune(model, tokenizer, texts, settings)
    assert fermat.measure(fermat.answers_to(model, tokenizer, asked, 5), asked)[0] > 0.9


def test_a_pretrained_model_starts_as_it_was() -> None:
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=[numtok.PlaceValue(order="lsd")])
    settings = argparse.Namespace(model=None, width=16, layers=1, order="lsd", longest=512)
    model = questions.build_model(tokenizer, settings).eval()
    batch = questions.encoded(tokenizer, ["12 and 345.6"])[0]
    ids, places = (
        torch.tensor(batch["input_ids"][None]).long(),
        torch.tensor(batch["place_value"][None]).long(),
    )
    assert (places != 0).sum() == 6
    with torch.no_grad():
        with_places, without = (
            model(input_ids=ids, place_value=places).logits,
            model.backbone(ids).logits,
        )
    torch.testing.assert_close(with_places, without, rtol=0, atol=0)


def test_questions_and_answers_are_joined_by_index(tmp_path: Path) -> None:
    write_aspects(tmp_path, count=8)
    found = fermat.read_aspects(tmp_path, 0, seed=1)
    assert list(found) == ["Original", "Commuted", "1000+_comma"]
    for place, (name, asked) in enumerate(found.items()):
        right = {
            one.question: Fraction(one.answer) for one in word_problems.problems(8, seed=place)
        }
        assert len(asked) == (7 if name == "Commuted" else 8)
        assert all(right[one.question] == Fraction(one.answer) for one in asked)
    assert fermat.read_aspects(tmp_path, 2, seed=1)["Original"] == found["Original"][:2]
    assert fermat.read_aspects(tmp_path, 0, seed=2)["Original"] != found["Original"]


def test_missing_and_damaged_data(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no FERMAT test sets in .*--fermat FOLDER"):
        fermat.main(["--fermat", str(tmp_path), "--pretrain-steps", "0"])
    write_aspects(tmp_path)
    (tmp_path / "answers" / "Commuted.a").write_text('{"index": 1, "answer": "2.0"}\n', "utf-8")
    with pytest.raises(SystemExit, match=r"Commuted\.q: .*same indices"):
        fermat.read_aspects(tmp_path, 4, seed=0)
    (tmp_path / "answers" / "Commuted.a").write_text("{", "utf-8")
    with pytest.raises(SystemExit, match=r"Commuted\.a cannot be read as JSON lines"):
        fermat.read_aspects(tmp_path, 4, seed=0)
    text = tmp_path / "text.jsonl"
    text.write_text('{"body": "x"}\n', "utf-8")
    with pytest.raises(SystemExit, match='must have a "text"'):
        questions.passages(text, 10)


def test_answers_are_measured_as_decimals() -> None:
    asked = [word_problems.Problem("", answer) for answer in ("70.0", "0.3", "1234.0", "5")]
    assert fermat.measure(["70", ".30", "1,234", "none"], asked)[0] == 0.75
    assert fermat.measure(["70", ".30", "1,234", "none"], asked)[2] == 0.25


def test_the_published_test_sets(shared: Path) -> None:
    """All aspects, the same questions of each, every answer a number."""
    folder = shared / "fermat" / "test_sets"
    if not folder.is_dir():
        pytest.skip(f"the shared data lack {folder}")
    found = fermat.read_aspects(folder, 20, seed=0)
    assert set(found) == set(fermat.ASPECTS) - {fermat.OWN}
    assert all(len(asked) == 20 for asked in found.values())
    assert fermat.measure([one.answer for one in found["Worded"]], found["Worded"])[0] == 1
    assert [one.answer for one in found["Worded"]] == [one.answer for one in found["Original"]]
    assert {
        name
        for name in found
        if "," in "".join(re.findall(r"\d,\d", "".join(one.question for one in found[name])))
    } == {"1000+_comma"}


# ---- DROP


def write_drop(path: Path, passages: int = 4) -> dict[str, Any]:
    """A file of DROP's form: numbers, a span and a date, and what others answered."""
    none = {"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": []}
    content = {}
    for number in range(passages):
        pairs = [
            {
                "question": "How many points did the home team score?",
                "answer": none | {"number": str(21 + number)},
            },
            {
                "question": " How many more than the guests? ",
                "answer": none | {"number": str(11 + 3 * number)},
                "validated_answers": [none | {"number": "7"}],
            },
            {"question": "Who won?", "answer": none | {"spans": ["the home team"]}},
            {
                "question": "When was it?",
                "answer": none | {"date": {"day": "3", "month": "May", "year": "1999"}},
            },
        ]
        content[f"game_{number}"] = {
            "passage": f"Game {number}: the home team won {21 + number} to {10 - 2 * number}.",
            "qa_pairs": pairs,
        }
    path.write_text(json.dumps(content), "utf-8")
    return content


def test_questions_of_drop_are_those_whose_answer_is_a_number(tmp_path: Path) -> None:
    content = write_drop(tmp_path / "drop.json")
    found = drop.read_drop(tmp_path / "drop.json")
    assert [len(some) for some in found] == [2, 2, 2, 2]
    assert found[1][1] == drop.Asked(
        content["game_1"]["passage"], "How many more than the guests?", ("14", "7")
    )
    for damaged, message in (
        ('{"a": {"passage": "x"}}', "no file of DROP"),
        ("[1]", "no file of DROP"),
        ("{", "cannot be read as JSON"),
    ):
        (tmp_path / "drop.json").write_text(damaged, "utf-8")
        with pytest.raises(SystemExit, match=message):
            drop.read_drop(tmp_path / "drop.json")


@pytest.mark.parametrize(
    ("said", "answers", "exact", "f1"),
    [
        ("5", ("5",), 1, 1),
        ("5.0", ("5",), 1, 1),
        ("1,234", ("1234",), 1, 1),
        ("the 5", ("5",), 1, 1),
        ("5 yards", ("5",), 0, 2 / 3),
        ("6", ("5", "6"), 1, 1),
        ("6 yards", ("5",), 0, 0),
        ("", ("5",), 0, 0),
    ],
)
def test_answers_are_scored_as_drop_does(
    said: str, answers: tuple[str, ...], exact: float, f1: float
) -> None:
    assert drop.score(said, answers) == (exact, pytest.approx(f1))


def test_a_long_passage_is_cut_so_that_its_question_fits() -> None:
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=[numtok.PlaceValue(order="lsd")])
    one = drop.Asked("It rained 12.5 mm on 3 days. " * 200, "How much?", ("12.5",))
    problem = drop.fitting(tokenizer, one, 100)
    assert problem.question.endswith("\nHow much?") and one.passage.startswith(
        problem.question.split("\n")[0]
    )
    assert 40 < len(tokenizer.encode(questions.with_answer(problem)).input_ids) <= 100
    assert (
        drop.fitting(tokenizer, drop.Asked("Short.", "How much?", ("1",)), 100).question
        == "Short.\nHow much?"
    )


def test_questions_of_drop_are_learnt_by_heart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With places and without, from the file to the scores."""
    write_drop(tmp_path / "drop.json", passages=3)
    sizes = shlex.split(
        "--width 64 --layers 1 --batch-size 6 --learning-rate 1e-2 --vocab-size 300 --threads 1"
    )
    files = [
        "--drop",
        str(tmp_path / "drop.json"),
        "--asked",
        str(tmp_path / "drop.json"),
        "--pretrain-steps",
        "0",
    ]

    def scores(steps: int) -> dict[str, tuple[float, float]]:
        settings = drop.settings_from([*files, *sizes, "--steps", str(steps)])
        settings.folder = tmp_path / str(steps)
        settings.folder.mkdir()
        found: dict[str, tuple[float, float]] = drop.run(settings)
        return found

    assert all(exact < 0.3 for exact, _ in scores(1).values())
    learnt = scores(60)
    assert list(learnt) == ["places", "no-places"]
    assert all(exact > 0.8 and f1 >= exact for exact, f1 in learnt.values())
    assert "| places | 6 | 6 | " in capsys.readouterr().out


@pytest.mark.slow
def test_jax_learns_sums(capsys: pytest.CaptureFixture[str]) -> None:
    """It reads numbers from the columns alone: off by 2% of the largest sums in these steps."""
    pytest.importorskip("flax")
    losses = example("train_jax").main(["--steps", "200", "--samples", "1024"])
    assert losses[0] > 1 and max(losses[-10:]) < 0.02
    assert float(capsys.readouterr().out.split()[-1]) < 10
