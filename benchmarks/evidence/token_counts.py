"""FoNE, section 4.2, data efficiency: how many tokens the numbers of real pages take.

The paper counts tables of WikiTableQuestions; here it is pages of Wikipedia, which are full of
tables. What a number takes in a representation is counted
exactly: the page's tokens, less those of the same page with every number as one token. Where
    numbers are left to the tokenizer, the difference is what it spends on them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import numtok
from benchmarks.corpus import SAMPLE, shared_folder
from benchmarks.evidence import tables
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.plots import bars, shown
from benchmarks.evidence.store import Result, Settings, Store

NAME = "token_counts"
ONE_TOKEN, FONE, DIGITS = "xval", "fone:6,4", "digits:1"
REPRESENTATIONS = (
    ONE_TOKEN,
    FONE,
    "bits",
    "bits:64",
    "fp15",
    "b1999",
    "p1000",
    "p10",
    "digits:3",
    DIGITS,
    "place",
    "numerologic",
    "float_digits",
)
TOKENIZERS = {"GPT-2": "gpt2.json", "GPT-NeoX": "gpt-neox-20b.json"}


def phases(size: str) -> list[list[Settings]]:
    """One run for each tokenizer; they take seconds."""
    return [[{"size": size, "tokenizer": name} for name in TOKENIZERS]]


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Count."""
    shared, smoke = shared_folder() or Path(), settings["size"] == "smoke"
    corpus, source = (
        shared / "corpora" / "wiki.jsonl",
        shared / "tokenizers" / TOKENIZERS[settings["tokenizer"]],
    )
    chosen = str(source) if source.is_file() else None
    with (corpus if corpus.is_file() else SAMPLE).open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines][: 20 if smoke else None]
    one = numtok.Tokenizer.from_pretrained(chosen, ONE_TOKEN).encode_batch(texts)
    # the same for every representation
    numbers = sum(len(positions) for positions in one["number_scaled"])
    words = _tokens(one) - numbers
    counts = {
        name: _tokens(numtok.Tokenizer.from_pretrained(chosen, name).encode_batch(texts))
        for name in (*REPRESENTATIONS[: 3 if smoke else None], "subword")
    }
    return {
        "text": corpus.name if corpus.is_file() else SAMPLE.name,
        "tokenizer": source.name if chosen else "numtok's own",
        "pages": len(texts),
        "numbers": numbers,
        "words": words,
        "of_a_number": {
            name: round((count - words) / numbers, 3) for name, count in counts.items()
        },
        "of_a_page": {
            name: round((count - words) / len(texts), 1) for name, count in counts.items()
        },
    }


def _tokens(batch: object) -> int:
    """Of all pages."""
    return int(np.sum([len(ids) for ids in batch["input_ids"]]))  # type: ignore[index]


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Tokens of a number, and of all numbers of a page."""
    found = {
        settings["tokenizer"]: result for settings, result in results if settings["size"] == "small"
    }
    names = [
        name
        for name in (*REPRESENTATIONS, "subword")
        if all(name in result["of_a_number"] for result in found.values())
    ]
    rows = [
        [
            f"`{name}`",
            *(
                f"{result[what][name]:,.2f}"
                for result in found.values()
                for what in ("of_a_number", "of_a_page")
            ),
        ]
        for name in names
    ]
    about = "\n".join(
        f"- {name}: {one['pages']} pages of {one['text']}, {one['numbers']:,} numbers,"
        f" {one['words']:,} other tokens"
        for name, one in found.items()
    )
    frame = (
        "Spelled-out numbers (`p10`, `digits:1`, `place` and so on) are counted with the `[NUM]`"
        " and `[/NUM]` around them, where they have these."
    )
    table = tables.markdown(
        ["tokens", *(f"{name}, {what}" for name in found for what in ("a number", "a page"))], rows
    )
    if not found:
        return table
    picture = plots / f"{NAME}.svg"
    bars(
        picture,
        {
            name: {numbers: [one["of_a_number"][numbers]] for numbers in names}
            for name, one in found.items()
        },
        "tokens of a number",
    )
    return f"{table}\n\n{about}\n\n{frame}\n\n{shown(picture, 'Tokens of a number', names)}"


EXPERIMENT = Experiment(
    NAME,
    "FoNE, section 4.2, data efficiency",
    "The numbers of a table of WikiTableQuestions take 149.25 tokens with FoNE, and 329.7 with digits"
    " as tokens.",
    phases,
    run,
    section,
    question="How many tokens does a number take?",
    result=(
        "Digits take 2.6 times the tokens of FoNE, and with `[NUM]` and `[/NUM]` 4.4 times;"
        " in the paper 2.2 times. Values such as `xval` take one token."
    ),
    sure="Shown, as it follows from how a number is written.",
    rows=(f"`{ONE_TOKEN}`", f"`{FONE}`", f"`{DIGITS}`", "`subword`"),
    columns=("GPT-2, a number",),
    picture="token_counts.svg",
    differs=(
        "Pages of Wikipedia are counted in place of the tables of WikiTableQuestions, so only ratios"
        " compare."
    ),
    verdict="""\
Shown, as it follows from how a number is written. Without `[NUM]` and `[/NUM]` around a number, which
the paper does not have, digits take 2.6 times the tokens of FoNE. With them, digits take 4.4 times the
tokens; in the paper 2.2 times.""",
)
