"""The explorer over loopback: how soon it answers, and how long any view takes at the 95th percentile.

The audit is one of 61,029 simulated areas, with a map. The server is started as a user starts it, and asked one request at a
time, as a person does. Beside the time stands what a request takes of a processor on average, which others cannot slow down.
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
from fuzz.load import processor_time

from bench.row import Row, Time
from unround import simulate
from unround.boundaries import keep_boundaries
from unround.job import audit
from unround.tables import read

AREAS = 61_029
EACH = 60
"""Requests for every kind of view."""


def rows(areas: int = AREAS) -> Iterator[Row]:
    """Measure everything, one row at a time."""
    with tempfile.TemporaryDirectory() as place:
        made = simulate(Path(place) / "census", areas=areas, seed=1, boundaries=True)
        assert made.boundaries is not None
        folder = Path(place) / "audit"
        keep_boundaries(audit(read(made.files[0]), folder), made.boundaries)
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
            listening = time.perf_counter()
            _get(asked, "/")
            done = time.perf_counter()
            work = processor_time(server.pid)
            job = f"start the explorer on {which}, until its first page is there, {work:.1f} s of a processor"
            yield Time(job, [done - start], aim=2.0)
            yield Time(f"the first page of an explorer of {which} that has just started", [done - listening], aim=1.0)
            _get(asked, "/try?system=48!+%3D+20+%2B+20+%2B+20")  # the worker is ready, as are the kernels
            for name, addresses in _views(folder).items():
                before = processor_time(server.pid)
                times = [_timed(asked, address) for address in addresses]
                work = 1_000 * (processor_time(server.pid) - before) / len(times)
                job = f"{name}, 95th percentile of {len(times)} requests, {work:.1f} ms of a processor each, {which}"
                yield Time(job, [float(np.percentile(times, 95))], aim=0.1)
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
        "?size=1-2",
        "?size=1-2&size=3-9&kind=likely&probability=90",
        "?q=men+65",
        "?area=10&sort=probability",
        "?sort=area",
        "?area_size=100-499&route=weighed",
        ".json?size=0&sort=count",
    )
    return {
        "search as one types": [f"/areas.json?few=1&q={code[-k:]}" for code in some[: EACH // 3] for k in (2, 4, 7)],
        "an area": [f"/area/{code}" for code in some],
        "a count, its histogram and argument": [f"/area/{area}/{key}" for area, key in keys],
        # A different page every time: what was shown before is remembered.
        "findings with facets": [f"/findings{filters[k % len(filters)]}&page={1 + k // len(filters)}" for k in range(EACH)],
        "areas by their findings": [f"/areas?page={k + 1}" for k in range(EACH)],
        "the area at a point of the map": [f"/map/at.json?x={16_000 + 100 * k}&y=10000" for k in range(EACH)],
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
