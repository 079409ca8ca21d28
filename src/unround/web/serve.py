"""Running the explorer: a socket, a server, and how to look at one page without either."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from unround.errors import InputError
from unround.machine import give_memory_back

if TYPE_CHECKING:
    from starlette.applications import Starlette

PORT = 8765

PATIENCE = 300.0
"""Seconds that a request may take to arrive: on a busy machine, whoever asks may not be let run for minutes."""

ANSWER = 24.0
"""Seconds within which everybody is answered, if only by words to ask again: programs give up after half a minute, and on a
busy machine, or while kernels are compiled, many would do so without a word."""

HEAD_START = 3.0
"""Seconds for which nothing is made ready unless the first page has been shown: both at once would take twice as long."""


def serve(folder: Path, host: str, port: int, started: Callable[[str], None], boundaries: Path | None = None) -> None:
    """Serve an audit until somebody stops it."""
    import uvicorn

    from unround.web.guard import hosts_for

    give_memory_back()
    app = _app(folder, hosts_for(host), boundaries, answer_within=ANSWER)
    if boundaries is not None and app.state.shelf is not None:
        _ = app.state.shelf.explorer().boundaries  # what is wrong with them is said before anybody is told an address
    listening = _listen(host, port)
    config = uvicorn.Config(
        app,
        http=_patient_protocol(),
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )

    class Stoppable(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            logging.disable(logging.CRITICAL)  # work that our end cuts short is not a fault, and nobody waits for it
            super().handle_exit(sig, frame)

    server = Stoppable(config)
    started(_address(host, listening.getsockname()[1]))
    if app.state.shelf is not None:
        threading.Thread(target=_warm, args=(app,), daemon=True).start()
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass  # Ctrl-C is how one leaves
    finally:
        app.state.bench.close()
        listening.close()


def _app(folder: Path, hosts: frozenset[str], boundaries: Path | None, *, answer_within: float | None = None) -> Starlette:
    """Return the explorer of an audit, or of a table that was made to add up."""
    from unround.web.app import explorer_app
    from unround.web.reconciled import is_reconciled, reconciled_app

    if is_reconciled(folder):
        return reconciled_app(folder, hosts)
    return explorer_app(folder, hosts, boundaries=boundaries, answer_within=answer_within)


def _patient_protocol() -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, with an end to its patience: it waits for the rest of a request as long as it takes."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is h11.IDLE:
                self._wait()
            elif self.waiting is not None:  # the headers are complete
                self.waiting.cancel()
                self.waiting = None

        def connection_lost(self, exc: Exception | None) -> None:
            if self.waiting is not None:
                self.waiting.cancel()
            super().connection_lost(exc)

        def _wait(self) -> None:
            if self.waiting is None:
                self.waiting = self.loop.call_later(PATIENCE, self.transport.close)

    return Patient


def _warm(app: Starlette) -> None:
    """Make ready what the next views need, so that nobody waits for it: the findings, the kernels, then the solver."""
    import gc

    app.state.answered.wait(HEAD_START)
    try:
        app.state.shelf.explorer().warm()
        # All of this stays: Python need not look through it for garbage again and again, which takes a tenth of a second.
        gc.collect()
        gc.freeze()
        app.state.bench.warm()
    except Exception as problem:  # whatever it is, the view that needs it fails in the same way, and says so there
        logging.getLogger("unround.web").warning("the explorer could not be made ready beforehand: %s", problem)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that nobody is told an address that does not answer."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(where)
            listening.listen(128)
        except OSError:
            listening.close()
            raise
    except UnicodeError:  # a name that no machine can have
        raise InputError(f"cannot listen on {host[:100]}: this is not an address.") from None
    except OverflowError:
        raise InputError(f"there is no port {port}: choose one from 1 to 65535, or 0 for any that is free.") from None
    except OSError as problem:
        if problem.errno == errno.EADDRINUSE:
            raise InputError(f"port {port} is taken on {host}: choose another with --port, or --port 0.") from None
        raise InputError(f"cannot listen on {host}, port {port}: {problem.strerror or problem}.") from None
    return listening


def _address(host: str, port: int) -> str:
    name = host.strip("[]")
    if name in ("0.0.0.0", "::", ""):
        name = "127.0.0.1"
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/"


def get(folder: Path, path: str, boundaries: Path | None = None) -> tuple[int, bytes]:
    """Return the status and the content of one address, without a server."""
    from urllib.parse import unquote

    from unround.web.guard import LOCAL

    app = _app(folder, LOCAL, boundaries)
    path, _, query = path.partition("?")
    status, parts = 500, list[bytes]()

    asked = False

    async def receive() -> dict[str, object]:
        nonlocal asked
        if asked:  # whoever waits for us to hang up, as files do while they are sent, waits until the end
            await asyncio.Event().wait()
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            assert isinstance(message["status"], int)
            status = message["status"]
        elif message["type"] == "http.response.body":
            body = message.get("body", b"")
            assert isinstance(body, bytes)
            parts.append(body)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", PORT),
    }
    try:
        with ThreadPoolExecutor(1) as other:  # in a notebook, this thread has a loop of its own that is running
            other.submit(lambda: asyncio.run(app(scope, receive, send))).result()  # type: ignore[arg-type]
    finally:
        app.state.bench.close()
    return status, b"".join(parts)
