"""All representations by name, with the columns they declare and the layers that torch has for
them: :func:`register` adds one, wherever it is defined.

In: classes. Out: :data:`REPRESENTATIONS`, by which the command line and JSON find them;
    :func:`streams`, from which the drop-in and torch know what runs along with the tokens; and
    :func:`layer_of`, the embedding and the head of each. A package that is installed names the module
    which registers its representation as an entry point: group ``numtok.representations``, by the
    name of the representation. It is imported when that name is first met.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, overload

from numtok.errors import RepresentationError
from numtok.representations.base import Representation
from numtok.representations.charton import B1999, FP15, P10, P1000
from numtok.representations.columns import (
    ALWAYS,
    NUMBER_MASK,
    NUMBER_VALUE,
    PACKED,
    PACKED_WITH_TEXT,
    WITH_TEXT,
    Column,
)
from numtok.representations.digits import Digits
from numtok.representations.exponent_bins import ExponentBins
from numtok.representations.float_bits import FloatBits
from numtok.representations.float_digits import FloatDigits
from numtok.representations.fone import FoNE
from numtok.representations.log_fourier import LogFourier
from numtok.representations.numerologic import NumeroLogic
from numtok.representations.place_value import PlaceValue
from numtok.representations.quantile_bins import QuantileBins
from numtok.representations.subword import Subword
from numtok.representations.xval import XVal

Kind = TypeVar("Kind", bound=type[Representation])

Layer = type | str | None

ENTRY_POINTS = "numtok.representations"
REPRESENTATIONS: dict[str, type[Representation]] = {}
LAYERS: dict[str, dict[str, type | str]] = {}  # by the name of the representation
COMMON = frozenset(
    column.name for column in (*ALWAYS, NUMBER_MASK, *WITH_TEXT, *PACKED, *PACKED_WITH_TEXT)
)


@overload
def register(kind: Kind, *, embedding: Layer = None, head: Layer = None) -> Kind: ...
@overload
def register(*, embedding: Layer = None, head: Layer = None) -> Callable[[Kind], Kind]: ...
def register(kind: Any = None, *, embedding: Layer = None, head: Layer = None) -> Any:
    """Register a representation: its name for options and JSON, its columns for files,
    ``numtok.hf`` and torch. Call it, or decorate a class with it. A second call adds a layer, or
    replaces one.

    Args:
        kind: the representation.
        embedding: the ``numtok_torch.NumberEmbedding`` that reads its columns, a class, or
            ``"package.module:Class"``, which is imported when a model is made.
        head: the ``numtok_torch.NumberHead`` that predicts them, in the same forms.

    Raises:
        RepresentationError: if another class has the name, or a column of that name is declared in
            another way.

    Example:
        >>> import numtok
        >>> register(numtok.LogFourier, head="numtok_torch:MixtureHead").name
        'logfourier'
    """
    if kind is None:
        return lambda decorated: register(decorated, embedding=embedding, head=head)
    _check(kind)
    REPRESENTATIONS[kind.name] = kind
    layers = {"embedding": embedding, "head": head}
    LAYERS.setdefault(kind.name, {}).update(
        {k: one for k, one in layers.items() if one is not None}
    )
    return kind


def layer_of(name: str, part: str) -> Any:
    """Return the class of a representation's ``"embedding"`` or ``"head"``; None if it has none.
    RepresentationError if it cannot be imported.
    """
    layer = LAYERS.get(name, {}).get(part)
    if isinstance(layer, str):
        module, _, kind = layer.partition(":")
        try:
            layer = LAYERS[name][part] = getattr(importlib.import_module(module), kind)
        except (ImportError, AttributeError) as error:
            raise RepresentationError(
                f"{name}: its {part} {layer!r} cannot be imported ({error}); write it as"
                " 'package.module:Class'"
            ) from error
    return layer


def _check(kind: type[Representation]) -> None:
    """Refuse names and columns that are taken."""
    where = kind.__module__, kind.__qualname__
    for name in (kind.name, *kind.aliases):
        registered = _by_name().get(name)
        # defining it again is fine
        if registered is not None and (registered.__module__, registered.__qualname__) != where:
            raise RepresentationError(
                f"there is a representation {name!r} already, {registered.__name__}; give"
                f" {kind.__name__} another name"
            )
    for column in kind.declared:
        other = streams().get(column.name, (column,))[0]
        if column.name in COMMON or (other.per, other.fill) != (column.per, column.fill):
            raise RepresentationError(
                f"{kind.name}: there is a column {column.name!r} already, of another kind; give it"
                " another name"
            )
        if column.dtype is None:
            raise RepresentationError(
                f"{kind.name}: column {column.name!r} says no dtype that it has in a batch"
            )


def named(name: str) -> type[Representation]:
    """Return the representation of a name, or of a name that it had before, or that an installed
    package brings; ``RepresentationError`` lists those there are.
    """
    if (kind := _by_name().get(name) or _brought(name)) is None:
        raise RepresentationError(
            f"unknown representation {name!r}; choose from {', '.join(REPRESENTATIONS)}"
        )
    return kind


def _brought(name: str) -> type[Representation] | None:
    """Return the representation that another package's entry point brings."""
    import importlib.metadata

    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS, name=str(name)):
        try:
            entry.load()
        except Exception as error:  # whatever a stranger's module raises
            raise RepresentationError(
                f"representation {name!r} cannot be imported from {entry.value!r}, which an"
                f" installed package names: {type(error).__name__}: {error}"
            ) from error
    return _by_name().get(name)


def _by_name() -> dict[str, type[Representation]]:
    return {
        alias: kind for kind in REPRESENTATIONS.values() for alias in kind.aliases
    } | REPRESENTATIONS


def streams(per: str | None = None) -> dict[str, tuple[Column, ...]]:
    """Return the columns that run along with the tokens of a batch, name to forms:
    ``number_value``, and what the representations declare.

    Args:
        per: only those with one value per ``"number"``, or per ``"token"``.

    Example:
        >>> sorted(streams("token"))
        ['place_value']
    """
    return dict(_forms(tuple(REPRESENTATIONS.values()), per))


@lru_cache(maxsize=16)
def _forms(
    kinds: tuple[type[Representation], ...], per: str | None
) -> dict[str, tuple[Column, ...]]:
    """Return the streams of these representations, asked for several times a batch."""
    forms: dict[str, tuple[Column, ...]] = {}
    for column in (NUMBER_VALUE, *(column for kind in kinds for column in kind.declared)):
        if per in (None, column.per) and column not in forms.get(column.name, ()):
            forms[column.name] = (*forms.get(column.name, ()), column)
    return forms


for builtin in (
    XVal, FloatBits, FoNE, PlaceValue, Digits, P10, P1000, B1999, FP15, FloatDigits,
    NumeroLogic, ExponentBins, QuantileBins, LogFourier, Subword,
):  # fmt: skip
    register(builtin)
