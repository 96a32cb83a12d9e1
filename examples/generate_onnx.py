"""Write text with numbers by a folder of ``numtok_torch.to_onnx``, with numpy, onnxruntime and
numtok, without torch. ``python generate_onnx.py FOLDER "The sum of 12.5 and 30 is"``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from numtok import DecodeStream, Tokenizer
from numtok.tokenizer.generated_numbers import PlaceTracker, Reading, finalize, number_ids
from numtok.tokenizer.well_formed import FAR, NumberRules

DTYPES = {"float": "f4", "double": "f8", "float16": "f2", "bool": "?"}
PLACES = "place_value"  # decimal positions of digits, one per token
Token = tuple[int, dict[str, Any]]  # id, and streams of its number or digit


class Model:
    """An exported graph, its tokenizer, and its metadata."""

    def __init__(self, folder: str | Path) -> None:
        self.tokenizer = Tokenizer.from_pretrained(folder)
        self.session = onnxruntime.InferenceSession(Path(folder) / "model.onnx")
        metadata = json.loads(self.session.get_modelmeta().custom_metadata_map["numtok"])
        self.ends, self.pad = metadata["eos_token_id"] or [], metadata["pad_token_id"]
        self.suppressed, self.positions = (
            metadata.get("suppress_tokens", []),
            metadata["positions"] or FAR,
        )
        self.inputs = {one.name: one for one in self.session.get_inputs()}
        self.outputs = [one.name for one in self.session.get_outputs()]
        self.rules, self.numbers = NumberRules.of(self.tokenizer), set(number_ids(self.tokenizer))

    def zeros(self, name: str, rows: int, width: int) -> Any:
        """Return zeros for an input, (rows, width, ...); for an input of the cache, (rows, heads,
        width, d).
        """
        kind = self.inputs[name].type.removeprefix("tensor(").removesuffix(")")
        shape = self.inputs[name].shape
        shape[0], shape[2 if name.startswith("past") else 1] = rows, width
        return np.zeros(shape, DTYPES.get(kind, kind))

    def run(self, rows: Sequence[Sequence[Token]], mask: Any, cache: dict[str, Any]) -> Any:
        """Return the outputs at the last token of each row, (rows, 1, ...), given the next tokens
        of each row.
        """
        width = max(map(len, rows))
        feeds = {"attention_mask": mask, "logits_at": np.array([-1]), **cache}
        for name in self.inputs.keys() - feeds.keys():
            past = name.startswith("past")
            feeds[name] = self.zeros(name, len(rows), 0 if past else width)
        feeds["input_ids"] += self.pad
        for row, tokens in enumerate(rows):
            for at, (token, streams) in enumerate(tokens, width - len(tokens)):
                feeds["input_ids"][row, at] = token
                for name in feeds.keys() & streams.keys():
                    feeds[name][row, at] = streams[name]
        return dict(zip(self.outputs, self.session.run(None, feeds), strict=True))


class Text:
    """A text that is being written: its tokens, and the pieces after the prompt."""

    def __init__(
        self, model: Model, prompt: str, new: int = 64, choose: Callable[[Any], Any] = np.argmax
    ) -> None:
        encoding = model.tokenizer.encode(prompt)
        self.tokens: list[Token] = [(token, {}) for token in encoding.input_ids.tolist()]
        if not 0 < len(self.tokens) <= model.positions:
            raise ValueError(
                f"the prompt has {len(self.tokens)} tokens, the model takes 1 to {model.positions}"
            )
        streams = model.inputs.keys() & {*encoding.batch.schema.names} - {"input_ids", PLACES}
        for number, position in enumerate(encoding.number_index.tolist()):
            values = {name: encoding[name][number] for name in streams} | {"number_mask": True}
            self.tokens[position] = (self.tokens[position][0], values)
        self.places = PlaceTracker.of(model.tokenizer) if PLACES in model.inputs else None
        if self.places is not None:
            for (_, values), place in zip(self.tokens, encoding[PLACES], strict=True):
                values[PLACES] = place
        self.left = min(new, model.positions - len(self.tokens) + 1)
        self.stream = DecodeStream([token for token, _ in self.tokens])
        self.choose, self.pieces = choose, [""]
        self.ended = False  # whether an end token was written
        self.wanted, self.error = True, ""  # set by a server

    def add(self, model: Model, token: int, value: str | None, streams: dict[str, Any]) -> None:
        """Append a token, with the text and the streams of its number; None and {} for a token that
        is no number.
        """
        ended = token in model.ends and token not in model.numbers
        left = 0 if ended else self.left - 1
        if not ended:
            if self.places is not None:
                streams = streams | {PLACES: self.places.step([token])[0]}
            self.tokens.append((token, streams))
            self.pieces.append(self.stream.step(model.tokenizer, token, value) or "")
        if left <= 0:
            self.pieces.append(self.stream.finish(model.tokenizer) or "")
        self.ended, self.left = ended, left  # last, as another thread may read them

    @property
    def busy(self) -> bool:
        """Whether more tokens are to be written."""
        return self.wanted and self.left > 0


def write(model: Model, texts: Sequence[Text]) -> Iterator[None]:
    """Continue texts until none is ``busy``; yield whenever each has one more token."""
    rows, cache = [text.tokens for text in texts], {}
    width = max(map(len, rows))
    ids = np.array([[model.pad] * (width - len(row)) + [one for one, _ in row] for row in rows])
    mask = np.array([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    ends = np.array([width + text.left for text in texts])
    while any(text.busy for text in texts):
        outputs = model.run(rows, mask, cache)
        scores = outputs["logits"][:, -1]
        scores[:, model.suppressed] = -np.inf
        if model.rules is not None:
            allowed = np.where(
                model.rules.allowed(ids, scores.shape[1], max_length=ends), scores, -np.inf
            )
            scores = np.where(allowed.max(1, keepdims=True) == -np.inf, scores, allowed)
        busy = [row for row, text in enumerate(texts) if text.busy]
        chosen = {row: int(texts[row].choose(scores[row])) for row in busy}
        numbers = read(model, texts, {row for row in busy if chosen[row] in model.numbers}, outputs)
        for row in busy:
            texts[row].add(model, chosen[row], *numbers.get(row, (None, {})))
        rows = [[text.tokens[-1]] for text in texts]
        ids = np.append(ids, [[token] for ((token, _),) in rows], 1)
        mask = np.append(mask, np.ones_like(mask[:, :1]), 1)
        cache = {f"past{name[7:]}": one for name, one in outputs.items() if name[:7] == "present"}
        yield


def read(
    model: Model, texts: Sequence[Text], rows: Collection[int], outputs: Any
) -> dict[int, Any]:
    """Return, by row, the text and the streams of the number that the head predicts."""
    rows = sorted(rows)
    readings = {name[5:]: one[rows, -1] for name, one in outputs.items() if name[:5] == "read."}
    if not rows or not readings:
        return {}

    def alone(at: int) -> float:
        tokens = texts[rows[at]].tokens
        again = model.run([tokens], np.ones((1, len(tokens)), np.int64), {})
        return float(again["read.values"][0, -1])

    values, bounds = readings.pop("values", np.zeros(len(rows))), readings.pop("bounds", None)
    words, streams = finalize(model.tokenizer, Reading(values, readings, bounds), alone)
    streams_of_rows = [{name: one[at] for name, one in streams.items()} for at in range(len(rows))]
    return {
        row: (word, one | {"number_mask": True})
        for row, word, one in zip(rows, words, streams_of_rows, strict=True)
    }


def chooser(temperature: float, top_p: float, seed: int | None) -> Callable[[Any], Any]:
    """Return a function that chooses a token from scores (vocabulary,)."""

    def choose(scores: Any) -> int:
        weights = np.exp((scores - scores.max()).astype(np.float64) / temperature)
        order = np.argsort(-weights)
        shares = weights[order] / weights.sum()
        nucleus = shares * (shares.cumsum() - shares <= top_p)
        return int(draw.choice(order, p=nucleus / nucleus.sum()))

    draw = np.random.default_rng(seed)
    return choose if temperature else np.argmax


def generate(model: Model, prompts: Sequence[str], max_new_tokens: int = 64) -> list[str]:
    """Return the text that the model writes after each prompt, greedily."""
    texts = [Text(model, prompt, max_new_tokens) for prompt in prompts]
    for _ in write(model, texts):
        pass
    return ["".join(text.pieces) for text in texts]


if __name__ == "__main__":
    folder, *prompts = sys.argv[1:]
    for text in generate(Model(folder), prompts):
        print(text)
