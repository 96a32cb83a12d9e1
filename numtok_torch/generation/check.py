"""Whether a model, a tokenizer and options can be used together to generate; what cannot is refused
before anything is computed.

In: what the user gave. Out: the numtok tokenizer in it, or a ``ModelError`` that says what does not
    fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from numtok import Tokenizer
from numtok_torch.embeddings.place_values import PlaceValueEmbedding
from numtok_torch.model.backbone import OWN_MASKS, ModelError, is_pretrained
from numtok_torch.model.model import NumberModel

# Options of transformers' generate under which it does not see each token in its turn, or does not
# return ids.
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


def usable_tokenizer(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str],
    options: Mapping[str, Any],
    sample_numbers: bool,
) -> Tokenizer:
    """The numtok tokenizer that is given, or that is in what is given, if model, tokenizer, prompts
    and options can be used.

    Raises:
        ModelError: if not.
    """
    if isinstance(prompts, str):
        raise ModelError("prompts must be a list of texts, got one str; wrap it: [prompt]")
    if not isinstance(model, NumberModel):
        raise ModelError(
            f"generate needs a NumberModel, got {type(model).__name__}; of a wrapped one, give"
            " model.module"
        )
    can = is_pretrained(model.transformer) and model.transformer.can_generate()
    can = can and model.transformer.config.model_type not in OWN_MASKS
    if not can or not (model.causal or model.decodes):
        raise ModelError(
            f"{type(model.transformer).__name__} cannot generate text; wrap a Hugging Face model"
            " that can (...ForCausalLM, ...ForConditionalGeneration)"
        )
    if refused := [name for name in REFUSED if options.get(name) is not None]:
        raise ModelError(
            f"generate does not support {', '.join(refused)}: each token must be seen in its turn,"
            " as numbers are read from it"
        )
    if getattr(model.transformer.generation_config, "prefill_chunk_size", None) is not None:
        raise ModelError(
            "generate does not support prefill_chunk_size; set it to None in the backbone's"
            " generation_config"
        )
    if sample_numbers and not hasattr(model.head, "sample"):
        raise ModelError(
            f"{type(model.head).__name__} cannot draw values; leave sample_numbers out, or take"
            " MixtureHead"
        )
    found = tokenizer_in(tokenizer)
    _check_places(model, found)
    return found


def tokenizer_in(tokenizer: Any) -> Tokenizer:
    """The numtok tokenizer that is given, or that is in what is given.

    Raises:
        ModelError: if there is none.
    """
    for candidate in (
        tokenizer,
        getattr(tokenizer, "numtok", None),
        getattr(tokenizer, "number_tokenizer", None),
    ):
        if isinstance(candidate, Tokenizer):
            return candidate
    raise ModelError(
        "numbers are written with a numtok.Tokenizer, or a transformers tokenizer made from one,"
        f" got {type(tokenizer).__name__}"
    )


def _check_places(model: NumberModel, tokenizer: Tokenizer) -> None:
    """Whether training showed the digits to be written as they are shown here."""
    order = tokenizer.representations[0].order
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
            stacklevel=4,
        )
