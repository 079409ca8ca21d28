"""The explorer of a table that was made to add up: published, reconciled, and the difference, area by area."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from unround.reconciliation import Reconciled
from unround.reconciliation.run import COUNTS, SUMMARY
from unround.show.page import page
from unround.show.parts import QUIET, Columns, Document, Links, Part, Section, TableCell, Text, tabulated
from unround.show.reconcile import lead, sentence
from unround.show.words import span_of
from unround.web.guard import Guard
from unround.web.page import area_address, meant
from unround.web.trial import Bench

View = Callable[[Request], tuple[Document, Any]]

MOST_LISTED = 500
"""Areas that the first page lists: those whose counts changed most."""


def is_reconciled(folder: Path) -> bool:
    """Return whether a folder holds a table that was made to add up."""
    return os.path.isfile(folder / COUNTS) and os.path.isfile(folder / SUMMARY)


def reconciled_app(folder: Path, hosts: frozenset[str]) -> Starlette:
    """Return the explorer of a folder that `reconcile` wrote."""
    table = Reconciled.open(folder)
    views: dict[str, View] = {
        "/": lambda _: _start(table),
        "/area/{code}": lambda request: _area(table, meant(request.path_params["code"])),
    }
    gone = f"{table.folder / COUNTS} is gone, damaged, or being written anew. Reload when it is complete."

    def answering(view: View, respond: Callable[[tuple[Document, Any]], Response]) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            try:
                return respond(view(request))
            except (OSError, pl.exceptions.PolarsError):
                raise HTTPException(400, gone) from None

        return endpoint

    routes = []
    for address, view in views.items():
        shown = answering(view, lambda made: Response(page(made[0]), media_type="text/html"))
        plain = answering(view, lambda made: JSONResponse(made[1]))
        routes += [Route("/index.json" if address == "/" else f"{address}.json", plain), Route(address, shown)]
    app = Starlette(routes=routes)
    app.add_middleware(Guard, hosts=hosts)
    app.state.bench, app.state.answered, app.state.shelf = Bench(), threading.Event(), None
    return app


def _scan(table: Reconciled) -> tuple[pl.LazyFrame, list[str], list[str]]:
    """Return every count, the axes of areas and the other axes."""
    counts = pl.scan_parquet(table.folder / COUNTS, glob=False)
    names = counts.collect_schema().names()
    axes, areas = names[: names.index("published")], table.summary["axes_of_areas"]
    return counts, areas, [name for name in axes if name not in areas]


def _code(areas: list[str]) -> pl.Expr:
    return pl.concat_str([pl.col(name).cast(pl.String) for name in areas], separator="/")


def _start(table: Reconciled) -> tuple[Document, Any]:
    """Show how much was gained, and the areas whose counts changed most."""
    counts, areas, _ = _scan(table)
    moved = (pl.col("reconciled") - pl.col("published")).abs()
    listed = (
        counts.group_by(_code(areas).alias("area"), maintain_order=True)
        .agg(pl.len().alias("counts"), (moved > 0).sum().alias("changed"), moved.sum().alias("moved"))
        .sort("moved", descending=True, maintain_order=True)
        .head(MOST_LISTED)
        .collect(engine="streaming")
    )
    columns: Columns = [
        ("area", lambda area: TableCell(area["area"], link=area_address(area["area"]))),
        ("counts", "counts"),
        ("changed", "changed"),
        ("moved in all", lambda area: f"{area['moved']:,.0f}"),
    ]
    summary = table.summary
    shown = f"{listed.height:,} of {summary['areas']:,} areas, those whose counts moved most first"
    parts: list[Part] = [
        Text(lead(summary)),
        Text(sentence(summary) if summary["mean_error"] is not None else ""),
        Section("Areas", [Text(shown, QUIET), tabulated(listed.to_dicts(), columns, "Areas")]),
    ]
    return Document("One table that adds up", parts, notice=summary["notice"]), table.to_json() | {
        "listed": listed.to_dicts()
    }


def _area(table: Reconciled, code: str) -> tuple[Document, Any]:
    """Show every count of an area: published, reconciled, and the difference."""
    counts, areas, axes = _scan(table)
    cells = counts.filter(_code(areas) == code).collect(engine="streaming")
    if cells.is_empty():
        raise HTTPException(404, f"there is no area {code}.")
    columns: Columns = [
        (", ".join(axes), lambda cell: ", ".join(str(cell[axis]) for axis in axes)),
        ("published", lambda cell: _number(cell["published"])),
        ("reconciled", lambda cell: _number(cell["reconciled"])),
        ("difference", lambda cell: _number(cell["difference"], "+")),
        ("possible", lambda cell: "" if cell["low"] is None else span_of(cell)),
        ("method", "method"),
    ]
    rows = cells.with_columns(difference=pl.col("reconciled") - pl.col("published")).to_dicts()
    parts: list[Part] = [Links([("All areas", "/")]), tabulated(rows, columns, f"Counts of {code}", left=("method",))]
    return Document(code, parts, kicker="One table that adds up", notice=table.summary["notice"]), cells.to_dicts()


def _number(value: float | None, sign: str = "") -> str:
    """Return a number for people; nothing where there is none, and for a difference of 0."""
    if value is None or (sign and not value):
        return "" if value is None else "0"
    return f"{value:{sign},}" if value == int(value) and isinstance(value, int) else f"{value:{sign},.2f}"
