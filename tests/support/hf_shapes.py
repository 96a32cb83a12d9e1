"""Texts and rows in any nesting, as transformers takes and gives them; and attributes set for a
while.
"""

import contextlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Options = dict[str, Any]


@dataclass
class Place:
    """One number of a text: characters [start, stop), its value, what the representations say of
    it, and its tokens.
    """

    start: int
    stop: int
    value: float
    streams: dict[str, Any]
    tokens: list[str]
    per_token: list[int]
    canonical: str


@dataclass
class Leaf:
    """One string of the input, and the same with its numbers replaced.

    ``starts`` and ``stops`` take an offset in ``replaced`` at which a token starts or stops to the
    one in ``text``; ``owner`` says for each character of ``replaced`` which number it stands for,
    and as which of its tokens."""

    text: str
    places: list[Place]
    replaced: str = ""
    starts: list[int] = field(default_factory=lambda: [0])
    stops: list[int] = field(default_factory=lambda: [0])
    owner: list[tuple[int, int] | None] = field(default_factory=list)

    def append_text(self, start, stop):
        self.replaced += self.text[start:stop]
        for offset in range(start + 1, stop + 1):
            self.starts.append(offset)
            self.stops.append(offset)
            self.owner.append(None)

    def append_number(self, number, stand_ins):
        place = self.places[number]
        self.replaced += stand_ins
        for ordinal in range(len(stand_ins)):
            self.starts.append(place.start)  # of a later token of the same number
            self.stops.append(place.stop)
            self.owner.append((number, ordinal))
        self.starts[-1] = place.stop  # of what follows it


def characters(texts, numbers):
    """The numbers' places in characters."""
    raw = [text.encode() for text in texts]
    return [
        (len(raw[row][:start].decode()), len(raw[row][:stop].decode()))
        for row, start, stop in zip(
            numbers.document.tolist(), numbers.start.tolist(), numbers.stop.tolist(), strict=True
        )
    ]


def strings(value):
    """All strings in nested lists and tuples."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from strings(one)


def rebuild(value, change):
    """Nested lists and tuples with every leaf changed."""
    if isinstance(value, list | tuple):
        return type(value)([rebuild(one, change) for one in value])
    return None if value is None else change(value)


def samples(text, text_pair, is_split_into_words):
    """(for each sample its one or two sequences, whether it is a batch), by the rules of
    transformers.
    """
    nested = isinstance(text, list | tuple)
    batched = (
        bool(nested and text and isinstance(text[0], list | tuple))
        if is_split_into_words
        else nested
    )
    if not batched:
        pair = text_pair.text if isinstance(text_pair, Leaf) else text_pair
        return [[text, text_pair] if pair else [text]], False
    if text_pair is not None:
        return [list(both) for both in zip(text, text_pair, strict=True)], True
    if is_split_into_words:
        return [
            list(one)
            if len(one) == 2 and all(isinstance(part, list | tuple) for part in one)
            else [one]
            for one in text
        ], True
    return [list(one) if isinstance(one, list | tuple) else [one] for one in text], True


def like(value, rows, single):
    """The rows in the form of ``value``: one row, a list, a numpy array or a torch tensor."""
    if isinstance(value, list):
        return rows[0] if single else rows
    if isinstance(value, np.ndarray) and value.dtype == object:  # rows of different lengths
        made = np.empty(value.shape, object)
        made[:] = [
            np.asarray(one, value[k].dtype).reshape(value[k].shape) for k, one in enumerate(rows)
        ]
        return made
    if isinstance(value, np.ndarray):
        return np.array(rows, value.dtype).reshape(value.shape)
    import torch

    return torch.tensor(rows, dtype=value.dtype).reshape(value.shape)


@contextlib.contextmanager
def attributes(subject, values):
    """Sets attributes of a tokenizer, and puts back those it had."""
    before = {name: getattr(subject, name) for name in values}
    for name, value in values.items():
        setattr(subject, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(subject, name, value)
