"""Tables that other tools protected: statuses of sdcTable and τ-ARGUS, JJ files, and folders that ACRO finalised."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import unround
from unround.errors import InputError

CELLS = {0: 100, 1: 60, 2: 40, 3: 30, 4: 30, 5: 20, 6: 20, 7: 50, 8: 50}
SUMS = [(0, (1, 2)), (1, (3, 4)), (2, (5, 6)), (0, (7, 8)), (7, (3, 5)), (8, (4, 6))]


def jj(hidden: dict[int, str]) -> str:
    cells = [f"{at} {count} {count} {hidden.get(at, 's')} 0 100 0 0 0" for at, count in CELLS.items()]
    sums = [f"0 {1 + len(parts)} : {total} (-1) " + " ".join(f"{at} (1)" for at in parts) for total, parts in SUMS]
    return "\n".join(["0", str(len(cells)), *cells, str(len(sums)), *sums])


def feasible(hidden: dict[int, str]) -> dict[int, tuple[int, int]]:
    """Go through all tables: the least and the greatest value of every hidden cell."""
    fits = []
    for count in range(101):  # one unknown is free, the others follow from the sums
        guess = {3: count, 4: 60 - count, 5: 50 - count, 6: count - 10}
        table = {at: guess[at] if at in hidden else printed for at, printed in CELLS.items()}
        if all(0 <= table[at] <= 100 for at in hidden) and all(table[a] == sum(table[b] for b in c) for a, c in SUMS):
            fits.append(table)
    return {at: (min(table[at] for table in fits), max(table[at] for table in fits)) for at in hidden}


@pytest.mark.parametrize(
    ("hidden", "decision"),
    [({3: "u", 4: "m", 5: "m", 6: "m"}, "publish"), ({3: "u", 4: "m"}, "stop")],
    ids=["a complete pattern", "a hole"],
)
def test_a_jj_file_gets_its_feasibility_intervals(tmp_path: Path, hidden: dict[int, str], decision: str) -> None:
    file = tmp_path / "table.jj"
    file.write_text(jj(hidden), encoding="utf-8")
    review = unround.review(file, out=tmp_path / "review", repairs=[])
    assert review.decision == decision
    ranges = pl.read_parquet(tmp_path / "review" / "audit" / "hidden.parquet")
    rows = {int(cell): (low, high) for cell, low, high in ranges.select("cell", "low", "high").rows()}
    assert rows == feasible(hidden)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (jj({}).replace("5 (1)", "5 (2)"), "is not a total and its parts"),
        (jj({}).replace("5 20 20", "5 20.5 20"), "a count is a whole number"),
        ("0\nmany\n", "is not a JJ file"),
    ],
)
def test_a_jj_file_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "table.jj"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        unround.read(file)


STATUSES = """region,sex,freq,sdcStatus
Total,Total,100,s
Total,M,60,s
Total,F,40,s
A,Total,50,s
A,M,23,u
A,F,27,x
B,Total,30,s
B,M,25,s
B,F,5,s
C,Total,20,s
C,M,12,{0}
C,F,8,{0}
"""


@pytest.mark.parametrize(("others", "ranges"), [("x", {(15, 35), (0, 20)}), ("s", {(23, 23), (27, 27)})])
def test_counts_that_sdctable_hides_are_hidden(tmp_path: Path, others: str, ranges: set[tuple[int, int]]) -> None:
    file = tmp_path / "protected.csv"
    file.write_text(STATUSES.format(others), encoding="utf-8")
    review = unround.review(file, out=tmp_path / "review", mechanism="exact", repairs=[])
    assert review.decision == ("publish" if others == "x" else "stop")
    hidden = pl.read_parquet(tmp_path / "review" / "audit" / "hidden.parquet")
    assert set(hidden.select("low", "high").rows()) == ranges


ACRO = Path(__file__).parent / "acro"


def true_count(cell: str) -> int:
    """Count the records of a cell such as “output_2: North / R/G / Men” in the truth."""
    truth, codes = pl.read_csv(ACRO / "truth.csv"), cell.split(": ", 1)[1].split(" / ")
    for code in codes:
        truth = truth.filter(pl.any_horizontal(pl.col("region", "grant", "sex") == code))
    return int(truth["count"].sum())


def test_what_outputs_of_acro_give_away_together(tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in (ACRO / "leaky").iterdir()}
    review = unround.review(ACRO / "leaky", out=tmp_path / "review", repairs=[])
    report = review.to_json()
    decisions = {table["name"]: table["decision"] for table in report["tables"]}
    assert decisions == {"output_0": "publish", "output_1": "publish", "output_2": "publish", "together": "stop"}
    assert [entry["what"] for entry in report["unsettled"]] == ["together|output_3"]  # means: not looked at
    assert {cell["claim"] for cell in report["cells"]} == {"conditional"}  # on that all outputs count the same records
    proved = {cell["key"]: cell["value"] for cell in report["cells"]}
    assert len(proved) == 15
    assert "output_0: East / R/G" in proved
    assert proved == {cell: true_count(cell) for cell in proved}
    assert {path: path.read_bytes() for path in (ACRO / "leaky").iterdir()} == before
    assert (tmp_path / "review" / "review.html").is_file()


@pytest.mark.parametrize("name", ["single", "rounded"])
def test_outputs_of_acro_that_give_nothing_away(name: str) -> None:
    assert unround.review(ACRO / name, repairs=[]).decision == "publish"


def test_a_folder_of_acro_is_not_changed_and_has_to_be_whole(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is changed in ACRO alone"):
        unround.review(ACRO / "single", out=tmp_path / "review", apply="hide")
    (tmp_path / "results.json").write_text('{"results": {"output_0": {"files": 3}}}', encoding="utf-8")
    with pytest.raises(InputError, match="is not a list of outputs as ACRO writes it"):
        unround.review(tmp_path)
