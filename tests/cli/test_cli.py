"""The commands: what they make, what they say of what goes wrong, and that nothing half-written is
left, through click's runner and as processes of their own.
"""

import json
import logging
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import click
import interrupts
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import tokenizers
from command import NUMTOK, ok, process, run
from numtok_cli.main import cli
from places import SAMPLE

import numtok
from numtok.corpus.write import json_lines
from numtok.tokenizer.layout import tensors_as_lists
from numtok.tokenizer.tokenizer_json import DEFAULT_FOLDER

ROWS = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the sample."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLE, tmp_path / "sample.jsonl")
    return tmp_path


def only_files(folder):
    return {path.name for path in folder.iterdir()}


# Help


def test_help_and_version():
    assert "encode" in process("--help").stdout
    assert ok("--version") == f"numtok {numtok.__version__}\n"


ANSWERS = {
    "answers.jsonl": '{"answer": "5", "output": "it is 5"}\n',
    "answers.csv": "prediction,target\nit is 5,5\n",
    "rag.jsonl": '{"answer": "5", "context": ["it is 5"], "question": "?"}\n',
    "samples_gsm8k.jsonl": '{"target": "5", "resps": [["it is 5"]]}\n',
}


@pytest.mark.parametrize("name", cli.commands)
def test_every_option_has_a_help_text_and_the_examples_run(name, folder):
    """In a folder of their own, so that none needs what those of another command leave; what they
    say they write is there, and nothing else.
    """
    for parameter in cli.commands[name].params:
        assert isinstance(parameter, click.Argument) or parameter.help, parameter.name
    _, _, epilog = cli.commands[name].epilog.partition("Examples")[2].partition(":\n")
    examples = [line.strip() for line in epilog.splitlines() if line.strip()]
    assert examples
    outputs = set(ANSWERS if name == "score" else {})
    outputs |= {"data", "plain"} if name == "export" else set()
    for file in outputs & ANSWERS.keys():
        Path(file).write_text(ANSWERS[file])
    for line in examples:
        # all of warm-up takes half a minute
        if name == "playground" or line == "numtok warm-up" or "warm-up --tokenizer" in line:
            continue
        piped, words = re.fullmatch(r"(?:(.+?) \| )?numtok (.+)", line).groups()
        given = piped and subprocess.run(piped, shell=True, capture_output=True).stdout
        ok(words, input=given)
        outputs |= set(re.findall(r" (?:-o|--html|--json) (\w[\w.-]+)", line))
    assert only_files(folder) == {"sample.jsonl", *outputs}
    if "back.jsonl" in outputs:
        back = map(json.loads, Path("back.jsonl").read_text().splitlines())
        assert [row["text"] for row in back] == [row["text"] for row in ROWS]


# Encode and decode


def test_the_sample_comes_back_and_the_summary_says_what_it_came_to(folder):
    before = logging.getLogger("numtok").level
    told = ok(
        "encode sample.jsonl -o a.parquet --numbers xval:log,bits --keep-text --keep-column id"
    )
    assert re.search(r"documents +31\n", told) and re.search(r"text .* of 'text'; ", told)
    assert ok("decode a.parquet -o back.jsonl -q") == ""
    assert list(map(json.loads, Path("back.jsonl").read_text().splitlines())) == ROWS
    assert logging.getLogger("numtok").level == before, "a quiet command hushes itself alone"


@pytest.mark.parametrize("special", ["", "--add-special-tokens"])
def test_how_full_packed_rows_are_is_told_where_it_is_known(special, folder):
    tokenizer = tokenizers.Tokenizer.from_file(str(DEFAULT_FOLDER / "tokenizer.json"))
    end = ("<|endoftext|>", tokenizer.token_to_id("<|endoftext|>"))
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"$A {end[0]}", special_tokens=[end]
    )
    tokenizer.save("framed.json")
    told = ok(f"encode sample.jsonl -o a.parquet --tokenizer framed.json --pack 16 {special}")
    lengths = pc.list_value_length(pq.read_table("a.parquet")["input_ids"])
    share = f", {pc.sum(lengths).as_py() / 16 / len(lengths):.2%} full"
    assert (share in told) is (not special) and told.count("full") == (not special)


