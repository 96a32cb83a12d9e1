"""Folders of shards: the same rows as one file, the same bytes whoever writes them, resumed,
shared, finished.
"""

import json
import os

import jobs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from input_files import decoded

import numtok
from numtok.errors import InputError, JobError, OutputError, RepresentationError

OPTIONS = {"keep_columns": ["id"], "keep_text": True}


corpus, unbroken = jobs.fixtures(shards=7, **OPTIONS)
done = jobs.done


def encode(corpus, folder, **options):
    return numtok.encode_files(corpus, folder, **({"shards": 7, "workers": 1} | OPTIONS | options))


def test_the_shards_hold_the_rows_of_one_file(corpus, unbroken, tmp_path):
    """With the same scale, and the same summary."""
    one = numtok.encode_files(corpus, tmp_path / "one.parquet", **OPTIONS)
    assert len(list(unbroken.glob("*.parquet"))) == 7
    whole, parts = pq.read_table(tmp_path / "one.parquet"), jobs.table(unbroken)
    assert parts.replace_schema_metadata(None).equals(whole.replace_schema_metadata(None))
    assert parts.schema.metadata[b"numtok"] == whole.schema.metadata[b"numtok"]
    again = encode(corpus, unbroken)
    assert again.resumed == again.shards == again.shards_done == 7
    own = {"output", "output_bytes", "seconds", "shards", "shards_done", "resumed", "text_column"}
    same = vars(one).keys() - own
    assert {name: vars(again)[name] for name in same} == {name: vars(one)[name] for name in same}
    assert again.first_without_text == f"{corpus}/a.jsonl, row 14"


def test_the_bytes_do_not_depend_on_who_writes_them(corpus, unbroken, tmp_path):
    """Processes, threads, shares of several machines, of which the last one finishes."""
    encode(corpus, tmp_path / "processes", workers=2)
    share = encode(corpus, tmp_path / "shares", shard=(1, 3))
    assert (share.share, share.shards_done, share.documents < 5 * jobs.ROWS) == (True, 3, True)
    with pytest.raises(JobError, match=r"4 of 7 shards are not done: 1, 2, 4, 5; run the same"):
        numtok.finish_job(tmp_path / "shares")
    assert encode(corpus, tmp_path / "shares", shard=(3, 3)).shards_done == 5
    last = encode(corpus, tmp_path / "shares", shard=(2, 3))
    assert (last.share, last.shards_done, last.documents) == (False, 7, 5 * jobs.ROWS)
    assert numtok.finish_job(tmp_path / "shares", check=True).documents == 5 * jobs.ROWS
    for name in ("processes", "shares"):
        assert jobs.files(tmp_path / name) == jobs.files(unbroken)
    for workers in (1, 3):  # threads, as there is one shard
        encode(corpus, tmp_path / str(workers), shards=1, workers=workers, batch_bytes=2000)
    assert jobs.files(tmp_path / "1") == jobs.files(tmp_path / "3")


def test_only_what_is_missing_is_done(corpus, unbroken, done):
    own = done / "__numtok"
    for name in ("00002", "00005", "manifest"):  # killed before the receipt
        (own / f"{name}.json").unlink()
    (done / "00005-of-00007.parquet").write_bytes(b"half")
    left = done / f".00003-of-00007.parquet.another-host.17-{'0a' * 6}.tmp"
    left.write_bytes(b"what a dead worker left")
    before = {path: path.stat().st_ino for path in done.glob("*.parquet")}
    said = []
    assert encode(corpus, done, progress=said.append).resumed == 5
    changed = {path.stem for path, inode in before.items() if path.stat().st_ino != inode}
    assert changed == {"00002-of-00007", "00005-of-00007"}
    assert not left.exists() and jobs.files(done) == jobs.files(unbroken)
    last = said[-1]
    assert (last.shards, last.read, last.documents) == ((7, 7), last.total, 5 * jobs.ROWS)
    assert 0 < said[0].resumed < said[0].total


