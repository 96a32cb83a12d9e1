"""The drop-in Hugging Face tokenizer beside the plain fast tokenizer of the same file, and the ways
into ``datasets``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import numtok
from benchmarks.corpus import Corpus
from benchmarks.timing import Goal, Section, alternate, check


def run(corpus: Corpus) -> Section:
    """``tokenizer(texts)``, with and without number streams."""
    section = Section("The drop-in Hugging Face tokenizer, one thread")
    try:
        plain, ours = _tokenizers(corpus)
    except ImportError as error:
        section.error = f"left out: {error}; pip install '.[hf]'"
        return section
    section.checks.append(check_drop_in(ours, plain, corpus))
    texts = corpus.texts
    name, plain_name = "numtok tokenizer(texts)", "plain fast tokenizer(texts), no numbers"
    timings = alternate(
        {
            name: lambda: ours(texts),
            "numtok tokenizer(texts, return_numbers=True)": lambda: ours(
                texts, return_numbers=True
            ),
            "numtok tokenizer(texts, return_offsets_mapping=True)": lambda: ours(
                texts, return_offsets_mapping=True
            ),
            plain_name: lambda: plain(texts),
            "plain fast tokenizer(texts, return_offsets_mapping=True)": lambda: plain(
                texts, return_offsets_mapping=True
            ),
        },
        corpus.budget(40),
    )
    section.add(timings, corpus.megabytes, name)
    section.goals.append(
        Goal(
            "tokenizer(texts) against the plain fast tokenizer",
            timings[plain_name].over(timings[name]),
            1,
            5,
            "x",
        )
    )
    return section


def run_map(corpus: Corpus) -> Section:
    """``datasets.Dataset.map`` with batches of 100 rows, in one process."""
    section = Section("datasets.map, batches of 100 texts, one process")
    try:
        import datasets

        plain, ours = _tokenizers(corpus)
    except ImportError as error:
        section.error = f"left out: {error}; pip install '.[hf]'"
        return section
    datasets.disable_progress_bars()
    ours.return_numbers = True
    section.checks.append(check_drop_in(ours, plain, corpus))
    dataset = datasets.Dataset.from_dict({"text": corpus.texts})

    def mapped(source: Any, function: Any) -> Any:
        return source.map(
            function,
            batched=True,
            batch_size=100,
            remove_columns=["text"],
            load_from_cache_file=False,
        )

    name = "numtok, map(tokenizer), streams in Python lists"
    timings = alternate(
        {
            name: lambda: mapped(dataset, lambda rows: ours(rows["text"])),
            "plain fast tokenizer, map(tokenizer), no numbers": lambda: mapped(
                dataset, lambda rows: plain(rows["text"])
            ),
        },
        corpus.budget(30),
    )
    section.add(timings, corpus.megabytes, name)
    return section


def _tokenizers(corpus: Corpus) -> tuple[Any, Any]:
    """The plain fast tokenizer of the corpus, and numtok's."""
    from transformers import PreTrainedTokenizerFast

    from numtok.hf import NumberTokenizer

    plain = PreTrainedTokenizerFast(tokenizer_file=str(corpus.tokenizer))
    return plain, NumberTokenizer.from_tokenizer(plain, numbers=[numtok.XVal()])


def check_drop_in(ours: Any, plain: Any, corpus: Corpus) -> str:
    """The quick way gives what the general way gives, and that is what the plain tokenizer gives
    with [NUM] for each number.
    """
    from numtok.hf.general import Call, encode_generally

    few = corpus.texts[: 20 if corpus.quick else 100]
    ours(corpus.texts)  # enough text for its engine
    quick, general = (
        ours(few, return_numbers=True),
        encode_generally(ours, ours.backend_state(), Call(few, None, True, {})),
    )
    check(dict(quick) == dict(general), "the quick and the general way differ")
    texts = [text for text in few if "[NUM]" not in text]
    kept = [numtok.scan([text]) for text in texts]
    texts = [
        text
        for text, numbers in zip(texts, kept, strict=True)
        if ours.numtok.representations[0].fits(numbers).all()
    ]
    # [NUM] is one of its added tokens
    reference = type(plain)(tokenizer_object=ours.backend_tokenizer)
    written = []
    for text in texts:
        at, pieces = 0, []
        for number in numtok.extract(text):
            pieces += [text[at : number.start], "[NUM]"]
            at = number.stop
        written.append("".join(pieces) + text[at:])
    check(
        ours(texts)["input_ids"] == reference(written)["input_ids"],
        "the ids are not those of the plain tokenizer with [NUM]",
    )
    count = int(np.sum([np.sum(row) for row in quick["number_mask"]]))
    return (
        f"quick and general way agree on {len(few)} documents with {count:,} numbers; ids of"
        f" {len(texts)} equal the plain tokenizer's with [NUM]"
    )
