"""Who is answered by the explorer, for how long it waits, and what becomes of work that nobody waits for."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import anyio
import pytest
import uvicorn
from starlette.testclient import TestClient

from tests.conftest import Run
from tests.shared import explorer, listening
from unround.errors import InputError
from unround.explanation.cell import InferredArea
from unround.job import AuditFolder
from unround.job.folder import seal_of
from unround.web import app as web
from unround.web import explorer as inferring
from unround.web import serve, views
from unround.web.page import Asked, Page, area_address, cell_address

HERE = "http://127.0.0.1"


def answer_to(folder: Path, path: str, **headers: str) -> Any:
    with explorer(folder) as app:
        asked = TestClient(app, base_url=HERE, raise_server_exceptions=False)
        return asked.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("site", "status"),
    [
        ("same-origin", 200),
        ("none", 200),
        ("", 200),
        ("cross-site", 403),
        ("same-site", 403),
        ("Cross-Site", 403),
        ("x", 403),
    ],
)
def test_other_sites_are_not_answered(hostile_audit: Path, site: str, status: int) -> None:
    answer = answer_to(hostile_audit, "/about.json", sec_fetch_site=site)
    assert answer.status_code == status
    assert answer.headers["x-frame-options"] == "DENY"


def test_without_its_contradictions_the_audit_is_damaged_and_that_is_said(hostile_audit: Path, tmp_path: Path) -> None:
    shutil.copytree(hostile_audit, tmp_path / "audit")
    (tmp_path / "audit" / "contradictions.csv").unlink()
    answer = answer_to(tmp_path / "audit", "/contradictions")
    assert answer.status_code == 400
    assert "contradictions.csv is missing" in answer.text


class Visitor:
    """A request that can be watched, and whose sender can leave."""

    def __init__(self, app: Any, path: str) -> None:
        self.app, self.path, self.left, self.status = app, path, anyio.Event(), 0
        self.heads, self.body = dict[str, str](), b""
        self.began = False

    async def __call__(self) -> None:
        scope = {
            "type": "http",
            "method": "GET",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
        }
        await self.app(scope, self.receive, self.send)

    async def receive(self) -> dict[str, Any]:
        if not self.began:
            self.began = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.heads = {name.decode(): value.decode() for name, value in message["headers"]}
        self.body += message.get("body", b"")


class Slow:
    """A view that waits until it may go on, and counts how often it was asked for."""

    def __init__(self) -> None:
        self.times, self.go_on = 0, threading.Event()

    def __call__(self, _asked: Asked) -> Page:
        self.times += 1
        assert self.go_on.wait(600)
        return Page("Slow", [], {"error": "slow"})


@contextmanager
def slow_cells(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[tuple[Any, Slow]]:
    """Put a slow view in the place of a count's page."""
    slow = Slow()
    monkeypatch.setattr(web, "VIEWS", tuple((path, slow if view is views.cell else view) for path, view in web.VIEWS))
    monkeypatch.setattr(web, "SLOW", (slow,))
    with explorer(folder) as app:
        try:
            yield app, slow
        finally:
            slow.go_on.set()


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(600):
        while not true():
            await anyio.sleep(0.01)


def test_work_whose_client_has_left_is_dropped(monkeypatch: pytest.MonkeyPatch, hostile_audit: Path) -> None:
    async def story(app: Any, slow: Slow) -> None:
        first, last = Visitor(app, "/area/a/b"), Visitor(app, "/area/a/last")
        impatient = [Visitor(app, f"/area/a/{k}") for k in range(12)]
        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await until(lambda: slow.times == 1)
            for visitor in (*impatient, last):
                group.start_soon(visitor)
            await until(lambda: all(visitor.began for visitor in (*impatient, last)))
            for visitor in impatient:
                visitor.left.set()
            await until(lambda: all(visitor.status for visitor in impatient))
            slow.go_on.set()
        assert [visitor.status for visitor in impatient] == [web.LEFT] * 12
        assert (first.status, last.status, slow.times) == (200, 200, 2)

    with slow_cells(monkeypatch, hostile_audit) as (app, slow):
        anyio.run(story, app, slow)


def test_whose_turn_does_not_come_is_told_so_and_asked_to_come_again(
    monkeypatch: pytest.MonkeyPatch, hostile_audit: Path
) -> None:
    """Nobody waits without a word until his patience ends; what has begun goes on, and is there for who asks again."""

    async def story(app: Any, slow: Slow) -> None:
        first, late, plain = (Visitor(app, path) for path in ("/area/a/b", "/area/a/last", "/area/a/last.json"))
        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await until(lambda: slow.times == 1)
            monkeypatch.setattr(app.state.site, "half", 0.05)
            rendered, render = [], web.render
            monkeypatch.setattr(web, "render", lambda *given: rendered.append(1) or render(*given))
            for visitor in (late, plain, *(Visitor(app, f"/area/a/{k}") for k in range(5))):
                with anyio.fail_after(600):
                    await visitor()
                assert visitor.status == 503
                assert visitor.heads["retry-after"] == visitor.heads["refresh"] == "5"
                assert b"This machine is busy: others who asked before are still being answered." in visitor.body
            assert (first.status, slow.times) == (0, 1)
            assert len(rendered) == 1, "hundreds may be told at once, by a server that is busy"
            slow.go_on.set()
        assert (first.status, slow.times) == (200, 1)

    with slow_cells(monkeypatch, hostile_audit) as (app, slow):
        anyio.run(story, app, slow)


