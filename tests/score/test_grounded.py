"""Figures of answers looked up in sources: a table of cases, properties, and a slow reference."""

import itertools
import json
import subprocess
import sys
import time
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from command import run
from hypothesis import example, given
from hypothesis import strategies as st

from numtok.score import Policy, Sources, grounded, grounded_report
from numtok.score.adapters import grounded_reward
from numtok.score.claims import KINDS, NonClaims
from numtok.score.computed import MOST_OPERANDS

# Written by hand: what each figure of an answer is and why. Those under "not read right" are what a
# reader would say, and what numtok says is another thing.
CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "grounded_cases.jsonl").read_text("utf-8").splitlines()
]
WRONG = "not read right"


def read(case):
    """[figure, how, places] as a case has them."""
    options = dict(case.get("options", {}))
    for name in ("policy", "source_policy"):
        if isinstance(options.get(name), dict):
            options[name] = Policy(**options[name])
    figures = grounded(case["answer"], case["sources"], **options)
    for one in figures:
        assert case["answer"][one.start : one.stop] == one.text
        for place in one.found:
            assert case["sources"][place.source][place.start : place.stop] == place.text
    return [
        [one.text, f"ignored as {one.ignored}", []]
        if one.ignored
        else [one.text, one.how or "nowhere", [place.text for place in one.found]]
        for one in figures
    ]


@pytest.mark.parametrize("topic", sorted({case["topic"] for case in CASES} - {WRONG}))
def test_cases(topic):
    for case in (case for case in CASES if case["topic"] == topic):
        assert read(case) == case["figures"], (case["why"], case["sources"], case["answer"])


def test_what_is_not_read_right_stays_listed():
    wrong = [case for case in CASES if case["topic"] == WRONG]
    assert [case["answer"] for case in wrong if read(case) == case["figures"]] == []
    assert len(CASES) - len(wrong) >= 200 and len(wrong) < 20
    ways = {how.removeprefix("ignored as ") for case in CASES for _, how, _ in case["figures"]}
    assert ways >= {"exact", "rounded", "scale", "percent", "complement", "percent of",
                    "percent change", "nowhere", *OPERATIONS, *KINDS}  # fmt: skip


@given(
    st.decimals("0.0011", 10**9, places=6),
    st.integers(1, 4),
    st.sampled_from(["{:f}", "{:,f}", "${:,f}", "{:f}%", "-{:f}"]),
)
@example(Decimal("99.999500"), 2, "{:,f}")
def test_what_rounds_to_the_digits_written_is_found_and_no_other(value, places, form):
    last = Decimal(1).scaleb(-places)
    source = form.format(value)
    near = value.quantize(last)
    for answer in (near, near + 2 * last):
        (figure,) = grounded(form.format(answer), source, compute=False, ignore=())
        assert bool(figure.found) == (answer == near and answer != 0), (source, answer)
        if figure.found:
            assert figure.how == ("exact" if answer == value else "rounded")


OPERATIONS = {
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "product": lambda a, b: a * b if 1 not in (a, b) else None,
    "quotient": lambda a, b: a / b if b != 1 else None,
}


@given(
    st.lists(st.integers(1, 60), min_size=2, max_size=6, unique=True),
    st.integers(1, 4000),
    st.integers(0, 1),
)
def test_computed_figures_are_those_of_all_pairs(operands, wanted, places):
    """Every pair, each way, in fractions."""
    answer = Decimal(wanted).scaleb(-places)
    half = Fraction(1, 2 * 10**places)
    source = "; ".join(map(str, operands))
    (figure,) = grounded(f"x: {answer}", source, ignore=())
    size, ways = Fraction(answer), set()
    for a, b in itertools.permutations(map(Fraction, operands), 2):
        for how, operation in OPERATIONS.items():
            value = operation(a, b)
            coarse = how == "quotient" and size < 10 * 2 * half and value != size
            if value is not None and value > 0 and abs(value - size) <= half and not coarse:
                ways.add(how)
    if figure.how in ("exact", "rounded"):
        assert any(abs(one - size) <= half for one in operands) or wanted >= 1000
    elif wanted < 1000 or places:
        assert figure.how in ways if ways else not figure.found
        if figure.computed:
            a, b = (Fraction(place.value) for place in figure.found)
            assert abs(OPERATIONS[figure.how](a, b) - size) <= half


