"""Options held to the types that are declared for them: a wrong one is an error where it is given,
not where it is first used. ``check_options`` is for the fields of a frozen dataclass that a caller
made, ``conform`` for what comes from JSON or TOML. msgspec does both; it takes longer to load than
`numtok --help` may.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from typing import Any, TypeVar

Kind = TypeVar("Kind")
# of options whose name on the command line is not that in Python, with dashes
COMMAND_LINE_NAMES = {"input_format": "format", "keep_columns": "keep-column"}


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def check_options(instance: Any, owner: str, error: type[Exception]) -> None:
    """Hold every field to its type, and put the plain Python value in its place: numpy's numbers,
    integers as floats, lists as tuples. error that names the owner, the option, and what it should
    be.
    """
    import msgspec

    hints = _hints(type(instance))  # type: ignore[arg-type]  # mypy does not see that a class is hashable
    for field in dataclasses.fields(instance):
        original = getattr(instance, field.name)
        try:
            value = msgspec.convert(_plain(original), hints[field.name])
        except (msgspec.ValidationError, OverflowError, UnicodeEncodeError) as wrong:
            shown = repr(original)
            shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
            reason = str(wrong).replace("`", "").partition(" - at ")[0]
            raise error(f"{owner}: {field.name}={shown}: {reason}") from None
        if value is not original:
            object.__setattr__(instance, field.name, value)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    return value.item() if getattr(value, "ndim", None) == 0 else value  # of numpy


def conform(content: Any, kind: type[Kind], where: str, error: type[Exception]) -> Kind:
    """Convert what was read from a file to ``kind``, a dataclass or ``TypedDict`` that declares the
    fields and their types. Raises ``error`` with the file, the field and what it should be; a
    ``ValueError`` that the dataclass itself raises becomes such an error too.
    """
    import msgspec

    try:
        return msgspec.convert(content, kind)  # type: ignore[no-any-return,unused-ignore]
    except (msgspec.ValidationError, UnicodeEncodeError) as wrong:  # a half of a surrogate pair
        reason, _, place = str(wrong).replace("`", "").partition(" - at ")
        field = place.removeprefix("$").lstrip(".")
        raise error(f"{where}: {f'{field}: ' if field else ''}{reason}; mend it there") from None


def shown_option(option: str, value: Any) -> str:
    """Return an option as Python and the command line call it, for error messages.

    >>> shown_option("pack_mode", "worst")
    "pack_mode='worst' (--pack-mode)"
    """
    on_command_line = COMMAND_LINE_NAMES.get(option, option.replace("_", "-"))
    return f"{option}={value!r} (--{on_command_line})"
