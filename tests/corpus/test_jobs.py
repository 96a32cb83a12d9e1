"""Folders of shards: the same rows as one file, the same bytes whoever writes them, resumed,
shared, finished.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jobs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import numtok
from numtok.corpus.summary import Progress
from numtok.errors import InputError, JobError, OutputError, RepresentationError

OPTIONS: dict[str, Any] = {"keep_columns": ["id"], "keep_text": True}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return jobs.make_corpus(tmp_path_factory.mktemp("corpus") / "in")


@pytest.fixture(scope="module")
def unbroken(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of seven shards, in one run and one process."""
    folder = tmp_path_factory.mktemp("unbroken") / "out"
    numtok.encode_files(corpus, folder, shards=7, workers=1, **OPTIONS)
    return folder


@pytest.fixture
def done(unbroken: Path, tmp_path: Path) -> Path:
    """The same, to be spoilt."""
    shutil.copytree(unbroken, tmp_path / "out")
    return tmp_path / "out"


def encode(corpus: Path, folder: Path, **options: Any) -> numtok.corpus.summary.Summary:
    return numtok.encode_files(corpus, folder, **({"shards": 7, "workers": 1} | OPTIONS | options))


def test_the_shards_hold_the_rows_of_one_file(corpus: Path, unbroken: Path, tmp_path: Path) -> None:
    """With the same scale and the same summary, and the same bytes from any number of processes."""
    one = numtok.encode_files(corpus, tmp_path / "one.parquet", **OPTIONS)
    assert len(list(unbroken.glob("*.parquet"))) == 7
    whole, parts = pq.read_table(tmp_path / "one.parquet"), jobs.table(unbroken)
    assert parts.replace_schema_metadata(None).equals(whole.replace_schema_metadata(None))
    assert parts.schema.metadata[b"numtok"] == whole.schema.metadata[b"numtok"]
    processes = encode(corpus, tmp_path / "processes", workers=2)
    assert processes.shards == 7 and jobs.everything(tmp_path / "processes") == jobs.everything(
        unbroken
    )
    again = encode(corpus, unbroken)
    assert again.resumed == again.shards == again.shards_done == 7
    own = {"output", "output_bytes", "seconds", "shards", "shards_done", "resumed", "text_column"}
    assert {name: value for name, value in vars(again).items() if name not in own} == {
        name: value for name, value in vars(one).items() if name not in own
    }


