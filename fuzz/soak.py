"""Soak: an hour of mixed use of `unround serve`, with flat memory and nothing lost.

    python -m fuzz.soak                        an audit of 2,000 simulated areas, as `make soak` does
    python -m fuzz.soak --minutes 5 --folder audit

Besides what `fuzz.load` sends, systems are typed into "Try it", and visitors leave before they are answered. Memory is that
of the server and of all that it started, twelve times. It may grow while pages are being remembered; after half of the time
it may not.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from fuzz.load import AREAS, Told, addresses, audited, send, serving

MINUTES, RATE, SLICES = 60.0, 30.0, 12
TRIED = 0.03
"""The share of requests that try a system of their own, …"""
LEFT = 0.05
"""… and that of visitors who leave at once."""

GROWTH, ROOM = 1.1, 30 << 20
"""By how much memory may be more at the end than half-way, as a factor, and in bytes on top of it."""


@dataclass
class Soaked:
    """What came of it.

    Parameters
    ----------
    told : Told
        Of all requests.
    memory : list of int
        Bytes, after every slice of the time.
    left : int
        Visitors who did not wait for their answer.
    """

    told: Told = field(default_factory=Told)
    memory: list[int] = field(default_factory=list)
    left: int = 0

    @property
    def flat(self) -> bool:
        """Whether memory stayed as it was half-way."""
        return self.memory[-1] <= GROWTH * max(self.memory[: len(self.memory) // 2]) + ROOM

    @property
    def ok(self) -> bool:
        """Whether nothing was lost, and memory stayed flat."""
        return self.told.ok and self.flat

    def __str__(self) -> str:
        sizes = ", ".join(f"{size >> 20}" for size in self.memory)
        return f"{self.told}\nleft      {self.left:,} before they were answered\nmemory    {sizes} MB"


def mixed(folder: Path, rng: random.Random) -> Iterator[bytes]:
    """Draw requests without end, some of which try a system."""
    for request in addresses(folder, rng):
        if rng.random() < TRIED:
            numbers = [5 * rng.randrange(8) for _ in range(rng.randrange(2, 5))]
            text = f"{sum(numbers) + rng.randrange(-4, 5)}! = {' + '.join(map(str, numbers))}"
            yield f"GET /try?system={quote(text)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        else:
            yield request


async def leave(host: str, port: int, request: bytes) -> None:
    """Ask for something, and go."""
    _, writer = await asyncio.open_connection(host, port)
    writer.write(request)
    await writer.drain()
    writer.close()


def memory_of(process: int) -> int:
    """Return the bytes that a process and its children hold."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    children = " ".join(path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")).split()
    return pages * 4096 + sum(memory_of(int(child)) for child in children)


def run(folder: Path, minutes: float, rate: float = RATE, seed: int = 1) -> Soaked:
    """Use the explorer of a folder for so long."""
    rng, found = random.Random(seed), Soaked()
    asked, strangers = mixed(folder, rng), mixed(folder, random.Random(seed + 1))
    seconds = 60 * minutes / SLICES

    async def one_slice(host: str, port: int) -> Told:
        async def impatient() -> None:
            for _ in range(round(LEFT * rate * seconds)):
                await asyncio.sleep(1 / (LEFT * rate))
                await leave(host, port, next(strangers))
                found.left += 1

        told, _ = await asyncio.gather(send(host, port, asked, rate, seconds), impatient())
        return told

    with serving(folder) as (host, port, process):
        for _ in range(SLICES):
            found.told += asyncio.run(one_slice(host, port))
            found.memory.append(memory_of(process))
    return found


def main() -> None:
    """Soak, print, and fail where a request was lost or memory grew."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.soak", description="Mixed use of `unround serve` for long.")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"for so long ({MINUTES:g})")
    parser.add_argument("--areas", type=int, default=AREAS, help=f"simulated areas in the audit ({AREAS:,})")
    parser.add_argument("--folder", type=Path, default=None, help="an audit that is there already")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = run(asked.folder or audited(Path(place), asked.areas), asked.minutes)
    print(f"{asked.minutes:g} minutes of mixed use:\n{found}")
    if not found.ok:
        raise SystemExit("requests were lost, or memory grew.")


if __name__ == "__main__":
    main()
