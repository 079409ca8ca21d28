"""The folder that `whatif` writes: both audits, and the comparison."""

from __future__ import annotations

import json
from pathlib import Path

from unround.errors import InputError

BEFORE, AFTER, REPORT, PAGE = "before", "after", "whatif.json", "whatif.html"
OURS = (BEFORE, AFTER, PAGE, REPORT)
"""In the order in which they are put in place."""


def older_whatif(out: Path) -> tuple[str, ...]:
    """Return the names that its files have; complain where some are there that `whatif` did not write."""
    there = [name for name in OURS if (out / name).exists()]
    if there and not _is_ours(out):
        raise InputError(f"{out} already contains {there[0]}, but no {REPORT}: choose another folder with -o.")
    return OURS


def _is_ours(out: Path) -> bool:
    try:
        content = json.loads((out / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and "repairs" in content
