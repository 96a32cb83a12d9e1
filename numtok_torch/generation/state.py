"""What a model has written so far, as far as tokens alone do not say it: the numbers' values, and
the places of digits.

In: at each step, all ids so far, int64 (rows, seq), in whatever order generation keeps its rows.
    Out: the streams of the tokens that the model is about to see, (rows, tokens, ...), like those
    of the collator.

Rows are told apart by the ids that they hold behind the prompt. That is enough: a number is the
head's reading of the hidden state in front of it, which follows from the prompt, the tokens and the
numbers before; what it then is, in text and streams, says ``generation_numbers``. So each
prediction is kept under (whose, the ids before it), and found again after beams were reordered,
finished, or left out, without knowing how. "Whose" is the prompt with beams; else the row, so that
rows of one prompt that drew different values for the same tokens stay apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from numtok import Tokenizer
from numtok_torch.data.streams import number_streams
from numtok_torch.embeddings.choose import PlaceTracker
from numtok_torch.generation.text import number_ids
from numtok_torch.generation.written_numbers import decimals, doubtful, streams_of, texts_of
from numtok_torch.heads.base import NumberPrediction
from numtok_torch.model.model import NumberModel

Ids = npt.NDArray[Any]
Key = tuple[int, bytes]
Number = tuple[int, Ids]  # whose, and the ids between the prompt and it


class Writing:
    """The memory of one call of ``generate``.

    Args:
        model: whose embedding and head are used.
        tokenizer: whose representations say how numbers look.
        prompt: the prompts' batch, padded on the left.
        beams: whether the rows of a prompt are beams, which may take each other's place.
        sample: draw values from the head.
        encoded: for a decoder, what an encoder makes of one prompt alone, by its number: arguments
            of ``model.run``.
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
        self._encoded = encoded
        self.model, self.tokenizer, self.prompt, self.beams, self.sample = (
            model,
            tokenizer,
            prompt,
            beams,
            sample,
        )
        self.streams = {name: stream for name, stream in prompt.items() if name in number_streams()}
        self._number_ids = np.array(number_ids(tokenizer), np.int64)
        self._ids = prompt["input_ids"].cpu().numpy()
        self._predicted: dict[Key, tuple[NumberPrediction, int]] = {}
        self._texts: dict[Key, str] = {}
        self._shown: dict[Key, dict[str, Tensor]] = {}
        self._places: dict[Key, int] = {}
        self._rows: dict[Key, int] = {}
        self._tracker = self._new_tracker() if "place_value" in prompt else None

    def _new_tracker(self) -> PlaceTracker | None:
        order = self.tokenizer.representations[0].order
        return None if order is None else PlaceTracker.from_vocabulary(self.tokenizer.tokens, order)

    @property
    def width(self) -> int:
        """Tokens of the prompts, padding included."""
        return int(self.prompt["input_ids"].shape[1])

    def prompt_ids(self, number: int) -> list[int]:
        """Of one prompt, without padding."""
        return [
            int(token)
            for token in self.prompt["input_ids"][number][self.prompt["attention_mask"][number] > 0]
        ]

    def owner(self, row: int, per_prompt: int) -> int:
        """Whose the row is, if there are so many rows for each prompt."""
        return row // per_prompt if self.beams else row

    def begins_number(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Which ids begin a number."""
        return np.isin(ids, self._number_ids)

    def see(self, input_ids: Tensor) -> None:
        """Take in the ids (rows, seq) that the next step is about; the last of them are new, or, at
        first, none.
        """
        self._ids = input_ids.detach().cpu().numpy()
        if self._tracker is None or self._ids.shape[1] == self.width:
            self._rows = {
                self._key(row, self.width): row for row in reversed(range(len(self._ids)))
            }
            return
        length, device = self._ids.shape[1], input_ids.device
        before = [
            self._rows[self._key(row, length - 1)] for row in range(len(self._ids))
        ]  # where each row was one step ago
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
        """The backbone's output for the last ids (rows, tokens), with the numbers among them; the
        head's reading is kept.
        """
        inputs = {
            name: value for name, value in inputs.items() if not name.endswith("inputs_embeds")
        }
        output, hidden, _ = self.model.run(
            input_ids, self.stream_columns(input_ids.shape[1], input_ids.device), **inputs
        )
        if self.model.head is not None:
            prediction = self._predict(hidden[:, -1])  # (rows, d_hidden)
            length = self._ids.shape[1]
            self._predicted |= {
                self._key(row, length): (prediction, row) for row in range(len(self._ids))
            }
        return output

    def _predict(self, hidden: Tensor) -> NumberPrediction:
        head: Any = self.model.head
        prediction = NumberPrediction(head.sample(hidden)) if self.sample else head.predict(hidden)
        bounds = None if prediction.bounds is None else prediction.bounds.cpu()
        return NumberPrediction(
            prediction.values.cpu(),
            {name: stream.cpu() for name, stream in prediction.streams.items()},
            bounds=bounds,
        )

    def stream_columns(self, count: int, device: torch.device) -> dict[str, Tensor]:
        """The streams of the last ``count`` tokens, (rows, count, ...)."""
        rows, length = self._ids.shape
        begin, per_prompt = length - count, rows // len(self.prompt["input_ids"])
        owners = [self.owner(row, per_prompt) for row in range(rows)]
        columns = self._made(owners, self._ids[:, self.width :], max(begin - self.width, 0))
        given = (
            {name: self.prompt[name] for name in columns if name in self.prompt}
            if begin < self.width
            else {}
        )
        for name, stream in given.items():
            repeated = stream[:, begin:].repeat_interleave(per_prompt, 0)  # (rows, prompt, ...)
            columns[name] = torch.cat([repeated, columns[name].to(device)], 1)  # (rows, count, ...)
        return {name: stream.to(device) for name, stream in columns.items()}

    def _made(self, owners: Sequence[int], made: Ids, start: int) -> dict[str, Tensor]:
        """The streams of the ids (rows, made) behind the prompts, from ``start`` on: (rows, made -
        start, ...).
        """
        shape = (len(made), made.shape[1] - start)
        is_number = self.begins_number(made[:, start:])  # (rows, made - start)
        columns = {"number_mask": torch.from_numpy(is_number)}
        for name, stream in self.streams.items():
            columns[name] = torch.full(
                (*shape, *stream.shape[2:]), number_streams()[name][0].fill, dtype=stream.dtype
            )
        if self.model.head is not None and is_number.any():
            where = np.argwhere(is_number)  # (numbers, 2)
            numbers = [(owners[row], made[row, : start + column]) for row, column in where.tolist()]
            self._settle(numbers)
            for name in columns.keys() & self.streams.keys():
                values = torch.stack(
                    [self._shown[key(*number)][name] for number in numbers]
                )  # (numbers, ...)
                columns[name][tuple(torch.from_numpy(where).T)] = values.to(columns[name].dtype)
        if "place_value" in self.prompt:
            columns["place_value"] = torch.tensor(
                [
                    [
                        self._places.get(key(owner, row[: at + 1]), 0)
                        for at in range(start, len(row))
                    ]
                    for owner, row in zip(owners, made, strict=True)
                ],
                dtype=torch.int64,
            ).view(shape)
        return columns

    def _settle(self, numbers: Sequence[Number]) -> None:
        """Decide once for all what numbers are, each given as (owner, the ids between the prompt
        and it).
        """
        new = list(
            {key(*number): number for number in numbers if key(*number) not in self._texts}.items()
        )
        if not new:
            return
        prediction = self._predictions([number_key for number_key, _ in new])
        for at in np.flatnonzero(doubtful(prediction)).tolist():
            prediction.values[at] = self._read_alone(*new[at][1]).values[0]
        decided = decimals(self.tokenizer, prediction, type(self.model.head).__name__)
        streams = streams_of(self.tokenizer, decided)
        for at, ((number_key, _), text) in enumerate(
            zip(new, texts_of(self.tokenizer, decided, prediction), strict=True)
        ):
            self._texts[number_key] = text
            self._shown[number_key] = {name: stream[at] for name, stream in streams.items()}

    def _predictions(self, keys: Sequence[Key]) -> NumberPrediction:
        """Of several numbers, (numbers, ...)."""
        places = [self._predicted[number_key] for number_key in keys]
        values = torch.stack([prediction.values[row] for prediction, row in places])
        exact = {
            name: torch.stack([prediction.streams[name][row] for prediction, row in places])
            for name in places[0][0].streams
        }
        bounds = [
            prediction.bounds[row] for prediction, row in places if prediction.bounds is not None
        ]
        return NumberPrediction(values, exact, bounds=torch.stack(bounds) if bounds else None)

    def _read_alone(self, owner: int, made: Ids) -> NumberPrediction:
        """The head's reading behind one prompt and the ids made, without cache, padding or other
        rows.
        """
        per_prompt = len(self._ids) // len(self.prompt["input_ids"])
        number = owner if self.beams else owner // per_prompt
        shown = self.prompt["attention_mask"][number] > 0  # (prompt,)
        columns = {
            name: stream.to(shown.device)
            for name, stream in self._made([owner], made[None], 0).items()
        }
        streams = {
            name: torch.cat([self.prompt[name][number, shown][None], stream], 1)
            if name in self.prompt
            else stream
            for name, stream in columns.items()
        }  # (1, tokens, ...)
        behind = torch.from_numpy(np.ascontiguousarray(made, np.int64)).to(shown.device)
        ids = torch.cat([self.prompt["input_ids"][number, shown], behind])  # (tokens,)
        _, hidden, _ = self.model.run(
            ids[None], streams, **(self._encoded(number) if self._encoded else {})
        )
        return self._predict(hidden[:, -1])

    def surfaces(self, numbers: Sequence[Number]) -> list[str]:
        """The text of numbers, each given as (owner, the ids between the prompt and it)."""
        self._settle(numbers)
        return [self._texts[key(*number)] for number in numbers]


def key(owner: int, ids: Ids) -> Key:
    """Of the ids that an owner has behind the prompt."""
    return owner, hashlib.blake2b(
        np.ascontiguousarray(ids, np.int64).tobytes(), digest_size=16
    ).digest()
