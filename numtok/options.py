"""Options held to the types that are declared for them: a wrong one is an error where it is given,
not where it is first used. ``check_options`` is for the fields of a frozen dataclass that a caller
made, ``conform`` for what comes from JSON or TOML.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import numbers
import types
import typing
from typing import Any, TypeVar

Kind = TypeVar("Kind")

_NAMES: dict[Any, str] = {
    int: "an integer",
    float: "a number",
    bool: "True or False",
    str: "a str",
    type(None): "None",
}


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def check_options(instance: Any, owner: str, error: type[Exception]) -> None:
    """Hold every field to its type, and put the plain Python value in its place: numpy's numbers,
    integers as floats, lists as tuples. error that names the owner, the option, and what it should
    be.
    """
    hints = _hints(type(instance))  # type: ignore[arg-type]  # mypy does not see that a class is hashable
    for field in dataclasses.fields(instance):
        given, hint = getattr(instance, field.name), hints[field.name]
        try:
            value = _converted(given, hint)
        except (TypeError, OverflowError):
            shown = repr(given)
            shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
            raise error(f"{owner}: {field.name}={shown} must be {_described(hint)}") from None
        if value is not given:
            object.__setattr__(instance, field.name, value)


def _converted(value: Any, hint: Any) -> Any:
    """``value`` as the type; TypeError if it is another. Types that are not known here pass."""
    if isinstance(hint, types.UnionType):
        for kind in typing.get_args(hint):
            with contextlib.suppress(TypeError):
                return _converted(value, kind)
        raise TypeError
    if typing.get_origin(hint) is tuple:
        return _tuple(value, typing.get_args(hint))
    # numpy's is neither an int nor a bool
    truth = isinstance(value, bool) or type(value).__name__ == "bool"
    if hint is bool and truth:
        return bool(value)
    if hint is int and isinstance(value, numbers.Integral) and not truth:
        return int(value)
    if hint is float and isinstance(value, numbers.Real) and not truth:
        return float(value)
    if hint is str and isinstance(value, str):
        return str(value)
    if hint in _NAMES and not (hint is type(None) and value is None):
        raise TypeError
    return value


def _tuple(value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        raise TypeError
    if kinds[-1] is Ellipsis:
        return tuple(_converted(item, kinds[0]) for item in value)
    if len(value) != len(kinds):
        raise TypeError
    return tuple(_converted(item, kind) for item, kind in zip(value, kinds, strict=True))


def _described(hint: Any) -> str:
    if isinstance(hint, types.UnionType):
        return " or ".join(_described(kind) for kind in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        kinds = typing.get_args(hint)
        inside = _NAMES[kinds[0]].split()[-1]
        return f"a tuple of {'' if kinds[-1] is Ellipsis else f'{len(kinds)} '}{inside}s"
    return _NAMES[hint]


def conform(content: Any, kind: type[Kind], where: str, error: type[Exception]) -> Kind:
    """What was read from a file, as the dataclass or ``TypedDict`` that declares its fields and
    their types; a ``ValueError`` of the class's own check is told in the same way. error that names
    the file, the field, and what it should be.
    """
    import msgspec  # takes longer to load than most starts may

    try:
        return msgspec.convert(content, kind)  # type: ignore[no-any-return,unused-ignore]
    except (msgspec.ValidationError, UnicodeEncodeError) as wrong:  # a half of a surrogate pair
        reason, _, place = str(wrong).replace("`", "").partition(" - at ")
        field = place.removeprefix("$").lstrip(".")
        raise error(f"{where}: {f'{field}: ' if field else ''}{reason}; mend it there") from None
