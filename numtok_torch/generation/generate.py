"""Text with numbers from a :class:`~numtok_torch.NumberModel`: greedy, sampled, or by beams; batched, padded on the left, with a cache.

In: prompts as text. Out: what the model writes behind each, with its numbers in it. Whenever the token that is chosen (by whatever method, not the
most likely one) begins a number, the head reads the value from the hidden state that the token was chosen from. It becomes one decimal, which is put
into the text, and from which the tokenizer makes what the model sees at that token from then on; ``generation_numbers`` says how, and why the
result is the same with and without cache, alone and in a batch.

The choice of tokens is that of transformers' ``generate``, run on a class made from the backbone's own, whose ``forward`` puts the numbers in.
How it reorders beams need not be known: a number is found again by the tokens before it, see ``generation_state``.

A model without a head never writes ``[NUM]``, as it has no value for it. Numbers that are spelled out need no head: they are ordinary tokens, and
the places of their digits are those of :class:`~numtok_torch.embeddings.choose.PlaceTracker`.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from numtok import Tokenizer
from numtok.errors import InputError
from numtok.representations import PlaceValue, SingleToken
from numtok.tokenizer.schema import read_metadata
from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.dataset import NumberDataset
from numtok_torch.embeddings.choose import PlaceValueEmbedding
from numtok_torch.generation.state import Writing
from numtok_torch.generation.text import continuation, number_ids, spelled, value_of
from numtok_torch.generation.writer import encoded, encoded_alone, writer
from numtok_torch.model import backbone as middle
from numtok_torch.model.backbone import ModelError
from numtok_torch.model.model import NumberModel
from numtok_torch.model.positions import room
from numtok_torch.model.seq2seq import decoder_prompt, start_token

# Options of transformers' generate under which it does not see each token in its turn, or does not return ids.
REFUSED = (
    "assistant_model",
    "prompt_lookup_num_tokens",
    "prefill_chunk_size",
    "custom_generate",
    "inputs_embeds",
    "decoder_input_ids",
    "encoder_outputs",
    "return_dict_in_generate",
    "streamer",
)


@dataclass(frozen=True)
class Generated:
    """What was written.

    Attributes:
        texts: one per prompt and sequence, those of the first prompt first.
        ids: of the new tokens, without padding and the end token.
        values: of the new numbers, in order, as they stand in the text; NaN for spelled-out tokens that are no number.
    """

    texts: list[str]
    ids: list[list[int]]
    values: list[list[float]]

    def __add__(self, other: Generated) -> Generated:
        return Generated(self.texts + other.texts, self.ids + other.ids, self.values + other.values)


def generate(
    model: NumberModel,
    tokenizer: Any,
    prompts: Sequence[str],
    *,
    max_new_tokens: int = 64,
    do_sample: bool = False,
    num_beams: int = 1,
    num_return_sequences: int = 1,
    use_cache: bool = True,
    sample_numbers: bool = False,
    eos_token_id: int | Sequence[int] | None = None,
    pad_token_id: int | None = None,
    add_special_tokens: bool = False,
    full_text: bool = False,
    details: bool = False,
    batch_size: int | None = None,
    **options: Any,
) -> list[str] | Generated:
    """Continue texts.

    Args:
        model: around a Hugging Face model that can generate.
        tokenizer: the ``numtok.Tokenizer`` that the model was trained with, or a transformers tokenizer made from one.
        prompts: texts, none of them empty; their numbers are read as in training.
        max_new_tokens: at most so many behind each prompt, fewer where the model's table of positions ends.
        do_sample: draw tokens, else take the most likely one.
        num_beams: more than one: look for the most likely sequence with so many at once.
        num_return_sequences: texts per prompt, with sampling or beams.
        use_cache: keep keys and values; the result is the same without.
        sample_numbers: draw values too, from a head that can (``MixtureHead``); else they are its most fitting ones.
        eos_token_id: end tokens; a number token among them ends the text with its number. None: those of the backbone's generation config.
        pad_token_id: in front of shorter prompts, where the model does not look. None: any.
        add_special_tokens: put the tokenizer's special tokens in front of each prompt (``<s>``).
        full_text: return the prompt too.
        details: return :class:`Generated`, with ids and values, instead of texts.
        batch_size: prompts at once; None for all.
        options: further ones of transformers' ``generate``: ``temperature``, ``top_k``, ``top_p``, ``length_penalty``, ``logits_processor`` and so on.

    Returns:
        ``num_return_sequences`` texts for each prompt, those of the first prompt first.

    Raises:
        ModelError: if the model cannot generate, or with an option under which it does not see each token in its turn.
        InputError: for an empty prompt, and one that is longer than the model's table of positions.
        RepresentationError: if the head predicts NaN.
    """
    if isinstance(prompts, str):
        raise ModelError("prompts must be a list of texts, got one str; wrap it: [prompt]")
    model = middle.inner(model)  # of peft's get_peft_model(NumberModel(...), ...)
    inner = _check(model, tokenizer, options)
    if sample_numbers and not hasattr(model.head, "sample"):
        raise ModelError(f"{type(model.head).__name__} cannot draw values; leave sample_numbers out, or take MixtureHead")
    known: Any = options.get("generation_config") or model.transformer.generation_config
    ends = _as_list(known.eos_token_id if eos_token_id is None else eos_token_id)
    ends = ends or _as_list(getattr(tokenizer, "eos_token_id", None))
    pads = [*_as_list(pad_token_id), *_as_list(known.pad_token_id), *_as_list(getattr(tokenizer, "pad_token_id", None)), *ends, 0]
    chosen: dict[str, Any] = {
        "do_sample": do_sample,
        "num_beams": num_beams,
        "num_return_sequences": num_return_sequences,
        "use_cache": use_cache,
    }
    chosen |= {"max_new_tokens": max_new_tokens, "pad_token_id": pads[0], "eos_token_id": ends or None, **options}
    if model.head is None and isinstance(inner.numbers[0], SingleToken):
        chosen["suppress_tokens"] = [*(options.get("suppress_tokens") or []), *number_ids(inner)]
    if model.decodes:
        chosen.setdefault("decoder_start_token_id", start_token(model.transformer))
    found = Generated([], [], [])
    with evaluating(model):
        for start in range(0, len(prompts), batch_size or max(len(prompts), 1)):
            some = list(prompts[start : start + (batch_size or len(prompts))])
            prompt = read_prompts(inner, some, start, pads[0], add_special_tokens, model.device, not model.decodes)
            chosen["max_new_tokens"] = _fitting(model, prompt["input_ids"].shape[1], max_new_tokens, start)
            given = {"inputs": prompt["input_ids"], "attention_mask": prompt["attention_mask"]}
            alone = None
            if model.decodes:
                alone = functools.partial(encoded_alone, model, prompt)
                given = {"encoder_outputs": encoded(model, prompt), "attention_mask": prompt["attention_mask"]}
                prompt = decoder_prompt(prompt, chosen["decoder_start_token_id"])
            writing = Writing(model, inner, prompt, num_beams > 1, sample_numbers, alone)
            sequences = writer(model, writing).generate(**given, **chosen)
            found += _read(inner, writing, sequences, ends, num_return_sequences, some if full_text else None)
    return found if details else found.texts


def _check(model: Any, tokenizer: Any, options: dict[str, Any]) -> Tokenizer:
    """The numtok tokenizer, if all of them can be used."""
    if not isinstance(model, NumberModel):
        raise ModelError(f"generate needs a NumberModel, got {type(model).__name__}; of a wrapped one, give model.module")
    can = middle.is_pretrained(model.transformer) and model.transformer.can_generate()
    if not can or not (model.causal or model.decodes):
        raise ModelError(
            f"{type(model.transformer).__name__} cannot generate text; wrap a Hugging Face model that can (...ForCausalLM, ...ForConditionalGeneration)"
        )
    if refused := [name for name in REFUSED if options.get(name) is not None]:
        raise ModelError(
            f"generate does not support {', '.join(refused)}: each token must be seen in its turn, as numbers are read from it"
        )
    if getattr(model.transformer.generation_config, "prefill_chunk_size", None) is not None:
        raise ModelError("generate does not support prefill_chunk_size; set it to None in the backbone's generation_config")
    for inner in (tokenizer, getattr(tokenizer, "numtok", None), getattr(tokenizer, "number_tokenizer", None)):
        if isinstance(inner, Tokenizer):
            _check_places(model, inner)
            return inner
    raise ModelError(f"generate needs a numtok.Tokenizer, or a transformers tokenizer made from one, got {type(tokenizer).__name__}")


def _check_places(model: NumberModel, tokenizer: Tokenizer) -> None:
    """Whether training showed the digits to be written as they are shown here."""
    order = next((one.order for one in tokenizer.numbers if isinstance(one, PlaceValue)), None)
    for layer in () if model.embedding is None else model.embedding.modules():
        if not isinstance(layer, PlaceValueEmbedding) or layer.written == order:
            continue
        if layer.written is not None:
            raise ModelError(
                f"the places were made for digits written {layer.written!r}, the tokenizer writes them {order!r}; take the tokenizer of the training data"
            )
        warnings.warn(
            f"written=None showed true places in training, which are not known while a number is written; train with written={order!r}, as"
            " embedding_from_schema does by itself",
            stacklevel=4,
        )


def _fitting(model: NumberModel, prompt: int, new: int, first: int) -> int:
    """How many of the ``new`` tokens the backbone has positions for; the token that is written last needs none."""
    places = room(model.transformer)
    if places is None:
        return new
    if prompt > places:
        raise InputError(
            f"a prompt from number {first} on has {prompt} tokens, but {type(model.transformer).__name__} has {places} positions; shorten it"
        )
    return min(new, places) if model.decodes else min(new, places - prompt + 1)


def _as_list(ids: Any) -> list[int]:
    if ids is None:
        return []
    return [int(ids)] if np.ndim(ids) == 0 else [int(one) for one in ids]


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout, and back to how it was."""
    was = model.training
    if was:
        model.eval()
    try:
        yield
    finally:
        if was:
            model.train()


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

    What is gone on from is padded on the left, and has no ``[SEP]`` and the like behind it; what an encoder reads is as in training.
    """
    encoded = tokenizer.encode_batch(prompts, add_special_tokens=add_special_tokens)
    dataset = NumberDataset(encoded)
    behind = len(read_metadata(encoded.schema)["frame"][1]) if go_on else 0
    rows = [dict(dataset[row]) for row in range(len(prompts))]
    for number, row in enumerate(rows):
        stop = len(row["input_ids"]) - behind
        if stop <= 0:
            raise InputError(
                f"prompt {first + number} has no tokens to go on from: {prompts[number]!r}; give it some text, or add_special_tokens=True"
            )
        row |= {name: row[name][:stop] for name in ("input_ids", "place_value") if name in row}
    batch = NumberCollator.from_schema(encoded.schema, pad_token_id, padding_side="left" if go_on else "right", frame=(0, 0))(rows)
    return {name: stream.to(device) for name, stream in batch.items()}


def _read(
    tokenizer: Tokenizer, writing: Writing, sequences: Tensor, ends: list[int], per_prompt: int, prompts: list[str] | None
) -> Generated:
    """What stands behind the prompts in ids (rows, seq); with ``prompts``, their texts in front."""
    found = Generated([], [], [])
    for row, ids in enumerate(sequences[:, writing.width :].cpu().numpy()):
        stop = next((at for at, one in enumerate(ids.tolist()) if one in ends or one < 0), len(ids))
        ids = ids[: stop + 1] if writing.begins_number(ids[stop : stop + 1]).any() else ids[:stop]
        places, prompt = np.flatnonzero(writing.begins_number(ids)), row // per_prompt
        if isinstance(tokenizer.numbers[0], SingleToken):
            words = writing.surfaces([(writing.owner(row, per_prompt), ids[:place]) for place in places.tolist()])
        else:
            words = spelled(tokenizer, ids, places)
        before = [] if writing.model.decodes else writing.prompt_ids(prompt)
        text = continuation(tokenizer, before, ids.tolist(), words)
        found.texts.append(text if prompts is None else prompts[prompt] + text)
        found.ids.append(ids.tolist())
        found.values.append([value_of(word) for word in words])
    return found