def test_what_takes_too_long_is_said_and_is_there_when_it_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, hostile_audit: Path
) -> None:
    """Also if nobody asks again, and if whoever asked has left: what has begun is not done twice."""

    async def story(app: Any, slow: Slow) -> None:
        patient, impatient = Visitor(app, "/area/a/b"), Visitor(app, "/area/a/c")
        while patient.status != 503 or b"others who asked before" in patient.body:  # a slow machine had not even begun
            patient, app.state.site.half = Visitor(app, "/area/a/b"), 0.05
            await patient()
        assert b"This page is still being made" in patient.body
        assert patient.heads["retry-after"] == "5"
        app.state.site.half = None
        slow.go_on.set()
        await until(lambda: not app.state.site.going_on)
        slow.go_on.clear()
        async with anyio.create_task_group() as group:
            group.start_soon(impatient)
            await until(lambda: slow.times == 2)
            impatient.left.set()
        assert impatient.status == web.LEFT
        slow.go_on.set()
        await until(lambda: not app.state.site.going_on)
        for path in ("/area/a/b", "/area/a/c"):
            again = Visitor(app, path)
            await again()
            assert (again.status, slow.times) == (200, 2)

    with slow_cells(monkeypatch, hostile_audit) as (app, slow):
        anyio.run(story, app, slow)


def test_a_machine_without_memory_or_threads_is_no_reason_for_silence(
    monkeypatch: pytest.MonkeyPatch, hostile_audit: Path
) -> None:
    def exhausted(_asked: Asked) -> Page:
        raise MemoryError

    async def no_thread(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(web, "VIEWS", (("/about", exhausted), *web.VIEWS))
    answer = answer_to(hostile_audit, "/about.json")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "too little memory left" in answer.json()["error"]
    monkeypatch.setattr(anyio.to_thread, "run_sync", no_thread)
    answer = answer_to(hostile_audit, "/areas.json")
    assert answer.status_code == 500
    assert "could not be made" in answer.json()["error"]


def test_what_is_wrong_for_the_moment_is_not_remembered(monkeypatch: pytest.MonkeyPatch, hostile_audit: Path) -> None:
    answers = [
        {"error": "other systems are being solved: try again in a moment."},
        {"solution": {}, "shown": "<p>solved</p>"},
    ]
    with explorer(hostile_audit) as app:
        monkeypatch.setattr(app.state.bench, "solve", lambda *_: answers.pop(0))
        asked = TestClient(app, base_url=HERE)
        first, again, remembered = (asked.get("/try?system=5") for _ in range(3))
    assert "other systems are being solved" in first.text
    assert "<p>solved</p>" in again.text
    assert remembered.text == again.text


def test_trying_a_system_waits_for_no_count(monkeypatch: pytest.MonkeyPatch, hostile_audit: Path) -> None:
    async def story(app: Any, slow: Slow) -> None:
        cell, attempt = Visitor(app, "/area/a/b"), Visitor(app, "/try")
        async with anyio.create_task_group() as group:
            group.start_soon(cell)
            await until(lambda: slow.times == 1)
            with anyio.fail_after(600):
                await attempt()
            assert (attempt.status, cell.status) == (200, 0)
            slow.go_on.set()

    with slow_cells(monkeypatch, hostile_audit) as (app, slow):
        anyio.run(story, app, slow)


def test_nothing_waits_for_an_area_that_takes_long(monkeypatch: pytest.MonkeyPatch, census_audit: Path) -> None:
    """Where kernels must be compiled first, or a family is large: lists, searches and areas seen before go on meanwhile."""
    slow, infer_area = Slow(), inferring.infer_area

    def slowly(folder: AuditFolder, row: int) -> InferredArea:
        slow.times += 1
        assert slow.go_on.wait(600)
        return infer_area(folder, row)

    async def story(app: Any) -> None:
        known = app.state.shelf.explorer()
        seen, unseen = (f"/area/{code}" for code in known.codes[:2])
        known.look(0)
        monkeypatch.setattr(inferring, "infer_area", slowly)
        waiting = Visitor(app, unseen)
        async with anyio.create_task_group() as group:
            group.start_soon(waiting)
            await until(lambda: slow.times == 1)
            for path in ("/", "/areas", "/findings", "/structure", "/contradictions", "/about", seen):
                visitor = Visitor(app, path)
                with anyio.fail_after(600):
                    await visitor()
                assert (visitor.status, waiting.status) == (200, 0), path
            slow.go_on.set()
        assert (waiting.status, slow.times) == (200, 1)

    with explorer(census_audit) as app:
        try:
            anyio.run(story, app)
        finally:
            slow.go_on.set()


def test_areas_and_arguments_asked_for_at_once_are_as_those_asked_for_in_turn(hostile_audit: Path) -> None:
    """Over HTTP, on an audit that nobody looked into before: whatever views share is made while all of them want it."""
    with explorer(hostile_audit) as app:
        in_turn = TestClient(app, base_url=HERE)
        kept = app.state.shelf.explorer()
        areas = [area_address(code) for code in kept.codes[:3]]
        cells = [cell_address(code, column.key) for code in kept.codes[:3] for column in kept.folder.model.columns[:2]]
        expected = {path: in_turn.get(path).content for path in [f"{path}.json" for path in areas + cells]}
    start = threading.Barrier(len(expected))

    def ask(port: int, path: str) -> tuple[int, bytes]:
        start.wait(600)
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=300) as answer:
                return answer.status, answer.read()
        except HTTPError as problem:
            return problem.code, problem.read()

    with listening(hostile_audit) as port, ThreadPoolExecutor(len(expected)) as visitors:
        answers = list(visitors.map(lambda path: ask(port, path), expected))
    assert answers == [(200, content) for content in expected.values()]


