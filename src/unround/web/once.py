"""What is made when it is first asked for, by whichever thread asks first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, overload

Made = TypeVar("Made")


class Locked(Protocol):
    """An object with a lock of its own, which a thread may take again."""

    _lock: threading.RLock


class once(Generic[Made]):  # noqa: N801 - it reads as a word before a method, like `property`
    """A property that is made once, under the one lock of its object.

    `functools.cached_property` has a lock for every property, or none, as Python pleases. Where making one property takes
    another, and some take a lock of the object besides, two threads could wait for each other for ever.
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_once_{name}"

    @overload
    def __get__(self, owner: None, kind: type) -> once[Made]: ...
    @overload
    def __get__(self, owner: Locked, kind: type) -> Made: ...
    def __get__(self, owner: Locked | None, kind: type) -> Made | once[Made]:
        if owner is None:
            return self
        kept = vars(owner)
        if self._name not in kept:
            with owner._lock:  # the same thread may be making another of them
                if self._name not in kept:
                    kept[self._name] = self._make(owner)
        made: Made = kept[self._name]
        return made
