"""The pages of ``numtok stats --html`` and ``numtok inspect --html``."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numtok_cli.main import cli
from numtok_cli.page import page, stats_data
from pages import BROWSER, drawn, page_data
from places import SAMPLE

from numtok import Numbers, Statistics
from numtok.statistics.report import Report

HOSTILE = [
    "</script><script>document.title='run'</script> 5 <b> & 6\"7' 8\u202e9 10\x1b[31m <!-- 3",
    "1e999999 -1e-999999 ٤٢ <img src=x onerror=document.title='run'> 4 ]]> {{data}}",
    "no number",
]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def everything() -> Statistics:
    """Numbers of every shape, many values and many units."""
    shapes = (
        f"{'-' * (k % 3 == 0)}{'123456789' * 6}"[: 1 + k % 23] + f"1e{k % 121 - 60}"
        for k in range(9000)
    )
    words = (
        f"{k} {chr(97 + k % 26)}{chr(97 + k // 26 % 26)}{chr(0x400 + k % 99)}x {1000 + k % 1100}"
        for k in range(9000)
    )
    return Statistics.of_batch([" ".join(shapes), " ".join(words)])


PAGES: dict[str, Callable[[], Statistics]] = {
    "nothing": Statistics,
    "no numbers": lambda: Statistics.of_batch(["none", None]),
    "hostile": lambda: Statistics.of_batch([*HOSTILE, "7" * 1_000_000]),
    "everything": everything,
    "unknown": lambda: Statistics.of_values(Numbers.parse(["5", "-7.5"]), np.array([0, 2])),
}


@pytest.mark.parametrize("kind", PAGES)
def test_the_page_of_statistics_is_whole_and_small(kind: str, tmp_path: Path) -> None:
    statistics = PAGES[kind]()
    report = Report.of(statistics)
    (tmp_path / "a.html").write_text(page(stats_data(report, "<&>\u202e</script>.jsonl")), "utf-8")
    data = page_data(tmp_path / "a.html")
    assert data["source"] == "<&>\\u202e</script>.jsonl"
    assert data["options"] == report.recommendation.options and data["reasons"]
    assert len(data["losses"]) == (len(report.losses) if statistics.numbers else 0)
    assert [loss["taken"] for loss in data["losses"]].count(True) == bool(statistics.numbers)
    if statistics.numbers:
        assert len(data["charts"]) >= 3 and all(table["rows"] for table in data["charts"])
    for table in (*data["charts"], *data["lists"]):
        assert all(len(row) == 1 + len(table["columns"]) for row in table["rows"])
        assert not any("\u202e" in row[0] for row in table["rows"])


def test_few_outliers_do_not_take_the_whole_axis(tmp_path: Path) -> None:
    texts = ["1 22 333 in 1999"] * 300 + ["5e40 1e-30 in 1066 and 2099"]
    charts = {
        table["name"]: table["rows"]
        for table in stats_data(Report.of(Statistics.of_batch(texts)), "")["charts"]
    }
    assert [row[0] for row in charts["Magnitudes"]] == ["below 1", "1", "10", "100", "1000",
                                                        "10000 and more"]  # fmt: skip
    assert [row[:2] for row in charts["Years"]] == [
        ["below 1990s", 1], ["1990s", 300], ["2000s and more", 1],
    ]  # fmt: skip
    assert sum(row[1] for row in charts["Magnitudes"]) == 4 * 300 + 4


def test_a_text_and_a_row_of_an_encoded_file(tmp_path: Path) -> None:
    where = str(tmp_path / "a.html")
    told = run("inspect", HOSTILE[0], "--numbers", "xval,fone:2,1", "--html", where)
    data = page_data(tmp_path / "a.html")
    assert data["text"] == HOSTILE[0] and "open it in a browser" in told
    assert [data["text"][one["start"] : one["stop"]] for one in data["numbers"]] == [
        one["text"] for one in data["numbers"]
    ]
    (view,) = data["views"]
    assert view["columns"] == ["number_scaled", "number_fourier"]
    assert view["rows"][0][2]["phases"][0] == [1.0, 0.0]
    encoded = str(tmp_path / "a.parquet")
    run(
        "encode",
        str(SAMPLE),
        "-o",
        encoded,
        "--numbers",
        "xval,bits",
        "--scale",
        "1",
        "-q",
        "--keep-text",
    )
    run("inspect", encoded, "--row", "2", "--html", where)
    data = page_data(tmp_path / "a.html")
    text = [json.loads(line)["text"] for line in SAMPLE.read_text("utf-8").splitlines()][1]
    assert data["text"] == text and dict(data["facts"])["rows"] == "31"
    assert {"number_scaled", "number_bits"} < set(data["views"][0]["columns"])
    assert data["views"][0]["rows"][0][-1]["bits"]
    result = CliRunner().invoke(cli, ["inspect", "5", "--html", str(tmp_path / "no" / "a.html")])
    assert result.exit_code == 1 and "there is no folder" in result.stderr


@pytest.mark.skipif(BROWSER is None, reason="no chromium")
@pytest.mark.parametrize("kind", ["stats", "inspect"])
def test_a_browser_draws_hostile_text_and_runs_none_of_it(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    if kind == "stats":
        report = Report.of(Statistics.of_batch([f"5 {HOSTILE[0]}", *HOSTILE]))
        path.write_text(page(stats_data(report, HOSTILE[0])), "utf-8")
        shown = ["Recommended", report.recommendation.options, "fone", "exact", "Written forms"]
    else:
        run("inspect", "\n".join(HOSTILE), "--html", str(path))
        shown = ["place_value"[:5], "xval + bits", "[NUM]", "{{data}}", "onerror"]
    made = drawn(path, tmp_path / "browser")
    text = html.unescape(re.sub(r"<[^>]+>", "", re.sub("<style>.*?</style>", "", made, flags=re.S)))
    assert all(one in text for one in shown) and "[object" not in text
    assert "<title>run" not in made and "<img" not in made and made.count("<script") == 0
