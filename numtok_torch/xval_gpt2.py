"""Transformers as xVal trains them: the initialisation, and a GPT-2 without biases.

In: a model, or its sizes. Out: the same model, changed in place, or a new ``GPT2LMHeadModel``. xVal: A Continuous Numerical Tokenization for
Scientific Language Models (Golkar et al. 2023), appendix on architecture: fully connected layers start from a normal distribution of standard
deviation (2 · fan_in · n_layers)^-1/2, and there are no biases.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from numtok_torch.backbone import ModelError


def xval_init_(model: nn.Module, n_layers: int | None = None) -> nn.Module:
    """Draw the weights of all fully connected layers anew, with standard deviation (2 · fan_in · n_layers)^-1/2, and set their biases to 0.

    Embeddings, norms, and an output layer that shares its weights with the word embedding stay as they are.

    Args:
        model: changed in place, and returned.
        n_layers: None for what ``model.config`` says.
    """
    if n_layers is None:
        n_layers = getattr(getattr(model, "config", None), "num_hidden_layers", None)
    if n_layers is None or n_layers < 1:
        raise ModelError(f"n_layers={n_layers} must be positive; {type(model).__name__} has no config that says how many layers there are")
    words = {id(one.weight) for one in model.modules() if isinstance(one, nn.Embedding)}
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if not is_fully_connected(module) or weight is None or id(weight) in words:
            continue
        fan_in = weight.shape[1] if isinstance(module, nn.Linear) else weight.shape[0]  # GPT-2's Conv1D has (in, out)
        nn.init.normal_(weight, std=xval_std(fan_in, n_layers))
        if isinstance(bias := getattr(module, "bias", None), nn.Parameter):
            nn.init.zeros_(bias)
    return model


def xval_std(fan_in: int, n_layers: int) -> float:
    """(2 · fan_in · n_layers)^-1/2."""
    return 1 / math.sqrt(2 * fan_in * n_layers)


def is_fully_connected(module: nn.Module) -> bool:
    """Whether it is a linear layer, of torch or of Hugging Face's GPT-2."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def remove_biases_(model: nn.Module) -> nn.Module:
    """Set every bias to 0 for good: of fully connected layers and norms. Changed in place, and returned.

    They stay in the state dict, as zeros that are not trained, so that the stock class loads it.
    """
    for name, parameter in model.named_parameters():
        if name.rpartition(".")[2] == "bias":
            with torch.no_grad():
                parameter.zero_()
            parameter.requires_grad_(False)
    return model


def xval_gpt2(vocab_size: int, d_model: int, n_layers: int, n_heads: int, **options: Any) -> nn.Module:
    """A ``GPT2LMHeadModel`` without biases, initialised as xVal does.

    Args:
        vocab_size: of the tokenizer, number tokens included.
        d_model: dimension of vectors and hidden states.
        n_layers: how many blocks.
        n_heads: attention heads in each.
        options: further ones of ``GPT2Config``, such as ``n_positions``.

    Raises:
        MissingDependencyError: without transformers.
    """
    from numtok.errors import MissingDependencyError

    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError as error:
        raise MissingDependencyError("xval_gpt2 needs transformers: pip install 'numtok[hf]'") from error
    ends: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None}  # GPT-2's own are beyond most vocabularies
    config = GPT2Config(vocab_size=vocab_size, n_embd=d_model, n_layer=n_layers, n_head=n_heads, **(ends | options))
    return remove_biases_(xval_init_(GPT2LMHeadModel(config)))
