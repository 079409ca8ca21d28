"""Reading ahead: the same items in the same order, never many at a time, and nothing left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from unround.errors import InputError
from unround.tables.bulk import ahead


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("unround-ahead")]


def test_items_come_in_their_order() -> None:
    assert list(ahead(iter(range(1000)), 3)) == list(range(1000))
    assert list(ahead(iter(()), 1)) == []
    assert not threads()


def test_no_more_wait_than_may() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    for taken, _ in enumerate(ahead(items(), 2), start=1):
        time.sleep(0.001)
        # Two wait, and one more has been made and waits to be put there.
        assert len(made) <= taken + 3
    assert len(made) == 100


def test_an_error_reaches_whoever_takes_the_items() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise InputError("the file ends here.")

    taken = []
    with pytest.raises(InputError, match="the file ends here"):
        taken += list(ahead(items(), 5))
    assert not threads()


def test_whoever_stops_early_leaves_no_thread_and_no_open_file() -> None:
    closed: list[bool] = []

    def items() -> Iterator[int]:
        try:
            yield from range(1_000_000)
        finally:
            closed.append(True)

    taken = ahead(items(), 2)
    assert next(taken) == 0
    taken.close()  # type: ignore[attr-defined]
    assert closed == [True]
    assert not threads()


def test_it_is_told_while_nothing_comes() -> None:
    waited: list[int] = []

    def items() -> Iterator[int]:
        while len(waited) < 2:
            time.sleep(0.01)
        yield 1

    assert list(ahead(items(), 1, lambda: waited.append(1))) == [1]
    assert len(waited) >= 2
