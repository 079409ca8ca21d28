"""What tests share: audits of a simulated census, of the documentation's example and of a hostile one; the explorer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

import unround
from unround import simulate
from unround.job import audit
from unround.options import AuditOptions
from unround.tables import read
from unround.web import serve
from unround.web.app import explorer_app
from unround.web.guard import hosts_for

BULK = "98-401-X2021006_English_CSV_data.csv"
EXAMPLES = Path(__file__).parents[1] / "examples"

IMAGE = "<img src=x onerror=alert(1)>"
FORMULA = '=HYPERLINK("http://x","y")'
SLASHED = "a/b ../c?.json"
OLDEST = "<b>80 & over</b>"
"""The names of three areas, and of one age."""


def simulate_census(folder: Path) -> None:
    """Simulate a census that is large enough to count how often claims are right."""
    simulate(folder, areas=600, seed=5)


def audit_census(census: Path, folder: Path) -> None:
    """Audit it with everything that an audit can write."""
    truth = census / "truth.parquet"
    unround.audit(census / BULK, folder / "audit", estimates="means", truth=truth, command="unround audit x")


def audit_survey(folder: Path) -> None:
    """Audit the example of the documentation."""
    unround.audit(EXAMPLES / "survey.toml", folder / "audit")


def audit_hostile_survey(folder: Path) -> None:
    """Audit the example of the documentation, with hostile names in it."""
    for name in ("survey.csv", "survey.toml", "survey.hrc"):
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        for old, new in (("D08", IMAGE), ("D03", FORMULA), ("D04", SLASHED), ("80+", OLDEST)):
            quoted = f'"{new.replace(chr(34), chr(34) * 2)}"' if name.endswith(".csv") else new
            text = text.replace(old, quoted)
        (folder / name).write_text(text, encoding="utf-8")
    audit(read(folder / "survey.toml"), folder / "audit")


def audit_small_census(folder: Path) -> None:
    """Audit a census that has few pages, and list its zeros."""
    file = simulate(folder / "census", areas=120, seed=3).files[0]
    audit(read(file), folder / "audit", AuditOptions(zeros=True))


def audit_mapped_census(folder: Path) -> None:
    """Audit the same census with boundaries."""
    made = simulate(folder / "census", areas=120, seed=3, boundaries=True)
    unround.audit(made.files[0], folder / "audit", boundaries=made.boundaries)


@contextmanager
def explorer(folder: Path) -> Iterator[Any]:
    """Make the explorer of an audit, as an application."""
    app = explorer_app(folder, hosts_for("127.0.0.1"))
    try:
        yield app
    finally:
        app.state.bench.close()


@contextmanager
def listening(folder: Path) -> Iterator[int]:
    """Serve an audit as `serve` does; yield the port."""
    with explorer(folder) as app, socket.create_server(("127.0.0.1", 0)) as here:
        server = uvicorn.Server(uvicorn.Config(app, http=serve._patient_protocol(), lifespan="off", log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [here]})
        thread.start()
        try:
            yield here.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(600)
