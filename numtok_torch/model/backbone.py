"""The transformer inside: what :class:`~numtok_torch.model.model.NumberModel` needs to know of it.

In: a Hugging Face model, or a plain module with the two methods of :class:`PlainBackbone`; word
    vectors, float (batch, seq, d). Out: its output and the hidden states of its last layer, float
    (batch, seq, d_hidden), which heads read.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from numtok.errors import NumtokError

ADAPTERS = (
    "LORA",
    "IA3",
    "LOHA",
    "LOKR",
    "OFT",
    "TRAINABLE_TOKENS",
)  # kinds of peft that lie in layers

OWN_MASKS = ("xlnet", "xlm", "flaubert")  # which see all, or as their config says, and write
# with tokens of their own behind the text


class ModelError(NumtokError, ValueError):
    """A backbone, embedding and head that do not fit together, inputs that the model cannot use, or
    a saved model that cannot be read.
    """


class PlainBackbone(Protocol):
    """What a module must have that is no Hugging Face model. Two more methods are used if it has
    them.

    - ``get_output_embeddings()``: the layer from hidden states (..., d_hidden) to logits (...,
      vocab); without it there is no token loss;
    - ``resize_token_embeddings(size, mean_resizing=...)``: for ``vocab_size``.
    """

    def get_input_embeddings(self) -> nn.Module:
        """The ``nn.Embedding`` of the word vectors."""

    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Word vectors (batch, seq, d) to hidden states (batch, seq, d_hidden).

        ``position_ids`` are given too if it names them.
        """


def is_pretrained(backbone: Any) -> bool:
    """Whether it is a Hugging Face model; transformers is not imported to find out."""
    transformers = sys.modules.get("transformers.modeling_utils")
    return transformers is not None and isinstance(backbone, transformers.PreTrainedModel)


def unwrapped(backbone: Any) -> Any:
    """What peft's ``get_peft_model`` has wrapped; anything else is given back. peft is not imported
    to find out.

    The adapters are inside it: it computes what the wrapper computes, and has the signature, the
        config and ``generate`` that the wrapper hides.
    """
    peft = sys.modules.get("peft")
    kinds = tuple(
        kind
        for name in ("PeftModel", "PeftMixedModel")
        if (kind := getattr(peft, name, None)) is not None
    )
    return (
        backbone.base_model.model
        if isinstance(backbone, kinds) and not unsupported_adapters(backbone)
        else backbone
    )


def unsupported_adapters(backbone: Any) -> list[str]:
    """The kinds of its adapters that are not :data:`ADAPTERS`, which lie in layers and change
    nothing else: prompts, for example.
    """
    configs = getattr(backbone, "peft_config", None) or {}
    kinds = [getattr(config.peft_type, "value", config.peft_type) for config in configs.values()]
    return [str(kind) for kind in kinds if kind not in ADAPTERS]


def check_backbone(backbone: Any) -> None:
    """Refuse what cannot take word vectors, or is for another task."""
    name = type(backbone).__name__
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
    if name.startswith("Reformer"):
        raise ModelError(
            f"{name} is not supported: its hidden states are two streams; take another model"
        )
    words = word_embedding(backbone)
    inside = words.modules() if isinstance(words, nn.Module) else ()  # of what peft puts around it
    if isinstance(words, nn.ModuleList) or not any(isinstance(m, nn.Embedding) for m in inside):
        raise ModelError(
            f"the word vectors of {name} come from a {type(words).__name__}, not from one"
            " nn.Embedding (they are quantised, or several for each token), so numbers cannot be put"
            " into them; take another model"
        )


def parameters_of(backbone: Any) -> frozenset[str]:
    """The names in the signature of ``forward``."""
    return frozenset(inspect.signature(backbone.forward).parameters)


def has_decoder(backbone: Any) -> bool:
    """Whether it is an encoder with a decoder, as T5 and BART are."""
    return is_pretrained(backbone) and "decoder_inputs_embeds" in parameters_of(backbone)


def classification(backbone: Any) -> str | None:
    """``"texts"`` or ``"tokens"`` if that is what it classifies, with labels and a loss of its own;
    None for language models and bare ones.
    """
    names = {kind.__name__ for kind in type(backbone).__mro__}
    kinds = {
        "texts": _classes("SEQUENCE_CLASSIFICATION"),
        "tokens": _classes("TOKEN_CLASSIFICATION"),
    }
    return next((kind for kind, known in kinds.items() if names & known), None)


def _classes(*tasks: str) -> frozenset[str]:
    """The names of the classes that transformers has for a task; none while it is not in use."""
    if "transformers.modeling_utils" not in sys.modules:
        return frozenset()
    from transformers.models.auto import modeling_auto as auto

    return frozenset(
        str(name)
        for task in tasks
        for name in getattr(auto, f"MODEL_FOR_{task}_MAPPING_NAMES").values()
    )


