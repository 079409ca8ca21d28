"""National scale: from a bulk-layout zip to the report in one command, for more and more areas. `make scale` runs it.

The command is the one that a user types, in a process of its own; its time, its processors' time, and the most memory that
it and its workers hold at any moment are measured from outside. Nothing is left on disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import results

AREAS = (1_000, 4_000, 16_000, 61_029)
"""Of the census with the blocks of the short form: age, sex, dwellings, households, marital status, languages."""

JOINT = (500, 2_000)
"""Of the census with all 2,631 rows: two sizes, to tell what an area costs from what a run costs."""

PARTS = ("short", "linked", "joint")
"""What is kept; parts that are not measured again stay as they were."""

WHOLE = 61_029
EVERY = 0.2
"""Seconds between looks at memory."""


@dataclass(frozen=True)
class Run:
    """One audit, as measured."""

    rows: str
    areas: int
    zip_mb: float
    wall: float
    cpu: float
    peak_mb: float
    stages: dict[str, float]


def measure(rows: str, areas: int, place: Path) -> Run:
    """Simulate a census, audit its zip, and clean up."""
    folder = Path(tempfile.mkdtemp(prefix=f"unround-scale-{areas}-", dir=place))
    try:
        _say(f"{areas:,} areas, {rows} rows: simulating …")
        told = ["simulate", "-o", str(folder / "census"), "--areas", str(areas), "--rows", rows, "--zip"]
        quiet = subprocess.DEVNULL
        subprocess.run([sys.executable, "-m", "unround", *told], check=True, stdout=quiet, stderr=quiet)
        (packed,) = (folder / "census").glob("*.zip")
        size = packed.stat().st_size / 1e6
        _say(f"{areas:,} areas, {rows} rows: auditing {size:,.0f} MB …")
        out = folder / "audit"
        command = [sys.executable, "-m", "unround", "audit", str(packed), "-o", str(out)]
        wall, cpu, peak = watched(command, folder / "output.txt")
        found = Run(rows, areas, round(size, 1), round(wall, 1), round(cpu, 1), round(peak / 1e6, 0), stages(out))
        _say(f"{areas:,} areas, {rows} rows: {found.wall:,.1f} s, {found.cpu:,.1f} s of processors, {found.peak_mb:,.0f} MB")
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure_linked(areas: int, place: Path) -> dict[str, object]:
    """Audit a nested census twice, each area by itself and all of them linked; ages by sex."""
    folder = Path(tempfile.mkdtemp(prefix=f"unround-linked-{areas}-", dir=place))
    try:
        _say(f"{areas:,} areas of all levels: simulating …")
        told = ["simulate", "-o", str(folder / "census"), "--areas", str(areas), "--levels", "da,csd,cd,province", "--zip"]
        subprocess.run([sys.executable, "-m", "unround", *told], check=True, stdout=subprocess.DEVNULL)
        (packed,) = (folder / "census").glob("*.zip")
        audit = [sys.executable, "-m", "unround", "audit", str(packed), "--areas", str(folder / "census" / "areas.csv")]
        runs: dict[str, object] = {}
        for name, more in (("alone", ["--no-link"]), ("linked", [])):
            out = folder / name
            wall, cpu, peak = watched([*audit, "-o", str(out), *more], folder / "output.txt")
            size = packed.stat().st_size / 1e6
            run = Run("age", areas, round(size, 1), round(wall, 1), round(cpu, 1), round(peak / 1e6, 0), stages(out))
            summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
            claims = {kind: summary[kind] for kind in ("proved", "conditional", "likely")}
            runs[name] = asdict(run) | {"claims": claims, "areas_by_method": summary["linked"]["areas_by_method"]}
            _say(f"{areas:,} areas, {name}: {wall:,.1f} s, {cpu:,.1f} s of processors, {peak / 1e6:,.0f} MB")
        return runs
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def watched(command: list[str], output: Path) -> tuple[float, float, float]:
    """Run a command; return its seconds, the seconds of processors, and the most bytes of memory in use at a time."""
    start, most, done = time.perf_counter(), [0], threading.Event()
    with output.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT) as process:

        def look() -> None:
            while not done.wait(EVERY):
                most[0] = max(most[0], sum(_held(one) for one in family(process.pid)))

        watching = threading.Thread(target=look)
        watching.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
        finally:
            done.set()
            watching.join()
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        tail = output.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{tail}")
    # What the system itself noted as the most of one process counts too: a short peak may fall between two looks.
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, max(most[0], used.ru_maxrss * 1024)


def family(process: int) -> list[int]:
    """Return a process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (told := _read(entry / "stat")):
            parents.setdefault(int(told.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return found


def _held(process: int) -> int:
    """Return the bytes of memory that a process holds, its share of what it has together with others."""
    for line in _read(Path(f"/proc/{process}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return 1024 * int(line.split()[1])
    return 0


def _read(path: Path) -> str:
    """Read what the system says of a process; nothing where it has ended meanwhile."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def stages(folder: Path) -> dict[str, float]:
    """Return how long each stage of an audit took, as it says itself."""
    for name in ("run.json", "summary.json"):
        file = folder / name
        told = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        if isinstance(told.get("seconds"), dict):
            return {stage: round(float(took), 2) for stage, took in told["seconds"].items()}
    return {}


def extrapolated(small: Run, large: Run, areas: int = WHOLE) -> dict[str, float]:
    """Return what a run of so many areas would take, from two smaller ones: what an area costs, and what a run costs."""
    share = (areas - large.areas) / (large.areas - small.areas)
    found = {name: getattr(large, name) + share * (getattr(large, name) - getattr(small, name)) for name in ("wall", "cpu")}
    return {"areas": areas, "wall": round(found["wall"], 0), "cpu": round(found["cpu"], 0)}


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m bench.scale", description="Time and memory of audits of many areas.")
    asked.add_argument("--areas", type=int, nargs="*", default=AREAS, help="numbers of areas with rows of the short form")
    asked.add_argument("--joint", type=int, nargs="*", default=JOINT, help="numbers of areas with all rows; two or none")
    asked.add_argument("--linked", type=int, default=WHOLE, help="areas of a nested census, linked and not; 0 for none")
    asked.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where scratch files go meanwhile")
    asked.add_argument("--check", action="store_true", help="measure, but leave bench/results.json as it is")
    given = asked.parse_args()
    if len(given.joint) not in (0, 2):
        asked.error("--joint takes two numbers of areas, so that the total can be extrapolated, or none.")
    given.folder.mkdir(parents=True, exist_ok=True)
    # Kernels are compiled by a first, small run, which does not count.
    measure("short", 100, given.folder)
    measured: dict[str, object] = {}
    if given.areas:
        measured["short"] = [asdict(measure("short", areas, given.folder)) for areas in given.areas]
    if given.linked:
        measure_linked(300, given.folder)
        measured["linked"] = measure_linked(given.linked, given.folder)
    if given.joint:
        measure("all", 70, given.folder)
        small, large = (measure("all", areas, given.folder) for areas in sorted(given.joint))
        measured["joint"] = {"runs": [asdict(small), asdict(large)], "extrapolated": extrapolated(small, large)}
    print(json.dumps(measured, indent=2))
    if not given.check:
        before = {name: told for name, told in results.load().get("scale", {}).items() if name in PARTS}
        results.keep("scale", before | measured)
        print(f"Kept in {results.PATH}; `make docs` brings docs/speed.md up to date.", file=sys.stderr)


if __name__ == "__main__":
    main()
