"""Kills at any moment, of the command and of its workers: the next run leaves what an unbroken one
leaves, to the byte.
"""

import contextlib
import os
import random
import sys
import time

import interrupts
import jobs
import psutil
import pytest
from input_files import write_texts

import numtok
from numtok.corpus.jobs.claims import Claims
from numtok.corpus.jobs.folder import Folder
from numtok.errors import JobError, OutputError

DOCUMENTS, SHARDS = 6_000, 8


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Enough for the shards to take a second or two in all."""
    folder = tmp_path_factory.mktemp("corpus") / "in"
    folder.mkdir()
    for name in "ab":
        texts = (f"{name} {n}: " + f"{n / 7} of 1,234 is -{n}, " * 6 for n in range(DOCUMENTS // 2))
        write_texts(folder / f"{name}.jsonl", texts)
    return folder


@pytest.fixture(scope="module")
def unbroken(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken") / "out"
    made = numtok.encode_files(corpus, folder, shards=SHARDS, workers=1)
    assert made.documents == made.rows == DOCUMENTS
    return jobs.everything(folder)


def start(corpus, folder, workers=2):
    how = ["-o", str(folder), "--shards", str(SHARDS), "--workers", str(workers)]
    return interrupts.start([sys.executable, "-m", "numtok_cli.main", "encode", str(corpus), *how])


def begun(folder, process, shards):
    """Wait until so many shards are done."""
    interrupts.wait_for(
        lambda: process.poll() is not None or len(list(folder.glob("*.parquet"))) >= shards
    )


def finish(corpus, folder, unbroken):
    made = numtok.encode_files(corpus, folder, shards=SHARDS, workers=1)
    assert jobs.everything(folder) == unbroken and len(jobs.table(folder)) == DOCUMENTS
    return made


@pytest.mark.slow
def test_kills_at_random_moments(corpus, unbroken, tmp_path):
    """Of the command, or of one of its workers, which it makes up for; in one job after the other.
    ``NUMTOK_KILLS=100`` for as many, ``NUMTOK_SEED`` for others.
    """
    moments = int(os.environ.get("NUMTOK_KILLS", "5"))
    chance, made = random.Random(int(os.environ.get("NUMTOK_SEED", "1"))), 0
    while moments > 0:
        out = tmp_path / str(made)
        while moments > 0 and not (out / "__numtok" / "manifest.json").exists():
            process = start(corpus, out, workers=chance.choice([1, 2, 2]))
            if chance.random() < 0.8:  # or else while it starts and plans
                begun(out, process, len(list(out.glob("*.parquet"))) + chance.choice([0, 1, 1, 2]))
            time.sleep(chance.random() ** 2 * 0.4)
            children = interrupts.children(process)
            moments -= 1
            if children and chance.random() < 0.4:
                with contextlib.suppress(psutil.NoSuchProcess):
                    chance.choice(children).kill()
                _, told = process.communicate(timeout=interrupts.LONG)
                assert process.returncode == 0, told  # another has done its shard
            else:
                interrupts.kill_with_children(process)
        finish(corpus, out, unbroken)
        made += 1


def test_a_killed_command_takes_its_workers_along_and_goes_on(corpus, unbroken, tmp_path):
    out = tmp_path / "out"
    process = start(corpus, out)
    begun(out, process, 1)
    interrupts.kill_with_children(process)
    before = len(numtok.job_status(out).done)
    assert finish(corpus, out, unbroken).resumed == before


# What a worker does in place of a shard, so that it cannot end soon: it waits for a thread.
ENCODES_LONG = "ThreadPoolExecutor(1).submit(time.sleep, 60).result()"
PARENT = """
import sys, numtok
numtok.encode_files(sys.argv[2], sys.argv[3], shards=8, workers=2)
"""


# An object that the end of Python deletes, which takes long.
DELETED_LONG = (
    "import builtins; builtins.late = type('Late', (), {'__del__':"
    " lambda _, sleep=time.sleep: sleep(60)})()"
)


@pytest.mark.parametrize("when", ["starting", "encoding", "ending"])
def test_workers_end_within_a_second_of_their_parent(when, corpus, tmp_path):
    """Whatever they are at: importing, in the middle of a long document, or an end that takes
    long.
    """
    ends_long = when == "ending"
    worker = worker_that(*("time.sleep(60)", DELETED_LONG) if ends_long else (ENCODES_LONG,))
    act = f"from numtok.corpus.jobs import run; run.COMMAND = ['-c', {worker!r}]"
    code = PARENT if when == "starting" else f"{act}\n{PARENT}"

    def seconds(out):
        process = interrupts.start([sys.executable, "-c", code, "", str(corpus), str(out)])
        if when == "starting":
            interrupts.wait_for(lambda: len(interrupts.children(process)) == 2)
        else:
            interrupts.wait_for(lambda: len(list(out.glob("__numtok/0*.claim"))) == 2)
        workers = interrupts.children(process)
        process.kill()
        process.communicate(timeout=interrupts.LONG)
        began = time.monotonic()
        interrupts.wait_for(lambda: all(map(interrupts.has_ended, workers)))
        return time.monotonic() - began

    # a machine that is busy may take longer once
    assert any(seconds(tmp_path / str(attempt)) < 1 for attempt in range(3))


# In a worker: over shard 2 it dies, as with too little memory; or it waits
# for ever in place of a shard after the first two.
DIES = "os.kill(os.getpid(), 9) if shard.number == 2 else made(task, shard, *others)"
WAITS = "made(task, shard, *others) if shard.number < 2 else threading.Event().wait()"


def worker_that(act, before=""):
    """The code of a worker that does this in place of making a shard."""
    return (
        "import os, sys, threading, time; from concurrent.futures import ThreadPoolExecutor\n"
        f"from numtok.corpus.jobs import work, worker; {before}\n"
        "made = work.encode_shard\n"
        f"def encode_shard(task, shard, *others):\n    {act}\n"
        "work.encode_shard = encode_shard; worker.main()"
    )


def workers_that(monkeypatch, act, before=""):
    """Have workers do that in place of making a shard."""
    monkeypatch.setattr("numtok.corpus.jobs.run.COMMAND", ["-c", worker_that(act, before)])


@pytest.mark.parametrize("before", ["", "sys.exit = os._exit"], ids=["tidy", "at once"])
def test_an_interrupt_leaves_whole_shards(before, corpus, unbroken, tmp_path, monkeypatch):
    """As it reaches the command while workers work: they are gone when it is, and so is what they
    were writing, be it that they could not tidy up.
    """
    workers_that(monkeypatch, WAITS, before)

    def interrupt(progress):
        if progress.shards is not None and progress.shards[0] == 2:
            raise KeyboardInterrupt

    running = set(psutil.Process().children())
    with pytest.raises(KeyboardInterrupt):
        numtok.encode_files(corpus, tmp_path / "out", shards=SHARDS, workers=2, progress=interrupt)
    assert set(psutil.Process().children()) <= running
    assert list(jobs.shards(tmp_path / "out")) == ["000000.parquet", "000001.parquet"]
    finish(corpus, tmp_path / "out", unbroken)


def test_a_worker_that_always_dies_fails_its_shard_only(corpus, tmp_path, monkeypatch):
    """Something in one shard kills whoever encodes it, as too little memory would: the rest is
    done, and the error says so.
    """
    workers_that(monkeypatch, DIES)
    told = r"1 of 4 shards failed \(2\), .*its worker was killed \(SIGKILL\), 3 times; .*fewer workers.*the others are done"
    with pytest.raises(JobError, match=told):
        numtok.encode_files(corpus / "a.jsonl", tmp_path / "out", shards=4, workers=2)


def test_workers_that_cannot_begin_are_told(corpus, tmp_path, monkeypatch):
    code = "raise SystemExit('no such library')"
    monkeypatch.setattr("numtok.corpus.jobs.run.COMMAND", ["-c", code])
    told = "a worker ended with status 1: no such library, before it could begin"
    with pytest.raises(JobError, match=told):
        numtok.encode_files(corpus / "a.jsonl", tmp_path / "out", shards=4, workers=2)


def test_two_runs_in_one_folder(corpus, unbroken, tmp_path):
    """They share the work; who wants another plan, or to begin anew, is refused meanwhile."""
    out = tmp_path / "out"
    first, second = start(corpus, out, 1), start(corpus, out, 1)
    interrupts.wait_for(lambda: bool(list((out / "__numtok").glob("0*.claim"))))
    with pytest.raises(JobError, match=r"another run is working on this folder \(process \d+ on"):
        numtok.encode_files(corpus, out, shards=SHARDS, workers=1, overwrite=True)
    running = numtok.job_status(out).running.values()
    assert {one.pid for one in running} <= {first.pid, second.pid}
    for process in (first, second):
        _, told = process.communicate(timeout=interrupts.LONG)
        assert process.returncode == 0, told
    assert jobs.everything(out) == unbroken
    assert not list((out / "__numtok").glob("*.claim"))


def test_a_claim_of_another_machine_is_a_lease(corpus, unbroken, tmp_path, monkeypatch):
    """It is respected as long as it is refreshed, and then taken away."""
    out = tmp_path / "out"
    numtok.encode_files(corpus, out, shards=SHARDS, workers=1, shard=(1, 2))
    with monkeypatch.context() as patch:
        patch.setattr("numtok.corpus.jobs.claims._machine", lambda: "another")
        patch.setattr(Claims, "_beat", lambda self: None)  # its machine is gone
        assert Claims(Folder(out), "theirs").take("000003")
    monkeypatch.setattr("numtok.corpus.jobs.claims.LEASE", 3.0)
    finish(corpus, out, unbroken)
    made = {path.stem: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    assert made["000001"] < made["000005"] < made["000003"], "what nobody had came first"


def test_a_full_disk(corpus, unbroken, tmp_path):
    """What cannot be written is told once, nothing half-written is left, and with room the same
    call goes on.
    """
    out = tmp_path / "out"
    numtok.encode_files(corpus, out, shards=SHARDS, workers=1, shard=(2, SHARDS))
    told = r"1 of 8 shards failed \(0\).*File too large.*make room.*6 were not tried, as they would"
    with interrupts.largest_file(10_000), pytest.raises(JobError, match=told):
        numtok.encode_files(corpus, out, shards=SHARDS, workers=1)
    assert sorted(path.name for path in out.iterdir()) == ["000001.parquet", "__numtok"]
    told = r"cannot write .*File too large"
    with interrupts.largest_file(10_000), pytest.raises(OutputError, match=told):
        numtok.encode_files(corpus, tmp_path / "other", shards=SHARDS, workers=1)
    finish(corpus, out, unbroken)
    finish(corpus, tmp_path / "other", unbroken)
