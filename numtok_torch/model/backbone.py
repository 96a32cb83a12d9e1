"""The transformer inside: what :class:`~numtok_torch.model.model.NumberModel` needs to know of it,
a Hugging Face model or a plain module with the two methods of :class:`PlainBackbone`.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from numtok.errors import NumtokError
from numtok_torch.data.tokens import check_tokenizer
from numtok_torch.embeddings.base import root_mean_square

SAMPLED = 4096  # word vectors whose length is looked at
# kinds of peft that lie in layers, and change nothing else
ADAPTERS = ("LORA", "IA3", "LOHA", "LOKR", "OFT", "TRAINABLE_TOKENS")
# which see all, or as their config says, and write with tokens of their own after the text
UNSUPPORTED = ("xlnet", "xlm", "flaubert")
# beginnings of the names of classes
NOT_SUPPORTED = {
    "Esm": "it multiplies word vectors by how many ids are masked",
    "Reformer": "its hidden states are two streams",
    **dict.fromkeys(("Mra", "Nystromformer", "Yoso"), "its positions begin at 2"),
}


class ModelError(NumtokError, ValueError):
    """A backbone, embedding and head that do not fit together, inputs that the model cannot use, or
    a saved model that cannot be read.

    Example:
        >>> from numtok_torch import NumberModel
        >>> from torch import nn
        >>> NumberModel(nn.Linear(8, 8), embedding=None)
        Traceback (most recent call last):
        numtok_torch.model.backbone.ModelError: Linear.forward takes no inputs_embeds, ...
    """


class PlainBackbone(Protocol):
    """Methods that a backbone must have which is no Hugging Face model. Two more methods are used
    if it has them.

    - ``get_output_embeddings()``: the layer from hidden states (..., d_hidden) to logits (...,
      vocab); without it there is no token loss;
    - ``resize_token_embeddings(size)``: for ``vocab_size``.

    Example:
        >>> import torch
        >>> from numtok_torch import NumberModel
        >>> from torch import nn
        >>> class RunningSum(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.words = nn.Embedding(10, 8)
        ...
        ...     def get_input_embeddings(self):
        ...         return self.words
        ...
        ...     def forward(self, inputs_embeds, attention_mask=None):
        ...         return inputs_embeds.cumsum(1)
        >>> model = NumberModel(RunningSum(), embedding=None, causal=True)
        >>> model(torch.tensor([[1, 2]])).hidden.shape
        torch.Size([1, 2, 8])
    """

    def get_input_embeddings(self) -> nn.Module:
        """Return the ``nn.Embedding`` of the word vectors."""

    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Map word vectors (batch, seq, d) to hidden states (batch, seq, d_hidden).

        ``position_ids`` are given too if it names them.
        """


def is_pretrained(backbone: Any) -> bool:
    """Whether it is a Hugging Face model; transformers is not imported to find out."""
    transformers = sys.modules.get("transformers.modeling_utils")
    return transformers is not None and isinstance(backbone, transformers.PreTrainedModel)


def is_loaded(backbone: Any) -> bool:
    """Whether it came from a folder or the Hub, so that its weights are trained."""
    return is_pretrained(backbone) and bool(getattr(backbone, "name_or_path", ""))


def unwrapped(backbone: Any) -> Any:
    """Return the model that peft's ``get_peft_model`` has wrapped, with the adapters inside: it
    computes what the wrapper does, and has the signature, config and ``generate`` that the wrapper
    hides. Anything else is given back; peft is not imported to find out. ModelError for what
    ``torch.compile`` has wrapped.
    """
    if hasattr(backbone, "_orig_mod"):
        raise ModelError(
            "torch.compile(module) gives another module, whose weights have other names; compile"
            " the model, or the backbone, in place: model.compile(), or model.backbone.compile()"
        )
    peft = sys.modules.get("peft")
    kinds = tuple(getattr(peft, name, ()) for name in ("PeftModel", "PeftMixedModel"))
    if isinstance(backbone, kinds) and not unsupported_adapters(backbone):
        return backbone.base_model.model
    return backbone


def unsupported_adapters(backbone: Any) -> list[str]:
    """Return the kinds of a backbone's adapters that are not :data:`ADAPTERS`: prompts, for
    example.
    """
    configs = getattr(backbone, "peft_config", None) or {}
    kinds = [getattr(config.peft_type, "value", config.peft_type) for config in configs.values()]
    return [str(kind) for kind in kinds if kind not in ADAPTERS]


def check_backbone(backbone: Any) -> None:
    """Refuse what cannot take word vectors, or is for another task."""
    if other := unsupported_adapters(backbone):
        raise ModelError(
            f"adapters of the kind {other[0]} are not supported inside a NumberModel; there are"
            f" {', '.join(ADAPTERS)}"
        )
    backbone = unwrapped(backbone)
    name = type(backbone).__name__
    if name in _classes("QUESTION_ANSWERING", "MULTIPLE_CHOICE", "NEXT_SENTENCE_PREDICTION"):
        raise ModelError(
            f"{name} is for a task that NumberModel does not support; take a language model,"
            " ...ForSequenceClassification or ...ForTokenClassification"
        )
    if has_decoder(backbone) and classification(backbone) is not None:
        raise ModelError(
            f"{name} has an encoder and a decoder; to classify, take an encoder or a decoder alone,"
            " such as those of BERT or GPT-2"
        )
    if "inputs_embeds" not in parameters_of(backbone):
        raise ModelError(
            f"{name}.forward takes no inputs_embeds, so numbers cannot be put into its word vectors"
        )
    text = backbone.config.get_text_config() if is_pretrained(backbone) else None
    if getattr(text, "hidden_size_per_layer_input", 0) or "hash_moe" in (
        getattr(text, "mlp_layer_types", None) or ()
    ):
        raise ModelError(
            f"{name} is not supported: its layers look up the ids of tokens too, beside their word"
            " vectors; take another model"
        )
    for start, reason in NOT_SUPPORTED.items():
        if name.startswith(start):
            raise ModelError(f"{name} is not supported: {reason}; take another model")
    words = word_embedding(backbone)
    inside = words.modules() if isinstance(words, nn.Module) else ()  # of what peft puts around it
    if isinstance(words, nn.ModuleList) or not any(isinstance(m, nn.Embedding) for m in inside):
        raise ModelError(
            f"the word vectors of {name} come from a {type(words).__name__}, not from one"
            " nn.Embedding (they are quantised, or several for each token), so numbers cannot be put"
            " into them; take another model"
        )


def parameters_of(backbone: Any) -> frozenset[str]:
    """Return the names in the signature of ``forward``."""
    return frozenset(inspect.signature(backbone.forward).parameters)


def has_decoder(backbone: Any) -> bool:
    """Whether it is an encoder with a decoder, as T5 and BART are."""
    return is_pretrained(backbone) and "decoder_inputs_embeds" in parameters_of(backbone)


def classification(backbone: Any) -> str | None:
    """Return ``"texts"`` or ``"tokens"`` if that is what a backbone classifies, with labels and a
    loss of its own; None for language models and bare ones.
    """
    names = {kind.__name__ for kind in type(backbone).__mro__}
    if names & _classes("SEQUENCE_CLASSIFICATION"):
        return "texts"
    return "tokens" if names & _classes("TOKEN_CLASSIFICATION") else None


def _classes(*tasks: str) -> frozenset[str]:
    """Return the names of the classes that transformers has for a task; none while it is not in
    use.
    """
    if "transformers.modeling_utils" not in sys.modules:
        return frozenset()
    from transformers.models.auto import modeling_auto as auto

    return frozenset(
        str(name)
        for task in tasks
        for name in getattr(auto, f"MODEL_FOR_{task}_MAPPING_NAMES").values()
    )


def word_embedding(backbone: Any, decoder: bool = False) -> Any:
    """Return the layer from ids to word vectors; where an encoder has a decoder, the one or the
    other's, which may scale differently.
    """
    if has_decoder(backbone):
        backbone = backbone.get_decoder() if decoder else backbone.get_encoder()
    if not hasattr(backbone, "get_input_embeddings"):
        raise ModelError(
            f"{type(backbone).__name__} needs a method get_input_embeddings(), which returns its"
            " nn.Embedding"
        )
    return backbone.get_input_embeddings()


def size_of_words(backbone: Any) -> float:
    """Return the root mean square of the entries of the word vectors, as the layer gives them; 0
    where they have no values yet.
    """
    layer = word_embedding(backbone)
    if layer.weight.is_meta:
        return 0.0
    with torch.no_grad():
        ids = torch.arange(min(layer.weight.shape[0], SAMPLED), device=layer.weight.device)
        return root_mean_square(layer(ids))


def output_layer(backbone: Any) -> Any:
    """Return the layer from hidden states to logits, None if there is none."""
    return backbone.get_output_embeddings() if hasattr(backbone, "get_output_embeddings") else None


def is_causal(backbone: Any) -> bool:
    """Whether a token sees only those before it; ModelError if that is not known."""
    causal = getattr(backbone, "causal", None)
    if not isinstance(causal, bool) and is_pretrained(backbone):
        causal = _is_causal_kind(backbone)
    if isinstance(causal, bool):
        return causal
    raise ModelError(
        f"whether {type(backbone).__name__} is causal is not known; say NumberModel(...,"
        " causal=True) or False"
    )


def _is_causal_kind(backbone: Any) -> bool | None:
    """Return whether a Hugging Face model is causal; None if that is not known."""
    from transformers.models.auto import modeling_auto as auto

    config, kind = backbone.config, backbone.config.model_type
    masked, generates = auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, backbone.can_generate()
    if has_decoder(backbone) or getattr(config, "is_causal", None) is False:
        # the encoder sees all, and the decoder is given labels that are shifted already
        return False
    if kind in UNSUPPORTED:
        return bool(getattr(config, "causal", False))
    if generates and kind in masked and getattr(config, "is_decoder", None) is False:
        raise ModelError(
            f"{type(backbone).__name__} lets a token see those behind it, as its config says"
            f" is_decoder=False; set config.is_decoder = True before it is made, or take"
            f" {masked[kind]}"
        )
    if generates or getattr(config, "is_decoder", False):
        return True
    if kind in masked or kind in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
        return False  # the latter: an encoder whose decoder was left
    return True if kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES else None


def check_sizes(backbone: Any, embedding: Any, head: Any) -> None:
    """Refuse an embedding, or a head, that was made for vectors of another size."""
    words = word_embedding(backbone).weight.shape[1]
    if embedding is not None and embedding.d_model != words:
        raise ModelError(
            f"the embedding was made for d_model={embedding.d_model}, the backbone's word vectors"
            f" have {words}"
        )
    hidden = getattr(getattr(backbone, "config", None), "hidden_size", None)
    if hidden is None and isinstance(layer := output_layer(backbone), nn.Linear):
        hidden = layer.in_features
    if head is not None and hidden not in (None, head.d_model):
        raise ModelError(
            f"the head was made for d_model={head.d_model}, the backbone's hidden states have"
            f" {hidden}"
        )


def rows_of(backbone: Any) -> int:
    """Return how many rows the word embedding has."""
    layer = word_embedding(backbone)
    return int(getattr(layer, "num_embeddings", None) or layer.weight.shape[0])


def add_rows(backbone: Any, vocab_size: int, started: bool = True) -> None:
    """Give the word embedding, and the output layer, at least ``vocab_size`` rows; ``started``: as
    transformers starts them, in the mean of all rows.
    """
    rows = rows_of(backbone)
    if vocab_size <= rows:
        return
    if not isinstance(word_embedding(backbone), nn.Embedding):
        raise ModelError(
            f"the word embedding of {type(backbone).__name__} has {rows} rows, the tokenizer needs"
            f" {vocab_size}, and an adapter lies around it; call add_number_rows(model, tokenizer)"
            " before get_peft_model"
        )
    if not hasattr(backbone, "resize_token_embeddings"):
        raise ModelError(
            f"the word embedding of {type(backbone).__name__} has {rows} rows, the tokenizer needs"
            f" {vocab_size}; make it larger, or give the module a method"
            " resize_token_embeddings(size)"
        )
    resize = backbone.resize_token_embeddings
    if "mean_resizing" in inspect.signature(resize).parameters:  # MobileBERT has its own way
        resize(vocab_size, mean_resizing=started)
    else:
        resize(vocab_size)
    if is_pretrained(backbone):
        _check_config(backbone, vocab_size)


def _check_config(backbone: Any, vocab_size: int) -> None:
    """Refuse a model that was given more rows without its config, by which it is loaded, or its
    other layers.
    """
    try:
        with torch.device("meta"):
            described = _shapes(type(backbone)(copy.deepcopy(backbone.config)))
    except Exception:  # there are models that cannot be made without memory
        return
    for name, shape in _shapes(backbone).items():
        by_config = described.get(name, shape)
        if by_config != shape:
            raise ModelError(
                f"transformers cannot give {type(backbone).__name__} more rows: {name} is"
                f" {shape}, by its config {by_config}; make the backbone"
                f" with a vocabulary of {vocab_size} in its config, as by vocab_size={vocab_size}"
            )


def _shapes(model: Any) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter; of those that DeepSpeed has cut up (ZeRO 3), the whole."""
    return {
        name: tuple(getattr(parameter, "ds_shape", parameter.shape))
        for name, parameter in model.named_parameters()
    }


def check_rows(backbone: Any, tokens: int, holder: str = "the tokenizer has") -> None:
    """Refuse a word embedding with fewer rows than there are tokens. ModelError naming the way out."""
    rows = rows_of(backbone)
    if tokens > rows:
        raise ModelError(
            f"{holder} {tokens} tokens, the word embedding of {type(backbone).__name__} has {rows}"
            " rows; make room for the number tokens: NumberModel(..., tokenizer=tokenizer), or call"
            " numtok_torch.add_number_rows(backbone, tokenizer) before"
        )


def check_own_tokenizer(
    made_for: Mapping[str, Any], tokenizer: Any, what: str = "the model was made for"
) -> None:
    """Refuse a tokenizer, or the identity of one, that is not that of a model."""
    way_out = (
        "give the one that its training data were encoded with; model.tokenizer_identity = None"
        " goes on with another"
    )
    check_tokenizer(made_for, tokenizer, what, way_out, ModelError)


def freeze_trunk(backbone: Any) -> None:
    """Freeze all but what lies after the trunk: the word head, whose weights are untied from the
    frozen word vectors. ModelError if there is no word head after the trunk.
    """
    layer, trunk = output_layer(backbone), getattr(backbone, "base_model", backbone)
    if layer is None or trunk is backbone:
        raise ModelError(
            f"{type(backbone).__name__} has no word head to train behind a frozen trunk; take a"
            " ...ForMaskedLM or ...ForCausalLM"
        )
    if layer.weight is word_embedding(backbone).weight:
        # not by the config: it would untie the biases of a BERT's head too
        layer.weight = nn.Parameter(layer.weight.detach().clone())
    backbone.requires_grad_(True)
    trunk.requires_grad_(False)
