"""Text with numbers from a folder that ``numtok_torch.to_onnx`` wrote: with numpy, onnxruntime and
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
PLACES = "place_value"  # of digits, one per token
Token = tuple[int, dict[str, Any]]  # its id, and its streams: of a number, of a digit


class Model:
    """The graph, its tokenizer, and what the graph says of itself."""

    def __init__(self, folder: str | Path) -> None:
        self.tokenizer = Tokenizer.from_pretrained(folder)
        self.session = onnxruntime.InferenceSession(Path(folder) / "model.onnx")
        said = json.loads(self.session.get_modelmeta().custom_metadata_map["numtok"])
        self.ends, self.pad = said["eos_token_id"] or [], said["pad_token_id"]
        self.suppressed, self.positions = said.get("suppress_tokens", []), said["positions"] or FAR
        self.inputs = {one.name: one for one in self.session.get_inputs()}
        self.outputs = [one.name for one in self.session.get_outputs()]
        self.rules, self.numbers = NumberRules.of(self.tokenizer), set(number_ids(self.tokenizer))

    def zeros(self, name: str, rows: int, width: int) -> Any:
        """An input (rows, width, ...); of a cache (rows, heads, width, d)."""
        kind = self.inputs[name].type.removeprefix("tensor(").removesuffix(")")
        shape = self.inputs[name].shape
        shape[0], shape[2 if name.startswith("past") else 1] = rows, width
        return np.zeros(shape, DTYPES.get(kind, kind))

    def run(self, rows: Sequence[Sequence[Token]], mask: Any, cache: dict[str, Any]) -> Any:
        """The outputs for the last of the tokens that come next in each row, (rows, 1, ...)."""
        width = max(map(len, rows))
        feeds = {"attention_mask": mask, "logits_at": np.array([-1]), **cache}
        for name in self.inputs.keys() - feeds.keys():
            past = name.startswith("past")
            feeds[name] = self.zeros(name, len(rows), 0 if past else width)
        feeds["input_ids"] += self.pad
        for row, tokens in enumerate(rows):
            for at, (token, shown) in enumerate(tokens, width - len(tokens)):
                feeds["input_ids"][row, at] = token
                for name in feeds.keys() & shown.keys():
                    feeds[name][row, at] = shown[name]
        return dict(zip(self.outputs, self.session.run(None, feeds), strict=True))


class Text:
    """One text: its tokens, and the pieces that were written behind the prompt."""

    def __init__(
        self, model: Model, prompt: str, new: int = 64, choose: Callable[[Any], Any] = np.argmax
    ) -> None:
        found = model.tokenizer.encode(prompt)
        self.tokens: list[Token] = [(token, {}) for token in found.input_ids.tolist()]
        if not 0 < len(self.tokens) <= model.positions:
            raise ValueError(
                f"the prompt has {len(self.tokens)} tokens, the model takes 1 to {model.positions}"
            )
        streams = model.inputs.keys() & {*found.batch.schema.names} - {"input_ids", PLACES}
        for at, place in enumerate(found.number_index.tolist()):
            shown = {name: found[name][at] for name in streams} | {"number_mask": True}
            self.tokens[place] = (self.tokens[place][0], shown)
        self.places = PlaceTracker.of(model.tokenizer) if PLACES in model.inputs else None
        if self.places is not None:
            for (_, shown), place in zip(self.tokens, found[PLACES], strict=True):
                shown[PLACES] = place
        self.left = min(new, model.positions - len(self.tokens) + 1)
        self.stream = DecodeStream([token for token, _ in self.tokens])
        self.choose, self.pieces = choose, [""]
        self.ended = False  # by an end token
        self.wanted, self.error = True, ""  # which a server sets

    def add(self, model: Model, token: int, value: str | None, shown: dict[str, Any]) -> None:
        """One more token, with the text and the streams of its number; None and {} for no number."""
        ended = token in model.ends and token not in model.numbers
        left = 0 if ended else self.left - 1
        if not ended:
            if self.places is not None:
                shown = shown | {PLACES: self.places.step([token])[0]}
            self.tokens.append((token, shown))
            self.pieces.append(self.stream.step(model.tokenizer, token, value) or "")
        if left <= 0:
            self.pieces.append(self.stream.finish(model.tokenizer) or "")
        self.ended, self.left = ended, left  # at last, as another thread may look at it

    @property
    def busy(self) -> bool:
        """Whether more is to be written."""
        return self.wanted and self.left > 0


def write(model: Model, texts: Sequence[Text]) -> Iterator[None]:
    """Go on with texts until none is ``busy``; yields when each has one more token."""
    rows, cache = [text.tokens for text in texts], {}
    width = max(map(len, rows))
    ids = np.array([[model.pad] * (width - len(row)) + [one for one, _ in row] for row in rows])
    mask = np.array([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    ends = np.array([width + text.left for text in texts])
    while any(text.busy for text in texts):
        found = model.run(rows, mask, cache)
        scores = found["logits"][:, -1]
        scores[:, model.suppressed] = -np.inf
        if model.rules is not None:
            held = np.where(
                model.rules.allowed(ids, scores.shape[1], max_length=ends), scores, -np.inf
            )
            scores = np.where(held.max(1, keepdims=True) == -np.inf, scores, held)
        busy = [row for row, text in enumerate(texts) if text.busy]
        chosen = {row: int(texts[row].choose(scores[row])) for row in busy}
        numbers = read(model, texts, {row for row in busy if chosen[row] in model.numbers}, found)
        for row in busy:
            texts[row].add(model, chosen[row], *numbers.get(row, (None, {})))
        rows = [[text.tokens[-1]] for text in texts]
        ids = np.append(ids, [[token] for ((token, _),) in rows], 1)
        mask = np.append(mask, np.ones_like(mask[:, :1]), 1)
        cache = {f"past{name[7:]}": one for name, one in found.items() if name[:7] == "present"}
        yield


def read(model: Model, texts: Sequence[Text], rows: Collection[int], found: Any) -> dict[int, Any]:
    """By row, the text of the number that the head says there, and its streams."""
    rows = sorted(rows)
    said = {name[5:]: one[rows, -1] for name, one in found.items() if name[:5] == "read."}
    if not rows or not said:
        return {}

    def alone(at: int) -> float:
        tokens = texts[rows[at]].tokens
        again = model.run([tokens], np.ones((1, len(tokens)), np.int64), {})
        return float(again["read.values"][0, -1])

    values, bounds = said.pop("values", np.zeros(len(rows))), said.pop("bounds", None)
    words, streams = finalize(model.tokenizer, Reading(values, said, bounds), alone)
    shown = [{name: one[at] for name, one in streams.items()} for at in range(len(rows))]
    return {
        row: (word, one | {"number_mask": True})
        for row, word, one in zip(rows, words, shown, strict=True)
    }


def chooser(temperature: float, top_p: float, seed: int | None) -> Callable[[Any], Any]:
    """How a token is chosen from scores (vocabulary,)."""

    def choose(scores: Any) -> int:
        weights = np.exp((scores - scores.max()).astype(np.float64) / temperature)
        order = np.argsort(-weights)
        shares = weights[order] / weights.sum()
        kept = shares * (shares.cumsum() - shares <= top_p)
        return int(draw.choice(order, p=kept / kept.sum()))

    draw = np.random.default_rng(seed)
    return choose if temperature else np.argmax


def generate(model: Model, prompts: Sequence[str], max_new_tokens: int = 64) -> list[str]:
    """What the model writes behind each prompt, greedy."""
    texts = [Text(model, prompt, max_new_tokens) for prompt in prompts]
    for _ in write(model, texts):
        pass
    return ["".join(text.pieces) for text in texts]


if __name__ == "__main__":
    folder, *prompts = sys.argv[1:]
    for text in generate(Model(folder), prompts):
        print(text)
