"""Names from elsewhere on a terminal: no escape sequence and no mark of direction is obeyed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest
from rich.table import Table
from rich.text import Text

from tests.conftest import Run
from unround.show.terminal import VisibleConsole, visible, visible_json

CLEAR, EIGHT_BITS, TURNED = "\x1b[2J\x1b[H", "\x9b31m", "\u202eegnahc\u202c"
HOSTILE = f"Fen{CLEAR}wick{EIGHT_BITS}ville{TURNED}\u2028\x07"
OBEYED = set("\x1b\x9b\u202e\u202c\u2028\x07")


def test_what_would_be_obeyed_is_shown() -> None:
    assert visible(HOSTILE) == r"Fen\x1b[2J\x1b[Hwick\x9b31mville\u202eegnahc\u202c\u2028\x07"
    for plain in ("Fenwickville\n\ttab", "Ǻ · – ×", "القدس", "क्षि", "👩\u200d👧"):
        assert visible(plain) == plain
    said = json.dumps({"name": HOSTILE}, ensure_ascii=False)
    assert json.loads(visible_json(said)) == {"name": HOSTILE}
    assert not OBEYED & set(visible_json(said))


def test_a_console_keeps_its_own_colours_and_shows_the_text() -> None:
    written = io.StringIO()
    console = VisibleConsole(file=written, force_terminal=True, color_system="standard", width=200, highlight=False)
    table = Table("name")
    table.add_row(Text(HOSTILE, style="red"))
    console.print(table)
    console.print(Text(HOSTILE, style="bold"))
    console.print(HOSTILE, style="dim", markup=False)
    shown = written.getvalue()
    assert "\x1b[31m" in shown, "our own colours"
    assert shown.count(r"Fen\x1b[2J") == 3
    assert CLEAR not in shown
    assert not (OBEYED - {"\x1b"}) & set(shown)


@pytest.fixture
def audit(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> str:
    """An audit of a table whose areas and columns have such names, and of a file that has."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"region": f"{k:02} {HOSTILE}", "age": f"{age}{HOSTILE}", "n": n}
        for k in range(20)
        for age, n in (("all", 48), ("young", 20 if k else 25), ("old", 20), ("oldest", 20))
    ]
    pl.DataFrame(rows).write_parquet(f"t{HOSTILE}.parquet")
    parts = ", ".join(json.dumps(f"{age}{HOSTILE}") for age in ("young", "old", "oldest"))
    total = json.dumps(f"all{HOSTILE}")
    toml = (
        f'data = {json.dumps(f"t{HOSTILE}.parquet")}\nvalue = "n"\ndefault = "rounding:5"\n[axes.region]\n[axes.age]\n'
        f"sums = [{{ total = {total}, parts = [{parts}] }}]\n[[exact]]\nage = [{total}]\n"
    )
    Path("t.toml").write_text(toml, encoding="utf-8")
    ran = run("audit", "t.toml", "-o", f"out{HOSTILE}")
    assert ran.code == 0, ran.err
    assert r"\x1b[2J" in ran.out
    assert not OBEYED & set(ran.out + ran.err)
    return f"out{HOSTILE}"


def test_no_command_prints_what_a_name_asks_for(audit: str, run: Run) -> None:
    for command in (
        ("check", "t.toml"),
        ("check", "t.toml"),
        ("explain", audit, "03", f"young{HOSTILE}"),
        ("explain", audit, "no such", f"young{HOSTILE}"),
        ("explain", audit, "03", "o"),
        ("audit", audit),
        ("verify", audit),
        ("review", audit, "--against", audit),
        ("verify", f"{audit}/model"),
        ("audit", f"none{HOSTILE}.csv", "-o", audit),
        ("solve", f"{HOSTILE}"),
        ("solve", f'"a{HOSTILE}": 5 = 5 + "{HOSTILE}"'),
        ("explain", audit, "03", f"young{HOSTILE}", "--json"),
        ("check", "t.toml", "--json"),
    ):
        ran = run(*command)
        assert ran.out or ran.err, command
        assert not OBEYED & set(ran.out + ran.err), command
