"""The training examples, small: every kind of representation through the whole way, and what they
compute by themselves.
"""

import argparse
import importlib
import json
import random
import re
import shlex
from decimal import Decimal
from fractions import Fraction

import pytest
import torch

import numtok

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from numtok_cli.main import cli
from places import EXAMPLES


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def example(name):
    """An example as a module; they import each other as scripts do, from their own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        return importlib.import_module(name)


additions, fermat, drop = (
    example("train_additions"),
    example("finetune_fermat"),
    example("finetune_drop"),
)
questions, word_problems = example("question_answering"), example("word_problems")
TINY = shlex.split("--steps 3 --sums 200 --held-out 12 --width 16 --layers 1 --batch-size 8")


@pytest.mark.parametrize("numbers", ["xval,fone:3,0", "place", "p1000"])
def test_additions_the_whole_way(numbers, tmp_path, capsys, monkeypatch):
    """With the commands, which are processes of their own, in this one."""
    from numtok_torch import NumberDataset, NumberModel

    def run(*words):
        cli([*map(str, words), "--overwrite", "--quiet"], standalone_mode=False)

    monkeypatch.setattr(additions, "numtok_command", run)
    assert additions.main([*TINY, "--numbers", numbers, "--output", str(tmp_path)]) == 0
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.startswith(f"| `{numbers}` | ")
    assert 0 <= float(row.split("|")[2].strip().rstrip("%")) <= 100
    folder = tmp_path / numbers.replace(":", "-").replace(",", "-")
    assert len(set((folder / "sums.jsonl").read_text("utf-8").splitlines())) == 200
    assert len(NumberDataset(folder / "sums.parquet")) == 200
    assert NumberModel.from_pretrained(folder / "model").causal


def test_a_command_that_fails_ends_an_example(tmp_path, capfd):
    with pytest.raises(SystemExit, match=r"this failed: numtok train nowhere\.jsonl"):
        additions.numtok_command("train", "nowhere.jsonl", "-o", tmp_path / "trained")
    assert "nowhere.jsonl" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        (additions, "--width 30", "multiple of 4"),
        (additions, "--all --numbers xval", "not allowed"),
        (fermat, "--width 12", "multiple of 8"),
        (fermat, "--text nowhere.jsonl", "no text at nowhere.jsonl"),
        (drop, "", "required: --drop"),
        (drop, "--drop x --pretrain-steps 0 --longest 40", "no room for a passage"),
    ],
)
def test_wrong_arguments(module, arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        module.main(arguments.split())
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("module", [additions, fermat, drop])
def test_help_has_examples(module, capsys):
    with pytest.raises(SystemExit):
        module.main(["--help"])
    command = rf"^  python examples/{module.__name__}\.py *([^#\n]*)"
    found = re.findall(command, capsys.readouterr().out, re.M)
    assert len(found) >= 4
    more = [] if module is additions else ["--pretrain-steps", "0"]
    for words in found:
        module.settings_from([*words.split(), *more])


def test_problems_are_right():
    """The answer is the equation's value, exactly; the question has the equation's numbers."""
    made = word_problems.problems(1500, seed=3)
    assert made == word_problems.problems(1500, seed=3) != word_problems.problems(1500, seed=4)
    written = re.compile(r"[\d.]+")
    for problem in made:
        exact = written.sub(lambda number: f"Fraction('{number[0]}')", problem.equation)
        assert eval(exact, {"Fraction": Fraction}) == Fraction(problem.answer), problem
        assert re.fullmatch(r"(0|[1-9]\d*)(\.\d*[1-9])?", problem.answer), problem
        found = sorted(number.value for number in numtok.extract(problem.question))
        numbers = sorted(map(Decimal, written.findall(problem.equation)))
        in_words = re.search(r"\b([a-z]+teen|[a-z]+ty|zero|ten|eleven|twelve)\b", problem.question)
        small = re.search(r"\b(one|two|three|four|five|six|seven|eight|nine)\b", problem.question)
        spaced = re.search(r"\d \d{3}", problem.question)
        assert found == numbers or in_words or small or spaced, problem
        assert "{" not in problem.question
    assert len({written.sub("n", problem.equation) for problem in made}) == 9


def write_aspects(folder, count=8):
    """Test sets in FERMAT's format: questions and answers in orders of their own."""
    draw = random.Random(5)
    for place, aspect in enumerate(("Original", "Commuted", "1000+_comma")):
        rows = [
            {"index": number, "question": f" {one.question} ", "answer": f"{float(one.answer)}"}
            for number, one in enumerate(word_problems.problems(count, seed=place))
        ]
        if aspect == "Commuted":
            rows[3] |= dict.fromkeys(("question", "answer"), "Not commutable")
        for key in ("question", "answer"):
            path = folder / f"{key}s" / f"{aspect}.{key[0]}"
            path.parent.mkdir(parents=True, exist_ok=True)
            mixed = draw.sample(rows, len(rows))
            lines = [json.dumps({"index": row["index"], key: row[key]}) for row in mixed]
            path.write_text("\n".join(lines) + "\n", "utf-8")


