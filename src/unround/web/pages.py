"""Pages that were made once: what an address shows depends on the audit alone, so that it can be shown again."""

from __future__ import annotations

import threading
from collections import OrderedDict

from starlette.responses import Response

MOST = 64 << 20
"""Bytes of pages that are remembered."""

Key = tuple[int, str, str]
"""The audit, the path, and the parameters."""


class Pages:
    """The pages shown last, as far as there is room for them.

    Parameters
    ----------
    most : int
        Bytes of room.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._held = 0
        self._lock = threading.Lock()
        self._pages: OrderedDict[Key, tuple[bytes, str]] = OrderedDict()

    def get(self, key: Key) -> Response | None:
        """Return a page that is remembered, or None."""
        with self._lock:
            found = self._pages.get(key)
            if found is None:
                return None
            self._pages.move_to_end(key)
        return Response(found[0], media_type=found[1])

    def put(self, key: Key, page: Response) -> Response:
        """Remember a page, unless something is wrong with it; return it."""
        body = bytes(page.body)
        size = len(body) + len(key[1]) + len(key[2])
        if page.status_code != 200 or size > self.most // 8:
            return page
        with self._lock:
            if key not in self._pages:
                self._held += size
            self._pages[key] = body, page.media_type or "text/plain"
            while self._held > self.most:
                old, (dropped, _) = self._pages.popitem(last=False)
                self._held -= len(dropped) + len(old[1]) + len(old[2])
        return page
