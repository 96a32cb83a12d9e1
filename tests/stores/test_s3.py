"""A store over HTTP that fails as stores and networks do: connections closed, answers lost or cut,
500 and 503. What comes of a job is the same to the byte.
"""

import asyncio
import hashlib
import os
import subprocess
import sys

import jobs
import pyarrow.parquet as pq
import pytest
import s3_server
from input_files import write_rows
from s3_server import contents, upload

import numtok
from numtok import storage
from numtok.errors import InputError, JobError, OutputError

OPTIONS = {"keep_columns": ["id"], "keep_text": True, "shards": 3, "workers": 1}
RATE = 0.25  # of requests that fail
SLEEP = asyncio.sleep
corpus, unbroken = jobs.fixtures(60, keep_columns=["id"], keep_text=True, shards=3)


@pytest.fixture(scope="module")
def store():
    with s3_server.running() as made:
        yield made


@pytest.fixture(autouse=True)
def patient(monkeypatch, store):
    """The tries are those of s3fs, and one comes soon after the other."""

    async def soon(seconds, *result):
        return await SLEEP(min(seconds, 0.001), *result)

    monkeypatch.setattr("s3fs.S3FileSystem.retries", 10)
    monkeypatch.setattr(asyncio, "sleep", soon)


def test_a_job_on_a_store_that_fails_is_the_job_on_a_disk(store, corpus, unbroken):
    server, files = store
    with server.failing(server.at_random(RATE, seed=1)):
        summary = numtok.encode_files(corpus, "s3://bucket/out/", **OPTIONS)
        assert server.failed >= 5
    assert contents(files, "out") == jobs.files(unbroken) and summary.shards_done == 3
    files.rm_file("bucket/out/__numtok/00001.json")
    with server.failing(server.at_random(RATE, seed=2)):
        assert numtok.encode_files(corpus, "s3://bucket/out/", **OPTIONS).resumed == 2
    assert contents(files, "out") == jobs.files(unbroken)


@pytest.mark.slow
def test_inputs_from_a_store_that_fails(store, corpus, tmp_path):
    server, files = store
    url = upload(files, corpus, "in")
    numtok.encode_files(url, tmp_path / "whole", **OPTIONS)
    tags = {given["tag"] for given in jobs.manifest(tmp_path / "whole")["inputs"]}
    contained = {hashlib.md5(path.read_bytes()).hexdigest() for path in corpus.iterdir()}
    assert tags == contained, "the tag is what the store has for the content"
    with server.failing(server.at_random(RATE, seed=3)):
        numtok.encode_files(url, tmp_path / "failing", **OPTIONS)
        assert server.failed >= 5
    assert jobs.shards(tmp_path / "failing") == jobs.shards(tmp_path / "whole")


@pytest.mark.slow
def test_inputs_over_plain_http(store, corpus, tmp_path):
    server, files = store
    upload(files, corpus, "http")
    names, http, here = ("a.jsonl", "d.parquet"), tmp_path / "http.arrow", tmp_path / "here.arrow"
    for name in names:
        files.call_s3("put_object_acl", Bucket="bucket", Key=f"http/{name}", ACL="public-read")
    plain = [f"{server.url}/bucket/http/{name}" for name in names]
    numtok.encode_files([f"{plain[0]}?versionId=null", plain[1]], http, keep_text=True)
    numtok.encode_files([corpus / name for name in names], here, keep_text=True)
    assert http.read_bytes() == here.read_bytes()
    told = f"^{plain[0]}: cannot be read: .*; check the URL, the network"
    with server.failing(lambda *_: "503"), pytest.raises(InputError, match=told):
        numtok.encode_files(plain[0], http, overwrite=True)


@pytest.mark.slow
def test_large_objects_go_in_parts(store, monkeypatch):
    """Up and down; what fails for good, or is interrupted, leaves neither an object nor parts of
    one.
    """
    server, files = store
    monkeypatch.setattr(storage, "PART", 5 << 20)
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 3)  # of each part, else all begins anew
    data = os.urandom(1 << 20) * 12

    def put(name):
        with storage.new_object(f"s3://bucket/{name}", overwrite=False) as file:
            file.write(data)
            if name == "interrupted":
                raise KeyboardInterrupt

    with server.failing(server.at_random(RATE, seed=5)):
        put("large")
    assert sum("partNumber" in path for _, path in server.requests) >= 3
    before = s3_server.uploads(files)  # a lost answer may leave one that nobody has heard of
    assert len(before) <= 1
    with server.failing(server.at_random(RATE, seed=6)):
        read = storage.RemoteFile("s3://bucket/large", block=2 << 20)
        assert read.readall() == data
        assert read.seek(-5, os.SEEK_END) == len(data) - 5
        assert (read.read(9), read.read(9)) == (data[-5:], b"")
    told = r"^cannot write s3://bucket/never: .*; check the URL, the network"
    second = server.failing(lambda _, path: "500" if "partNumber=2" in path else None)
    with second, pytest.raises(OutputError, match=told):
        put("never")
    with pytest.raises(KeyboardInterrupt):
        put("interrupted")
    assert s3_server.uploads(files) == before
    assert not files.exists("bucket/never") and not files.exists("bucket/interrupted")


