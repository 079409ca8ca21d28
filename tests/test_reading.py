"""What people write into tables: flags, ranges, headings, notes; everything is read, or said not to be."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import unround


def test_ranges_in_place_of_counts_bound_them(tmp_path: Path) -> None:
    table = tmp_path / "draft.csv"
    rows = ["District,Total,Men,Women", *(f"D{n},{2 * n + 41},{n + 20},{n + 21}" for n in range(10)), "E1,8,<5,1-4"]
    table.write_text("\n".join(rows))
    audit = unround.audit(table, tmp_path / "audit", mechanism="exact")
    found = audit.findings.filter(pl.col("district") == "E1")
    assert sorted(found["low"].to_list()) == [4, 4]
