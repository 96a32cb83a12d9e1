"""The text and the tokenizer of the benchmarks.

The text is a JSON lines file with the field ``text``, the tokenizer a ``tokenizer.json`` of
byte-level BPE. Without the shared data, the sample in ``examples/``, repeated, and the default
tokenizer are taken, and the report says so.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "examples" / "sample.jsonl"
DEFAULT_TOKENIZER = ROOT / "numtok" / "default" / "tokenizer.json"
SMALL = 2_000_000  # bytes; a smaller text is repeated
QUICK = 20_000  # bytes of the text of --quick, about


@dataclass(frozen=True)
class Corpus:
    """Text in the forms that the peers take.

    Attributes:
        name, tokenizer_name: names for the report.
        texts: one str per document.
        column: the texts in Arrow.
        nbytes: bytes of the texts in UTF-8.
        lines: the texts as JSON lines.
        tokenizer: path of a tokenizer.json.
        quick: whether the run is only to show that everything works.
    """

    name: str
    tokenizer_name: str
    texts: list[str]
    column: pa.LargeStringArray
    nbytes: int
    lines: bytes
    tokenizer: Path
    quick: bool

    @property
    def megabytes(self) -> float:
        return self.nbytes / 1e6

    def with_texts(self, name: str, texts: list[str], tokenizer: Path | None = None) -> Corpus:
        """Return a corpus of other texts, with another tokenizer if one is given."""
        column = pa.array(texts, pa.large_string())
        chosen = tokenizer or self.tokenizer
        return dataclasses.replace(
            self,
            name=name,
            tokenizer_name=chosen.name,
            texts=texts,
            column=column,
            nbytes=sum(len(text.encode()) for text in texts),
            lines=b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts),
            tokenizer=chosen,
        )

    def budget(self, seconds: float) -> float:
        """Return the seconds to spend on one comparison; 0 for a quick run, which takes the least
        number of turns, of one call each.
        """
        return 0.0 if self.quick else seconds


def shared_folder() -> Path | None:
    """Return the folder of larger corpora and tokenizers: ``$NUMTOK_SHARED``, or ``shared`` beside
    the checkout; None if it is missing.
    """
    named = os.environ.get("NUMTOK_SHARED")
    folder = Path(named) if named else ROOT.parent / "shared"
    return folder if folder.is_dir() else None


def load(
    path: Path | None = None,
    tokenizer: Path | None = None,
    quick: bool = False,
) -> Corpus:
    """Read the named text and tokenizer, or the shared ones, or those of the repository.

    Raises:
        SystemExit: if a file is missing or not JSON lines with a text.
    """
    shared = shared_folder()
    path = path or _first(shared and shared / "corpora" / "wiki.jsonl", SAMPLE)
    tokenizer = tokenizer or _first(
        shared and shared / "tokenizers" / "gpt-neox-20b.json", DEFAULT_TOKENIZER
    )
    for needed in (path, tokenizer):
        if not needed.is_file():
            raise SystemExit(f"{needed} does not exist")
    lines = [line for line in path.read_bytes().splitlines() if line.strip()]
    texts = [_text(path, number, line) for number, line in enumerate(lines, 1)]
    sizes = [len(text.encode()) for text in texts]
    name = path.name
    if not sum(sizes):
        raise SystemExit(f"{path} holds no text")
    if quick:
        count = next((k for k in range(1, len(sizes)) if sum(sizes[:k]) > QUICK), len(sizes))
        lines, texts, sizes, name = (
            lines[:count],
            texts[:count],
            sizes[:count],
            f"{name}, its first {count} documents",
        )
    elif sum(sizes) < SMALL:
        times = -(-SMALL // sum(sizes))
        lines, texts, sizes, name = (
            lines * times,
            texts * times,
            sizes * times,
            f"{name}, repeated {times} times",
        )
    tokenizer_name = "the default tokenizer" if tokenizer == DEFAULT_TOKENIZER else tokenizer.name
    column = pa.array(texts, pa.large_string())
    return Corpus(
        name,
        tokenizer_name,
        texts,
        column,
        sum(sizes),
        b"\n".join(lines) + b"\n",
        tokenizer,
        quick,
    )


def _first(*paths: Path | None) -> Path:
    """Return the first path that exists, or the last."""
    there = [path for path in paths if path is not None]
    return next((path for path in there if path.is_file()), there[-1])


def _text(path: Path, number: int, line: bytes) -> str:
    try:
        return str(json.loads(line)["text"])
    except (ValueError, KeyError, TypeError) as error:
        raise SystemExit(
            f"{path}, line {number}: expected a JSON object with a text ({type(error).__name__}:"
            f" {error})"
        ) from error
