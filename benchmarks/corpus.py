"""The text and the tokenizer to measure with.

The text is a JSON lines file with the field ``text``; the tokenizer a ``tokenizer.json`` of
byte-level BPE. Where no shared data are at hand, the sample in ``examples/``, repeated, and the
default tokenizer stand in, and the report says so.
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
# bytes: a smaller text is repeated up to the first; --quick takes no more than the second
SMALL, QUICK = (
    2_000_000,
    20_000,
)


@dataclass(frozen=True)
class Corpus:
    """Text in the forms that the peers take.

    Attributes:
        name, tokenizer_name: for people.
        texts: one str per document. column: the same in Arrow.
        nbytes: of the text, in UTF-8.
        lines: the same as JSON lines.
        tokenizer: a tokenizer.json.
        quick: whether little time is to be spent.
        memory: whether the command line is also run on 2 GB.
    """

    name: str
    tokenizer_name: str
    texts: list[str]
    column: pa.LargeStringArray
    nbytes: int
    lines: bytes
    tokenizer: Path
    quick: bool
    memory: bool

    @property
    def megabytes(self) -> float:
        return self.nbytes / 1e6

    def with_texts(self, name: str, texts: list[str], tokenizer: Path | None = None) -> Corpus:
        """The same settings for another text, and another tokenizer if one is given."""
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
        """Seconds to spend on one comparison; none if little time is to be spent, which is the
        least number of turns, of one call each.
        """
        return 0.0 if self.quick else seconds


def shared_folder() -> Path | None:
    """The folder of larger corpora and tokenizers: ``$NUMTOK_SHARED``, or ``shared`` beside the
    checkout.
    """
    named = os.environ.get("NUMTOK_SHARED")
    folder = Path(named) if named else ROOT.parent / "shared"
    return folder if folder.is_dir() else None


def load(
    path: Path | None = None,
    tokenizer: Path | None = None,
    quick: bool = False,
    memory: bool = False,
) -> Corpus:
    """Read what the arguments name, or the best there is.

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
        memory,
    )


def _first(*paths: Path | None) -> Path:
    """The first of them that exists, or the last."""
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
