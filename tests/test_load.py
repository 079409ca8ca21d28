"""The explorer under load: what `make load` does for a minute, for three seconds."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from fuzz import load, soak
from fuzz.load import RATE, Told, addresses, run, send

from unround.web.app import Pages
from unround.web.explorer import Explorer, Shelf


def test_no_request_is_lost(census_audit: Path) -> None:
    ran = run(census_audit, RATE, 3)
    assert ran.sent == 3 * RATE
    assert ran.ok, str(ran)
    # Good and bad requests alike are answered by what they deserve.
    assert {200, 400, 404} <= set(ran.statuses)
    assert ran.statuses[200] > ran.sent * 3 // 4
    assert 0 < ran.work < 60
    assert "ms of processor time a request" in str(ran)


def test_memory_stays_flat_in_mixed_use(census_audit: Path) -> None:
    """What `make soak` does for an hour."""
    ran = soak.run(census_audit, minutes=20 if "UNROUND_THOROUGH" in os.environ else 0.15)
    assert ran.ok, str(ran)
    assert ran.told.sent + ran.left > 200
    assert len(ran.memory) == soak.SLICES
    assert min(ran.memory) > 50 << 20


def test_memory_that_grows_is_noticed() -> None:
    size = 400 << 20
    assert soak.Soaked(memory=[size] * 12).flat
    assert soak.Soaked(memory=[size // 2] * 3 + [size] * 9).flat, "pages may be remembered at first"
    assert not soak.Soaked(memory=[size + k * (20 << 20) for k in range(12)]).flat


def test_threads_that_need_the_same_things_do_not_wait_for_each_other(census_audit: Path) -> None:
    """What is made once is made under one lock: with one a property, two threads could each hold what the other needs."""
    for _ in range(20):
        explorer = Shelf(census_audit).explorer()
        ready = threading.Barrier(4)

        def ask(name: str, explorer: Explorer = explorer, ready: threading.Barrier = ready) -> None:
            ready.wait()
            getattr(explorer, name)

        asking = [
            threading.Thread(target=ask, args=(name,), daemon=True) for name in ("claims", "outline", "index", "codes")
        ]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join(600)
            assert not thread.is_alive()


def test_a_connection_that_was_idle_may_be_closed_but_a_new_one_may_not() -> None:
    asked = list[int]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer once, then close whenever something more is asked; close every fifth connection at once."""
        asked.append(0)
        if len(asked) % 5:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await reader.read(1)
        writer.close()

    async def ask(number: int) -> Told:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await send("127.0.0.1", port, itertools.repeat(b"GET / HTTP/1.1\r\n\r\n"), 50, number / 50)

    ran = asyncio.run(ask(4))
    assert ran.ok, str(ran)
    assert 0 < ran.again < 4
    assert "sent twice" in str(ran)
    asked.clear()
    assert asyncio.run(ask(20)).lost, "a new connection that is closed without an answer is a loss"


def test_a_machine_that_stands_still_loses_nothing_but_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "TICK", 0.05)
    monkeypatch.setattr(load, "PATIENCE", 1.0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answers:
            time.sleep(2)
            writer.write(b"HTTP/1.1 503 Busy\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n")
        else:
            await reader.read(1)  # it never says anything
        writer.close()

    async def ask(answers: bool) -> Told:
        async with await asyncio.start_server(partial(serve, answers=answers), "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await send("127.0.0.1", port, itertools.repeat(b"GET / HTTP/1.1\r\n\r\n"), 50, 1 / 50)

    ran = asyncio.run(ask(True))
    assert ran.ok, str(ran)
    assert (ran.busy, ran.failed) == (1, 0)
    assert ran.stood_still > 1
    ran = asyncio.run(ask(False))
    assert not ran.ok
    assert "no answer in time" in str(ran)


def test_what_is_lost_is_told() -> None:
    told = Told(sent=3)
    told.statuses[200] += 1
    told.statuses[500] += 1
    told.lost.append("GET /")
    assert not told.ok
    assert "lost      1" in str(told)
    assert "1 answered by a fault" in str(told)
    assert Told(sent=1, statuses=told.statuses).ok is False


def test_requests_are_drawn_alike_every_time(census_audit: Path) -> None:
    one, two = (addresses(census_audit, random.Random(5)) for _ in range(2))
    first = [next(one) for _ in range(200)]
    assert first == [next(two) for _ in range(200)]
    assert len(set(first)) > 100


def test_pages_are_remembered_as_far_as_there_is_room() -> None:
    from starlette.responses import Response

    pages = Pages(800)
    for number in range(20):
        pages.keep((0, f"/{number}", ""), Response(b"x" * 80, media_type="text/html"))
    assert pages.get((0, "/0", "")) is None
    again = pages.get((0, "/19", ""))
    assert again is not None
    assert again.body == b"x" * 80
    assert again.headers["content-type"] == "text/html; charset=utf-8"
    assert pages.get((1, "/19", "")) is None  # of another audit
    pages.keep((0, "/large", ""), Response(b"x" * 500))
    pages.keep((0, "/wrong", ""), Response(b"x", 404))
    assert pages.get((0, "/large", "")) is None
    assert pages.get((0, "/wrong", "")) is None


def test_areas_are_remembered_with_all_that_they_were_inferred_with(census_audit: Path) -> None:
    explorer = Shelf(census_audit).explorer()
    columns, most = len(explorer.folder.model.columns), 40
    explorer._seen.most = most * columns
    sizes = [len(explorer.look(row).rows) for row in range(60)]
    assert max(sizes) > 1, "some areas have a family"
    assert explorer._seen.held <= most * columns
    assert len(explorer._seen) <= most
    again = explorer.look(59)
    assert explorer.look(59) is again
    explorer._seen.most = 1
    large = max(range(60), key=lambda row: sizes[row])
    assert explorer.look(large) is explorer.look(large), "the last one is remembered, however large it is"
    assert len(explorer._seen) == 1
