"""Encoders with a decoder, T5 and BART: numbers in what is read, in what is written, and in the
head after the decoder.

The encoder reads ``input_ids`` and the streams beside them, (batch, source, ...); the targets are
``labels``, ``number_labels_mask`` and ``S_labels`` for each stream S, (batch, target, ...). The
decoder reads the same one place to the right, after its start token: so its hidden state t has
seen the labels before t, and predicts label t and the number there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from numtok.errors import SchemaError
from numtok.representations.columns import NUMBER_MASK
from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.masking import IGNORED
from numtok_torch.data.packing import round_up
from numtok_torch.model.backbone import ModelError
from numtok_torch.model.objective import LABELS, LABELS_MASK, filled, fills, shifted


@dataclass
class Seq2SeqNumberCollator:
    """Puts pairs of rows, (source, target), into a batch for a :class:`~numtok_torch.NumberModel`
    with encoder and decoder.

    ``torch.utils.data.StackDataset(sources, targets)`` makes pairs of two data sets of the same
    length; give it to a Trainer.

    Attributes:
        sources: batches the rows that are read; without labels.
        targets: batches the rows that are to be written, likewise; padded on the right.
        eos_token_id: put after each target, so that the model learns to end; None where the rows
            end with a token of their own (``</s>``).

    Example:
        >>> import numtok
        >>> from numtok_torch import NumberDataset, Seq2SeqNumberCollator
        >>> data = NumberDataset(numtok.Tokenizer.from_pretrained().encode_batch(["twice 7", "14"]))
        >>> ids = {"pad_token_id": 0, "eos_token_id": 0}
        >>> collator = Seq2SeqNumberCollator.from_schema(data.schema, **ids)
        >>> batch = collator([(data[0], data[1])])
        >>> batch["labels"].tolist(), batch["number_value_labels"].tolist()
        ([[16000, 0]], [[14.0, 1.0]])
    """

    sources: NumberCollator
    targets: NumberCollator
    eos_token_id: int | None = None

    def __post_init__(self) -> None:
        objectives = {self.sources.objective, self.targets.objective}
        if self.targets.padding_side != "right" or objectives != {None}:
            raise SchemaError(
                "both collators must have objective=None, and that of the targets"
                " padding_side='right'"
            )
        if self.sources.pack or self.targets.pack:
            raise SchemaError("pairs of rows cannot be packed; leave pack=True out")

    @classmethod
    def from_schema(
        cls,
        schema: pa.Schema,
        pad_token_id: int,
        *,
        eos_token_id: int | None = None,
        max_length: int | None = None,
        max_target_length: int | None = None,
        **options: Any,
    ) -> Seq2SeqNumberCollator:
        """Make a collator for sources and targets that one tokenizer encoded; the options are those
        of :class:`~numtok_torch.NumberCollator`.
        """
        options = {"objective": None, **options}
        sources, targets = (
            NumberCollator.from_schema(schema, pad_token_id, max_length=longest, **options)
            for longest in (max_length, max_target_length)
        )
        return cls(sources, targets, eos_token_id)

    def __call__(self, features: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Tensor]:
        """Put the pairs into a batch, in their order."""
        for number, pair in enumerate(features):
            if isinstance(pair, Mapping) or len(pair) != 2:
                raise SchemaError(
                    f"row {number} is no pair (source, target); make pairs with"
                    " torch.utils.data.StackDataset(sources, targets)"
                )
        source = self.sources([pair[0] for pair in features])
        return {**source, **self._labels(self.targets([pair[1] for pair in features]))}

    def _labels(self, target: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the targets' streams by the names of labels."""
        if "labels" in target:
            raise SchemaError("the targets are the labels; leave 'labels' out of their rows")
        shown = target["attention_mask"].to(torch.bool)
        labels = {"labels": target["input_ids"].masked_fill(~shown, IGNORED)}
        ends = {"labels": float(IGNORED)}  # what stands after the last token
        for stream, fill in fills().items():
            if stream in target:
                name = LABELS_MASK if stream == NUMBER_MASK.name else f"{stream}{LABELS}"
                labels[name], ends[name] = target[stream], fill
        if self.eos_token_id is None:
            return labels
        width = shown.shape[1]
        more = round_up(width + 1, self.targets.pad_to_multiple_of) - width
        labels = {
            name: torch.cat([one, *[filled(one, ends[name])] * more], 1)
            for name, one in labels.items()
        }
        labels["labels"].scatter_(1, shown.sum(1, keepdim=True), self.eos_token_id)
        return labels


def decoder_side(model: Any, streams: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """Return what the decoder of a :class:`~numtok_torch.NumberModel` reads: ids (batch, target),
    and streams by their names in front of an embedding. ModelError without labels, SchemaError for
    labels without their numbers, where the model has an embedding or a head.
    """
    backbone, needed = model.transformer, not (model.embedding is model.head is None)
    labels = streams.get("labels")
    if labels is None:
        raise ModelError(f"{type(backbone).__name__} has a decoder: give labels")
    if needed and LABELS_MASK not in streams:
        raise SchemaError(
            "the batch has labels, but no number_labels_mask, which says where their numbers are;"
            " use Seq2SeqNumberCollator"
        )
    written = {
        name: shifted(stream, fill)
        for name, fill in fills().items()
        if (stream := streams.get(f"{name}{LABELS}")) is not None
    }
    if LABELS_MASK in streams:
        written[NUMBER_MASK.name] = shifted(streams[LABELS_MASK], False)
    start = start_token(backbone)
    if hasattr(backbone, "prepare_decoder_input_ids_from_labels"):  # mBART has a rule of its own
        ids: Tensor = backbone.prepare_decoder_input_ids_from_labels(labels=labels)
        return ids, written
    padding = getattr(backbone.config, "pad_token_id", None) or 0
    return shifted(labels.masked_fill(labels == IGNORED, padding), start), written


def start_token(backbone: Any) -> int:
    """Return the token that the decoder begins with."""
    places = [getattr(backbone, "generation_config", None), backbone.config]
    for name in ("decoder_start_token_id", "bos_token_id"):
        for place in places:
            token = getattr(place, name, None)
            if isinstance(token, int):
                return token
    raise ModelError(
        f"the config of {type(backbone).__name__} names no decoder_start_token_id, with which its"
        " decoder begins; set it"
    )


def targets_of(streams: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the streams that say what is to be predicted; those beside them are the encoder's."""
    return {
        name: stream
        for name, stream in streams.items()
        if name in ("labels", LABELS_MASK) or name.endswith(LABELS)
    }


def decoder_prompt(prompt: Mapping[str, Tensor], start: int) -> dict[str, Tensor]:
    """Return what the decoder has before it writes, (batch, 1, ...): its start token, and no
    number, in the streams that the prompts have.
    """
    columns = {name: filled(prompt[name], fill) for name, fill in fills().items() if name in prompt}
    ids = filled(prompt["input_ids"], start)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **columns}
