"""The commands: what they make, what they say of what goes wrong, and that nothing half-written is
left, through click's runner and as processes of their own.
"""

from __future__ import annotations

import io
import json
import logging
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import interrupts
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from numtok_cli.main import cli
from places import SAMPLE

import numtok
from numtok.corpus.write import sinks
from numtok.corpus.write.sinks import json_lines
from numtok.engines.tokenizer_json import DEFAULT_FOLDER
from numtok.tokenizer.layout import plain

NUMTOK = [sys.executable, "-m", "numtok_cli.main"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the sample."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLE, tmp_path / "sample.jsonl")
    return tmp_path


def run(words: str, **options: Any) -> Result:
    return CliRunner().invoke(cli, shlex.split(words), **options)


def ok(words: str, **options: Any) -> Result:
    result = run(words, **options)
    assert result.exit_code == 0, result.output
    return result


def process(words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*NUMTOK, *shlex.split(words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)


def only_files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# Help


def test_help_loads_nothing_heavy() -> None:
    heavy = "('numtok', 'numpy', 'pyarrow', 'numba', 'tokenizers')"
    program = f"import sys, numtok_cli.main; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
    assert "encode" in process("--help").stdout
    assert ok("--version").output == f"numtok {numtok.__version__}\n"


def examples(name: str) -> list[str]:
    _, _, lines = (cli.commands[name].epilog or "").partition("Examples")[2].partition(":\n")
    return [line.strip() for line in lines.splitlines() if line.strip()]


ANSWERS = {
    "answers.jsonl": '{"answer": "5", "output": "it is 5"}\n',
    "answers.csv": "prediction,target\nit is 5,5\n",
    "samples_gsm8k.jsonl": '{"target": "5", "resps": [["it is 5"]]}\n',
}


@pytest.mark.parametrize("name", cli.commands)
def test_every_option_has_a_help_text_and_the_examples_run(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of their own, so that none needs what those of another command leave; what they
    say they write is there, and nothing else.
    """
    for parameter in cli.commands[name].params:
        assert isinstance(parameter, click.Argument) or parameter.help, parameter.name
    assert examples(name)
    given_files = ANSWERS if name == "score" else {}
    for file, content in given_files.items():
        Path(file).write_text(content)
    outputs = set(given_files)
    for line in examples(name):
        if name == "playground" or ("my-tokenizer" in line and name == "warm-up"):
            continue
        found = re.fullmatch(r"(?:(.+?) \| )?numtok (.+)", line)
        assert found
        given = (
            subprocess.run(found[1], shell=True, capture_output=True).stdout if found[1] else None
        )
        ok(found[2], input=given)
        outputs |= set(re.findall(r" (?:-o|--html|--json) (\w[\w.-]+)", line))
    made = {"data", "plain"} if name == "export" else set()
    assert only_files(folder) == {"sample.jsonl", *outputs, *made}
    if "back.jsonl" in outputs:
        texts = [json.loads(line)["text"] for line in SAMPLE.read_text().splitlines()]
        back = Path("back.jsonl").read_text().splitlines()
        assert [json.loads(line)["text"] for line in back] == texts


# Encode, decode, train


def test_the_sample_comes_back_and_the_summary_says_what_it_came_to(folder: Path) -> None:
    before = logging.getLogger("numtok").level
    told = ok("encode sample.jsonl -o a.parquet --numbers xval,bits --keep-text --keep-column id")
    assert re.search(r"documents +31\n", told.stdout)
    assert re.search(r"text .* of 'text'; ", told.stdout)
    assert ok("decode a.parquet -o back.jsonl -q").output == ""
    assert run("decode a.parquet -q").exit_code == 2
    back = [json.loads(line) for line in Path("back.jsonl").read_text().splitlines()]
    assert back == [json.loads(line) for line in SAMPLE.read_text().splitlines()]
    assert logging.getLogger("numtok").level == before, "a quiet command hushes itself alone"


def test_standard_input_and_options(folder: Path) -> None:
    given = "encode - -o a.arrow -q --grammar data --leading-space separate"
    assert ok(given, input='{"text": "is 1,234"}\n').output == ""
    table = pa.ipc.open_file("a.arrow").read_all()
    assert table.column("number_value").to_pylist() == [[1.0, 234.0]]
    metadata = json.loads(table.schema.metadata[b"numtok"])
    assert metadata["grammar"]["grouping"] is None and " [NUM]" not in metadata["tokens"]
    ok("decode a.arrow -o b.txt -q")
    assert Path("b.txt").read_text() == "is 1,234\n"


def test_a_slower_engine_is_a_warning_on_one_line(folder: Path) -> None:
    config = json.loads((DEFAULT_FOLDER / "tokenizer.json").read_text("utf-8"))
    odd = {"id": 16000, "content": "<x>", "lstrip": True, "special": False}
    config["added_tokens"].append(config["added_tokens"][0] | odd)
    Path("odd.json").write_text(json.dumps(config))
    told = process("encode sample.jsonl -o a.parquet --tokenizer odd.json --numbers bits -q").stderr
    warning = r"numtok: warning: using the slower engine 'tokenizers', because [^\n]*\n"
    assert re.fullmatch(warning, told)


# Standard output as the output

PIPED = f"encode {SAMPLE} --numbers xval,bits,fone:6,4 --keep-column id -o"


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample, a tokenizer trained on it, and much that is wrong."""
    folder = tmp_path_factory.mktemp("wrong")
    shutil.copy(SAMPLE, folder / "sample.jsonl")
    (folder / "broken.jsonl").write_text('{"text": "1"}\n{"text": \n')
    (folder / "numbers.txt").write_text("1 2 3\n")
    (folder / "huge.txt").write_text("c 1e400\n")
    (folder / "there.parquet").write_bytes(b"")
    pq.write_table(pa.table({"text": ["1"]}), folder / "foreign.parquet")
    assert (
        "600\n" in ok(f"train {SAMPLE} -o {folder}/mine --vocab-size 600 --min-frequency 1").stdout
    )
    ok(f"encode {SAMPLE} -o {folder}/encoded.parquet --tokenizer {folder}/mine")
    return folder


def test_what_comes_out_is_what_a_file_would_hold(folder: Path) -> None:
    ok(f"{PIPED} file.arrow")
    batches = pa.ipc.open_file("file.arrow").read_all().to_batches()
    rows = pa.Table.from_batches([plain(batch) for batch in batches]).to_pylist()
    piped = ok(f"{PIPED} -")
    assert [json.loads(line) for line in piped.stdout.splitlines()] == rows and len(rows) > 20
    assert "standard output" in piped.stderr and "documents" in piped.stderr
    stream = pa.ipc.open_stream(ok(f"{PIPED} - --output-format arrow").stdout_bytes)
    table = stream.read_all()
    assert table.to_pylist() == rows and b"numtok" in table.schema.metadata
    ok(f"{PIPED} out.jsonl --output-format jsonl")
    assert Path("out.jsonl").read_bytes() == piped.stdout_bytes


@pytest.mark.parametrize("kind", ["jsonl", "arrow"])
def test_a_closed_pipe_is_no_error(folder: Path, kind: str) -> None:
    (folder / "many.jsonl").write_bytes(SAMPLE.read_bytes() * 30)
    command = [*NUMTOK, *f"encode many.jsonl -o - --output-format {kind} -q --numbers bits".split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        assert running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


def test_infinite_values_are_numbers_that_read_back() -> None:
    text = ['"Infinity" is a word']
    batch = pa.record_batch({"id": text, "value": [[1e400, -1e400, float("nan"), 0.5]]})
    (line,) = json_lines(batch.replace_schema_metadata({}))
    assert line == '{"id": "\\"Infinity\\" is a word", "value": [1e999, -1e999, null, 0.5]}\n'


def test_a_long_row_is_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = [[[1, 2], [3, 4]], None, [], [[5, 6]]]
    columns = {
        "id": ["½", None, "", "d"],
        "ids": [[1, 2, 3, None], None, [], [4]],
        "numbers": pa.array([[0.5, float("inf"), 3e7], None, [], [float("nan")]]),
        "tensors": pa.array(tensors, pa.large_list(pa.list_(pa.uint8(), 2))),
    }
    batch = pa.record_batch(columns).replace_schema_metadata({})
    whole = "".join(json_lines(batch)).encode()
    monkeypatch.setattr(sinks, "LONG", 0)
    for piece in (1, 2, 1000):
        monkeypatch.setattr(sinks, "CHUNK", piece)
        out = io.BytesIO()
        sinks.FORMATS["jsonl"].sink(out, batch.schema, sinks.SinkOptions()).write(batch)
        assert out.getvalue() == whole
    monkeypatch.setattr(sinks, "CHUNK", 3)
    assert max(map(len, sinks.json_pieces(batch))) < len(whole) / 3


# What goes wrong


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("encode missing.jsonl -o a.parquet", "missing.jsonl: no such file or folder; check the path"),
        ("encode sample.jsonl -o a.txt", "a.txt: cannot tell the format by this name"),
        ("encode sample.jsonl -o - --output-format parquet", "give it a name with -o"),
        ("encode sample.jsonl -o a.parquet --numbers nope", "unknown representation 'nope'; choose"),
        ("encode sample.jsonl -o a.parquet --text-column z", "no column 'z'; the columns are 'id',"),
        ("encode sample.jsonl -o a.parquet --tokenizer ./nope", "nope does not exist"),
        ("encode sample.jsonl -o a.parquet --pattern (", "does not compile"),
        ("encode huge.txt -o a.parquet --overflow error",
         "huge.txt, row 1: byte 2: xval cannot hold 1e400; use --overflow text to leave such numbers"),
        ("encode broken.jsonl -o a.parquet", "broken.jsonl:2:"),
        ("encode sample.jsonl -o there.parquet",
         "there.parquet exists already; choose another name, or overwrite it with --overwrite"),
        ("decode sample.jsonl -o b.jsonl", "neither a Parquet nor an Arrow IPC file"),
        ("decode foreign.parquet -o b.jsonl", "not written by numtok"),
        ("decode encoded.parquet -o b.jsonl", "another tokenizer than the default one"),
        ("train numbers.txt -o t", "no text to train on"),
        ("train sample.jsonl -o mine", "exists already"),
        ("stats sample.jsonl --pattern [a-z]+", "sample.jsonl, row 1"),
        ("stats sample.jsonl --html no/page.html", "there is no folder"),
        ("inspect 5 --html no/a.html", "there is no folder"),
    ],
)  # fmt: skip
def test_errors_are_one_line_and_leave_nothing(
    words: str, message: str, wrong: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(wrong)
    before = only_files(wrong)
    result = run(words)
    assert result.exit_code == 1 and result.stdout == "" and only_files(wrong) == before
    assert result.stderr.startswith("numtok: error: ") and result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("encode", "Missing argument"),
        ("encode a -o b --workers 0", "not in the range"),
        ("nope", "No such command 'nope'"),
        ("encode a -o b --scale 1 --scale 2", "is given twice"),
        ("encode a -o b --output p", "is given twice"),
        ("inspect 5 --html a --html b", "is given twice"),
        (
            "encode a -o b --format jsnl",
            "'jsnl' is not one of 'jsonl', 'json', 'csv', 'tsv', 'txt',",
        ),
    ],
)
def test_usage_errors_have_their_own_code(words: str, told: str) -> None:
    result = run(words)
    assert result.exit_code == 2 and told in result.stderr


def test_a_bug_is_told_apart_and_debug_shows_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("numtok.encode_files", broken)
    result = run("encode sample.jsonl -o a.parquet")
    assert result.exit_code == 1
    assert "this is a bug in numtok: ZeroDivisionError: oops" in result.stderr
    debugged = run("encode sample.jsonl -o a.parquet --debug")
    assert isinstance(debugged.exception, ZeroDivisionError)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 MB of the sample, over and over."""
    path = tmp_path_factory.mktemp("large") / "large.jsonl"
    block = SAMPLE.read_bytes() * 300
    with path.open("wb") as file:
        while file.tell() < 200_000_000:
            file.write(block)
    return path


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_nothing(
    sent: signal.Signals, code: int, large: Path, tmp_path: Path
) -> None:
    words = f"encode {large} -o {tmp_path}/a.parquet --compression none"
    running = interrupts.start([*NUMTOK, *words.split()])
    interrupts.wait_for(lambda: any(path.stat().st_size > 1_000_000 for path in tmp_path.iterdir()))
    running.send_signal(sent)
    _, errors = running.communicate(timeout=interrupts.LONG)
    assert running.returncode == code and "Traceback" not in errors
    if sent == signal.SIGINT:
        assert errors.endswith("numtok: error: interrupted; nothing half-written is left\n")
    assert only_files(tmp_path) == set()


def test_an_interrupt_while_waiting_for_standard_input(tmp_path: Path) -> None:
    command = [*NUMTOK, "encode", "-", "-o", f"{tmp_path}/a.parquet"]
    with interrupts.start(command, stdin=subprocess.PIPE) as running:
        # more than a pipe holds: it waits until most is read
        running.stdin.write('{"text": "' + "a" * 500_000)
        running.stdin.flush()
        assert interrupts.end(running, signal.SIGINT) == 130 and only_files(tmp_path) == set()


def test_a_full_disk_is_an_error_and_leaves_nothing(large: Path, tmp_path: Path) -> None:
    words = f"encode {large} -o {tmp_path}/a.parquet -q --compression none"
    with interrupts.largest_file(3_000_000):
        result = process(words)
    told = r"numtok: error: cannot write .*a\.parquet: File too large, after [\d,]+ bytes[^\n]*\n"
    assert result.returncode == 1 and re.fullmatch(told, result.stderr)
    assert only_files(tmp_path) == set()
