"""Files are there whole or not at all: what kills, full disks, devices and other runs can do to
them.
"""

import importlib
import os
import socket
import subprocess
import sys

import interrupts
import pytest
from interrupts import largest_file

from numtok.errors import OutputError
from numtok.files import new_file, write_file

WRITER = """
import sys, time
from pathlib import Path
from numtok.files import new_file
with new_file(Path(sys.argv[1]), True) as file:
    file.write(b"half")
    print("writing", flush=True)
    time.sleep(float(sys.argv[2]))
    file.write(b" and half")
"""


def start(path, seconds):
    """A run that has begun to write the file."""
    process = interrupts.start([sys.executable, "-c", WRITER, str(path), str(seconds)])
    assert process.stdout is not None and process.stdout.readline() == "writing\n"
    return process


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(path, data=b"whole", overwrite=True):
    with new_file(path, overwrite) as file:
        file.write(data)


# Leftovers


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    interrupts.kill_with_children(start(tmp_path / "a.parquet", 60))
    [left] = names(tmp_path)
    assert left.startswith(".a.parquet.") and left.endswith(".tmp")
    write(tmp_path / "b.parquet")
    assert left in names(tmp_path), "of another output"
    write(tmp_path / "a.parquet")
    assert names(tmp_path) == ["a.parquet", "b.parquet"]


def test_the_file_of_a_run_that_lives_is_never_removed(tmp_path):
    with new_file(tmp_path / "a.parquet", True) as mine:  # in this process, and in another
        mine.write(b"mine")
        other = start(tmp_path / "a.parquet", 2)
        write(tmp_path / "a.parquet", b"third")
        assert len(names(tmp_path)) == 3
    assert (tmp_path / "a.parquet").read_bytes() == b"mine"
    _, errors = other.communicate(timeout=interrupts.LONG)
    assert (other.returncode, errors) == (0, "")
    assert (tmp_path / "a.parquet").read_bytes() == b"half and half"
    assert names(tmp_path) == ["a.parquet"]


def test_files_of_other_machines_and_other_people_stay(tmp_path):
    kept = [
        ".a.parquet.elsewhere.123-0123456789ab.tmp",
        ".a.parquet.123.tmp",
        f".a.parquet.{socket.gethostname()[:32]}.notes.tmp",
    ]
    for name in kept:
        (tmp_path / name).write_text("mine")
    os.mkfifo(tmp_path / f".a.parquet.{socket.gethostname()[:32]}.1-0123456789ab.fifo")
    write(tmp_path / "a.parquet")
    assert set(kept) < set(names(tmp_path))


def test_names_of_any_length(tmp_path):
    write(tmp_path / ("n" * 247 + ".parquet"))
    with (
        pytest.raises(OutputError, match="too long"),
        new_file(tmp_path / ("n" * 248 + ".parquet"), False),
    ):
        pytest.fail("this must be told before the file is written")
    assert names(tmp_path) == ["n" * 247 + ".parquet"]


# Links, devices, pipes


def test_a_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a").write_bytes(b"old")
    (tmp_path / "link").symlink_to("there/a")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "a").read_bytes() == b"whole"
    assert names(tmp_path / "there") == ["a"]


def test_a_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="device or a pipe"):
        write(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    code = "from numtok.files import write_file; write_file('/dev/stdout', 'to the pipe')"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "to the pipe"
    with pytest.raises(OutputError, match="cannot write /dev/full: No space left on device"):
        write_file("/dev/full", "x")


# Full disks


def test_a_full_disk_leaves_what_was_there(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    told = r"cannot write .*a: File too large; make room"
    with largest_file(1000), pytest.raises(OutputError, match=told) as caught:
        write_file(tmp_path / "a", "x" * 5000)
    assert caught.value.errno == 27 and names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


@pytest.mark.parametrize(("module", "kind"), [("", "Tokenizer"), (".hf", "NumberTokenizer")])
def test_a_tokenizer_is_saved_whole_or_not_at_all(module, kind, tmp_path):
    if module:
        pytest.importorskip("transformers")
    made = getattr(importlib.import_module(f"numtok{module}"), kind).from_pretrained(numbers="xval")
    folder, before = tmp_path / "new", {}
    folder.mkdir()
    for _ in range(2):  # also over what is there
        with largest_file(100_000), pytest.raises(OutputError, match="too large"):
            made.save_pretrained(folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        saved = made.save_pretrained(folder)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {"numtok.json", "tokenizer.json"} <= before.keys()
    assert saved is None or set(map(os.path.basename, saved)) == before.keys()