def word_embedding(backbone: Any, decoder: bool = False) -> Any:
    """The layer from ids to word vectors; where an encoder has a decoder, the one or the other's,
    which may scale differently.
    """
    if has_decoder(backbone):
        backbone = backbone.get_decoder() if decoder else backbone.get_encoder()
    if not hasattr(backbone, "get_input_embeddings"):
        raise ModelError(
            f"{type(backbone).__name__} needs a method get_input_embeddings(), which returns its"
            " nn.Embedding"
        )
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
        from transformers.models.auto import modeling_auto as auto

        config, kind = backbone.config, backbone.config.model_type
        if has_decoder(backbone) or getattr(config, "is_causal", None) is False:
            # the encoder sees all, and the decoder is given labels that are shifted already
            return False
        if kind in OWN_MASKS:
            return bool(getattr(config, "causal", False))
        if (
            backbone.can_generate()
            and kind in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
            and getattr(config, "is_decoder", None) is False
        ):
            raise ModelError(
                f"{type(backbone).__name__} lets a token see those behind it, as its config says"
                f" is_decoder=False; set config.is_decoder = True before it is made, or take"
                f" {auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES[kind]}"
            )
        if backbone.can_generate() or getattr(config, "is_decoder", False):
            return True
        if (
            kind in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
            or kind in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
        ):
            return False  # the latter: an encoder whose decoder was left
        if kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
            return True
    raise ModelError(
        f"whether {type(backbone).__name__} is causal is not known; say NumberModel(...,"
        " causal=True) or False"
    )


def hidden_size(backbone: Any) -> Any:
    """The dimension of the hidden states, None if that is not known before it has run."""
    size = getattr(getattr(backbone, "config", None), "hidden_size", None)
    if size is None and isinstance(layer := output_layer(backbone), nn.Linear):
        size = layer.in_features
    return size


def check_sizes(backbone: Any, embedding: Any, head: Any) -> None:
    """Refuse an embedding, or a head, that was made for vectors of another size; either may be
    None.
    """
    words = word_embedding(backbone).weight.shape[1]
    if embedding is not None and embedding.d_model != words:
        raise ModelError(
            f"the embedding was made for d_model={embedding.d_model}, the backbone's word vectors"
            f" have {words}"
        )
    hidden, made = hidden_size(backbone), getattr(head, "d_model", None)
    if None not in (hidden, made) and hidden != made:
        raise ModelError(
            f"the head was made for d_model={made}, the backbone's hidden states have {hidden}"
        )


def run_backbone(
    backbone: Any, inputs_embeds: Tensor | None, **inputs: Any
) -> tuple[Any, Tensor, Tensor | None]:
    """The backbone's output, its (decoder's) hidden states (batch, seq, d_hidden), and logits
    (batch, seq, vocab) if it has any.
    """
    if inputs_embeds is not None:
        inputs["inputs_embeds"] = inputs_embeds
    if not is_pretrained(backbone):
        hidden: Tensor = backbone(**inputs)
        layer = output_layer(backbone)
        return None, hidden, None if layer is None else layer(hidden)
    with captured(backbone) as states:
        output = backbone(**{**inputs, "return_dict": True})
    last: Tensor | None = getattr(output, "last_hidden_state", None)
    return output, states[-1] if last is None else last, getattr(output, "logits", None)


def reads_ids(backbone: Any) -> bool:
    """Whether it needs the ids beside the vectors: to classify, as a causal one reads a text's
    class where the text ends; to look them up in each layer, as Gemma 3n and 4 do; or to choose
    experts by them.
    """
    config: Any = getattr(backbone, "config", None)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    return (
        classification(backbone) is not None
        or bool(getattr(text, "hidden_size_per_layer_input", 0))
        or "hash_moe" in (getattr(text, "mlp_layer_types", None) or ())
    )


def run_with_ids(
    backbone: Any, input_ids: Tensor, inputs_embeds: Tensor, **inputs: Any
) -> tuple[Any, Tensor, Tensor | None]:
    """The same of a model that reads the ids (batch, seq): it is given the vectors in the place of
    those that it looks up itself. Logits of texts are (batch, labels).
    """
    if (
        len(input_ids) > 1
        and classification(backbone) == "texts"
        and backbone.config.pad_token_id is None
        and is_causal(backbone)
    ):
        raise ModelError(
            f"{type(backbone).__name__} finds the end of a text by its padding, and has no"
            " pad_token_id; set backbone.config.pad_token_id to the collator's"
        )
    here = _in_this_thread()

    def replace(module: nn.Module, arguments: Any, output: Tensor) -> Tensor:
        return inputs_embeds if here() else output

    handle = word_embedding(backbone).register_forward_hook(replace)
    try:
        with captured(backbone) as states:
            output = backbone(input_ids=input_ids, **{**inputs, "return_dict": True})
    finally:
        handle.remove()
    return output, states[-1], getattr(output, "logits", None)


