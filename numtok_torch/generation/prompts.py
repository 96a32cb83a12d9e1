"""Prompts as batches, and how far a model can go on from them.

In: texts. Out: the streams of one batch, (prompts, seq, ...), padded so that what is written
    follows on.
"""

from __future__ import annotations

import torch
from torch import Tensor

from numtok import Tokenizer
from numtok.errors import InputError
from numtok.tokenizer.schema import read_metadata
from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.dataset import NumberDataset
from numtok_torch.model.model import NumberModel
from numtok_torch.model.positions import room


def read_prompts(
    tokenizer: Tokenizer,
    prompts: list[str],
    first: int,
    pad_token_id: int,
    add_special_tokens: bool,
    device: torch.device,
    go_on: bool = True,
) -> dict[str, Tensor]:
    """The batch of the prompts; ``first`` is the number of the first one in messages.

    What is gone on from is padded on the left, and has no ``[SEP]`` and the like behind it; what an
    encoder reads is as in training.
    """
    encoded = tokenizer.encode_batch(prompts, add_special_tokens=add_special_tokens)
    dataset = NumberDataset(encoded)
    behind = len(read_metadata(encoded.schema)["frame"][1]) if go_on else 0
    rows = [dict(dataset[row]) for row in range(len(prompts))]
    for number, row in enumerate(rows):
        stop = len(row["input_ids"]) - behind
        if stop <= 0:
            raise InputError(
                f"prompt {first + number} has no tokens to go on from: {prompts[number]!r}; give it"
                " some text, or add_special_tokens=True"
            )
        row |= {name: row[name][:stop] for name in ("input_ids", "place_value") if name in row}
    batch = NumberCollator.from_schema(
        encoded.schema,
        pad_token_id,
        objective=None,
        padding_side="left" if go_on else "right",
        frame=(0, 0),
    )(rows)
    return {name: stream.to(device) for name, stream in batch.items()}


def tokens_that_fit(model: NumberModel, prompt: int, new: int, first: int) -> int:
    """How many of the ``new`` tokens the backbone has positions for; the token that is written last
    needs none.
    """
    places = room(model.transformer)
    if places is None:
        return new
    if prompt > places:
        raise InputError(
            f"a prompt from number {first} on has {prompt} tokens, but"
            f" {type(model.transformer).__name__} has {places} positions; shorten it"
        )
    return min(new, places) if model.decodes else min(new, places - prompt + 1)
