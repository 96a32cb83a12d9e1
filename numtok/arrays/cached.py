"""Provide ``cached_property`` without the lock of Python 3.11's. That lock is held while an instance
of the class computes the value: other threads wait, and a process forked meanwhile waits for ever.
"""

from __future__ import annotations

import functools
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(functools.cached_property[T], Generic[T]):
    """Compute the value at the first use, and keep it. Of threads that compute it at the same
    time, all return the value of the first.

    Example:
        >>> class Circle:
        ...     @cached_property
        ...     def area(self):
        ...         return print("computed") or 3.14
        >>> circle = Circle()
        >>> circle.area + circle.area
        computed
        6.28
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        values: Any = vars(instance)
        return values.setdefault(self.attrname, self.func(instance))
