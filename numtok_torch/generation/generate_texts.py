"""Text with numbers from a :class:`~numtok_torch.NumberModel`: greedy, sampled, or by beams;
batched, padded on the left, with a cache.

In: prompts as text. Out: what the model writes after each, with its numbers in it. Whenever the
token that is chosen begins a number, the head reads the value from the hidden state that the token
was chosen from. The value becomes one decimal (:mod:`numtok.tokenizer.generated_numbers`), which is
put into the text, and from which the tokenizer makes what the model sees at that token.

Tokens are chosen by transformers' own ``generate``, of a class made from the backbone's, whose
``forward`` puts the numbers in (:mod:`numtok_torch.generation.state`). A model without a head never
writes ``[NUM]``, as it has no value for it. Numbers that are spelled out need no head.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from numtok import NumberFormat, Tokenizer
from numtok.errors import InputError, TokenizerError
from numtok.numbers.grammar import Grammar
from numtok.representations import SingleToken, SpelledOut
from numtok.tokenizer.generated_numbers import generated_text, number_ids, spelled, value_of
from numtok.tokenizer.packing import end_token
from numtok.tokenizer.schema import read_metadata
from numtok.tokenizer.well_formed import LONGEST, NumberRules
from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.dataset import NumberDataset
from numtok_torch.data.tokens import numtok_of
from numtok_torch.embeddings.place_values import PlaceValueEmbedding
from numtok_torch.generation.estimate import Estimate, options_of_samples
from numtok_torch.generation.state import TextStream, Writing, encoded, encoded_alone, writer
from numtok_torch.generation.well_formed import NumberLogitsProcessor
from numtok_torch.model.backbone import (
    UNSUPPORTED,
    ModelError,
    check_own_tokenizer,
    check_rows,
    is_pretrained,
    unwrapped,
)
from numtok_torch.model.model import NumberModel
from numtok_torch.model.run import evaluating, room
from numtok_torch.model.seq2seq import decoder_prompt, start_token

# Options of transformers' generate under which the model does not see each token in its turn, reads
# another text beside it, or does not return ids.
REFUSED = (
    "assistant_model",
    "prompt_lookup_num_tokens",
    "prefill_chunk_size",
    "guidance_scale",
    "custom_generate",
    "inputs_embeds",
    "decoder_input_ids",
    "encoder_outputs",
    "return_dict_in_generate",
)


@dataclass(frozen=True)
class Generated:
    """Texts that were generated, with their ids and values.

    Attributes:
        texts: one per prompt and sequence, those of the first prompt first.
        ids: the ids of each text's new tokens, without padding and the end token.
        values: the values of each text's new numbers, in their order; NaN for spelled-out tokens
            that are no number.
        estimates: with ``samples``, one for each prompt.

    Example:
        >>> import numtok, numtok_torch
        >>> tokenizer = numtok.Tokenizer.from_pretrained()
        >>> data = numtok_torch.NumberDataset(tokenizer.encode_batch(["It weighs 1.5 kg"]))
        >>> sizes = {"vocab_size": tokenizer.vocab_size, "d_model": 8, "n_layers": 1, "n_heads": 1}
        >>> backbone = numtok_torch.xval_gpt2(**sizes)
        >>> model = numtok_torch.NumberModel.build(backbone, data, tokenizer)
        >>> options = {"min_new_tokens": 4, "max_new_tokens": 4, "details": True}
        >>> generated = numtok_torch.generate(model, tokenizer, ["It weighs"], **options)
        >>> len(generated.texts), [len(ids) for ids in generated.ids]
        (1, [4])
    """

    texts: list[str]
    ids: list[list[int]]
    values: list[list[float]]
    estimates: tuple[Estimate, ...] = ()


def generate(
    model: NumberModel,
    tokenizer: Any,
    prompts: Sequence[str],
    *,
    max_new_tokens: int = 64,
    sample_numbers: bool = False,
    samples: int | None = None,
    reduce: Literal["median", "mean"] = "median",
    coverage: float = 0.9,
    add_special_tokens: bool = False,
    full_text: bool = False,
    details: bool = False,
    batch_size: int | None = None,
    well_formed: bool = True,
    longest: int = LONGEST,
    format: NumberFormat | None = None,
    **options: Any,
) -> list[str] | Generated:
    """Continue texts: ``num_return_sequences`` for each prompt, those of the first prompt first.

    Args:
        model: around a Hugging Face model that can generate.
        tokenizer: that the model was trained with, or a transformers tokenizer made from it.
        prompts: texts, none of them empty; their numbers are read as in training.
        max_new_tokens: fewer where the model's table of positions ends.
        sample_numbers: draw values too, from a head that can, such as ``MixtureHead``.
        samples: draw so many texts for each prompt, and values from a head that can, and return
            :class:`Generated` with an :class:`Estimate` for each, of the first number of each text.
        reduce: to their ``"median"`` or ``"mean"``.
        coverage: the share of them that lies in the estimate's interval.
        add_special_tokens: put the tokenizer's special tokens in front of each prompt (``<s>``).
        full_text: return the prompt too.
        details: return :class:`Generated`, with ids and values.
        batch_size: prompts at once; None for all. Give 1 for the few models that ignore padding on
            the left, such as RWKV, RecurrentGemma, RoFormer and the decoder of a BART alone.
        well_formed: write numbers as :class:`~numtok_torch.NumberLogitsProcessor` has them.
        longest: symbols that a spelled-out number has at most.
        format: write one number of this format only; for ``subword`` and bare ``digits``.
        options: those of transformers' ``generate``; greedy if they do not say. ``eos_token_id``
            are by default the tokenizer's and those of the generation config, ``[]`` for none; a
            number token among them ends the text with its number. ``streamer``, for one prompt and
            one text: a ``TextStreamer`` is given the text that is returned, any other the ids.

    Raises:
        ModelError: if the model cannot generate, or not with this tokenizer or these options.
        FormatError: if the tokenizer cannot write the numbers of ``format``.
        InputError: for an empty prompt, and one that is longer than the model's table of positions.
        RepresentationError: if the head predicts NaN.

    Example:
        >>> import numtok, numtok_torch
        >>> tokenizer = numtok.Tokenizer.from_pretrained()
        >>> data = numtok_torch.NumberDataset(tokenizer.encode_batch(["It weighs 1.5 kg"]))
        >>> sizes = {"vocab_size": tokenizer.vocab_size, "d_model": 8, "n_layers": 1, "n_heads": 1}
        >>> backbone = numtok_torch.xval_gpt2(**sizes)
        >>> model = numtok_torch.NumberModel.build(backbone, data, tokenizer)
        >>> texts = numtok_torch.generate(model, tokenizer, ["It weighs", "7 is"], max_new_tokens=4)
        >>> len(texts)
        2
    """
    model = unwrapped(model)  # of peft's get_peft_model(NumberModel(...), ...)
    if samples is not None:
        options |= options_of_samples(samples, reduce, coverage, options)
        sample_numbers = hasattr(getattr(model, "head", None), "sample")
    options = _all_options(options) | {"max_new_tokens": max_new_tokens}
    held = longest if well_formed else None
    call = Call.of(model, tokenizer, len(prompts), options, sample_numbers, held, format)
    generated = call.continue_all(prompts, batch_size, add_special_tokens, full_text)
    if samples is None:
        return generated if details else generated.texts
    each = [generated.values[at : at + samples] for at in range(0, len(generated.values), samples)]
    return replace(generated, estimates=tuple(Estimate.of(one, reduce, coverage) for one in each))


def _all_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of transformers' ``generate``, greedy where they do not say."""
    if options.get("generation_config") is not None:
        raise ModelError(
            "generate takes the options one by one, do_sample=True for one, and its own where they"
            " are not given, so that those of a generation_config would not count"
        )
    greedy = {"do_sample": False, "num_beams": 1, "num_return_sequences": 1, "use_cache": True}
    return {**greedy, **options}