def test_rows_without_a_text_are_told(folder):
    Path("a.jsonl").write_text('{"text": "1"}\n{"txt": "lost"}\n{"text": null}\n{"text": ""}\n')
    told = (
        "numtok: warning: 2 of 4 documents have no text (it is missing or null) and are null rows"
    )
    assert run("encode a.jsonl -o a.parquet -q").stderr == f"{told}, the first in a.jsonl, row 2\n"
    Path("b.jsonl").write_text('{"text": "1"}\n')
    assert run("encode b.jsonl -o b.parquet -q").stderr == ""
    made = numtok.encode_files(["b.jsonl", "a.jsonl"], "c.parquet", batch_bytes=10)
    assert (made.documents, made.without_text) == (5, 2)
    assert made.first_without_text == "a.jsonl, row 2"


def test_a_slower_engine_is_a_warning_on_one_line(folder):
    config = json.loads((DEFAULT_FOLDER / "tokenizer.json").read_text("utf-8"))
    Path("odd.json").write_text(json.dumps(config | {"normalizer": {"type": "Lowercase"}}))
    told = process(
        "encode sample.jsonl -o a.parquet --tokenizer odd.json --numbers digits -q"
    ).stderr
    warning = r"numtok: warning: using the slower engine 'tokenizers', because [^\n]*\n"
    assert re.fullmatch(warning, told)


# Standard output as the output


def test_what_comes_out_is_what_a_file_would_hold(folder):
    piped = f"encode {SAMPLE} --numbers xval:log,bits,fone:6,4 --keep-column id -o"
    ok(f"{piped} file.arrow")
    batches = pa.ipc.open_file("file.arrow").read_all().to_batches()
    rows = pa.Table.from_batches([tensors_as_lists(batch) for batch in batches]).to_pylist()
    lines = run(f"{piped} -")
    assert [json.loads(line) for line in lines.stdout.splitlines()] == rows and len(rows) > 20
    assert "standard output" in lines.stderr and "documents" in lines.stderr
    stream = run(f"{piped} - --output-format arrow").stdout_bytes
    table = pa.ipc.open_stream(stream).read_all()
    assert table.to_pylist() == rows and b"numtok" in table.schema.metadata
    ok(f"{piped} out.jsonl --output-format jsonl")
    assert Path("out.jsonl").read_bytes() == lines.stdout_bytes


def test_decoded_text_is_alone_on_standard_output(folder):
    ok(f"encode {SAMPLE} -o kept.parquet --keep-text --keep-column id")
    ok("decode kept.parquet -o back.jsonl")
    piped = run("decode kept.parquet -o -")
    assert piped.stdout_bytes == Path("back.jsonl").read_bytes()
    assert "standard output" in piped.stderr and "documents" in piped.stderr