CHANGES = {
    "changed": "changed while it was read",
    "changed, and a failure": "changed while it was read",
    "gone": "cannot be read: there is no such object",
}


@pytest.mark.parametrize("kind", ["jsonl.zst", "parquet"])
@pytest.mark.parametrize("change", CHANGES)
def test_an_object_that_changes_or_goes_while_it_is_read(
    store, tmp_path, monkeypatch, kind, change
):
    server, files = store
    monkeypatch.setattr(storage, "BLOCK", 1 << 12)
    monkeypatch.setattr(storage, "BLOCKS", 1)
    name, data, out = f"bucket/change/a.{kind}", large(tmp_path, kind), tmp_path / "out.parquet"
    files.pipe_file(name, data)
    seen = []

    def fault(method, path):
        """After the first range was read."""
        if method == "GET" and "/change/" in path:
            seen.append(path)
        if len(seen) != 2:
            return None
        seen.append("done")
        if change == "gone":
            files.rm_file(name)
        else:
            files.pipe_file(name, data[:-1] + bytes([data[-1] ^ 1]))
        return "500" if change == "changed, and a failure" else None

    told = rf"^s3://bucket/change/a.{kind}: {CHANGES[change]}"
    with server.failing(fault), pytest.raises(InputError, match=told):
        numtok.encode_files(f"s3://{name}", out, batch_bytes=1000, workers=1, scale=1.0)
    assert not out.exists()


def large(folder, kind):
    """A file of this kind that does not compress to nothing."""
    rows = [{"text": f"{n} {hashlib.sha256(str(n).encode()).hexdigest()}"} for n in range(3000)]
    path = write_rows(folder / f"a.{kind}", rows)
    if kind == "parquet":
        pq.write_table(pq.read_table(path), path, row_group_size=300)
    return path.read_bytes()


def test_what_cannot_be_is_told_at_once(store, corpus, tmp_path):
    """No such bucket, no permission: the URL, and what to do; nothing of it is tried again."""
    server, files = store
    upload(files, corpus, "in")
    local, there, missing = corpus / "a.jsonl", "s3://bucket/in/a.jsonl", "there is no such"
    refused = r"access is refused \(.*\); check the credentials for s3:// and what they permit$"
    for inputs, output, forbidden, told in (
        ("s3://nowhere/a.jsonl", tmp_path / "a.parquet", "", "^s3://nowhere/a.jsonl: no such file"),
        (local, "s3://nowhere/a.parquet", "", f"^cannot write s3://nowhere/a.parquet: {missing}"),
        (local, "s3://nowhere/out/", "", rf"^cannot write s3://nowhere/out/\S+: {missing}"),
        (there, tmp_path / "a.parquet", "HEAD GET", f"^{there}: cannot be read: {refused}"),
        (local, "s3://bucket/no/", "PUT", rf"^cannot write s3://bucket/no/__numtok/\S+: {refused}"),
    ):
        server.requests.clear()
        with (
            server.failing(lambda method, _, these=forbidden: "403" if method in these else None),
            pytest.raises((InputError, OutputError), match=told),
        ):
            numtok.encode_files(inputs, output, scale=1.0)
        assert len(server.requests) < 12


@pytest.mark.slow
def test_a_store_that_stays_away(store, corpus, monkeypatch):
    """The URL is told, and that the same command goes on, which it does."""
    server, _ = store
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 2)
    receipt = "away/__numtok/00001.json"
    told = rf"1 of 3 shards failed \(1\), .*: cannot write s3://bucket/{receipt}: .*; check the URL"

    def fault(method, path):
        return "503" if method == "PUT" and path.endswith(receipt) else None

    with server.failing(fault), pytest.raises(JobError, match=told):
        numtok.encode_files(corpus, "s3://bucket/away", **OPTIONS)
    assert numtok.encode_files(corpus, "s3://bucket/away", **OPTIONS).resumed == 1


@pytest.mark.slow
def test_without_credentials(store):
    """As in a shell that has none."""
    environment = {name: one for name, one in os.environ.items() if not name.startswith("AWS_")}
    environment |= {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
    environment |= {"AWS_EC2_METADATA_DISABLED": "true"}
    environment |= dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), "/nowhere")
    code = "from numtok.storage import status; status('s3://bucket/in/a.jsonl')"
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    told = "access is refused (Unable to locate credentials); check the credentials"
    assert f"InputError: s3://bucket/in/a.jsonl: cannot be read: {told}" in ended.stderr
