"""The experiments of benchmarks/evidence: each runs, learns, is kept, and comes into the page; and
what the kept results say.
"""

import doctest
import itertools
import json
import math
import random
import re
from collections import Counter
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from pretrained import smollm2

import numtok
from benchmarks.corpus import shared_folder
from benchmarks.evidence import (
    bits_masked_words,
    fone_arithmetic,
    mixture,
    numeracy,
    place_fermat,
    pretrained_lora,
    report,
    tables,
    tables_by_heads,
    xval_expressions,
)
from benchmarks.evidence.__main__ import main
from benchmarks.evidence.arithmetic import questions
from benchmarks.evidence.corpus import encode
from benchmarks.evidence.experiment import SIZE
from benchmarks.evidence.experiments import EXPERIMENTS
from benchmarks.evidence.expressions import ANSWERS, BEYOND, GAP, LARGEST, expressions
from benchmarks.evidence.fone_lengths import sums
from benchmarks.evidence.store import Store, without_search
from numtok.score import tasks

# names, and the picture that compares them
SHOWN = re.compile(r"!\[[^]]*?: ([^]]*)\]\(\.\./images/([^)]*)\)")
NUMERAL = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def results(folder, name):
    return [
        json.loads(path.read_text())["found"]
        for path in sorted((folder / EXPERIMENTS[name].results).glob("*.json"))
    ]


def words(picture):
    """The texts of an SVG."""
    return {
        "".join(one.itertext()).strip()
        for one in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")
    }


def shapes(picture):
    """Return what an SVG draws: its elements and texts with ``#`` for each number, and the numbers
    in points, in order. Names of elements are left out: they are hashes of coordinates, whose
    last digits differ between processors.
    """
    drawn = []
    for one in ElementTree.parse(picture).iter():
        named = {
            key: value for key, value in one.attrib.items() if not key.endswith(("id", "href"))
        }
        drawn.append(f"{one.tag} {sorted(named.items())} {(one.text or '').strip()}")
    written = re.sub(r"url\(#[^)]*\)", "url()", "\n".join(drawn))
    return NUMERAL.sub("#", written), [float(one) for one in NUMERAL.findall(written)]


