"""The command line, through click's runner and as a process of its own."""

from __future__ import annotations

import json
import logging
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import click
import interrupts
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from numtok_cli.console import ProgressLine, counts, duration, print_table, size
from numtok_cli.main import cli
from pages import page_data
from places import SAMPLE

import numtok
from numtok.corpus.summary import Progress
from numtok.engines.tokenizer_json import DEFAULT_FOLDER
from numtok.representations import REPRESENTATIONS, Column, SingleToken
from numtok.representations.values import numbers_from_floats

COMMANDS = ("encode", "decode", "inspect", "stats", "train")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the sample."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLE, tmp_path / "sample.jsonl")
    return tmp_path


def run(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(cli, list(arguments), **options)


def ok(*arguments: str, **options: Any) -> Result:
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def test_a_quiet_command_hushes_itself_alone(folder: Path) -> None:
    before = logging.getLogger("numtok").level
    ok("encode", "sample.jsonl", "-o", "a.parquet", "-q")
    assert logging.getLogger("numtok").level == before


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "numtok_cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def only_files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# Help
# -------------------------------------------------------------------------------------------------------------------


def test_help_loads_nothing_heavy_and_is_quick() -> None:
    program = (
        "import sys, numtok_cli.main; print([m for m in ('numtok', 'numpy', 'pyarrow', 'numba',"
        " 'tokenizers') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
    started = time.perf_counter()
    assert "encode" in process("--help").stdout
    assert time.perf_counter() - started < 2  # 0.1 s here; a busy machine has its reasons


def test_version() -> None:
    assert ok("--version").output == f"numtok {numtok.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text(name: str) -> None:
    for parameter in cli.commands[name].params:
        assert isinstance(parameter, click.Argument) or parameter.help, f"{name} {parameter.name}"


def examples(name: str) -> list[str]:
    _, _, lines = (cli.commands[name].epilog or "").partition("Examples")[2].partition(":\n")
    return [line.strip() for line in lines.splitlines() if line.strip()]


def run_example(line: str) -> None:
    found = re.fullmatch(
        r"(?:([^|]+)\| )?numtok ([^|]+)(?:\|.*)?", line
    )  # between what gives its input and what takes its output
    assert found
    given = (
        subprocess.run(found[1], shell=True, capture_output=True, check=True).stdout
        if found[1]
        else None
    )
    ok(*shlex.split(found[2]), input=given)


def outputs(name: str) -> list[str]:
    """The files that the examples say they write."""
    return [
        found[1].removesuffix("/")
        for line in examples(name)
        if (found := re.search(r" (?:-o|--html|--json) (\w\S+)", line))
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_the_help_run(name: str, folder: Path) -> None:
    """In a folder of their own, so that none needs what those of another command leave; what they
    say they write is there.
    """
    assert examples(name)
    for line in examples(name):
        run_example(line)
    assert only_files(folder) == {"sample.jsonl", *outputs(name)}
    if "back.jsonl" in outputs(name):
        texts = [
            [json.loads(line)["text"] for line in path.read_text().splitlines()]
            for path in (Path("back.jsonl"), SAMPLE)
        ]
        assert texts[0] == texts[1]


def test_no_example_of_the_help_writes_what_another_wrote() -> None:
    every = [name for command in COMMANDS for name in outputs(command)]
    assert "back.jsonl" in every and len(every) == len(set(every))


# Encode and decode
# ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", ["xval", "bits", "xval,bits", "place", "subword"])
def test_the_sample_comes_back(numbers: str, folder: Path) -> None:
    told = ok(
        "encode",
        "sample.jsonl",
        "-o",
        "a.parquet",
        "--numbers",
        numbers,
        "--keep-text",
        "--keep-column",
        "id",
    ).stdout
    assert re.search(r"documents +31\n", told)
    assert "tokens per number" in told
    ok("decode", "a.parquet", "-o", "back.jsonl")
    assert [json.loads(line) for line in Path("back.jsonl").read_text().splitlines()] == [
        json.loads(line) for line in SAMPLE.read_text().splitlines()
    ]


def test_standard_input_quiet_and_options(folder: Path) -> None:
    result = ok(
        "encode",
        "-",
        "-o",
        "a.arrow",
        "-q",
        "--grammar",
        "data",
        "--leading-space",
        "separate",
        input='{"text": "is 1,234"}\n',
    )
    assert result.output == ""
    with pa.memory_map("a.arrow") as mapped:
        table = pa.ipc.open_file(mapped).read_all()
    assert table.column("number_value").to_pylist() == [[1.0, 234.0]]
    metadata = json.loads(table.schema.metadata[b"numtok"])
    assert metadata["grammar"]["grouping"] is None
    assert " [NUM]" not in metadata["tokens"]
    ok("decode", "a.arrow", "-o", "b.txt", "-q")
    assert Path("b.txt").read_text() == "is 1,234\n"


def test_pattern_text_unit_and_overflow(folder: Path) -> None:
    Path("in.txt").write_text("a 1\nb 22\nc 1e400\n")
    ok("encode", "in.txt", "-o", "a.parquet", "--text-unit", "file", "--pattern", r"\d\d")
    assert pq.read_table("a.parquet").column("number_value").to_pylist() == [[22.0, 40.0]]
    assert "clipped" in ok("encode", "in.txt", "-o", "b.parquet", "--overflow", "clip").stdout
    result = run("encode", "in.txt", "-o", "c.parquet", "--overflow", "error")
    assert result.exit_code == 1
    assert (
        result.stderr
        == "numtok: error: in.txt, row 3: byte 2: xval cannot hold 1e400; use --overflow text to"
        " leave such numbers as text, or 'clip'\n"
    )
    assert not Path("c.parquet").exists()


def test_the_slow_engine_gives_the_same_file(folder: Path) -> None:
    for engine in ("gigatoken", "tokenizers"):
        ok(
            "encode",
            "sample.jsonl",
            "-o",
            f"{engine}.parquet",
            "--engine",
            engine,
            "--workers",
            "3",
        )
    assert pq.read_table("gigatoken.parquet").equals(pq.read_table("tokenizers.parquet"))


def test_train_then_use_it(folder: Path) -> None:
    assert re.search(
        r"tokens +600\n",
        ok(
            "train", "sample.jsonl", "-o", "mine", "--vocab-size", "600", "--min-frequency", "1"
        ).stdout,
    )
    ok("encode", "sample.jsonl", "-o", "a.parquet", "--tokenizer", "mine", "--keep-text")
    wrong = run("decode", "a.parquet", "-o", "b.jsonl")
    assert wrong.exit_code == 1
    assert "another tokenizer than the default one" in wrong.stderr
    ok("decode", "a.parquet", "-o", "b.jsonl", "--tokenizer", "mine")
    assert run("train", "sample.jsonl", "-o", "mine").exit_code == 1


def test_a_slower_engine_is_a_warning_on_one_line(folder: Path) -> None:
    config = json.loads((DEFAULT_FOLDER / "tokenizer.json").read_text("utf-8"))
    config["added_tokens"].append(
        {
            **config["added_tokens"][0],
            "id": 16000,
            "content": "<x>",
            "lstrip": True,
            "special": False,
        }
    )
    Path("odd.json").write_text(json.dumps(config))
    told = process(
        "encode",
        "sample.jsonl",
        "-o",
        "a.parquet",
        "--tokenizer",
        "odd.json",
        "--numbers",
        "bits",
        "-q",
    ).stderr
    assert re.fullmatch(
        r"numtok: warning: using the slower engine 'tokenizers', because [^\n]*\n", told
    )


# Inspect
# ----------------------------------------------------------------------------------------------------------------


def test_inspect_lists_numbers_tokens_and_columns() -> None:
    told = ok(
        "inspect", "is 1,234.50 or −7e-3", "--numbers", "xval,bits", "--numbers", "place"
    ).stdout
    assert "\x1b" not in told
    assert re.search(r"1,234\.50 +3-11 +1234\.50 +1234\.5\n", told)
    assert re.search(r"−7e-3 +15-20 +-0\.007 +-0\.007\n", told)
    assert "is| [NUM]| or| [NUM]|" in told
    assert "0 10001001 00110100101000000000000" in told
    assert "[/NUM]|" in told


def test_inspect_tells_the_same_representation_with_other_options_apart() -> None:
    told = ok(
        "inspect", "is 1234567", "--numbers", "digits:3,places", "--numbers", "digits:1"
    ).stdout
    assert re.search(r"^digits:places  6 tokens, 5.00 per number", told, re.M) and re.search(
        r"^digits:1  ", told, re.M
    )
    assert " [NUM]|[NUM:1]|[NUM:234]|[NUM:567]|[/NUM]|" in told and re.search(
        r"^ +7 +4 +1 *$", told, re.M
    )
    assert " [NUM]|1|2|3|4|5|6|7|[/NUM]|" in told


@dataclass(frozen=True)
class HalfBits(SingleToken):
    """A throw-away representation with bits of its own."""

    name: ClassVar[str] = "half"
    declared: ClassVar[tuple[Column, ...]] = (
        Column("number_half", pa.uint16(), np.int64, bit_fields=(1, 5, 10)),
    )

    def fits(self, numbers: numtok.Numbers) -> Any:
        return np.isfinite(numbers.to_float32().astype(np.float16))

    def encode(self, numbers: numtok.Numbers) -> dict[str, pa.Array]:
        return {"number_half": pa.array(numbers.to_float32().astype(np.float16).view(np.uint16))}

    def decode(self, columns: Any) -> Any:
        return numbers_from_floats(columns["number_half"].to_numpy().view(np.float16), self.name)


def test_inspect_shows_bits_by_their_fields(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REPRESENTATIONS, HalfBits.name, HalfBits)
    assert re.search(
        r"-1\.5 +1 01111 1000000000\n", ok("inspect", "is -1.5", "--numbers", "half").stdout
    )
    ok("inspect", "is -1.5", "--numbers", "half", "--html", "page.html")
    (view,) = page_data(Path("page.html"))["views"]
    assert view["rows"] == [
        [0, {"text": "1 01111 1000000000", "bits": ["1", "01111", "1000000000"]}]
    ]


def test_inspect_shows_64_bits_of_a_text_and_of_a_file(folder: Path) -> None:
    bits = "1 01111111101 0011001100110011001100110011001100110011001100110100"
    told = ok(
        "inspect", "is -0.30000000000000004", "--numbers", "bits:64", "--numbers", "xval,bits"
    ).stdout
    assert re.search(f"-0.30000000000000004 +{bits}\n", told)
    assert "\nbits:64  " in told and "\nxval+bits  " in told, "one is told from the other"
    Path("a.txt").write_text("is -0.30000000000000004\n")
    for option in ("--dense", "--quiet"):
        ok("encode", "a.txt", "-o", "a.parquet", "--numbers", "bits:64", "--overwrite", option)
        assert re.search(f"-0.30000000000000004 .*{bits[:40]}", ok("inspect", "a.parquet").stdout)
        ok("decode", "a.parquet", "-o", "b.txt", "--overwrite")
        assert Path("b.txt").read_text() == Path("a.txt").read_text()
    ok("inspect", "is -0.30000000000000004", "--numbers", "bits:64", "--html", "page.html")
    assert page_data(Path("page.html"))["views"][0]["rows"][0][1]["bits"] == bits.split()


def test_inspect_reads_standard_input_and_limits() -> None:
    told = ok("inspect", "--limit", "2", "--numbers", "xval", input="1 2 3 4\n5\n").stdout
    assert "5 numbers" in told
    assert "and 3 more" in told
    assert "⏎" in told
    assert ok("inspect", "no number at all").stdout.startswith("0 numbers")
    assert ok("inspect", "").exit_code == 0
    assert "byte 1 is not UTF-8" in run("inspect", input=b"a\xff").stderr


def test_inspect_in_colour() -> None:
    environment: dict[str, str | None] = {"FORCE_COLOR": "1", "NO_COLOR": None}
    assert "48;5;215m" in ok("inspect", "is 5", "--numbers", "xval", env=environment).stdout
    environment = {"FORCE_COLOR": None, "NO_COLOR": "1"}
    assert "\x1b" not in ok("inspect", "is 5", "--numbers", "xval", env=environment).stdout


# What goes wrong
# --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["encode", "missing.jsonl", "-o", "a.parquet"],
            "missing.jsonl: no such file or folder; check the path",
        ),
        (["encode", "sample.jsonl", "-o", "a.txt"], "a.txt: cannot tell the format by this name"),
        (
            ["encode", "sample.jsonl", "-o", "a.parquet", "--numbers", "nope"],
            "unknown representation 'nope'; choose from xval",
        ),
        (
            ["encode", "sample.jsonl", "-o", "a.parquet", "--text-column", "zz"],
            "no column 'zz'; the columns are 'id', 'text'",
        ),
        (["encode", "sample.jsonl", "-o", "a.parquet", "--keep-column", "zz"], "no column 'zz'"),
        (
            ["encode", "sample.jsonl", "-o", "a.parquet", "--tokenizer", "./nope"],
            "nope does not exist",
        ),
        (["encode", "sample.jsonl", "-o", "a.parquet", "--pattern", "("], "does not compile"),
        (["encode", "broken.jsonl", "-o", "a.parquet"], "broken.jsonl:2:"),
        (["encode", "latin.jsonl", "-o", "a.parquet"], "UTF-8"),
        (
            ["encode", "sample.jsonl", "-o", "there.parquet"],
            "there.parquet exists already; choose another name, or overwrite it with --overwrite",
        ),
        (["decode", "sample.jsonl", "-o", "b.jsonl"], "neither a Parquet nor an Arrow IPC file"),
        (["decode", "foreign.parquet", "-o", "b.jsonl"], "not written by numtok"),
        (["train", "numbers.txt", "-o", "t"], "no text to train on"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    arguments: list[str], message: str, folder: Path
) -> None:
    Path("broken.jsonl").write_text('{"text": "1"}\n{"text": \n')
    Path("latin.jsonl").write_bytes(b'{"text": "caf\xe9"}\n')
    Path("numbers.txt").write_text("1 2 3\n")
    Path("there.parquet").write_bytes(b"")
    pq.write_table(pa.table({"text": ["1"]}), "foreign.parquet")
    before = only_files(folder)
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.startswith("numtok: error: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert only_files(folder) == before


def test_usage_errors_have_their_own_code() -> None:
    assert run("encode").exit_code == 2
    assert run("encode", "a", "-o", "b", "--workers", "0").exit_code == 2
    assert run("nope").exit_code == 2
    unknown = run("encode", "a", "-o", "b", "--format", "jsnl")
    assert unknown.exit_code == 2
    assert (
        "Invalid value for '--format': 'jsnl' is not one of 'jsonl', 'json', 'csv', 'tsv', 'txt',"
        " 'parquet', 'arrow'." in unknown.output
    )


def test_a_bug_is_told_apart_and_debug_shows_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("numtok.corpus.calls.encode_files", broken)
    result = run("encode", "sample.jsonl", "-o", "a.parquet")
    assert result.exit_code == 1
    assert "this is a bug in numtok: ZeroDivisionError: oops" in result.stderr
    assert isinstance(
        run("encode", "sample.jsonl", "-o", "a.parquet", "--debug").exception, ZeroDivisionError
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 MB of the sample, over and over."""
    path = tmp_path_factory.mktemp("large") / "large.jsonl"
    block = SAMPLE.read_bytes() * 300
    with path.open("wb") as file:
        while file.tell() < 200_000_000:
            file.write(block)
    return path


# Not ru_maxrss: it counts the memory of the process that was forked, here the one that runs the
# tests.
MEASURED = """
import re, sys
from pathlib import Path
from numtok_cli.main import cli
cli(sys.argv[1:], standalone_mode=False)
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.slow
def test_memory_is_bounded(large: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        MEASURED,
        "encode",
        str(large),
        "-o",
        str(tmp_path / "a.parquet"),
        "-q",
    ]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert (
        int(told) < 800 << 10
    )  # kilobytes, hence 800 MiB: 450 to 620 for any file, and some 1,000 if all of this one is held
    assert pq.read_metadata(tmp_path / "a.parquet").num_rows == large.read_bytes().count(b"\n")


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_nothing(
    sent: signal.Signals, code: int, large: Path, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "numtok_cli.main",
        "encode",
        str(large),
        "-o",
        str(tmp_path / "a.parquet"),
        "--compression",
        "none",
    ]
    running = interrupts.start(command)
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size > 1_000_000 for path in tmp_path.iterdir()):
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(sent)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == code
    assert "Traceback" not in errors
    if sent == signal.SIGINT:
        assert errors.endswith("numtok: error: interrupted; nothing half-written is left\n")
    assert only_files(tmp_path) == set()


@pytest.mark.parametrize("numbers", ["bits", "xval"])
def test_an_interrupt_while_waiting_for_standard_input(numbers: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "numtok_cli.main",
        "encode",
        "-",
        "-o",
        str(tmp_path / "a.parquet"),
        "--numbers",
        numbers,
    ]
    running = interrupts.start(command, stdin=subprocess.PIPE)
    running.stdin.write(
        '{"text": "' + "a" * 500_000
    )  # more than a pipe holds: it waits until most is read
    running.stdin.flush()
    time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=30) == 130
    assert only_files(tmp_path) == set()
    for stream in (running.stdin, running.stdout, running.stderr):
        stream.close()


def test_a_full_disk_is_an_error_and_leaves_nothing(large: Path, tmp_path: Path) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))

    result = process(
        "encode",
        str(large),
        "-o",
        str(tmp_path / "a.parquet"),
        "-q",
        "--compression",
        "none",
        preexec_fn=limit,
    )
    assert result.returncode == 1
    assert re.match(
        r"numtok: error: cannot write .*a\.parquet: File too large, after [\d,]+ bytes",
        result.stderr,
    )
    assert result.stderr.count("\n") == 1
    assert only_files(tmp_path) == set()


