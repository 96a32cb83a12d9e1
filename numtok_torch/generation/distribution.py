"""The distribution of the number that a model would write next.

In: a causal model and its tokenizer as they are, or a function that gives the most likely next
tokens, and a prompt. Out: :class:`NumberDistribution`, values with their probabilities.

The texts of a number are walked token by token, the most likely first
(:class:`~numtok.number_format.number_end.NumberEnds`), in whatever tokens the model may write them.
Each token that ends a number adds to the probability of its value; each that leads elsewhere to
``outside``.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from numtok import NumberFormat
from numtok.number_format.number_end import NumberEnds
from numtok.number_format.number_format import as_bytes, from_bytes
from numtok.number_format.token_trie import Ints, TokenTrie, token_bytes_of
from numtok_torch.model.backbone import ModelError
from numtok_torch.model.run import evaluating

# How far the probabilities of two ways of reading the same text may be apart, by rounding alone.
TOLERANCES = {torch.float64: 1e-8, torch.float32: 1e-4}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NumberDistribution:
    """Probabilities of the numbers that a model may write next.

    Attributes:
        values: the most likely first.
        probabilities: of each value, whatever digits and tokens it is written in.
        outside: the probability of anything that is no number of the format.
        unwalked: the probability of what was not looked at: no value has more than that to add to
            its probability, and neither has ``outside``.

    Example:
        >>> from decimal import Decimal
        >>> values, shares = (Decimal(5), Decimal(7)), (0.75, 0.25)
        >>> distribution = NumberDistribution(values, shares, outside=0.0, unwalked=0.0)
        >>> distribution.mean, distribution.median, distribution.interval(coverage=0.9)
        (5.5, Decimal('5'), (Decimal('5'), Decimal('7')))
    """

    values: tuple[Decimal, ...]
    probabilities: tuple[float, ...]
    outside: float
    unwalked: float

    @property
    def number(self) -> float:
        """The probability of all ``values`` together."""
        return math.fsum(self.probabilities)

    @property
    def mean(self) -> float:
        """The mean of the values, given that one of them is written; NaN if there are none."""
        weighted = (float(v) * p for v, p in zip(self.values, self.probabilities, strict=True))
        return math.fsum(weighted) / self.number if self.values else math.nan

    @property
    def median(self) -> Decimal:
        """The value that half of the probability of numbers does not exceed."""
        return self.quantile(0.5)

    def quantile(self, share: float) -> Decimal:
        """Return the least value that a number does not exceed with at least this probability,
        given that one of ``values`` is written; NaN if there are none.
        """
        if not 0 <= share <= 1:
            raise ModelError(f"quantile: share={share} must be from 0 to 1")
        if not self.values:
            return Decimal("NaN")
        pairs = sorted(zip(self.values, self.probabilities, strict=True))
        reached = np.cumsum([probability for _, probability in pairs])
        at = int(np.searchsorted(reached, share * reached[-1] * (1 - 1e-12)))
        return pairs[min(at, len(pairs) - 1)][0]

    def interval(self, coverage: float = 0.9) -> tuple[Decimal, Decimal]:
        """Return (lower, upper), between which the middle ``coverage`` of the numbers lies."""
        return self.quantile((1 - coverage) / 2), self.quantile((1 + coverage) / 2)


class Prefix(NamedTuple):
    """The beginning of a number: its tokens, their bytes (:func:`as_bytes`), and the state of
    :class:`NumberEnds` after it.
    """

    ids: tuple[int, ...]
    text: str
    state: int


# From beginnings of numbers, for each: the tokens that may follow, and float64[tokens], the
# probability of each of ``trie.ids``. The empty beginning is asked for first, alone.
NextTokens = Callable[[Sequence[Prefix]], list[tuple[TokenTrie, Floats]]]


def number_distribution(
    model: Any,
    tokenizer: Any,
    prompt: str | Sequence[int],
    format: NumberFormat,
    mass: float = 0.99,
    *,
    leading_space: bool = True,
    batch_size: int = 32,
    max_prefixes: int = 4096,
) -> NumberDistribution:
    """Return the probability of every number that a model may write after a prompt.

    A number begins at once, or after one space. It ends before the first character that cannot
    continue it, or with the text; ``100.`` is 100 unless a digit follows.

    Args:
        model: a causal model of transformers as it is, or a function from a text to the log
            probabilities of the tokens that are most likely to follow it, by their text, as the
            ``top_logprobs`` of a server. What such a function leaves out counts as ``unwalked``.
        tokenizer: the model's, of transformers; None beside a function.
        prompt: a text, or its token ids.
        format: which numbers are counted; others are ``outside``.
        mass: the share of the probability of numbers that is found for sure, 1 for all of it. Of
            what a function leaves out, nothing is known.
        leading_space: whether one space may stand before the number.
        batch_size: beginnings of numbers that the model is given at once.
        max_prefixes: beginnings of numbers that the model is given at most. Where they do not
            suffice, ``unwalked`` is what is missing.

    Raises:
        ModelError: for a model that does not write text, an empty prompt, and other options out of
            range.

    Example:
        >>> from math import log
        >>> from numtok import NumberFormat
        >>> def top_logprobs(text):
        ...     return {"7": log(0.5), "8": log(0.25)} if text == "It is " else {".": 0.0}
        >>> digits = number_distribution(top_logprobs, None, "It is ", NumberFormat(0, 9))
        >>> [str(value) for value in digits.values], [round(p, 3) for p in digits.probabilities]
        (['7', '8'], [0.5, 0.25])
        >>> round(digits.unwalked, 3)
        0.25
    """
    if not 0 < mass <= 1 or batch_size < 1 or max_prefixes < 1:
        raise ModelError(
            f"mass={mass} must be above 0 and at most 1, batch_size={batch_size} and"
            f" max_prefixes={max_prefixes} positive"
        )
    ends = NumberEnds(format, leading_space)
    next_tokens: NextTokens
    if isinstance(model, torch.nn.Module):
        next_tokens = CausalModel(model, tokenizer, prompt, ends.alphabet).next_tokens
    elif callable(model) and isinstance(prompt, str):
        next_tokens = functools.partial(tokens_of_function, model, prompt, ends.alphabet)
    else:
        raise ModelError(
            f"a causal model, or a function and a text are needed, got {type(model).__name__}"
        )
    walk = Walk(ends, next_tokens)
    walk.go_on(mass, batch_size, max_prefixes)
    by_value: dict[Decimal, float] = defaultdict(float)
    for text, probability in walk.found.items():
        by_value[format.value(from_bytes(text.removeprefix(" ")))] += probability
    best = sorted(by_value.items(), key=lambda pair: (-pair[1], pair[0]))
    values, probabilities = zip(*best, strict=True) if best else ((), ())
    return NumberDistribution(values, probabilities, walk.outside, walk.unwalked)


class Outcomes(NamedTuple):
    """Outcomes of the tokens of a trie in one state. Tokens are counted as in the trie."""

    # int64[n] each: tokens that end a number, and the place in ``ends`` of what they end
    ended: Ints
    end: Ints
    # (bytes of a token up to the end, how many of the beginning's stand behind the number there)
    ends: list[tuple[str, int]]
    onward: Ints  # int64[m]: tokens that lead to a longer beginning
    longer: list[tuple[str, int]]  # the text of each of these, and the state after it


def outcomes(ends: NumberEnds, trie: TokenTrie, state: int) -> Outcomes:
    """Return the outcomes of all tokens in a state."""
    at_node = trie.states(ends.table, state)  # (nodes,)
    # the node before the first character behind the number
    before = np.arange(len(at_node))
    for node in np.flatnonzero(at_node == ends.ended).tolist():
        parent = int(trie.parent[node])
        before[node] = before[parent] if at_node[parent] == ends.ended else parent
    at_token = at_node[trie.node]  # (tokens,)
    ended = np.flatnonzero(at_token == ends.ended)
    onward = np.flatnonzero((at_token != ends.ended) & (at_token != ends.nowhere))
    nodes, end = np.unique(before[trie.node[ended]], return_inverse=True)
    texts = [trie.texts[node] for node in trie.node[onward].tolist()]
    return Outcomes(
        ended,
        end,
        [(trie.texts[node], ends.behind[int(at_node[node])]) for node in nodes.tolist()],
        onward,
        list(zip(texts, at_token[onward].tolist(), strict=True)),
    )


class Walk:
    """Numbers found so far, and their beginnings that are still to be walked.

    Attributes:
        found: the probability of each text of a number.
        outside: the probability of what is no number of the format.
    """

    def __init__(self, ends: NumberEnds, next_tokens: NextTokens) -> None:
        self.found: dict[str, float] = defaultdict(float)
        self.outside = 0.0
        self._ends, self._next_tokens = ends, next_tokens
        self._unseen = 0.0  # the probability of tokens that the source leaves out
        self._count = itertools.count()  # the first of two with the same probability comes first
        # (-probability, count, beginning)
        self._waiting = [(-1.0, next(self._count), Prefix((), "", ends.start))]
        self._outcomes = functools.cache(functools.partial(outcomes, ends))

    @property
    def unwalked(self) -> float:
        """The probability of all that was not looked at."""
        return self._unseen + self._waiting_mass()

    def go_on(self, mass: float, batch_size: int, max_prefixes: int) -> None:
        """Walk until a share of what the source knows of numbers is found."""
        asked = 0
        while self._waiting and asked < max_prefixes:
            seen, waiting = math.fsum(self.found.values()), self._waiting_mass()
            if mass < 1 and seen >= mass * (seen + waiting):
                return
            size = min(batch_size, len(self._waiting), max_prefixes - asked)
            batch = [heapq.heappop(self._waiting) for _ in range(size)]
            answers = self._next_tokens([prefix for _, _, prefix in batch])
            for (negative, _, prefix), (trie, share) in zip(batch, answers, strict=True):
                self._expand(prefix, -negative, trie, share)
            asked += size

    def _expand(self, prefix: Prefix, probability: float, trie: TokenTrie, share: Floats) -> None:
        """Add the probability of a beginning to what its next tokens, of these shares, make of it."""
        at = self._outcomes(trie, prefix.state)
        ended = np.bincount(at.end, share[at.ended], len(at.ends))  # (ends,)
        for (text, behind), one in zip(at.ends, ended.tolist(), strict=True):
            written = prefix.text + text
            if one > 0:
                self.found[written[: len(written) - behind]] += probability * one
        onward = share[at.onward]
        tokens = zip(trie.ids[at.onward].tolist(), at.longer, onward.tolist(), strict=True)
        for number, (text, state), one in tokens:
            if one > 0:
                longer = Prefix((*prefix.ids, number), prefix.text + text, state)
                heapq.heappush(self._waiting, (-probability * one, next(self._count), longer))
        seen = float(share.sum())
        self._unseen += probability * max(0.0, 1 - seen)
        self.outside += probability * max(0.0, seen - float(ended.sum() + onward.sum()))

    def _waiting_mass(self) -> float:
        return math.fsum(-negative for negative, _, _ in self._waiting)


class CausalModel:
    """The next tokens as a causal model of transformers gives them.

    The prompt and every beginning of a number are read once. All lie in one cache, as a tree: by a
    mask, each token sees the prompt and the tokens before it in its own number. Models for which
    that is not the same as reading each text alone read each text alone.
    """

    def __init__(
        self, model: Any, tokenizer: Any, prompt: str | Sequence[int], alphabet: str
    ) -> None:
        writes = callable(getattr(model, "generate", None))
        if not writes or getattr(model.config, "is_encoder_decoder", False):
            raise ModelError(
                "number_distribution needs a causal model of transformers as it is, got"
                f" {type(model).__name__}; of a NumberModel, draw samples with generate"
            )
        self._model = model
        self._trie = TokenTrie(token_bytes_of(tokenizer), alphabet, outside=True)
        ids = tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else list(prompt)
        if not ids:
            raise ModelError("the prompt has no tokens; give it some text")
        self._prompt: list[int] = ids
        self._cache: Any = None
        self._columns: dict[tuple[int, ...], int] = {}  # where the last token of each lies in it

    def next_tokens(self, prefixes: Sequence[Prefix]) -> list[tuple[TokenTrie, Floats]]:
        """Return the tokens that may follow each beginning, and their probabilities."""
        rows = [prefix.ids for prefix in prefixes]
        with evaluating(self._model):
            shares = self._read(rows) if all(rows) else self._read_prompt()
        return [(self._trie, share) for share in shares]

    def _read_prompt(self) -> Floats:
        output = self._model(input_ids=self._tensor([self._prompt]), use_cache=True)
        cache = getattr(output, "past_key_values", None)
        self._cache = cache if any(getattr(cache, "is_sliding", [True])) is False else None
        return self._of_tokens(output.logits[0, -1:])

    def _read(self, rows: Sequence[tuple[int, ...]]) -> Floats:
        """float64[rows, tokens] after the prompt and these ids."""
        if self._cache is None:
            return np.concatenate([self._read_alone(row) for row in rows])
        if self._columns:
            return self._read_in_tree(rows)
        with contextlib.suppress(RuntimeError, ValueError, TypeError, IndexError):
            in_tree, alone = self._read_in_tree(rows), self._read_alone(rows[-1])
            if np.abs(in_tree[-1] - alone).max() < TOLERANCES.get(self._model.dtype, 0.02):
                return in_tree
        self._cache = None
        return self._read(rows)

    def _read_alone(self, row: tuple[int, ...]) -> Floats:
        ids = self._tensor([[*self._prompt, *row]])
        return self._of_tokens(self._model(input_ids=ids, use_cache=False).logits[0, -1:])

    def _read_in_tree(self, rows: Sequence[tuple[int, ...]]) -> Floats:
        """The last token of each is new; those before it are in the cache."""
        before, cached = len(self._prompt), len(self._prompt) + len(self._columns)
        self._columns |= {row: cached + at for at, row in enumerate(rows)}
        dtype = self._model.dtype
        mask = torch.full((len(rows), cached + len(rows)), torch.finfo(dtype).min, dtype=dtype)
        mask[:, :before] = 0
        for at, row in enumerate(rows):
            mask[at, [self._columns[row[:stop]] for stop in range(1, len(row) + 1)]] = 0
        output = self._model(
            input_ids=self._tensor([[row[-1] for row in rows]]),
            position_ids=self._tensor([[before + len(row) - 1 for row in rows]]),
            attention_mask=mask[None, None].to(self._model.device),  # (1, 1, rows, columns)
            past_key_values=self._cache,
            use_cache=True,
        )
        return self._of_tokens(output.logits[0])

    def _tensor(self, ids: list[list[int]]) -> Tensor:
        return torch.tensor(ids, device=self._model.device)

    def _of_tokens(self, logits: Tensor) -> Floats:
        """Return float64[rows, tokens], the probabilities of the trie's tokens, of logits (rows,
        vocabulary); 0 of tokens that the model does not score.
        """
        shares: Floats = logits.double().softmax(-1).cpu().numpy()
        if (missing := int(self._trie.ids.max()) + 1 - shares.shape[1]) > 0:
            shares = np.pad(shares, ((0, 0), (0, missing)))
        return shares[:, self._trie.ids]


def tokens_of_function(
    top_logprobs: Callable[[str], Mapping[str, float]],
    prompt: str,
    alphabet: str,
    prefixes: Sequence[Prefix],
) -> list[tuple[TokenTrie, Floats]]:
    """Return the next tokens as a function gives them; ``alphabet`` are the bytes of numbers."""
    next_tokens = []
    for prefix in prefixes:
        answer = top_logprobs(prompt + from_bytes(prefix.text))
        shares = np.exp(np.array(list(answer.values()), np.float64))
        if not np.isfinite(shares).all() or shares.sum() > 1 + 1e-3:
            raise ModelError(
                f"the function's log probabilities after {prefix.text!r} sum to"
                f" {shares.sum():.3g}; give natural logarithms of probabilities"
            )
        texts = enumerate(map(as_bytes, answer))
        next_tokens.append((TokenTrie(texts, alphabet, outside=True), shares))
    return next_tokens
