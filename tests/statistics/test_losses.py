"""Check what a representation would lose, as the statistics say, is what encoding all numbers loses; and
what is recommended follows from that.
"""

import dataclasses
import json
import random
import re
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from command import ok
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT

import numtok
from numtok import (
    Digits,
    FloatBits,
    FoNE,
    Numbers,
    PlaceValue,
    QuantileBins,
    Statistics,
    Subword,
    XVal,
)
from numtok.representations import REPRESENTATIONS, SingleToken, SpelledOut, parse
from numtok.representations.registry import representations_of
from numtok.statistics.losses import candidates, fitted_xval, losses
from numtok.statistics.recommend import ADVICE, TASKS, wanted_grammar
from numtok.statistics.report import Report


def really_lost(representation, numbers):
    """(left as text, clipped, read back as another decimal), of all numbers."""
    numbers = numbers if representation.carries_sign else numbers.without_sign()
    fits = representation.fits(numbers)
    held = numbers.select(fits & ~representation.clipped(numbers))
    found = held
    if isinstance(representation, SingleToken):
        found = representation.decode(representation.encode(held))
    elif isinstance(representation, SpelledOut):
        found = Numbers.parse(representation.decode(representation.encode(held)))
    pairs = zip(found.to_decimal(), held.to_decimal(), strict=True)
    changed = sum(abs(now) != abs(was) for now, was in pairs)
    return int((~fits).sum()), int(representation.clipped(numbers).sum()), changed


NAMES = "xval:log bits bits:64 fone:4,2 fone:20,9 place digits p10 p1000 b1999 fp15 exponent_bins"
EVERY = [one for name in [*NAMES.split(), "logfourier", "subword"] for one in parse(name)]


@pytest.fixture(scope="module")
def found(wiki_texts):
    return numtok.scan([text[:30_000] for text in wiki_texts[:60]])


def test_the_losses_are_those_of_encoding_every_number(found):
    for loss in losses(Statistics.of_numbers(found), EVERY):
        left, clipped, changed = really_lost(loss.representation, found)
        assert loss.numbers == len(found)
        assert (loss.left_as_text, loss.clipped) == (left, clipped), loss.name
        assert abs(loss.rounded - changed) <= 0.002 * len(found), loss.name
        assert (loss.worst_error > 0) == (loss.rounded > 0), loss.name


def test_the_digits_of_long_numbers_are_counted_one_by_one():
    draw = random.Random(0)
    widths = [(whole, behind) for whole in (1, 3, 10) for behind in (5, 9, 16, 17, 25, 60)]
    texts = [
        ".".join("".join(draw.choices("123456789", k=k)) for k in widths[n % len(widths)])
        for n in range(500)
    ]
    numbers = numtok.scan(texts)
    for loss in losses(Statistics.of_numbers(numbers), [FoNE(10, 16), FoNE(3, 9)]):
        lost = (loss.left_as_text, loss.clipped, loss.rounded)
        assert lost == really_lost(loss.representation, numbers), loss.name


def test_of_bins_the_edges_alone_are_exact():
    values = [str(n * 7 % 9973) for n in range(9000)]
    numbers = Numbers.parse(values)
    (loss,) = losses(Statistics.of_numbers(numbers), [QuantileBins(32, soft=True)])
    left, _, changed = really_lost(QuantileBins.fit(numbers, 32, soft=True), numbers)
    assert loss.left_as_text == left == 0
    assert abs(loss.rounded - changed) <= 0.03 * len(values)


pairs = st.tuples(st.integers(-(10**12), 10**12), st.integers(-20, 20))


@settings(max_examples=examples(40))
@given(st.lists(pairs, min_size=1, max_size=4))
def test_few_values_are_told_exactly(values):
    numbers = numtok.scan([" ".join(f"{mantissa}e{power}" for mantissa, power in values)])
    for loss in losses(Statistics.of_numbers(numbers), EVERY):
        lost = (loss.left_as_text, loss.clipped, loss.rounded)
        assert lost == really_lost(loss.representation, numbers), loss.name


