"""URLs in place of paths, on the store in memory: the same rows, the same bytes, wherever inputs
and outputs lie.
"""

from pathlib import Path

import jobs
import memory_store
import pytest
from command import ok

import numtok
from numtok.errors import InputError, JobError

OPTIONS = {"keep_columns": ["id"], "keep_text": True, "shards": 5}
OUT = "memory://out"
corpus, local = jobs.fixtures(80, **OPTIONS)


@pytest.fixture
def store():
    return memory_store.empty()


def encode(inputs, output=OUT, **options):
    return numtok.encode_files(inputs, output, **OPTIONS, workers=2, **options)


def test_a_job_is_the_same_wherever_its_output_lies(store, corpus, local):
    """To the byte, receipts and manifest included; and it goes on where it was."""
    summary = encode(corpus, f"{OUT}/")
    assert memory_store.contents(store, "out") == jobs.files(local)
    assert (summary.output, summary.rows) == (OUT, 5 * 80)
    assert summary.output_bytes == sum(path.stat().st_size for path in local.glob("*.parquet"))
    own = [f"__numtok/{name}.json" for name in ("00003", "00002", "manifest")]
    for name in (*own, "00002-of-00005.parquet"):
        store.rm_file(f"/out/{name}")
    assert encode(corpus).resumed == 3 and memory_store.contents(store, "out") == jobs.files(local)
    assert numtok.finish_job(OUT, check=True).rows == summary.rows


def test_inputs_from_a_store(store, corpus, local, tmp_path):
    """Cut as local ones are; a folder, a pattern, and files by name."""
    encode(memory_store.upload(store, corpus, "in"), tmp_path / "out")
    here, there = jobs.manifest(local), jobs.manifest(tmp_path / "out")
    assert [one["rows"] for one in here["shards"]] == [one["rows"] for one in there["shards"]]
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
    for given, there in ((local, tmp_path), (OUT, "memory://")):
        numtok.decode_files(given, f"{there}/back.jsonl")
        made = numtok.encode_files(corpus, f"{there}/one.arrow")
        exported = numtok.export_files(given, f"{there}/all")
    assert made.output_bytes == (tmp_path / "one.arrow").stat().st_size
    assert exported.bytes == numtok.export_files(local, tmp_path / "again").bytes
    for name in ("back.jsonl", "one.arrow", "all.bin"):
        assert store.cat_file(f"/{name}") == (tmp_path / name).read_bytes()
    numtok.decode_files("memory://one.arrow", tmp_path / "texts.jsonl")
    assert len((tmp_path / "texts.jsonl").read_bytes().splitlines()) == made.rows == 5 * 80
    assert numtok.corpus_stats(OUT) == numtok.corpus_stats(local)
    assert inspected(OUT).replace(OUT, str(local)) == inspected(local)
    assert "1,234.2" in inspected("memory://in", "a.jsonl")
    load = numtok.Tokenizer.from_pretrained
    assert load(f"{OUT}/__numtok/tokenizer") == load(f"{local}/__numtok/tokenizer")


def inspected(folder, name="00001-of-00005.parquet"):
    """What is shown of a row."""
    return ok("inspect", f"{folder}/{name}", "--row", "3")


def test_what_is_there_is_replaced_when_asked(store, corpus):
    """Be it that rows were skipped before, and are not now."""
    for name in ("a.jsonl", "a.jsonl.quarantine"):
        store.pipe_file(f"/{name}", b"mine")
    numtok.encode_files(corpus, "memory://a.jsonl", output_format="parquet", overwrite=True)
    assert store.cat_file("/a.jsonl")[:4] == b"PAR1"
    assert not store.exists("/a.jsonl.quarantine")


def test_two_runs_in_one_folder(store, corpus, local):
    """Nothing is locked on a store: what the two put there is the same."""
    other = []

    def run_the_other(progress):
        if not other and progress.shards[0] == 2:
            other.append(encode(corpus))

    assert encode(corpus, progress=run_the_other).resumed == 0 and other[0].resumed == 2
    assert memory_store.contents(store, "out") == jobs.files(local)


def test_a_job_is_mended(store, corpus):
    """What an input is in that changed is made again, and so is what has a damaged receipt."""
    given = memory_store.upload(store, corpus, "in")
    encode(given, shard=(1, 2))
    with pytest.raises(InputError, match=r"^memory://out: its job is not finished"):
        numtok.decode_files(OUT, "memory://texts.jsonl")
    with pytest.raises(JobError, match=r"2 of 5 shards are not done: 1, 3; run the same"):
        numtok.finish_job(OUT)
    assert len(numtok.job_status(OUT).done) == 3
    store.pipe_file("/out/__numtok/00002.json", b"{}")
    assert encode(given).resumed == 2
    before = store.cat_file("/in/a.jsonl")
    store.pipe_file("/in/a.jsonl", before + b'{"id": "a80", "text": "5"}\n')
    summary = encode(given)
    assert 0 < summary.resumed < 5 and summary.documents == 5 * 80 + 1
    store.rm_file("/in/a.jsonl")
    with pytest.raises(JobError, match=r"memory://in/a\.jsonl is no input any more"):
        encode(given)


def test_rows_at_random_are_for_this_machine(store, local):
    torch_data = pytest.importorskip("numtok_torch")
    told = r"^memory://out: is in a store, .* copy it to this machine, or mount it;"
    with pytest.raises(InputError, match=told):
        torch_data.NumberDataset(memory_store.upload(store, local, "out"))
