"""CSV: every row comes back, or an error tells which one cannot be read."""

import csv
import gzip
import io
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from input_files import batches_of, failure, read_all, write

import numtok


@pytest.mark.parametrize("size", [50, 50_000])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz"])
def test_a_header_and_a_row_longer_than_a_block(tmp_path, name, size):
    delimiter, texts = "\t" if ".tsv" in name else ",", ["row 0", "long\n" * 3000, "short"]
    names = [f"column {k}" for k in range(size // 10)]
    rows = [[*map(str, range(len(names))), f'"{text}"'] for text in texts]
    data = "\n".join(delimiter.join(row) for row in [[*names, "text"], *rows]).encode()
    path = write(tmp_path, name, gzip.compress(data) if name.endswith("gz") else data)
    for batch_bytes in (1, 30, 1000, 1 << 20):
        assert read_all(path, batch_bytes=batch_bytes) == texts


@pytest.mark.parametrize("batch_bytes", [1, 64, 1 << 20])
@pytest.mark.parametrize(
    ("data", "line"),
    [
        ('text\nfine\n"never closed\nmore\nand more\n', 3),
        ('text,id\nfine,1\n"never closed,2\nmore,3\n', 3),
        ('id,text\n1,fine\n2,fine\n"3,open\n4,lost\n5,lost', 4),
        ('id,text\n1,"fine"\n2,"open""\n4,lost\n', 3),
        ('id,text\n"1,lost\n', 2),
        ('"id,text\n1,lost\n', 1),
        ('id,"text\n' + "1,lost\n" * 1000, 1),
        ('text\n"', 2),
    ],
)
def test_a_quote_that_never_closes(tmp_path, data, line, batch_bytes):
    column = "text" if line > 1 else None
    for name, content in (("a.csv", data), ("a.tsv", data.replace(",", "\t"))):
        path = write(tmp_path, name, content)
        error = failure(path, batch_bytes=batch_bytes, text_column=column)
        assert error.line == line and "never closes" in str(error)


def test_quotes_within_a_field_are_text(tmp_path):
    path = write(tmp_path, "a.csv", 'id,text\n1,5" pipe\n2,a"b"c\n3,"x"y\n4,\n')
    for batch_bytes in (1, 20, 1 << 20):
        assert read_all(path, batch_bytes=batch_bytes) == ['5" pipe', 'a"b"c', "xy", ""]
    assert read_all(write(tmp_path, "b.csv", '5" pipe,text\n1,a\n'), text_column="text") == ["a"]


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"text,b\n1,2\n1,2,3\n", 3, "Expected 2 columns, got 3"),
        (b"text,b\n1,2\n1\n", 3, "Expected 2 columns, got 1"),
        (b"text,b\n1,2\n1", 3, "Expected 2 columns, got 1"),
        (b'text,b\n"a\n\nb",2\n\n1\n', 6, "Expected 2 columns, got 1"),
        (b'text,b\n\r\n"",1\r\xe9,2,3\n', 4, "Expected 2 columns, got 3"),
        (b"text,b\nq,2\n\xff,3\n", 3, "iconv"),
        (b'text,b\n"a\nb",2\n\xff,3\n', 4, "iconv"),
        (b"text,b\nq,2\n\xe9,2,3\n", 3, "Expected 2 columns, got 3"),
        (b"text,b\n\xe9,2,3\nq,\xe9\n", 2, "Expected 2 columns, got 3"),
        (b"te\xffxt,b\na,1\n", 1, "iconv"),
        ("text,b\na,1\n".encode("utf-16"), 1, "UTF-16"),
        ("text,b\na,1\n".encode("utf-32"), 1, "UTF-32"),
        (b"text,text\n1,2\n", None, "2 columns are called 'text'"),
    ],
)
def test_rows_that_cannot_be_read(tmp_path, data, line, reason):
    path = write(tmp_path, "a.csv", data)
    for batch_bytes in (1, 1 << 20):
        error = failure(path, batch_bytes=batch_bytes, text_column="text")
        assert error.line == line and reason in str(error)
        if line is not None and line > 1:
            how = {"text_column": "text", "batch_bytes": batch_bytes, "on_error": "skip"}
            batches = batches_of(path, **how)
            [bad] = [row for batch in batches for row in batch.bad]
            assert bad.line == line and reason in bad.error
            rows = sum(len(batch.texts) for batch in batches)
            assert rows == 1 and batches[-1].first_row + len(batches[-1].texts) <= 2


def test_cells_are_kept_as_they_are_written(tmp_path):
    data = '\ufeff\r\n"i\r\nd",text\r\n1,007\r\n2,NA\r\n3,\r\n4,"a ""b""\r\nc, d"\r\n\r\n5,1e5\r\n'
    assert read_all(write(tmp_path, "a.csv", data)) == ["007", "NA", "", 'a "b"\r\nc, d', "1e5"]
    assert read_all(write(tmp_path, "a.csv", "text,n\ra,1\rb,2\r")) == ["a", "b"]
    indexed = write(tmp_path, "a.csv", ',"1,000 m"\n0,2:05\n')  # as pandas writes its index
    assert read_all(indexed, template="row") == [": 0\n1,000 m: 2:05"]
    assert read_all(indexed) == ["2:05"]
    unused = b'text,n\r"a",\xff\r"b",2\r'
    assert read_all(write(tmp_path, "a.csv", unused), text_column="text") == ["a", "b"]
    for without_rows in ("", "text\n", "text", "id,text\n", "id,text"):
        assert read_all(write(tmp_path, "a.csv", without_rows)) == []