def test_only_what_is_missing_is_done(corpus: Path, unbroken: Path, done: Path) -> None:
    (done / "__numtok" / "000002.json").unlink()  # killed before the receipt
    (done / "__numtok" / "000005.json").unlink()
    (done / "000005.parquet").write_bytes(b"half")
    (done / "__numtok" / "manifest.json").unlink()
    left = done / f".000003.parquet.another-host.17-{'0a' * 6}.tmp"
    left.write_bytes(b"what a dead worker left")
    before = {path: path.stat().st_ino for path in done.glob("*.parquet")}
    said: list[Progress] = []
    summary = encode(corpus, done, progress=said.append)
    assert summary.resumed == 5
    changed = {path.name[:6] for path, inode in before.items() if path.stat().st_ino != inode}
    assert changed == {"000002", "000005"}
    assert not left.exists() and jobs.everything(done) == jobs.everything(unbroken)
    last = said[-1]
    assert (last.shards, last.read, last.documents) == ((7, 7), last.total, 5 * jobs.ROWS)
    assert 0 < said[0].resumed < said[0].total


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shards": 3}, "shards was 7, now it is 3"),
        ({"keep_text": False}, "keep_text was true, now it is false"),
        ({"numbers": "bits"}, "numbers was .*xval.*, now it is .*bits"),
        ({"compression": "lz4"}, 'compression was "zstd", now it is "lz4"'),
    ],
)
def test_another_job_is_refused_by_what_differs(
    corpus: Path, done: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(JobError, match=f"out: holds another job: .*{message}.*overwrite=True"):
        encode(corpus, done, **options)
    summary = encode(corpus, done, overwrite=True, **options)
    assert summary.resumed == 0 and len(list(done.glob("*.parquet"))) == summary.shards
    assert len(list((done / "__numtok").glob("0*.json"))) == summary.shards


def test_a_pipe_among_the_inputs_is_told(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / "in" / "a.jsonl")
    for output in ("out.parquet", "out/"):
        with pytest.raises(InputError, match=r"a\.jsonl: .*is a named pipe"):
            numtok.encode_files(tmp_path / "in", f"{tmp_path}/{output}")


def test_a_foreign_file_is_not_taken_for_a_shard(corpus: Path, done: Path, tmp_path: Path) -> None:
    (done / "more.parquet").touch()
    with pytest.raises(JobError, match=r"more\.parquet: is no shard of this job.*move it away"):
        encode(corpus, done)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.parquet").touch()
    with pytest.raises(OutputError, match=r"holds x\.parquet.*choose another folder"):
        encode(corpus, tmp_path / "other", overwrite=True)
    with pytest.raises(OutputError, match="lies in the output folder"):
        encode(corpus, corpus)


def test_what_cannot_be_a_job_is_refused_before_anything_is_written(
    corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"shards": 0}, InputError, "whole number"),
        ({"shard_size": 10}, InputError, "leave out one"),
        ({"compression": "none", "output_format": "csv"}, OutputError, "unknown output format"),
        ({"compression": "rar"}, OutputError, "no compression 'rar'"),
        ({"keep_columns": ["text"]}, InputError, "cannot be kept"),
    ]
    for options, kind, message in cases:
        with pytest.raises(kind, match=message):
            encode(corpus, out, **options)
    with pytest.raises(InputError, match="cannot be cut into shards"):
        numtok.encode_files("-", out, shards=2)
    with pytest.raises(
        OutputError, match="named like one, but the options for shards are for a folder"
    ):
        encode(corpus, tmp_path / "out.parquet")
    with pytest.raises(
        OutputError, match=r"cannot make the folder: .*check the folder and its permissions"
    ):
        encode(corpus, Path("/sys/numtok"))
    assert not out.exists()
    with pytest.raises(JobError, match="is not the folder of a job"):
        numtok.finish_job(corpus)


def test_what_is_damaged_is_made_again(corpus: Path, unbroken: Path, done: Path) -> None:
    """A receipt, a file of another size, and by its bytes once that is asked for."""
    receipt, shard = done / "__numtok" / "000004.json", done / "000004.parquet"
    for path, content in ((receipt, b"{"), (receipt, b"[]"), (receipt, b"{}"), (shard, b"short")):
        path.write_bytes(content)
        with pytest.raises(JobError, match=r"1 of 7 shards are not done: 4; run the same"):
            numtok.finish_job(done)
        assert encode(corpus, done).resumed == 6
        assert jobs.shards(done) == jobs.shards(unbroken)
    whole = bytearray(shard.read_bytes())
    whole[200] ^= 1
    shard.write_bytes(whole)
    assert encode(corpus, done).resumed == 7
    with pytest.raises(JobError, match=r"000004\.parquet: is damaged: .* SHA-256 .* 1 of 7 shards"):
        numtok.finish_job(done, check=True)
    assert encode(corpus, done).resumed == 6 and jobs.shards(done) == jobs.shards(unbroken)


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("plan.json", b'"shards"', b'"shreds"', "plan.json: .*shards"),
        ("plan.json", b'"format": 3', b'"format": 2', "begun by an earlier version of numtok"),
        ("plan.json", b'"format": 3', b'"format": 9', "is of another version of numtok"),
        ("plan.json", b"{", b"", "plan.json: is damaged"),
        ("tokenizer/numtok.json", b"0.0", b"0.1", "is not the tokenizer that the job was planned"),
    ],
)
def test_a_damaged_plan_or_tokenizer_is_named(
    corpus: Path, done: Path, name: str, old: bytes, new: bytes, told: str
) -> None:
    path = done / "__numtok" / name
    path.write_bytes(path.read_bytes().replace(old, new))
    for call in (lambda: encode(corpus, done), lambda: numtok.finish_job(done, check=True)):
        with pytest.raises(JobError, match=told):
            call()
    assert encode(corpus, done, overwrite=True).resumed == 0


