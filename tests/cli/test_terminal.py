"""What reaches the terminal, and what is said when nothing can reach it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import interrupts
import pytest
from click.testing import CliRunner
from numtok_cli.main import cli
from numtok_cli.streams import shown

CONTROLS = [
    chr(code)
    for code in (
        *range(1, 32),
        *range(0x7F, 0xA0),
        0x061C,
        0x200E,
        0x200F,
        *range(0x2028, 0x202F),
        *range(0x2066, 0x2070),
    )
]
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]")
NUMTOK = f"{shlex.quote(sys.executable)} -m numtok_cli.main"


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=120
    )


def test_inspect_passes_no_control_character() -> None:
    text = "is 5 " + " 7 x".join(CONTROLS) + "\x1b]0;title\x07 \x9b31m 6 \ufeff"
    for options in ([], ["--numbers", "subword"], ["--numbers", "place"]):
        told = CliRunner().invoke(cli, ["inspect", *options], input=text).output
        assert "numbers" in told and not ACTING.search(told)


def test_everything_else_is_shown_as_it_is() -> None:
    text = "é 日本 👩\u200d👩 \ufe0f ⏎ −5 \u200b العربية"
    assert shown(text) == text
    assert shown("a\x1b[31m\nb\x9b\u202e\udcff\x7f") == "a␛[31m⏎b\\x9b\\u202e\\udcff␡"


EVIL = "\x1b[31m\x9b\u202e\n.jsonl"


def test_messages_and_tables_pass_none_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(EVIL).write_text('{"text": "1"}\n{"text": null}\n')
    output = EVIL.replace("jsonl", "parquet")
    for arguments in (
        ["encode", EVIL, "-o", output],
        ["encode", EVIL, "-o", output],
        ["encode", "missing" + EVIL, "-o", "o.parquet"],
        ["encode", EVIL, "-o", "o.parquet", "--text-column", EVIL],
        ["encode", EVIL, "--no\x1b[31m\u202e"],
        ["encode\x1b[31m"],
        ["decode", output, "-o", EVIL + ".jsonl"],
        ["inspect", "5", "--html", EVIL + ".html"],
    ):
        told = CliRunner().invoke(cli, arguments).output
        assert told and not ACTING.search(told), arguments


def test_a_name_that_is_not_unicode(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "1"}\n')
    done = shell(f"{NUMTOK} encode in.jsonl -o $'o\\xff.parquet'", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("o\\udcff.parquet\n")


@pytest.mark.parametrize(
    ("command", "where"),  # a file that is opened while there is no standard output takes its place
    [
        ("encode in.jsonl -o o.parquet", ">&-"),
        ("inspect 5", ">/dev/full"),
        ("encode --help", ">&-"),
        ("encode --help", ">/dev/full"),
    ],
)
def test_standard_output_that_takes_nothing(command: str, where: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "1"}\n')
    done = shell(f"{NUMTOK} {command} {where}", tmp_path)
    reason = "Bad file descriptor" if where == ">&-" else "No space left on device"
    assert done.returncode == 1
    assert done.stderr.startswith(f"numtok: error: cannot write to standard output: {reason}; ")
    assert done.stderr.count("\n") == 1
    if "encode in" in command:
        assert sorted(os.listdir(tmp_path)) == ["in.jsonl", "o.parquet"]
        again = shell(f"{NUMTOK} decode o.parquet -o b.jsonl -q {where}; cat b.jsonl", tmp_path)
        assert (again.stdout, again.stderr) == ('{"text": "1"}\n', ""), "nothing was to be printed"


@pytest.mark.parametrize("where", ["2>/dev/full", "<&- >&- 2>&-"])
def test_standard_error_that_takes_nothing(where: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "1"}\n{"text": null}\n')
    done = shell(
        f"{NUMTOK} encode in.jsonl -o o.parquet -q {where}; echo $? >code; {NUMTOK} inspect {where}"
        " <&-; echo $? >>code",
        tmp_path,
    )
    assert (tmp_path / "code").read_text() == "0\n1\n"
    assert "Traceback" not in done.stdout + done.stderr
    assert (tmp_path / "o.parquet").read_bytes()[:4] == b"PAR1"


def test_a_reader_that_goes_away_is_silent(tmp_path: Path) -> None:
    done = shell(f"{NUMTOK} inspect '{'5 ' * 5000}' | head -1", tmp_path)
    assert done.stdout == "5,000 numbers\n"
    assert done.stderr == ""


@pytest.mark.parametrize(("ignored", "code"), [(False, 129), (True, 0)])
def test_a_terminal_that_goes_away_leaves_nothing(ignored: bool, code: int, tmp_path: Path) -> None:
    nohup = "trap '' HUP; " if ignored else ""
    command = (
        f"{nohup}exec {NUMTOK} encode - -o {shlex.quote(str(tmp_path / 'a.parquet'))} -q --scale 1"
    )
    running = interrupts.start(["bash", "-c", command], stdin=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(
        tmp_path.iterdir()
    ):  # with a scale that is given, the output is opened before anything is read
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.1)
    running.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    _, errors = running.communicate('{"text": "1"}\n' if ignored else None, timeout=30)
    assert (running.returncode, errors) == (code, "")
    assert [path.name for path in tmp_path.iterdir()] == (["a.parquet"] if ignored else [])
