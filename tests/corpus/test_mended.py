"""Inputs that are mended, added or dropped, and bad rows that are skipped: a changed input is encoded
again and nothing else is, and the rows are those of the inputs as they are.
"""

import json
import os
import shutil
from pathlib import Path

import jobs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from input_files import decoded, lines_of, write_texts

import numtok
from numtok.errors import InputError, JobError

SHARDS = 8


def lines(count=300, bad=None):
    good = (json.dumps({"text": f"row {number} is {number}.5 of it"}) for number in range(count))
    return "".join((bad or {}).get(number, row) + "\n" for number, row in enumerate(good))


def encode(folder, **options):
    given = {"numbers": "bits", "keep_text": True, "shards": SHARDS, "workers": 1}
    return numtok.encode_files(folder / "in", folder / "out", **given | options)


def texts(folder):
    return decoded(folder / "out")


def files(folder):
    """When each shard was written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "out").glob("*.parquet")}


def stayed(before, folder):
    return len(before.items() & files(folder).items())


def quarantine(folder):
    return lines_of(folder / "out" / "__numtok" / "quarantine.jsonl")


BAD = {30: '{"text": 7}', 268: '{"text": "row 268'}


@pytest.fixture
def given(tmp_path):
    """The folder of the inputs."""
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def broken(given, tmp_path):
    """A job that two bad rows of one file have stopped, with the other six shards done."""
    (given / "a.jsonl").write_text(lines(bad=BAD))
    with pytest.raises(JobError, match=r"2 of 8 shards failed \(0, 7\)") as caught:
        encode(tmp_path)
    told = caught.value.failures
    assert told[0].startswith(f"{given}/a.jsonl:31: ") and ":269:" in told[7]
    assert len(numtok.job_status(tmp_path / "out").done) == 6
    return tmp_path


def test_a_mended_file_is_encoded_again(broken):
    """All of it, as lines lie elsewhere in it now."""
    (broken / "in" / "a.jsonl").write_text(lines())
    summary = encode(broken)
    assert summary.resumed == 0 and summary.shards_done == 8
    assert texts(broken) == [f"row {number} is {number}.5 of it" for number in range(300)]
    assert numtok.finish_job(broken / "out", check=True).rows == 300
    assert encode(broken).resumed == 8


def test_bad_rows_are_left_out_when_that_is_asked_for_later(broken):
    before = files(broken)
    summary = encode(broken, on_error="skip")
    assert (summary.resumed, summary.skipped, summary.documents) == (6, 2, 298)
    assert stayed(before, broken) == 6
    path = str(broken / "in" / "a.jsonl")
    assert [(one["file"], one["line"]) for one in quarantine(broken)] == [(path, 31), (path, 269)]
    assert "holds a number" in quarantine(broken)[0]["error"]
    assert not any("skip" in one["error"] for one in quarantine(broken))
    assert encode(broken).resumed == 8, "what is done stays"


def test_inputs_that_came_or_went_are_another_job(given, tmp_path):
    for name in "bcd":
        (given / f"{name}.txt").write_text(f"{name} 1\n{name} 2\n" * 20)
    encode(tmp_path, shards=6)
    before = files(tmp_path)
    (given / "a.txt").write_text("a 1\na 2\n" * 20)
    (given / "c.txt").unlink()
    told = r"holds another job: .*a\.txt is new; .*c\.txt is no input any more.*overwrite=True"
    with pytest.raises(JobError, match=told):
        encode(tmp_path, shards=6)
    assert files(tmp_path) == before
    encode(tmp_path, shards=6, overwrite=True)
    assert texts(tmp_path) == [f"{name} {n}" for name in "abd" for n in [1, 2] * 20]


def test_a_changed_input_is_encoded_again_and_no_other(tmp_path):
    """Every kind of file that is cut, longer or shorter than it was, down to nothing."""
    shutil.copytree(jobs.make_corpus(tmp_path / "made"), tmp_path / "in")
    encode(tmp_path)
    folder, shards = tmp_path / "in", len(files(tmp_path))
    assert encode(tmp_path).resumed == shards
    lines_of_a = (folder / "a.jsonl").read_bytes().splitlines(keepends=True)
    table = pq.read_table(folder / "d.parquet")
    changes = {
        "a.jsonl": [b"".join(lines_of_a * 2), b"", b"".join(lines_of_a[:9])],
        "c.jsonl.zst": [(folder / "b.jsonl").read_bytes()],
    }
    for name, contents in changes.items():
        for content in contents:
            if name.endswith("zst"):
                content = pa.compress(content, "zstd", asbytes=True)
            (folder / name).write_bytes(content)
            assert 0 < encode(tmp_path).resumed < shards
            assert texts(tmp_path) == expected_texts(folder)
    for rows, size in ((table, 7), (table.slice(0, 40), 100)):
        pq.write_table(rows, folder / "d.parquet", row_group_size=size)
        assert 0 < encode(tmp_path).resumed < shards
        assert texts(tmp_path) == expected_texts(folder)
    assert numtok.finish_job(tmp_path / "out", check=True).shards == shards


def expected_texts(folder):
    """The texts of one file that holds all inputs."""
    one = folder.parent / "one.parquet"
    numtok.encode_files(folder, one, numbers="bits", keep_text=True, overwrite=True)
    return decoded(one)


@pytest.mark.parametrize(
    ("first", "keep"),
    [
        ("a.parquet", ["id"]),
        ("a.jsonl.gz", []),
        ("a.csv", []),
        ("a.csv", ["id"]),
        ("a.json", ["id"]),
    ],
)
def test_a_damaged_first_input(given, tmp_path, first, keep):
    """It stops nobody else, and is left out when that is asked for."""
    damage = b'text,id\n1,"never closed\n' if first == "a.csv" else b"[damaged"
    (given / first).write_bytes(damage)
    for name in "bc":
        write_texts(given / f"{name}.jsonl", [f"{name} is {n}" for n in range(50)])
    with pytest.raises(JobError, match=rf"shards failed \(0\), the first with: .*{first}"):
        encode(tmp_path, shards=3, keep_columns=keep)
    summary = encode(tmp_path, shards=3, keep_columns=keep, on_error="skip")
    assert (summary.documents, summary.skipped) == (100, 1)
    assert quarantine(tmp_path)[0]["file"] == str(given / first)


def test_rows_that_one_file_leaves_out_are_listed_as_those_of_a_folder(given, tmp_path):
    rows = [f"{number},text {number}".encode() for number in range(30)]
    rows[4], rows[20] = b"4,one,too many", b"20,caf\xe9"
    (given / "a.csv").write_bytes(b"id,text\n" + b"\n".join(rows) + b"\n")
    folder = encode(tmp_path, on_error="skip", shards=1)
    one = numtok.encode_files(given, tmp_path / "one.parquet", numbers="bits", on_error="skip")
    for made in (folder, one):
        assert (made.documents, made.skipped) == (28, 2)
        assert lines_of(Path(made.quarantine)) == quarantine(tmp_path)
    assert [row["line"] for row in quarantine(tmp_path)] == [6, 22]
    assert one.quarantine == f"{tmp_path}/one.parquet.quarantine"


def test_an_input_that_shrinks_while_it_is_read(tmp_path):
    """Into one file: at a line's end, nothing in what is left says so."""
    path = tmp_path / "a.txt"
    path.write_text("is 12345\n" * 500_000)

    def shrink(progress):
        os.truncate(path, 9 * 1000)

    how = {"numbers": "bits", "batch_bytes": 10_000, "progress": shrink}
    with pytest.raises(InputError, match=r"a\.txt: changed while it was read"):
        numtok.encode_files(path, tmp_path / "out.parquet", **how)
    assert not (tmp_path / "out.parquet").exists()
