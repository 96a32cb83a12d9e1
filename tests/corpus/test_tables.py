"""Tables: columns joined to texts by a template, and a word where the numbers are elsewhere."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from command import run
from input_files import failure, read_all, write_rows

import numtok

ROWS = [
    {"id": "1", "name": "Tea, green", "price": "2.50", "date": "2020-01-02"},
    {"id": "2", "name": 'The "big" {one}', "price": "1,234", "date": ""},
    {"id": "03", "name": "two\nlines", "price": "-0.5e3", "date": "n/a"},
]
COSTS = ["Tea, green costs 2.50", 'The "big" {one} costs 1,234', "two\nlines costs -0.5e3"]
LINES = [
    "id: 1\nname: Tea, green\nprice: 2.50\ndate: 2020-01-02",
    'id: 2\nname: The "big" {one}\nprice: 1,234',
    "id: 03\nname: two\nlines\nprice: -0.5e3\ndate: n/a",
]
NAMES = ["a.csv", "a.tsv", "a.jsonl", "a.json", "a.parquet", "a.arrow", "a.csv.gz"]


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_joined_in_every_format(name, tmp_path):
    path = write_rows(tmp_path / name, ROWS)
    assert read_all(path, template="{name} costs {price}") == COSTS
    assert read_all(path, template="row") == LINES
    assert read_all(path, template=r"{id}\n{{{id}}}\t{date}") == [
        f"{row['id']}\n{{{row['id']}}}\t{row['date']}" for row in ROWS
    ]
    said = str(failure(path, template="{name} of {Price}"))
    assert "no column 'Price'" in said and "correct the template" in said
    assert "'id', 'name', 'price', 'date'" in said and str(path) in said


def test_values_are_written_as_they_are(tmp_path):
    """Numbers of JSON digit by digit; those of columns with types as Arrow writes them."""
    lines = [
        '{"a": 12.50, "b": 1e400, "c": true, "d": [1.0, {"e": "x"}], "f": 12345678901234567890123}',
        '{"a": null}',
        "null",
        '{"b": "text", "g": 1}',
    ]
    whole = '12.50|1e400|true|[1.0, {"e": "x"}]|12345678901234567890123'
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.json").write_text(f"[{', '.join(lines)}]")
    for name in ("a.jsonl", "a.json"):
        texts = read_all(tmp_path / name, template="{a}|{b}|{c}|{d}|{f}")
        assert texts == [whole, None, None, "|text|||"]
    assert read_all(tmp_path / "a.jsonl", template="row")[3] == "b: text\ng: 1"
    typed = {"n": [1, None], "x": [0.5, None], "d": [Decimal("1.50"), None]}
    typed |= {"c": pa.array(["a", None]).dictionary_encode()}
    pq.write_table(pa.table(typed), tmp_path / "a.parquet")
    assert read_all(tmp_path / "a.parquet", template="{n} {x} {d} {c}") == ["1 0.5 1.50 a", None]
    assert read_all(tmp_path / "a.parquet", template="row")[1] is None


HOUR = timedelta(hours=1)
TYPED = [
    (pa.decimal128(20, 8), ["0", "1.5", "-0.00000001", None],
     ["0.00000000", "1.50000000", "-0.00000001", ""]),
    (pa.decimal256(60, 8), ["0", "123456789012345678901234567890"],
     ["0.00000000", "123456789012345678901234567890.00000000"]),
    (pa.float16(), [0.1, -2.5, 1e-7, 1, None, float("inf")], ["0.1", "-2.5", "1e-7", "1", "", "inf"]),
    (pa.float32(), [0.1, 1e10], ["0.1", "1e+10"]),
    (pa.duration("us"), [26 * HOUR + timedelta(microseconds=5), -HOUR / 2, 0 * HOUR, None],
     ["93600000005", "-1800000000", "0", ""]),
    (pa.timestamp("us"), [datetime(2020, 1, 2, 3, 4, 5, 600), datetime(1, 1, 1), None],
     ["2020-01-02T03:04:05.0006", "0001-01-01T00:00:00", ""]),
    (pa.timestamp("ns", "Asia/Kolkata"), [datetime(2020, 1, 2), datetime(1960, 1, 2, 0, 0, 0, 100)],
     ["2020-01-02T05:30:00+05:30", "1960-01-02T05:30:00.0001+05:30"]),
    (pa.timestamp("ms", "UTC"), [datetime(2020, 1, 2, 3, 4, 5, 120000)], ["2020-01-02T03:04:05.12Z"]),
    (pa.date32(), [date(2020, 1, 2)], ["2020-01-02"]),
    (pa.time64("us"), [time(3, 4, 5), time(3, 4, 5, 120)], ["03:04:05", "03:04:05.00012"]),
]  # fmt: skip


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize(("kind", "values", "texts"), TYPED, ids=[str(kind) for kind, *_ in TYPED])
def test_values_of_types_have_the_form_that_people_write(name, kind, values, texts, tmp_path):
    if pa.types.is_decimal(kind):
        values = [None if one is None else Decimal(one) for one in values]
    if kind == pa.float16():
        values = [None if one is None else np.float16(one) for one in values]
    made = pa.table({"v": pa.array(values, kind)})
    write = pq.write_table if name == "a.parquet" else pyarrow.feather.write_feather
    write(made, tmp_path / name)
    assert read_all(tmp_path / name, template="<{v}>") == [
        f"<{text}>" if text else None for text in texts
    ]


def test_every_half_float_reads_back(tmp_path):
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    pq.write_table(pa.table({"v": values}), tmp_path / "a.parquet")
    texts = read_all(tmp_path / "a.parquet", template="{v}")
    np.testing.assert_array_equal(np.array(texts, np.float64).astype(np.float16), values)
    assert max(map(len, texts)) <= len("-0.00001234")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_columns_without_texts_are_refused_by_name(name, tmp_path):
    nested = {
        "list": pa.array([[1.0, 2.0]]),
        "object": pa.array([{"a": 1}]),
        "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        "pair": pa.array([[1, 2]], pa.list_(pa.int64(), 2)),
        "bytes": pa.array([b"\xff"]),
    }
    write = pq.write_table if name == "a.parquet" else pyarrow.feather.write_feather
    for column, values in nested.items():
        write(pa.table({"price": [5], column: values}), tmp_path / name)
        for template in (f"{{{column}}}", f"{{price}} {{{column}}}", "row"):
            for on_error in ("raise", "skip"):
                error = failure(tmp_path / name, template=template, on_error=on_error)
                assert f"column {column!r} of the template" in str(error)
        assert read_all(tmp_path / name, template="{price}") == ["5"]


def test_a_column_that_begins_late_is_found(tmp_path):
    rows = [*[{"a": "x" * 1000}] * 1500, {"a": "1", "b": "2"}]
    path = write_rows(tmp_path / "a.jsonl", rows)
    assert read_all(path, template="{a} {b}")[-1] == "1 2"


def test_a_table_without_columns_is_told(tmp_path):
    pq.write_table(pa.table({}), tmp_path / "a.parquet")
    assert "has no columns" in str(failure(tmp_path / "a.parquet", template="row"))


def test_a_table_whose_numbers_are_elsewhere_is_told(tmp_path):
    path, out = tmp_path / "prices.csv", tmp_path / "o.parquet"
    path.write_text("id,name,price,date\n1,tea,2.50,2020-01-02\n2,rice,1234,2020-01-03\n")
    command = ["encode", str(path), "-o", str(out)]
    said = run(*command).output
    assert "hold some" not in run("stats", out).output  # encoded
    assert "of 'name'" in said and "there are no numbers in 'name'" in said
    assert "'id', 'price', 'date' hold some" in said and "--template '{id} {price} {date}'" in said
    more = ["--template", "{name} costs {price}", "--overwrite"]
    said = run(*command, *more).output
    assert "there are no numbers" not in said
    assert pq.read_table(out)["number_value"].to_pylist() == [[2.5], [1234.0]]
    said = run("stats", path).output
    assert (
        "'id', 'price', 'date' hold some" in said
        and "by template=... (--template), '{id} {price} {date}'" in said
    )
    (tmp_path / "a.txt").write_text("none\n")
    said = run("encode", tmp_path / "a.txt", "-o", out, "--overwrite").output
    assert "no numbers; with tables, --template joins columns" in said
    assert numtok.corpus_stats(path, template="{price}").numbers == 2
    assert numtok.corpus_stats(path, template="row").numbers == 10
