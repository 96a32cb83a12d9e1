"""Text with numbers from a :class:`~numtok_torch.NumberModel`: greedy, sampled, or by beams;
batched, padded on the left, with a cache.

In: prompts as text. Out: what the model writes behind each, with its numbers in it. Whenever the
    token that is chosen (by whatever method, not the most likely one) begins a number, the head
    reads the value from the hidden state that the token was chosen from. It becomes one decimal,
    which is put into the text, and from which the tokenizer makes what the model sees at that token
    from then on; ``generation_numbers`` says how, and why the result is the same with and without
    cache, alone and in a batch.

The choice of tokens is that of transformers' ``generate``, run on a class made from the backbone's
own, whose ``forward`` puts the numbers in.
How it reorders beams need not be known: a number is found again by the tokens before it, see
    ``generation_state``.

A model without a head never writes ``[NUM]``, as it has no value for it. Numbers that are spelled
out need no head: they are ordinary tokens, held to what may follow in a number by
:class:`~numtok_torch.generation.well_formed.NumberLogitsProcessor`, and the places of their digits
are those of :class:`~numtok_torch.embeddings.choose.PlaceTracker`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from numtok import Tokenizer
from numtok.numbers.grammar import Grammar
from numtok_torch.generation.check import usable_tokenizer
from numtok_torch.generation.prompts import read_prompts, tokens_that_fit
from numtok_torch.generation.state import Writing
from numtok_torch.generation.text import continuation, number_ids, spelled, value_of
from numtok_torch.generation.token_rules import has_rules
from numtok_torch.generation.well_formed import LONGEST, NumberLogitsProcessor
from numtok_torch.generation.writer import encoded, encoded_alone, writer
from numtok_torch.model.backbone import unwrapped
from numtok_torch.model.model import NumberModel
from numtok_torch.model.seq2seq import decoder_prompt, start_token


@dataclass(frozen=True)
class Generated:
    """What was written.

    Attributes:
        texts: one per prompt and sequence, those of the first prompt first.
        ids: of the new tokens, without padding and the end token.
        values: of the new numbers, in order, as they stand in the text; NaN for spelled-out tokens
            that are no number.
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
    well_formed: bool = True,
    longest: int = LONGEST,
    **options: Any,
) -> list[str] | Generated:
    """Continue texts.

    Args:
        model: around a Hugging Face model that can generate.
        tokenizer: the ``numtok.Tokenizer`` that the model was trained with, or a transformers
            tokenizer made from one.
        prompts: texts, none of them empty; their numbers are read as in training.
        max_new_tokens: at most so many behind each prompt, fewer where the model's table of
            positions ends.
        do_sample: draw tokens, else take the most likely one.
        num_beams: more than one: look for the most likely sequence with so many at once.
        num_return_sequences: texts per prompt, with sampling or beams.
        use_cache: keep keys and values; the result is the same without.
        sample_numbers: draw values too, from a head that can (``MixtureHead``); else they are its
            most fitting ones.
        eos_token_id: end tokens; a number token among them ends the text with its number. None:
            those of the backbone's generation config.
        pad_token_id: in front of shorter prompts, where the model does not look. None: any.
        add_special_tokens: put the tokenizer's special tokens in front of each prompt (``<s>``).
        full_text: return the prompt too.
        details: return :class:`Generated`, with ids and values, instead of texts.
        batch_size: prompts at once; None for all.
        well_formed: continue spelled-out numbers as numbers only, and begin none that
            ``max_new_tokens`` would cut.
        longest: symbols that such a number has at most.
        options: further ones of transformers' ``generate``: ``temperature``, ``top_k``, ``top_p``,
            ``length_penalty``, ``logits_processor`` and so on.

    Returns:
        ``num_return_sequences`` texts for each prompt, those of the first prompt first.

    Raises:
        ModelError: if the model cannot generate, or with an option under which it does not see each
            token in its turn.
        InputError: for an empty prompt, and one that is longer than the model's table of positions.
        RepresentationError: if the head predicts NaN.
    """
    model = unwrapped(model)  # of peft's get_peft_model(NumberModel(...), ...)
    numtok_tokenizer = usable_tokenizer(model, tokenizer, prompts, options, sample_numbers)
    options |= {
        "do_sample": do_sample,
        "num_beams": num_beams,
        "num_return_sequences": num_return_sequences,
        "use_cache": use_cache,
    }
    options |= {
        "max_new_tokens": max_new_tokens,
        "eos_token_id": eos_token_id,
        "pad_token_id": pad_token_id,
    }
    options |= _special_tokens(model, tokenizer, options) | _without_values(
        model, numtok_tokenizer, options
    )
    processor = (
        NumberLogitsProcessor(numtok_tokenizer, longest)
        if well_formed and has_rules(numtok_tokenizer)
        else None
    )
    call = _Call(
        model, numtok_tokenizer, options, sample_numbers, add_special_tokens, full_text, processor
    )
    written = call.continue_all(prompts, batch_size or max(len(prompts), 1))
    return written if details else written.texts


