"""A transformer that reads and says numbers: an embedding in front of any backbone, and a head
after it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from numtok.representations.columns import NUMBER_VALUE
from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.masking import IGNORED
from numtok_torch.embeddings.base import NumberEmbedding, readable
from numtok_torch.heads.base import NumberHead
from numtok_torch.model import adapters, saving, seq2seq
from numtok_torch.model.backbone import (
    ModelError,
    check_backbone,
    check_rows,
    check_sizes,
    classification,
    freeze_trunk,
    has_decoder,
    is_causal,
    is_loaded,
    size_of_words,
    unwrapped,
    word_embedding,
)
from numtok_torch.model.build import (
    check_learns,
    chosen_collator,
    chosen_layers,
    identity_for,
    make_room,
)
from numtok_torch.model.objective import (
    LABELS,
    LABELS_MASK,
    NumberModelOutput,
    Step,
    check_finite,
    check_logits,
    count_targets,
    name_streams,
    number_targets,
    numbers_to_predict,
    placed,
    pop_streams,
    predictable,
    token_loss,
    weighted_sum,
)
from numtok_torch.model.run import check_apart, check_positions, room, run_backbone

# what evaluation loops need not collect
NOT_GATHERED = ("past_key_values", "hidden", "token_loss", "number_loss")


def _of_the_backbone(name: str) -> Any:
    """Make a property that gives a Trainer, accelerate or peft the backbone's attribute."""
    return property(
        lambda model: getattr(model.transformer, name),
        lambda model, value: setattr(model.transformer, name, value),
        doc=f"``{name}`` of the backbone.",
    )


