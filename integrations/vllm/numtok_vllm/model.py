"""A :class:`numtok_torch.NumberModel` in vLLM: its backbone is vLLM's own model of that class, with
numtok's embedding before it and numtok's head after it.

In: ids, of which those of numbers hold values. Out: hidden states and scores; and, once a token was
sampled that begins a number, its id with the value that the head reads. So a number that was
written comes back as an input like those of the prompt, and nothing else has to be remembered: not
by caches of prefixes, nor for requests that are put off and computed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from vllm.model_executor.models.utils import (
    AutoWeightsLoader,
    init_vllm_registered_model,
    maybe_prefix,
)

from numtok import Numbers, Tokenizer
from numtok.representations import SingleToken
from numtok.representations.columns import NUMBER_MASK
from numtok.tokenizer.generated_numbers import Reading, finalize, held, number_ids, streams_of
from numtok_torch import embedding_from_config, head_from_config
from numtok_torch.data.rows import number_streams
from numtok_torch.embeddings.place_values import PlaceValueEmbedding
from numtok_torch.model.backbone import ModelError, check_own_tokenizer
from numtok_torch.model.saving import EXTRA, class_and_config
from numtok_vllm.grammar import NumberGrammarWithValues
from numtok_vllm.number_ids import NumberIds

VALUES = f"{NumberGrammarWithValues.__module__}:{NumberGrammarWithValues.__name__}"
WORKER = "numtok_vllm.worker.NumberWorker"


class ServedNumberModel(nn.Module):
    """A number model whose backbone is vLLM's own model of the class.

    Raises:
        ModelError: for options of ``vllm serve`` under which numbers would be lost, and models that
            cannot be served so.
    """

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__()
        settings = vllm_config.model_config.hf_config
        self.tokenizer = Tokenizer.from_pretrained(vllm_config.model_config.tokenizer)
        if (known := getattr(settings, "tokenizer_identity", None)) is not None:
            check_own_tokenizer(known, self.tokenizer)
        check_options(vllm_config, isinstance(self.tokenizer.representations[0], SingleToken))
        if settings.backbone is None or settings.adapters is not None:
            raise ModelError(
                "vLLM serves a model of transformers without adapters: merge them, and save the"
                " model again"
            )
        kind, config = class_and_config(settings.backbone)
        self.backbone = init_vllm_registered_model(
            vllm_config,
            hf_config=config,
            architectures=[kind.__name__],
            prefix=maybe_prefix(prefix, "backbone"),
        )
        self.embedding = made(embedding_from_config, settings.embedding)
        self.head = made(head_from_config, settings.head)
        layers = () if self.embedding is None else self.embedding.modules()
        if any(isinstance(layer, PlaceValueEmbedding) for layer in layers):
            raise ModelError(
                "PlaceValueEmbedding sees the places of digits while they are written, which vLLM"
                " does not keep; write with numtok_torch.generate or examples/serve.py"
            )
        self.numbers = NumberIds(self.tokenizer)
        self.tokens = torch.tensor(number_ids(self.tokenizer))
        self.shapes = self.streams(["0"])  # (1, ...) each
        self.hidden = torch.empty(0)

    def streams(self, values: list[str]) -> dict[str, Tensor]:
        """Return the streams (n, ...) of decimals, or of those near them that the representations hold."""
        numbers = held(self.tokenizer.representations, Numbers.parse(values))
        made = streams_of(self.tokenizer, numbers)
        return {name: torch.from_numpy(one.copy()) for name, one in made.items()}

    def embed_input_ids(self, input_ids: Tensor) -> Tensor:
        """Return word vectors (tokens, d) with the numbers in them, of ids (tokens,)."""
        plain = torch.from_numpy(self.numbers.plain(input_ids.numpy()))
        vectors: Tensor = self.backbone.embed_input_ids(plain)
        if self.embedding is None:
            return vectors
        read = [self.numbers.unpack(one)[1] for one in input_ids.tolist()]
        is_number = torch.tensor([value is not None for value in read])
        values = [value for value in read if value is not None]
        batch = {"input_ids": plain[None], NUMBER_MASK.name: is_number[None]}
        shown = self.streams(values) if values else {}
        for name, one in self.shapes.items():
            fill = number_streams()[name][0].fill
            column = torch.full((len(plain), *one.shape[1:]), fill, dtype=one.dtype)
            if values:
                column[is_number] = shown[name]
            batch[name] = column[None]  # (1, tokens, ...)
        with_numbers: Tensor = self.embedding(vectors[None], batch)[0]
        return with_numbers

    def forward(
        self,
        input_ids: Tensor | None,
        positions: Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: Tensor | None = None,
    ) -> Tensor:
        """Return hidden states (tokens, d)."""
        if inputs_embeds is None:
            assert input_ids is not None
            inputs_embeds = self.embed_input_ids(input_ids)
        states: Tensor = self.backbone(None, positions, intermediate_tensors, inputs_embeds)
        return states

    def compute_logits(self, hidden_states: Tensor) -> Tensor:
        """Return scores (rows, vocabulary) of hidden states (rows, d)."""
        self.hidden = hidden_states
        scores: Tensor = self.backbone.compute_logits(hidden_states)
        if self.head is None and self.numbers.tokens:  # no number has a value
            scores[:, self.tokens] = -torch.inf
        return scores

    def say_numbers(self, sampler: Any, inputs: Any, output: Any) -> None:
        """Give numbers their values, after the sampler: in the ids that were chosen, int32 (rows, 1),
        and in those whose probabilities are told, (rows, some), of which beams are made.
        """
        told = output.logprobs_tensors
        tables = [output.sampled_token_ids, *([] if told is None else [told.logprob_token_ids])]
        where = [torch.isin(ids, self.tokens) for ids in tables]  # (rows, ...) each
        rows = torch.cat(where, 1).any(1).nonzero().squeeze(1)  # (n,)
        if self.head is None or not self.numbers.tokens or not len(rows):
            return
        found = self.head.predict(self.hidden[rows])
        values = found.values.numpy()
        streams = {name: one.numpy() for name, one in found.streams.items()}
        texts, _ = finalize(self.tokenizer, Reading(values, streams), lambda at: float(values[at]))
        said = dict(zip(rows.tolist(), texts, strict=True))
        for ids, numbers in zip(tables, where, strict=True):
            for row, at in numbers.nonzero().tolist():
                ids[row, at] = self.numbers.pack(int(ids[row, at]), said[row])

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> set[str]:
        """Load the weights of a folder of ``NumberModel.save_pretrained``."""
        own = ((name, one) for name, one in weights if name != EXTRA)
        loaded: set[str] = AutoWeightsLoader(self).load_weights(own)
        return loaded


def made(make: Any, described: dict[str, Any] | None) -> Any:
    """Return the embedding or the head that is described, in float32."""
    if described is None:
        return None
    options = dict(described)
    return make(options, options.pop("d_model")).float()


def check_options(vllm_config: Any, with_values: bool) -> None:
    """Raise ModelError for options under which numbers would be lost."""
    model, worker = vllm_config.model_config, vllm_config.parallel_config.worker_cls
    wanted = ["--tokenizer-mode numtok"] if model.tokenizer_mode != "numtok" else []
    if with_values and VALUES not in (model.logits_processors or []):
        wanted.append(f"--logits-processors {VALUES}")
    if with_values and worker != WORKER:
        wanted.append(f"--worker-cls {WORKER}")
    if wanted:
        raise ModelError(f"numbers would be lost; serve this model with {' '.join(wanted)}")