def _checked(
    model: Any, tokenizer: Any, prompts: int, sample: bool, options: Mapping[str, Any]
) -> Tokenizer:
    """Return the numtok tokenizer in what is given, if all fits together."""
    if not isinstance(model, NumberModel):
        raise ModelError(
            f"generate needs a NumberModel, got {type(model).__name__}; of a wrapped one, give"
            " model.module"
        )
    can = is_pretrained(model.transformer) and model.transformer.can_generate()
    can = can and model.transformer.config.model_type not in UNSUPPORTED
    if not can or not (model.causal or model.decodes):
        raise ModelError(
            f"{type(model.transformer).__name__} cannot generate text; wrap a Hugging Face model"
            " that can (...ForCausalLM, ...ForConditionalGeneration)"
        )
    if sample and not hasattr(model.head, "sample"):
        raise ModelError(
            f"{type(model.head).__name__} cannot draw values; leave sample_numbers out, or take"
            " MixtureHead, QuantileHead or FourierHead"
        )
    _check_options(model, prompts, options)
    numtok_tokenizer = numtok_of(tokenizer, ModelError)
    check_fits(model, numtok_tokenizer)
    return numtok_tokenizer


def _check_options(model: NumberModel, prompts: int, options: Mapping[str, Any]) -> None:
    if refused := [name for name in REFUSED if options.get(name) is not None]:
        raise ModelError(
            f"generate does not support {', '.join(refused)}: each token must be seen in its turn,"
            " as numbers are read from it"
        )
    if options.get("cache_implementation") == "paged":
        raise ModelError(
            "generate does not support cache_implementation='paged', which writes by another loop;"
            " leave it out"
        )
    configs = (options.get("generation_config"), model.transformer.generation_config)
    for name in ("prefill_chunk_size", "prompt_lookup_num_tokens", "guidance_scale"):
        if any(getattr(config, name, None) is not None for config in configs):
            raise ModelError(
                f"generate does not support {name}; set it to None in the generation config"
            )
    texts = (prompts, options["num_beams"], options["num_return_sequences"])
    if options.get("streamer") is not None and texts != (1, 1, 1):
        raise ModelError(
            "a streamer shows one text as it is written: give one prompt, and neither num_beams nor"
            " num_return_sequences"
        )


