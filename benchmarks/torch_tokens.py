"""Losses on the tokens of numbers beside those of the package ``ntloss``, and what it costs to hold
a model to well-formed numbers.

Texts of the corpus with their numbers spelled out digit by digit, and random logits, forward and
backward, beside the cross-entropy that the losses are added to. Before the clock starts, they are
compared with the authors'. Then the scores of the next token of such texts, cut anywhere, beside
the word head of a GPT-2 that gives them, and beside transformers' own way of constraining them,
which asks for the tokens that may follow row by row; both leave the same.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from typing import Any

import numtok
from benchmarks.corpus import Corpus
from benchmarks.timing import Section, alternate, check
from numtok.representations import PlaceValue

ROWS, LENGTH, WIDTH = 8, 128, 768
BATCHES = (1, 32)  # rows of a step of generation
NEEDED = ("torch", "transformers", "ntloss")


def run(corpus: Corpus) -> Section:
    """Losses, then a step of generation, on one thread of a CPU."""
    rows, length, width = (2, 32, 32) if corpus.quick else (ROWS, LENGTH, WIDTH)
    section = Section(
        f"Losses on number tokens, {rows} x {length} tokens; a step of generation, {width}"
        " dimensions"
    )
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        section.checks.append(
            f"nothing: {', '.join(missing)} is not installed, so nothing is timed; pip install"
            " '.[torch,hf]' ntloss"
        )
        return section
    import torch

    torch.set_num_threads(1)
    tokenizer = numtok.Tokenizer.from_pretrained(corpus.tokenizer, [PlaceValue()])
    section.notes.append(
        f"torch {torch.__version__}, ntloss {version('ntloss')}; {tokenizer.vocab_size:,} tokens"
    )
    found = torch.from_numpy(
        tokenizer.encode_batch(corpus.column[:2000])
        .column("input_ids")
        .flatten()
        .to_numpy()
        .astype("int64")
    )
    ids = found.repeat(-(-rows * length // len(found)))[: rows * length].view(rows, length)
    losses(ids, tokenizer, corpus, section)
    for batch in BATCHES:
        generation(found, batch, width, tokenizer, corpus, section)
    return section


def losses(ids: Any, tokenizer: numtok.Tokenizer, corpus: Corpus, section: Section) -> None:
    """Each against its peer, and against the cross-entropy."""
    import ntloss
    import torch

    from numtok_torch import NumberTokenLoss, NumberValueLoss

    of = _Vocabulary(tokenizer)
    logits = torch.randn(
        *ids.shape, tokenizer.vocab_size, generator=torch.Generator().manual_seed(0)
    ).requires_grad_()
    every: dict[str, Any] = {
        "cross-entropy": lambda logits, ids: torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), ids.flatten()
        )
    }
    for name, ours, theirs in (
        (
            "Wasserstein",
            NumberTokenLoss.from_tokenizer(tokenizer),
            ntloss.NTLoss(of, reweigh=False),
        ),
        (
            "squared error",
            NumberTokenLoss.from_tokenizer(tokenizer, kind="mse"),
            ntloss.NTLossDotProduct(of, reweigh=False),
        ),
        (
            "whole numbers",
            NumberValueLoss.from_tokenizer(tokenizer),
            ntloss.NumberLevelLoss(of, float_level=True, reweigh=False),
        ),
    ):
        every |= {f"numtok, {name}": ours, f"ntloss, {name}": theirs}
        if name != "whole numbers":  # of which ours are those in brackets, with their separators
            check(
                torch.allclose(ours(logits, ids), theirs(logits, ids), rtol=1e-4),
                f"{name}: not as ntloss has it",
            )
            section.checks.append(f"{name}: as ntloss has it")

    def step(loss: Any) -> None:
        logits.grad = None
        loss(logits, ids).backward()

    timings = alternate(
        {name: lambda loss=loss: step(loss) for name, loss in every.items()}, corpus.budget(20)
    )  # type: ignore[misc]
    section.add(timings, ids.numel() / 1e6, "cross-entropy", "M tokens")


def generation(
    found: Any,
    batch: int,
    width: int,
    tokenizer: numtok.Tokenizer,
    corpus: Corpus,
    section: Section,
) -> None:
    """A step for rows of the corpus's tokens, cut one token further each."""
    import torch
    from transformers import PrefixConstrainedLogitsProcessor

    from numtok_torch import NumberLogitsProcessor

    ours, length = NumberLogitsProcessor(tokenizer), min(64, len(found) - batch)
    ids = torch.stack([found[at : at + length] for at in range(batch)])
    head, hidden = torch.randn(tokenizer.vocab_size, width), torch.randn(batch, width)
    scores = hidden @ head.T
    rows = {
        tuple(row.tolist()): torch.nonzero(left > -torch.inf).flatten()
        for row, left in zip(ids, ours(ids, scores), strict=True)
    }
    theirs = PrefixConstrainedLogitsProcessor(lambda _, row: rows[tuple(row.tolist())], 1)
    check(torch.equal(ours(ids, scores), theirs(ids, scores)), "not the tokens that may follow")
    ending = f", {batch} row{'s' if batch > 1 else ''}"
    section.checks.append(f"the same tokens are left{ending}")
    functions = {
        f"word head{ending}": lambda: hidden @ head.T,
        f"NumberLogitsProcessor{ending}": lambda: ours(ids, scores),
        f"PrefixConstrainedLogitsProcessor, answers known{ending}": lambda: theirs(ids, scores),
    }
    timings = alternate(functions, corpus.budget(5))  # type: ignore[arg-type]
    section.add(timings, 0, f"word head{ending}")


class _Vocabulary:
    """What ntloss asks of a tokenizer."""

    def __init__(self, tokenizer: numtok.Tokenizer) -> None:
        self._digits = {str(k): tokenizer.tokens[str(k)] for k in range(10)}
        self._point, self._size = tokenizer.tokens["."], tokenizer.vocab_size

    def __len__(self) -> int:
        return self._size

    def add_tokens(self, tokens: list[str]) -> int:
        return 0

    def get_vocab(self) -> dict[str, int]:
        known = set(self._digits.values())
        return self._digits | {
            f"word {number}": number for number in range(self._size) if number not in known
        }

    def convert_tokens_to_ids(self, token: str) -> int:
        return self._point