def test_another_job_is_refused_by_what_differs(corpus, done):
    for options, message in (
        ({"keep_text": False}, "keep_text was true, now it is false"),
        ({"numbers": "bits"}, "numbers was .*xval.*, now it is bits. Choose"),
        ({"grammar": "data"}, 'grouping of grammar was ",", now it is null. Choose'),
        ({"shards": 3}, "shards was 7, now it is 3"),
    ):
        with pytest.raises(JobError, match=f"out: holds another job: .*{message}.*overwrite=True"):
            encode(corpus, done, **options)
    assert encode(corpus, done, overwrite=True, shards=3).resumed == 0
    assert len(list(done.glob("*.parquet"))) == len(list((done / "__numtok").glob("0*.json"))) == 3
    plan = done / "__numtok" / "plan.json"
    older = json.loads(plan.read_bytes())
    older["versions"]["numtok"] = "0.0.1"
    plan.write_bytes(jobs.signed(older))
    with pytest.raises(JobError, match=r"numtok was version 0\.0\.1, now it is"):
        encode(corpus, done, shards=3)


def test_what_is_damaged_is_made_again(corpus, unbroken, done):
    """A receipt, or a file that is not the one it vouches for; by the bytes once that is asked
    for.
    """
    shard, receipt = done / "00004-of-00007.parquet", done / "__numtok" / "00004.json"
    whole, right = bytearray(shard.read_bytes()), receipt.read_bytes()
    another = (done / "__numtok" / "00003.json").read_bytes()
    contents = [b"", b"[]", b'{"check": 7}', right.replace(b'"rows"', b'"rose"'), another]
    for path, content in (*((receipt, content) for content in contents), (shard, b"short")):
        path.write_bytes(content)
        status = numtok.job_status(done)
        assert (status.done, status.finished) == ([0, 1, 2, 3, 5, 6], False)
        with pytest.raises(JobError, match=r"1 of 7 shards are not done: 4; run the same"):
            numtok.finish_job(done)
        assert encode(corpus, done).resumed == 6
        assert jobs.shards(done) == jobs.shards(unbroken)
    whole[200] ^= 1
    shard.write_bytes(whole)
    assert encode(corpus, done).resumed == 7
    with pytest.raises(
        JobError, match=r"00004-of-00007\.parquet: is damaged: .* SHA-256 .* 1 of 7 shards"
    ):
        numtok.finish_job(done, check=True)
    assert encode(corpus, done).resumed == 6 and jobs.shards(done) == jobs.shards(unbroken)


