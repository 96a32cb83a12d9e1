"""Thrift's compact protocol, in which the footers of Parquet files are written.

In: the bytes of a struct. Out: a :data:`Struct` that can be changed, and its bytes again; fields
    that nobody here knows of come back as they were.
    https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, TypeAlias

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_INTEGERS = frozenset({I16, I32, I64})
_MANY = 15  # as the size of a list: the real size follows

Struct: TypeAlias = dict[int, tuple[int, Any]]
"""By number, the type and the value of each field. A value is a bool, an int, bytes (also of a double), a Struct, or for a list (type of the items, items)."""


def decode(data: bytes | memoryview) -> Struct:
    """The struct; what stands behind it is not looked at."""
    return _struct(iter(bytes(data)))


def _struct(data: Iterator[int]) -> Struct:
    fields: Struct = {}
    number = 0
    while head := next(data):
        number = number + (head >> 4) if head >> 4 else _signed(data)
        kind = head & 15
        fields[number] = kind, kind == TRUE if kind in (TRUE, FALSE) else _value(data, kind)
    return fields


def _value(data: Iterator[int], kind: int) -> Any:
    if kind in _INTEGERS:
        return _signed(data)
    if kind == BINARY:
        return bytes(itertools.islice(data, _unsigned(data)))
    if kind == STRUCT:
        return _struct(data)
    if kind in (LIST, SET):
        head = next(data)
        size = _unsigned(data) if head >> 4 == _MANY else head >> 4
        return head & 15, [_value(data, head & 15) for _ in range(size)]
    if kind in (TRUE, FALSE, BYTE):  # a bool in a list, or a byte
        return next(data)
    if kind == DOUBLE:
        return bytes(itertools.islice(data, 8))
    raise ValueError(f"a footer with a field of Thrift's type {kind}, which Parquet does not have")


def _unsigned(data: Iterator[int]) -> int:
    value = shift = 0
    while (byte := next(data)) & 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
    return value | byte << shift


def _signed(data: Iterator[int]) -> int:
    value = _unsigned(data)
    return value >> 1 ^ -(value & 1)


def encode(struct: Struct) -> bytes:
    """The inverse of :func:`decode`."""
    out = bytearray()
    _put_struct(out, struct)
    return bytes(out)


def _put_struct(out: bytearray, struct: Struct) -> None:
    last = 0
    for number, (kind, value) in sorted(struct.items()):
        if 0 < number - last < 16:
            out.append(number - last << 4 | kind)
        else:
            out.append(kind)
            _put_signed(out, number)
        last = number
        if kind not in (TRUE, FALSE):  # which say all by themselves
            _put(out, kind, value)
    out.append(0)


def _put(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _put_signed(out, value)
    elif kind == BINARY:
        _put_unsigned(out, len(value))
        out += value
    elif kind == STRUCT:
        _put_struct(out, value)
    elif kind in (LIST, SET):
        inner, items = value
        out.append(min(len(items), _MANY) << 4 | inner)
        if len(items) >= _MANY:
            _put_unsigned(out, len(items))
        for item in items:
            _put(out, inner, item)
    elif kind == DOUBLE:
        out += value
    else:
        out.append(value)


def varint(value: int) -> bytes:
    """A number that is not negative, seven bits a byte, the lowest first."""
    out = bytearray()
    _put_unsigned(out, value)
    return bytes(out)


def _put_unsigned(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _put_signed(out: bytearray, value: int) -> None:
    _put_unsigned(out, value << 1 ^ value >> 63)
