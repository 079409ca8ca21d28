"""Audits for the tests of the explorer: a table whose names are hostile, and a simulated census."""

from __future__ import annotations

from pathlib import Path

from unround.audits import audit
from unround.readers import read
from unround.simulation import simulate

EXAMPLES = Path(__file__).parents[1] / "examples"

IMAGE = "<img src=x onerror=alert(1)>"
FORMULA = '=HYPERLINK("http://x","y")'
SLASHED = "a/b ../c?.json"
OLDEST = "<b>80 & over</b>"
"""The names of three areas, and of one age."""


def survey(folder: Path) -> Path:
    """Audit the example of the documentation, with hostile names in it."""
    for name in ("survey.csv", "survey.toml", "survey.hrc"):
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        for old, new in (("D08", IMAGE), ("D03", FORMULA), ("D04", SLASHED), ("80+", OLDEST)):
            quoted = f'"{new.replace(chr(34), chr(34) * 2)}"' if name.endswith(".csv") else new
            text = text.replace(old, quoted)
        (folder / name).write_text(text, encoding="utf-8")
    audit(read(folder / "survey.toml"), folder / "audit")
    return folder / "audit"


def census(folder: Path, areas: int = 120) -> Path:
    """Audit a simulated census."""
    file = simulate(folder / "census", areas, seed=3).files[0]
    audit(read(file), folder / "audit")
    return folder / "audit"