@pytest.mark.parametrize("name", ["tokenizer.json", "numtok.json"])
def test_a_tokenizer_that_is_damaged_is_written_again(corpus, unbroken, done, name):
    file = done / "__numtok" / "tokenizer" / name
    whole = file.read_bytes()
    for content in (b"", whole[: len(whole) // 2], None):
        file.unlink() if content is None else file.write_bytes(content)
        with pytest.raises(JobError, match="run the same job again"):
            numtok.finish_job(done, check=True)
        assert encode(corpus, done).resumed == 7
        assert file.read_bytes() == whole and jobs.shards(done) == jobs.shards(unbroken)
        assert numtok.finish_job(done, check=True).shards_done == 7


def test_a_folder_of_the_former_version_is_read(corpus, done):
    """And not gone on with."""
    own, names = done / "__numtok", [f"{number:06}.parquet" for number in range(7)]
    for path, name in zip(sorted(done.glob("*.parquet")), names, strict=True):
        path.rename(done / name)
    shards = [{"file": name, "rows": 0} for name in names]
    (own / "manifest.json").write_bytes(jobs.signed({"format": 2, "shards": shards}))
    (own / "plan.json").write_bytes(jobs.signed({"format": 2, "inputs": []}))
    assert len(decoded(done)) == 5 * jobs.ROWS
    with pytest.raises(JobError, match="is of another version of numtok"):
        encode(corpus, done)
    assert encode(corpus, done, overwrite=True).rows == 5 * jobs.ROWS
    assert len(list(done.glob("*.parquet"))) == len(list(done.glob("*-of-00007.parquet"))) == 7


def test_a_foreign_file_is_not_taken_for_a_shard(corpus, done, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.parquet").touch()
    (done / "more.parquet").touch()
    for folder, options, told in (
        (done, {}, r"more\.parquet: is no shard of this job.*move it away"),
        (other, {"overwrite": True}, r"holds x\.parquet.*choose another folder"),
        (corpus, {}, "lies in the output folder"),
    ):
        with pytest.raises((JobError, OutputError), match=told):
            encode(corpus, folder, **options)


# Errors within shards


@pytest.mark.parametrize("kind", ["jsonl", "txt", "parquet", "bytes.jsonl", "bytes.txt"])
def test_the_error_names_the_row_of_the_file(tmp_path, kind):
    """As it does when the file is encoded as a whole; blank lines are no rows of JSON lines."""
    texts = [f"row {number}" if number != 81 else "1" * 60 for number in range(100)]
    lines = [json.dumps({"text": text}) + "\n" for text in texts]
    latin = b'{"text": "caf\xe9"}\n' if kind.endswith("jsonl") else b"caf\xe9\n"  # no UTF-8
    one = b'{"text": "1"}\n'
    data = {"jsonl": "\n".join(lines).encode(), "txt": "\r\n".join(texts).encode()}
    path = tmp_path / f"a.{kind}"
    path.write_bytes(data.get(kind, one * 90 + latin + one * 9))
    if kind == "parquet":
        pq.write_table(pa.table({"text": texts}), path, row_group_size=7)
    how = {"numbers": "fone:6,4", "overflow": "error"}
    with pytest.raises(JobError, match="the others are done") as caught:
        numtok.encode_files(path, tmp_path / "out", shards=5, workers=1, **how)
    with pytest.raises((InputError, RepresentationError)) as whole:
        numtok.encode_files(path, tmp_path / "out.parquet", **how)
    assert list(caught.value.failures.values()) == [str(whole.value)]
    assert (":91:" if kind.startswith("bytes") else "row 82") in str(whole.value)


def test_the_columns_of_a_part_are_those_of_the_file(tmp_path):
    """Which column is the text, and the types of kept ones, is settled by the head of a file, not
    by that of each part.
    """
    lines = ['{"note": "a", "text": "is 1", "x": 1.5}\n', '{"note": "b 2", "x": 2}\n']
    lines += ['{"content": "5", "text": null}\n']
    (tmp_path / "a.jsonl").write_text("".join(line * 50 for line in lines))
    options = {"numbers": "bits", "keep_columns": ["note", "x"]}
    numtok.encode_files(tmp_path / "a.jsonl", tmp_path / "one.parquet", **options)
    numtok.encode_files(tmp_path / "a.jsonl", tmp_path / "out", shards=6, **options)
    parts, one = jobs.table(tmp_path / "out"), pq.read_table(tmp_path / "one.parquet")
    assert parts.replace_schema_metadata(None).equals(one.replace_schema_metadata(None))
    assert pc.sum(parts["x"]).as_py() == 175.0


# What the folder says


def test_where_it_comes_from(corpus, unbroken):
    made, versions = jobs.manifest(unbroken), {"pyarrow": pa.__version__}
    paths = [str(path) for path in sorted(corpus.iterdir())]
    assert [given["path"] for given in made["inputs"]] == paths
    assert made["rows"] == sum(shard["rows"] for shard in made["shards"]) == 5 * jobs.ROWS
    assert {shard["file"]: shard["sha256"] for shard in made["shards"]} == jobs.shards(unbroken)
    assert (versions | {"numtok": numtok.__version__}).items() <= made["versions"].items()
    assert {"keep_columns": ["id"], "compression": "zstd"}.items() <= made["options"].items()
    metadata = pq.read_schema(unbroken / "00001-of-00007.parquet").metadata
    job, own = (json.loads(metadata[name]) for name in (b"numtok_job", b"numtok"))
    assert job["tokenizer"] == own["tokenizer"] == made["tokenizer"]["fingerprint"]
    assert job["options"].items() <= made["options"].items() and job["versions"] == made["versions"]
    assert str(corpus) not in str(metadata)
    assert [given["size"] for given in made["inputs"]] == [os.stat(one).st_size for one in paths]


def test_a_representation_of_a_script_is_encoded_in_its_process(tmp_path):
    (tmp_path / "a.txt").write_text("is 1\n" * 50)
    kind = type("FromScript", (numtok.XVal,), {"__module__": "__main__"})
    how = {"tokenizer": numtok.Tokenizer.from_pretrained(numbers=[kind(0.5)]), "shards": 3}
    made = numtok.encode_files(tmp_path / "a.txt", tmp_path / "out", workers=2, **how)
    assert made.documents == 50
