"""What a model wrote as text: which tokens begin numbers, what stands for each number, and what a
continuation adds to its prompt.

In: token ids, and the text of each number where tokens do not say it. Out: text. Inverse: the
    tokenizer, as far as the text of numbers does not run into the text beside it (``[NUM][NUM]``
    with 1 and 2 is 12).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from numtok import Tokenizer
from numtok.numbers.grammar import Grammar
from numtok.numbers.marks import in_marks_of
from numtok.numbers.scan import scan
from numtok.tokenizer import detokenize as decode
from numtok.tokenizer.schema import read_metadata


def number_ids(tokenizer: Tokenizer) -> list[int]:
    """The tokens that stand for a number, or begin one that is spelled out; none for numbers that
    are plain text.
    """
    metadata = read_metadata(tokenizer.batch_schema())
    first = tokenizer.representations[0]
    if (symbols := metadata.get("symbols")) and not first.bracketed:
        plain, spaced = (
            [token_id for start, count in symbols[form] for token_id in range(start, start + count)]
            for form in ("plain", "spaced")
        )
        return [*(plain[symbol] for symbol in first.first_symbols), *spaced]
    return [number for content, number in metadata["tokens"].items() if content.strip() == "[NUM]"]


def spelled(
    tokenizer: Tokenizer, ids: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
) -> list[str]:
    """The text of the numbers that are spelled out from ``places`` on, in the marks of the grammar;
    what is no number, as its symbols.
    """
    if not len(places) or not tokenizer.representations[0].token_strings:
        return []
    texts = in_marks_of(tokenizer.grammar, tokenizer.read_spelled(ids.astype(np.int32), places))
    return [str(text) for text in texts.to_pylist()]


def value_of(surface: str, grammar: Grammar) -> float:
    """Of the text of a number, as the grammar reads it; NaN if it is none."""
    numbers = scan([surface], grammar)
    return (
        float(numbers.to_float64()[0]) if numbers.text().to_pylist() == [surface] else float("nan")
    )


def continuation(
    tokenizer: Tokenizer, prompt: list[int], ids: list[int], surfaces: list[str]
) -> str:
    """The text of the new ids; where decoders put spaces as they see fit, what they add to the
    prompt.
    """
    given = surfaces if tokenizer.representations[0].one_token else None
    alone = tokenizer.decode(ids, given)
    if decode.is_lossless(tokenizer.config):
        return alone
    stand_ins = None if given is None else ["0"] * int(np.isin(prompt, number_ids(tokenizer)).sum())
    before = tokenizer.decode(prompt, stand_ins)
    whole = tokenizer.decode(
        [*prompt, *ids], None if stand_ins is None or given is None else [*stand_ins, *given]
    )
    return whole.removeprefix(before) if whole.startswith(before) else alone
