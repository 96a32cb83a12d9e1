"""``numtok stats`` says when a corpus looks as if it wanted another grammar, and keeps still on
English text, code and tables.
"""

from __future__ import annotations

import json
import random
import sysconfig
from pathlib import Path

import pytest
from click.testing import CliRunner
from numtok_cli.main import cli

import numtok
from numtok import Grammar, Statistics
from numtok.statistics.recommend import wanted_grammar
from numtok.statistics.report import Report

CORPORA = {
    "european": (
        "Im Jahr 2019 kamen 12.345 Besucher, das waren 3,5 Prozent mehr. Der Eintritt kostet 7,50 €"
        " am 12.03.2024 um 14.30 Uhr."
    ),
    "swiss": "Im Jahr 2019 kostete es 12'345.50 Franken, 3.5 Prozent mehr.",
    "indian": "In 2019 it cost Rs 12,34,567.50, which is 3.5 per cent more than 1,234 dollars.",
}


def rewritten(text: str, marks: dict[str, str]) -> str:
    """``text`` with its numbers in other marks."""
    pieces, at = [], 0
    for number in numtok.extract(text):
        pieces += [text[at : number.start], number.text.translate(str.maketrans(marks))]
        at = number.stop
    return "".join(pieces) + text[at:]


@pytest.mark.parametrize("name", CORPORA)
def test_it_is_told_until_it_is_used(name: str) -> None:
    assert wanted_grammar(Statistics.of_batch([CORPORA[name]] * 3)) == name
    assert (
        wanted_grammar(Statistics.of_batch([CORPORA[name]] * 3, getattr(Grammar, name)())) is None
    )


@pytest.mark.parametrize(
    ("marks", "wanted"),
    [
        ({}, None),
        ({",": ".", ".": ","}, "european"),
        ({",": "\u00a0", ".": ","}, "european"),
        ({",": "’"}, "swiss"),
    ],
)
def test_wikipedia_as_other_countries_write_it(
    marks: dict[str, str], wanted: str | None, wiki_texts: list[str]
) -> None:
    texts = [rewritten(text, marks) for text in wiki_texts[::10]]
    assert wanted_grammar(Statistics.of_batch(texts)) == wanted


def tables() -> dict[str, list[str]]:
    dice = random.Random(1)
    pairs = [(dice.randrange(10_000), dice.uniform(0, 1000)) for _ in range(300)]
    library = Path(sysconfig.get_paths()["stdlib"])
    return {
        "two columns": [f"{a},{round(b)}" for a, b in pairs],
        "two columns in one text": ["\n".join(f"{a},{round(b)}" for a, b in pairs)],
        "three decimals": ["\n".join(f"{b:.3f},{a}" for a, b in pairs)],
        "with words": [
            "id,name,n,price\n" + "\n".join(f"{a},some name,{a},{b:.2f}" for a, b in pairs)
        ],
        "quoted": ["\n".join(f'"a b","{a},{round(b)}",x' for a, b in pairs)],
        "tuples": [
            f"points = [({a},{round(b)}), ({round(b)},{a})]; f(x, {a},{a})" for a, b in pairs
        ],
        "lists": [f"[{a},{a},{round(b)}] and {a}, {round(b)}, {a}" for a, b in pairs],
        "json": [
            json.dumps({"a": a, "b": [b, a, round(b)]}, separators=(",", ":")) for a, b in pairs
        ],
        "code": [
            (library / f"{name}.py").read_text("utf-8")
            for name in ("datetime", "statistics", "fractions", "colorsys", "random", "decimal")
        ],
    }


@pytest.mark.parametrize("grammar", [Grammar.prose(), Grammar.data()], ids=["prose", "data"])
def test_tables_and_code_are_no_hint(grammar: Grammar) -> None:
    told = {
        name: wanted_grammar(Statistics.of_batch(texts, grammar))
        for name, texts in tables().items()
    }
    assert set(told.values()) == {None}, told


def test_what_is_printed_shown_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "german": CORPORA["european"],
        "english": "In 2019, 12,345 people came, 3.5 more.",
    }.items():
        Path(f"{name}.txt").write_text(text + "\n", "utf-8")
        result = CliRunner().invoke(
            cli, ["stats", f"{name}.txt", "--html", f"{name}.html", "--json", f"{name}.json"]
        )
        assert result.exit_code == 0, result.output
        told = [" ".join(result.output.split()), Path(f"{name}.html").read_text("utf-8")]
        assert all(
            ("count again with --grammar european" in one) == (name == "german") for one in told
        )
        grammar = json.loads(Path(f"{name}.json").read_text())["recommendation"]["grammar"]
        assert grammar == ("european" if name == "german" else None)


def test_the_written_forms_of_a_grammar_are_known_by_its_own_marks() -> None:
    forms = Statistics.of_batch(
        ["1.234,50 und 1 234 und 3,5 und 1.234 und ,5"], Grammar.european()
    ).to_json()
    assert forms["forms"] == {"grouped decimal": 1, "grouped": 2, "decimal": 2}
    assert forms["marks"] == {"trailing zeros": 1, "leading point": 1}
    assert (
        Report.of(Statistics.of_batch(["3,5 kg"], Grammar.european())).recommendation.grammar
        is None
    )
