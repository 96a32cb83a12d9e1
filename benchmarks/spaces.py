"""``python -m benchmarks.spaces``: the cost of the space before a number, in tokens and in changed
ids of the text.

In byte-level BPE a space belongs to the word after it. A number token without its space leaves a
single space, which is a further token, and one that the text does not have in context. For each
representation, with two forms of its tokens (``auto``) and with one (``separate``), on text:

- tokens per number: all tokens that are not text in context, divided by the numbers that became
  tokens. A text token is in context if the source tokenizer gives the same id at the same bytes of
  the whole text.
- text ids changed: the share of text tokens that are not in context.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import corpus
from numtok import Tokenizer
from numtok.arrays.text_rows import TextRows
from numtok.numbers.numbers import Numbers
from numtok.representations import NUM, Representation, Subword, parse
from numtok.tokenizer.decode import TokenBytes, token_bytes
from numtok.tokenizer.inspect import token_counts

NUMBERS = ("xval", "fone:6,4", "place", "digits:3", "p10", "p1000", "b1999", "fp15", "subword")
LEADING_SPACE = ("auto", "separate")
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Spaces:
    """Measurements of one representation and one setting of ``leading_space``.

    Attributes:
        representation: its specification.
        leading_space: ``auto`` or ``separate``.
        numbers: numbers that became tokens.
        left_as_text: numbers that a representation cannot hold.
        tokens_per_number, text_ids_changed: see the module.
        source_tokens_per_number: tokens of the source tokenizer that overlap a number.
    """

    representation: str
    leading_space: str
    numbers: int
    left_as_text: int
    tokens_per_number: float
    text_ids_changed: float
    source_tokens_per_number: float


def measure(
    texts: Sequence[str],
    source: Any,
    numbers: Sequence[Representation],
    leading_space: str = "auto",
) -> Spaces:
    """Measure one representation on texts with a byte-level BPE tokenizer.

    Documents that the tokenizer normalizes, so that the bytes of its tokens are not those of the
    text, are skipped.
    """
    tokenizer = Tokenizer.from_pretrained(source, numbers, leading_space=leading_space)
    plain = Tokenizer.from_pretrained(source, [Subword()])
    table = token_bytes(tokenizer.config)
    texts = [
        text for text, whole in zip(texts, _is_whole(plain, texts, table), strict=True) if whole
    ]
    rows = TextRows.of(texts)
    selected, _, is_selected = tokenizer.selector.select(rows)
    context = _Tokens.of(plain, rows, None, table)
    overlaps = _overlaps(context, selected)
    encoded = _Tokens.of(tokenizer, rows, None if numbers[0].stays_text else selected, table)
    same = np.isin(encoded.key[encoded.is_text], context.key[~overlaps])
    if numbers[0].stays_text:  # numbers are text: nothing changes
        same = ~overlaps
    text_tokens = max(len(same), 1)
    return Spaces(
        "+".join(one.spec() for one in numbers),
        leading_space,
        len(selected),
        int((~is_selected).sum()),
        (len(encoded.key) - int(same.sum())) / max(len(selected), 1),
        0.0 if numbers[0].stays_text else 1 - int(same.sum()) / text_tokens,
        int(overlaps.sum()) / max(len(selected), 1),
    )


@dataclass(frozen=True)
class _Tokens:
    """All tokens of a batch.

    Attributes:
        start, stop: span of each token in the bytes of all texts.
        key: start and id of each token as one number.
        is_text: whether each token is text.
    """

    start: Ints
    stop: Ints
    key: Ints
    is_text: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls, tokenizer: Tokenizer, rows: TextRows, selected: Numbers | None, table: TokenBytes
    ) -> _Tokens:
        """Encode texts; ``selected`` are the numbers that become number tokens, None if none do."""
        batch = tokenizer.encode_batch(rows.array)
        ids = batch["input_ids"].flatten().to_numpy().astype(np.int64)
        is_text = np.ones(len(ids), np.bool_)
        widths = np.diff(table.offsets)[ids]
        if selected is not None:
            lists = batch["number_index"]
            first = lists.flatten().to_numpy() + np.repeat(
                batch["input_ids"].offsets.to_numpy()[:-1], np.diff(lists.offsets.to_numpy())
            )
            counts = token_counts(tokenizer, selected)
            number_tokens = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(
                counts.sum()
            )
            is_text[number_tokens] = False
            widths[number_tokens] = 0
            with_space = [
                number
                for content, number in tokenizer.tokens.items()
                if content.startswith(f" {NUM[:-1]}")
            ]
            widths[first] = selected.stop - selected.start + np.isin(ids[first], with_space)
        stop = np.cumsum(widths)
        if stop[-1] != rows.offsets[-1]:
            raise SystemExit(f"the tokens cover {stop[-1]} bytes of a text of {rows.offsets[-1]}")
        start = stop - widths
        return cls(start, stop, start << 20 | ids, is_text)


def _is_whole(plain: Tokenizer, texts: Sequence[str], table: TokenBytes) -> list[bool]:
    """Return whether the tokens of each text have as many bytes as the text."""
    batch = plain.encode_batch(list(texts))
    widths = np.concatenate(
        [[0], np.cumsum(np.diff(table.offsets)[batch["input_ids"].flatten().to_numpy()])]
    )
    lengths = np.diff(widths[batch["input_ids"].offsets.to_numpy()])
    return [bool(length == len(text.encode())) for length, text in zip(lengths, texts, strict=True)]


def _overlaps(tokens: _Tokens, numbers: Numbers) -> npt.NDArray[np.bool_]:
    """Return which tokens contain a part of a number, bool [tokens]."""
    base = numbers.rows.offsets[numbers.document]
    first, last = base + numbers.start, base + numbers.stop
    # the first number that ends after the token's start
    following = np.searchsorted(last, tokens.start, "right")
    return np.append(first, np.iinfo(np.int64).max)[following] < tokens.stop


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each tokenizer."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spaces", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        help="a JSON lines file with the field text; default: the shared one, else the sample",
    )
    parser.add_argument(
        "--tokenizer",
        type=Path,
        action="append",
        help="a byte-level tokenizer.json; repeatable; default: as for the benchmarks",
    )
    parser.add_argument(
        "--numbers", action="append", help="representations, such as xval or fone:6,4; repeatable"
    )
    options = parser.parse_args(arguments)
    for path in options.tokenizer or [None]:
        loaded = corpus.load(options.corpus, path)
        print(f"{loaded.name}, {loaded.megabytes:.1f} MB, {loaded.tokenizer_name}")
        print(
            f"{'':12}{'numbers':>10}{'as text':>10}{'by source':>12}"
            + "".join(f"{mode:>12}{'changed':>10}" for mode in LEADING_SPACE)
        )
        for text in options.numbers or NUMBERS:
            measured = [
                measure(loaded.texts, loaded.tokenizer, parse(text), mode) for mode in LEADING_SPACE
            ]
            counts = f"{measured[0].numbers:>10,}{measured[0].left_as_text:>10,}{measured[0].source_tokens_per_number:>12.2f}"
            print(
                f"{text:12}{counts}"
                + "".join(
                    f"{one.tokens_per_number:>12.2f}{one.text_ids_changed:>10.2%}"
                    for one in measured
                ),
                flush=True,
            )
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
