"""What a model has written so far, as far as tokens alone do not say it: the numbers' values, and the places of digits.

In: at each step, all ids so far, int64 (rows, seq), in whatever order generation keeps its rows. Out: the streams of the tokens that the model is
about to see, (rows, tokens, ...), like those of the collator.

Rows are told apart by the ids that they hold behind the prompt. That is enough: a number is the head's reading of the hidden state in front of it,
which follows from the prompt, the tokens and the numbers before. So each prediction is kept under (whose, the ids before it), and found again
after beams were reordered, finished, or left out, without knowing how. "Whose" is the prompt with beams; else the row, so that rows of one prompt
that drew different values for the same tokens stay apart.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from numtok import Tokenizer
from numtok.numbers import Numbers
from numtok.representations import FloatBits, FoNE, PlaceValue, SingleToken
from numtok.representations.base import numbers_from_floats
from numtok_torch.bits import as_bits, values_of_words, words_of_bits
from numtok_torch.embeddings import PlaceTracker
from numtok_torch.generation_text import number_ids
from numtok_torch.heads import NumberPrediction
from numtok_torch.streams import NUMBER_STREAMS

if TYPE_CHECKING:
    from numtok_torch.model import NumberModel

Ids = npt.NDArray[Any]
Key = tuple[int, bytes]


class Writing:
    """The memory of one call of ``generate``.

    Args:
        model: whose embedding and head are used.
        tokenizer: whose representations say how numbers look.
        prompt: the prompts' batch, padded on the left.
        beams: whether the rows of a prompt are beams, which may take each other's place.
        sample: draw values from the head.
    """

    def __init__(self, model: NumberModel, tokenizer: Tokenizer, prompt: dict[str, Tensor], beams: bool, sample: bool) -> None:
        self.model, self.tokenizer, self.prompt, self.beams, self.sample = model, tokenizer, prompt, beams, sample
        self.streams = {name: stream for name, stream in prompt.items() if name in NUMBER_STREAMS}
        self._number_ids = np.array(number_ids(tokenizer), np.int64)
        self._ids = prompt["input_ids"].cpu().numpy()
        self._predicted: dict[Key, tuple[NumberPrediction, int]] = {}
        self._shown: dict[Key, dict[str, Tensor]] = {}
        self._places: dict[Key, int] = {}
        self._rows: dict[Key, int] = {}
        self._tracker = self._new_tracker() if "place_value" in prompt else None

    def _new_tracker(self) -> PlaceTracker | None:
        order = next((one.order for one in self.tokenizer.numbers if isinstance(one, PlaceValue)), None)
        return None if order is None else PlaceTracker.from_vocabulary(self.tokenizer.tokens, order)

    @property
    def width(self) -> int:
        """Tokens of the prompts, padding included."""
        return int(self.prompt["input_ids"].shape[1])

    def prompt_ids(self, number: int) -> list[int]:
        """Of one prompt, without padding."""
        return [int(one) for one in self.prompt["input_ids"][number][self.prompt["attention_mask"][number] > 0]]

    def owner(self, row: int, per_prompt: int) -> int:
        """Whose the row is, if there are so many rows for each prompt."""
        return row // per_prompt if self.beams else row

    def begins_number(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Which ids begin a number."""
        return np.isin(ids, self._number_ids)

    def see(self, input_ids: Tensor) -> None:
        """Take in the ids (rows, seq) that the next step is about; the last of them are new, or, at first, none."""
        self._ids = input_ids.detach().cpu().numpy()
        if self._tracker is None or self._ids.shape[1] == self.width:
            self._rows = {self._key(row, self.width): row for row in reversed(range(len(self._ids)))}
            return
        length, device = self._ids.shape[1], input_ids.device
        before = [self._rows[self._key(row, length - 1)] for row in range(len(self._ids))]  # where each row was one step ago
        self._tracker.reorder(torch.tensor(before, device=device))
        places = self._tracker.step(input_ids[:, -1]).tolist()
        keys = [self._key(row, length) for row in range(len(self._ids))]
        self._places |= dict(zip(keys, places, strict=True))
        self._rows = {key: row for row, key in reversed(list(enumerate(keys)))}

    def _key(self, row: int, length: int) -> Key:
        """Of the first ``length`` ids of a row."""
        per_prompt = len(self._ids) // len(self.prompt["input_ids"])
        return key(self.owner(row, per_prompt), self._ids[row, self.width : length])

    def forward(self, input_ids: Tensor, **inputs: Any) -> Any:
        """The backbone's output for the last ids (rows, tokens), with the numbers among them; the head's reading is kept."""
        inputs = {name: value for name, value in inputs.items() if name != "inputs_embeds"}
        output, hidden, _ = self.model.run(input_ids, self.stream_columns(input_ids.shape[1], input_ids.device), **inputs)
        if self.model.head is not None:
            prediction = self._predict(hidden[:, -1])  # (rows, d_hidden)
            length = self._ids.shape[1]
            self._predicted |= {self._key(row, length): (prediction, row) for row in range(len(self._ids))}
        return output

    def _predict(self, hidden: Tensor) -> NumberPrediction:
        head: Any = self.model.head
        found = NumberPrediction(head.sample(hidden)) if self.sample else head.predict(hidden)
        return NumberPrediction(found.values.cpu(), {name: stream.cpu() for name, stream in found.streams.items()})

    def stream_columns(self, count: int, device: torch.device) -> dict[str, Tensor]:
        """The streams of the last ``count`` tokens, (rows, count, ...)."""
        rows, length = self._ids.shape
        begin = length - count
        first = max(begin, self.width)
        made = self._ids[:, first:]
        is_number = self.begins_number(made)  # (rows, made)
        columns = {"number_mask": torch.from_numpy(is_number)}
        for name, stream in self.streams.items():
            columns[name] = torch.full((*made.shape, *stream.shape[2:]), NUMBER_STREAMS[name].fill, dtype=stream.dtype)  # (rows, made, ...)
        if self.model.head is not None and is_number.any():
            where = np.argwhere(is_number)  # (numbers, 2)
            shown = self._show([self._key(row, first + column) for row, column in where.tolist()])
            for name, values in shown.items():
                columns[name][tuple(torch.from_numpy(where).T)] = values  # (numbers, ...)
        if "place_value" in self.prompt:
            places = [[self._places.get(self._key(row, at + 1), 0) for at in range(first, length)] for row in range(rows)]
            columns["place_value"] = torch.tensor(places, dtype=torch.int64).view(made.shape)
        given = {name: self.prompt[name] for name in columns if name in self.prompt} if begin < self.width else {}
        for name, stream in given.items():
            repeated = stream[:, begin:].repeat_interleave(rows // len(stream), 0)  # (rows, prompt, ...)
            columns[name] = torch.cat([repeated, columns[name].to(device)], 1)  # (rows, count, ...)
        return {name: stream.to(device) for name, stream in columns.items()}

    def _show(self, keys: Sequence[Key]) -> dict[str, Tensor]:
        """The streams, (numbers, ...), of the numbers that were predicted under the keys, in the form that the prompt has them."""
        if new := list(dict.fromkeys(one for one in keys if one not in self._shown)):
            streams = self._streams_of(new)
            for row, one in enumerate(new):
                self._shown[one] = {name: stream[row] for name, stream in streams.items()}
        return {name: torch.stack([self._shown[one][name] for one in keys]) for name in self._shown[keys[0]]}

    def _predictions(self, keys: Sequence[Key]) -> tuple[Tensor, dict[str, Tensor]]:
        """Values (numbers,) and exact streams (numbers, ...)."""
        found = [self._predicted[one] for one in keys]
        values = torch.stack([prediction.values[row] for prediction, row in found])
        exact = {name: torch.stack([prediction.streams[name][row] for prediction, row in found]) for name in found[0][0].streams}
        return values, exact

    def _streams_of(self, keys: Sequence[Key]) -> dict[str, Tensor]:
        """:meth:`_show`, computed."""
        values, exact = self._predictions(keys)
        embedding = self.model.embedding
        found = {} if embedding is None else embedding.streams_of(values)
        found |= exact  # a value may not hold all of its digits
        shaped = {name: self._as_in_prompt(name, found) for name in self.streams}
        return {name: stream for name, stream in shaped.items() if stream is not None} | {"number_values": values}

    def _as_in_prompt(self, name: str, found: dict[str, Tensor]) -> Tensor | None:
        """One of the streams in the prompt's form; None if it is not known."""
        like = self.streams[name]
        inner = like.shape[2:]
        if name == "number_fourier" and "number_digits" in found:
            return torch.from_numpy(self._fone.features(found["number_digits"].numpy())).to(like.dtype)
        if name not in found:
            return None
        stream = found[name]
        if name == "number_bits":
            bits = as_bits(stream, 1)  # (numbers, 32)
            return bits if inner else words_of_bits(bits)
        flat = stream.reshape(len(stream), -1)  # (numbers, values)
        padded = torch.nn.functional.pad(flat, (0, math.prod(inner) - flat.shape[1]))  # chunks are filled up with zeros
        return padded.reshape(len(stream), *inner).to(like.dtype)

    @property
    def _fone(self) -> FoNE:
        found = next(one for one in self.tokenizer.numbers if isinstance(one, FoNE))
        return dataclasses.replace(found, overflow="clip")

    def surfaces(self, numbers: Sequence[tuple[int, Ids]]) -> list[str]:
        """The text of numbers, each given as (owner, the ids between the prompt and it)."""
        if not numbers:
            return []
        values, exact = self._predictions([key(owner, ids) for owner, ids in numbers])
        if "number_digits" in exact and any(isinstance(one, FoNE) for one in self.tokenizer.numbers):
            texts = self._fone.numbers(exact["number_digits"].numpy()).format().to_pylist()
            return [f"-{text}" if negative else text for text, negative in zip(texts, values.signbit().tolist(), strict=True)]
        if "number_bits" in exact and any(isinstance(one, FloatBits) for one in self.tokenizer.numbers):
            floats = values_of_words(words_of_bits(as_bits(exact["number_bits"], 1))).numpy()
            return [str(text) for text in numbers_from_floats(floats, "bits").format().to_pylist()]
        first = self.tokenizer.numbers[0]
        assert isinstance(first, SingleToken)
        finite = torch.nan_to_num(values, nan=math.nan).numpy()
        exactly: Numbers = numbers_from_floats(finite, type(self.model.head).__name__)
        held = dataclasses.replace(first, overflow="clip")  # type: ignore[type-var]  # every concrete one is a dataclass
        return [str(text) for text in held.decode(held.encode(exactly)).format().to_pylist()]


def key(owner: int, ids: Ids) -> Key:
    """Of the ids that an owner has behind the prompt."""
    return owner, hashlib.blake2b(np.ascontiguousarray(ids, np.int64).tobytes(), digest_size=16).digest()