# half a minute each
LONG = {"bits_masked_words", "fone_arithmetic", "mixture", "pretrained_lora", "pretrained_words"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one.name, marks=[pytest.mark.thorough] if one.name in LONG else [])
        for one in EXPERIMENTS.values()
        if one.results == one.name  # the others show the same runs
    ],
)
def test_it_learns_in_a_few_steps_and_is_kept(name, tmp_path, capfd):
    if name == "bits_masked_words" and shared_folder() is None:
        pytest.skip("no shared data: the sample has no short sentences with one number")
    if name == "pretrained_words" and shared_folder() is None:
        pytest.skip("no shared data: the sample has no long pages")
    if name in ("tables_by_heads", "pretrained_frozen"):
        pytest.importorskip("sklearn")
    if name.startswith("pretrained"):
        smollm2()
    command = [name, "--smoke", "--results", str(tmp_path), "--docs", str(tmp_path)]
    assert main(command) == 0, capfd.readouterr().err
    for found in results(tmp_path, name):
        for losses in [found["losses"]] if "losses" in found else []:
            assert all(math.isfinite(loss) for loss in losses)
            some = max(len(losses) // 3, 1)  # of a few steps, a single one tells little
            assert sum(losses[-some:]) < sum(losses[:some])
    expected = sum(len(phase) for phase in EXPERIMENTS[name].phases("smoke"))
    assert len(results(tmp_path, name)) == expected > 0

    capfd.readouterr()
    assert main(command) == 0  # nothing is missing: nothing runs
    assert capfd.readouterr().err == ""
    if name == "xval_expressions":  # rests on nothing; the same once more, beside what there is
        assert main([*command, "--into", str(tmp_path / "again")]) == 0
        once, again = (results(folder, name) for folder in (tmp_path, tmp_path / "again"))
        assert [found["losses"] for found in once] == [found["losses"] for found in again]
    if name == "bits_masked_words":  # the model that other runs begin with stays as it is
        pretrained = tmp_path / name / "trunk-smoke" / "model.pt"
        before = pretrained.stat().st_mtime_ns
        assert main([*command, "--match=-pretraining-", "--into", str(tmp_path / "again")]) == 0
        assert len(results(tmp_path / "again", name)) == 1
        assert pretrained.stat().st_mtime_ns == before
    if name == "fone_arithmetic":
        exact = {
            run["numbers"]: found["exact"] for run, found in Store(tmp_path).all(name, "smoke")
        }
        assert exact["fone"] > exact["digits"] + 0.1


def test_questions_are_those_of_the_paper():
    """FoNE, section 4.1: "[operand a][operator][operand b]=", a <= b but a >= b where they are
    subtracted; none comes twice. Appendix F: all pairs of lengths of operands.
    """
    for task in fone_arithmetic.TASKS["full"].values():
        found = questions(task, 200, seed=3)
        assert len({one.text for one in found}) == 200
        for one in found:
            a, b = (number.value for number in numtok.extract(one.text))
            assert one.text == f"{a}{task.sign}{b}="
            assert (a >= b) if task.sign == "-" else (a <= b)
            assert one.answer == {"+": a + b, "-": a - b, "*": a * b}[task.sign]
            assert max(a, b) < 10**task.digits
            assert len(str(int(one.answer))) <= task.answer_digits[0]
    lengths = list(itertools.product(range(1, 5), repeat=2))
    pairs = sums(lengths, 50, random.Random(1))
    assert len(set(pairs)) == len(pairs)
    counts = Counter((len(str(a)), len(str(b))) for a, b in pairs)
    assert set(counts) == set(lengths) and min(counts[pair] for pair in lengths[1:]) >= 40


@pytest.mark.parametrize("operands", [2, 3, 4])
def test_expressions_have_the_value_that_python_gives_them(operands):
    for where in ("seen", "gap", "beyond", *ANSWERS):
        for one in expressions(operands, 100, seed=1, special=where):
            assert eval(one.text.removesuffix("=")) == pytest.approx(float(one.value), abs=1e-9)
            sizes = [abs(int(number.value.scaleb(2))) for number in numtok.extract(one.text)]
            assert len(sizes) == operands
            unseen = [size for size in sizes if GAP[0] < size < GAP[1] or size > LARGEST]
            assert len(unseen) == (where in ("gap", "beyond"))
            assert max(sizes) < BEYOND[1]
            low, high = ANSWERS[where if where in ANSWERS else "answer gap"]
            assert (low < abs(one.value) < high) == (where in ANSWERS)


@pytest.mark.parametrize("operands", [2, 3, 4])
@pytest.mark.parametrize("numbers", ["xval", "p1000"])
def test_the_answer_of_an_expression_is_what_is_masked(operands, numbers, tmp_path):
    """However many brackets the tokenizer merges with the = before it."""
    some = expressions(operands, 100, seed=2)
    whole, scale = map(xval_expressions.solved, some), {"scale": 1.0} if numbers == "xval" else {}
    encoded = encode(list(whole), numbers, tmp_path, **scale)
    batch = xval_expressions.masked(encoded)
    hidden = batch["number_labels_mask"].bool() if numbers == "xval" else batch["labels"] != -100
    for index, places in enumerate(hidden):
        answer = encoded.tokenizer.encode(str(some[index].value)).input_ids
        length = len(encoded.rows[index]["input_ids"])
        assert places.nonzero().flatten().tolist() == [*range(length - len(answer), length)]


def test_a_value_stands_beside_the_token_after_its_number():
    """Its features are those of ``logfourier``; from zeros, the layer changes nothing."""
    values = ["0", "-2.5", "1234", "1e-7", "6.02e23"]
    expected = numtok.Tokenizer.from_pretrained(numbers="logfourier").encode_batch(values)
    features = np.array(expected["number_log_fourier"].to_pylist(), np.float32).reshape(5, 18)
    given = torch.tensor([float(one) for one in values], dtype=torch.float64)
    np.testing.assert_allclose(pretrained_lora.log_features(given), features, atol=2e-6)

    layer = pretrained_lora.ValuesBeside(8, digits=range(10))
    ids = torch.tensor([[50, 1, 2, 51, 3, 52, 4]])  # "a 12 b 3 c 4": the last has no token after it
    starts = torch.tensor([[0, 1, 0, 0, 1, 0, 1]]).bool()
    known = torch.tensor([[1.0, 12, 1, 1, 3, 1, 4]], dtype=torch.float64)
    batch = {"input_ids": ids, "number_mask": starts, "number_value": known}
    words = torch.randn(1, 7, 8)
    behind, beside = layer.find(words, batch)
    assert behind.nonzero().tolist() == [[0, 3], [0, 5]]
    assert beside[behind].tolist() == [12, 3]
    assert torch.equal(layer(words, batch), words)
    torch.nn.init.ones_(layer.projection.weight)
    assert (layer(words, batch) != words).any(-1).tolist() == behind.tolist()


def pages(folder):
    """Return the text of each page of evidence under ``folder``, by path."""
    paths = [folder / "evidence.md", *(folder / "evidence").glob("*.md")]
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in paths}