def test_a_summary_that_no_page_can_be_made_from_is_refused_in_words(hostile_audit: Path, tmp_path: Path) -> None:
    """Whoever changes it can write its hash, too."""
    folder = Path(shutil.copytree(hostile_audit, tmp_path / "changed"))
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8")) | {"check": "x"}
    summary["seal"] = seal_of(summary)
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    with pytest.raises(InputError, match=r"summary\.json is not a summary of an audit \(it\.check is 'x'\)"):
        answer_to(folder, "/")


def test_headers_that_never_end_are_not_waited_for(monkeypatch: pytest.MonkeyPatch, hostile_audit: Path) -> None:
    monkeypatch.setattr(serve, "PATIENCE", 0.5)
    with listening(hostile_audit) as port:
        for sent in (b"", b"GET /about.json HTTP/1.1\r\nHost: 127.0.0.1\r\n"):
            # On a slow machine it is closed while we still write.
            with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), timeout=600) as slow:
                slow.sendall(sent)
                for _ in range(4 if sent else 0):  # a header now and then does not keep it open
                    time.sleep(0.1)
                    slow.sendall(b"X-More: 1\r\n")
                assert slow.recv(1) == b"", "the connection was closed"
    monkeypatch.setattr(serve, "PATIENCE", 600)
    with listening(hostile_audit) as port, socket.create_connection(("127.0.0.1", port), timeout=600) as prompt:
        prompt.sendall(b"GET /about.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert prompt.recv(15) == b"HTTP/1.1 200 OK"


def test_visitors_who_leave_do_not_end_it(hostile_audit: Path) -> None:
    """In a process of its own, where a broken pipe is a signal that ends programs."""
    command = [sys.executable, "-m", "unround", "serve", str(hostile_audit), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().split(":")[2].split("/")[0])
            for pause in range(30):
                with socket.create_connection(("127.0.0.1", port), timeout=600) as visitor:
                    visitor.sendall(b"GET /static/unround.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20)
                    time.sleep(0.002 * (pause % 10))  # and leaves while it is being answered
            with socket.create_connection(("127.0.0.1", port), timeout=600) as patient:
                patient.sendall(b"GET /about.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                assert patient.recv(15) == b"HTTP/1.1 200 OK"
            assert server.poll() is None
        finally:
            server.terminate()


def test_whoever_listens_to_the_world_is_warned(run: Run, hostile_audit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    monkeypatch.setattr(serve, "_warm", lambda _: None)
    assert "without a password" in run("serve", str(hostile_audit), "--host", "0.0.0.0", "--port", "0").err
    assert run("serve", str(hostile_audit), "--port", "0").err == ""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_stopped_at_work_it_ends_without_a_traceback(hostile_audit: Path, sign: signal.Signals) -> None:
    slow = (
        "import sys, time, unround.web.explorer as explorer; from unround.__main__ import main\n"
        "def infer(*_): print('at work', flush=True); time.sleep(3); raise RuntimeError('too late')\n"
        f"explorer.infer_area = infer; sys.argv = ['unround', 'serve', {str(hostile_audit)!r}, '--port', '0']; main()"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", slow], **pipes) as server:  # type: ignore[call-overload]
        try:
            port = int(server.stdout.readline().split(":")[2].split("/")[0])
            code = json.loads(urlopen(f"http://127.0.0.1:{port}/areas.json?few=1", timeout=600).read())["areas"][0][
                "address"
            ]
            with socket.create_connection(("127.0.0.1", port), timeout=600) as visitor:
                visitor.sendall(f"GET {code} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
                while server.stdout.readline() != "at work\n":
                    pass
                server.send_signal(sign)
                printed = server.communicate(timeout=600)[1]
        finally:
            server.kill()
    assert "Traceback" not in printed, printed
