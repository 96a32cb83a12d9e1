"""Base classes of the embedding layers for numbers and of the heads, and the sum of several layers.

Which tokens are numbers is said by ``number_mask`` alone, never by a value: zero is a number, and
what stands in a stream elsewhere is not looked at. All other tokens keep their vector bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError, SchemaError
from numtok.representations.columns import NUMBER_MASK

Batch = Mapping[str, Tensor]


class NumberLayer(nn.Module):
    """Base of embeddings and heads: both are made for vectors of one size, and their options say
    all but the weights.

    Attributes:
        name: in :meth:`config`.
        d_model: dimension of the vectors.
        tokenizer_identity: what is known of the tokenizer of the data that it was made for
            (:func:`numtok_torch.data.tokens.identity`); None if nothing is.
    """

    name: ClassVar[str]
    tokenizer_identity: Mapping[str, Any] | None = None

    def __init__(self, d_model: int, **options: Any) -> None:
        super().__init__()
        if d_model < 1:
            raise RepresentationError(f"{self.name}: d_model={d_model} must be positive")
        self.d_model = d_model
        self._options = options

    def config(self) -> dict[str, Any]:
        """Return name and options, for JSON; ``embedding_from_config`` and ``head_from_config`` are
        the inverse.
        """
        plain = {
            key: list(one) if isinstance(one, tuple) else one for key, one in self._options.items()
        }
        return {"name": self.name, **plain}

    @classmethod
    def options_for(cls, representation: Any) -> dict[str, Any]:
        """Return the options that a representation gives the layer: those that both have."""
        names = [name for name in option_names(cls) if hasattr(representation, name)]
        return {name: getattr(representation, name) for name in names}

    def extra_repr(self) -> str:
        return ", ".join([str(self.d_model), *(f"{k}={one!r}" for k, one in self._options.items())])


class NumberEmbedding(NumberLayer):
    """Puts the numbers of a batch into its word vectors, before positions and layer norm. A layer
    says in :meth:`embed` what a number's vector becomes.

    Attributes:
        streams: what it reads of a batch beside ``number_mask``: the first of these that is there.

    Shape:
        - inputs_embeds: (batch, seq, d_model), any float dtype; output: the same.

    Example:
        >>> import torch
        >>> from numtok_torch import NumberEmbedding
        >>> class AddValue(NumberEmbedding):
        ...     name, streams = "add_value", ("number_value",)
        ...
        ...     def embed(self, words, rows):
        ...         return words + rows.unsqueeze(1)
        >>> mask, values = torch.tensor([[0, 1]]), torch.tensor([[1.0, 7.0]])
        >>> numbers = {"number_mask": mask, "number_value": values}
        >>> AddValue(d_model=2)(torch.ones(1, 2, 2), numbers).tolist()
        [[[1.0, 1.0], [8.0, 8.0]]]
    """

    streams: tuple[str, ...] = ()
    least = 0.0  # the least amplitude that :meth:`match_norm` gives

    @property
    def may_be_zero(self) -> bool:
        """Whether some number has the zero vector, which overflows the gradients of some models
        (:class:`XValEmbedding`). A layer in which this can be true has the option ``bias``.
        """
        return False

    @property
    def amplitude(self) -> float:
        """Return the factor of the published start: 1.0 until :meth:`match_norm` finds another."""
        amplitude = self._options.get("amplitude")
        return 1.0 if amplitude is None else float(amplitude)

    def match_norm(self, size: float) -> None:
        """Start as long as the word vectors, so that neither hides the other: what the layer adds,
        or puts in their place, gets a norm of ``size · sqrt(d_model)`` in the mean. NumberModel
        calls it.

        A layer that has an ``amplitude`` keeps it, and so does one that starts from zeros. Features
        that do not learn, beside a word vector that all numbers share, are never made shorter than
        published: what learns grows past them in a few steps, and would hide them.

        Args:
            size: root mean square of the entries of the word vectors.
        """
        if (
            self._options.get("amplitude", 1.0) is None
            and size > 0
            and (own_size := self.size()) > 0
        ):
            self.set_amplitude(max(size / own_size, self.least))

    def set_amplitude(self, amplitude: float | None) -> None:
        """Multiply the start by the amplitude, once; None leaves it to :meth:`match_norm`."""
        self._options["amplitude"] = amplitude
        with torch.no_grad():
            for parameter in self.started():
                parameter.mul_(self.amplitude)

    def load_amplitude(self, config: Mapping[str, Any]) -> None:
        """Take the amplitude of the layer that the weights are of."""
        if "amplitude" in self._options:
            self._options["amplitude"] = config["amplitude"]

    def started(self) -> list[Tensor]:
        """Return the parameters that the amplitude multiplies; others multiply their features by
        it.
        """
        return []

    def size(self) -> float:
        """Return the root mean square of the layer's vectors, before the amplitude."""
        return 0.0

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        """Return the vectors of n tokens, (n, d_model), from their word vectors, (n, d_model), and
        their rows of the stream, (n, ...), which are 0 where there is no number.
        """
        raise NotImplementedError

    def find(self, inputs_embeds: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return where the layer puts vectors, bool (batch, seq), and the stream that it makes them
        from, (batch, seq, ...).
        """
        mask = self.read(inputs_embeds, batch, NUMBER_MASK.name).to(torch.bool)
        return mask, self.read(inputs_embeds, batch, *self.streams)

    def forward(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        """Put the numbers into word vectors (batch, seq, d_model); the argument is not changed.

        Vectors of all tokens are computed, and those of numbers kept: counting the numbers would
        wait for the device, and no shape in an unbroken graph can depend on it.

        Raises:
            SchemaError: if the batch lacks a stream, or has it in another shape.
        """
        at, stream = self.find(inputs_embeds, batch)
        words, rows = inputs_embeds.flatten(0, 1), stream.flatten(0, 1)
        elsewhere = ~at.reshape(-1, *[1] * (rows.dim() - 1))  # (batch * seq, 1, ...)
        vectors = self.embed(words, rows.masked_fill(elsewhere, 0))  # (batch * seq, d_model)
        vectors = vectors.to(words.dtype).view_as(inputs_embeds)
        return torch.where(at.unsqueeze(-1), vectors, inputs_embeds)

    def read(self, inputs_embeds: Tensor, batch: Batch, *names: str) -> Tensor:
        """Return the first of the streams that the batch has, checked to be (batch, seq, ...)."""
        if inputs_embeds.shape[-1] != self.d_model:
            raise SchemaError(
                f"{type(self).__name__} was made for d_model={self.d_model}, the word vectors have"
                f" {inputs_embeds.shape[-1]}"
            )
        name = next((name for name in names if batch.get(name) is not None), None)
        if name is None:
            raise SchemaError(
                f"the batch has no {' or '.join(names)}, which {type(self).__name__} reads; encode"
                f" the text with numbers={self.name!r} and batch it with NumberCollator, or call"
                " the tokenizer so that it returns the number streams"
            )
        if batch[name].shape[:2] != inputs_embeds.shape[:2]:
            raise SchemaError(
                f"{name} has the shape {tuple(batch[name].shape)}, the word vectors"
                f" {tuple(inputs_embeds.shape)}: batch and sequence differ"
            )
        return batch[name]


class TableEmbedding(NumberEmbedding):
    """Adds one of so many learned ``vectors`` to each word vector."""

    def make_table(self, rows: int, fixed: int | None = None) -> None:
        """Make the vectors, of zeros with ``zero_init``; the ``fixed`` one stays zero."""
        self.vectors = nn.Embedding(rows, self.d_model, padding_idx=fixed)
        nn.init.normal_(self.vectors.weight, std=0.0 if self._options["zero_init"] else 0.02)
        if fixed is not None:
            nn.init.zeros_(self.vectors.weight[fixed])
        self.set_amplitude(self._options["amplitude"])

    def started(self) -> list[Tensor]:
        return [self.vectors.weight]

    def size(self) -> float:
        return root_mean_square(self.vectors.weight)

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        vectors: Tensor = self.vectors(rows.to(torch.int64))
        return words + vectors


class FeatureEmbedding(NumberEmbedding):
    """Adds fixed features of a number to its word vector: through a linear map without bias, or,
    with ``projection="pad"``, multiplied by the amplitude, with zeros after.

    Attributes:
        projection: the linear map; None without.
    """

    projection: nn.Linear | None

    def make_projection(self, width: int, norm: float) -> None:
        """Make the map of ``width`` features, whose vector has the mean norm ``norm``."""
        name, options, self.norm = self.name, self._options, norm
        projection, zero_init = options.get("projection", "linear"), options["zero_init"]
        if projection is None:
            projection = options["projection"] = "linear" if zero_init else "pad"
        check_known(name, "projection", projection, "pad", "linear")
        self.projection = None
        if projection == "linear":
            self.projection = nn.Linear(width, self.d_model, bias=False)
            if zero_init:
                nn.init.zeros_(self.projection.weight)
        elif zero_init:
            raise RepresentationError(
                f"{name}: zero_init needs something to learn: take projection='linear' with it"
            )
        elif width > self.d_model:
            raise RepresentationError(
                f"{name}: {width} features do not fit into d_model={self.d_model}; take"
                " projection='linear'"
            )
        else:
            self.least = 1.0
        self.set_amplitude(options["amplitude"])

    def started(self) -> list[Tensor]:
        return [] if self.projection is None else [self.projection.weight]

    def size(self) -> float:
        if self.projection is None:
            return self.norm / math.sqrt(self.d_model)
        return self.norm * root_mean_square(self.projection.weight)

    def project(self, features: Tensor) -> Tensor:
        """Map features (n, width) to vectors (n, d_model)."""
        if self.projection is not None:
            return linear(features, self.projection)
        features = features if self.amplitude == 1 else features * self.amplitude
        return nn.functional.pad(features, (0, self.d_model - features.shape[-1]))


class SumEmbedding(NumberEmbedding):
    """Several layers, each of which adds its change to the same word vectors, in any order. What a
    layer that replaces the word vector (:class:`FloatBitsEmbedding`) takes away, the others still
    see.

    Args:
        embeddings: at least one; all for the same ``d_model``.

    Example:
        >>> from numtok_torch import ExponentBinsEmbedding, SumEmbedding, XValEmbedding
        >>> SumEmbedding([XValEmbedding(d_model=8), ExponentBinsEmbedding(d_model=8)]).streams
        ('number_scaled', 'number_bin')
    """

    name = "sum"
    embeddings: Any  # an nn.ModuleList

    def __init__(self, embeddings: Sequence[NumberEmbedding]) -> None:
        if len({layer.d_model for layer in embeddings}) != 1:
            raise RepresentationError("sum: needs at least one embedding, all for the same d_model")
        super().__init__(embeddings[0].d_model)
        self.embeddings = nn.ModuleList(embeddings)
        self.streams = tuple(dict.fromkeys(name for layer in embeddings for name in layer.streams))

    def forward(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        words = inputs_embeds.to(torch.promote_types(inputs_embeds.dtype, torch.float32))
        total = words
        for layer in self.embeddings:
            total = total - (words - layer(words, batch))  # so, as -0.0 - 0.0 is -0.0
        return total.to(inputs_embeds.dtype)

    def match_norm(self, size: float) -> None:
        for layer in self.embeddings:
            layer.match_norm(size)

    def load_amplitude(self, config: Mapping[str, Any]) -> None:
        for layer, part in zip(self.embeddings, config.get("embeddings", []), strict=False):
            layer.load_amplitude(part)

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "embeddings": [layer.config() for layer in self.embeddings]}


Layer = TypeVar("Layer", bound=NumberLayer)


def check_known(name: str, option: str, value: Any, *known: str | None) -> None:
    """Refuse an option whose value is none of these."""
    if value not in known:
        *others, last = map(repr, known)
        raise RepresentationError(
            f"{name}: {option}={value!r} is unknown; use {', '.join(others)} or {last}"
        )


def option_names(kind: type[nn.Module]) -> list[str]:
    """Return the names of a layer's, or a head's, options."""
    return [name for name in kind.__init__.__annotations__ if name not in ("d_model", "return")]


def from_config(kind: type[Layer], config: Mapping[str, Any], d_model: int) -> Layer:
    """Make a layer from its :meth:`NumberLayer.config`; RepresentationError for unknown options."""
    options = {key: tuple(one) if isinstance(one, list) else one for key, one in config.items()}
    options.pop("name", None)
    names = option_names(kind)
    if unknown := options.keys() - {*names}:
        raise RepresentationError(
            f"{kind.name}: {kind.__name__} has no option {', '.join(sorted(unknown))}; it has"
            f" {', '.join(names)}"
        )
    return kind(d_model, **options)


def readable(tensor: Tensor) -> bool:
    """Whether its values can be looked at now: not while a graph is compiled or captured."""
    if torch.compiler.is_compiling() or tensor.is_meta:
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def linear(features: Tensor, layer: nn.Linear) -> Tensor:
    """Return ``layer`` of features (..., in), which are cast to its dtype only now: (..., out)."""
    projected: Tensor = layer(features.to(layer.weight.dtype))
    return projected


def root_mean_square(vectors: Tensor) -> float:
    """Return the root mean square of all entries; 0 where they cannot be looked at."""
    if vectors.is_meta or not vectors.numel():
        return 0.0
    wide = torch.promote_types(vectors.dtype, torch.float32)
    norm = torch.linalg.vector_norm(vectors.detach(), dtype=wide)
    return float(norm) / math.sqrt(vectors.numel())
