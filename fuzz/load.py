"""Load: two hundred requests a second for a minute against `unround serve`, and none of them lost.

    python -m fuzz.load                        an audit of 2,000 simulated areas, as `make load` does
    python -m fuzz.load --seconds 10 --folder audit

Requests are sent when their time has come, whether earlier ones have been answered or not, as people do. What they ask for
is drawn from real addresses: areas, tables, counts, searches, findings, the structure, their JSON and CSV twins, and one in
ten that is wrong. A request is lost where no whole answer comes within half a minute, not counting time in which the machine
does not let even this program run.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

AREAS, RATE, SECONDS = 2_000, 200, 60
PATIENCE = 30.0
"""Seconds after which a request counts as lost, of those in which this program runs."""
TICK = 1.0
"""Seconds after which it looks whether it runs: where they take longer, the machine stood still, or was busy with others."""
COMPILING = 600.0
"""Seconds that kernels may take to be compiled, before anything is measured."""
WRONG = (
    "/nothing",
    "/area/there-is-none",
    "/areas?page=-1",
    "/area/%ff%fe~ZZ",
    "/structure/999999",
    "/static/../../etc/passwd",
    "/findings?kind=nonsense",
    "/area/x/" + "y" * 4_000,
)
RAW = (
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n",
    b"GET /\0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"nonsense\r\n\r\n",
)
"""Requests that no browser sends."""


@dataclass
class Told:
    """What came of the requests.

    Parameters
    ----------
    sent : int
        How many were sent.
    statuses : Counter
        How many were answered by which status.
    lost : list of str
        Those without a whole answer, and why.
    times : list of float
        Seconds from when a request was due to its answer.
    work : float
        Seconds of processor time that the server took, where that is known: it says what a busy machine hides.
    again : int
        How many were sent twice, because an idle connection was closed in the moment in which it was used again.
    busy : int
        How many were answered by words that others are waiting, and when to ask again.
    stood_still : float
        Seconds in which not even the program that sends them was let run.
    """

    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    work: float = 0.0
    again: int = 0
    busy: int = 0
    stood_still: float = 0.0

    def __add__(self, other: Told) -> Told:
        return Told(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    @property
    def failed(self) -> int:
        """How many were answered by a fault of the server."""
        return sum(times for status, times in self.statuses.items() if status >= 500) - self.busy

    @property
    def ok(self) -> bool:
        """Whether every request was answered, and none by a fault."""
        return not self.lost and not self.failed and sum(self.statuses.values()) == self.sent

    def percentile(self, share: float) -> float:
        """Return the time within which such a share was answered, in seconds."""
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")

    def __str__(self) -> str:
        answered = sum(self.statuses.values())
        statuses = ", ".join(f"{times:,} × {status}" for status, times in sorted(self.statuses.items()))
        longest = max(self.times, default=0) * 1_000
        p50, p95, p99 = (self.percentile(share) * 1_000 for share in (0.5, 0.95, 0.99))
        lines = [
            f"sent      {self.sent:,}",
            f"answered  {answered:,} ({statuses})",
            f"lost      {len(self.lost):,}; {self.again:,} sent twice, as an idle connection was just being closed",
            f"errors    {self.failed:,} answered by a fault of the server",
            f"busy      {self.busy:,} told to ask again in a moment; this machine stood still for {self.stood_still:.0f} s",
            f"time      p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms, longest {longest:.0f} ms",
        ]
        if self.work and answered:
            each = self.work / answered
            lines.append(
                f"work      {1_000 * each:.1f} ms of processor time a request; one processor does {1 / each:.0f} a second"
            )
        return "\n".join(lines + [f"  lost: {one}" for one in self.lost[:10]])


def addresses(folder: Path, rng: random.Random) -> Iterator[bytes]:
    """Draw requests without end."""
    from unround.web.explorer import Explorer, Shelf
    from unround.web.page import area_address, cell_address

    explorer: Explorer = Shelf(folder).explorer()
    codes, keys = explorer.codes, [column.key for column in explorer.folder.model.columns]
    claimed = explorer.claims.frame.head(2_000).select("row", "cell").rows()
    tables = len(explorer.outline.tables)

    def area() -> str:
        # Some are looked at again and again, most by one person only.
        return area_address(codes[min(rng.randrange(len(codes)), rng.randrange(len(codes)))])

    def cell() -> str:
        row, at = rng.choice(claimed) if claimed else (0, 0)
        return cell_address(codes[row], keys[at])

    ways: dict[Callable[[], str], int] = {
        lambda: "/": 4,
        area: 20,
        lambda: f"{area()}.json": 10,
        lambda: f"{area()}?table={rng.randrange(tables)}": 10,
        lambda: f"{area()}.csv": 3,
        cell: 1,
        lambda: f"{cell()}.json": 1,
        lambda: f"/areas?q={quote(rng.choice(codes)[-4:])}": 8,
        lambda: f"/areas.json?few=1&q={rng.choice('abcdeimorst')}{rng.choice('aeiou')}": 10,
        lambda: "/structure": 3,
        lambda: f"/structure/{rng.randrange(tables)}": 4,
        lambda: f"/findings?page={rng.randrange(1, 4)}": 4,
        lambda: f"/findings?size={rng.choice(('0', '1-2'))}&q={rng.choice('aeiou')}&sort={rng.choice(('area', 'count'))}": 4,
        lambda: "/findings.json": 2,
        lambda: "/contradictions": 1,
        lambda: "/static/unround.css": 4,
        lambda: rng.choice(WRONG): 8,
        lambda: "": 2,
    }
    while True:
        address = rng.choices(list(ways), list(ways.values()))[0]()
        yield f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() if address else rng.choice(RAW)


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Closed(ConnectionError):  # noqa: N818 - it says what became of the connection
    """The server closed the connection before it said anything."""


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bool, bool]:
    """Read a whole answer; return its status, whether the connection goes on, and whether it says when to ask again."""
    try:
        first = await reader.readexactly(1)
    except (asyncio.IncompleteReadError, ConnectionError) as problem:
        raise Closed(repr(problem)) from problem
    head = first + await reader.readuntil(b"\r\n\r\n")
    found = re.match(rb"HTTP/1\.1 (\d\d\d)", head)
    if found is None:
        raise ConnectionError("no answer in HTTP")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    closes = b"connection: close" in head.lower()
    if length is not None:
        await reader.readexactly(int(length[1]))
    elif closes:
        await reader.read()
    else:
        raise ConnectionError("an answer whose end nobody knows")
    return int(found[1]), not closes, b"\r\nretry-after:" in head.lower()


async def send(host: str, port: int, asked: Iterator[bytes], rate: float, seconds: float) -> Told:
    """Send requests at a rate for so long; return what came of them."""
    told = Told()
    idle: list[Connection] = []

    async def exchange(request: bytes) -> tuple[int, bool, bool, Connection]:
        # One that has been idle for long may have been closed by the server, as browsers know too.
        while idle and (idle[-1][0].at_eof() or idle[-1][1].is_closing()):
            idle.pop()[1].close()
        used = bool(idle)
        reader, writer = idle.pop() if used else await asyncio.open_connection(host, port)
        try:
            writer.write(request)
            try:
                return *await _answer(reader), (reader, writer)
            except Closed:
                # The server may close an idle connection in the moment in which it is used again. Then whoever asks has
                # to ask again, as RFC 9112 (9.3.1) says and browsers do; on a new connection, that is no excuse.
                if not used:
                    raise
                writer.close()
                told.again += 1
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(request)
                return *await _answer(reader), (reader, writer)
        except BaseException:
            writer.close()
            raise

    async def one(request: bytes, due: float) -> None:
        asked, waited = asyncio.create_task(exchange(request)), 0.0
        while not asked.done() and waited < PATIENCE:
            await asyncio.wait({asked}, timeout=TICK)
            waited += TICK  # however long it took: then the machine was busy with others
        asked.cancel()
        try:
            status, goes_on, later, connection = await asked
        except (OSError, EOFError, ValueError, asyncio.CancelledError) as problem:
            why = "no answer in time" if isinstance(problem, asyncio.CancelledError) else repr(problem)
            told.lost.append(f"{request[:80]!r}: {why}")
            return
        told.statuses[status] += 1
        told.times.append(time.monotonic() - due)
        told.busy += status == 503 and later
        if goes_on:
            idle.append(connection)
        else:
            connection[1].close()

    async def look_at_the_clock() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(TICK)
            late = time.monotonic() - before - TICK
            told.stood_still += late if late > TICK else 0.0

    clock = asyncio.create_task(look_at_the_clock())
    start, tasks = time.monotonic(), list[asyncio.Task[None]]()
    for number in range(round(rate * seconds)):
        due = start + number / rate
        if (early := due - time.monotonic()) > 0:
            await asyncio.sleep(early)
        tasks.append(asyncio.create_task(one(next(asked), due)))
        told.sent += 1
    await asyncio.gather(*tasks)
    clock.cancel()
    for _, writer in idle:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return told


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Serve a folder as a user does; yield the address, the port, and the number of the process."""
    command = [sys.executable, "-m", "unround", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://([\d.]+):(\d+)/", server.stdout.readline())
            if found is None:
                raise SystemExit("the explorer did not start")
            _await_kernels(found[1], int(found[2]))
            yield found[1], int(found[2]), server.pid
        finally:
            server.terminate()


def _await_kernels(host: str, port: int) -> None:
    """Wait until an area is shown and a system is solved: where kernels must be compiled first, that takes a minute."""
    asked = http.client.HTTPConnection(host, port, timeout=COMPILING)

    def get(path: str) -> bytes:
        asked.request("GET", path)
        return asked.getresponse().read()

    areas = json.loads(get("/areas.json?few=1"))["areas"]
    for path in (*(one["address"] for one in areas[:1]), f"/try?system={quote('48! = 20 + 20 + 20')}"):
        get(path)
    asked.close()


def processor_time(process: int) -> float:
    """Return the seconds of processor time that a process has taken, all its threads together."""
    # The name of the command comes second, in brackets, and may hold anything.
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(folder: Path, rate: float = RATE, seconds: float = SECONDS, seed: int = 1) -> Told:
    """Send requests to the explorer of a folder, and return what came of them."""
    asked = addresses(folder, random.Random(seed))
    drawn = [next(asked) for _ in range(round(rate * seconds))]
    with serving(folder) as (host, port, process):
        # Kernels are compiled, or loaded, with the first views: that is not what is measured.
        warm = asyncio.run(send(host, port, iter(drawn[: min(60, len(drawn))]), 10, 6))
        before = processor_time(process)
        told = asyncio.run(send(host, port, iter(drawn), rate, seconds))
        told.work = processor_time(process) - before
    told.lost += warm.lost
    return told


def audited(place: Path, areas: int) -> Path:
    """Return the audit of a simulated census, made in a folder."""
    from unround import simulate
    from unround.job import audit
    from unround.tables import read

    audit(read(simulate(place / "census", areas=areas, seed=1).files[0]), place / "audit")
    return place / "audit"


def main() -> None:
    """Measure, print, and fail where a request was lost or answered by a fault."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.load", description="Requests to `unround serve` under load.")
    parser.add_argument("--rate", type=float, default=RATE, help=f"requests a second ({RATE})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for so long ({SECONDS})")
    parser.add_argument("--areas", type=int, default=AREAS, help=f"simulated areas in the audit ({AREAS:,})")
    parser.add_argument("--folder", type=Path, default=None, help="an audit that is there already")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        told = run(asked.folder or audited(Path(place), asked.areas), asked.rate, asked.seconds)
    print(f"{asked.rate:g} requests a second for {asked.seconds:g} seconds:\n{told}")
    if not told.ok:
        raise SystemExit("requests were lost, or answered by a fault.")


if __name__ == "__main__":
    main()