@pytest.mark.parametrize("drawn", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_pages_are_made_of_the_kept_results(drawn, tmp_path, monkeypatch):
    """docs/evidence.md and docs/evidence/ say what the results in the repository say, and nothing
    else; in the slow tests the pictures are drawn too.
    """
    if not drawn:
        monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)
    report.write(EXPERIMENTS.values(), Store(), tmp_path)
    written = pages(tmp_path)
    assert written == pages(report.DOCS), "run python -m benchmarks.evidence report"
    assert len(written["evidence.md"].split()) <= 1500
    pictures = {path.name for path in (tmp_path / "images").glob("*")}
    assert pictures == {path.name for path in (report.DOCS / "images").glob("*.svg")}
    for name in pictures if drawn else ():
        kept, made = (shapes(folder / "images" / name) for folder in (report.DOCS, tmp_path))
        assert made[0] == kept[0], name
        np.testing.assert_allclose(made[1], kept[1], atol=0.01, err_msg=name)
    shown = [found for page in written.values() for found in SHOWN.findall(page)]
    assert sorted(picture for _, picture in shown) == sorted(pictures)
    for names, picture in shown:
        assert set(names.split("; ")) <= words(report.DOCS / "images" / picture)


SPREAD = re.compile(r"[+-]?[\d.]+ ± [\d.]+")
VERDICTS = ("Shown in part", "Shown", "Not shown", "Contradicted", "Says nothing", "Likely")