def test_a_folder_of_a_former_version_is_read(corpus: Path, done: Path, tmp_path: Path) -> None:
    """And not gone on with."""
    own, names = done / "__numtok", [f"{number:05}-of-00007.parquet" for number in range(7)]
    for number, name in enumerate(names):
        (done / f"{number:06}.parquet").rename(done / name)
    shards = [{"file": name, "rows": 0} for name in names]
    (own / "manifest.json").write_text(json.dumps({"format": 1, "shards": shards}))
    (own / "plan.json").write_text(json.dumps({"format": 1, "inputs": []}))
    numtok.decode_files(done, tmp_path / "back.jsonl")
    assert len((tmp_path / "back.jsonl").read_text().splitlines()) == 5 * jobs.ROWS
    with pytest.raises(JobError, match="was begun by an earlier version of numtok"):
        encode(corpus, done)
    assert encode(corpus, done, overwrite=True).rows == 5 * jobs.ROWS
    assert not list(done.glob("*-of-*"))


def test_the_folder_says_what_it_was_made_of(corpus: Path, unbroken: Path) -> None:
    made = jobs.manifest(unbroken)
    assert [given["path"] for given in made["inputs"]] == [
        str(path) for path in sorted(corpus.iterdir())
    ]
    assert {shard["file"]: shard["sha256"] for shard in made["shards"]} == jobs.shards(unbroken)
    schema = pq.read_schema(unbroken / "000001.parquet")
    job = json.loads(schema.metadata[b"numtok_job"])
    assert job["options"].items() <= made["options"].items() and job["versions"] == made["versions"]
    assert job["tokenizer"] == made["tokenizer"]["fingerprint"]
    assert str(corpus) not in str(schema.metadata)


# Inputs that change
# -----------------------------------------------------------------------------------------------------


def lines(count: int, bad: Sequence[int] = ()) -> str:
    rows = (
        "{" if number in bad else json.dumps({"text": f"row {number}.5"}) for number in range(count)
    )
    return "".join(f"{row}\n" for row in rows)


def quarantine(path: Path) -> list[tuple[str, int | None]]:
    return [(one["file"], one["line"]) for one in map(json.loads, path.read_text().splitlines())]


def test_inputs_are_added_dropped_and_changed(tmp_path: Path) -> None:
    """A changed one is a dropped and an added one; the shards of all others stay."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for name in "bcde":
        (folder / f"{name}.txt").write_text(f"{name} 1\n{name} 2\n" * 20)
    encode(folder, out, shards=8, keep_columns=[])
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    (folder / "a.txt").write_text("a 1\na 2\n" * 20)
    (folder / "c.txt").unlink()
    (folder / "d.txt").write_text("d 1\nd 3\n" * 20)
    summary = encode(folder, out, shards=8, keep_columns=[])
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    assert summary.resumed == 4 == len(before.items() & after.items()) and summary.shards == 8
    numtok.decode_files(out, tmp_path / "back.txt")
    expected = "".join((folder / f"{name}.txt").read_text() for name in "bead")
    assert (tmp_path / "back.txt").read_text() == expected


def test_bad_rows_fail_their_shards_or_are_left_out(tmp_path: Path) -> None:
    """By the lines of the file, which may be asked for later; and are bad again without."""
    path, out = tmp_path / "a.jsonl", tmp_path / "out"
    path.write_text(lines(300, bad=(30, 268)))
    how: dict[str, Any] = {"shards": 8, "keep_columns": []}
    with pytest.raises(JobError, match=r"2 of 8 shards failed \(0, 7\)") as caught:
        encode(path, out, **how)
    told = caught.value.failures
    assert told[0].startswith(f"{path}:31:") and f"{path}:269:" in told[7]
    status = numtok.job_status(out)
    assert status.failed == told and len(status.done) == 6 and not status.running
    summary = encode(path, out, on_error="skip", **how)
    assert (summary.resumed, summary.skipped, summary.documents) == (6, 2, 298)
    listed = out / "__numtok" / "quarantine.jsonl"
    assert quarantine(listed) == [(str(path), 31), (str(path), 269)]
    numtok.encode_files(path, tmp_path / "one.parquet", on_error="skip")
    assert (tmp_path / "one.parquet.quarantine").read_bytes() == listed.read_bytes()
    with pytest.raises(JobError, match=r"2 of 8 shards failed \(0, 7\)"):
        encode(path, out, **how)
    path.write_text(lines(300))
    assert encode(path, out, **how).documents == 300


@pytest.mark.parametrize("first", ["a.parquet", "a.jsonl.gz", "a.csv", "a.json"])
def test_a_damaged_first_input(tmp_path: Path, first: str) -> None:
    """It stops nobody else, and is left out when that is asked for."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    damage = b'text,id\n1,"never closed\n' if first == "a.csv" else b"[damaged"
    (folder / first).write_bytes(damage)
    for name in "bc":
        (folder / f"{name}.jsonl").write_text('{"text": "is 1", "id": 2}\n' * 50)
    with pytest.raises(JobError, match=rf"shards failed \(0\), the first with: .*{first}"):
        encode(folder, out, shards=3)
    summary = encode(folder, out, shards=3, on_error="skip")
    assert (summary.documents, summary.skipped) == (100, 1)
    assert quarantine(out / "__numtok" / "quarantine.jsonl")[0][0] == str(folder / first)