def test_a_scale_that_is_fitted_to_the_statistics_is_that_of_the_numbers(found):
    statistics, few = Statistics.of_numbers(found), 0.002 * len(found)
    for log in (False, True):
        pair = XVal.fit(found, log=log), fitted_xval(statistics, log)
        lost = [int((one.clipped(found) | one.near_zero(found)).sum()) for one in pair]
        assert pair[1].clip == 5 and lost[0] <= lost[1] <= lost[0] + few
    (loss,) = losses(statistics, [fitted_xval(statistics)])
    assert abs(loss.clipped - int(loss.representation.clipped(found).sum())) <= few
    assert abs(loss.vanishing - int(loss.representation.near_zero(found).sum())) <= few


counted = st.lists(st.tuples(st.floats(1e-30, 1e30), st.integers(1, 9)), min_size=1, max_size=20)


@given(counted, st.booleans())
def test_a_fit_to_counted_values_is_that_to_all_of_them(values, log):
    each, counts = (np.array(column) for column in zip(*values, strict=True))
    for quantile in (None, 0.5, 0.99, 1.0):
        fitted = XVal.fit_values(each, quantile=quantile, log=log, counts=counts)
        assert fitted == XVal.fit_values(np.repeat(each, counts), quantile=quantile, log=log)


def test_quantiles_are_within_three_percent(found):
    magnitudes = np.abs(found.to_float64())
    magnitudes = magnitudes[(magnitudes > 0) & np.isfinite(magnitudes)]
    shares = (0.001, 0.01, 0.5, 0.9, 0.999)
    expected = np.quantile(magnitudes, shares, method="inverted_cdf")
    assert np.allclose(Statistics.of_numbers(found).quantiles(shares), expected, rtol=1 / 32)


def test_costs_are_tokens_and_bytes_per_number():
    tok = numtok.Tokenizer.from_pretrained(None, [Subword()])
    statistics = Statistics.of_batch(["1 -22 333", "4444.5"], tokenizer=tok)
    kinds = [XVal(), FloatBits(), FoNE(2, 1), PlaceValue(), Digits(), Digits(2), Subword()]
    chosen = [*kinds, *parse("p1000")]
    costs = {loss.name: (loss.tokens, loss.bytes) for loss in losses(statistics, chosen)}
    before, place, digits = statistics.tokens.before / 4, 2 + 13 / 4, 2 + 8 / 4
    assert costs == {
        "xval": (1, 4),
        "bits": (1, 4),  # as files hold them
        "fone:2,1": (pytest.approx(1.25 * 0.5 + before * 0.5), 3),
        "place": (pytest.approx(place), pytest.approx(2 * place)),
        "digits": (pytest.approx(digits), 0),
        "digits:2": (None, 0),  # what was counted is that of groups of three, and of one
        "p1000": (3, 0),
        "subword": (before, 0),
    }
    untold = dataclasses.replace(statistics, tokens=Statistics().tokens)
    assert [loss.tokens for loss in losses(untold, kinds)] == [1, 1, None, None, None, None, None]
    (loss,) = losses(statistics, [FoNE(3, 1)])
    told = loss.to_json()
    assert (told["options"], told["name"]) == (FoNE(3, 1).to_dict(), "fone:3,1")


