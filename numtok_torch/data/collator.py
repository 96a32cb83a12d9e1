"""Rows to batches: padded, truncated or packed, every stream together, with labels.

In: a list of rows, as ``NumberDataset`` or a transformers tokenizer gives them
(:mod:`numtok_torch.data.rows`). Out: a plain ``dict[str, Tensor]``:

====================  ==========================================  ================
key                   dtype and shape                             elsewhere
====================  ==========================================  ================
input_ids             int64 (batch, seq)                          ``pad_token_id``
attention_mask        int64 (batch, seq), not with position_ids   0 on padding
number_mask           bool (batch, seq), a number's first token   False
S, number streams     (batch, seq, ...), as declared              as declared
labels                int64 (batch, seq)                          -100
number_labels_mask    bool (batch, seq), masked objective         False
S_labels              as S, likewise                              as S
position_ids          int64 (batch, seq), packed rows and blocks  0
====================  ==========================================  ================

The streams S are ``number_value`` and what the representations declare, with the dtype, shape and
fill of each :class:`numtok.representations.Column`. Only those that the rows have are there, and
``number_mask`` if they say anything about numbers. Inverse: the masks select the rows' tokens and
numbers again, as long as nothing was cut or masked.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch.utils.data import get_worker_info

from numtok import Tokenizer
from numtok.errors import SchemaError
from numtok.tokenizer.packing import NumberTokens
from numtok.tokenizer.schema import read_metadata
from numtok_torch.data.masking import IGNORED, Masking
from numtok_torch.data.packing import Layout, pack, pad, round_up, since
from numtok_torch.data.rows import (
    Rows,
    inner_shapes,
    number_streams,
    read_rows,
    token_streams,
    truncate,
)
from numtok_torch.data.tokens import (
    check_tokenizer,
    identity,
    numtok_of,
    special_ids,
    token_id,
)

OBJECTIVES = (None, "causal", "masked")
UNSAID = "unsaid"
SIDES = ("right", "left")
PADDINGS = ("longest", "max_length")


@dataclass
class NumberCollator:
    """Puts rows into a batch; give it to a ``DataLoader`` as ``collate_fn``, or to a ``Trainer`` as
    ``data_collator``.

    Build it with :meth:`from_schema` or :meth:`from_tokenizer`, which know the number tokens, or
    give them yourself.

    Attributes:
        pad_token_id: for ``input_ids``.
        objective: must be given. ``"causal"``: labels are the ids, -100 on padding; rows that have
            ``labels`` keep theirs. The model shifts them. ``"masked"``: masked language modelling
            (:mod:`numtok_torch.data.masking`). None: no labels but those of the rows, per token or
            one per row.
        max_length: longer rows are cut, with a warning the first time
            (``NumberDataset(block_size=...)`` loses nothing); None for no cut. A number of which a
            token is cut loses its entry in all number streams; what is left of a spelled-out one
            stays as tokens. With a ``frame``, ``[CLS]`` and ``[SEP]`` are kept.
        padding: to the ``"longest"`` row, one token at least, or always to ``"max_length"``.
        padding_side, truncation_side: ``"right"`` or ``"left"``.
        pad_to_multiple_of: the width is rounded up to one of these, perhaps beyond ``max_length``.
        pack: put several rows into one line of at most ``max_length``. ``position_ids`` begin at 0
            in each; the label of each row's first token is -100, as it does not follow from the row
            before. So it is with the documents in rows that have ``position_ids`` (blocks) or
            ``seq_lengths`` (packed files as ``datasets`` reads them).
        pack_attention_mask: give such lines an ``attention_mask`` too; then each document sees
            those before it. Without, :class:`numtok_torch.NumberModel` keeps them apart or refuses
            them, and most causal models of transformers with ``use_cache=False`` keep them apart.
        mask_token_id, vocab_size, mlm_probability, mask, mask_share, random_share: of the masked
            objective (:class:`numtok_torch.data.masking.Masking`); ``mask`` is ``"all"``,
            ``"numbers"``, ``"words"`` or ``"spans"``.
        special_token_ids: never masked nor drawn; ``pad_token_id`` and ``mask_token_id`` are always
            among them.
        tokens: which ids belong to numbers.
        shapes: stream to the shape of one number's value, as in the schema.
        frame: how many special tokens begin and end every row.
        drop: keys of the rows to leave out. A key that is neither a stream nor here is an error.
        tokenizer_identity: what is known of the tokenizer that encoded the rows
            (:func:`numtok_torch.data.tokens.identity`). Rows of a data set that another one encoded
            are refused; None for no check.
        seed: of the masking; in workers, joined with their own. None draws from torch's generator:
            ``torch.manual_seed`` repeats it, and workers differ, also from epoch to epoch.

    Raises:
        SchemaError: for options that make no sense, and when called, for rows that do not fit
            together.

    Example:
        >>> import numtok
        >>> from numtok_torch import NumberCollator, NumberDataset
        >>> data = NumberDataset(numtok.Tokenizer.from_pretrained().encode_batch(["5 km", "7"]))
        >>> collator = NumberCollator.from_schema(data.schema, pad_token_id=0, objective="causal")
        >>> batch = collator([data[0], data[1]])
        >>> batch["labels"].tolist(), batch["number_mask"].tolist()
        ([[16000, 5580], [16000, -100]], [[True, False], [True, False]])
    """

    pad_token_id: int
    objective: str | None = UNSAID
    max_length: int | None = None
    padding: str = "longest"
    padding_side: str = "right"
    truncation_side: str = "right"
    pad_to_multiple_of: int | None = None
    pack: bool = False
    pack_attention_mask: bool = False
    mask_token_id: int | None = None
    vocab_size: int | None = None
    mlm_probability: float = 0.15
    mask: str = "all"
    mask_share: float = 0.8
    random_share: float = 0.1
    special_token_ids: Sequence[int] = ()
    tokens: NumberTokens = field(default_factory=NumberTokens)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    frame: tuple[int, int] = (0, 0)
    drop: Sequence[str] = ("text", "number_text", "seq_documents", "seq_remaining", "seq_text")
    tokenizer_identity: Mapping[str, Any] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.objective == UNSAID:
            raise SchemaError(
                "NumberCollator needs objective=...: 'causal' to train each next token (GPT-2,"
                " Llama), 'masked' for masked tokens (BERT), or None for no labels but those that"
                " the rows have (classes, or numbers alone); for an encoder with a decoder (T5) use"
                " Seq2SeqNumberCollator"
            )
        if not hasattr(self.pad_token_id, "__index__"):
            raise SchemaError(
                f"pad_token_id={str(self.pad_token_id)[:40]!r} must be an id; make the collator of a"
                " data set by NumberCollator.from_schema(data.schema, pad_token_id=..., ...)"
            )
        _one_of("objective", self.objective, OBJECTIVES)
        _one_of("padding", self.padding, PADDINGS)
        _one_of("padding_side", self.padding_side, SIDES)
        _one_of("truncation_side", self.truncation_side, SIDES)
        if self.max_length is None and (self.pack or self.padding == "max_length"):
            raise SchemaError("pack=True and padding='max_length' need max_length=...")
        if self.max_length is not None and self.max_length <= sum(self.frame):
            raise SchemaError(
                f"max_length={self.max_length} must be positive, and leave room beside the"
                f" {sum(self.frame)} special tokens of a row"
            )
        if self.pad_to_multiple_of is not None and self.pad_to_multiple_of < 1:
            raise SchemaError(
                f"pad_to_multiple_of={self.pad_to_multiple_of} must be positive, or None"
            )
        self._warned = False
        self._rng: np.random.Generator | None = None
        self._masking = self._make_masking() if self.objective == "masked" else None

    def _make_masking(self) -> Masking:
        if self.mask_token_id is None or self.vocab_size is None:
            raise SchemaError(
                "objective='masked' needs mask_token_id=... and vocab_size=...; from_schema and"
                " from_tokenizer know the latter"
            )
        special = tuple({self.pad_token_id, self.mask_token_id, *self.special_token_ids})
        shares = (self.mlm_probability, self.mask_share, self.random_share)
        return Masking(
            self.mask_token_id, self.vocab_size, self.mask, *shares, special, self.tokens
        )

    @classmethod
    def from_schema(cls, schema: pa.Schema, pad_token_id: int, **options: Any) -> NumberCollator:
        """Make a collator for the rows of a file or record batch that numtok wrote: its number
        tokens, vocabulary size, frame and shapes.

        The special tokens it knows of are the frame's; name others in ``special_token_ids``.
        """
        metadata = read_metadata(schema)
        before, after = metadata["frame"]
        # else the frame is that of documents, and rows are cut anywhere
        whole = metadata["pack"] is None
        from_file: dict[str, Any] = {
            "tokens": NumberTokens.from_metadata(metadata),
            "shapes": inner_shapes(schema),
            "vocab_size": metadata.get("vocab_size"),
            "frame": (len(before), len(after)) if whole else (0, 0),
            "special_token_ids": (*before, *after),
            "tokenizer_identity": identity(metadata),
        }
        return cls(pad_token_id, **from_file | options)

    @classmethod
    def from_tokenizer(
        cls, tokenizer: Any, pad_token_id: int | str | None = None, **options: Any
    ) -> NumberCollator:
        """Make a collator for the rows of a ``numtok.Tokenizer`` or of a transformers tokenizer
        with numbers, as :meth:`from_schema` does, with all its special tokens, and its mask token if
        it names one.

        Args:
            tokenizer: either.
            pad_token_id: an id, or the token, such as ``"[PAD]"``; None for the padding token that
                a transformers tokenizer names.
            options: as in the class; ``mask_token_id`` may be the token as well.

        Raises:
            SchemaError: if no padding token is named.
            TokenizerError: for a token that is not there, or a tokenizer without numtok's inside.
        """
        schema = numtok_of(tokenizer).batch_schema()
        from_tokenizer: dict[str, Any] = {"special_token_ids": special_ids(tokenizer)}
        if not isinstance(tokenizer, Tokenizer):
            from_tokenizer["vocab_size"] = len(tokenizer)
        mask = options.pop("mask_token_id", getattr(tokenizer, "mask_token_id", None))
        if mask is not None:
            from_tokenizer["mask_token_id"] = token_id(tokenizer, mask)
        if pad_token_id is None:
            pad_token_id = getattr(tokenizer, "pad_token_id", None)
        if pad_token_id is None:
            raise SchemaError(
                "the tokenizer names no padding token; give pad_token_id=..., an id or a token"
                " of it"
            )
        return cls.from_schema(
            schema, token_id(tokenizer, pad_token_id), **from_tokenizer | options
        )

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        """Put the rows into a batch, in their order (unless packed)."""
        self._check_tokenizer(features)
        rows = read_rows(features, self.drop, self.shapes)
        if self.max_length is not None:
            self._warn_of_cut(rows, self.max_length)
            rows = truncate(rows, self.max_length, self.truncation_side, self.tokens, self.frame)
        if self._masking is not None:
            if "labels" in rows.tokens or "labels" in rows.whole:
                raise SchemaError(
                    "the rows have 'labels', but objective='masked' makes its own; remove them, or"
                    " name them in drop=(...)"
                )
            rows = self._masking(rows, self._generator())
        elif self.objective == "causal" and "labels" not in rows.tokens:
            shown = rows.tokens.get("attention_mask")
            rows.tokens["labels"] = (
                rows.ids if shown is None else np.where(shown == 0, IGNORED, rows.ids)
            )
        batch = self._dense(rows, self._layout(rows))
        return {name: torch.from_numpy(values) for name, values in batch.items()}

    def _check_tokenizer(self, features: Sequence[Mapping[str, Any]]) -> None:
        """Refuse rows of a data set that another tokenizer encoded."""
        if self.tokenizer_identity is None:
            return
        checked = None
        for row in features:
            of_row = getattr(row, "tokenizer_identity", None)
            if of_row is not None and of_row is not checked:
                checked = of_row
                check_tokenizer(self.tokenizer_identity, of_row, "the collator was made for")

    def _warn_of_cut(self, rows: Rows, max_length: int) -> None:
        """Warn once that rows are cut; of several workers, the first warns."""
        lost, worker = int((rows.lengths - max_length).clip(0).sum()), get_worker_info()
        if not lost or self._warned or (worker is not None and worker.id):
            return
        self._warned = True
        warnings.warn(
            f"max_length={max_length} cuts {np.count_nonzero(rows.lengths > max_length)} of the"
            f" {len(rows.lengths)} rows of this batch, and with them"
            f" {lost / int(rows.lengths.sum()):.0%} of its tokens, and so on (you are told once);"
            " to train on all of the text, make the data set with NumberDataset(...,"
            f" block_size={max_length})",
            stacklevel=3,
        )

    def _layout(self, rows: Rows) -> Layout:
        longest = max(1, int(rows.lengths.max()))  # no model takes a batch without tokens
        if self.pack:
            assert self.max_length is not None
            width = round_up(self.max_length, self.pad_to_multiple_of)
            if rows.whole:
                raise SchemaError(
                    "pack=True cannot keep one label per row; use labels per token, or pad"
                )
            return pack(rows.lengths, self.max_length, width, self.padding_side)
        width = longest if self.padding == "longest" or self.max_length is None else self.max_length
        return pad(rows.lengths, round_up(width, self.pad_to_multiple_of), self.padding_side)

    def _dense(self, rows: Rows, layout: Layout) -> dict[str, npt.NDArray[Any]]:
        """Return every stream in its rectangle."""
        tokens = dict(rows.tokens)
        tokens.pop("special_tokens_mask", None)  # masking is done with it, and no model takes it
        if self.pack or "position_ids" in tokens:
            self._keep_apart(tokens, layout)
        else:
            tokens.setdefault("attention_mask", np.ones(len(rows.ids), np.int64))
        out = {"input_ids": layout.dense(tokens.pop("input_ids"), self.pad_token_id)}
        per_token, per_number = token_streams(), number_streams()
        for name, values in tokens.items():
            out[name] = layout.dense(values, per_token[name][0].fill)
        if rows.positions is not None:
            numbers = np.ones(len(rows.positions), np.bool_)
            out["number_mask"] = layout.dense(numbers, False, rows.positions)
            for name, values in rows.numbers.items():
                out[name] = layout.dense(values, per_number[name][0].fill, rows.positions)
        for name, placed in rows.placed.items():
            out[name] = layout.dense(placed.values, placed.fill, placed.positions)
        return out | rows.whole

    def _keep_apart(self, tokens: dict[str, npt.NDArray[Any]], layout: Layout) -> None:
        """Give several rows in a line, or documents in a row, positions of their own, no loss on a
        first token, which does not follow from the text before, and no mask (see ``pack``).
        """
        begins = layout.local == 0
        if "position_ids" in tokens:
            begins |= tokens["position_ids"] == 0
        if self.pack:
            tokens["position_ids"] = since(begins)
            tokens.pop("attention_mask", None)
        if "labels" in tokens and self.objective != "masked":
            tokens["labels"] = np.where(begins, IGNORED, tokens["labels"])
        if self.pack_attention_mask:
            tokens["attention_mask"] = np.ones(len(begins), np.int64)

    def _generator(self) -> np.random.Generator:
        """Return the random generator of this process; see ``seed``."""
        if self.seed is None:
            return np.random.default_rng(int(torch.randint(2**63 - 1, ())))
        if self._rng is None:
            worker = get_worker_info()
            self._rng = np.random.default_rng(
                [self.seed, *([worker.seed, worker.id] if worker else [])]
            )
        return self._rng


def _one_of(name: str, value: Any, choices: Sequence[Any]) -> None:
    if value not in choices:
        raise SchemaError(
            f"{name}={value!r} is unknown; use one of {', '.join(map(repr, choices))}"
        )
