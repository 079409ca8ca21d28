"""What was measured, kept with version, date and machine: `bench/results.json`, from which docs/speed.md has its tables."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

from unround import __version__

PATH = Path(__file__).with_name("results.json")
LIBRARIES = ("numpy", "numba", "scipy", "polars", "ortools", "z3-solver")


def machine() -> dict[str, Any]:
    """Return what the times depend on."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
    }


def _cpu() -> str:
    """Return what the processor is called."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def load(path: Path = PATH) -> dict[str, Any]:
    """Return what is kept; empty where nothing is yet."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def keep(section: str, measured: dict[str, Any], path: Path = PATH) -> None:
    """Replace one section of what is kept, and leave the others: they were measured at another time."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    made = {"unround": __version__, "date": today, "machine": machine(), **measured}
    path.write_text(json.dumps(load(path) | {section: made}, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
