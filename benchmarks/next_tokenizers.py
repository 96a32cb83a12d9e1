"""The next version of ``tokenizers``: numtok on 1.0 beside 1.0 alone on the raw text, and numtok on
0.23 beside both, for the kinds of tokenizers that are met most.

1.0 is in ``.venv-next``, which ``make next`` makes; it encodes in a process of its own.
"""

from __future__ import annotations

import functools
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tokenizers

import numtok
from benchmarks.awareness import PATTERNS, train_with_pattern
from benchmarks.corpus import ROOT, Corpus
from benchmarks.drop_in_tokenizers import builders
from benchmarks.next_peer import sum_of_ids
from benchmarks.timing import Goal, Section, alternate, check
from numtok.engines.tokenizer_json import load_source

PYTHON = ROOT / ".venv-next" / "bin" / "python"
SIZE = 2_000_000  # bytes of text: 0.23 takes seconds for so much
LLAMA3_STYLE = "Llama-3-style"
FLOOR, AIM = 0.6, 1.0  # of the speed of 1.0 alone

Ask = Callable[[str], str]


def run(corpus: Corpus) -> Section:
    """Four or five rows and a budget for each kind."""
    section = Section("tokenizers 1.0: numtok on it, and on 0.23, beside it alone; one thread")
    if not PYTHON.is_file():
        section.notes.append("left out, as .venv-next is missing: run make next")
        return section
    total, texts = 0, []
    for text in corpus.texts:
        texts.append(text)
        if (total := total + len(text.encode())) > SIZE:
            break
    for kind in [*builders(), LLAMA3_STYLE][:: 3 if corpus.quick else 1]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.json"
            _save(kind, corpus, path)
            _measure(section, kind, corpus.with_texts(kind, texts, path), path)
    return section


def _save(kind: str, corpus: Corpus, path: Path) -> None:
    """Write the tokenizer.json of one kind."""
    if kind == LLAMA3_STYLE:
        train_with_pattern(
            corpus.texts[::2], PATTERNS["Llama 3"], path, 300 if corpus.quick else 16_000
        )
    else:
        builders()[kind](corpus).save(str(path))


def _measure(section: Section, kind: str, corpus: Corpus, path: Path) -> None:
    """Check the ids, time, and add the rows and the budget of one kind."""
    earlier = tokenizers.Tokenizer.from_str(json.dumps(load_source(path)))
    ours = numtok.Tokenizer.from_pretrained(path, [numtok.XVal(overflow="clip")])
    expected = sum_of_ids(ours.encode_batch(corpus.column))
    lines = path.with_name("texts.jsonl")
    lines.write_bytes(corpus.lines)
    with _peer(path, lines) as (about, ask):
        for engine in about["engines"]:
            right = ask(f"check {engine}") == expected
            check(right, f"{kind}: numtok on 1.0, engine {engine}, gives other ids than on 0.23")
        section.checks.append(f"{kind}: numtok gives the same ids on {about['version']} and 0.23")
        alone, auto = f"{kind}: 1.0 alone", f"{kind}: numtok on 1.0, {about['engines']['auto']}"
        peers: dict[str, Callable[[], object]] = {
            alone: functools.partial(ask, "alone"),
            auto: functools.partial(ask, "auto"),
        }
        if about["engines"]["auto"] != "tokenizers":
            peers[f"{kind}: numtok on 1.0, tokenizers"] = functools.partial(ask, "tokenizers")
        peers[f"{kind}: numtok on 0.23, {ours.engine.name}"] = functools.partial(
            ours.encode_batch, corpus.column
        )
        peers[f"{kind}: 0.23 alone"] = functools.partial(
            earlier.encode_batch_fast, corpus.texts, add_special_tokens=False
        )
        timings = alternate(peers, corpus.budget(20))
    section.add(timings, corpus.megabytes, alone)
    speed = timings[alone].over(timings[auto])
    section.goals.append(Goal(f"{kind}: numtok on 1.0 over 1.0 alone", speed, FLOOR, AIM, "x"))


@contextmanager
def _peer(tokenizer: Path, lines: Path) -> Iterator[tuple[dict[str, dict[str, str]], Ask]]:
    """Start the process of 1.0; (what it says of itself, how to ask it for one more round)."""
    command = [PYTHON, "-m", "benchmarks.next_peer", tokenizer, lines]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        sent, answers = process.stdin, process.stdout

        def ask(what: str) -> str:
            sent.write(what + "\n")
            sent.flush()
            answer = answers.readline()
            check(bool(answer), f"the process of tokenizers 1.0 ended before {what!r}")
            return answer.strip()

        first = answers.readline()
        check(bool(first), "the process of tokenizers 1.0 does not start")
        yield json.loads(first), ask
        sent.close()