CELL = st.text(alphabet='a1",\t\n\r é', max_size=8)


@given(
    st.lists(st.tuples(CELL, CELL), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 60),
    st.booleans(),
)
@example([("1", "a")] * 3, "\r\n", 23, True)  # the last block is a lone "\n"
# a block ends within a line break in quotes
@example([("1", "a" * n + "\r\nb") for n in range(30)], "\n", 40, True)
def test_what_the_csv_module_writes_comes_back(
    tmp_path_factory, rows, line_break, batch_bytes, ends
):
    out = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if line_break == "\n" else csv.QUOTE_MINIMAL
    writer = csv.writer(out, lineterminator=line_break, quoting=quoting)
    writer.writerows([("id", "text"), *rows])
    data = out.getvalue() if ends else out.getvalue().removesuffix(line_break)
    path = write(tmp_path_factory.mktemp("csv"), "a.csv", data)
    assert read_all(path, batch_bytes=batch_bytes, text_column="text") == [text for _, text in rows]


# Other delimiters


@pytest.mark.parametrize("delimiter", [";", "|", "\t", ":", "^", "]", "-", " ", "'", "."])
def test_a_delimiter_of_ones_own(tmp_path, delimiter):
    out = io.StringIO(newline="")
    rows = [("id", "text"), ("1", "a,b 2,50"), ("2", f"with{delimiter}one"), ("3", 'a "b"\nc')]
    csv.writer(out, delimiter=delimiter).writerows(rows)
    for name in ("a.csv", "a.tsv"):
        path = write(tmp_path, name, out.getvalue())
        for batch_bytes in (1, 1 << 20):
            how = {"delimiter": delimiter, "text_column": "text", "batch_bytes": batch_bytes}
            assert read_all(path, **how) == [text for _, text in rows[1:]]


def test_the_delimiter_holds_for_files_folders_and_statistics(tmp_path):
    (tmp_path / "in").mkdir()
    write(tmp_path, "in/a.csv", "name;price\ntea;2,50\nrice;1234,00\n")
    how = {"grammar": "european", "delimiter": ";"}
    template = "{name} costs {price}"
    for output in ("one.parquet", "folder/"):
        out = f"{tmp_path}/{output}"
        options = {"template": template, "scale": 1.0, "keep_text": True}
        numtok.encode_files(tmp_path / "in", out, **options, **how)
        path = f"{out}00000-of-00001.parquet" if out.endswith("/") else out
        assert pq.read_table(path)["number_value"].to_pylist() == [[2.5], [1234.0]]
    assert numtok.corpus_stats(tmp_path / "in", template=template, **how).numbers == 2
    # a text column without numbers: the columns that hold some are found by the same delimiter
    summary = numtok.encode_files(
        tmp_path / "in", tmp_path / "b.parquet", text_column="name", **how
    )
    assert summary.number_columns == ("price",)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("delimiter", [";", "|", "\t", ","])
def test_rows_with_another_delimiter_are_told_with_the_way_to_read_them(tmp_path, name, delimiter):
    if delimiter == ("," if name == "a.csv" else "\t"):
        return
    path = write(tmp_path, name, "name;price\ntea;2\n\n1;2\n".replace(";", delimiter))
    with pytest.warns(UserWarning, match="'name', 'price'") as caught:
        assert len(read_all(path)) == 2
    [warning] = caught
    assert f"delimiter={delimiter!r}" in str(warning.message)
    assert "european" not in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        how = {"delimiter": delimiter}
        assert read_all(path, text_column="name", **how) == ["tea", "1"]
        usual = "," if name == "a.csv" else "\t"
        assert len(read_all(path, delimiter=usual)) == 2  # it was named, so it is meant


def test_decimal_commas_are_named_in_the_error(tmp_path):
    path = write(tmp_path, "a.csv", "name;price\ntea;2,50\nrice;1234,00\n")
    with pytest.warns(UserWarning, match="delimiter=';'"):
        error = failure(path)
    for told in ("delimiter=';'", "2,50 has a decimal comma", "grammar='european'"):
        assert told in str(error)
    path = write(tmp_path, "b.csv", "text,price\ntea,2,50\n")
    assert "decimal comma, as in 2,50" in str(failure(path, text_column="text"))


def test_a_column_of_lists_is_no_other_delimiter(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in ("id,text\n1,a;b\n2,c;d\n", "text\na;b\nc;d\n", '"a;b",text\n1,x\n2,y;z\n'):
            assert read_all(write(tmp_path, "a.csv", data), text_column="text")


def test_a_plan_says_nothing_of_a_delimiter_that_was_not_given(tmp_path):
    """So shards and receipts of versions without the option stay as they are."""
    write(tmp_path, "a.csv", "text\n1\n")
    numtok.encode_files(tmp_path / "a.csv", f"{tmp_path}/out/")
    schema = pq.read_schema(tmp_path / "out/00000-of-00001.parquet")
    assert isinstance(schema, pa.Schema) and b"delimiter" not in schema.metadata[b"numtok_job"]
