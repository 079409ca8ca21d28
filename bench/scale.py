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
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import results

SHORT = (1_000, 4_000, 16_000, 61_029)
"""Areas of the census with the blocks of the short form: age, sex, dwellings, households, marital status, languages."""

JOINT = (2_000, 61_029)
"""Areas of the census with all 2,631 rows."""

WHOLE = 61_029

BY_AREAS = (100, 1_000, 10_000, 61_029, 500_000)
"""Areas of the census of ages by sex, to see how time and memory grow with them."""

BY_COUNTS = (("world", "couples"), ("--rows", "age"), ("--rows", "income"), ("--rows", "short"), ("--rows", "all"))
"""What a thousand areas are told of, from a few counts each to 7,164, to see how time and memory grow with them."""

ON_A_CLUSTER = 4_000
"""Areas, with rows of the short form, that are audited by one worker and by two."""

EVERY = 0.2
"""Seconds between looks at memory."""


@dataclass(frozen=True)
class Run:
    """One audit, as measured."""

    rows: str
    areas: int
    counts: int
    zip_mb: float
    wall: float
    cpu: float
    peak_mb: float
    stages: dict[str, float]


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """Make a folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"unround-scale-{name}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def simulated(folder: Path, areas: int, *options: str) -> Path:
    """Simulate a census; return its one file of counts."""
    _say(f"{areas:,} areas, {' '.join(options)}: simulating …")
    # Figures are those of published counts, as in real releases: those of true counts are another matter (`bench figures`).
    is_world, quiet = options[0] == "world", subprocess.DEVNULL
    command = ["research", *options] if is_world else ["unround", "simulate", *options, "--figures", "published"]
    command += ["-o", str(folder / "census"), "--areas", str(areas)]
    subprocess.run([sys.executable, "-m", *command], check=True, stdout=quiet, stderr=quiet)
    files = sorted((folder / "census").iterdir())
    if is_world:
        return next(file for file in files if file.stem.startswith("release"))
    return zipped(next(file for file in files if file.name.endswith("_data.csv")))


def zipped(file: Path) -> Path:
    """Put a file into a zip, as it would be downloaded."""
    packed = file.with_suffix(".zip")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.write(file, file.name)
    file.unlink()
    return packed


def audited(file: Path, areas: int, rows: str, out: Path, *options: str) -> Run:
    """Audit a simulated census in a process of its own, and watch it."""
    size = file.stat().st_size / 1e6
    _say(f"{areas:,} areas, {rows}: auditing {size:,.0f} MB {' '.join(options)} …")
    command = [sys.executable, "-m", "unround", "audit", str(file), "-o", str(out), *options]
    wall, cpu, peak = watched(command, out.with_suffix(".txt"))
    counts = json.loads((out / "summary.json").read_text(encoding="utf-8"))["cells"] // areas
    found = Run(rows, areas, counts, round(size, 1), round(wall, 1), round(cpu, 1), round(peak / 1e6, 0), stages(out))
    _say(f"{areas:,} areas, {rows}: {found.wall:,.1f} s, {found.cpu:,.1f} s of processors, {found.peak_mb:,.0f} MB")
    return found


def measure(areas: int, *options: str) -> Run:
    """Simulate a census, audit it from its zip to the report, and clean up."""
    with scratch(str(areas)) as folder:
        return audited(simulated(folder, areas, *options), areas, options[-1], folder / "audit")


def short() -> list[dict[str, object]]:
    """Measure audits of rows of the short form."""
    return [asdict(measure(areas, "--rows", "short")) for areas in SHORT]


def joint() -> list[dict[str, object]]:
    """Measure audits of all 2,631 rows."""
    return [asdict(measure(areas, "--rows", "all")) for areas in JOINT]


def growth() -> dict[str, list[dict[str, object]]]:
    """Measure how audits grow with the number of areas, and with that of counts per area."""
    return {
        "areas": [asdict(measure(areas, "--rows", "age")) for areas in BY_AREAS],
        "counts": [asdict(measure(1_000, *options)) for options in BY_COUNTS],
    }


def linked(areas: int = WHOLE) -> dict[str, object]:
    """Audit a nested census twice, each area by itself and all of them linked; ages by sex."""
    runs: dict[str, object] = {}
    with scratch("linked") as folder:
        file = simulated(folder, areas, "--levels", "da,csd,cd,province")
        tree = ("--nesting", str(folder / "census" / "areas.csv"))
        for name, more in (("alone", ("--no-link",)), ("linked", ())):
            run = audited(file, areas, "age", folder / name, *tree, *more)
            summary = json.loads((folder / name / "summary.json").read_text(encoding="utf-8"))
            claims = {kind: summary[kind] for kind in ("proved", "conditional", "likely")}
            runs[name] = asdict(run) | {"claims": claims, "areas_by_method": summary["linked"]["areas_by_method"]}
    return runs


def cluster(areas: int = ON_A_CLUSTER) -> list[dict[str, object]]:
    """Audit a census on a Dask cluster of one worker and of two, all on this machine."""
    runs = []
    with scratch("cluster") as folder:
        file = simulated(folder, areas, "--rows", "short")
        for workers in (1, 2):
            with dask(folder, workers) as address:
                out = folder / f"by-{workers}"
                run = audited(file, areas, "short", out, "--cluster", address)
            runs.append(asdict(run) | {"workers": workers})
    return runs


@contextmanager
def dask(folder: Path, workers: int) -> Iterator[str]:
    """Start a scheduler and its workers, each with one thread; give its address."""
    told = folder / f"scheduler-{workers}.json"
    start = [sys.executable, "-m", "dask"]
    scheduler = [*start, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(told)]
    worker = [*start, "worker", "--scheduler-file", str(told), "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    places = sorted(os.sched_getaffinity(0))
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number, command in enumerate((scheduler, *[worker] * workers)):
            quiet = subprocess.DEVNULL
            started.append(subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet))
            if number:
                # A worker uses every processor that it may: with one each, two workers are not two names for the same two.
                os.sched_setaffinity(started[-1].pid, {places[(number - 1) % len(places)]})
            while not told.exists():
                if started[0].poll() is not None:
                    raise RuntimeError("the scheduler of the cluster does not start.")
                time.sleep(0.1)
        yield str(json.loads(told.read_text(encoding="utf-8"))["address"])
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


PARTS: dict[str, Callable[[], object]] = {
    "short": short,
    "linked": linked,
    "growth": growth,
    "cluster": cluster,
    "joint": joint,
}
"""What is measured and kept, by name; parts that are not measured again stay as they were."""


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


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m bench.scale", description="Time and memory of audits of many areas.")
    asked.add_argument("parts", nargs="*", metavar="PART", help=f"only some of {', '.join(PARTS)}")
    asked.add_argument("--check", action="store_true", help="measure, but leave bench/results.json as it is")
    given = asked.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        asked.error(f"there is no part {min(unknown)}: choose from {', '.join(PARTS)}.")
    # Kernels are compiled by first, small runs, which do not count.
    measure(100, "--rows", "short")
    for name in given.parts or PARTS:
        if name == "linked":
            linked(300)
        measured = PARTS[name]()
        print(json.dumps({name: measured}, indent=2), flush=True)
        if not given.check:
            results.keep(name, {"runs": measured})  # at once: what comes later may take long, or fail
    if not given.check:
        print(f"Kept in {results.PATH}; `make docs` brings docs/speed.md up to date.", file=sys.stderr)


if __name__ == "__main__":
    main()
