"""Compressed files: several members, padding, junk, damage and every truncation, held to what the
command-line tool of each compression says of the same bytes.
"""

import lzma
import shutil
import struct
import subprocess

import pytest
from input_files import COMPRESS, batches_of, failure, read_all, write

FIRST, SECOND = b"one 1\ntwo 2\n" * 5, b"three 3\n" * 4
TOOLS = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "zstd"}
SUFFIXES = list(COMPRESS)


def by_tool(path):
    """Return (the bytes or None, whether something was ignored) as the command-line tool has it."""
    tool = TOOLS[path.suffix[1:]]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    done = subprocess.run([tool, "-dc"], stdin=path.open("rb"), capture_output=True)
    ignored = b"ignored" in done.stderr
    return None if done.returncode and not ignored else done.stdout, ignored


def assert_as_the_tool(path):
    """Check that the lines are those of the tool, or that both refuse the file. Where the tool
    ignores what stands behind the first member, the file is refused, or read to its end.
    """
    expected, ignored = by_tool(path)
    try:
        lines = read_all(path)
    except Exception as error:
        assert "fetch it again" in str(error), error
        assert expected is None or ignored
        return
    texts = "".join(f"{line}\n" for line in lines).encode()
    assert texts.startswith(expected) if ignored else texts == expected


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_members_and_padding_are_read_as_the_tool_reads_them(tmp_path, suffix):
    first, second, none = map(COMPRESS[suffix], (FIRST, SECOND, b""))
    files = [first, first + second, none, none + first, first + none + second, first + none]
    for size in (1, 2, 3, 4, 6, 8, 12, 512, 300_000):
        zeros = bytes(size)
        files += [first + zeros, first + zeros + second, first + second + zeros, zeros + first]
    for data in files:
        assert_as_the_tool(write(tmp_path, f"a.txt.{suffix}", data))
    padding = b"" if suffix == "zst" else bytes(4)  # which zstd has not
    path = write(tmp_path, f"a.txt.{suffix}", first + padding + none + second + 2 * padding)
    assert read_all(path) == (FIRST + SECOND).decode().splitlines()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_junk_and_damage_behind_a_member_are_refused(tmp_path, suffix):
    first, second = map(COMPRESS[suffix], (FIRST, SECOND))
    files = []
    for junk in (b"j", b"junk", b"\0\0\0\0junk and more of it", b"\xfd7zXZ\0", b"BZh"):
        files += [first + junk, first + second + junk, first + junk + second]
    for place in range(4):
        damaged = bytearray(second)
        damaged[place] ^= 0x55
        files.append(first + damaged)
    for data in files:
        assert "fetch it again" in str(failure(write(tmp_path, f"a.txt.{suffix}", data))), data


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_truncation_is_noticed(tmp_path, suffix):
    first, second = map(COMPRESS[suffix], (FIRST, SECOND))
    for length in range(len(first) + len(second)):
        path = write(tmp_path, f"a.txt.{suffix}", (first + second)[:length])
        if length == len(first):  # a whole file, by its format
            assert len(read_all(path)) == 10
        else:
            assert "fetch it again" in str(failure(path)), length


def test_what_is_left_out_behind_damage_is_told(tmp_path):
    path = write(tmp_path, "a.txt.xz", lzma.compress(FIRST) + b"junk")
    *_, last = batches_of(path, on_error="skip")
    assert last.skipped == 1 and "all from here on is left out" in last.bad[0].error


def test_frames_of_zstd_that_are_to_be_skipped(tmp_path):
    first, second = map(COMPRESS["zst"], (FIRST, SECOND))
    frame = struct.pack("<II", 0x184D2A50, 5) + b"hello"
    for data in (frame + first, first + frame + second, first + frame, first + frame[:-2]):
        assert_as_the_tool(write(tmp_path, "a.txt.zst", data))
