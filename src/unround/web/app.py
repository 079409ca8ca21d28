"""The application: addresses, formats and errors around the views. `guard` decides who is answered."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unround.errors import InputError, UnroundError
from unround.show.page import html
from unround.show.parts import Facts, Links, Section, Text
from unround.show.site import render, static, stylesheet, with_query
from unround.show.words import notice
from unround.web import lists, maps, views
from unround.web.explorer import Remembered, Shelf
from unround.web.guard import Guard
from unround.web.page import Asked, Missing, Page
from unround.web.structure import structure
from unround.web.trial import Bench

MOST = 64 << 20
"""Bytes of pages that are remembered."""

Key = tuple[int, str, str]
"""The audit, the path, and the parameters."""


class Pages(Remembered[Key, Response]):
    """The pages shown last, as far as there is room for them."""

    def keep(self, key: Key, page: Response) -> Response:
        """Remember a page, unless it is an error or large; return it."""
        size = len(page.body) + len(key[1]) + len(key[2])
        return self.put(key, page, size) if page.status_code == 200 and size <= self.most // 8 else page


STATIC: dict[str, tuple[str, Callable[[], bytes]]] = {
    "unround.css": ("text/css", lambda: stylesheet().encode()),
    "explorer.css": ("text/css", lambda: static("explorer.css")),
    "unround.js": ("text/javascript", lambda: b"\n".join(map(static, ("explorer.js", "list.js", "map.js")))),
    "icon.svg": ("image/svg+xml", lambda: static("icon.svg")),
}
"""The files that can be asked for, by name: no path from a request is ever opened."""

View = Callable[[Asked], Page]
Endpoint = Callable[[Request], Awaitable[Response]]
Shown = Callable[[Request, Page], Response]
VIEWS: tuple[tuple[str, View], ...] = (
    ("/areas", lists.areas),
    ("/findings", lists.findings),
    ("/map", maps.whole_map),
    ("/structure", structure),
    ("/structure/{table}", structure),
    ("/contradictions", views.contradictions),
    ("/try", views.try_it),
    ("/about", views.about),
    ("/area/{code}", views.area),
    ("/area/{code}/{key:path}", views.cell),
)
"""Every view but the first page, which is / and /index.json. Each has a twin at its address with .json after it."""

INFERRED: tuple[View, ...] = (views.area,)
"""Views that infer an area: some milliseconds for most, seconds for a large family, a minute where kernels are compiled."""
SLOW: tuple[View, ...] = (views.cell, views.certificate)
"""Views that can take seconds. They have a thread of their own, as have those above, so that however many are asked for,
others go on."""

LEFT = 499
"""The status of what nobody waits for any more; by custom, as there is none for it."""

BUSY = "This machine is busy: others who asked before are still being answered. Ask again in a moment, as browsers do."
BEGUN = "This page is still being made: it takes long, or this machine is busy. Ask again in a moment, as browsers do."
NO_MEMORY = "This machine has too little memory left for this page. Ask again in a moment, as browsers do."
AGAIN = {"Retry-After": "5", "Refresh": "5"}
"""When to ask again: for programs, and for browsers, which then do."""

log = logging.getLogger("unround.web")


def explorer_app(
    folder: Path,
    hosts: frozenset[str],
    bench: Bench | None = None,
    boundaries: Path | None = None,
    answer_within: float | None = None,
) -> Starlette:
    """Return the explorer of an audit folder; `boundaries` are shapes of its areas, for a map.

    Within `answer_within` seconds everybody is answered, if only by words to ask again; unless given, all wait as long as it
    takes. Whoever has waited for a turn for half of them is asked to come again; what has begun goes on, to be there then.
    """
    site = _Site(Shelf(folder, boundaries), bench or Bench(), answer_within)
    shown: list[tuple[str, View, Shown]] = [("/", views.start, site.html), ("/index.json", views.start, site.json)]
    for path, view in VIEWS:
        # Twins come first: the address of a cell takes any path.
        shown += [(f"{path}.json", view, site.json), (f"{path}.csv", view, site.csv), (path, view, site.html)]
    shown += [("/map/at.json", maps.area_at, site.json)]
    shown += [("/certificate/{code}/{key:path}.json", views.certificate, site.json)]
    routes = [Route(path, site.answering(view, way)) for path, view, way in shown]
    routes.append(Route("/static/{name}", _static))
    app = Starlette(routes=routes, exception_handlers={HTTPException: site.refused})
    app.router.redirect_slashes = False
    app.add_middleware(Guard, hosts=hosts)
    app.state.site, app.state.shelf, app.state.bench, app.state.answered = site, site.shelf, site.bench, site.answered
    return app


class _Site:
    """Turns views into endpoints."""

    def __init__(self, shelf: Shelf, bench: Bench, answer_within: float | None) -> None:
        self.shelf = shelf
        self.bench = bench
        self.half = answer_within and answer_within / 2
        self.asked_to_wait = dict[tuple[int, bool, str], Response]()
        self.going_on = set[asyncio.Task[Response]]()
        """Work that nobody waits for any more; without this, Python would forget it."""
        self.pages = Pages(MOST)
        self.answered = threading.Event()
        # Python runs one thread at a time: more would only get in each other's way. But nothing waits for a slower kind.
        self.quick, self.inferring = anyio.CapacityLimiter(2), anyio.CapacityLimiter(2)
        self.slow, self.trying = anyio.CapacityLimiter(1), anyio.CapacityLimiter(1)

    def answering(self, view: View, shown: Shown) -> Endpoint:
        """Return the endpoint that answers with what a view says, shown in one way."""

        def endpoint(request: Request) -> Response:
            page = view(self._asked(request))
            answer = shown(request, page)
            # What is wrong with a system may be that the machine is busy: a page may say so once, and not for ever.
            return self.pages.keep(self._key(request), answer) if page.status == 200 else answer

        return self._answered(endpoint, view)

    def html(self, request: Request, page: Page) -> Response:
        path = request.url.path
        twin = with_query("/index.json" if path == "/" else f"{path}.json", _parameters(request))
        sheet = with_query(f"{path}.csv", _parameters(request)) if page.table is not None else ""
        return self._shown(page, 200, {"twin": twin, "sheet": sheet, "path": path})

    def json(self, _request: Request, page: Page) -> Response:
        return _json(page.data, page.status)

    def csv(self, request: Request, page: Page) -> Response:
        if page.table is None:
            raise Missing("there is no table to export at this address.")
        name = request.url.path.strip("/").removesuffix(".csv").replace("/", "-")
        heads = {"Content-Disposition": f'attachment; filename="{_safe_name(name)}.csv"'}
        return Response(_csv(page.table()), media_type="text/csv; charset=utf-8", headers=heads)

    def _answered(self, endpoint: Callable[[Request], Response], view: View) -> Endpoint:
        """Turn everything that can go wrong into an answer."""

        def safely(request: Request) -> Response:
            try:
                return endpoint(request)
            except InputError as problem:
                return self.refused(request, problem)
            except MemoryError:
                return self._problem(request, NO_MEMORY, 503, AGAIN)
            except Exception as problem:  # a fault of ours: the visitor learns only that, the terminal everything
                log.exception("%s could not be answered", request.url.path)
                return self.failed(request, problem)

        limiter = self._limiter(view)

        async def in_turn(request: Request) -> Response:
            try:
                # What was shown before takes no thread, and no turn.
                if (again := self._again(request)) is not None:
                    return again
                answer = await self._in_time(request, lambda: safely(request), limiter)
                return answer if isinstance(answer, Response) else self._later(request, answer)
            except Exception as problem:  # there may be no room for another thread
                log.exception("%s could not be answered", request.url.path)
                return self.failed(request, problem)
            finally:
                self.answered.set()

        return in_turn

    async def _in_time(
        self, request: Request, work: Callable[[], Response], limiter: anyio.CapacityLimiter
    ) -> Response | str:
        """Return the answer; or, in words, why there is none in time. Work is begun only while somebody waits for it."""
        begun = False

        def begin() -> Response:
            nonlocal begun
            begun = True
            return work()

        async def in_turn() -> Response:
            return await anyio.to_thread.run_sync(begin, limiter=limiter)

        working, leaving = asyncio.ensure_future(in_turn()), asyncio.ensure_future(_leaving(request))
        try:
            for _ in range(2):
                done, _ = await asyncio.wait({working, leaving}, timeout=self.half, return_when=asyncio.FIRST_COMPLETED)
                if done or not begun:
                    break
            if working in done:
                return working.result()
            return leaving.result() if leaving in done else BEGUN if begun else BUSY
        finally:
            leaving.cancel()
            if begun:
                self.going_on.add(working)
                working.add_done_callback(self.going_on.discard)
            else:
                working.cancel()

    def _limiter(self, view: View) -> anyio.CapacityLimiter:
        """Return whose turn a view has to wait for: that of its own kind only."""
        if view is views.try_it:
            return self.trying
        return self.slow if view in SLOW else self.inferring if view in INFERRED else self.quick

    def _again(self, request: Request) -> Response | None:
        """Return a page that was shown before, if it is remembered."""
        try:
            return self.pages.get(self._key(request))
        except InputError:  # the audit is gone, which the endpoint tells
            return None

    def _key(self, request: Request) -> Key:
        """Return what a page depends on: the audit, and what is asked for."""
        return self.shelf.explorer().serial, request.url.path, request.url.query

    def _asked(self, request: Request) -> Asked:
        whole = request.url.path.endswith(".csv") and request.query_params.get("all") == "1"
        return Asked(self.shelf.explorer(), request.path_params, request.query_params, self.bench, whole)

    def _shown(self, page: Page, status: int, around: dict[str, Any]) -> Response:
        explorer = self.shelf.explorer()
        reasons = "" if around["path"] == "/about" else "/about#"
        footing = [replace(fact, anchor=f"{reasons}{fact.anchor}") for fact in explorer.footing]
        context = {
            "page": page,
            "content": html(page.parts),
            **around,
            "notice": notice(explorer.summary["product"]),
            "first_findings": lists.first_choice(explorer.summary),
            "footing": html([Facts(footing, "footing", "What the claims rest on")]),
            "has_map": explorer.boundaries is not None,
        }
        return Response(render("explorer/frame.html", context), status, media_type="text/html")

    # -- errors -------------------------------------------------------------------------------------------------------

    def refused(self, request: Request, problem: Exception) -> Response:
        """Say what is wrong with what was asked for, and how to get back."""
        if isinstance(problem, HTTPException):
            status = problem.status_code
            known = {404: "There is nothing at this address.", 405: "This address can only be read."}
            said, heads = known.get(status, problem.detail), dict(problem.headers or {})
        else:
            status, heads = 404 if isinstance(problem, Missing) else 400, {}
            said = str(problem)
        return self._problem(request, said[:1].upper() + said[1:], status, heads)

    def failed(self, request: Request, problem: Exception) -> Response:
        """Say that something went wrong, without its inner details: these go to the terminal."""
        why = f" {problem}" if isinstance(problem, UnroundError) else ""
        said = f"This page could not be made because of a fault in unround.{why} Nothing can be concluded from its absence."
        return self._problem(request, said, 500, {})

    def _later(self, request: Request, said: str) -> Response:
        """Say when to ask again: made once, as whoever is too busy for one page is too busy for hundreds of these."""
        try:
            serial = self.shelf.explorer().serial
        except InputError:  # the audit is gone, and may come back
            serial = -1
        key = (serial, request.url.path.endswith(".json"), said)
        if key not in self.asked_to_wait:
            self.asked_to_wait[key] = self._problem(request, said, 503, AGAIN)
        return self.asked_to_wait[key]

    def _problem(self, request: Request, said: str, status: int, heads: dict[str, str]) -> Response:
        path = request.url.path
        if path.endswith(".json"):
            answer = _json({"error": said}, status)
        else:
            try:
                title = {404: "Not found", 503: "One moment"}.get(status, "Not possible")
                back = Links([("Overview", "/"), ("Search areas", "/areas"), ("Findings", "/findings")])
                page = Page(title, [Section(title, [Text(said, "lead pre"), back], level=1)], {"error": said})
                answer = self._shown(page, status, {"twin": "", "sheet": "", "path": "" if status == 503 else path})
            except Exception:  # the audit is gone, or says what no page can be made from
                answer = Response(f"{said}\n", status, media_type="text/plain")
        answer.headers.update(heads)
        return answer


async def _leaving(request: Request) -> Response:
    """Wait until whoever asked has left; return what nobody reads."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return Response(status_code=LEFT)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404)
    kind, content = STATIC[name]
    return Response(content(), media_type=kind, headers={"Cache-Control": "max-age=3600"})


def _parameters(request: Request) -> dict[str, list[str]]:
    return {name: request.query_params.getlist(name) for name in request.query_params}


def _json(answer: Any, status: int = 200) -> Response:
    return Response(json.dumps(answer, ensure_ascii=False), status, media_type="application/json")


def _csv(rows: list[dict[str, Any]]) -> str:
    """Return rows as CSV that no spreadsheet takes for formulas."""
    import polars as pl

    from unround.job.work import safe_for_spreadsheets

    if not rows:
        return "\n"
    plain = [{name: value for name, value in row.items() if name != "address"} for row in rows]
    return safe_for_spreadsheets(pl.LazyFrame(plain, infer_schema_length=None)).collect().write_csv()


def _safe_name(text: str) -> str:
    return "".join(
        character if character.isascii() and (character.isalnum() or character in "-_") else "_" for character in text
    )[:80]
