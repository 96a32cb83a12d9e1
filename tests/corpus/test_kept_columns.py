"""Columns that are kept come back as they were, or an error tells which value cannot be held."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

import numtok
from numtok.errors import InputError, NumtokError, OutputError

TOKENIZER = numtok.Tokenizer.from_pretrained(numbers=[numtok.XVal()])


def refuse_constant(name):
    raise AssertionError(f"{name} is not JSON")


def encode(paths, *names):
    output = paths[0].parent / "o.parquet"
    how = {"keep_text": True, "keep_columns": names, "overwrite": True}
    numtok.encode_files(paths, output, tokenizer=TOKENIZER, **how)
    return output


def round_trip(path, *names):
    back = path.parent / "back.jsonl"
    numtok.decode_files(encode([path], *names), back, TOKENIZER, overwrite=True)
    lines = back.read_text().split("\n")
    return [json.loads(line, parse_constant=refuse_constant) for line in lines if line]


def write(folder, *lines, name="a.jsonl"):
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder / name


def test_columns_of_any_name_come_back(tmp_path):
    names = ["number_of_pages", "number_", "number_bits", "place_value", "number_id", "a b", ""]
    rows = [{"text": f"is {k}", **{name: f"{name} {k}" for name in names}} for k in range(3)]
    assert round_trip(write(tmp_path, *map(json.dumps, rows)), *names) == rows


LATE = [json.dumps({"text": "word " * 100, "x": {"a": 1, "b": [{"c": 1}]}}) for _ in range(4000)]


@pytest.mark.parametrize("late", ['{"a": 1, "new": 2}', '{"a": 1, "b": [{"c": 1, "new": 2}]}'])
def test_a_field_that_appears_late_is_told(late, tmp_path):
    last = '{"text": "last", "x": ' + late + "}"
    path = write(tmp_path, *LATE, last)
    told = r"a\.jsonl:4001: kept column 'x' holds .*, the type of the rows before, .* put a row"
    with pytest.raises(InputError, match=told):
        encode([path], "x")
    assert not (tmp_path / "o.parquet").exists()
    rows = round_trip(write(tmp_path, last, *LATE[:5]), "x")
    assert rows[0]["x"] | json.loads(late) == rows[0]["x"]


@pytest.mark.parametrize("value", ["9007199254740993", "true", '"1"', "[1]"])
def test_a_value_of_another_kind_is_refused(value, tmp_path):
    path = write(tmp_path, '{"text": "a", "n": 1.5}', '{"text": "b", "n": ' + value + "}")
    with pytest.raises(InputError, match=r"a\.jsonl(:2)?: kept column 'n' holds"):
        encode([path], "n")
    first = write(tmp_path, '{"text": "a", "n": 1.5}', name="1.jsonl")
    second = write(tmp_path, '{"text": "b", "n": ' + value + "}", name="2.jsonl")
    with pytest.raises(InputError, match=r"2\.jsonl:1: kept column 'n' holds"):
        encode([first, second], "n")


def test_what_json_cannot_hold_is_never_written_as_json(tmp_path):
    path = write(tmp_path, '{"text": "a", "n": 1.5}', '{"text": "b", "n": NaN}')
    told = r"back\.jsonl: column 'n' of document 2 holds what JSON cannot \(nan\); write \.parquet"
    with pytest.raises(OutputError, match=told):
        round_trip(path, "n")
    assert not (tmp_path / "back.jsonl").exists()
    numtok.decode_files(tmp_path / "o.parquet", tmp_path / "back.parquet", TOKENIZER)
    assert str(pq.read_table(tmp_path / "back.parquet").column("n").to_pylist()) == "[1.5, nan]"
    pq.write_table(pa.table({"text": ["a"], "n": [b"\xff"]}), tmp_path / "bytes.parquet")
    with pytest.raises(OutputError, match="column 'n' of document 1"):
        round_trip(tmp_path / "bytes.parquet", "n")


LOCAL, IN_ZONE = pa.timestamp("us"), pa.timestamp("us", "UTC")
SINGLE, DOUBLE, INTEGER = pa.array([1.5], pa.float32()), pa.array([1.5]), pa.array([1])
OF_TABLES = [  # a column, one that comes after it, and whether the first takes the values of the second
    (SINGLE, pa.array([0.1]), False),
    (SINGLE, pa.array([0.25, float("nan")]), True),
    (pa.array(["a"]), pa.array([5]), False),
    (DOUBLE, pa.array([2**53 + 1]), False),
    (DOUBLE, pa.array([7]), True),
    (pa.array([1], LOCAL), INTEGER, False),
    (INTEGER, pa.array([1], LOCAL), False),
    (pa.array([1], LOCAL), pa.array([1], IN_ZONE), False),
    (pa.array([1], IN_ZONE), pa.array([1], LOCAL), False),
    (pa.array([1], IN_ZONE), pa.array([1], pa.timestamp("us", "Europe/Berlin")), True),
    (INTEGER, pa.array([True]), False),
    (pa.array([True]), INTEGER, False),
    (pa.array([1], pa.duration("s")), INTEGER, False),
    (pa.array([1], pa.date32()), pa.array([1], pa.int32()), False),
    (pa.array([[1]], pa.list_(LOCAL)), pa.array([[1]]), False),
    (pa.array([{"a": 1}], pa.struct({"a": LOCAL})), pa.array([{"a": 1}]), False),
    (pa.array([[1]]), pa.array([[1]], pa.list_(pa.int32())), True),
    (pa.array([{"a": 1}], pa.struct({"a": pa.int64(), "b": LOCAL})), pa.array([{"a": 1}]), True),
    (INTEGER, pa.nulls(1), True),
]


@pytest.mark.parametrize(("before", "after", "fits"), OF_TABLES)
def test_tables_of_another_type_are_neither_rounded_nor_read_as_another_kind(
    before, after, fits, tmp_path
):
    """Arrow casts 1 to a second in 1970, a local time to one in a zone, and true to 1."""
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    for path, column in zip(paths, (before, after), strict=True):
        pq.write_table(pa.table({"text": ["a"] * len(column), "n": column}), path)
    if fits:
        assert pq.read_table(encode(paths, "n")).column("n").type == before.type
    else:
        with pytest.raises(InputError, match=r"2\.parquet: column 'n' is .* here but .* before"):
            encode(paths, "n")


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (pa.float32(), "0.1"),
        (pa.list_(pa.float32()), "[0.1]"),
        (LOCAL, '"2020-01-02 03:04:05"'),
        (IN_ZONE, '"2020-01-02T03:04:05Z"'),
        (pa.decimal128(5, 2), '"1.5"'),
        (pa.binary(), '"abc"'),
    ],
)
def test_json_behind_a_table_is_neither_rounded_nor_read_as_another_kind(dtype, value, tmp_path):
    table = tmp_path / "1.parquet"
    pq.write_table(pa.table({"text": ["a"], "n": pa.array([None], dtype)}), table)
    lines = write(tmp_path, '{"text": "b", "n": ' + value + "}", name="2.jsonl")
    with pytest.raises(InputError, match=r"2\.jsonl:1: kept column 'n' holds"):
        encode([table, lines], "n")


VIEW, BYTES = pa.string_view(), pa.binary_view()
WORDS = pa.DictionaryArray.from_arrays(
    pa.array([1, None, 0], pa.uint32()), pa.array(["a", "b"], VIEW)
)
OF_VIEWS = {  # as polars writes strings, categories, and columns of them
    "string": pa.array(["a", None, "b"], VIEW),
    "bytes": pa.array([b"1", b"2", None], BYTES),
    "category": WORDS,
    "list": pa.array([["a", None], [], None], pa.large_list(VIEW)),
    "array": pa.array([["a", "b"]] * 3, pa.list_(VIEW, 2)),
    "categories": pa.ListArray.from_arrays([0, 1, 1, 3], WORDS),
    "struct": pa.StructArray.from_arrays([WORDS], ["word"]),
}


@pytest.mark.parametrize("name", OF_VIEWS)
def test_columns_of_views_are_kept_in_files_and_in_splits(name, tmp_path):
    table = pa.table({"text": pa.array(["1", "2", "3"], VIEW), "n": OF_VIEWS[name]})
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)
    assert pq.read_table(encode([path], "n"))["n"].to_pylist() == table["n"].to_pylist()
    how = {"tokenizer": TOKENIZER, "keep_columns": ["n"], "split": "a=0.5,b=0.5", "workers": 1}
    numtok.encode_files(path, f"{tmp_path}/split/", **how)
    rows = [row for part in "ab" for row in pq.read_table(tmp_path / "split" / part).to_pylist()]
    by_value = {row["number_value"][0]: row["n"] for row in rows}
    assert [by_value[number] for number in (1, 2, 3)] == table["n"].to_pylist()


def test_a_type_that_parquet_lacks_is_told(tmp_path):
    path, column = tmp_path / "a.arrow", pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    table = pa.table({"text": ["1"], "n": column})
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)
    with pytest.raises(OutputError, match=r"o\.parquet: column 'n' is of type month_day.*\.arrow"):
        encode([path], "n")
    numtok.encode_files(path, tmp_path / "o.arrow", tokenizer=TOKENIZER, keep_columns=["n"])
    assert pa.ipc.open_file(str(tmp_path / "o.arrow")).read_all()["n"].combine_chunks() == column


@pytest.mark.parametrize("out", ["o.parquet", "o/"])
def test_a_type_that_does_not_fit_skips_no_file(out, tmp_path):
    """No row is to blame: rows are only skipped where the type of the column is known."""
    mixed = write(tmp_path, '{"text": "a", "n": 1}', '{"text": "b", "n": "x"}')
    whole, words = tmp_path / "1.parquet", tmp_path / "2.parquet"
    pq.write_table(pa.table({"text": ["a"], "n": [1]}), whole)
    pq.write_table(pa.table({"text": ["b"], "n": ["x"]}), words)
    how = {"tokenizer": TOKENIZER, "keep_columns": ["n"], "on_error": "skip", "workers": 1}
    for paths in ([mixed], [whole, words]):
        with pytest.raises(NumtokError, match=r"column 'n' (holds values|is string)"):
            numtok.encode_files(paths, f"{tmp_path}/{out}", overwrite=True, **how)


# numbers as they are written that no column can hold, in JSON as `"<1e400>"`
BEYOND = ["1e400", "-1e400", "1e-400", "1" + "0" * 400, "1" + "0" * 5000, "9007199254740993.0e400"]
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="<")
SCALARS = st.none() | st.booleans() | st.text(CHARACTERS, max_size=4)
SCALARS |= st.sampled_from(BEYOND).map("<{}>".format)
NUMBERS = (
    st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS | NUMBERS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=5,
)


def same(was, now):
    """Equal, but for fields that are absent, which a table gives back as null."""
    if isinstance(was, dict) and isinstance(now, dict):
        return set(was) <= set(now) and all(same(was.get(name), one) for name, one in now.items())
    if isinstance(was, list) and isinstance(now, list):
        return len(was) == len(now) and all(map(same, was, now))
    return now in (was, str(was).strip("<>")) and isinstance(was, bool) == isinstance(now, bool)


@settings(max_examples=examples(60))
@given(st.lists(VALUES, min_size=1, max_size=4), st.sampled_from(["a.jsonl", "a.json"]))
@example([1.5, 1.5, "<1e400>"], "a.jsonl")
@example([None, {"a": ["<1e-400>"]}], "a.json")
def test_whatever_is_kept_is_the_same_or_refused(tmp_path_factory, values, name):
    rows = [{"text": "a", "x": value} for value in values]
    lines = [re.sub('"<(.*?)>"', r"\1", json.dumps(row)) for row in rows]
    content = lines if name == "a.jsonl" else ["[" + ",\n".join(lines) + "]"]
    path = write(tmp_path_factory.mktemp("kept"), *content, name=name)
    try:
        back = round_trip(path, "x")
    except NumtokError as error:
        assert "column 'x'" in str(error)
        return
    assert all(same(was["x"], now["x"]) for was, now in zip(rows, back, strict=True))
