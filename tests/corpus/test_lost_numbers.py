"""Numbers that a model could not read are not lost without a word: a fitted scale of xVal that would
clip many of them stops the encoding, and many that stay text are told, by column of a table.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run
from input_files import write_rows

import numtok
from numtok.corpus.read.batches import TextBatch, joined
from numtok.corpus.read.sources import Source
from numtok.corpus.read.template import Template
from numtok.errors import RepresentationError

HOMES = "{area} m2, {rooms} rooms, {age} years old, price {price}"
MEANT = ({"scale": 1e-5}, {"clip": 5.0}, {"overflow": "clip"}, {"fit_quantile": 0.5})


def write_homes(folder, form="csv"):
    rng = np.random.default_rng(1)
    limits = {"area": (40, 220), "rooms": (1, 9), "age": (1, 110), "price": (150_000, 500_000)}
    table = {name: rng.integers(*both, 300).tolist() for name, both in limits.items()}
    return write_rows(folder / f"homes.{form}", pa.table(table).to_pylist())


# A scale that clips
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "output", "template"),
    [
        ("csv", "out.parquet", HOMES),
        ("jsonl", "out.parquet", "row"),
        ("parquet", "out/", HOMES),
        ("csv", "out/", "row"),
    ],
)
def test_a_scale_that_loses_a_column_stops(tmp_path, form, output, template):
    homes, out = write_homes(tmp_path, form=form), f"{tmp_path}/{output}"
    with pytest.raises(RepresentationError) as stopped:
        numtok.encode_files(homes, out, template=template, numbers="xval")
    told = str(stopped.value)
    assert "is the largest value that a model can then read" in told
    assert "300 of 300 in column 'price'" in told and "25.0%" in told
    for name in ("quantile_bins:32,soft", "xval:log", "logfourier"):
        assert name in told
        made = numtok.encode_files(homes, out, template=template, numbers=name, overwrite=True)
        assert not made.clipped and not made.left_as_text


def test_a_text_of_which_much_would_be_clipped_stops(tmp_path):
    texts = ["It has 3 rooms and 70 m2.", "It is 12 years old and costs 309900."] * 5
    (tmp_path / "homes.txt").write_text("\n".join(texts))
    arguments = ("encode", tmp_path / "homes.txt", "-o", tmp_path / "a.parquet")
    stopped = run(*arguments, "--numbers", "xval")
    assert stopped.exit_code != 0 and not (tmp_path / "a.parquet").exists()
    assert "'xval:log'" in stopped.stderr and "--overflow clip" in stopped.stderr
    pipe = ("encode", "-", "-o", tmp_path / "a.parquet", "--numbers", "xval")
    piped = run(*pipe, input="\n".join(map(json_row, texts)))
    assert piped.exit_code != 0 and "the largest value" in piped.stderr
    assert run(*arguments).exit_code == 0


def json_row(text):
    return json.dumps({"text": text})


@pytest.mark.parametrize("meant", MEANT, ids=lambda meant: next(iter(meant)))
def test_what_is_meant_does_not_stop(tmp_path, meant):
    out, homes = tmp_path / "a.parquet", write_homes(tmp_path)
    made = numtok.encode_files(homes, out, template=HOMES, numbers="xval", **meant)
    assert made.numbers == 1200


def test_half_of_a_column_is_too_much_where_it_is_a_small_share_of_all(tmp_path):
    """Of 400 columns with one number each, one is lost, which is 0.25% of all numbers."""
    names = [f"c{k}" for k in range(400)]
    values = np.random.default_rng(2).integers(1, 100, (40, 400))
    values[:, 7] *= 100_000
    table = pa.table(dict(zip(names, values.T, strict=True)))
    pq.write_table(table, tmp_path / "wide.parquet")
    out = tmp_path / "a.parquet"
    with pytest.raises(RepresentationError, match=r"40 of 40 in column 'c7'"):
        numtok.encode_files(tmp_path / "wide.parquet", out, template="row", numbers="xval")
    others = table.drop_columns(["c7"])
    pq.write_table(others, tmp_path / "wide.parquet")
    numtok.encode_files(tmp_path / "wide.parquet", out, template="row", numbers="xval")


def test_stats_says_that_encode_would_stop(tmp_path):
    homes = write_homes(tmp_path)
    told = run("stats", homes, "--template", HOMES, "--json", tmp_path / "s.json")
    assert told.exit_code == 0
    shown = " ".join(told.stdout.split())
    assert "300 of 300 in column 'price'" in shown and "'xval:log'" in shown
    assert "--numbers xval --scale" not in shown
    advice = json.loads((tmp_path / "s.json").read_text())["recommendation"]
    assert advice["numbers"] == "quantile_bins:32,soft"
    counts = numtok.corpus_stats(homes, template=HOMES)
    assert numtok.Statistics.from_json(counts.to_json()) == counts
    halves = [numtok.corpus_stats(homes, template=HOMES, batch_bytes=size) for size in (500, 9999)]
    assert halves[0].columns.to_json() == halves[1].columns.to_json() == counts.columns.to_json()


# Numbers that stay text
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "output"),
    [("fone:5,4", "out.parquet"), ("bits", "out/"), ("p10", "out.parquet"), ("fp15", "out/")],
)
def test_numbers_that_stay_text_are_told(tmp_path, numbers, output):
    rows = [f"{k},{k + 0.25}e{150 if k < 5 else 0}" for k in range(1, 101)]
    (tmp_path / "in.csv").write_text("\n".join(["n,size", *rows]) + "\n")
    options = ("--template", "{n}: {size}", "--numbers", numbers, "--quiet")
    told = run("encode", tmp_path / "in.csv", "-o", f"{tmp_path}/{output}", *options)
    assert told.exit_code == 0
    assert "4 of 100 in column 'size'" in told.stderr and numbers in told.stderr
    assert "column 'n'" not in told.stderr


def test_few_that_stay_text_are_not_told(tmp_path):
    (tmp_path / "in.txt").write_text("\n".join(["It is 12345678.", *["It is 3."] * 100]))
    few = ("encode", tmp_path / "in.txt", "-o", tmp_path / "a.parquet", "--numbers", "fone:5,4")
    assert run(*few).stderr == ""
    (tmp_path / "in.txt").write_text("\n".join(["It is 12345678.", *["It is 3."] * 90]))
    assert "1.1%" in run(*few, "--overwrite").stderr


# Where the columns stand
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("template", ["{a} 77 {b} {a}, é {b} 5", "row"])
def test_numbers_are_counted_for_the_column_that_they_stand_in(template):
    """Held to counting the numbers of each value by itself, after rows were taken and joined."""
    rows = [
        {"a": "1 or 22", "b": "x"},
        {"b": "-4.5", "a": ""},
        {},
        {"a": "é 7", "c": "1,234 and 5"},
        {"c": "9"},
    ]
    texts, cells = Template(template).of_rows(rows)
    whole = TextBatch(texts, {}, 0, 0, Source("-", "jsonl", None, 0), cells=cells)
    batches = [whole.take(np.array(some)) for some in ([0, 1], [2, 3, 4])]
    order = np.array([4, 2, 0, 1, 3, 0])
    batch = joined(batches).take(order)
    numbers = numtok.scan(batch.texts)
    counts = batch.cells.counted(batch.cells.column_of(numbers.document, numbers.stop))
    expected: dict[str, int] = {}
    names = ["a", "b", "a", "b"] if template != "row" else ["a", "b", "c"]
    for row in order.tolist():
        for name in names:
            found = len(numtok.extract(rows[row].get(name) or ""))
            if found:
                expected[name] = expected.get(name, 0) + found
    assert counts == expected
