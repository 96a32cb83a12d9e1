"""URLs in place of paths, on the store in memory: the same rows, the same bytes, wherever inputs
and outputs lie.
"""

import sys
from pathlib import Path

import jobs
import memory_store
import pytest
from click.testing import CliRunner
from numtok_cli.main import cli

import numtok
from numtok.corpus.jobs.config import read_config
from numtok.errors import InputError, JobError, MissingDependencyError, OutputError

OPTIONS = {"keep_columns": ["id"], "keep_text": True, "shards": 5, "workers": 2}


@pytest.fixture
def store():
    return memory_store.empty()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return jobs.make_corpus(tmp_path_factory.mktemp("corpus") / "in", 80)


@pytest.fixture(scope="module")
def local(corpus, tmp_path_factory):
    """The job of ``corpus`` in a folder of this machine."""
    folder = tmp_path_factory.mktemp("local") / "out"
    numtok.encode_files(corpus, folder, **OPTIONS | {"workers": 1})
    return folder


def test_a_job_is_the_same_wherever_its_output_lies(store, corpus, local):
    """To the byte, receipts and manifest included; and it goes on where it was."""
    summary = numtok.encode_files(corpus, "memory://out/", **OPTIONS)
    assert memory_store.contents(store, "out") == jobs.files(local)
    assert (summary.output, summary.rows) == ("memory://out", 5 * 80)
    assert summary.output_bytes == sum(path.stat().st_size for path in local.glob("*.parquet"))
    for name in (
        "__numtok/000003.json",
        "__numtok/manifest.json",
        "000002.parquet",
        "__numtok/000002.json",
    ):
        store.rm_file(f"/out/{name}")
    again = numtok.encode_files(corpus, "memory://out", **OPTIONS)
    assert again.resumed == 3 and memory_store.contents(store, "out") == jobs.files(local)
    assert numtok.finish_job("memory://out", check=True).rows == summary.rows


def test_inputs_from_a_store(store, corpus, local, tmp_path):
    """Cut as local ones are; a folder, a pattern, and files by name."""
    url = memory_store.upload(store, corpus, "in")
    numtok.encode_files(url, tmp_path / "out", **OPTIONS)
    here, there = jobs.manifest(local), jobs.manifest(tmp_path / "out")
    for one, other in zip(here["shards"], there["shards"], strict=True):
        assert one["rows"] == other["rows"]
    for one, other in zip(here["inputs"], there["inputs"], strict=True):
        assert Path(one["path"]).name == Path(other["path"]).name and other["tag"]
    tables = [jobs.table(out).replace_schema_metadata(None) for out in (local, tmp_path / "out")]
    assert tables[0].equals(tables[1])
    numtok.encode_files(corpus / "a.jsonl", tmp_path / "a.parquet")
    for number, given in enumerate(("memory://in/a.jsonl", "memory://in/[a]*.jsonl")):
        numtok.encode_files(given, path := tmp_path / f"{number}.parquet")
        assert path.read_bytes() == (tmp_path / "a.parquet").read_bytes()


def test_all_that_reads_and_writes_takes_urls(store, corpus, local, tmp_path):
    """One file, texts, statistics, twin files, a row, the tokenizer beside the shards."""
    memory_store.upload(store, local, "out")
    memory_store.upload(store, corpus, "in")
    for given, there in ((local, tmp_path), ("memory://out", "memory://")):
        numtok.decode_files(given, f"{there}/back.jsonl")
        made = numtok.encode_files(corpus, f"{there}/one.arrow")
        exported = numtok.export_files(given, f"{there}/all")
    assert made.output_bytes == (tmp_path / "one.arrow").stat().st_size
    assert exported.bytes == numtok.export_files(local, tmp_path / "again").bytes
    for name in ("back.jsonl", "one.arrow", "all.bin"):
        assert store.cat_file(f"/{name}") == (tmp_path / name).read_bytes()
    numtok.decode_files("memory://one.arrow", tmp_path / "texts.jsonl")
    assert len((tmp_path / "texts.jsonl").read_bytes().splitlines()) == made.rows == 5 * 80
    url = "memory://out"
    assert numtok.corpus_stats(url) == numtok.corpus_stats(local)
    assert inspected(url).replace(url, str(local)) == inspected(local)
    assert "1,234.2" in inspected("memory://in", "a.jsonl")
    load = numtok.Tokenizer.from_pretrained
    assert load(f"{url}/__numtok/tokenizer") == load(f"{local}/__numtok/tokenizer")
    manifest = "__numtok/manifest.json"
    assert read_config(f"{url}/{manifest}") == read_config(local / manifest)


def inspected(folder, name="000001.parquet"):
    """What is shown of a row."""
    found = CliRunner().invoke(cli, ["inspect", f"{folder}/{name}", "--row", "3"])
    assert found.exit_code == 0, found.output
    return found.output


