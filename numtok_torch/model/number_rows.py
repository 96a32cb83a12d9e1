"""Rows of a pretrained model for the tokens of numbers, which it has never seen: each starts from
the model's own rows of what the token stands for, in the word embedding and in the output layer.

A row that starts at random has a long vector in places where the model expects none, and a logit
that nothing holds down: text with numbers is then far less likely than it was. A row that starts as
the mean of the model's own is taken for what it stands for.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from numtok import Tokenizer
from numtok.engines.hf_tokenizers import load
from numtok.representations import END_NUM, NUM
from numtok_torch.data.tokens import numtok_of
from numtok_torch.model.backbone import (
    add_rows,
    output_layer,
    rows_of,
    unwrapped,
    word_embedding,
)

FIRST_DIGITS = "123456789"
AFTER = "-"  # after which anything may follow, as after a number


def add_number_rows(model: Any, tokenizer: Any) -> list[int]:
    """Give a pretrained model a row for each token of numbers, in its word embedding and its output
    layer, tied or not, each the mean of rows that the model has:

    ==============================  =========================================================
    token                           starts as the mean of
    ==============================  =========================================================
    ``[NUM]``, `` [NUM]``           the tokens that begin a number there: digits, or the space;
                                    the space, if there is a token of it, where digits follow
    ``[/NUM]``                      the hyphen, after which anything may follow
    ``602``, ``[NUM:602]``          the tokens that the plain tokenizer writes 602 with
    ==============================  =========================================================

    A word embedding of its own, not tied to the output layer, shows a number that one token stands
    for as a digit, where the output layer has the space before it.

    Call it once, before training. ``NumberModel(..., tokenizer=tokenizer)`` does the same for the
    rows that it adds.

    Args:
        model: a model of transformers or of peft, a :class:`~numtok_torch.NumberModel`, or a module
            after :class:`~numtok_torch.PlainBackbone`.
        tokenizer: a ``numtok.Tokenizer``, or a transformers tokenizer made from one.

    Returns:
        The ids of the rows that were started.

    Raises:
        ModelError: if the model cannot be given more rows.

    Examples:
        >>> import numtok
        >>> from numtok_torch import add_number_rows
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> sizes = {"n_embd": 8, "n_layer": 1, "n_head": 1, "bos_token_id": 0, "eos_token_id": 0}
        >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=16000, **sizes))
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="digits:1")
        >>> add_number_rows(model, tokenizer)
        [16000, 16001, 16002]
    """
    inner = unwrapped(model)  # of peft's get_peft_model(NumberModel(...), ...)
    # of a NumberModel; that of Mamba is another thing
    backbone = unwrapped(inner.backbone) if hasattr(inner, "tokenizer_identity") else inner
    numtok_tokenizer = numtok_of(tokenizer)
    add_rows(backbone, numtok_tokenizer.vocab_size, started=False)
    return start_rows(backbone, numtok_tokenizer)


def start_rows(backbone: Any, tokenizer: Tokenizer, first: int = 0) -> list[int]:
    """Start the rows of the number tokens with these ids or higher; return their ids."""
    layers = (word_embedding(backbone), output_layer(backbone))
    shown, written = (
        {number: ids for number, ids in sources_of.items() if number >= first}
        for sources_of in source_ids(tokenizer)
    )
    for layer, sources in zip(layers, (shown, written), strict=True):  # tied: as written
        for tensor in _tensors(layer) if sources else ():
            with torch.no_grad(), _gathered(tensor):
                if len(tensor) > max(sources):
                    for number, ids in sources.items():
                        tensor[number] = tensor[ids].mean(0)
    for layer in layers:
        _refresh_adapters(layer)
    # within the rows that a base model has, these differ from its own
    earlier = getattr(backbone, "first_number_row", rows_of(backbone))
    backbone.first_number_row = min([earlier, *written])
    return list(written)


def source_ids(tokenizer: Tokenizer) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Return for the id of each token that numtok added the ids of the source tokenizer's tokens
    that its row starts from: where the token is shown to the model, and where the model writes it.
    The two differ for a number in one token, where the plain tokenizer writes a space and a digit.
    """
    own_ids = {*tokenizer.own_tokens.values()}
    theirs = [one for one in tokenizer.config["added_tokens"] if one["id"] not in own_ids]
    plain = load(tokenizer.config | {"added_tokens": theirs})

    def ids(text: str) -> list[int]:
        return [
            one for one in plain.encode(text, add_special_tokens=False).ids if one not in own_ids
        ]

    def of_digits(before: str, at: int) -> list[int]:
        return [some[at] for digit in FIRST_DIGITS if (some := ids(before + digit))]

    shown, written = dict[int, list[int]](), dict[int, list[int]]()
    for content, number in tokenizer.own_tokens.items():
        before, inner = content[: len(content) - len(content.lstrip())], content.lstrip()
        if inner == NUM:  # where digits follow, not like one of them
            direct = ids(" ") if END_NUM in tokenizer.tokens else []
        elif inner == END_NUM:
            direct = ids(AFTER)
        else:
            direct = ids(before + inner.removeprefix("[NUM:").removesuffix("]"))
        for sources, at in ((shown, -1), (written, 0)):
            if some := direct or of_digits(before, at):
                sources[number] = some
    return shown, written


def _tensors(layer: Any) -> Iterator[Tensor]:
    """Yield the weights (n, d) and biases (n,) in a layer, those in what peft puts around it too.
    Those of a layer of words have a row for each id.
    """
    for module in layer.modules() if layer is not None else ():
        if isinstance(module, nn.Embedding | nn.Linear):
            yield from (
                one for one in (module.weight, getattr(module, "bias", None)) if one is not None
            )


def _refresh_adapters(layer: Any) -> None:
    """Copy the rows to where peft keeps single ones to train (``trainable_token_indices``)."""
    for module in layer.modules() if layer is not None else ():
        for adapter, ids in getattr(module, "token_indices", {}).items():
            with torch.no_grad():
                rows = module.get_base_layer().weight[ids]
                module.trainable_tokens_delta[adapter].copy_(rows)
                module.trainable_tokens_original[adapter].copy_(rows)


def _gathered(parameter: Tensor) -> contextlib.AbstractContextManager[Any]:
    """Return the context in which DeepSpeed shows a parameter whole that it has cut up (ZeRO 3)."""
    if not hasattr(parameter, "ds_id"):
        return contextlib.nullcontext()
    gathered: Any = sys.modules["deepspeed"].zero.GatheredParameters
    context: contextlib.AbstractContextManager[Any] = gathered([parameter], modifier_rank=0)
    return context
