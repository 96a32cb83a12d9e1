"""Transformers as xVal trains them: the initialisation, a GPT-2 without biases, and the masking.

xVal: A Continuous Numerical Tokenization for Scientific Language Models (Golkar et al. 2023),
appendix on architecture: fully connected layers start from a normal distribution of standard
deviation (2 · fan_in · n_layers)^-1/2, and there are no biases.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from torch import Tensor, nn

from numtok.errors import MissingDependencyError
from numtok_torch.model.backbone import ModelError
from numtok_torch.model.saving import MADE_HERE

# Options of NumberCollator. Section B.4: "Changing the masking probability to 10% or 30% (default
# is 20%)"; section 2.1: "if the token being masked is a [NUM] token, we replace the corresponding
# number in h_num with 1". Nothing that has a loss stays visible: every chosen token is masked.
XVAL_MASKING: dict[str, Any] = {
    "objective": "masked",
    "mlm_probability": 0.2,
    "mask_share": 1.0,
    "random_share": 0.0,
}


class MLPTokenHead(nn.Linear):
    """Logits from one hidden layer as wide as the model: ``weight``, (vocab, d), tied to the word
    embedding, of GELU of a linear map without bias.

    Section A: "we promote both heads (number and token) to be MLPs with one hidden layer of width
    equal to the embedding dimension".
    """

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__(d_model, vocab_size, bias=False)
        self.hidden = nn.Linear(d_model, d_model, bias=False)

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., d_model) to (..., vocab)."""
        return super().forward(nn.functional.gelu(self.hidden(input)))


@functools.cache
def xval_class() -> Any:
    """Return a ``GPT2LMHeadModel`` whose config also has ``is_causal`` and ``token_head``. It takes
    transformers.
    """
    try:
        from transformers import GPT2LMHeadModel
    except ImportError as error:
        raise MissingDependencyError(
            "xval_gpt2 needs transformers: pip install 'numtok[hf]'"
        ) from error

    class XValGPT2(GPT2LMHeadModel):  # type: ignore[misc,unused-ignore]
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            if config.token_head == "mlp":
                self.lm_head = MLPTokenHead(config.n_embd, config.vocab_size)
                self.post_init()  # type: ignore[no-untyped-call,unused-ignore]  # ties the new layer
            for module in self.modules():
                if hasattr(module, "is_causal"):
                    module.is_causal = config.is_causal  # type: ignore[assignment,unused-ignore]

    return XValGPT2


MADE_HERE["XValGPT2"] = xval_class


def xval_gpt2(
    vocab_size: int,
    d_model: int,
    n_layers: int,
    n_heads: int,
    bidirectional: bool = False,
    token_head: str = "linear",
    **options: Any,
) -> nn.Module:
    """Make a GPT-2 without biases, initialised as xVal does. The paper's models are
    ``bidirectional=True, token_head="mlp"``.

    Args:
        vocab_size: of the tokenizer, number and mask tokens included.
        d_model: dimension of vectors and hidden states.
        n_layers: how many blocks.
        n_heads: attention heads in each.
        bidirectional: every token sees all others, for masked language modelling; else those before
            it.
        token_head: ``"linear"``, or ``"mlp"``: :class:`MLPTokenHead`.
        options: further ones of ``GPT2Config``, such as ``n_positions``.

    Raises:
        ModelError: for an unknown token head.
        MissingDependencyError: without transformers.

    Example:
        >>> import torch
        >>> from numtok_torch import xval_gpt2
        >>> model = xval_gpt2(vocab_size=10, d_model=8, n_layers=1, n_heads=1)
        >>> model(torch.tensor([[3, 9]])).logits.shape
        torch.Size([1, 2, 10])
    """
    if token_head not in ("linear", "mlp"):
        raise ModelError(f"token_head={token_head!r} is unknown; use 'linear' or 'mlp'")
    kind = xval_class()
    # GPT-2's own are beyond most vocabularies
    defaults: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None}
    defaults |= {"is_causal": not bidirectional, "token_head": token_head}
    config = kind.config_class(
        vocab_size=vocab_size,
        n_embd=d_model,
        n_layer=n_layers,
        n_head=n_heads,
        **(defaults | options),
    )
    model: nn.Module = kind(config)
    _initialise(model, n_layers)
    return model


def _initialise(model: Any, n_layers: int) -> None:
    """Draw the weights of all fully connected layers anew, but for one that is shared with the word
    embedding, and set every bias to 0 for good. They stay in the state dict, as zeros that are not
    trained, so that the stock class loads it.
    """
    words = model.get_input_embeddings().weight
    for module in model.modules():
        weight: Any = getattr(module, "weight", None)
        linear = isinstance(module, nn.Linear)
        if weight is words or not (linear or type(module).__name__ == "Conv1D"):
            continue
        fan_in = weight.shape[1] if linear else weight.shape[0]  # GPT-2's Conv1D has (in, out)
        nn.init.normal_(weight, std=1 / math.sqrt(2 * fan_in * n_layers))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
            parameter.requires_grad_(False)