def test_what_is_there_is_not_replaced_unasked(store, corpus):
    store.pipe_file("/one.parquet", b"mine")
    store.pipe_file("/out/theirs.parquet", b"")
    memory_store.upload(store, corpus, "in")
    lies = "an input, but lies in the output folder memory://in"
    cases = [
        (corpus, "memory://one.parquet", r"one.parquet exists already; .* overwrite=True"),
        (corpus, "memory://out/", "out holds theirs.parquet, which would be read as a part"),
        ("memory://in/*.jsonl", "memory://in/", lies),
    ]
    for inputs, output, told in cases:
        with pytest.raises(OutputError, match=told):
            numtok.encode_files(inputs, output)
    with pytest.raises(OutputError, match=r"memory://in/a.jsonl is also an input"):
        numtok.decode_files("memory://in/a.jsonl", "memory://in/a.jsonl", overwrite=True)
    assert store.cat_file("/one.parquet") == b"mine"
    numtok.encode_files(corpus, "memory://one.parquet", overwrite=True)
    assert store.cat_file("/one.parquet")[:4] == b"PAR1"


def test_a_failure_leaves_nothing(store, tmp_path):
    store.pipe_file("/bad.jsonl", b'{"text": "1"}\n{"text": 2')
    with pytest.raises(InputError, match=r"memory://bad.jsonl:2"):
        numtok.encode_files("memory://bad.jsonl", "memory://bad.parquet")
    with pytest.raises(JobError, match=r"1 of 1 shards failed \(0\), .*: memory://bad.jsonl:2"):
        numtok.encode_files("memory://bad.jsonl", "memory://bad/")
    assert not [name for name in store.find("/") if name.endswith((".parquet", "/000000.json"))]


def test_two_runs_in_one_folder(store, corpus, local):
    """Nothing is locked on a store: what the two put there is the same."""
    other = []

    def run_the_other(progress):
        if not other and progress.shards[0] == 2:
            other.append(numtok.encode_files(corpus, "memory://out", **OPTIONS))

    summary = numtok.encode_files(corpus, "memory://out", progress=run_the_other, **OPTIONS)
    assert other[0].resumed == 2 and summary.resumed == 0
    assert memory_store.contents(store, "out") == jobs.files(local)


def test_a_job_is_amended_and_mended(store, corpus):
    """What an input is in that changed is made again, and so is what has a damaged receipt."""
    memory_store.upload(store, corpus, "in")
    numtok.encode_files("memory://in", "memory://out", shard=(1, 2), **OPTIONS)
    with pytest.raises(InputError, match=r"^memory://out: its job is not finished"):
        numtok.decode_files("memory://out", "memory://texts.jsonl")
    with pytest.raises(JobError, match=r"2 of 5 shards are not done: 1, 3; run the same"):
        numtok.finish_job("memory://out")
    assert len(numtok.job_status("memory://out").done) == 3
    store.pipe_file("/out/__numtok/000002.json", b"{}")
    assert numtok.encode_files("memory://in", "memory://out", **OPTIONS).resumed == 2
    before = store.cat_file("/in/a.jsonl")
    store.pipe_file("/in/a.jsonl", before + b'{"id": "a80", "text": "5"}\n')
    summary = numtok.encode_files("memory://in", "memory://out", **OPTIONS)
    assert 0 < summary.resumed < 5 and summary.documents == 5 * 80 + 1
    store.rm_file("/in/a.jsonl")
    assert numtok.encode_files("memory://in", "memory://out", **OPTIONS).documents == 4 * 80


def test_rows_at_random_are_for_this_machine(store, local):
    torch_data = pytest.importorskip("numtok_torch")
    told = r"^memory://out: is read row by row, at random, .* copy it to this machine, or mount it;"
    with pytest.raises(InputError, match=told):
        torch_data.NumberDataset(memory_store.upload(store, local, "out"))


def test_what_is_for_reading_only(corpus):
    told = r"cannot write https://example.org/out\S*: https:// is for reading; write to a path, or"
    for output in ("https://example.org/out.parquet", "https://example.org/out/"):
        with pytest.raises(OutputError, match=told):
            numtok.encode_files(corpus, output, scale=1.0)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (
            "memory://nowhere/a.jsonl",
            "^memory://nowhere/a.jsonl: no such file or folder",
        ),
        ("memory://in/*.csvx", "no file matches this pattern"),
        ("nothing://a/b.jsonl", "nothing:// is unknown; known are paths, s3://"),
        ("file:///tmp/a.jsonl", "is a file of this machine: give its path, /tmp/a.jsonl"),
    ],
)
def test_urls_that_lead_nowhere(store, url, told, tmp_path):
    with pytest.raises(InputError, match=told):
        numtok.encode_files(url, tmp_path / "out.parquet")


def test_a_missing_package_is_named(corpus, monkeypatch):
    for package, output, told in (
        ("gcsfs", "gs://bucket/out/", r"gs://bucket/out/\S+: gs:// needs gcsfs, .* install gcsfs"),
        ("fsspec", "s3://bucket/out/", r"URLs need fsspec, .*: pip install 'numtok\[remote\]'"),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingDependencyError, match=told):
            numtok.encode_files(corpus, output)
