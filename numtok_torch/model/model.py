"""A transformer that reads and says numbers: an embedding in front of any backbone, and a head
behind it.

In: the batch that :class:`~numtok_torch.NumberCollator` makes, by name: ``model(**batch)``. Out:
:class:`NumberModelOutput`: token loss, number loss, their weighted sum, logits, hidden states, and
the numbers that the head predicts.

Which hidden state predicts which number, and what losses are means of, says
:mod:`numtok_torch.model.objective`.

Shape:
    - input_ids, labels, masks: (batch, seq); number streams: (batch, seq, ...); logits: (batch,
      seq, vocab); hidden: (batch, seq, d_hidden).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from numtok_torch.data.masking import IGNORED
from numtok_torch.embeddings.base import NumberEmbedding
from numtok_torch.heads.base import NumberHead
from numtok_torch.model import saving, seq2seq
from numtok_torch.model.arguments import name_streams, take_streams
from numtok_torch.model.backbone import (
    ModelError,
    add_rows,
    check_backbone,
    check_rows,
    check_sizes,
    classification,
    freeze_trunk,
    has_decoder,
    is_causal,
    parameters_of,
    reads_ids,
    run_backbone,
    run_with_ids,
    unwrapped,
    word_embedding,
)
from numtok_torch.model.finite import check_finite
from numtok_torch.model.objective import (
    NumberModelOutput,
    Step,
    check_logits,
    number_targets,
    numbers_to_predict,
    placed,
    predictable,
    token_loss,
)
from numtok_torch.model.positions import counted_from_zero, mask_apart, positions
from numtok_torch.model.wrapper import BackboneWrapper

# what evaluation loops need not collect
NOT_GATHERED = ("past_key_values", "hidden", "token_loss", "number_loss")


class NumberModel(BackboneWrapper):
    """Any transformer, with numbers in its word vectors and a head that predicts numbers.

    Args:
        backbone: a Hugging Face model that takes ``inputs_embeds`` (causal, masked or a bare
            encoder), or a module after :class:`~numtok_torch.model.backbone.PlainBackbone`. Its
            weights, tied ones too, stay the same objects.
        embedding: puts the numbers in; None where tokens say all (Charton's encodings).
        head: predicts numbers; None for tokens only.
        number_weight, token_weight: of the two losses. With ``token_weight=0`` a backbone without
            logits may be given labels.
        causal: whether a token sees only those before it; None: as the backbone's kind says.
        vocab_size: rows that the word embedding must have, ``tokenizer.vocab_size``; more are added
            if needed, never removed.
        mean_resizing: new rows are drawn around the mean of the old ones, with their covariance, so
            that the new tokens start out about as likely as the others; False draws them as at the
            model's own initialisation, which is faster, but for a pretrained model with tied
            weights may make them far more likely.
        freeze_backbone: train the embedding and the head only. The backbone, new rows included,
            gets no gradient, and no dropout. ``"trunk"``: its word head, untied from the word
            vectors, is trained too (Floating-Point Embedding, section 4.3: "We retrained the
            classification head and the corresponding numerical embedding module ... while keeping
            the parameters of the language model itself frozen").

    Raises:
        ModelError: if they do not fit together.
    """

    _keys_to_ignore_on_save = None  # likewise: looked up when it resumes

    def __init__(
        self,
        backbone: nn.Module,
        embedding: NumberEmbedding | None,
        head: NumberHead | None = None,
        *,
        number_weight: float = 1.0,
        token_weight: float = 1.0,
        causal: bool | None = None,
        vocab_size: int | None = None,
        mean_resizing: bool = True,
        freeze_backbone: bool | str = False,
    ) -> None:
        super().__init__()
        name_streams(NumberModel.forward)
        self._told_of_shares = self._checked_ids = False
        check_backbone(backbone)
        if vocab_size is not None:
            add_rows(unwrapped(backbone), vocab_size, mean_resizing)
        self.backbone, self.embedding, self.head = backbone, embedding, head
        self.number_weight, self.token_weight = number_weight, token_weight
        self.causal = is_causal(self.transformer) if causal is None else causal
        self.task, self.decodes = classification(self.transformer), has_decoder(self.transformer)
        if self.decodes and self.causal:
            raise ModelError(
                "the labels of an encoder with a decoder are not shifted by the model; leave"
                " causal out"
            )
        self.backbone_frozen = freeze_backbone
        check_sizes(self.transformer, embedding, head)
        if isinstance(pooler := getattr(self.transformer, "pooler", None), nn.Module):
            pooler.requires_grad_(False)  # of a bare BERT: no loss reaches it, and DDP would wait
        if freeze_backbone not in (True, False, "trunk"):
            raise ModelError(
                f"freeze_backbone={freeze_backbone!r} is unknown; use True, False or 'trunk'"
            )
        if freeze_backbone == "trunk":
            freeze_trunk(self.transformer)
        elif freeze_backbone:
            backbone.requires_grad_(False)
        self.train(self.training)
        self.leave_out_of_evaluation(NOT_GATHERED)
        self.register_state_dict_post_hook(saving.drop_shared)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(saving.restore_shared)  # type: ignore[no-untyped-call]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> NumberModelOutput:
        """Losses and predictions for a batch.

        All are (batch, seq, ...), as ``NumberCollator`` makes them; those that neither the
        embedding nor the head reads are not needed.

        Args:
            input_ids: int64.
            attention_mask: 0 on padding.
            position_ids: int64; None for those that fit the padding. Without ``attention_mask``,
                texts that were packed into one row are told by them, and do not see each other.
            token_type_ids: int64, for BERT.
            labels: int64, not shifted; -100 for tokens without a loss.
            kwargs: ``number_mask``, True at each number's first token, and the streams of the
                representations by the names of their columns
                (:func:`numtok.representations.streams`); the signature names them all
                (:mod:`numtok_torch.model.arguments`). Also ``number_labels_mask`` and ``S_labels``
                for a stream S, and what a Trainer adds (:class:`numtok_torch.model.objective.Step`).
                Everything else goes to the backbone.

        Raises:
            ModelError: for labels where the backbone has no logits, columns of a file, ids without
                a word vector, and a loss, or a stream that is read, that is not finite.
            SchemaError: if a stream is missing.
        """
        step = self._step(labels, kwargs)
        self._check_ids(input_ids)
        masks = {"attention_mask": attention_mask, "position_ids": position_ids}
        given = {**masks, "labels": labels, **take_streams(kwargs)}
        streams = {name: stream for name, stream in given.items() if stream is not None}
        inputs = {**masks, "token_type_ids": token_type_ids, **kwargs}
        if self.task is not None:
            inputs["labels"] = labels
        elif self.decodes:
            reads = self.embedding is not None or self.head is not None
            ids, written = seq2seq.decoder_side(self.transformer, streams, inputs, reads)
            inputs["decoder_inputs_embeds"] = self.embed(ids, written, decoder=True)
        output, hidden, logits = self.run(input_ids, streams, **inputs)
        targets = seq2seq.targets_of(streams) if self.decodes else streams
        result = self._output(output, hidden, logits, targets, step)
        check_finite(self, result, streams, self.embedding.streams if self.embedding else ())
        return result

    def embed(
        self, input_ids: Tensor, streams: Mapping[str, Tensor], decoder: bool = False
    ) -> Tensor:
        """Word vectors with the numbers in them: (batch, seq, d_model); of the decoder's words
        behind an encoder with ``decoder``.
        """
        vectors: Tensor = word_embedding(self.transformer, decoder)(input_ids)
        if self.embedding is None:
            return vectors
        batch = {"input_ids": input_ids, **streams}
        if self.task is not None:
            batch.pop("labels", None)  # are classes: no place of a digit has to be found from them
        with_numbers: Tensor = self.embedding(vectors, batch)
        return with_numbers

    def run(
        self, input_ids: Tensor, streams: Mapping[str, Tensor], **inputs: Any
    ) -> tuple[Any, Tensor, Tensor | None]:
        """The backbone's own output (None for a plain module), hidden states (batch, seq,
        d_hidden), and logits if it has any; no losses.

        With ``encoder_outputs``, the ids and streams are those of the decoder, which is all that
        runs.
        """
        decoding = self.decodes and inputs.get("encoder_outputs") is not None
        vectors = self.embed(input_ids, streams, decoding)
        if inputs.get("attention_mask") is None:
            inputs["attention_mask"] = mask_apart(
                self.transformer, self.causal, vectors, inputs.get("position_ids")
            )
        taken = parameters_of(self.transformer)
        if (given := inputs.get("position_ids")) is not None:
            inputs["position_ids"] = counted_from_zero(self.transformer, given)
        elif "position_ids" in taken:
            inputs["position_ids"] = positions(
                self.transformer, input_ids, inputs.get("attention_mask")
            )
        if "use_cache" in taken:
            inputs.setdefault("use_cache", False)  # a cache costs memory in training
        inputs = {name: value for name, value in inputs.items() if value is not None}
        if reads_ids(self.transformer):
            return run_with_ids(self.transformer, input_ids, vectors, **inputs)
        if decoding:
            return run_backbone(self.transformer, None, decoder_inputs_embeds=vectors, **inputs)
        return run_backbone(self.transformer, vectors, **inputs)

    def _step(self, labels: Tensor | None, kwargs: dict[str, Any]) -> Step:
        """What the Trainer says of the step, taken out of the arguments."""
        step = Step.taken_from(kwargs)
        if step.tokens is not None and labels is None:
            raise ModelError(
                "the labels were taken out of the batch, as transformers' Trainer does for"
                " label_smoothing_factor and compute_loss_func: the labels would not be shifted,"
                " and numbers would have no loss. Use numtok_torch.trainer.NumberTrainer for label"
                " smoothing; for a loss of your own override compute_loss"
            )
        return step

    def _check_ids(self, input_ids: Tensor) -> None:
        """That there are vectors for them; on an accelerator, which would wait, only once."""
        if torch.compiler.is_compiling() or not input_ids.numel() or input_ids.is_meta:
            return
        if input_ids.device.type == "cpu" or not self._checked_ids:
            check_rows(self.transformer, int(input_ids.max()) + 1, "the batch needs at least")
            self._checked_ids = True

    def count_numbers(self, batch: Mapping[str, Tensor]) -> int:
        """The numbers in a batch that have a loss."""
        where = numbers_to_predict(
            seq2seq.targets_of(batch) if self.decodes else batch, self.causal
        )
        return 0 if self.head is None or where is None else int(where.sum())

    def _output(
        self,
        output: Any,
        hidden: Tensor,
        logits: Tensor | None,
        streams: Mapping[str, Tensor],
        step: Step,
    ) -> NumberModelOutput:
        labels = streams.get("labels")
        if self.task == "texts":  # its labels are one per row
            streams = {name: stream for name, stream in streams.items() if name != "labels"}
        result = NumberModelOutput(
            logits=logits, hidden=hidden, past_key_values=getattr(output, "past_key_values", None)
        )
        losses: list[Tensor] = []
        share = step.share(labels, self.causal)
        if self.task is not None and labels is not None:
            result["token_loss"] = output.loss
            losses.append(self.token_weight * output.loss)
        elif labels is not None and (logits is not None or self.token_weight):
            logits = check_logits(self.transformer, labels, logits)
            labels = labels.masked_fill(~predictable(labels, streams, self.causal), IGNORED)
            result["token_loss"] = token_loss(logits, labels, self.causal, step)
            losses.append(self.token_weight * result["token_loss"])
            # of a mixture of experts, weighted as in transformers
            if (extra := getattr(output, "aux_loss", None)) is not None:
                losses.append(getattr(self.config, "router_aux_loss_coef", 1.0) * extra * share)
        where = numbers_to_predict(streams, self.causal)
        if self.head is not None and where is not None:
            rows = hidden[:, :-1][where[:, 1:]] if self.causal else hidden[where]  # (n, d_hidden)
            if (target := number_targets(self.head, streams)) is not None:
                self._warn_of_shares(step, share)
                mean = self.head.loss(rows, target[where])
                result["number_loss"] = mean * step.share_of_numbers(len(rows), share)
                losses.append(self.number_weight * result["number_loss"])
            if not self.training:
                predicted = self.head.predict(rows).values.detach()
                result["number_predictions"] = placed(where, predicted)
                name = "number_value" + "_labels" * ("number_labels_mask" in streams)
                if name in streams:
                    result["number_references"] = placed(where, streams[name][where])
        if losses:
            result["loss"] = torch.stack([loss.float() for loss in losses]).sum()
        known = {name: result.get(name) for name in NumberModelOutput.FIELDS}
        return NumberModelOutput({name: one for name, one in known.items() if one is not None})

    def _warn_of_shares(self, step: Step, share: Tensor | float) -> None:
        """Once, at the first step of training: that the mean over numbers is not exact."""
        if torch.compiler.is_compiling() or not self.training or self._told_of_shares:
            return
        self._told_of_shares = True
        if step.numbers is None and float(share) < 1:
            warnings.warn(
                "this Trainer does not count the numbers of accumulated batches: each batch's"
                " number loss counts by its share of the tokens. For the mean over all numbers use"
                " numtok_torch.trainer.NumberTrainer",
                stacklevel=2,
            )

    def train(self, mode: bool = True) -> NumberModel:
        """As for any module; a frozen backbone stays in evaluation mode."""
        super().train(mode)
        if self.backbone_frozen:
            self.backbone.eval()
        return self

    @property
    def accepts_loss_kwargs(self) -> bool:
        """Of the Trainer: whether losses are means over the whole step; a classifier's own are not."""
        return self.task is None

    @property
    def loss_type(self) -> str:
        """Of the Trainer, which counts labels as they are shifted."""
        return "ForCausalLM" if self.causal else "ForMaskedLM"

    def get_extra_state(self) -> Tensor:
        """What :meth:`from_pretrained` needs besides the weights, as JSON in uint8: so it is also
        in the checkpoints that a Trainer writes.
        """
        return saving.pack(saving.describe(self))

    def set_extra_state(self, state: Tensor) -> None:
        """Nothing: a model that exists keeps its own settings when it loads weights."""

    def save_pretrained(self, folder: str | Path) -> None:
        """Write ``model.safetensors`` and ``numtok_model.json`` to a folder."""
        saving.save(self, Path(folder))

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        backbone: nn.Module | None = None,
        embedding: NumberEmbedding | None = None,
        head: NumberHead | None = None,
        dtype: torch.dtype | None = None,
    ) -> NumberModel:
        """Load what :meth:`save_pretrained` wrote, or a checkpoint of a Trainer. Only weights and
        JSON are read: nothing in a folder can run code.

        Args:
            folder: on disk.
            backbone: to load the weights into; needed for a class that is not in transformers.
            embedding: likewise, if it is not in numtok_torch.
            head: likewise.
            dtype: of the backbone; None for that of the weights.

        Raises:
            ModelError: if the folder cannot be read, or holds another model than the modules given.
        """
        return saving.load(cls, Path(folder), backbone, embedding, head, dtype)
