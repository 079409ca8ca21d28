"""Write the generated parts of the documentation again.

They are the outputs in the README, the reference of the command line, the account of the paper, and the tables of what
`make bench` and `make scale` measured.

`make docs` runs this; `tests/test_docs.py` fails when a page lags behind the code.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import results

from docs.speed_tables import with_tables

ROOT = Path(__file__).parents[1]
COMMANDS = (
    "solve",
    "inspect",
    "check",
    "audit",
    "report",
    "explain",
    "serve",
    "diff",
    "whatif",
    "expect",
    "simulate",
    "protect",
    "compare",
    "calibrate",
    "paper",
)

CONSOLE = re.compile(r"```console\n(.*?)```\n", re.DOTALL)
PYTHON = re.compile(r"```python\n(.*?)```\n\n```text\n.*?```\n", re.DOTALL)


@contextlib.contextmanager
def reader() -> Iterator[Path]:
    """Lend a folder like the one that a reader stands in, with the examples; what commands write there goes away."""
    with tempfile.TemporaryDirectory(prefix="unround-docs-") as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        yield Path(folder)


def run(command: str, folder: Path = ROOT) -> str:
    """Run a command as the README shows it, in a folder with the examples, 100 columns wide and without colours."""
    words = shlex.split(command)
    if words[0] != "unround":
        raise ValueError(f"the docs show a command that is not unround: {command}")
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    program = [sys.executable, "-c", "import sys; sys.argv[0] = 'unround'; from unround.cli import main; main()", *words[1:]]
    done = subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{command}: {done.stderr}")
    return "\n".join(line.rstrip() for line in (done.stdout + done.stderr).strip("\n").splitlines())


def filled(page: str) -> str:
    """Return a page with the output of every command and of every Python block as it is now."""

    def console(match: re.Match[str]) -> str:
        commands = [line[2:] for line in match[1].splitlines() if line.startswith("$ ")]
        return "```console\n" + "\n\n".join(f"$ {command}\n{run(command, here)}" for command in commands) + "\n```\n"

    def python(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match[1], "<docs>", "exec"), {"__name__": "docs"})  # the docs' own code, from this repository
        return f"```python\n{match[1]}```\n\n```text\n{printed.getvalue()}```\n"

    with reader() as here:
        return PYTHON.sub(python, CONSOLE.sub(console, page))


def reference() -> str:
    """Return the reference of the command line, made from what --help prints."""
    parts = [
        "# Command line reference",
        "Made from `unround --help` by `make docs`.",
        f"```text\n{run('unround --help')}\n```",
    ]
    for name in COMMANDS:
        parts.append(f"## unround {name}")
        parts.append(f"```text\n{run(f'unround {name} --help')}\n```")
    return "\n\n".join(parts) + "\n"


def pages() -> dict[Path, str]:
    """Return every generated page with the text that it should have."""
    shown = [
        ROOT / "README.md",
        ROOT / "docs" / "solve.md",
        ROOT / "docs" / "audit.md",
        ROOT / "docs" / "checks.md",
        ROOT / "docs" / "linked.md",
        ROOT / "docs" / "protect.md",
        ROOT / "docs" / "compare.md",
    ]
    return {
        **{page: filled(page.read_text(encoding="utf-8")) for page in shown},
        ROOT / "docs" / "cli.md": reference(),
        **{
            page: with_tables(page.read_text(encoding="utf-8"), results.load())
            for page in (ROOT / "docs" / "speed.md", ROOT / "docs" / "scale.md")
        },
    }


def main() -> None:
    """Write all pages; with --fresh, run the ten full-size experiments behind docs/paper.md again first."""
    from docs.paper_account import write_docs

    written = write_docs(ROOT / "docs", fresh="--fresh" in sys.argv[1:])
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        written.append(path)
    print(*(path.relative_to(ROOT) for path in written), sep="\n")


if __name__ == "__main__":
    main()