def check_fits(model: NumberModel, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer that is not the model's, or has more tokens than the model has rows, or
    writes digits in another order than that in which the layer knows their places.
    """
    check_rows(model.transformer, tokenizer.vocab_size)
    _check_places(model, tokenizer)
    if (made_for := model.tokenizer_identity) is not None:
        check_own_tokenizer(made_for, tokenizer)


def _check_places(model: NumberModel, tokenizer: Tokenizer) -> None:
    first = tokenizer.representations[0]
    order = first.order if isinstance(first, SpelledOut) else None
    for layer in () if model.embedding is None else model.embedding.modules():
        if not isinstance(layer, PlaceValueEmbedding) or layer.written == order:
            continue
        if layer.written is not None:
            raise ModelError(
                f"the places were made for digits written {layer.written!r}, the tokenizer writes"
                f" them {order!r}; take the tokenizer of the training data"
            )
        warnings.warn(
            "written=None showed true places in training, which are not known while a number is"
            f" written; train with written={order!r}, as embedding_from_schema does by itself",
            stacklevel=5,
        )


def option_of(model: NumberModel, options: Mapping[str, Any], name: str) -> Any:
    """Return an option of ``generate`` as transformers finds it: as it is given, else in the
    generation config that is given, else in the model's; None if it is in none.
    """
    configs = (options.get("generation_config"), model.transformer.generation_config)
    values = (options.get(name), *(getattr(config, name, None) for config in configs))
    return next((value for value in values if value is not None), None)


def special_tokens(
    model: NumberModel, source: Any, tokenizer: Tokenizer, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the end tokens, the padding, the start token of a decoder, and the tokens that are
    never written: numbers that are one token, without a head that has a value for them.
    """
    asked = functools.partial(option_of, model, options)
    ends = _as_list(asked("eos_token_id"))
    if options.get("eos_token_id") is None:
        ends = list(dict.fromkeys([*_as_list(_end_of(source, tokenizer)), *ends]))
    pads = (asked("pad_token_id"), getattr(source, "pad_token_id", None))
    tokens: dict[str, Any] = {
        "eos_token_id": ends or None,
        "pad_token_id": next(ids[0] for some in (*pads, ends, 0) if (ids := _as_list(some))),
    }
    if model.decodes:
        start = asked("decoder_start_token_id")
        start = start_token(model.transformer) if start is None else start
        tokens["decoder_start_token_id"] = start
    if model.head is None and isinstance(tokenizer.representations[0], SingleToken):
        suppressed = asked("suppress_tokens") or []
        tokens["suppress_tokens"] = [*suppressed, *number_ids(tokenizer)]
    return tokens


def _end_of(source: Any, tokenizer: Tokenizer) -> int | None:
    """Return the end token of a transformers tokenizer, as it says, or of numtok's own."""
    if (end := getattr(source, "eos_token_id", None)) is not None:
        return int(end)
    with contextlib.suppress(TokenizerError):
        return end_token(tokenizer)
    return None


def _as_list(ids: Any) -> list[int]:
    return [] if ids is None else np.ravel(ids).astype(int).tolist()


def read_prompts(
    tokenizer: Tokenizer,
    prompts: list[str],
    first: int,
    pad_token_id: int,
    add_special_tokens: bool,
    device: torch.device,
    go_on: bool = True,
) -> dict[str, Tensor]:
    """Return the batch of the prompts; ``first`` is the number of the first one in messages.

    What is gone on from is padded on the left, and has no ``[SEP]`` and the like after it; what an
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
    side = "left" if go_on else "right"
    batch = NumberCollator.from_schema(
        encoded.schema, pad_token_id, objective=None, padding_side=side, frame=(0, 0)
    )(rows)
    return {name: stream.to(device) for name, stream in batch.items()}


def tokens_that_fit(model: NumberModel, prompt: int, new: int, first: int) -> int:
    """Return how many of the ``new`` tokens have positions; the last needs none. InputError for a
    prompt that is too long; ``first`` is the number of the batch's first prompt.
    """
    places = room(model.transformer)
    if places is not None and prompt > places:
        raise InputError(
            f"a prompt from number {first} on has {prompt} tokens, but"
            f" {type(model.transformer).__name__} has {places} positions; shorten it"
        )
    if model.decodes:
        places, prompt = room(model.transformer, decoder=True), 1
    return new if places is None else min(new, places - prompt + 1)


@dataclass(frozen=True)
class Call:
    """Options that all batches of one call of :func:`generate` share."""

    model: NumberModel
    tokenizer: Tokenizer
    # those of transformers' ``generate``, all that :func:`special_tokens` says among them. A number
    # token among the ``eos_token_id`` ends the text with its number.
    options: dict[str, Any]
    sample_numbers: bool
    well_formed: NumberLogitsProcessor | None

    @classmethod
    def of(
        cls,
        model: Any,
        tokenizer: Any,
        prompts: int,
        options: dict[str, Any],
        sample_numbers: bool = False,
        longest: int | None = LONGEST,
        number_format: NumberFormat | None = None,
    ) -> Call:
        """Make a call for so many prompts, if all of it fits together; with ``longest=None``,
        spelled-out numbers may be anything.
        """
        numtok_tokenizer = _checked(model, tokenizer, prompts, sample_numbers, options)
        options = options | special_tokens(model, tokenizer, numtok_tokenizer, options)
        if options.get("stop_strings"):
            if isinstance(tokenizer, Tokenizer):
                raise ModelError(
                    "stop_strings are found by a transformers tokenizer; give that of the folder:"
                    " numtok.hf.NumberTokenizer.from_pretrained(folder)"
                )
            options["tokenizer"] = tokenizer
        if number_format is not None:
            processors = options.get("logits_processor") or []
            ends = options["eos_token_id"]
            processor = number_format.logits_processor(numtok_tokenizer, eos_token_id=ends)
            options["logits_processor"] = [*processors, processor]
        holds = longest is not None and NumberRules.of(numtok_tokenizer) is not None
        held = NumberLogitsProcessor(numtok_tokenizer, longest or LONGEST) if holds else None
        return cls(model, numtok_tokenizer, options, sample_numbers, held)

    def continue_all(
        self,
        prompts: Sequence[str],
        batch_size: int | None,
        add_special_tokens: bool,
        full_text: bool,
    ) -> Generated:
        """Return what the model writes after each prompt, ``batch_size`` of them at once; without
        dropout.
        """
        if isinstance(prompts, str):
            raise ModelError("prompts must be a list of texts, got one str; wrap it: [prompt]")
        if batch_size is not None and batch_size < 1:
            raise ModelError(f"batch_size={batch_size} must be positive, or None for all prompts")
        size, generated = batch_size or max(len(prompts), 1), Generated([], [], [])
        model, pad = self.model, self.options["pad_token_id"]
        with evaluating(model):
            for first in range(0, len(prompts), size):
                some = list(prompts[first : first + size])
                framed, go_on = add_special_tokens, not model.decodes
                batch = read_prompts(self.tokenizer, some, first, pad, framed, model.device, go_on)
                shown = some[0] if full_text else ""
                writing, sequences = self.write(batch, first, shown, return_dict_in_generate=False)
                for row, (ids, places) in enumerate(self.written(writing, sequences)):
                    words = list(places.values())
                    prompt = row // self.options["num_return_sequences"]
                    text = generated_text(self.tokenizer, writing.prompt_ids(prompt), ids, words)
                    generated.texts.append(some[prompt] + text if full_text else text)
                    generated.ids.append(ids)
                    generated.values.append([self.value(word) for word in words])
        return generated

    def write(
        self, batch: dict[str, Tensor], first: int = 0, shown: str = "", **more: Any
    ) -> tuple[Writing, Any]:
        """Run transformers' ``generate`` on a batch of prompts, with ``more`` options; return its
        memory and its output. A streamer is given the text ``shown`` first.
        """
        model, options = self.model, self.options
        ids, mask = batch["input_ids"], batch["attention_mask"]
        new = tokens_that_fit(model, ids.shape[1], options["max_new_tokens"], first)
        arguments: dict[str, Any] = {"inputs": ids, "attention_mask": mask}
        alone = None
        if model.decodes:
            alone = functools.partial(encoded_alone, model, batch)
            arguments = {"encoder_outputs": encoded(model, batch), "attention_mask": mask}
            batch = decoder_prompt(batch, options["decoder_start_token_id"])
        beams = options["num_beams"] > 1
        writing = Writing(model, self.tokenizer, batch, beams, self.sample_numbers, alone)
        arguments |= options | {"max_new_tokens": new} | more
        if self.well_formed is not None:
            forced = option_of(model, options, "forced_eos_token_id")  # as of BART
            held = self.well_formed.within(writing.width + new - (forced is not None))
            arguments["logits_processor"] = [*(options.get("logits_processor") or []), held]
        if hasattr(streamer := options.get("streamer"), "on_finalized_text"):
            ends = options["eos_token_id"] or []
            arguments["streamer"] = TextStream(streamer, writing, ends, shown)
        return writing, writer(model, writing).generate(**arguments)

    def written(
        self, writing: Writing, sequences: Tensor
    ) -> Iterator[tuple[list[int], dict[int, str]]]:
        """Yield for each row of ids (rows, seq) the ids after the prompt, without padding and the
        end token, and the texts of the numbers that begin at these places among them.
        """
        ends, per_prompt = self.options["eos_token_id"] or [], self.options["num_return_sequences"]
        for row, ids in enumerate(sequences[:, writing.width :].cpu().numpy()):
            ended = (at for at, one in enumerate(ids.tolist()) if one in ends or one < 0)
            stop = next(ended, len(ids))
            if writing.begins_number(ids[stop : stop + 1]).any():  # an end token with a value
                stop += 1
            ids = ids[:stop]
            if isinstance(self.tokenizer.representations[0], SingleToken):
                owner = writing.owner(row, per_prompt)
                places = np.flatnonzero(writing.begins_number(ids)).tolist()
                words = writing.surfaces([(owner, ids[:place]) for place in places])
                yield ids.tolist(), dict(zip(places, words, strict=True))
            else:
                before = writing.prompt_ids(row // per_prompt)
                yield ids.tolist(), spelled(self.tokenizer, ids, before)

    def value(self, word: str) -> float:
        """Return the value of the text of a number that was written."""
        of_a_head = isinstance(self.tokenizer.representations[0], SingleToken)  # is a decimal
        return value_of(word, Grammar() if of_a_head else self.tokenizer.grammar)
