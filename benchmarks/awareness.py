"""Number awareness: the time of ``encode_batch`` over gigatoken's own time on the same raw text,
for every kind of text and for the pre-tokenizers in use.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import tokenizers
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers

import numtok
from benchmarks.corpus import Corpus
from benchmarks.encode import check_encoding, check_gigatoken, gigatoken_alone
from benchmarks.kinds import KINDS, SIZE
from benchmarks.timing import Goal, Section, alternate
from numtok.engines.gigatoken.byte_level import GPT4O, LLAMA3, QWEN2

PATTERNS = {"Llama 3": LLAMA3, "Qwen 2": QWEN2, "GPT-4o": GPT4O}
VOCABULARY = 16_000


def run(corpus: Corpus) -> Section:
    """Measure kinds of text with the corpus's tokenizer, then prose with tokenizers trained on
    other pages.
    """
    section = Section(
        "Number awareness: encode_batch with XVal over gigatoken alone on the raw text, one thread"
    )
    size = 5_000 if corpus.quick else SIZE
    for kind in KINDS:
        _measure(
            section, corpus.with_texts(kind.name, kind.texts(corpus, size)), kind.floor, kind.aim
        )
    seen, held_out = corpus.texts[::2], corpus.texts[1::2] or corpus.texts
    with tempfile.TemporaryDirectory() as folder:
        for name, pattern in PATTERNS.items():
            trained = train_with_pattern(
                seen, pattern, Path(folder) / f"{name}.json", 300 if corpus.quick else VOCABULARY
            )
            _measure(
                section, corpus.with_texts(f"prose, pattern of {name}", held_out, trained), 1.9, 1.3
            )
    return section


def _measure(section: Section, corpus: Corpus, floor: float, aim: float) -> None:
    """Check and time one text, and add a row and its budget."""
    tokenizer = numtok.Tokenizer.from_pretrained(corpus.tokenizer, numbers=[numtok.XVal()])
    if tokenizer.engine.name != "gigatoken":
        section.notes.append(
            f"{corpus.name}: the engine is {tokenizer.engine.name}, as gigatoken does not take this"
            " tokenizer"
        )
        return
    section.checks.append(f"{corpus.name}: {check_encoding(tokenizer, corpus)}")
    raw = gigatoken_alone(corpus)
    section.checks.append(f"{corpus.name}: {check_gigatoken(raw, corpus)}")
    ours, alone = f"numtok encode_batch, {corpus.name}", f"gigatoken alone, {corpus.name}"
    timings = alternate(
        {ours: lambda: tokenizer.encode_batch(corpus.column), alone: raw}, corpus.budget(5)
    )
    section.add(timings, corpus.megabytes, ours)
    section.goals.append(
        Goal(
            f"number awareness, {corpus.name}",
            timings[ours].over(timings[alone]),
            floor,
            aim,
            "x",
            True,
        )
    )


def train_with_pattern(texts: list[str], pattern: str, path: Path, size: int) -> Path:
    """Train a small byte-level BPE tokenizer with the pre-tokenizer pattern of a model, save it,
    and return its path.
    """
    tokenizer = tokenizers.Tokenizer(models.BPE(ignore_merges=True))
    steps = [
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)  # type: ignore[arg-type]
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    )
    tokenizer.save(str(path))
    return path
