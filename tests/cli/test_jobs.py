"""Folders of shards on the command line: options, files of options, what is printed."""

from pathlib import Path

import jobs
import pytest
from command import ok, refused
from numtok_cli.options import Share, Size


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return jobs.make_corpus(Path("in"), 60)


def test_sizes():
    sizes = {"100": 100, "2kB": 2000, "1.5 MB": 1_500_000, "1GiB": 1 << 30, "3m": 3_000_000}
    assert {written: Size().convert(written, None, None) for written in sizes} == sizes


def test_what_is_no_size_or_share():
    wrong = dict.fromkeys(["", "0", "x", "-5", "1XB", "0.5"], ("--shard-size", "is no size"))
    wrong |= dict.fromkeys(["0/3", "4/3", "a/b"], ("--shard", "is not one of 1/N to N/N"))
    for written, (option, told) in wrong.items():
        assert told in refused("encode", "in", "-o", "out/", option, written)
    assert Share().convert("3/3", None, None) == (3, 3)


@pytest.mark.parametrize(
    "output", ["out/", "out --shards 1", "out --shard-size 1GB", "out --workers 1"]
)
def test_what_makes_a_folder(corpus, output):
    ok("encode", "in/a.jsonl", "-o", *output.split(), "-q")
    assert [path.name for path in sorted(Path("out").iterdir())] == [
        "00000-of-00001.parquet",
        "__numtok",
    ]


def test_a_file_is_a_file(corpus):
    for output in ("out.parquet", "out.JSONL", "out.ndjson", "out.data --output-format arrow"):
        ok("encode", "in/a.jsonl", "--workers", "2", "-q", "-o", *output.split())
        assert Path(output.split()[0]).is_file()
    assert len(ok("encode", "in/a.jsonl", "-o", "-", "--workers", "2", "-q").splitlines()) == 60
    for name in ("-", "out.parquet", "other.jsonl", "other.ndjson", "other.txt"):
        assert "named like one" in refused("encode", "in/a.jsonl", "-o", name, "--shards", "2")
    for name in ("out.json", "out.jsonl.gz", "out.csv"):  # no folder that is named so
        told = refused("encode", "in/a.jsonl", "-o", name, "--workers", "2")
        assert "cannot tell the format by this name" in told and "/ for a folder" in told
        assert not Path(name).exists()


def test_what_is_printed(corpus):
    how = ("--shards", "5", "--workers", "1")
    told = ok("encode", "in", "-o", "out", *how)
    assert told.splitlines()[0] == "out"
    assert [line.split() for line in told.splitlines() if "shards" in line] == [["shards", "5"]]
    assert "done before" in ok("encode", "in", "-o", "out", *how) and not ok("finish", "out", "-q")
    told = ok("encode", "in", "-o", "part/", *how, "--shard", "1/2")
    assert "2 are not done yet" in told
    assert "2 of 5 shards are not done: 1, 3" in refused("finish", "part")
    told = ok("status", "part")
    assert told.split() == ["part", "done", "3", "of", "5", "shards"]
    ok("encode", "in", "-o", "part/", *how, "--shard", "2/2")
    assert "finished" in ok("status", "part/") and "is not the folder" in refused("status", "in")
    assert " 300 " in ok("finish", "part", "--check")
    assert jobs.shards(Path("part")) == jobs.shards(Path("out"))


def test_every_failure_is_told(corpus):
    lines = Path("in/a.jsonl").read_text().splitlines()
    lines[3], lines[55] = "{", '{"text": 1}'
    Path("in/a.jsonl").write_text("\n".join(lines))
    told = refused("encode", "in/a.jsonl", "-o", "out/", "--shards", "6", "--workers", "1")
    one, all_of_them = [line for line in told.splitlines() if "error" in line]
    bad = "shard 4: in/a.jsonl:56: text column 'text' holds a number"
    assert one.startswith(f"numtok: error: {bad}")
    assert "on_error='skip' (--on-error skip)" in told
    assert "4 of 6 shards" in ok("status", "out")
    first = "out: 2 of 6 shards failed (0, 4), the first with: in/a.jsonl:4:2: not valid JSON"
    assert all_of_them.startswith(f"numtok: error: {first}")
    assert "run the same again" in all_of_them


def test_a_file_of_options(corpus):
    """What is given on the command line wins."""
    config = (
        'inputs = ["in/a.jsonl", "in/b.jsonl"]\noutput = "out/"\nnumbers = "xval,bits"\nshards = 3\n'
        'keep-column = ["id"]\ndense = true\nformat = "jsonl"\n'
    )
    Path("job.toml").write_text(f'{config}shard-size = "1MB"\n')
    assert "leave out one of them" in refused("encode", "--config", "job.toml")
    Path("job.toml").write_text(config)
    ok("encode", "--config", "job.toml", "-q")
    how = "--numbers xval,bits --keep-column id --dense --shards 3 -q"
    ok("encode", "in/a.jsonl", "in/b.jsonl", "-o", "same", *how.split())
    made = jobs.table(Path("out"))
    assert made.equals(jobs.table(Path("same"))) and "number_bits" in made.column_names
    ok("encode", "--config", "job.toml", "-q", "-o", "other/", "--shards", "2")
    assert list(jobs.shards(Path("other"))) == ["00000-of-00002.parquet", "00001-of-00002.parquet"]