# What is printed
# --------------------------------------------------------------------------------------------------------


def test_sizes_and_durations() -> None:
    assert [size(count) for count in (0, 999, 1000, 12_345, 999_600, 10**9, 5 * 10**12)] == [
        "0 B", "999 B", "1.0 kB", "12.3 kB", "1.0 MB", "1.0 GB", "5000 GB",
    ]  # fmt: skip
    assert [duration(seconds) for seconds in (0.04, 9.94, 9.96, 59.6, 185, 7385)] == [
        "0.0 s",
        "9.9 s",
        "10 s",
        "1:00",
        "3:05",
        "2:03:05",
    ]
    assert counts({"xval": 1234, "bits": 0, "a": 1}) == "1 by a, 1,234 by xval"


def test_a_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([("a", "1,000", ""), ("long", "2", "remark")], "title")
    assert capsys.readouterr().out == "title\n  a     1,000\n  long      2  remark\n"


def tell(line: ProgressLine) -> Iterator[None]:
    for k in range(5):
        yield line(Progress(k * 10_000_000, 40_000_000, k, k, k, k * 4.0))


def test_progress_without_a_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ProgressLine(quiet=False) as line:
        list(tell(line))
    assert (
        capsys.readouterr().err
        == "numtok:  50%  20.0 MB of 40.0 MB  2.5 MB/s  8.0 s left\nnumtok: 100%  40.0 MB of 40.0"
        " MB  2.5 MB/s  0.0 s left\n"
    )
    with ProgressLine(quiet=True) as line:
        list(tell(line))
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_redraws_one_line_and_clears_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    with ProgressLine(quiet=False) as line:
        list(tell(line))
    drawn = capsys.readouterr().err
    assert "\n" not in drawn
    assert drawn.endswith("\r\x1b[K")
    assert "━━━━━━━━━━╌" in drawn
    assert all(len(part) <= 100 for part in drawn.split("\r\x1b[K"))