def test_representations_of_a_users_own_are_compared(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Own(FloatBits):
        name = "own"

    monkeypatch.setitem(REPRESENTATIONS, "own", Own)
    assert "own" in {one.name for one in candidates(Statistics.of_batch(["5"]))}


# What is recommended


DICE = np.random.default_rng(0)
PRICES = [f"{DICE.uniform(3, 900):.2f} €" for _ in range(500)]
POWERS = [f"{DICE.uniform(1, 9.99):.2f}e{DICE.integers(-30, 30)}" for _ in range(500)]
LONG = [str(10**59 + int(DICE.integers(10**9)) * 7919) for _ in range(300)]
YEARS = [f"In {1900 + k % 120} there were {k % 300} of them" for k in range(500)]
# what is chosen for which task, why, and of which texts
CHOSEN = [
    ("subword", "exact", "no numbers", ["no numbers here"]),
    ("fone:4,0", "exact", "4 digits hold 100%", YEARS),
    ("fone:3,2", "exact", "right to the last digit", PRICES),
    ("fone:2,12", "exact", "14 digits", [f"{DICE.uniform(-90, 90):.12f}" for _ in range(500)]),
    ("place:lsd", "exact", "too long", LONG),
    ("place:lsd", "arithmetic", "arithmetic", PRICES),
    ("bits", "read", "only read", PRICES),
    ("bits:64", "read", "float32", [f"{DICE.uniform(1, 9):.12f}" for _ in range(500)]),
    ("logfourier", "estimate", "estimates", POWERS),
    ("quantile_bins:32,soft", "column", "columns", YEARS),
]


@pytest.mark.parametrize(("chosen", "task", "reason", "texts"), CHOSEN)
def test_the_task_decides_and_the_numbers_give_the_options(
    chosen, task, reason, texts, tmp_path, monkeypatch
):
    report = Report.of(Statistics.of_batch(texts), task=task)
    advice = report.recommendation
    assert advice.numbers == advice.options["numbers"] == chosen
    assert reason in " ".join(advice.reasons)
    assert [one[:9] for one in advice.against[:1]] == ["Against " + chosen[0]] * (len(texts) > 1)
    # whatever is compared
    assert advice == Report.of(report.statistics, [Subword()], task).recommendation
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("\n".join(texts))
    made = numtok.encode_files("in.txt", "a.parquet", **advice.options)
    assert sum(made.left_as_text.values()) <= 0.01 * made.numbers
    told = ok("stats in.txt --task", task).partition("recommended: ")[2].splitlines()[0]
    ok(f"encode in.txt -o b.parquet {told}")


def test_every_task_of_the_command_line_has_its_advice():
    advice = Report.of(Statistics.of_batch(PRICES)).recommendation
    assert advice.task == "exact" and sorted(advice.by_task) == sorted(TASKS)
    told = " ".join(ok("stats --help").split())
    assert "--task [read|estimate|exact|column|arithmetic]" in told
    for task in TASKS:
        assert Report.of(Statistics.of_batch(PRICES), task=task).recommendation.task == task


def test_rows_of_a_table_are_advised_as_columns(tmp_path):
    rows = "".join(f"{k},{k * k}\n" for k in range(50))
    (tmp_path / "in.csv").write_text("a,b\n" + rows)
    counts = numtok.corpus_stats(tmp_path / "in.csv", template="row")
    assert Report.of(counts).recommendation.numbers == "quantile_bins:32,soft"
    assert Report.of(counts, task="read").recommendation.numbers == "bits"


@pytest.mark.parametrize(("count", "few"), [(1, True), (29, True), (30, False)])
def test_few_numbers_are_said_to_be_too_few(count, few):
    advice = Report.of(Statistics.of_batch(["It is 5."] * count)).recommendation
    assert ("too few" in advice.reasons[0]) == few


@pytest.mark.parametrize("advice", ADVICE, ids=lambda one: one.take)
def test_the_pages_give_the_same_advice(advice):
    """README.md and docs/choosing.md name the representation, and what a model needs to read it."""
    (kind,) = representations_of(advice.take)
    needs = "a layer and a head" if isinstance(kind, SingleToken) else "a layer"
    assert advice.needs == needs and kind.columns()  # which a layer reads
    page, readme = ((ROOT / name).read_text("utf-8") for name in ("docs/choosing.md", "README.md"))
    assert re.search(rf"\| `{advice.take}`.*\| `{advice.task}` \|", page)
    assert f"| {advice.wanted} | `{advice.take}` |" in readme


def test_what_speaks_against_it_names_those_that_hold_as_much():
    """Of all that are compared: of prices with two digits, all that write digits keep each, and so
    does fone.
    """
    report = Report.of(Statistics.of_batch(PRICES))
    _, others, layer = report.recommendation.against
    assert "needs a layer and a head of numtok" in layer and "NumberModel" in layer
    exact = {loss.name: loss for loss in report.losses if loss.exact == loss.numbers}
    told = re.findall(r"([\w:,]+) \(100%, ([\d.]+)", others.partition(" exact in ")[2])
    assert len(told) == 3 and all(name in exact for name, _ in told)
    chosen = report.recommendation.numbers
    fewest = [loss.tokens for name, loss in exact.items() if loss.tokens and name != chosen]
    assert [float(tokens) for _, tokens in told] == pytest.approx(sorted(fewest)[:3], rel=0.01)


REMARKS = {
    "007 008 12": "leading zeros",
    "say 3,14 or 2,71 kg": "several numbers where one seems to be meant: 3,14",
    "12 345": "grouped by spaces",
    "-5 -6 7": "sign is a token of text",
    "5 1e999": "beyond float64",
}


def test_what_looks_odd_is_remarked():
    remarks = {
        text: Report.of(Statistics.of_batch([text])).recommendation.remarks for text in REMARKS
    }
    assert all(told in " ".join(remarks[text]) for text, told in REMARKS.items()), remarks
    assert Report.of(Statistics.of_batch(["1 and 2"])).recommendation.remarks == ()


@pytest.mark.parametrize("texts", [[], ["0 -0 0.0"], ["1e99999999999999999"]])
def test_a_report_of_nothing_has_all_its_parts(texts):
    statistics = Statistics.of_batch(texts)
    report = Report.of(statistics)
    assert json.loads(json.dumps(report.to_json()))["recommendation"]["options"]
    assert all(loss.numbers == statistics.numbers for loss in report.losses)


# Whether another grammar is wanted

CORPORA = [
    ("european", "Im Jahr 2019 kamen 12.345 Besucher, das waren 3,5 Prozent mehr. Der Eintritt kostet"
     " 7,50 € am 12.03.2024 um 14.30 Uhr."),
    ("european", "Die Dicke ist 0,125 mm, die andere 0,250 mm, der Abstand 1,234 mm."),
    ("swiss", "Im Jahr 2019 kostete es 12'345.50 Franken, 3.5 Prozent mehr."),
    ("indian", "In 2019 it cost Rs 12,34,567.50, which is 3.5 per cent more than 1,234 dollars."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), CORPORA)
def test_another_grammar_is_asked_for_until_it_is_used(name, text):
    assert wanted_grammar(Statistics.of_batch([text] * 3)) == name
    assert wanted_grammar(Statistics.of_batch([text] * 3, name)) is None


@pytest.mark.parametrize("grammar", ["prose", "data"])
def test_tables_and_code_are_no_hint(grammar, wiki_texts):
    dice = random.Random(1)
    pairs = [(dice.randrange(10_000), dice.uniform(0, 1000)) for _ in range(300)]
    library, modules = Path(sysconfig.get_paths()["stdlib"]), ("datetime", "statistics", "decimal")
    columns = [f"{a},{round(b)}" for a, b in pairs]
    objects = [{"a": a, "b": [b, a, round(b)]} for a, b in pairs]
    tables = {
        "two columns": columns,
        "two columns in one text": ["\n".join(columns)],
        "three decimals": ["\n".join(f"{b:.3f},{a}" for a, b in pairs)],
        "with words": ["\n".join(f"{a},some name,{a},{b:.2f}" for a, b in pairs)],
        "quoted": ["\n".join(f'"a b","{one}",x' for one in columns)],
        "tuples": [f"points = [({one}), ({one})]; f(x, {one})" for one in columns],
        "lists": [f"[{a},{a},{round(b)}] and {a}, {round(b)}, {a}" for a, b in pairs],
        "json": [json.dumps(one, separators=(",", ":")) for one in objects],
        "code": [(library / f"{name}.py").read_text("utf-8") for name in modules],
    }
    tables["wikipedia"] = [text[:4000] for text in wiki_texts[::10]]
    for name, some in tables.items():
        assert wanted_grammar(Statistics.of_batch(some, grammar)) is None, name


def test_the_written_forms_of_a_grammar_are_known_by_its_own_marks():
    text = "1.234,50 und 1 234 und 3,5 und 1.234 und ,5"
    forms = Statistics.of_batch([text], "european").to_json()
    assert forms["forms"] == {"grouped decimal": 1, "grouped": 2, "decimal": 2}
    assert forms["marks"] == {"trailing zeros": 1, "leading point": 1}