def test_an_input_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    """Into one file: at a line's end, nothing in what is left says so."""
    path = tmp_path / "a.txt"
    path.write_text("is 12345\n" * 500_000)

    def shrink(progress: Progress) -> None:
        os.truncate(path, 9 * 1000)

    with pytest.raises(InputError, match=r"a\.txt: changed while it was read"):
        numtok.encode_files(
            path, tmp_path / "out.parquet", numbers="bits", batch_bytes=10_000, progress=shrink
        )
    assert not (tmp_path / "out.parquet").exists()


# Errors within shards
# -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["jsonl", "txt", "parquet", "bytes.jsonl", "bytes.txt"])
def test_the_error_names_the_row_of_the_file(tmp_path: Path, kind: str) -> None:
    """As it does when the file is encoded as a whole; blank lines are no rows of JSON lines."""
    texts = [f"row {number}" for number in range(100)]
    texts[81] = "1" * 60
    path = tmp_path / f"a.{kind}"
    if kind.startswith("bytes"):  # that are not UTF-8
        line = b'{"text": "caf\xe9"}' if kind.endswith("jsonl") else b"caf\xe9"
        path.write_bytes(b'{"text": "1"}\n' * 90 + line + b"\n" + b'{"text": "1"}\n' * 9)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps({"text": text}) + "\n\n" for text in texts))
    elif kind == "txt":
        path.write_bytes("\r\n".join(texts).encode())
    else:
        pq.write_table(pa.table({"text": texts}), path, row_group_size=7)
    how: dict[str, Any] = {"numbers": "fone:6,4", "overflow": "error"}
    with pytest.raises(JobError, match="the others are done") as caught:
        numtok.encode_files(path, tmp_path / "out", shards=5, workers=1, **how)
    with pytest.raises((InputError, RepresentationError)) as whole:
        numtok.encode_files(path, tmp_path / "out.parquet", **how)
    assert list(caught.value.failures.values()) == [str(whole.value)]
    assert (":91:" if kind.startswith("bytes") else "row 82") in str(whole.value)


def test_the_columns_of_a_part_are_those_of_the_file(tmp_path: Path) -> None:
    """Which column is the text, and the types of kept ones, is settled by the head of a file, not
    by that of each part.
    """
    lines = (
        [{"note": "a", "text": "is 1", "x": 1.5}] * 50
        + [{"note": "b 2", "x": 2}] * 50
        + [{"content": "5", "text": None}] * 50
    )
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options: dict[str, Any] = {"numbers": "bits", "keep_columns": ["note", "x"]}
    numtok.encode_files(tmp_path / "a.jsonl", tmp_path / "one.parquet", **options)
    numtok.encode_files(tmp_path / "a.jsonl", tmp_path / "out", shards=6, **options)
    parts = jobs.table(tmp_path / "out")
    assert parts.replace_schema_metadata(None).equals(
        pq.read_table(tmp_path / "one.parquet").replace_schema_metadata(None)
    )
    assert pc.sum(parts["x"]).as_py() == 175.0


def test_a_representation_of_a_script_is_encoded_in_its_process(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("is 1\n" * 50)
    kind = type("FromScript", (numtok.XVal,), {"__module__": "__main__"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("numtok.corpus.jobs.run.COMMAND", None)
        made = numtok.Tokenizer.from_pretrained(numbers=[kind(0.5)])
        assert (
            numtok.encode_files(
                tmp_path / "a.txt", tmp_path / "out", tokenizer=made, shards=3, workers=2
            ).documents
            == 50
        )