class NumberModel(nn.Module):
    """Any transformer, with numbers in its word vectors and a head that predicts numbers.

    Args:
        backbone: a Hugging Face model that takes ``inputs_embeds`` (causal, masked or a bare
            encoder), or a module after :class:`~numtok_torch.model.backbone.PlainBackbone`. Its
            weights, tied ones too, stay the same objects.
        embedding: puts the numbers into the word vectors; None where tokens say all (Charton's
            encodings). Unless it has an ``amplitude``, its vectors start as long as the
            backbone's word vectors.
        head: predicts numbers; None for tokens only. Around a pretrained backbone a LayerNorm
            stands in front of it, unless its option ``layer_norm`` says otherwise.
        number_weight, token_weight: of the two losses. With ``token_weight=0`` a backbone without
            logits may be given labels.
        number_loss_per: ``"number"``: the mean over the numbers to predict. ``"token"``: their sum
            over the count of tokens with a label, which is smaller, so that ``number_weight`` may
            be larger. Then any Trainer gives accumulated batches the loss and gradients of one.
        causal: whether a token sees only those before it; None: as the backbone's kind says.
        vocab_size: rows that the word embedding must have; more are added if needed, never removed.
            With ``tokenizer`` there are enough.
        tokenizer: that of the training data, a ``numtok.Tokenizer`` or a transformers tokenizer
            made from one; rows for its number tokens are added where there are none, started as
            :func:`~numtok_torch.add_number_rows` has it. None for that of the schema which the
            embedding or the head was made from, without rows.
        freeze_backbone: train the embedding and the head only. The backbone, new rows included,
            gets no gradient, and no dropout. ``"trunk"``: its word head, untied from the word
            vectors, is trained too (Floating-Point Embedding, section 4.3).

    Raises:
        ModelError: if they do not fit together.

    Attributes:
        collator: the :class:`~numtok_torch.NumberCollator` of :meth:`build`; None for other models.
        tokenizer_identity: what is known of the tokenizer
            (:func:`numtok_torch.data.tokens.identity`); None if nothing is. It is saved with the
            model, and :func:`numtok_torch.generate`, :func:`numtok_torch.to_onnx` and
            ``NumberTrainer`` refuse another tokenizer, or data of another. Set it to None to go on
            with another one.

    Example:
        >>> import torch
        >>> from numtok_torch import NumberModel, ScalarHead, XValEmbedding, xval_gpt2
        >>> backbone = xval_gpt2(vocab_size=10, d_model=8, n_layers=1, n_heads=1)
        >>> model = NumberModel(backbone, XValEmbedding(8), ScalarHead(8)).eval()
        >>> mask, values = torch.tensor([[0, 1]]), torch.tensor([[1, 2.5]])
        >>> numbers = {"number_mask": mask, "number_scaled": values}
        >>> model(torch.tensor([[3, 9]]), **numbers).number_predictions.shape
        torch.Size([1, 2])
    """

    backbone: Any  # by its methods, which differ from model to model
    collator: NumberCollator | None = None
    _keys_to_ignore_on_save = None  # a Trainer looks it up when it resumes

    config = _of_the_backbone("config")
    generation_config = _of_the_backbone("generation_config")
    get_input_embeddings = _of_the_backbone("get_input_embeddings")
    get_output_embeddings = _of_the_backbone("get_output_embeddings")
    prepare_inputs_for_generation = _of_the_backbone("prepare_inputs_for_generation")
    activation_checkpointing_enable = _of_the_backbone("activation_checkpointing_enable")
    activation_checkpointing_disable = _of_the_backbone("activation_checkpointing_disable")
    gradient_checkpointing_enable = _of_the_backbone("gradient_checkpointing_enable")
    gradient_checkpointing_disable = _of_the_backbone("gradient_checkpointing_disable")

    def __init__(
        self,
        backbone: nn.Module,
        embedding: NumberEmbedding | None,
        head: NumberHead | None = None,
        *,
        number_weight: float = 1.0,
        token_weight: float = 1.0,
        number_loss_per: str = "number",
        causal: bool | None = None,
        vocab_size: int | None = None,
        tokenizer: Any = None,
        freeze_backbone: bool | str = False,
    ) -> None:
        nn.Module.__init__(self)  # alone, whatever else a derived class is
        name_streams(NumberModel.forward)
        self._told_of_shares = self._checked_ids = False
        self._keeps_apart: bool | None = None  # not known before the first packed row
        check_backbone(backbone)
        make_room(unwrapped(backbone), tokenizer, vocab_size)
        self.backbone, self.embedding, self.head = backbone, embedding, head
        self.tokenizer_identity = identity_for(tokenizer, embedding, head)
        self.number_weight, self.token_weight = number_weight, token_weight
        self.number_loss_per = number_loss_per
        self.causal = is_causal(self.transformer) if causal is None else causal
        self.task, self.decodes = classification(self.transformer), has_decoder(self.transformer)
        # of the decoder with True
        self._positions = {side: room(self.transformer, side) for side in (False, True)}
        if number_loss_per not in ("number", "token"):
            raise ModelError(f"number_loss_per={number_loss_per!r}: it is 'number' or 'token'")
        if self.decodes and self.causal:
            raise ModelError(
                "the labels of an encoder with a decoder are not shifted by the model; leave"
                " causal out"
            )
        check_sizes(self.transformer, embedding, head)
        if embedding is not None:
            embedding.match_norm(size_of_words(self.transformer))
        if head is not None:
            head.fit_to(is_loaded(self.transformer))
        self._freeze(freeze_backbone)
        if (config := getattr(self.transformer, "config", None)) is not None:
            ignored = getattr(config, "keys_to_ignore_at_inference", None) or []
            config.keys_to_ignore_at_inference = [*dict.fromkeys([*ignored, *NOT_GATHERED])]
        self.register_state_dict_post_hook(saving.drop_shared)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(saving.restore_shared)  # type: ignore[no-untyped-call]

    @classmethod
    def build(
        cls,
        backbone: nn.Module,
        data: Any,
        tokenizer: Any,
        *,
        embedding: Mapping[str, Any] | None = None,
        head: str | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Make a model for a data set: the layer and the head of its representation, rows for its
        number tokens, and the ``collator`` that ``NumberTrainer`` takes where it is given none.

        Args:
            backbone: as in the class; no encoder with a decoder.
            data: what has the ``schema`` of encoded text, such as a ``NumberDataset``.
            tokenizer: of the data, a ``numtok.Tokenizer`` or a transformers one made from it.
            embedding: options of :func:`~numtok_torch.embedding_from_schema`; ``nonzero`` is
                True.
            head: options of :func:`~numtok_torch.head_from_schema`, or the name of a head.
            options: of the class.

        Examples:
            >>> import numtok, numtok_torch, transformers
            >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="xval")
            >>> data = numtok_torch.NumberDataset(tokenizer.encode_batch(["It weighs 1.5 kg"]))
            >>> config = transformers.GPT2Config(n_embd=16, n_layer=1, n_head=1)
            >>> backbone = transformers.GPT2LMHeadModel(config)
            >>> model = numtok_torch.NumberModel.build(backbone, data, tokenizer)
            >>> model(**model.collator([data[0]])).loss.isfinite().item()
            True

        Raises:
            NumtokError: if they do not fit together, or an option is unknown.
        """
        schema = getattr(data, "schema", data)
        wanted = {"head": head} if isinstance(head, str) else dict(head or {})
        layer, chosen_head = chosen_layers(backbone, schema, embedding or {}, wanted)
        model = cls(backbone, layer, chosen_head, tokenizer=tokenizer, **options)
        model.collator = chosen_collator(model, schema, tokenizer)
        return model

    def _freeze(self, freeze: bool | str) -> None:
        """Freeze the backbone as ``freeze_backbone`` says, and a pooler, which no loss reaches."""
        if freeze not in (True, False, "trunk"):
            raise ModelError(f"freeze_backbone={freeze!r} is unknown; use True, False or 'trunk'")
        if isinstance(pooler := getattr(self.transformer, "pooler", None), nn.Module):
            pooler.requires_grad_(False)  # of a bare BERT: no loss reaches it, and DDP would wait
        if freeze == "trunk":
            freeze_trunk(self.transformer)
        elif freeze:
            self.backbone.requires_grad_(False)
        self.freeze_backbone = freeze
        if freeze:
            check_learns(self)
        self.train(self.training)

    @property
    def transformer(self) -> Any:
        """Return the backbone, without the wrapper of peft's ``get_peft_model``."""
        return unwrapped(self.backbone)

    @property
    def device(self) -> torch.device:
        """Return the device of the word vectors."""
        place: torch.device = next(word_embedding(self.transformer).parameters()).device
        return place

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> NumberModelOutput:
        """Compute the losses and predictions for a batch.

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
                representations (:func:`numtok.representations.streams`), which the signature
                names. Also ``number_labels_mask``, ``S_labels`` for a stream S, and what a Trainer
                adds (:mod:`numtok_torch.model.objective`). All else goes to the backbone.

        Raises:
            ModelError: for labels where the backbone has no logits, columns of a file, ids without
                a word vector, and a loss, or a stream that is read, that is not finite.
            SchemaError: if a stream is missing.
        """
        step = Step.taken_from(kwargs, labels)
        self._check_ids(input_ids)
        masks = {"attention_mask": attention_mask, "position_ids": position_ids}
        inputs_by_name = {**masks, "labels": labels, **pop_streams(kwargs)}
        streams = {name: stream for name, stream in inputs_by_name.items() if stream is not None}
        inputs = {**masks, "token_type_ids": token_type_ids, **kwargs}
        if self.task is not None:
            inputs["labels"] = labels
        elif self.decodes:
            ids, written = seq2seq.decoder_side(self, streams)
            inputs["decoder_inputs_embeds"] = self.embed(ids, written, decoder=True)
        output, hidden, logits = self.run(input_ids, streams, **inputs)  # (batch, seq, ...)
        numbers = seq2seq.targets_of(streams) if self.decodes else streams
        cross_entropy, balance = self._token_losses(output, logits, numbers, step)
        number_loss, predictions = self._read_numbers(hidden, numbers, step)
        weights = self.token_weight, 1.0, self.number_weight
        losses = zip(weights, (cross_entropy, balance, number_loss), strict=True)
        parts = {
            "loss": weighted_sum(losses),
            "token_loss": cross_entropy,
            "number_loss": number_loss,
            "logits": logits,
            "hidden": hidden,
            **predictions,
            "past_key_values": getattr(output, "past_key_values", None),
        }
        result = NumberModelOutput({name: one for name, one in parts.items() if one is not None})
        check_finite(self, result, streams, self.embedding.streams if self.embedding else ())
        return result

    def embed(
        self, input_ids: Tensor, streams: Mapping[str, Tensor], decoder: bool = False
    ) -> Tensor:
        """Return word vectors with their numbers, (batch, seq, d_model), or those of a decoder."""
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
        """Return the backbone's own output (None for a plain module), hidden states (batch, seq,
        d_hidden), and logits if it has any; no losses.

        With ``encoder_outputs``, the ids and streams are those of the decoder, which is all that
        runs.
        """
        written = inputs.get("decoder_inputs_embeds")
        decoding = self.decodes and written is None and inputs.get("encoder_outputs") is not None
        vectors = self.embed(input_ids, streams, decoding)  # (batch, seq, d_model)
        sides = {decoding: input_ids} | ({} if written is None else {True: written})
        for decoder, rows in sides.items():
            places = self._positions[decoder]
            if places is not None and readable(rows) and rows.shape[1] > places:
                check_positions(self.transformer, places, rows.shape[1], inputs)
        position_ids = None if self.task == "texts" else inputs.get("position_ids")
        if position_ids is not None and readable(position_ids):
            keeps = self._keeps_apart
            self._keeps_apart = check_apart(self.transformer, self.causal, vectors, inputs, keeps)
        return run_backbone(self.transformer, self.causal, input_ids, vectors, inputs, decoding)

    def _check_ids(self, input_ids: Tensor) -> None:
        """Refuse ids without a word vector; on an accelerator, which would wait, look only once."""
        if not readable(input_ids) or not input_ids.numel():
            return
        if input_ids.device.type == "cpu" or not self._checked_ids:
            check_rows(self.transformer, int(input_ids.max()) + 1, "the batch needs at least")
            self._checked_ids = True

    def count_numbers(self, batch: Mapping[str, Tensor]) -> int:
        """Count the numbers in a batch that have a loss."""
        batch = seq2seq.targets_of(batch) if self.decodes else batch
        return int(count_targets(self.head, batch, numbers_to_predict(batch, self.causal)))

    def _token_losses(
        self, output: Any, logits: Tensor | None, streams: Mapping[str, Tensor], step: Step
    ) -> tuple[Tensor | None, Tensor | None]:
        """Return the loss of the tokens, or of the classes, and that of a mixture of experts."""
        labels = streams.get("labels")
        if labels is None or (logits is None and not self.token_weight):
            return None, None
        if self.task is not None:
            return output.loss, None
        logits = check_logits(self.transformer, labels, logits)
        shown = labels.masked_fill(~predictable(labels, streams, self.causal), IGNORED)
        balance: Tensor | None = getattr(output, "aux_loss", None)
        if balance is not None:  # weighted as in transformers
            share = step.share(labels, self.causal)
            balance = getattr(self.config, "router_aux_loss_coef", 1.0) * balance * share
        return token_loss(logits, shown, self.causal, step), balance

    def _read_numbers(
        self, hidden: Tensor, streams: Mapping[str, Tensor], step: Step
    ) -> tuple[Tensor | None, dict[str, Tensor]]:
        """Return the loss of the head and, out of training, predictions beside what is right."""
        if self.task == "texts":  # its labels are one per row
            streams = {name: stream for name, stream in streams.items() if name != "labels"}
        where, loss = numbers_to_predict(streams, self.causal), None
        if self.head is None or where is None:
            return None, {}
        rows = hidden[:, :-1][where[:, 1:]] if self.causal else hidden[where]  # (n, d_hidden)
        if (target := number_targets(self.head, streams)) is not None:
            labels = streams.get("labels")
            per_token = self.number_loss_per == "token" and self.task is None
            if not per_token:
                self._warn_of_shares(step, step.share(labels, self.causal))
            here = count_targets(self.head, streams, where)
            share = step.share_of_numbers(here, labels, self.causal, per_token)
            loss = share * self.head.loss(rows, target[where])
        if self.training:
            return loss, {}
        outputs = {"number_predictions": placed(where, self.head.predict(rows).values.detach())}
        name = NUMBER_VALUE.name + LABELS * (LABELS_MASK in streams)
        if name in streams:
            outputs["number_references"] = placed(where, streams[name][where])
        return loss, outputs

    def _warn_of_shares(self, step: Step, share: Tensor | float) -> None:
        """Warn once, at the first step of training, that the mean over numbers is not exact."""
        if torch.compiler.is_compiling() or not self.training or self._told_of_shares:
            return
        self._told_of_shares = True
        if step.numbers is None and float(share) < 1:
            warnings.warn(
                "this Trainer does not count the numbers of accumulated batches: each batch's"
                " number loss counts by its share of the tokens. For the mean over all numbers use"
                " numtok_torch.trainer.NumberTrainer; NumberModel(..., number_loss_per='token') is"
                " exact with any",
                stacklevel=2,
            )

    def train(self, mode: bool = True) -> NumberModel:
        """Set the training mode; a frozen backbone stays in evaluation mode."""
        super().train(mode)
        if self.freeze_backbone:
            self.backbone.eval()
        return self

    @property
    def accepts_loss_kwargs(self) -> bool:
        """Whether losses are means over the whole step, for a Trainer; a classifier's are not."""
        return self.task is None

    @property
    def loss_type(self) -> str:
        """Return the kind of loss, by which a Trainer counts labels as they are shifted."""
        return "ForCausalLM" if self.causal else "ForMaskedLM"

    def merge_and_unload(self) -> NumberModel:
        """Merge the backbone's adapters (peft) into its weights, in place: from then on, and on
        disk, it is a model like any other.

        The weights that the adapters kept frozen stay so; ``requires_grad_()`` lets them go.

        Raises:
            ModelError: if it has none.
        """
        self.backbone = adapters.merged(self.backbone)
        return self

    def get_extra_state(self) -> Tensor:
        """Return the settings for :meth:`from_pretrained`, uint8, for checkpoints of a Trainer."""
        return saving.pack(saving.describe(self))

    def set_extra_state(self, state: Tensor) -> None:
        """Take the amplitude of the embedding, which its weights go with, and nothing else."""
        described = saving.unpack(state) if state.numel() else {}
        if self.embedding is not None and described.get("embedding"):
            self.embedding.load_amplitude(described["embedding"])

    def save_pretrained(self, folder: str | Path, *, base: str | Path | bool | None = None) -> None:
        """Write ``model.safetensors`` and ``config.json`` to a folder, which
        :meth:`from_pretrained` reads, and ``modeling_numtok.py``, by which transformers' Auto
        classes do (:mod:`numtok_torch.auto`).

        Args:
            folder: is made if it is not there.
            base: the model that the backbone was loaded from, a folder or an id of the Hub, or True
                for what the backbone says itself. Then only what it has not is written: embedding,
                head, adapters, weights that are trained, and new rows. :meth:`from_pretrained`
                loads the rest from there; frozen weights must be as they are there. None: all
                weights.

        Raises:
            ModelError: if the base is not known, or cannot be loaded again.
        """
        saving.save(self, Path(folder), base=base)

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
