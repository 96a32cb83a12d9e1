"""FoNE, section 4.2, data efficiency: how many tokens the numbers of real pages take.

The paper counts tables of WikiTableQuestions. Here pages of Wikipedia are counted, which are full
of tables. The tokens of a page's numbers are counted exactly: all tokens of the page, less those of
the same page with every number as one placeholder, plus the placeholders. Numbers that are left to
the tokenizer count likewise.
"""

from __future__ import annotations

import json
from pathlib import Path

import numtok
from benchmarks.corpus import SAMPLE, shared_folder
from benchmarks.evidence import tables
from benchmarks.evidence.experiment import Experiment
from benchmarks.evidence.plots import bars, picture_link
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
    """Return one run for each tokenizer."""
    return [[{"size": size, "tokenizer": name} for name in TOKENIZERS]]


def run(settings: Settings, store: Store, folder: Path) -> Result:
    """Count the tokens of numbers in every representation."""
    shared, smoke = shared_folder() or Path(), settings["size"] == "smoke"
    corpus = shared / "corpora" / "wiki.jsonl"
    source = shared / "tokenizers" / TOKENIZERS[settings["tokenizer"]]
    chosen = str(source) if source.is_file() else None
    with (corpus if corpus.is_file() else SAMPLE).open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines][: 20 if smoke else None]
    names = (*REPRESENTATIONS[: 3 if smoke else None], "subword")
    batches = {
        name: numtok.Tokenizer.from_pretrained(chosen, name).encode_batch(texts) for name in names
    }
    tokens = {name: len(batch["input_ids"].flatten()) for name, batch in batches.items()}
    numbers = len(batches[ONE_TOKEN]["number_scaled"].flatten())
    words = tokens[ONE_TOKEN] - numbers
    return {
        "text": corpus.name if corpus.is_file() else SAMPLE.name,
        "tokenizer": source.name if chosen else "numtok's own",
        "pages": len(texts),
        "numbers": numbers,
        "words": words,
        "of_a_number": {
            name: round((count - words) / numbers, 3) for name, count in tokens.items()
        },
        "of_a_page": {
            name: round((count - words) / len(texts), 1) for name, count in tokens.items()
        },
    }


def section(results: list[tuple[Settings, Result]], plots: Path) -> str:
    """Return a table of the tokens of a number, and of all numbers of a page, and a picture."""
    counts = {settings["tokenizer"]: result for settings, result in results}
    names = [
        name
        for name in (*REPRESENTATIONS, "subword")
        if all(name in result["of_a_number"] for result in counts.values())
    ]
    rows = [
        [
            f"`{name}`",
            *(
                f"{result[unit][name]:,.2f}"
                for result in counts.values()
                for unit in ("of_a_number", "of_a_page")
            ),
        ]
        for name in names
    ]
    corpora = "\n".join(
        f"- {name}: {result['pages']} pages of {result['text']}, {result['numbers']:,} numbers,"
        f" {result['words']:,} other tokens"
        for name, result in counts.items()
    )
    brackets = (
        "Spelled-out numbers (`p10`, `digits:1`, `place` and so on) are counted with the `[NUM]`"
        " and `[/NUM]` around them, where they have these."
    )
    heads = [f"{name}, {unit}" for name in counts for unit in ("a number", "a page")]
    picture = plots / f"{NAME}.svg"
    bars(
        picture,
        {
            name: {numbers: [result["of_a_number"][numbers]] for numbers in names}
            for name, result in counts.items()
        },
        "tokens of a number",
    )
    table = tables.markdown(["tokens", *heads], rows)
    link = picture_link(picture, "Tokens of a number", names)
    return "\n\n".join([table, corpora, brackets, link])


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
    confidence="Shown, as it follows from how a number is written.",
    rows=(f"`{ONE_TOKEN}`", f"`{FONE}`", f"`{DIGITS}`", "`subword`"),
    columns=("GPT-2, a number",),
    picture="token_counts.svg",
    setup=(
        "Pages of Wikipedia are counted in place of the tables of WikiTableQuestions, so only ratios"
        " compare."
    ),
    verdict="""\
Shown, as it follows from how a number is written. Without `[NUM]` and `[/NUM]` around a number, which
the paper does not have, digits take 2.6 times the tokens of FoNE. With them, digits take 4.4 times the
tokens; in the paper 2.2 times.""",
)
