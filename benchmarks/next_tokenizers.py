"""``tokenizers`` 1.0: numtok on 1.0 and on 0.23 beside 1.0 alone on the raw text, for the most
frequent kinds of tokenizers.

``make next`` installs 1.0 into ``.venv-next``, and a process there encodes. All texts are new when
they are timed, as these programs cache words.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import tokenizers

import numtok
from benchmarks.awareness import PATTERNS, train_with_pattern
from benchmarks.corpus import ROOT, Corpus
from benchmarks.drop_in_tokenizers import builders
from benchmarks.next_peer import PARTS, parts_of, sum_of_ids
from benchmarks.timing import Goal, Section, check, on_new_text

PYTHON = ROOT / ".venv-next" / "bin" / "python"
LLAMA3_STYLE = "Llama-3-style"
FLOOR, AIM = 0.6, 1.0  # of the speed of 1.0 alone
WARM_UP = 3  # parts of the text that are encoded before the clock starts

Peer = Callable[[int], str]  # encodes a part of the text


def run(corpus: Corpus) -> Section:
    """Check and time every kind of tokenizer; four or five rows and a budget for each."""
    section = Section("tokenizers 1.0: numtok on it, and on 0.23, beside it alone; one thread")
    section.notes.append("the last column is the time over that of 1.0 alone")
    if not PYTHON.is_file():
        section.notes.append("left out, as .venv-next is missing: run make next")
        return section
    for kind in [*builders(), LLAMA3_STYLE][:: 3 if corpus.quick else 1]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.json"
            _save(kind, corpus, path)
            _measure(section, kind, corpus, path)
    return section


def _save(kind: str, corpus: Corpus, path: Path) -> None:
    """Write the tokenizer.json of one kind."""
    if kind == LLAMA3_STYLE:
        size = 300 if corpus.quick else 16_000
        train_with_pattern(corpus.texts[::2], PATTERNS["Llama 3"], path, size)
    else:
        builders()[kind](corpus).save(str(path))


def _measure(section: Section, kind: str, corpus: Corpus, path: Path) -> None:
    """Time, check the ids, and add the rows and the budget of one kind."""
    parts = parts_of(corpus.texts)
    columns = [pa.array(part, pa.large_string()) for part in parts]
    earlier = tokenizers.Tokenizer.from_file(str(path))
    ours = numtok.Tokenizer.from_pretrained(path, [numtok.XVal(overflow="clip")])
    lines = path.with_name("texts.jsonl")
    lines.write_bytes(corpus.lines)

    def alone_on_earlier(part: int) -> str:
        return str(len(earlier.encode_batch_fast(parts[part], add_special_tokens=False)))

    with _process(path, lines) as (engines, ask):
        names = {engine: f"{kind}: numtok on 1.0, {name}" for engine, name in engines.items()}
        alone, auto = f"{kind}: 1.0 alone", names["auto"]
        on_earlier = f"{kind}: numtok on 0.23, {type(ours.engine).__name__}"
        peers: dict[str, Peer] = {alone: lambda part: ask(f"{part} alone")}
        peers |= {name: lambda part, to=to: ask(f"{part} {to}") for to, name in names.items()}
        peers[on_earlier] = lambda part: sum_of_ids(ours.encode_batch(columns[part]))
        peers[f"{kind}: 0.23 alone"] = alone_on_earlier
        results: dict[str, list[str]] = {name: [] for name in peers}

        def keep(name: str, part: int) -> None:
            results[name].append(peers[name](part))

        timings = on_new_text({name: partial(keep, name) for name in peers}, PARTS, WARM_UP)
    for name in names.values():
        check(results[name] == results[on_earlier], f"{name} gives other ids than on 0.23")
    section.checks.append(f"{kind}: numtok gives the same ids on 1.0 as on 0.23")
    section.add(timings, corpus.megabytes / PARTS, alone)
    speed = timings[alone].over(timings[auto])
    section.goals.append(Goal(f"{kind}: numtok on 1.0 over 1.0 alone", speed, FLOOR, AIM, "x"))


@contextmanager
def _process(tokenizer: Path, lines: Path) -> Iterator[tuple[dict[str, str], Callable[[str], str]]]:
    """Start the process of 1.0, and yield its engines by name and a function that sends a line and
    returns the answer.
    """
    command = [PYTHON, "-m", "benchmarks.next_peer", tokenizer, lines]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        sent, answers = process.stdin, process.stdout

        def answer() -> str:
            line = answers.readline()
            check(bool(line), f"the process of tokenizers 1.0 ended: {command}")
            return line.strip()

        def ask(what: str) -> str:
            sent.write(what + "\n")
            sent.flush()
            return answer()

        yield json.loads(answer()), ask
        sent.close()
