"""State of a text that is being written, as far as tokens alone do not say it: the values of the
numbers, and the places of digits; and the backbone, with these put in, as ``generate`` of
transformers calls it.

In: at each step, all ids so far, int64 (rows, seq), in whatever order generation keeps its rows.
Out: the streams of the tokens that the model is about to see, (rows, tokens, ...), like those of
the collator.

Rows are told apart by the ids that they hold after the prompt. That is enough: a number is the
head's reading of the hidden state in front of it, which follows from the prompt, the tokens and the
numbers before. So each prediction is kept under (owner, the ids before it), and found again after
beams were reordered, finished, or left out, without knowing how. The owner is the prompt with
beams; else the row, so that rows of one prompt that drew different values for the same tokens stay
apart.
"""

from __future__ import annotations

import copy
import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from numtok import DecodeStream, Tokenizer
from numtok.representations import SingleToken
from numtok.tokenizer.generated_numbers import PlaceTracker, Reading, finalize, number_ids
from numtok_torch.data.rows import number_streams
from numtok_torch.model.model import NumberModel

Ids = npt.NDArray[Any]
Key = tuple[int, bytes]
Number = tuple[int, Ids]  # its owner, and the ids between the prompt and it


class Writing:
    """The memory of one call of ``generate`` for a batch of prompts, padded on the left; ``beams``:
    the rows of a prompt may take each other's place; ``encoded``, for a decoder: what an encoder
    makes of one prompt alone, by its number, as arguments of ``model.run``.
    """

    def __init__(
        self,
        model: NumberModel,
        tokenizer: Tokenizer,
        prompt: dict[str, Tensor],
        beams: bool,
        sample: bool,
        encoded: Callable[[int], dict[str, Any]] | None = None,
    ) -> None:
        self.model, self.tokenizer, self.prompt = model, tokenizer, prompt
        self.beams, self.sample, self._encoded = beams, sample, encoded
        self.streams = {name: stream for name, stream in prompt.items() if name in number_streams()}
        self._number_ids = np.array(number_ids(tokenizer), np.int64)
        self._ids = prompt["input_ids"].cpu().numpy()
        self._predicted: dict[Key, tuple[Reading, int]] = {}
        self._texts: dict[Key, str] = {}
        self._shown: dict[Key, dict[str, npt.NDArray[Any]]] = {}
        self._places: dict[Key, int] = {}
        self._rows: dict[Key, int] = {}
        self._tracker = PlaceTracker.of(tokenizer) if "place_value" in prompt else None

    @property
    def width(self) -> int:
        """Return the tokens of a prompt, padding included."""
        return int(self.prompt["input_ids"].shape[1])

    def prompt_ids(self, number: int) -> list[int]:
        """Return the ids that the text of a prompt goes on from, without padding; none of a
        decoder's.
        """
        if self.model.decodes:
            return []
        shown = self.prompt["attention_mask"][number] > 0
        return [int(token) for token in self.prompt["input_ids"][number][shown]]

    def owner(self, row: int, per_prompt: int) -> int:
        """Return the owner of a row, if there are so many rows for each prompt."""
        return row // per_prompt if self.beams else row

    def begins_number(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return bool: which ids begin a number."""
        return np.isin(ids, self._number_ids)

    @property
    def _per_prompt(self) -> int:
        return len(self._ids) // len(self.prompt["input_ids"])

    def _key(self, row: int, length: int) -> Key:
        """Return the key of the first ``length`` ids of a row."""
        return key(self.owner(row, self._per_prompt), self._ids[row, self.width : length])

    def see(self, input_ids: Tensor) -> None:
        """Take in the ids (rows, seq) of the next step; the last of them are new."""
        self._ids = input_ids.detach().cpu().numpy()
        rows, length = self._ids.shape
        keys = [self._key(row, length) for row in range(rows)]
        if self._tracker and length > self.width:
            before = [self._rows[self._key(row, length - 1)] for row in range(rows)]
            self._tracker.reorder(before)
            places = self._tracker.step(self._ids[:, -1]).tolist()
            self._places |= dict(zip(keys, places, strict=True))
        self._rows = {one: row for row, one in reversed(list(enumerate(keys)))}

    def forward(self, input_ids: Tensor, **inputs: Any) -> Any:
        """Return the backbone's output for the last ids (rows, tokens), with the numbers among
        them, and keep the head's reading.
        """
        inputs = {name: one for name, one in inputs.items() if not name.endswith("inputs_embeds")}
        streams = self.stream_columns(input_ids.shape[1], input_ids.device)
        output, hidden, _ = self.model.run(input_ids, streams, **inputs)
        if self.model.head is not None:
            prediction = self._predict(hidden[:, -1])  # (rows, d_hidden)
            rows, length = self._ids.shape
            self._predicted |= {self._key(row, length): (prediction, row) for row in range(rows)}
        return output

    def _predict(self, hidden: Tensor) -> Reading:
        head: Any = self.model.head
        if self.sample:
            return Reading(head.sample(hidden).cpu().numpy(), {})
        prediction = head.predict(hidden)
        streams = {name: stream.cpu().numpy() for name, stream in prediction.streams.items()}
        bounds = None if prediction.bounds is None else prediction.bounds.cpu().numpy()
        return Reading(prediction.values.cpu().numpy(), streams, bounds)

    def stream_columns(self, count: int, device: torch.device) -> dict[str, Tensor]:
        """Return the streams of the last ``count`` tokens, (rows, count, ...)."""
        rows, length = self._ids.shape
        begin = length - count
        owners = [self.owner(row, self._per_prompt) for row in range(rows)]
        new = self._new_streams(owners, self._ids[:, self.width :], max(begin - self.width, 0))
        columns = {name: stream.to(device) for name, stream in new.items()}
        for name in columns.keys() & self.prompt.keys() if begin < self.width else ():
            of_prompt = self.prompt[name][:, begin:].repeat_interleave(self._per_prompt, 0)
            columns[name] = torch.cat([of_prompt, columns[name]], 1)  # (rows, count, ...)
        return columns

    def _new_streams(self, owners: Sequence[int], new_ids: Ids, start: int) -> dict[str, Tensor]:
        """Return the streams (rows, new - start, ...) of the ids after the prompts, from ``start``
        on.
        """
        shape = (len(new_ids), new_ids.shape[1] - start)
        is_number = self.begins_number(new_ids[:, start:])  # (rows, new - start)
        columns = {"number_mask": torch.from_numpy(is_number)}
        for name, stream in self.streams.items():
            fill = number_streams()[name][0].fill
            columns[name] = torch.full((*shape, *stream.shape[2:]), fill, dtype=stream.dtype)
        if self.model.head is not None and is_number.any():
            where = np.argwhere(is_number)  # (numbers, 2)
            numbers = [
                (owners[row], new_ids[row, : start + column]) for row, column in where.tolist()
            ]
            self._decide(numbers)
            shown = [self._shown[key(*number)] for number in numbers]
            for name in columns.keys() & self.streams.keys():
                values = torch.from_numpy(np.stack([one[name] for one in shown]))  # (numbers, ...)
                columns[name][tuple(torch.from_numpy(where).T)] = values.to(columns[name].dtype)
        if "place_value" in self.prompt:
            places = [
                [self._places.get(key(owner, row[: at + 1]), 0) for at in range(start, len(row))]
                for owner, row in zip(owners, new_ids, strict=True)
            ]
            columns["place_value"] = torch.tensor(places, dtype=torch.int64).view(shape)
        return columns

    def _decide(self, numbers: Sequence[Number]) -> None:
        """Decide the text and the streams of numbers, once for all."""
        new = {key(*one): one for one in numbers if key(*one) not in self._texts}
        if not new:
            return
        predicted: list[tuple[Any, int]] = [self._predicted[one] for one in new]
        kind, _ = predicted[0]  # one head gives the same arrays each time
        read = {
            name: np.stack([one.streams[name][row] for one, row in predicted])
            for name in kind.streams
        }
        bounds = (
            None if kind.bounds is None else np.stack([one.bounds[row] for one, row in predicted])
        )
        reading = Reading(np.stack([one.values[row] for one, row in predicted]), read, bounds)
        places = list(new.values())
        texts, streams = finalize(
            self.tokenizer,
            reading,
            lambda at: float(self._read_alone(*places[at]).values[0]),
            type(self.model.head).__name__,
        )
        for at, (one, text) in enumerate(zip(new, texts, strict=True)):
            self._texts[one] = text
            self._shown[one] = {name: stream[at] for name, stream in streams.items()}

    def _read_alone(self, owner: int, new_ids: Ids) -> Reading:
        """Return the head's reading after one prompt and the new ids, without cache or padding."""
        number = owner if self.beams else owner // self._per_prompt
        shown = self.prompt["attention_mask"][number] > 0  # (prompt,)
        new = self._new_streams([owner], new_ids[None], 0)
        new["input_ids"] = torch.from_numpy(np.ascontiguousarray(new_ids[None], np.int64))
        streams = {name: stream.to(shown.device) for name, stream in new.items()}
        for name in streams.keys() & self.prompt.keys():  # (1, tokens, ...)
            streams[name] = torch.cat([self.prompt[name][number, shown][None], streams[name]], 1)
        encoded = self._encoded(number) if self._encoded else {}
        _, hidden, _ = self.model.run(streams.pop("input_ids"), streams, **encoded)
        return self._predict(hidden[:, -1])

    def surfaces(self, numbers: Sequence[Number]) -> list[str]:
        """Return the texts of numbers."""
        self._decide(numbers)
        return [self._texts[key(*number)] for number in numbers]


class TextStream:
    """A streamer for transformers' ``generate`` that gives text to ``streamer.on_finalized_text``:
    numbers whole, with what the head says, and characters whole; nothing is taken back. The tokens
    at which the text ``ends`` are not shown; ``prompt`` is text to show first.
    """

    def __init__(self, streamer: Any, writing: Writing, ends: list[int], prompt: str) -> None:
        self._streamer, self._writing, self._ends = streamer, writing, ends
        self._stream, self._prompt = DecodeStream(writing.prompt_ids(0)), prompt
        self._ids: list[int] | None = None  # None before the prompt was put

    def put(self, tokens: Tensor) -> None:
        """Take the prompt, int64 (1, seq), and after it each token, int64 (1,)."""
        if self._ids is None:
            self._ids = []
            self._show("" if getattr(self._streamer, "skip_prompt", False) else self._prompt)
            return
        (token,) = tokens.tolist()
        is_number = bool(self._writing.begins_number(np.array([token]))[0])
        if token in self._ends and not is_number:
            return
        value = None
        if is_number and isinstance(self._writing.tokenizer.representations[0], SingleToken):
            (value,) = self._writing.surfaces([(0, np.array(self._ids, np.int64))])
        self._ids.append(token)
        self._show(self._stream.step(self._writing.tokenizer, token, value))

    def end(self) -> None:
        """Give the rest of the text, and say that it is all."""
        rest = self._stream.finish(self._writing.tokenizer)
        self._streamer.on_finalized_text(rest or "", stream_end=True)

    def _show(self, text: str | None) -> None:
        if text:
            self._streamer.on_finalized_text(text)


def key(owner: int, ids: Ids) -> Key:
    """Return the key of the ids that an owner has after the prompt."""
    written = np.ascontiguousarray(ids, np.int64).tobytes()
    return owner, hashlib.blake2b(written, digest_size=16).digest()


def encoded(model: NumberModel, prompt: dict[str, Tensor]) -> Any:
    """Run the encoder on the prompts."""
    vectors = model.embed(prompt["input_ids"], prompt)  # (batch, seq, d_model)
    return model.transformer.get_encoder()(
        inputs_embeds=vectors, attention_mask=prompt["attention_mask"], return_dict=True
    )


def encoded_alone(model: NumberModel, prompt: dict[str, Tensor], number: int) -> dict[str, Any]:
    """Return the inputs of the decoder for one prompt that the encoder read without padding or
    other rows.
    """
    shown = prompt["attention_mask"][number] > 0  # (seq,)
    row = {name: stream[number : number + 1, shown] for name, stream in prompt.items()}
    return {"encoder_outputs": encoded(model, row), "attention_mask": row["attention_mask"]}


def writer(model: NumberModel, writing: Writing) -> Any:
    """Return a copy of the backbone, sharing all modules, whose ``generate`` puts numbers in: its
    ``forward`` is that of ``writing``, which sees all ids before each step.
    """
    backbone: Any = model.transformer

    @functools.wraps(backbone.forward)  # generate reads the signatures
    def forward(input_ids: Tensor | None = None, **inputs: Any) -> Any:
        return writing.forward(inputs.pop("decoder_input_ids", input_ids), **inputs)

    @functools.wraps(backbone.prepare_inputs_for_generation)
    def prepare_inputs(input_ids: Tensor, *arguments: Any, **inputs: Any) -> Any:
        writing.see(input_ids)
        return backbone.prepare_inputs_for_generation(input_ids, *arguments, **inputs)

    copied = copy.copy(backbone)
    copied.__dict__ |= {"forward": forward, "prepare_inputs_for_generation": prepare_inputs}
    return copied
