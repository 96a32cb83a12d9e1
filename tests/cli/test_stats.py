"""``numtok stats``: what it prints, the page and the JSON; and what a browser draws of hostile text."""

import html
import json
import re
from collections.abc import Callable

import numpy as np
import pytest
from command import ok
from numtok_cli.page import page
from numtok_cli.stats import shown_report
from pages import BROWSER, HOSTILE, drawn, page_data
from places import SAMPLE

from numtok import Numbers, Statistics, corpus_stats
from numtok.statistics.report import Report


def test_the_terminal_shows_what_the_page_shows(tmp_path):
    told = ok("stats", SAMPLE, "--html", tmp_path / "a.html", "--json", tmp_path / "a.json")
    on_page = json.dumps(page_data(tmp_path / "a.html"), ensure_ascii=False)
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    report = Report.of(corpus_stats(SAMPLE))
    assert data == json.loads(json.dumps(report.to_json()))
    assert Statistics.from_json(data["statistics"]) == report.statistics
    options = " ".join(f"--{name} {value}" for name, value in report.recommendation.options.items())
    names = [loss.name for loss in report.losses]
    marks = ["183", "31", "clip 7.7%", "°C", "2020s", "leading zeros"]
    for shown in (told, on_page):
        assert all(one in shown for one in (options, *names, *marks)), shown
    assert [loss["name"] for loss in data["representations"]] == names
    assert json.loads(ok("stats - --json -", input=SAMPLE.read_text("utf-8"))) == data
    assert ok("stats -q", SAMPLE) == ""


def test_only_the_representations_that_are_asked_for_are_compared():
    told = ok("stats --numbers fone:3,1 --numbers bits,xval", SAMPLE)
    table = told[told.index("representations:") : told.index("recommended:")]
    assert "fone:3,1" in table and "bits" in table and "xval" in table and "p1000" not in table


# Pages


def everything():
    """Numbers of every shape, many values and many units."""
    digits = "123456789" * 6
    shapes = (f"{'-' * (k % 3 == 0)}{digits}"[: 1 + k % 23] for k in range(9000))
    numbers = (f"{shape}1e{k % 121 - 60}" for k, shape in enumerate(shapes))
    letters = ((97 + k % 26, 97 + k // 26 % 26, 0x400 + k % 99) for k in range(9000))
    words = (f"{k} {''.join(map(chr, one))}x {1000 + k % 1100}" for k, one in enumerate(letters))
    return Statistics.of_batch([" ".join(numbers), " ".join(words)])


PAGES: dict[str, Callable[[], Statistics]] = {
    "nothing": Statistics,
    "no numbers": lambda: Statistics.of_batch(["none", None]),
    "hostile": lambda: Statistics.of_batch([*HOSTILE, "7" * 1_000_000]),
    "everything": everything,
    "unknown": lambda: Statistics.of_values(Numbers.parse(["5", "-7.5"]), np.array([0, 2])),
}


@pytest.mark.parametrize("kind", PAGES)
def test_the_page_is_whole_and_small(kind, tmp_path):
    statistics = PAGES[kind]()
    report = Report.of(statistics)
    path = tmp_path / "a.html"
    path.write_text(page(shown_report(report, "<&>\u202e</script>.jsonl")), "utf-8")
    data = page_data(path)
    assert data["source"] == "<&>\\u202e</script>.jsonl"
    assert report.recommendation.numbers in data["options"] and data["reasons"]
    assert len(data["losses"]) == (len(report.losses) if statistics.numbers else 0)
    assert [loss["taken"] for loss in data["losses"]].count(True) == bool(statistics.numbers)
    assert len(data["charts"]) >= 3 * bool(statistics.numbers)
    for table in (*data["charts"], *data["lists"]):
        assert table["rows"] and all(len(row) == 1 + len(table["columns"]) for row in table["rows"])
        assert not any("\u202e" in row[0] for row in table["rows"])


def test_few_outliers_do_not_take_the_whole_axis():
    texts = ["1 22 333 in 1999"] * 300 + ["5e40 1e-30 in 1066 and 2099"]
    shown = shown_report(Report.of(Statistics.of_batch(texts)), "")
    charts = {table["name"]: table["rows"] for table in shown["charts"]}
    labels = ["below 1", "1", "10", "100", "1000", "10000 and more"]
    assert [row[0] for row in charts["Magnitudes"]] == labels
    assert sum(row[1] for row in charts["Magnitudes"]) == 4 * 300 + 4
    years = [["below 1990s", 1], ["1990s", 300], ["2000s and more", 1]]
    assert [row[:2] for row in charts["Years"]] == years


@pytest.mark.skipif(BROWSER is None, reason="no chromium")
@pytest.mark.parametrize("kind", ["stats", "inspect"])
def test_a_browser_draws_hostile_text_and_runs_none_of_it(kind, tmp_path):
    path = tmp_path / "a.html"
    if kind == "stats":
        report = Report.of(Statistics.of_batch([f"5 {HOSTILE[0]}", *HOSTILE]))
        path.write_text(page(shown_report(report, HOSTILE[0])), "utf-8")
        shown = ["Recommended", report.recommendation.numbers, "fone", "exact", "Written forms"]
    else:
        ok("inspect", "\n".join(HOSTILE), "--html", path)
        shown = ["place", "xval + bits", "[NUM]", "{{data}}", "onerror"]
    made = drawn(path, tmp_path / "browser")
    text = html.unescape(re.sub(r"<[^>]+>", "", re.sub("<style>.*?</style>", "", made, flags=re.S)))
    assert all(one in text for one in shown) and "[object" not in text
    assert "<title>run" not in made and "<img" not in made and made.count("<script") == 0


def test_another_grammar_stands_first(tmp_path):
    (tmp_path / "de.txt").write_text("Es kostet 7,50 € und wiegt 3,5 kg.\n" * 20, "utf-8")
    told = ok("stats", tmp_path / "de.txt", "--html", tmp_path / "a.html")
    assert "grammar='european' (--grammar)" in told.partition("documents")[0].replace("\n    ", " ")
    data = page_data(tmp_path / "a.html")
    assert "grammar='european' (--grammar)" in data["grammar"] and not any(
        "--grammar" in one for one in data["remarks"]
    )
    if BROWSER is not None:
        made = drawn(tmp_path / "a.html", tmp_path / "browser")
        assert made.index("--grammar") < made.index("Recommended")