@pytest.mark.parametrize("one", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_the_answer_of_an_experiment_is_short_and_as_careful_as_its_page(one):
    """Two sentences, a table with figures of the experiment's page, a picture of it, and how sure;
    a figure with its spread is that of the table.
    """
    page = (report.DOCS / "evidence" / f"{one.name}.md").read_text("utf-8")
    table = tables.excerpt(page, one.rows, one.columns)
    lines = [line[2:-2].split(" | ") for line in table.splitlines()]
    assert [line[0] for line in lines[2:]] == list(one.rows)
    assert lines[0][1:] == list(one.columns)
    assert f"(../images/{one.picture})" in page
    assert len(re.split(r"(?<=\.) ", one.result)) == 2
    verdict = next(verdict for verdict in VERDICTS if one.verdict.startswith(verdict))
    assert one.confidence.startswith(verdict)
    in_results = SPREAD.findall(page.split("\n## Results\n")[1].replace("%", ""))
    assert set(SPREAD.findall(one.verdict.replace("%", ""))) <= set(in_results)


def test_the_shares_of_ten_tasks_reach_from_the_least_to_the_largest():
    page = (report.DOCS / "evidence" / "numeracy.md").read_text("utf-8")
    columns = (("add", "subtract"), ("multiply",), ("divide",), ("sort",))
    for name in ("fone:8,8", "digits:1", "subword", "bits"):
        exact = [
            of["exact"] for kept, of in Store().all("numeracy", SIZE) if kept["numbers"] == name
        ]
        shares = [[round(100 * one[task]) for one in exact for task in of] for of in columns]
        ranges = (f"{min(few)} to {max(few)}%" for few in shares)
        assert f"| `{name}` | {' | '.join(ranges)} |" in page


def test_examples_in_the_docstrings_of_tables():
    result = doctest.testmod(tables)
    assert result.attempted and not result.failed


def test_kept_results_are_of_runs_that_there_are():
    for experiment in EXPERIMENTS.values():
        phases = experiment.phases(SIZE)
        known = list(itertools.chain.from_iterable(phases))
        for settings, found in Store().all(experiment.results, SIZE):
            assert settings in known and found


def test_a_value_is_worth_what_another_in_its_place_costs():
    """By pages: of four words, two on each page, with 0.7 ± 0.2 more for each page."""
    texts = ["It weighs 5 kg", "In 1990 it rained", "Of 2.5 m"]
    swapped = ["It weighs 1990 kg", "In 2.5 it rained", "Of 5 m"]
    assert bits_masked_words.swapped(texts) == swapped
    found = {"near": [2, 2], "losses_near": [1, 1], "losses_near_swapped": [1.5, 1.9]}
    assert bits_masked_words.worth([found]) == pytest.approx((0.35, 0.1))
    assert bits_masked_words.verdict([found]) == "shown"
    assert bits_masked_words.worth([found] * 3) == pytest.approx((0.35, 0.1))


def test_a_run_that_there_is_not_or_that_fails_is_an_error(tmp_path, capfd):
    """The second needs the rates of the search, before there was one; what others did stays."""
    kept = ["--results", str(tmp_path)]
    with pytest.raises(SystemExit):
        main(["mixture", "--match", "two_questions", *kept])
    assert "no run of mixture is named so: --match two_questions" in capfd.readouterr().err
    assert main(["fone_arithmetic", "--match", "subtraction-fone-0", *kept]) == 1
    assert "run the search first" in capfd.readouterr().err
    assert results(tmp_path, fone_arithmetic.NAME) == []


def test_results_of_other_sizes_are_not_on_the_pages(tmp_path):
    settings = {"size": "smoke", "variant": place_fermat.QUESTIONS, "seed": 0}
    Store(tmp_path).put("place_fermat", settings, {"asked": 1, "inverse": 0, "aspects": {}})
    written = report.write(EXPERIMENTS.values(), Store(tmp_path), tmp_path)
    assert [path.name for path in written] == ["evidence.md", report.METHOD]


def test_either_sign_is_right_where_two_answers_are_possible_only(monkeypatch):
    monkeypatch.setattr("benchmarks.evidence.learning.write_answers", lambda *_: ["-2", "nothing"])
    shares = [
        mixture.ask(None, None, task, [(2, 2), (2, 2)])["within_10_percent"]
        for task in mixture.TASKS
    ]
    assert list(mixture.TASKS) == ["two answers", "magnitudes"] and shares == [0.5, 0]


def test_the_words_that_are_asked_for_are_not_in_the_text_of_the_pretraining():
    """Pages are put aside before the pretraining, and no sentence is in both parts."""
    if shared_folder() is None:
        pytest.skip("no shared data: the sample has no pages to put aside")
    seen, unseen = (set(bits_masked_words.sentences(held_out=of)) for of in (False, True))
    assert len(unseen) > 200 and len(seen) > 5 * len(unseen)
    assert not seen & unseen
    assert seen | unseen <= set(bits_masked_words.sentences())


def test_no_numbers_of_the_training_are_asked_about():
    """In whatever order and task; and a guess is scored as an answer is."""
    seen, asked = numeracy.questions("smoke")
    of_seen, of_asked = (
        {frozenset(one.value for one in numtok.extract(row["prompt"])) for row in rows}
        for rows in (seen, itertools.chain.from_iterable(asked.values()))
    )
    assert set(asked) == set(tasks.TASKS) and not of_seen & of_asked
    right = {task: [one["answer"] for one in some] for task, some in asked.items()}
    assert set(numeracy.scores(asked, right)["exact"].values()) == {1.0}
    guess = numeracy.guesses(seen, asked)["first number"]["exact"]["extreme"]
    first = [numtok.extract(one["prompt"])[0].text == one["answer"] for one in asked["extreme"]]
    assert guess == np.mean(first)


def test_no_equation_that_is_asked_stands_in_a_problem_of_the_training():
    """In neither order of its numbers."""
    asked, seen = (
        {tuple(sorted(re.findall(r"[\d.]+|[^\d.]", one.equation))) for one in some}
        for some in place_fermat.split("smoke", seed=0)
    )
    assert len(asked) > 10 and len(seen) > 100 and not asked & seen


def test_an_inverse_of_what_is_asked_is_counted():
    asked, seen = (
        [SimpleNamespace(equation=one) for one in some]
        for some in (("4+5", "9-4", "7-2", "30+8", "1+1"), ("9-5", "2+5", "8+29", "0.5+0.5"))
    )
    assert place_fermat.inverse_known(asked, seen) == [True, True, True, False, False]


def test_no_table_reports_a_seed_by_which_a_rate_was_chosen():
    """The questions of a search are of another seed than those of the tables that it chose for."""
    for name in ("fone_arithmetic", "fone_lengths"):
        every = Store().all(name, SIZE)
        for search in (one for one, _ in every if {"rate", "start"} & one.keys()):
            for one, _ in without_search(every):
                keys = ("task", "variant", "seed")
                same = all(one.get(key) == search.get(key) for key in keys)
                assert not same or one.get("times", 1) < search.get("times", 1)
    task = fone_arithmetic.TASKS["small"][fone_arithmetic.ADD]
    searched, *asked = ({one.text for one in questions(task, 500, seed)} for seed in range(4))
    assert max(len(searched & some) for some in asked) <= 1


def test_a_curve_gets_the_verdict_that_it_gives():
    """And none of too few seeds."""
    verdict = fone_arithmetic.verdict
    assert verdict([0.99] * 3, 1.0, 1200) == "shown"
    assert verdict([0.99] * 2, 1.0, 1200) == "none: too few seeds"
    assert verdict([0.0] * 3, 0.04, 1200).startswith("says nothing: fails as in the paper")
    assert verdict([0.5] * 3, 0.0, 1200).startswith("says nothing: more than in the paper")
    assert verdict([0.3] * 3, 0.99, 1200) == "not shown in 1,200 steps"
    assert verdict([0.6] * 3, 0.99, 4800) == "shown in part in 4,800 steps"
    assert tables.verdict([0.5, 0.6], [0.1, 0.2], 100) == "shown"
    assert tables.verdict([0.1, 0.2], [0.5, 0.6], 100) == "contradicted"
    assert xval_expressions.verdict(0.99997, 0.99998) == "shown"
    assert xval_expressions.verdict(0.98, 0.998) == "not shown: 1 - R² is 10 times as large"


def test_a_row_of_a_table_holds_its_numbers():
    """FoNE leaves what it has no digits for to the text: the widest row has digits for all."""
    pytest.importorskip("sklearn")
    for name, wide in (("diabetes", "fone:4,4"), ("breast cancer", "fone:4,7")):
        assert wide in tables_by_heads.rows_of(name)
        columns, values, answers = tables_by_heads.table(name)
        rows = zip(values, answers, strict=True)
        lines = [tables_by_heads.line(columns, one, answer) for one, answer in rows]
        batch = numtok.Tokenizer.from_pretrained(numbers=wide).encode_batch(lines)
        assert {len(row) for row in batch["number_index"].to_pylist()} == {len(columns) + 1}
