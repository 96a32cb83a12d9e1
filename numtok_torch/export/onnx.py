"""A model as one ONNX graph: word vectors with numbers, backbone with its cache, and head.

In: ids and streams of new tokens, dense, and keys and values of those before. Out: logits, what the
head reads, and all keys and values. ``examples/generate_onnx.py`` writes text with it, without
torch.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from numtok import Tokenizer
from numtok.errors import MissingDependencyError
from numtok.representations.registry import set_for_all
from numtok_torch.data.tokens import numtok_of
from numtok_torch.generation.generate_texts import check_fits, read_prompts, special_tokens
from numtok_torch.model.backbone import ModelError, is_pretrained, parameters_of, unwrapped
from numtok_torch.model.model import NumberModel
from numtok_torch.model.run import evaluating, room

FILE = "model.onnx"
SAMPLE = ["it is 12.5 and 7 or 0.25 of", "3 and 12 or 4 of 0.5"]
IDS, MASK, KEPT = "input_ids", "attention_mask", "logits_at"


def to_onnx(model: NumberModel, folder: str | Path, tokenizer: Any) -> Path:
    """Write the model as ``model.onnx``, and its tokenizer, to a folder.

    ================================  ===========================================================
    input                             shape
    ================================  ===========================================================
    ``input_ids``                     int64 (batch, seq)
    ``attention_mask``                int64 (batch, past + seq), 0 on padding, on the left
    ``number_mask`` and the streams   (batch, seq, ...), dense: what the embedding reads
    ``logits_at``                     int64 (k,), places in seq, such as [-1] for the last
    ``past.0.key`` and so on          float (batch, heads, past, d); past is 0 at first
    ================================  ===========================================================

    Outputs: ``logits`` (batch, k, vocabulary); of the head, (batch, k, ...), ``read.number_digits``
    and the like, or ``read.values`` and ``read.bounds``
    (:class:`numtok.tokenizer.generated_numbers.Reading`); ``present.0.key`` and so on.

    Args:
        model: around a causal Hugging Face model whose cache is keys and values of each layer.
        folder: is made if it is not there.
        tokenizer: the ``numtok.Tokenizer`` that the model was trained with, or a transformers
            tokenizer made from one. It is saved with columns in their dense form.

    Returns:
        The path of ``model.onnx``. Weights beyond 2 GB are in ``model.onnx.data`` beside it.

    Raises:
        ModelError: if the model cannot be written.
        MissingDependencyError: without onnx and onnxscript.

    Example:
        >>> import numtok_torch
        >>> numtok_torch.to_onnx(model, "exported", tokenizer)  # doctest: +SKIP
        PosixPath('exported/model.onnx')
    """
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "to_onnx needs onnx and onnxscript: pip install 'numtok[onnx]'"
        ) from error
    model, numtok_tokenizer = unwrapped(model), numtok_of(tokenizer, ModelError)
    _check(model, numtok_tokenizer)
    if (
        dense := set_for_all(numtok_tokenizer.representations, compact=False)
    ) != numtok_tokenizer.representations:
        numtok_tokenizer = numtok_tokenizer.with_options(dense)
    settings: dict[str, Any] = special_tokens(model, tokenizer, numtok_tokenizer, {})
    settings["positions"] = room(model.transformer)
    with evaluating(model):
        program = _exported(model, numtok_tokenizer)
    program.model.metadata_props["numtok"] = json.dumps(settings)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    numtok_tokenizer.save_pretrained(folder)
    program.save(folder / FILE)
    return folder / FILE


def _check(model: Any, tokenizer: Tokenizer) -> None:
    if not isinstance(model, NumberModel):
        raise ModelError(f"to_onnx needs a NumberModel, got {type(model).__name__}")
    backbone = model.transformer
    if not (is_pretrained(backbone) and backbone.can_generate() and model.causal):
        raise ModelError(
            f"{type(backbone).__name__} writes no text from left to right; to_onnx takes causal"
            " Hugging Face models (...ForCausalLM)"
        )
    if any(getattr(layer, "read_as_written", False) for layer in model.modules()):
        raise ModelError(
            "to_onnx has no operation for read_as_written; write with numtok_torch.generate or"
            " examples/serve.py"
        )
    check_fits(model, tokenizer)


class _Graph(nn.Module):
    """Module that is exported: all inputs and outputs by place, as ONNX has neither names nor
    caches.

    Attributes:
        streams: those that the embedding reads.
        outputs: the names of what :meth:`forward` gives, known once it ran.
    """

    def __init__(self, model: NumberModel, batch: dict[str, Tensor]) -> None:
        super().__init__()
        self.model = model
        read = () if model.embedding is None else ("number_mask", *model.embedding.streams)
        self.streams = [name for name in read if name in batch and name != IDS]
        self.outputs: list[str] = []

    def forward(
        self, ids: Tensor, mask: Tensor, at: Tensor, streams: list[Tensor], past: list[Tensor]
    ) -> list[Tensor]:
        """Compute the outputs that :func:`to_onnx` names."""
        from transformers import DynamicCache

        cache = DynamicCache(list(zip(past[::2], past[1::2], strict=True)))
        arguments: dict[str, Any] = {"attention_mask": mask, "past_key_values": cache}
        if "logits_to_keep" in parameters_of(self.model.transformer):
            arguments["logits_to_keep"] = at
        named = dict(zip(self.streams, streams, strict=True))
        output, hidden, logits = self.model.run(ids, named, use_cache=True, **arguments)
        if logits is not None and "logits_to_keep" not in arguments:
            logits = logits[:, at]
        named_outputs: dict[str, Any] = {"logits": logits}
        if self.model.head is not None:
            read = self.model.head.predict(hidden[:, at])
            values = {"values": read.values, "bounds": read.bounds}
            chosen: dict[str, Any] = read.streams or values
            named_outputs |= {
                f"read.{name}": one for name, one in chosen.items() if one is not None
            }
        named_outputs |= _present(output)
        self.outputs = list(named_outputs)
        return list(named_outputs.values())


def _present(output: Any) -> dict[str, Tensor]:
    """Return the tensors of the cache in an output by name, (batch, heads, tokens, d) each."""
    layers = getattr(getattr(output, "past_key_values", None), "layers", ())
    if not layers or any(getattr(layer, "keys", None) is None for layer in layers):
        raise ModelError(
            "to_onnx takes models whose cache is keys and values of each layer, and a"
            f" {type(output).__name__} has no such cache"
        )
    return {
        f"present.{number}.{part}": one
        for number, layer in enumerate(layers)
        for part, one in (("key", layer.keys), ("value", layer.values))
    }


def _exported(model: NumberModel, tokenizer: Tokenizer) -> Any:
    """Export the graph from what it does with two short texts and a cache."""
    batch = read_prompts(tokenizer, SAMPLE, 0, 0, False, model.device)
    graph = _Graph(model, batch).eval()
    ids, mask = batch[IDS], batch[MASK]
    at = torch.tensor([-2, -1], device=ids.device)
    streams = [batch[name] for name in graph.streams]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, of what is its own
        results = graph(ids, mask, at, streams, [])
        outputs = list(graph.outputs)
        cached = [name for name in outputs if name.startswith("present.")]
        past = [one for name, one in zip(outputs, results, strict=True) if name in cached]
        example = (ids, torch.cat([mask, mask], 1), at, streams, past)
        dynamic = _dynamic(len(streams), len(past))
        traced = torch.export.export(graph, example, dynamic_shapes=dynamic, strict=False)
        caches = [name.replace("present", "past") for name in cached]
        inputs = [IDS, MASK, KEPT, *graph.streams, *caches]
        program = _needed(traced)
        return torch.onnx.export(program, input_names=inputs, output_names=outputs, verbose=False)


def _needed(traced: Any) -> Any:
    """Remove what leads to no output, such as the values of digits; ONNX has no operation for some
    of it.
    """
    decompositions = {  # which ONNX Runtime has not, or not in float64
        torch.ops.aten.sinh.default: lambda x: (x.exp() - (-x).exp()) / 2,
        torch.ops.aten.copysign.Tensor: lambda x, y: torch.where(y < 0, -x.abs(), x.abs()),
    }
    # also without parts of their own where there is no gradient
    plain = traced.run_decompositions(decompositions)
    graph = plain.graph_module.graph
    graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    return plain


def _dynamic(streams: int, past: int) -> Any:
    """Return which axes vary, for the arguments of the graph."""
    batch, seq, before, k = (torch.export.Dim(name) for name in ("batch", "seq", "past", "k"))
    row = {0: batch, 1: seq}
    mask = {0: batch, 1: torch.export.Dim.DYNAMIC}
    return row, mask, {0: k}, [row] * streams, [{0: batch, 2: before}] * past
