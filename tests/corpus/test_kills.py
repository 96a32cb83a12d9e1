"""Kills at any moment, of the command and of its workers: the next run leaves what an unbroken one
leaves, to the byte.
"""

import contextlib
import os
import random
import signal
import sys
import time

import interrupts
import jobs
import psutil
import pytest
from deadly import Deadly, registered
from input_files import write_texts
from unloadable import Unloadable

import numtok
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
    return jobs.files(folder)


@pytest.fixture(autouse=True, scope="module")
def known():
    with registered(Deadly, Unloadable):
        yield


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
    assert jobs.files(folder) == unbroken and len(jobs.table(folder)) == DOCUMENTS
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


PARENT = """
import sys, deadly, numtok
numbers = [deadly.Deadly(deed=sys.argv[4], told=sys.argv[3])]
with deadly.registered(deadly.Deadly):
    numtok.encode_files(sys.argv[1], sys.argv[2], numbers=numbers, shards=8, workers=2)
"""


def with_666(folder, numbers):
    """Texts of about one size, those with these numbers among 800 with 666 in them."""
    lines = [f"{'666' if n in numbers else n + 1000} of it, and more" for n in range(800)]
    return write_texts(folder / "in.jsonl", lines)


@pytest.mark.parametrize("when", ["starting", "encoding", "ending"])
def test_workers_end_within_a_second_of_their_parent(when, tmp_path):
    """Whatever they are at: importing, in the middle of a long document, or an end that takes
    long.
    """
    corpus = with_666(tmp_path, range(800))
    deed = "ends long" if when == "ending" else "encodes long"

    def seconds(out):
        (told := out.with_suffix(".told")).mkdir()
        command = [sys.executable, "-c", PARENT, str(corpus), str(out), str(told), deed]
        paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
        process = interrupts.start(command, env=os.environ | paths)
        if when == "starting":
            interrupts.wait_for(lambda: len(interrupts.children(process)) == 2)
        else:
            interrupts.wait_for(lambda: len(list(told.iterdir())) == 2)
        workers = interrupts.children(process)
        process.kill()
        process.communicate(timeout=interrupts.LONG)
        began = time.monotonic()
        interrupts.wait_for(lambda: all(map(interrupts.has_ended, workers)))
        return time.monotonic() - began

    # a machine that is busy may take longer once
    assert any(seconds(tmp_path / str(attempt)) < 1 for attempt in range(3))


@pytest.mark.parametrize("deed", ["waits", "cannot tidy up"])
def test_an_interrupt_leaves_whole_shards(deed, tmp_path):
    """As it reaches the command while workers work: they are gone when it is, and what they were
    writing is gone once the job goes on, be it that they could not tidy up.
    """
    corpus, out = with_666(tmp_path, range(250, 800)), tmp_path / "out"

    def interrupt(progress):
        if progress.shards is not None and progress.shards[0] == 2:
            raise KeyboardInterrupt

    running = set(psutil.Process().children())
    how = {"numbers": [Deadly(deed=deed)], "shards": SHARDS}
    with pytest.raises(KeyboardInterrupt):
        numtok.encode_files(corpus, out, workers=2, progress=interrupt, **how)
    assert set(psutil.Process().children()) <= running
    whole = sorted(path.name for path in out.glob("*.parquet"))
    assert whole == ["00000-of-00008.parquet", "00001-of-00008.parquet"]
    assert numtok.encode_files(corpus, out, workers=1, **how).resumed == 2
    numtok.encode_files(corpus, tmp_path / "other", workers=1, **how)
    assert jobs.files(out) == jobs.files(tmp_path / "other")


def test_a_worker_that_always_dies_fails_its_shard_only(tmp_path):
    """Something in one shard kills whoever encodes it, as too little memory would: the rest is
    done, and the error says so.
    """
    corpus = with_666(tmp_path, [500])
    told = r"1 of 4 shards failed \(2\), .*its worker was killed \(SIGKILL\), 3 times; .*fewer workers.*the others are done"
    with pytest.raises(JobError, match=told):
        numtok.encode_files(corpus, tmp_path / "out", numbers=[Deadly()], shards=4, workers=2)


def test_workers_that_cannot_begin_are_told(corpus, tmp_path):
    told = "a worker ended with status 1: no such library, before it could begin"
    how = {"numbers": [Unloadable()], "shards": 4, "workers": 2}
    with pytest.raises(JobError, match=told):
        numtok.encode_files(corpus / "a.jsonl", tmp_path / "out", **how)


def test_a_second_run_in_one_folder_is_refused(corpus, unbroken, tmp_path):
    out = tmp_path / "out"
    first = start(corpus, out, 1)
    begun(out, first, 1)
    first.send_signal(signal.SIGSTOP)  # in the middle of its work
    how = {"shards": SHARDS, "workers": 1}
    for options in ({}, {"overwrite": True}):
        with pytest.raises(JobError, match=rf"another run .*\(process {first.pid} on .*\); wait"):
            numtok.encode_files(corpus, out, **how, **options)
    with pytest.raises(JobError, match="another run is working on this folder"):
        numtok.finish_job(out)
    first.send_signal(signal.SIGCONT)
    _, told = first.communicate(timeout=interrupts.LONG)
    assert first.returncode == 0, told
    assert jobs.files(out) == unbroken


def test_a_full_disk(corpus, unbroken, tmp_path):
    """What cannot be written is told once, nothing half-written is left, and with room the same
    call goes on.
    """
    out = tmp_path / "out"
    numtok.encode_files(corpus, out, shards=SHARDS, workers=1, shard=(2, SHARDS))
    told = r"1 of 8 shards failed \(0\).*File too large.*make room.*6 were not tried, as they would"
    with pytest.raises(JobError, match=told), contextlib.ExitStack() as stack:
        disk = []

        def fill(_):  # once the shards are begun
            if not disk:
                disk.append(stack.enter_context(interrupts.largest_file(10_000)))

        numtok.encode_files(corpus, out, shards=SHARDS, workers=1, progress=fill)
    assert sorted(path.name for path in out.iterdir()) == ["00001-of-00008.parquet", "__numtok"]
    told = r"cannot write .*File too large"
    with interrupts.largest_file(10_000), pytest.raises(OutputError, match=told):
        numtok.encode_files(corpus, tmp_path / "other", shards=SHARDS, workers=1)
    finish(corpus, out, unbroken)
    finish(corpus, tmp_path / "other", unbroken)
