"""The notebooks of examples/ run, and what they keep is what they show; the lines of R name columns that are there."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from docs.notebooks import NOTEBOOKS, ROOT, Notebook, executed, load

import unround


def shown(notebook: Notebook) -> list[list[str]]:
    """Return what every cell of code shows, as far as it is ours: prints and cards."""
    outputs = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        outputs.append(
            ["".join(output.get("data", {}).get("text/html") or output.get("text") or []) for output in cell["outputs"]]
        )
    return outputs


def test_all_notebooks_are_known() -> None:
    assert sorted(NOTEBOOKS) == sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_run_and_show_what_they_keep(path: Path) -> None:
    notebook = load(path)
    now = executed(notebook)
    assert shown(now) == shown(notebook), f"{path.name} lags behind: run `make docs`"
    outputs = [text for texts in shown(now) for text in texts]
    assert all(outputs)  # nothing is shown as an empty output
    assert sum("<svg" in text for text in outputs) >= 3
    assert sum(text.startswith('<div class="unround">') for text in outputs) >= 4
    assert {cell["cell_type"] for cell in notebook["cells"]} == {"markdown", "code"}
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])


def test_the_lines_of_r_name_what_is_there(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8")
    lines = page.partition("```r\n")[2].partition("```")[0]
    assert len(lines.splitlines()) <= 12
    command = re.findall(r'"([^"]+)"', lines.partition("system2(")[2].partition("\n")[0])
    assert command == ["unround", "audit", "examples/survey.toml", "-o", "audit", "--estimates", "distributions", "--quiet"]
    folder = unround.audit(ROOT / "examples" / "survey.toml", tmp_path / "audit", estimates="distributions", prior="flat")
    written = {path.name for path in folder.path.iterdir()}
    assert set(re.findall(r'"audit/([\w.]+)"', lines)) == {"findings.parquet", "estimates.parquet"} <= written
    findings, estimates = folder.findings.columns, pl.read_parquet_schema(folder.path / "estimates.parquet")
    assert set(re.findall(r"count\(([\w, ]+)\)", lines)[0].split(", ")) <= set(findings)
    filtered = re.findall(r'(\w+) == "([^"]+)"', lines)
    assert len(filtered) == 3
    assert pl.read_parquet(folder.path / "estimates.parquet").filter(**dict(filtered)).height == 1
    assert {"counts", "probabilities"} <= set(estimates)
