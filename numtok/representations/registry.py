"""All representations by name, with the columns they declare and the layers that torch has for
them: :func:`register` adds one, wherever it is defined.

In: classes. Out: :data:`REPRESENTATIONS`, by which the command line and JSON find them;
    :func:`streams`, from which the drop-in and torch know what runs along with the tokens; and
    :func:`layer_of`, the embedding and the head of each. A package that is installed names the module
    which registers its representation as an entry point: group ``numtok.representations``, by the
    name of the representation. It is imported when that name is first met.

:func:`from_spec` reads ``fone:6,4``, the inverse of :meth:`Representation.spec`, and :func:`parse` a
list of such; :func:`from_dict` reads JSON, the inverse of :meth:`Representation.to_dict`.
:func:`representations_of` takes all that a user may give, :func:`set_for_all` with an option for all.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar, overload

from numtok.errors import RepresentationError
from numtok.options import shown_option
from numtok.representations.base import Representation, SingleToken
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
# What a user may give for representations.
Representations: TypeAlias = (
    Iterable[Representation | type[Representation] | str]
    | Representation
    | type[Representation]
    | str
)

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


def from_dict(options: dict[str, Any]) -> Representation:
    """Make the representation whose ``to_dict`` returned these options; unknown names and options
    are an error.

    Example:
        >>> from_dict({"name": "digits", "group": 2}).group
        2
    """
    if not isinstance(options, dict):
        raise RepresentationError(
            "the options of a representation are a dict with a 'name', not"
            f" {type(options).__name__}"
        )
    options = dict(options)
    kind = named(str(options.pop("name", None)))
    names = _options(kind)
    if unknown := sorted(map(str, set(options) - set(names))):
        raise RepresentationError(
            f"{kind.name} has no option {', '.join(unknown)}; it has"
            f" {', '.join(sorted(names)) or 'none'}"
        )
    return _make(kind, {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()})


def parse(text: str, **options: Any) -> tuple[Representation, ...]:
    """Return the representations of a list such as ``xval,fone:6,4,bits``, as the command line takes
    it: each part is what :func:`from_spec` reads.

    Args:
        text: the list.
        options: such as ``compact=True`` or ``overflow="clip"``, for every representation in the
            list that has them.

    Raises:
        RepresentationError: for an unknown name or option, or representations that cannot be
            combined.

    Example:
        >>> [representation.name for representation in parse("fone:6,4,bits", overflow="clip")]
        ['fone', 'bits']
    """
    if not isinstance(text, str):
        raise RepresentationError(
            f"expected names such as 'xval,fone:6,4', got {type(text).__name__}"
        )
    representations = tuple(map(from_spec, _specs(text)))
    if unused := [name for name in options if not any(_has(one, name) for one in representations)]:
        raise RepresentationError(f"none of {text!r} has the option {', '.join(unused)}")
    representations = _with_options(representations, options)
    check_combination(representations)
    return representations


def _specs(text: str) -> list[str]:
    """Cut a list at the commas that do not belong to one representation: fone:6,4 is one."""
    specs: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, colon, _ = specs[-1].partition(":") if specs else ("", "", "")
        if colon and (_is_integer(part) or part in named(name.strip()).words):
            specs[-1] += f",{part}"
        elif _is_integer(part):
            raise RepresentationError(
                f"{part} in {text!r} belongs to no representation; its numbers follow a colon, as"
                " in fone:6,4"
            )
        else:
            specs.append(part)
    return specs


def from_spec(spec: str) -> Representation:
    """Return the representation that a spec such as ``fone:6,4`` or ``xval:log`` means: a name, and
    perhaps a colon with integers, in the order of its ``positional`` options, and some of its
    ``words``. The inverse of :meth:`Representation.spec`.

    Example:
        >>> from_spec("digits:3").spec()
        'digits'

    Raises:
        RepresentationError: for an unknown name or option.
    """
    name, colon, rest = spec.partition(":")
    kind = named(name.strip())
    options: dict[str, Any] = {}
    positional = iter(kind.positional)
    for argument in map(str.strip, rest.split(",") if colon else ()):
        if argument in kind.words:
            options |= kind.words[argument]
        elif not _is_integer(argument):
            words = "".join(f", or {kind.name}:{word}" for word in kind.words)
            raise RepresentationError(
                f"'{kind.name}:{argument}': expected integers after the colon, as in"
                f" fone:6,4{words}"
            )
        elif (option := next(positional, None)) is None:
            raise RepresentationError(
                f"{kind.name}:{rest}: too many numbers after the colon; {kind.name}"
                f" takes {', '.join(kind.positional) or 'none'}"
            )
        else:
            options[option] = int(argument)
    return _make(kind, options)


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d{1,18}", text) is not None


def default_instances(kind: type[Representation]) -> list[Representation]:
    """Return the instance of a kind without options, and its variants; none if it needs options, or
    numbers to be fitted to.
    """
    if any(_options(kind).values()):
        return []
    return [one for options in ({}, *kind.variants) if not (one := kind(**options)).needs_fit]


def _options(kind: type[Representation]) -> dict[str, Any]:
    """Return the names of the options, and whether each has to be given."""
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]  # every concrete one is a dataclass
    return {one.name: one.default is one.default_factory is dataclasses.MISSING for one in fields}


def _make(kind: type[Representation], options: dict[str, Any]) -> Representation:
    needed = (name for name, is_needed in _options(kind).items() if is_needed)
    if missing := " and ".join(name for name in needed if name not in options):
        raise RepresentationError(f"{kind.name} needs {missing}, as in {kind.name}:6,4")
    return kind(**options)


def representations_of(numbers: Any) -> tuple[Representation, ...]:
    """Return the representations that a user means by :data:`Representations`: several, one, names
    as on the command line, or classes that need no options. RepresentationError for anything else,
    and for representations that cannot be combined.

    Example:
        >>> [representation.name for representation in representations_of("xval,bits")]
        ['xval', 'bits']
    """
    if isinstance(numbers, str | Representation) or inspect.isclass(numbers):
        numbers = [numbers]
    if not isinstance(numbers, Iterable) or isinstance(numbers, Mapping | bytes):
        raise RepresentationError(
            "expected representations such as [XVal()] or names such as 'xval,fone:6,4', got"
            f" {str(numbers)[:60]}"
        )
    representations = tuple(itertools.chain.from_iterable(map(_meant, numbers)))
    check_combination(representations)
    return representations


def _meant(entry: Any) -> tuple[Representation, ...]:
    if isinstance(entry, Representation):
        return (entry,)
    if isinstance(entry, str):
        return parse(entry)
    if kinds := [kind for kind in REPRESENTATIONS.values() if kind is entry]:
        return (_make(kinds[0], {}),)
    raise RepresentationError(
        f"{str(entry)[:60]} is no representation; give one such as XVal(), or a name such as 'xval'"
    )


def check_combination(chosen: tuple[Representation, ...]) -> None:
    """Check that representations can be combined: those that share ``[NUM]`` go together, once
    each; the others stand alone.

    Example:
        >>> import numtok
        >>> check_combination((numtok.XVal(), numtok.FloatBits()))
        >>> check_combination((numtok.XVal(), numtok.P10()))
        Traceback (most recent call last):
            ...
        numtok.errors.RepresentationError: p10 stands alone; it cannot be combined with xval
    """
    if not chosen:
        raise RepresentationError(
            f"no representation given; choose from {', '.join(REPRESENTATIONS)}"
        )
    names = [representation.name for representation in chosen]
    alone = [one.name for one in chosen if not isinstance(one, SingleToken)]
    if len(chosen) > 1 and alone:
        others = ", ".join(name for name in names if name != alone[0])
        raise RepresentationError(f"{alone[0]} stands alone; it cannot be combined with {others}")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise RepresentationError(
            f"{repeated[0]} is given twice; every representation has one set of columns"
        )
    columns = [name for representation in chosen for name in representation.columns()]
    if shared := sorted({name for name in columns if columns.count(name) > 1}):
        raise RepresentationError(
            f"{' and '.join(names)} both write the column {shared[0]!r}; take one of them"
        )


def set_for_all(
    numbers: Representations, overflow: str | None = None, compact: bool | None = None
) -> tuple[Representation, ...]:
    """Return the representations, with ``overflow`` and ``compact`` for all of them that have such
    an option. RepresentationError if they are none, cannot be combined, or hold every number while
    ``overflow`` is given.
    """
    chosen = representations_of(numbers)
    if overflow is not None and not any(_has(one, "overflow") for one in chosen):
        names = ",".join(one.name for one in chosen)
        raise RepresentationError(
            f"{names!r} has no {shown_option('overflow', overflow)}, as it holds every number"
        )
    options = {"overflow": overflow, "compact": compact}
    return _with_options(chosen, {k: value for k, value in options.items() if value is not None})


def _has(representation: Any, option: str) -> bool:
    return option in {field.name for field in dataclasses.fields(representation)}


def _with_options(
    representations: tuple[Representation, ...], options: Mapping[str, Any]
) -> tuple[Representation, ...]:
    """Return the representations with those of the options that they have."""
    changed = []
    for one in representations:
        applicable = {name: value for name, value in options.items() if _has(one, name)}
        changed.append(dataclasses.replace(one, **applicable))  # type: ignore[type-var]
    return tuple(changed)


for builtin in (
    XVal, FloatBits, FoNE, PlaceValue, Digits, P10, P1000, B1999, FP15, FloatDigits,
    NumeroLogic, ExponentBins, QuantileBins, LogFourier, Subword,
):  # fmt: skip
    register(builtin)