def _special_tokens(model: NumberModel, tokenizer: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The end tokens, the padding, and what a decoder begins with: as given, else of the generation
    config, else of the tokenizer.
    """
    config: Any = options.get("generation_config") or model.transformer.generation_config
    ends = _as_list(
        config.eos_token_id if options["eos_token_id"] is None else options["eos_token_id"]
    )
    ends = ends or _as_list(getattr(tokenizer, "eos_token_id", None))
    given = (
        options["pad_token_id"],
        config.pad_token_id,
        getattr(tokenizer, "pad_token_id", None),
        ends,
        0,
    )
    tokens: dict[str, Any] = {
        "eos_token_id": ends or None,
        "pad_token_id": next(ids[0] for some in given if (ids := _as_list(some))),
    }
    if model.decodes:
        tokens["decoder_start_token_id"] = options.get(
            "decoder_start_token_id", start_token(model.transformer)
        )
    return tokens


def _without_values(
    model: NumberModel, tokenizer: Tokenizer, options: dict[str, Any]
) -> dict[str, Any]:
    """Without a head there is no value for ``[NUM]``, which is then not written."""
    if model.head is not None or not tokenizer.representations[0].one_token:
        return {}
    return {"suppress_tokens": [*(options.get("suppress_tokens") or []), *number_ids(tokenizer)]}


def _forces_the_end(model: NumberModel, options: dict[str, Any]) -> bool:
    """Whether the last token that there is room for is an end token, as of BART."""
    config: Any = options.get("generation_config") or model.transformer.generation_config
    return options.get("forced_eos_token_id", config.forced_eos_token_id) is not None


def _as_list(ids: Any) -> list[int]:
    if ids is None:
        return []
    return [int(ids)] if np.ndim(ids) == 0 else [int(number) for number in ids]


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


@dataclass(frozen=True)
class _Call:
    """What all batches of one call of :func:`generate` have in common; ``options`` are those of
    transformers' ``generate``.
    """

    model: NumberModel
    tokenizer: Tokenizer
    options: dict[str, Any]
    sample_numbers: bool
    add_special_tokens: bool
    full_text: bool
    well_formed: NumberLogitsProcessor | None

    def continue_all(self, prompts: Sequence[str], batch_size: int) -> Generated:
        """What the model writes behind each, so many prompts at once."""
        written = Generated([], [], [])
        with evaluating(self.model):
            for first in range(0, len(prompts), batch_size):
                written += self.continue_prompts(list(prompts[first : first + batch_size]), first)
        return written

    def continue_prompts(self, prompts: list[str], first: int) -> Generated:
        """What the model writes behind each; ``first`` is the number of the first prompt in
        messages.
        """
        model, options = self.model, self.options
        add_special_tokens, go_on = self.add_special_tokens, not model.decodes
        batch = read_prompts(
            self.tokenizer,
            prompts,
            first,
            options["pad_token_id"],
            add_special_tokens,
            model.device,
            go_on,
        )
        options = options | {
            "max_new_tokens": tokens_that_fit(
                model, batch["input_ids"].shape[1], options["max_new_tokens"], first
            )
        }
        given = {"inputs": batch["input_ids"], "attention_mask": batch["attention_mask"]}
        alone = None
        if model.decodes:
            alone = functools.partial(encoded_alone, model, batch)
            given = {
                "encoder_outputs": encoded(model, batch),
                "attention_mask": batch["attention_mask"],
            }
            batch = decoder_prompt(batch, options["decoder_start_token_id"])
        writing = Writing(
            model, self.tokenizer, batch, options["num_beams"] > 1, self.sample_numbers, alone
        )
        if self.well_formed is not None:
            length = writing.width + options["max_new_tokens"] - _forces_the_end(model, options)
            options["logits_processor"] = [
                *(options.get("logits_processor") or []),
                self.well_formed.within(length),
            ]
        sequences = writer(model, writing).generate(**given, **options)
        return self._read(writing, sequences, prompts)

    def _read(self, writing: Writing, sequences: Tensor, prompts: list[str]) -> Generated:
        """What stands behind the prompts in ids (rows, seq)."""
        ends, per_prompt = self.options["eos_token_id"] or [], self.options["num_return_sequences"]
        written = Generated([], [], [])
        for row, ids in enumerate(sequences[:, writing.width :].cpu().numpy()):
            stop = next(
                (at for at, number in enumerate(ids.tolist()) if number in ends or number < 0),
                len(ids),
            )
            ids = (
                ids[: stop + 1] if writing.begins_number(ids[stop : stop + 1]).any() else ids[:stop]
            )
            places, prompt = np.flatnonzero(writing.begins_number(ids)), row // per_prompt
            # of decimals that a head says; what is spelled out is written as the tokenizer's
            # grammar reads it
            grammar = Grammar()
            if self.tokenizer.representations[0].one_token:
                words = writing.surfaces(
                    [(writing.owner(row, per_prompt), ids[:place]) for place in places.tolist()]
                )
            else:
                words, grammar = spelled(self.tokenizer, ids, places), self.tokenizer.grammar
            before = [] if self.model.decodes else writing.prompt_ids(prompt)
            text = continuation(self.tokenizer, before, ids.tolist(), words)
            written.texts.append(prompts[prompt] + text if self.full_text else text)
            written.ids.append(ids.tolist())
            written.values.append([value_of(word, grammar) for word in words])
        return written
