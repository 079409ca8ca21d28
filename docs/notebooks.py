"""Run the notebooks of examples/ and keep what their cells show: `make docs` does, and a test compares.

A cell is plain Python, so no kernel is needed: its code is run, and what its last line is worth is shown as Jupyter would.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
NOTEBOOKS = (EXAMPLES / "audit.ipynb",)

Notebook = dict[str, Any]


def load(path: Path) -> Notebook:
    """Read a notebook."""
    found: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return found


def executed(notebook: Notebook) -> Notebook:
    """Return a notebook with what its cells show now; it runs in a copy of examples/."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, number = [], 0
    with tempfile.TemporaryDirectory(prefix="unround-notebook-") as scratch:
        here = Path(scratch) / "examples"
        shutil.copytree(EXAMPLES, here, ignore=shutil.ignore_patterns("*.ipynb", "__pycache__"))
        with contextlib.chdir(here):
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    number += 1
                    shown = _outputs("".join(cell["source"]), names, number)
                    cell = {**cell, "execution_count": number, "outputs": shown}
                cells.append(cell)
    return {**notebook, "cells": cells}


def _outputs(code: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run a cell, and return what it prints and what its last line is worth."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)  # a notebook of this repository
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        shown = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": _data(value)}
        outputs.append(shown)
    return outputs


def _data(value: Any) -> dict[str, list[str]]:
    """Return what a notebook would show of a value."""
    html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    text = {"text/plain": _lines(repr(value))}
    return text if html is None else {"text/html": _lines(html), "text/plain": _lines(type(value).__name__)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def write() -> list[Path]:
    """Run all notebooks, and write them again."""
    for path in NOTEBOOKS:
        path.write_text(json.dumps(executed(load(path)), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return list(NOTEBOOKS)


if __name__ == "__main__":
    print(*write(), sep="\n")
