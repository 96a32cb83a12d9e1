"""Check what reaches the terminal: tables, progress, nothing that acts upon it; and what is said when
nothing can reach it.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import interrupts
import pytest
from command import run
from numtok_cli.console import ProgressLine, duration, size

from numtok.corpus.summary import Progress

CODES = (*range(1, 32), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F))
CONTROLS = [chr(code) for code in (*CODES, *range(0x2066, 0x2070))]
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]")
NUMTOK = f"{shlex.quote(sys.executable)} -m numtok_cli.main"
EVIL = "\x1b[31m\x9b\u202e\n.jsonl"


def shell(command, folder):
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=600,
        errors="replace",
    )  # fmt: skip


def test_sizes_and_durations():
    assert [size(count) for count in (0, 999, 1000, 12_345, 999_600, 10**9, 5 * 10**12)] == [
        "0 B", "999 B", "1.0 kB", "12.3 kB", "1.0 MB", "1.0 GB", "5000 GB",
    ]  # fmt: skip
    assert [duration(seconds) for seconds in (0.04, 9.94, 9.96, 59.6, 185, 7385)] == [
        "0.0 s", "9.9 s", "10 s", "1:00", "3:05", "2:03:05",
    ]  # fmt: skip


@pytest.mark.parametrize("terminal", [False, True])
def test_progress(terminal, capsys, monkeypatch):
    """One line that is redrawn and cleared; without a terminal a line now and then."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    for quiet in (True, False):
        line = ProgressLine(quiet)
        for k in range(5):
            line(Progress(k * 10_000_000, 40_000_000, k, k, k, k * 4.0))
        line.clear()
        if quiet:
            assert capsys.readouterr().err == ""
    drawn = capsys.readouterr().err
    if terminal:
        assert "\n" not in drawn and drawn.endswith("\r\x1b[K") and "━━━━━━━━━━╌" in drawn
        assert all(len(part) <= 100 for part in drawn.split("\r\x1b[K"))
    else:
        lines = ["numtok:  50%  20.0 MB of 40.0 MB  2.5 MB/s  8.0 s left"]
        lines.append("numtok: 100%  40.0 MB of 40.0 MB  2.5 MB/s  0.0 s left")
        assert drawn.splitlines() == lines


# Nothing acts on the terminal


def test_inspect_and_stats_pass_no_control_character():
    text = "is 5 " + " 7 x".join(CONTROLS) + "\x1b]0;title\x07 \x9b31m 6 \ufeff"
    for words in ("inspect", "inspect --numbers subword", "inspect --numbers place",
                  "stats - --format txt"):  # fmt: skip
        told = run(words, input=text).output
        assert "numbers" in told and not ACTING.search(told)


def test_messages_and_tables_pass_none_either(tmp_path, monkeypatch):
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
        ["stats", EVIL],
    ):
        told = run("", *arguments).output
        assert told and not ACTING.search(told), arguments


# Streams that take nothing


@pytest.mark.parametrize(
    ("command", "where"),  # a file that is opened while there is no standard output takes its place
    [
        ("encode in.jsonl -o o.parquet", ">&-"),
        ("inspect 5", ">/dev/full"),
        ("encode --help", ">&-"),
        ("--help", ">/dev/full"),
        ("encode in.jsonl -o - --scale 1", ">/dev/full"),
    ],
)
def test_standard_output_that_takes_nothing(command, where, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "1"}\n')
    done = shell(f"{NUMTOK} {command} {where}", tmp_path)
    reason = "Bad file descriptor" if where == ">&-" else "No space left on device"
    told = done.stderr.splitlines()[-1]  # a slow machine says how far it is before
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert told.startswith(f"numtok: error: cannot write to standard output: {reason}")
    if "o.parquet" in command:
        assert sorted(os.listdir(tmp_path)) == ["in.jsonl", "o.parquet"]
        again = shell(f"{NUMTOK} decode o.parquet -o b.jsonl -q {where}; cat b.jsonl", tmp_path)
        assert (again.stdout, again.stderr) == ('{"text": "1"}\n', ""), "nothing was to be printed"


@pytest.mark.parametrize("where", ["2>/dev/full", "<&- >&- 2>&-"])
def test_standard_error_that_takes_nothing(where, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "1"}\n{"text": null}\n')
    encode = f"{NUMTOK} encode in.jsonl -o o.parquet -q {where}; echo $? >code"
    done = shell(f"{encode}; {NUMTOK} inspect {where} <&-; echo $? >>code", tmp_path)
    assert (tmp_path / "code").read_text() == "0\n1\n"
    assert "Traceback" not in done.stdout + done.stderr
    assert (tmp_path / "o.parquet").read_bytes()[:4] == b"PAR1"


@pytest.mark.parametrize(("ignored", "code"), [(False, 129), (True, 0)])
def test_a_terminal_that_goes_away_leaves_nothing(ignored, code, tmp_path):
    nohup = "trap '' HUP; " if ignored else ""
    output = shlex.quote(str(tmp_path / "a.parquet"))
    command = f"{nohup}exec {NUMTOK} encode - -o {output} -q --scale 1"
    running = interrupts.start(["bash", "-c", command], stdin=subprocess.PIPE)
    # with a scale that is given, the output is opened before anything is read
    interrupts.wait_for(lambda: any(tmp_path.iterdir()))
    if ignored:
        running.send_signal(signal.SIGHUP)
    else:
        interrupts.end(running, signal.SIGHUP)
    _, errors = running.communicate('{"text": "1"}\n' if ignored else None, timeout=120)
    assert (running.returncode, errors) == (code, "")
    assert [path.name for path in tmp_path.iterdir()] == (["a.parquet"] if ignored else [])


def test_characters_that_an_encoding_lacks_are_question_marks(tmp_path):
    """As on Windows, where standard output goes to a pipe or a file."""
    Path(tmp_path, "a.txt").write_text("温 5.5 °C, -1e3\n", "utf-8")
    for command in ("stats a.txt", 'inspect "温 5.5 °C, -1e3" --numbers bits', "encode --help"):
        done = shell(f"PYTHONIOENCODING=cp1252 {NUMTOK} {command}", tmp_path)
        assert done.returncode == 0, done.stderr
        assert "?" in done.stdout or not command.startswith("stats")