SMALL = shlex.split("--steps 3 --problems 40 --questions 4 --width 16 --layers 1 --batch-size 4")
SMALL += ["--threads", "1", "--vocab-size", "300"]


@pytest.mark.parametrize("order", ["lsd", pytest.param("msd", marks=pytest.mark.slow)])
def test_fermat_the_whole_way(order, tmp_path, capsys):
    """Then again from what it wrote, as from a pretrained model."""
    from numtok_torch import NumberModel

    write_aspects(tmp_path / "fermat")
    rows = [{"text": f"The year {year} had 12.5 days of rain.\n" * 40} for year in range(30)]
    text, out = tmp_path / "text.jsonl", tmp_path / "out"
    text.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    sources = f"--fermat {tmp_path}/fermat --text {text} --order {order}".split()
    assert fermat.main([*sources, *SMALL, "--pretrain-steps", "2", "--output", str(out)]) == 0
    told = capsys.readouterr().out
    found = re.search(r"perplexity ([\d.,]+) before, ([\d.,]+) after 2 steps", told)
    assert found is not None
    before, after = (float(one.replace(",", "")) for one in found.groups())
    assert after < before
    rows_told = [line.split(" | ") for line in told.splitlines() if line.startswith("| ")][1:]
    names = ["| own templates", "| Original", "| Commuted", "| 1000+_comma"]
    assert [row[0] for row in rows_told] == names and {row[2] for row in rows_told} == {"4"}
    model, tokenizer = NumberModel.from_pretrained(out), numtok.Tokenizer.from_pretrained(out)
    assert model.embedding is not None and model.embedding.written == order
    assert model.embedding.vectors.weight.abs().sum() > 0
    assert tokenizer.representations == (numtok.PlaceValue(order=order),)
    model.backbone.save_pretrained(tmp_path / "backbone")
    again = f"--model {tmp_path}/backbone --tokenizer {out} --pretrain-steps 0".split()
    assert fermat.main([*sources, *SMALL, *again]) == 0


def test_a_pretrained_model_starts_as_it_was():
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=[numtok.PlaceValue(order="lsd")])
    settings = argparse.Namespace(model=None, width=16, layers=1, order="lsd", longest=512)
    model = questions.build_model(tokenizer, settings).eval()
    batch = questions.encoded(tokenizer, ["12 and 345.6"])[0]
    ids, places = (torch.tensor(batch[name][None]).long() for name in ("input_ids", "place_value"))
    assert (places != 0).sum() == 6
    with torch.no_grad():
        with_places = model(input_ids=ids, place_value=places).logits
        torch.testing.assert_close(with_places, model.backbone(ids).logits, rtol=0, atol=0)


def test_questions_and_answers_are_joined_by_index(tmp_path):
    write_aspects(tmp_path, count=8)
    found = fermat.read_aspects(tmp_path, 0, seed=1)
    assert list(found) == ["Original", "Commuted", "1000+_comma"]
    for place, (name, asked) in enumerate(found.items()):
        right = {one.question: one.answer for one in word_problems.problems(8, seed=place)}
        assert len(asked) == (7 if name == "Commuted" else 8)
        assert all(Fraction(right[one.question]) == Fraction(one.answer) for one in asked)
    assert fermat.read_aspects(tmp_path, 2, seed=1)["Original"] == found["Original"][:2]
    assert fermat.read_aspects(tmp_path, 0, seed=2)["Original"] != found["Original"]


def test_missing_data(tmp_path):
    with pytest.raises(SystemExit, match=r"no FERMAT test sets in .*--fermat FOLDER"):
        fermat.main(["--fermat", str(tmp_path), "--pretrain-steps", "0"])


