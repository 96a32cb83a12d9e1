"""The transformer in the middle: what :class:`~numtok_torch.model.NumberModel` needs to know of it.

In: a Hugging Face model, or a plain module with the two methods of :class:`PlainBackbone`; word vectors, float (batch, seq, d). Out: its output and
the hidden states of its last layer, float (batch, seq, d_hidden), which heads read.

**Positions.** A transformer that is given vectors cannot see which tokens are padding. So where its ``forward`` takes ``position_ids`` and none are
given, they are those that the stock model takes for ids padded on the right, and on the left those that the row would have without its padding.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from numtok.errors import NumtokError

ADAPTERS = ("LORA", "IA3", "LOHA", "LOKR", "OFT", "TRAINABLE_TOKENS")  # kinds of peft that lie in layers


class ModelError(NumtokError, ValueError):
    """A backbone, embedding and head that do not fit together, inputs that the model cannot use, or a saved model that cannot be read."""


class PlainBackbone(Protocol):
    """What a module must have that is no Hugging Face model. Two more methods are used if it has them.

    - ``get_output_embeddings()``: the layer from hidden states (..., d_hidden) to logits (..., vocab); without it there is no token loss;
    - ``resize_token_embeddings(size, mean_resizing=...)``: for ``vocab_size``.
    """

    def get_input_embeddings(self) -> nn.Module:
        """The ``nn.Embedding`` of the word vectors."""

    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Word vectors (batch, seq, d) to hidden states (batch, seq, d_hidden). ``position_ids`` are given too if it names them."""


def is_pretrained(backbone: nn.Module) -> bool:
    """Whether it is a Hugging Face model; transformers is not imported to find out."""
    transformers = sys.modules.get("transformers.modeling_utils")
    return transformers is not None and isinstance(backbone, transformers.PreTrainedModel)


def inner(backbone: Any) -> Any:
    """What peft's ``get_peft_model`` has wrapped; anything else is given back. peft is not imported to find out.

    The adapters are inside it: it computes what the wrapper computes, and has the signature, the config and ``generate`` that the wrapper hides.
    """
    peft = sys.modules.get("peft")
    kinds = tuple(kind for name in ("PeftModel", "PeftMixedModel") if (kind := getattr(peft, name, None)) is not None)
    return backbone.base_model.model if isinstance(backbone, kinds) and not unsupported_adapters(backbone) else backbone


def unsupported_adapters(backbone: Any) -> list[str]:
    """The kinds of its adapters that are not :data:`ADAPTERS`, which lie in layers and change nothing else: prompts, for example."""
    configs = getattr(backbone, "peft_config", None) or {}
    kinds = [getattr(config.peft_type, "value", config.peft_type) for config in configs.values()]
    return [str(kind) for kind in kinds if kind not in ADAPTERS]


def check_backbone(backbone: Any) -> None:
    """Refuse what cannot take word vectors, or is an encoder with a decoder."""
    name = type(backbone).__name__
    if other := unsupported_adapters(backbone):
        raise ModelError(f"adapters of the kind {other[0]} are not supported inside a NumberModel; there are {', '.join(ADAPTERS)}")
    backbone = inner(backbone)
    name = type(backbone).__name__
    if getattr(getattr(backbone, "config", None), "is_encoder_decoder", False):
        raise ModelError(
            f"{name} is an encoder with a decoder, which NumberModel does not support; give it the encoder, model.get_encoder()"
        )
    if "inputs_embeds" not in parameters_of(backbone):
        raise ModelError(f"{name}.forward takes no inputs_embeds, so numbers cannot be put into its word vectors")
    if not hasattr(backbone, "get_input_embeddings"):
        raise ModelError(f"{name} needs a method get_input_embeddings(), which returns its nn.Embedding")


def parameters_of(backbone: Any) -> frozenset[str]:
    """The names in the signature of ``forward``."""
    return frozenset(inspect.signature(backbone.forward).parameters)


def word_embedding(backbone: Any) -> Any:
    """The layer from ids to word vectors."""
    return backbone.get_input_embeddings()


def output_layer(backbone: Any) -> Any:
    """The layer from hidden states to logits, None if there is none."""
    return backbone.get_output_embeddings() if hasattr(backbone, "get_output_embeddings") else None


def is_causal(backbone: Any) -> bool:
    """Whether a token sees only those before it, by the kind of model.

    Raises:
        ModelError: if that is not known.
    """
    known = getattr(backbone, "causal", None)
    if isinstance(known, bool):
        return known
    if is_pretrained(backbone):
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES

        kind = backbone.config.model_type
        if backbone.can_generate() or getattr(backbone.config, "is_decoder", False):
            return True
        if kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES or kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
            return kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    raise ModelError(f"whether {type(backbone).__name__} is causal is not known; say NumberModel(..., causal=True) or False")


def hidden_size(backbone: Any) -> Any:
    """The dimension of the hidden states, None if that is not known before it has run."""
    size = getattr(getattr(backbone, "config", None), "hidden_size", None)
    if size is None and isinstance(layer := output_layer(backbone), nn.Linear):
        size = layer.in_features
    return size