PIECES = ["1", "2,500", ".5", "%", " ", "\n", "million", "$", "-", "to", "2019", "May", "[", "]", "(in millions)",
          "½", "/", "half", "a hundred", "about", "e9999", "<think>", "#", "٣", "bps", "km"]  # fmt: skip


@given(
    st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.text(max_size=100),
    st.lists(st.sampled_from(PIECES), max_size=20).map("".join),
)
@example("1e99999999999999", "1e99999999999999 and 2")
@example("-0 0%", "0.0")
def test_any_text(answer, source):
    for one in grounded(answer, [source, answer], ignore=()):
        assert answer[one.start : one.stop] == one.text
        assert bool(one.found) == bool(one.how)
    for one in grounded(answer, answer, compute=False):
        labels = one.ignored or NonClaims(answer).kind(one.start, one.stop)
        assert one.found or labels, "a text has its own figures"


def test_long_and_many_numbers_take_no_longer_than_their_length():
    start = time.process_time()
    answer = "9" * 5000 + " 1e999999999 " + "7 " * 2000
    figures = grounded(answer, f"1e999999999 {'9' * 5000} {'3 4 ' * 1000}")
    assert [one.how for one in figures[:2]] == ["exact", "exact"]
    grounded("a-" * 20000 + "[1," * 5000 + "a@" * 9000, "two hundred and " * 3000 + " " * 20000)
    assert time.process_time() - start < 30


def test_of_many_figures_the_first_are_computed_with_and_it_is_said():
    source = " ".join(f"{n}.5;" for n in range(1000, 1000 + MOST_OPERANDS + 100))
    assert Sources(source).left_out == 100
    with pytest.warns(UserWarning, match=f"the first {MOST_OPERANDS} .* 100 were not"):
        (figure,) = grounded("0.123", source)
    assert figure.ungrounded
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grounded("0.123", source, compute=False)
    made = grounded_report(["0.123"], [source])
    assert made.capped == 1 and f"over {MOST_OPERANDS} figures" in str(made)


def test_ignore_names_kinds():
    text = "In 2019, Table 3 had 5 rows."
    assert [one.ignored for one in grounded(text, "")] == ["year", "label", ""]
    assert [one.ignored for one in grounded(text, "", ignore=["label"])] == ["", "label", ""]
    assert [one.ungrounded for one in grounded(text, "", ignore=())] == [True, True, True]


def test_a_report_counts_figures_and_names_those_that_are_missing():
    answers = ["It has 12 rooms, 3 of 4 let (75%), since 2019.", "It has 13 rooms.", None]
    made = grounded_report(answers, ["12 rooms; 3 of 4 are let"] * 3)
    assert (made.answers, made.grounded_answers, made.figures) == (3, 2, 5)
    assert made.found == {"exact": 3, "percent of": 1} and made.computed == 1
    assert made.ignored == {"year": 1} and made.share == 0.8
    (missing,) = made.missing
    assert missing == (1, "13", 7, 9, "It has 13 rooms.")
    assert "answer 2: '13' is not in the sources" in str(made)
    assert json.loads(json.dumps(made.to_dict()))["share"] == 0.8
    assert grounded_report([], []).to_dict()["share"] is None


@pytest.mark.parametrize("found", [29, 57])
def test_a_share_that_is_asked_for_is_enough(found, tmp_path):
    figures = [f"{n}.5" for n in range(100)]
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"prediction": "; ".join(figures), "context": figures[:found]}))
    words = "score --grounded --sources context --no-compute --ignore none --fail-under"
    assert [run(f"{words} {found + more}", file).exit_code for more in (0, 1)] == [0, 3]


def test_a_reward_is_the_share_of_figures_that_are_found():
    reward = grounded_reward("docs", without_figures=0.5)
    chat = [{"role": "assistant", "content": "5 rooms, 7 floors"}]
    completions = ["5 rooms", chat, "none at all", "in 2019"]
    assert reward(completions, docs=["5 rooms", ["5", "6"], "5", "5"]) == [1.0, 0.5, 0.5, 0.5]


def test_scoring_loads_nothing_heavy():
    program = "import sys, numtok.score; print({'numpy', 'pyarrow', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
