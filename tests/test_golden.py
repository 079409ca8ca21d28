"""What every command prints and writes, held against what it printed and wrote before.

Each story is a list of commands that are run one after the other in a folder with the examples. What they print, as text and
as JSON, and the text of the pages that they write are kept in `tests/golden`. `make golden` writes these files again: read
what changed (`git diff tests/golden`) before you commit it.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from research.__main__ import app as research

from unround import __version__
from unround.cli import app, voice
from unround.cli import run as run_command

GOLDEN = Path(__file__).parent / "golden"
EXAMPLES = Path(__file__).parents[1] / "examples"
SHAPES = "census/boundaries.geojson.gz"
BULK = "census/98-401-X2021006_English_CSV_data.csv"
SYSTEM = "'110! = a: 30 + 65 + 10; a = 10 + 10 + 10'"

STORIES = {
    "solve": f"""
        unround solve small-town.txt
        unround solve {SYSTEM} --top 2
        unround solve {SYSTEM} --json --top 2
        unround solve '100! = 20 + 20'
        unround solve '100! = 20 + 20' --json
        unround solve 'x: 60; T: 500; x / T = 12.4%'
        unround solve '12 = -2 + 15' --mechanism laplace:1.45
        unround solve '100! = 30 + 30 + 40' --expect --areas 59625
        unround solve '100! = 30 + 30 + 40' --expect --json
        research calibrate --list-worlds
        research paper
        research paper --json
        research paper --simulate --areas 60 --rows age
    """,
    "survey": """
        unround check survey.toml
        unround check survey.toml --json
        unround check survey.toml --all --write described.toml
        cat described.toml
        unround audit survey.toml -o audit
        unround audit audit --json
        unround audit audit --verbose
        cat audit/report.html
        cat audit/report-public.html
        unround explain audit D08 30-44/men
        unround explain audit D08 30-44/men --json
        unround explain audit D03 15-64/men
        unround verify audit
        unround verify audit --json
        unround serve audit --get /
        unround serve audit --get /area/D08.json
        unround serve audit --get /findings
        unround serve audit --get /findings.json?kind=proved
        unround serve audit --get /area/D08
        unround serve audit --get /area/D08/30-44/men
        unround serve audit --get /structure
        unround serve audit --get /structure/0
        unround serve audit --get /contradictions
        unround serve audit --get /about
        unround serve audit --get /try
        unround serve audit --get '/try?system=48!+%3D+20+%2B+20+%2B+20'
        unround serve audit --get /areas?q=D0
        unround serve audit --get /nothing
        unround review audit --against audit
        unround review audit --against audit --json
        unround reconcile survey.toml -o additive
        unround reconcile survey.toml -o additive --round 3 --json
        cat additive/summary.json
        unround serve additive --get /
        unround serve additive --get /area/D08
        unround serve additive --get /area/D08.json
    """,
    "census": f"""
        unround simulate -o census --areas 60 --seed 3 --boundaries
        unround simulate -o census2 --areas 5 --json
        unround check {BULK}
        unround audit {BULK} -o audit --truth census/truth.parquet --estimates means --boundaries {SHAPES}
        cat audit/report.html
        unround serve audit --get /
        unround serve audit --get /map
        unround protect census/truth.parquet -o noisy --mechanism laplace:1.45 --clamp --exact population --seed 1
        unround protect census/truth.parquet -o noisy --mechanism rounding:5 --seed 1 --json
        unround compare --areas 30 --seeds 1 --mechanism rounding:5,laplace:1.45 -o compare
        cat compare/compare.html
        cat compare/compare.json
        research calibrate --world couples --areas 40 -o calibrate
        cat calibrate/calibrate.html
        cat calibrate/calibrate.json
    """,
    "draft": """
        unround describe draft.csv -o draft.toml
        cat draft.toml
        unround describe draft.csv --json
        unround check draft.csv
        unround audit draft.csv -o audit
        unround verify audit
        unround review draft.csv -o review
        cat review/review.html
        unround review draft.csv --json --repairs none
        unround review draft.csv --more more.csv -o more
        cat more/review.html
        unround review draft.csv --rates all
        unround review --show-policy
    """,
    "persons": """
        unround simulate -o records --persons --areas 4
        unround reconstruct records/profile.toml records/age_sex.toml --truth records/persons.parquet -o found
        cat found/reconstruct.html
        cat found/summary.json
    """,
}

DRAFT = """\
District,Total,Employed,Unemployed,Inactive
North,1243,716,61,466
East,885,499,47,339
South,75,38,*,35
West,431,246,25,160
"""
MORE = "District,Total,Men,Women\nNorth,1243,612,631\nEast,885,440,445\nSouth,75,38,37\nWest,431,215,216\n"


class _Text(HTMLParser):
    """The text of a page: a line for every block, cells side by side; drawings are left out."""

    BLOCKS = (
        "p",
        "h1",
        "h2",
        "h3",
        "li",
        "tr",
        "dt",
        "dd",
        "div",
        "section",
        "summary",
        "pre",
        "figcaption",
        "table",
        "nav",
    )
    HIDDEN = ("style", "script", "head", "svg")

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.HIDDEN:
            self.hidden += 1
        if tag in self.BLOCKS:
            self.words.append("\n# " if tag in ("h1", "h2", "h3") else "\n")
        if tag in ("td", "th"):
            self.words.append(" | ")
        del attrs

    def handle_endtag(self, tag: str) -> None:
        if tag in self.HIDDEN:
            self.hidden -= 1
        if tag in self.BLOCKS:
            self.words.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.words.append(re.sub(r"\s+", " ", data))


def text_of(page: str) -> str:
    """Return what a page says."""
    reader = _Text()
    reader.feed(page)
    lines = (" ".join(line.split()) for line in "".join(reader.words).splitlines())
    return "\n".join(line for line in lines if line.strip("#| "))


def shortened(value: Any) -> Any:
    """Return JSON without what only fills pages: of long lists two items, of numbers four digits."""
    if isinstance(value, dict):
        return {name: "…" if name in ("seconds", "bytes") else shortened(item) for name, item in sorted(value.items())}
    if isinstance(value, list):
        more = [f"and {len(value) - 2} more"] if len(value) > 4 else []
        return [*map(shortened, value[: 2 if more else None]), *more]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def lines_of(value: Any, indent: str = "") -> Iterator[str]:
    """Return JSON in lines, what is short in one."""
    compact = json.dumps(value, ensure_ascii=False)
    if len(compact) <= 120 or not isinstance(value, dict | list):
        yield indent + compact
        return
    items = value.items() if isinstance(value, dict) else (("-", item) for item in value)
    for name, item in items:
        first, *more = lines_of(item, f"{indent}  ")
        yield f"{indent}{name}: {first.strip()}" if not more else f"{indent}{name}:"
        yield from [first, *more] if more else []


def readable(text: str) -> str:
    """Return an output as it is kept: JSON in lines, pages as text; without what differs between runs and machines."""
    if text.startswith(("{", "[")):
        text = "\n".join(lines_of(shortened(json.loads(text))))
    elif text.lstrip().lower().startswith("<!doctype"):
        text = text_of(text)
    text = text.replace(__version__, "<version>")
    text = re.sub(r"\b[0-9a-f]{64}|\b[0-9a-f]{12,64}\b", "<hash>", text)
    text = re.sub(r"\b\d{1,2} [A-Z][a-z]+ 20\d\d\b|\b20\d\d-\d\d-\d\d\b(?! \d)", "<date>", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00| UTC)?", "<time>", text)
    text = re.sub(r"\b[\d.]+ (s|seconds|ms|minutes|MB|kB)\b", r"… \1", text)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def run(command: str) -> str:
    """Run a command in this process; return what it prints, and its exit code where that is not 0."""
    program, *words = shlex.split(command)
    if program == "cat":
        return readable(Path(words[0]).read_text(encoding="utf-8"))
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    code: object = 0
    with (
        patch.object(sys, "argv", [program, *words]),
        patch.object(voice, "EVERY", 3600.0),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        try:
            run_command(app if program == "unround" else research)
        except SystemExit as stop:
            code = stop.code
    printed = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
    return readable(printed) + (f"\n(exit code {code})" if code else "")


def shown(story: str, folder: Path) -> dict[str, str]:
    """Return what every command of a story shows."""
    for example in EXAMPLES.iterdir():
        if example.is_file():
            shutil.copy(example, folder)
    (folder / "draft.csv").write_text(DRAFT, encoding="utf-8")
    (folder / "more.csv").write_text(MORE, encoding="utf-8")
    commands = [line.strip() for line in STORIES[story].strip().splitlines()]
    with contextlib.chdir(folder), patch.dict(os.environ, {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}):
        return {command: run(command).replace(str(folder), "…") for command in commands}


def kept(file: Path) -> dict[str, str]:
    """Return what was kept of a story, by command."""
    parts = re.split(r"^\$ (.*)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {command: text.strip("\n") for command, text in zip(parts[1::2], parts[2::2], strict=True)}


def change(command: str, before: str, now: str) -> str:
    """Return what is different of one command, at most forty lines of it."""
    lines = difflib.unified_diff(before.splitlines(), now.splitlines(), n=1, lineterm="")
    return "\n".join([f"\n$ {command}", *list(lines)[2:42]])


@pytest.mark.parametrize("story", STORIES)
def test_every_command_shows_what_it_showed(story: str, tmp_path: Path) -> None:
    file, now = GOLDEN / f"{story}.txt", shown(story, tmp_path)
    if os.environ.get("UNROUND_GOLDEN") == "write":
        file.write_text("\n\n".join(f"$ {command}\n{text}" for command, text in now.items()) + "\n", encoding="utf-8")
    before = kept(file)
    changes = [
        change(command, before.get(command, ""), text) for command, text in now.items() if before.get(command) != text
    ]
    assert not changes, f"{''.join(changes[:8])}\n\nIf this is meant: make golden, and read the difference in git."
    assert list(before) == list(now), "commands came or went: make golden"
