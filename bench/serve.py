"""The explorer over loopback: how soon it answers, and how long any view takes at the 95th percentile.

The audit is one of 27,013 simulated areas. The server is started as a user starts it, and asked one request at a time, as a
person does.
"""

from __future__ import annotations

import http.client
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from bench.row import Row, Time
from unround.audits import audit
from unround.readers import read
from unround.simulation import simulate

AREAS = 27_013
EACH = 60
"""Requests for every kind of view."""


def rows(areas: int = AREAS) -> Iterator[Row]:
    """Measure everything, one row at a time."""
    with tempfile.TemporaryDirectory() as place:
        file = simulate(Path(place) / "census", areas, 1).files[0]
        folder = Path(place) / "audit"
        audit(read(file), folder)
        yield from of_folder(folder, f"{areas:,} areas")


def of_folder(folder: Path, which: str) -> Iterator[Row]:
    """Measure the explorer of one audit."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "unround", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://([\d.]+):(\d+)/", server.stdout.readline())
            assert found is not None, "the explorer did not start"
            asked = http.client.HTTPConnection(found[1], int(found[2]), timeout=60)
            _get(asked, "/")
            yield Time(f"open the explorer on {which}, first page", [time.perf_counter() - start], aim=2.0)
            _get(asked, "/try?system=48!+%3D+20+%2B+20+%2B+20")  # the worker is ready, as are the kernels
            for name, addresses in _views(folder).items():
                times = [_timed(asked, address) for address in addresses]
                job = f"{name}, 95th percentile of {len(times)} requests, {which}"
                yield Time(job, [float(np.percentile(times, 95))], aim=0.2)
        finally:
            server.terminate()


def _views(folder: Path) -> dict[str, list[str]]:
    """Return addresses for every kind of view, in a random but fixed order."""
    chance = random.Random(1)
    areas = pl.read_parquet(folder / "model" / "areas.parquet")
    axis = areas.columns[0]
    found = pl.read_parquet(folder / "findings.parquet")
    some = [str(code) for code in chance.sample(areas[axis].to_list(), EACH)]
    cells = [found.row(chance.randrange(found.height), named=True) for _ in range(EACH)]
    keys = [(one[axis], one["characteristic_id"] + ("" if one["sex"] == "total" else f"/{one['sex']}")) for one in cells]
    filters = (
        "",
        "?kind=likely&probability=90",
        "?size=1-2",
        "?area=10",
        "?sort=area&page=3",
        "?area_size=100-499",
        ".json",
    )
    return {
        "search as one types": [f"/areas.json?few=1&q={code[-k:]}" for code in some[: EACH // 3] for k in (2, 4, 7)],
        "an area": [f"/area/{code}" for code in some],
        "an area by risk": [f"/area/{code}?sort=risk" for code in some],
        "a count, its histogram and argument": [f"/area/{area}/{key}" for area, key in keys],
        "findings, filtered": [f"/findings{filters[k % len(filters)]}" for k in range(EACH)],
        "start, structure, contradictions, about": [
            path for path in ("/", "/structure", "/contradictions", "/about") for _ in range(EACH // 4)
        ],
        "a typed system": [f"/try?system={48 + k % 5}!+%3D+20+%2B+20+%2B+20" for k in range(EACH)],
    }


def _timed(asked: http.client.HTTPConnection, address: str) -> float:
    start = time.perf_counter()
    _get(asked, address)
    return time.perf_counter() - start


def _get(asked: http.client.HTTPConnection, address: str) -> bytes:
    asked.request("GET", address)
    answer = asked.getresponse()
    content = answer.read()
    assert answer.status == 200, f"{address}: {answer.status}"
    return content


if __name__ == "__main__":
    measured = of_folder(Path(sys.argv[1]), sys.argv[1]) if len(sys.argv) > 1 else rows()
    for row in measured:
        print(f"{row.job}: {row.ours * 1000:.0f} ms", flush=True)
