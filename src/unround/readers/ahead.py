"""Reading ahead: one step of the work in a thread of its own, at most a few results before the next step."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

_EVERY = 0.2
"""Seconds after which a thread that waits looks whether anybody still wants what it has."""


def ahead(items: Iterator[Item], most: int, idle: Callable[[], None] = lambda: None) -> Iterator[Item]:
    """Go through items in another thread, and yield them in their order.

    Parameters
    ----------
    items : iterator
        Where they come from. What it raises is raised here.
    most : int
        How many may wait: memory stays bounded.
    idle : function
        Is called now and then while nothing comes.

    Notes
    -----
    If nobody goes on to the end, the thread stops at the next item, and is waited for.

    Examples
    --------
    >>> list(ahead(iter("abc"), 1))
    ['a', 'b', 'c']
    """
    waiting: queue.Queue[tuple[Item] | BaseException | None] = queue.Queue(most)
    unwanted = threading.Event()

    def offer(one: tuple[Item] | BaseException | None) -> bool:
        while not unwanted.is_set():
            try:
                waiting.put(one, timeout=_EVERY)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        end: BaseException | None = None
        try:
            for item in items:
                if not offer((item,)):
                    break
        except BaseException as error:  # whatever it is, it belongs to whoever takes the items
            end = error
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()
        offer(end)

    thread = threading.Thread(target=work, name="unround-ahead", daemon=True)
    thread.start()
    try:
        while True:
            try:
                found = waiting.get(timeout=_EVERY)
            except queue.Empty:
                idle()
                continue
            if found is None:
                return
            if isinstance(found, BaseException):
                raise found
            yield found[0]
    finally:
        unwanted.set()
        thread.join()
