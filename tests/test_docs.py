"""The documentation says what the program does: every shown command is run again, and every link leads somewhere."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest
from docs.generate import COMMANDS, CONSOLE, RESEARCHES, ROOT, filled, pages
from docs.speed_tables import PLACE

from unround.cli import app

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


GENERATED = pages()


def test_every_page_with_generated_parts_is_generated() -> None:
    """No page shows output, or has a place for measurements, that nobody writes again."""
    shows = {page for page in PAGES if CONSOLE.search(text := page.read_text(encoding="utf-8")) or PLACE.search(text)}
    assert shows | {ROOT / "docs" / "cli.md", ROOT / "docs" / "figures" / "growth.svg"} == set(GENERATED)


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_generated_pages_are_up_to_date(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == GENERATED[page](), f"{page.name} lags behind: run `make docs`"


def test_the_readme_shows_real_output() -> None:
    """The generator really replaces what stands in a page."""
    page = '```console\n$ unround solve "48! = 20 + 20 + 20"\nwrong\n```\n'
    assert "part1" in filled(page)
    assert "wrong" not in filled(page)
    assert "5\n```" in filled("```python\nprint(2 + 3)\n```\n\n```text\nwrong\n```\n")


def test_the_limits_state_the_figures_of_the_largest_gap() -> None:
    """Of all worlds that `python -m research calibrate` prints, in the generated part of docs/calibration.md."""
    table = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8").partition("worst band")[2].partition("\n\n")[0]
    rows = [re.split(r"\s{2,}", line) for line in table.splitlines()[1:]]
    judged = [row for row in rows if len(row) == 9]
    assert len(judged) >= 4
    gap = {row[0]: float(row[6].strip(">%")) - float(row[7].strip(">%")) for row in judged}
    world, _, _, _, band, claims, stated, right, _ = max(judged, key=lambda row: gap[row[0]])
    limits = " ".join((ROOT / "README.md").read_text(encoding="utf-8").partition("## Limits")[2].split())
    assert (
        f"of {claims} claims of {band} in the world `{world}`, which state {stated} on average, {right} are right" in limits
    )
    withheld = [row[0] for row in rows if row[1] == "0"]
    assert all(f"`{world}` the self-check fails" in limits for world in withheld)


def test_the_generator_runs_nothing_but_unround() -> None:
    with pytest.raises(ValueError, match="not unround"):
        filled("```console\n$ rm -rf /tmp/x\n```\n")


def test_every_command_is_in_the_reference() -> None:
    assert {command.callback.__name__ for command in app.registered_commands if command.callback} == set(COMMANDS)
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")  # which is up to date: see above
    names = [*(f"unround {name}" for name in COMMANDS), *RESEARCHES]
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


MODULES = sorted(
    ".".join(path.relative_to(ROOT / folder).with_suffix("").parts).removesuffix(".__init__")
    for folder, inside in ((ROOT / "src", "unround"), (ROOT, "research"), (ROOT, "docs"), (ROOT, "bench"))
    for path in (folder / inside).rglob("*.py")
    if any(">>> " in line and "+SKIP" not in line for line in path.read_text(encoding="utf-8").splitlines())
)
"""Those with examples in their docstrings that need no file."""


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    module = importlib.import_module(name)
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner(verbose=False)
    shown: list[str] = []
    for example in finder.find(module, name):
        runner.run(example, out=shown.append)
    assert runner.tries > 0
    assert not runner.failures, "".join(shown)


def test_examples_are_found() -> None:
    assert len(MODULES) > 60