def trunks(backbone: Any) -> list[nn.Module]:
    """What may lie in front of its head. Those that run end with the same hidden states: OPT's runs
    the decoder inside it, Llama 4's has no name but ``model``.
    """
    inner: Any = (backbone.base_model, getattr(backbone, "model", None), backbone.get_decoder())
    return [part for part in inner if part is not backbone and is_pretrained(part)]


@contextlib.contextmanager
def captured(backbone: Any) -> Iterator[list[Tensor]]:
    """Collects the hidden states that come out of the trunk inside the ``with``, in this thread:
    the last are those in front of the head.

    ``output_hidden_states=True`` would keep those of all layers, and is not the normalised last one
    in every model.
    """
    states: list[Tensor] = []
    here = _in_this_thread()

    def keep(module: nn.Module, arguments: Any, output: Any) -> None:
        if here():
            states.append(output if isinstance(output, Tensor) else output[0])

    handles = [trunk.register_forward_hook(keep) for trunk in trunks(backbone)]
    try:
        yield states
    finally:
        for handle in handles:
            handle.remove()


def _in_this_thread() -> Callable[[], bool]:
    """Whether a hook is called in the thread that has set it."""
    if torch.compiler.is_compiling():  # which is one thread's, and cannot trace the question whose
        return lambda: True
    thread = threading.get_ident()
    return lambda: threading.get_ident() == thread


def add_rows(backbone: Any, vocab_size: int, mean_resizing: bool) -> None:
    """Give the word embedding, and the output layer, at least ``vocab_size`` rows."""
    rows = word_embedding(backbone).weight.shape[0]
    if vocab_size <= rows:
        return
    if not hasattr(backbone, "resize_token_embeddings"):
        raise ModelError(
            f"the word embedding of {type(backbone).__name__} has {rows} rows, the tokenizer needs"
            f" {vocab_size}; make it larger, or give the module a method"
            " resize_token_embeddings(size, mean_resizing)"
        )
    takes = inspect.signature(backbone.resize_token_embeddings).parameters
    options = {"mean_resizing": mean_resizing} if {"mean_resizing", "kwargs"} & {*takes} else {}
    backbone.resize_token_embeddings(vocab_size, **options)
    if is_pretrained(backbone):
        _check_config(backbone, vocab_size)


def _check_config(backbone: Any, vocab_size: int) -> None:
    """Refuse a model that was given more rows without its config, by which it is loaded, or its
    other layers.
    """
    try:
        with torch.device("meta"):
            described = type(backbone)(copy.deepcopy(backbone.config)).state_dict()
    except Exception:  # there are models that cannot be made without memory
        return
    for name, parameter in backbone.state_dict().items():
        other = described.get(name, parameter)
        if other.shape != parameter.shape:
            raise ModelError(
                f"transformers cannot give {type(backbone).__name__} more rows: {name} is"
                f" {tuple(parameter.shape)}, by its config {tuple(other.shape)}; make the backbone"
                f" with a vocabulary of {vocab_size} in its config, as by vocab_size={vocab_size}"
            )


def check_rows(backbone: Any, tokens: int, found: str = "the tokenizer has") -> None:
    """Refuse a word embedding with fewer rows than there are tokens.

    Raises:
        ModelError: naming the way out.
    """
    layer = word_embedding(backbone)
    rows = getattr(layer, "num_embeddings", None) or layer.weight.shape[0]
    if tokens > rows:
        raise ModelError(
            f"{found} {tokens} tokens, the word embedding of {type(backbone).__name__} has {rows}"
            " rows; make room for the number tokens: NumberModel(...,"
            " vocab_size=tokenizer.vocab_size), or call"
            " backbone.resize_token_embeddings(tokenizer.vocab_size) before"
        )


def freeze_trunk(backbone: Any) -> None:
    """No gradient but for what lies behind the trunk: the word head, whose weights are untied from
    the frozen word vectors.

    Raises:
        ModelError: if there is no word head behind the trunk.
    """
    layer = output_layer(backbone)
    trunk = next(iter(trunks(backbone)), None) if is_pretrained(backbone) else None
    if layer is None or trunk is None:
        raise ModelError(
            f"{type(backbone).__name__} has no word head to train behind a frozen trunk; take a"
            " ...ForMaskedLM or ...ForCausalLM"
        )
    if layer.weight is word_embedding(backbone).weight:
        layer.weight = nn.Parameter(
            layer.weight.detach().clone()
        )  # not by the config: it would untie the biases of a BERT's head too
    backbone.requires_grad_(True)
    trunk.requires_grad_(False)


def shared_names(module: nn.Module) -> dict[str, str]:
    """Further names of parameters that have several, to the first: the output layer that is tied to
    the word embedding.
    """
    first: dict[int, str] = {}
    further: dict[str, str] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if (known := first.setdefault(id(parameter), name)) != name:
            further[name] = known
    return further