@pytest.mark.parametrize("kind", ["jsonl", "arrow"])
def test_a_closed_pipe_is_no_error(folder, kind):
    (folder / "many.jsonl").write_bytes(SAMPLE.read_bytes() * 30)
    command = [
        *NUMTOK,
        *f"encode many.jsonl -o - --output-format {kind} -q --numbers place".split(),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


def test_infinite_values_are_numbers_that_read_back():
    text = ['"Infinity" is a word']
    batch = pa.record_batch({"id": text, "value": [[1e400, -1e400, float("nan"), 0.5]]})
    (line,) = json_lines(batch.replace_schema_metadata({}))
    assert line == '{"id": "\\"Infinity\\" is a word", "value": [1e999, -1e999, null, 0.5]}\n'


# What goes wrong


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A folder with the sample, a tokenizer trained on it, and much that is wrong."""
    folder = tmp_path_factory.mktemp("wrong")
    shutil.copy(SAMPLE, folder / "sample.jsonl")
    (folder / "broken.jsonl").write_text('{"text": "1"}\n{"text": \n')
    (folder / "numbers.txt").write_text("1 2 3\n")
    (folder / "huge.txt").write_text("c 1e400\n")
    (folder / "there.parquet").write_bytes(b"")
    pq.write_table(pa.table({"text": ["1"]}), folder / "foreign.parquet")
    told = ok(f"train {SAMPLE} -o {folder}/mine --vocab-size 600 --min-frequency 1")
    assert "600\n" in told
    ok(f"encode {SAMPLE} -o {folder}/encoded.parquet --numbers bits --tokenizer {folder}/mine")
    return folder


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("encode missing.jsonl -o a.parquet", "missing.jsonl: no such file or folder; check the path"),
        ("encode sample.jsonl -o - --output-format parquet --numbers bits", "give it a name with -o"),
        ("encode huge.txt -o a.parquet --overflow error",
         "huge.txt, row 1: byte 2: xval cannot hold 1e400; use overflow='text' (--overflow text) to leave such"),
        ("encode broken.jsonl -o a.parquet", "broken.jsonl:2:"),
        ("encode sample.jsonl -o there.parquet --numbers bits",
         "there.parquet exists already; choose another name, or overwrite it with overwrite=True (--overwrite)"),
        ("decode foreign.parquet -o b.jsonl", "not written by numtok"),
        ("decode encoded.parquet -o b.jsonl", "another tokenizer than the default one"),
        ("train numbers.txt -o t", "no text to train on"),
        ("train sample.jsonl -o mine", "exists already"),
        ("stats sample.jsonl --pattern [a-z]+", "sample.jsonl, row 1"),
        ("encode sample.jsonl -o b.parquet --format jsnl", "unknown format 'jsnl'; known are jsonl, "),
    ],
)  # fmt: skip
def test_errors_are_one_line_and_leave_nothing(words, message, wrong, monkeypatch):
    monkeypatch.chdir(wrong)
    before = only_files(wrong)
    result = run(words)
    assert result.exit_code == 1 and result.stdout == "" and only_files(wrong) == before
    assert result.stderr.startswith("numtok: error: ") and result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("nope", "No such command 'nope'"),
        ("encode a -o b --numbers xval --numbers bits", "--numbers is given twice"),
        ("encode a -o b --output p", "is given twice"),
    ],
)
def test_usage_errors_have_their_own_code(words, told):
    result = run(words)
    assert result.exit_code == 2 and told in result.stderr


def test_a_bug_is_told_apart_and_debug_shows_it(folder, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("numtok.encode_files", broken)
    result = run("encode sample.jsonl -o a.parquet")
    assert result.exit_code == 1
    assert "this is a bug in numtok: ZeroDivisionError: oops" in result.stderr
    debugged = run("encode sample.jsonl -o a.parquet --debug")
    assert isinstance(debugged.exception, ZeroDivisionError)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """80 MB of the sample, over and over."""
    path = tmp_path_factory.mktemp("large") / "large.jsonl"
    with path.open("wb") as file:
        while file.tell() < 80_000_000:
            file.write(SAMPLE.read_bytes() * 300)
    return path


@pytest.mark.parametrize(
    ("sent", "code", "again"), [(signal.SIGINT, 130, False), (signal.SIGTERM, 143, True)]
)
def test_a_signal_leaves_nothing(sent, code, again, large, tmp_path):
    """Nor do more of them spoil the end."""
    words = f"encode {large} -o {tmp_path}/a.parquet --numbers bits --compression none"
    running = interrupts.start([*NUMTOK, *words.split()])
    interrupts.wait_for(lambda: any(path.stat().st_size > 1_000_000 for path in tmp_path.iterdir()))
    running.send_signal(sent)
    while again and running.poll() is None:
        running.send_signal(sent)
        time.sleep(0.0005)
    _, errors = running.communicate(timeout=interrupts.LONG)
    assert running.returncode == code and "Traceback" not in errors
    if sent == signal.SIGINT:
        assert errors.endswith("numtok: error: interrupted; nothing half-written is left\n")
    assert only_files(tmp_path) == set()
