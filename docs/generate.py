"""Write the generated parts of the documentation again.

They are the outputs in the README and other pages, the reference of the command line, the account of the paper, the tables
of what `make bench` and `make scale` measured, and what the notebooks show.

`make docs` runs this; `tests/test_docs.py` fails when a page lags behind the code.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

from bench import results
from research.__main__ import COMMANDS as RESEARCH
from research.__main__ import app as research

from docs.growth_figures import growth_plot
from docs.panels import svg
from docs.speed_tables import with_tables
from unround.cli import COMMANDS as FUNCTIONS
from unround.cli import app, voice
from unround.cli import run as unround_command

ROOT = Path(__file__).parents[1]
COMMANDS = tuple(command.name for command in FUNCTIONS)
RESEARCHES = tuple(f"python -m research {command.name}" for commands in RESEARCH.values() for command in commands)

CONSOLE_PAGES = (
    *("solve", "mechanisms", "tables", "describe", "audit", "checks", "cellkeys", "users"),
    *("linked", "protect", "reconcile", "compare", "calibration", "reconstruct", "notebook"),
)
MEASURED_PAGES = ("speed", "scale")

CONSOLE = re.compile(r"```console\n(.*?)```\n", re.DOTALL)
PYTHON = re.compile(r"```python\n(.*?)```\n\n```text\n.*?```\n", re.DOTALL)


@contextlib.contextmanager
def reader() -> Iterator[Path]:
    """Lend a folder like the one that a reader stands in, with the examples; what commands write there goes away."""
    with tempfile.TemporaryDirectory(prefix="unround-docs-") as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        yield Path(folder)


def run(command: str, folder: Path = ROOT) -> str:
    """Run a command as the README shows it, in a folder with the examples, 100 columns wide and without colours.

    It runs in this process: a new one for every command would spend most of its time on starting.
    """
    words = shlex.split(command)
    if words[:2] == ["python", "-m"] and words[2] == "research":
        words, commands = [" ".join(words[:3]), *words[3:]], research
    elif words[0] == "unround":
        commands = app
    else:
        raise ValueError(f"the docs show a command that is not unround: {command}")
    terminal = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    code: object = 0
    with (
        patch.dict(os.environ, terminal),
        patch.object(sys, "argv", words),
        patch.object(voice, "EVERY", 3600.0),  # signs of life are not what a reader is to see
        patch.object(sys.modules["__main__"], "__package__", None),  # or --help would show the name of this program
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            unround_command(commands)
        except SystemExit as stop:
            code = stop.code
    shown, complaint = _text(out), _text(err)
    if code not in (0, 1, None):
        raise RuntimeError(f"{command}: {complaint}")
    return "\n".join(line.rstrip() for line in (shown + complaint).strip("\n").splitlines())


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def filled(page: str) -> str:
    """Return a page with the output of every command and of every Python block as it is now."""

    def console(match: re.Match[str]) -> str:
        commands = [line[2:] for line in match[1].splitlines() if line.startswith("$ ")]
        return (
            "```console\n"
            + "\n\n".join(f"$ {command}\n{run(command, here)}".rstrip("\n") for command in commands)
            + "\n```\n"
        )

    def python(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.chdir(here):
            exec(compile(match[1], "<docs>", "exec"), {"__name__": "docs"})  # the docs' own code, from this repository
        return f"```python\n{match[1]}```\n\n```text\n{printed.getvalue()}```\n"

    with reader() as here:
        return PYTHON.sub(python, CONSOLE.sub(console, page))


def reference() -> str:
    """Return the reference of the command line, made from what --help prints."""
    parts = [
        "# Command line reference",
        "*Reference.* Made from `unround --help` by `make docs`.",
        f"```text\n{run('unround --help')}\n```",
    ]
    for name in (*(f"unround {name}" for name in COMMANDS), *RESEARCHES):
        if name == RESEARCHES[0]:
            parts.append("The rest are scripts of the repository (`research`), which the installed package does not have.")
        parts.append(f"## {name}")
        parts.append(f"```text\n{run(f'{name} --help')}\n```")
    return "\n\n".join(parts) + "\n"


def pages() -> dict[Path, Callable[[], str]]:
    """Return every generated page, and what makes the text that it should have."""
    shown = (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in CONSOLE_PAGES))
    measured = (ROOT / "docs" / f"{name}.md" for name in MEASURED_PAGES)
    return {
        **{page: partial(_rewritten, page, filled) for page in shown},
        ROOT / "docs" / "cli.md": reference,
        **{page: partial(_rewritten, page, _measured) for page in measured},
        ROOT / "docs" / "figures" / "growth.svg": lambda: svg(growth_plot(results.load()["growth"]["runs"])),
    }


def _rewritten(page: Path, rewrite: Callable[[str], str]) -> str:
    return rewrite(page.read_text(encoding="utf-8"))


def _measured(page: str) -> str:
    return with_tables(page, results.load())


def main() -> None:
    """Write all pages; with --fresh, run the ten full-size experiments behind docs/paper.md again first."""
    from docs import notebooks
    from docs.paper_account import write_docs

    written = write_docs(ROOT / "docs", fresh="--fresh" in sys.argv[1:])
    for path, text in pages().items():
        path.write_text(text(), encoding="utf-8")
        written.append(path)
    written += notebooks.write()
    print(*(path.relative_to(ROOT) for path in written), sep="\n")


if __name__ == "__main__":
    main()
