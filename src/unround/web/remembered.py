"""What was looked at last, as far as there is room for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")
Kept = TypeVar("Kept")


class Remembered(Generic[Key, Kept]):
    """Values by their keys; those that nobody asked for in a long time are forgotten first. Threads may share it.

    - `most`: How large all values together may be. The last one is kept, however large it is.

    Examples
    --------
    >>> kept = Remembered[str, str](10)
    >>> for text in ("four", "five", "seven"):
    ...     _ = kept.put(text, text.upper(), len(text))
    >>> kept.get("four"), kept.get("five"), kept.get("seven")
    (None, 'FIVE', 'SEVEN')
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._lock = threading.Lock()
        self._values: OrderedDict[Key, tuple[Kept, int]] = OrderedDict()

    def get(self, key: Key) -> Kept | None:
        """Return a value that is remembered, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Key, value: Kept, size: int) -> Kept:
        """Remember a value, in place of an older one of its key, and return it."""
        with self._lock:
            _, before = self._values.pop(key, (None, 0))
            self.held += size - before
            self._values[key] = value, size
            while self.held > self.most and len(self._values) > 1:
                _, (_, dropped) = self._values.popitem(last=False)
                self.held -= dropped
        return value

    def __len__(self) -> int:
        return len(self._values)