def positions(backbone: Any, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor | None:
    """``position_ids``, int64 (batch, seq); None where the backbone does well by itself. See the module."""
    padding = _padding_position(backbone)
    if padding is not None:
        shown = input_ids != padding  # (batch, seq)
        if attention_mask is not None and attention_mask.shape == shown.shape:
            shown = shown & (attention_mask != 0)
        counted: Tensor = shown.cumsum(1) * shown + padding  # (batch, seq)
        return counted
    if attention_mask is None or attention_mask.dim() != 2:
        return None
    places = torch.arange(attention_mask.shape[1], device=attention_mask.device)  # (all,), those in the cache included
    leading = (attention_mask.cumsum(1) == 0).sum(1, keepdim=True)  # (batch, 1), padding on the left
    return (places - leading).clamp(min=0)[:, -input_ids.shape[1] :]  # (batch, seq)


def _padding_position(backbone: Any) -> int | None:
    """Of RoBERTa and its kin, which count the tokens that are not padding, from ``padding_idx + 1`` on; else None."""
    embeddings = getattr(getattr(backbone, "base_model", None), "embeddings", None)
    found: int | None = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None)
    return found


def counted_from_zero(backbone: Any, position_ids: Tensor) -> Tensor:
    """Positions that were given, (batch, seq), as the backbone counts: if 0 is among them, where it begins with another."""
    padding = _padding_position(backbone)
    return position_ids if padding is None else position_ids + (padding + 1) * (position_ids == 0).any()


def mask_apart(backbone: Any, causal: bool, vectors: Tensor, position_ids: Tensor | None) -> Tensor | None:
    """A mask, (batch, 1, seq, seq) of 0 and the smallest number, that keeps packed texts apart, for vectors (batch, seq, d) without padding mask.

    A text begins where a position does not follow from the one before. None where there is nothing to do: causal models of transformers tell packed
    texts by ``position_ids`` themselves, others do not.

    Raises:
        ModelError: if the backbone has no place for ``position_ids``.
    """
    if position_ids is None:
        return None
    names = parameters_of(backbone)
    if not {"position_ids", "kwargs"} & names:
        raise ModelError(
            f"{type(backbone).__name__}.forward takes no position_ids, by which packed rows and the documents of a block are kept apart; let them see"
            " each other, with NumberCollator(pack_attention_mask=True) or NumberDataset(separate=False), or do not pack"
        )
    if causal or not is_pretrained(backbone) or (is_causal(backbone) and getattr(backbone.config, "is_causal", True)):
        return None
    first = position_ids[:, :1] - 1  # (batch, 1)
    text = (position_ids.diff(dim=1, prepend=first) != 1).cumsum(1)  # (batch, seq), the text that each token belongs to
    apart = text[:, None, :, None] != text[:, None, None, :]  # (batch, 1, seq, seq)
    return torch.zeros_like(apart, dtype=vectors.dtype).masked_fill(apart, torch.finfo(vectors.dtype).min)


def room(backbone: Any) -> int | None:
    """The rows of a learned table of positions, the most tokens that the backbone takes; None if it has no such table."""
    tables = ("wpe", "position_embeddings", "embed_positions")
    found = [
        part.num_embeddings for name, part in backbone.named_modules() if isinstance(part, nn.Embedding) and name.split(".")[-1] in tables
    ]
    return min(found) if found else None


def run(backbone: Any, inputs_embeds: Tensor, **inputs: Any) -> tuple[Any, Tensor, Tensor | None]:
    """The backbone's output, its hidden states (batch, seq, d_hidden), and logits (batch, seq, vocab) if it has any."""
    if not is_pretrained(backbone):
        hidden: Tensor = backbone(inputs_embeds=inputs_embeds, **inputs)
        layer = output_layer(backbone)
        return None, hidden, None if layer is None else layer(hidden)
    trunk = backbone.base_model
    if trunk is backbone:
        output = backbone(inputs_embeds=inputs_embeds, **{**inputs, "return_dict": True})
        return output, output.last_hidden_state, None
    with captured(trunk) as outputs:
        output = backbone(inputs_embeds=inputs_embeds, **{**inputs, "return_dict": True})
    return output, outputs[-1], output.logits


@contextlib.contextmanager
def captured(trunk: nn.Module) -> Iterator[list[Tensor]]:
    """Collects the hidden states that come out of ``trunk`` inside the ``with``, in this thread.

    ``output_hidden_states=True`` would keep those of all layers, and is not the normalised last one in every model.
    """
    found: list[Tensor] = []
    compiling = torch.compiler.is_compiling()  # which is one thread's, and cannot trace the question whose
    thread = 0 if compiling else threading.get_ident()

    def keep(module: nn.Module, arguments: Any, output: Any) -> None:
        if compiling or threading.get_ident() == thread:
            found.append(output if isinstance(output, Tensor) else output[0])

    handle = trunk.register_forward_hook(keep)
    try:
        yield found
    finally:
        handle.remove()


def resize(backbone: Any, vocab_size: int, mean_resizing: bool) -> None:
    """Give the word embedding, and the output layer, at least ``vocab_size`` rows."""
    rows = word_embedding(backbone).weight.shape[0]
    if vocab_size <= rows:
        return
    if not hasattr(backbone, "resize_token_embeddings"):
        raise ModelError(
            f"the word embedding of {type(backbone).__name__} has {rows} rows, the tokenizer needs {vocab_size}; make it larger, or give the module a"
            " method resize_token_embeddings(size, mean_resizing)"
        )
    backbone.resize_token_embeddings(vocab_size, mean_resizing=mean_resizing)


def shared_names(module: nn.Module) -> dict[str, str]:
    """Further names of parameters that have several, to the first: the output layer that is tied to the word embedding."""
    first: dict[int, str] = {}
    further: dict[str, str] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if (known := first.setdefault(id(parameter), name)) != name:
            further[name] = known
    return further