def test_answers_are_measured_as_decimals():
    asked = [word_problems.Problem("", answer) for answer in ("70.0", "0.3", "1234.0", "5")]
    assert fermat.measure(["70", ".30", "1,234", "none"], asked)[0] == 0.75
    assert fermat.measure(["70", ".30", "1,234", "none"], asked)[2] == 0.25


def test_the_published_test_sets(shared):
    """All aspects, the same questions of each, every answer a number."""
    folder = shared / "fermat" / "test_sets"
    if not folder.is_dir():
        pytest.skip(f"the shared data lack {folder}")
    found = fermat.read_aspects(folder, 20, seed=0)
    assert set(found) == set(fermat.ASPECTS) - {fermat.OWN}
    assert {len(asked) for asked in found.values()} == {20}
    worded = [one.answer for one in found["Worded"]]
    assert fermat.measure(worded, found["Worded"])[0] == 1
    assert worded == [one.answer for one in found["Original"]]


# ---- DROP


def write_drop(path, passages=4):
    """A file of DROP's form: numbers, a span and a date, and what others answered."""

    def asked(question, *answers):
        empty = {"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": []}
        first, *others = (empty | answer for answer in answers)
        return {"question": question, "answer": first, "validated_answers": others}

    content = {}
    for number in range(passages):
        pairs = [
            asked("How many points did the home team score?", {"number": str(21 + number)}),
            asked(
                " How many more than the guests? ",
                {"number": str(11 + 3 * number)},
                {"number": "7"},
            ),
            asked("Who won?", {"spans": ["the home team"]}),
            asked("When was it?", {"date": {"day": "3", "month": "May", "year": "1999"}}),
        ]
        told = f"Game {number}: the home team won {21 + number} to {10 - 2 * number}."
        content[f"game_{number}"] = {"passage": told, "qa_pairs": pairs}
    path.write_text(json.dumps(content), "utf-8")
    return content


def test_questions_of_drop_are_those_whose_answer_is_a_number(tmp_path):
    path = tmp_path / "drop.json"
    passage = write_drop(path)["game_1"]["passage"]
    found = drop.read_drop(path)
    assert [len(some) for some in found] == [2, 2, 2, 2]
    assert found[1][1] == drop.Asked(passage, "How many more than the guests?", ("14", "7"))
    path.write_text('{"a": {"passage": "x"}}', "utf-8")
    with pytest.raises(SystemExit, match="no file of DROP"):
        drop.read_drop(path)


def test_answers_are_scored_as_drop_does():
    for said, answers, exact, f1 in (
        ("5", ("5",), 1, 1),
        ("5.0", ("5",), 1, 1),
        ("1,234", ("1234",), 1, 1),
        ("the 5", ("5",), 1, 1),
        ("5 yards", ("5",), 0, 2 / 3),
        ("6", ("5", "6"), 1, 1),
        ("6 yards", ("5",), 0, 0),
        ("", ("5",), 0, 0),
    ):
        assert drop.score(said, answers) == (exact, pytest.approx(f1)), said


def test_a_long_passage_is_cut_so_that_its_question_fits():
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=[numtok.PlaceValue(order="lsd")])
    long = "It rained 12.5 mm on 3 days. " * 200
    problem = drop.fitting(tokenizer, drop.Asked(long, "How much?", ("12.5",)), 100)
    passage, _, question = problem.question.partition("\n")
    assert question == "How much?" and long.startswith(passage)
    assert 40 < len(tokenizer.encode(questions.with_answer(problem)).input_ids) <= 100
    short = drop.fitting(tokenizer, drop.Asked("Short.", "How much?", ("1",)), 100)
    assert short.question == "Short.\nHow much?"


def test_questions_of_drop_are_learnt_by_heart(tmp_path, capsys):
    """With places and without, from the file to the scores."""
    file = tmp_path / "drop.json"
    write_drop(file, passages=3)
    sizes = "--width 64 --layers 1 --batch-size 6 --learning-rate 1e-2 --vocab-size 300 --threads 1"

    def scores(steps):
        given = f"--drop {file} --asked {file} --pretrain-steps 0 {sizes} --steps {steps}"
        settings = drop.settings_from(given.split())
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
def test_jax_learns_sums(capsys):
    """It reads numbers from the columns alone: off by 2% of the largest sums in these steps."""
    pytest.importorskip("flax")
    losses = example("train_jax").main(["--steps", "200", "--samples", "1024"])
    assert losses[0] > 1 and max(losses[-10:]) < 0.02
    assert float(capsys.readouterr().out.split()[-1]) < 10
