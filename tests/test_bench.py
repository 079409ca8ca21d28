"""What the benchmarks judge, keep and show: the arithmetic around the measurements, never a time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from bench import results, scale
from bench.row import Ratio, Time, interleaved
from bench.scale import PARTS, Run, family, stages, watched
from docs.speed_tables import PLACE, with_tables

PAGE = "before\n<!-- measured: {} -->\nold\n<!-- end -->\nafter\n"


def test_a_ratio_is_the_median_of_pairs_and_may_miss_by_a_quarter() -> None:
    """The second pair was slowed as a whole, which the ratio of each pair does not see."""
    row = Ratio("job", "baseline", [(10.0, 1.0), (80.0, 8.0), (9.0, 3.0)], aim=13)
    assert row.ratio == 10
    assert (row.theirs, row.ours) == (10.0, 3.0)
    assert not row.missed  # 9.75 would be too little
    assert Ratio("job", "baseline", row.pairs, aim=14).missed


def test_a_time_may_miss_by_a_quarter() -> None:
    assert not Time("job", [1.3, 0.1, 9.0], aim=1).missed
    assert Time("job", [1.4, 0.1, 9.0], aim=1).missed


def test_runs_take_turns() -> None:
    order: list[str] = []
    pairs = interleaved(lambda: order.append("theirs"), lambda: order.append("ours"), 3)
    assert order == ["theirs", "ours"] * 3
    assert len(pairs) == 3


def test_a_section_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    results.keep("bench", {"ratios": [1]}, file)
    results.keep("short", {"runs": []}, file)
    results.keep("bench", {"ratios": [2]}, file)
    kept = results.load(file)
    assert kept["bench"]["ratios"] == [2]
    assert kept["short"]["runs"] == []
    assert kept["bench"]["machine"]["cores"] >= 1
    assert set(kept["bench"]["machine"]["libraries"]) == set(results.LIBRARIES)


def test_tables_show_what_is_kept_and_what_was_missed(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    rows = [Ratio("quick", "slow", [(20_000.0, 1.0)], 10_000), Ratio("slow", "quick", [(0.001, 0.002)], 0.7)]
    run = Run("short", 1000, 1255, 6.3, 50.0, 75.0, 512.0, {"reading": 1.0, "auditing": 2.5})
    results.keep("bench", {"ratios": [row.to_json() for row in rows], "times": []}, file)
    runs = {"short": [run.__dict__], "joint": [run.__dict__] * 2, "growth": {"areas": [run.__dict__], "counts": []}}
    for part, measured in runs.items():
        results.keep(part, {"runs": measured}, file)
    kept = results.load(file)
    ratios = with_tables(PAGE.format("ratios"), kept)
    assert "| quick | slow | 2e+04 s | 1 s | **20,000×** | 10,000× |" in ratios
    assert "| 1 ms | 2 ms | **0.5×** | 0.7×, missed |" in ratios
    assert ratios.startswith("before\n")
    assert "old" not in ratios
    assert "| 1,000 | 6 MB | 50 s | 50 ms | 75 s | 1.50 | 512 MB |" in with_tables(PAGE.format("scale"), kept)
    assert with_tables(PAGE.format("joint"), kept).count("| 1,000 | 6 MB | 50 s |") == 2
    assert "| 1,255 | 1,000 | 6 MB | 50 s |" in with_tables(PAGE.format("growth"), kept)
    assert "| 1,000, short rows | 1.0 s | 2.5 s |" in with_tables(PAGE.format("stages"), kept)
    assert "Not measured yet." in with_tables(PAGE.format("ratios"), {})


def test_every_place_in_the_page_is_filled() -> None:
    """Every table of the pages shows all that is kept in the repository, line by line, and nothing that is not kept."""
    kept = results.load()
    scale = {part: kept[part]["runs"] for part in PARTS}
    lines = {
        "bench": 0,
        "ratios": len(kept["bench"]["ratios"]),
        "times": len(kept["bench"]["times"]),
        "limits": len(kept["bench"].get("limits", ())),
        "scale": len(scale["short"]),
        "stages": len(scale["short"]) + len(scale["joint"]),
        "joint": len(scale["joint"]),
        "linked": 2,
        "growth": len(scale["growth"]["areas"]) + len(scale["growth"]["counts"]),
        "cluster": 2,
        "censuses": 2,
    }
    pages = [(Path(__file__).parents[1] / "docs" / name).read_text(encoding="utf-8") for name in ("speed.md", "scale.md")]
    places = {place[2]: place[0] for page in pages for place in PLACE.finditer(page)}
    assert places.keys() == lines.keys()
    rows = {name: cells(place) for name, place in places.items()}
    assert {name: len(line) for name, line in rows.items()} == lines
    for name, place in places.items():
        assert place == with_tables(place, kept)
        assert "Not measured yet." not in place
        assert all(row[-1] for row in rows[name])
    machine = kept["bench"]["machine"]
    assert f"{machine['cores']} cores of {machine['cpu']}" in places["bench"]
    assert [row[0] for row in rows["times"]] == [one["job"] for one in kept["bench"]["times"]]
    assert [row[0] for row in rows["ratios"]] == [one["job"] for one in kept["bench"]["ratios"]]
    shown = [float(row[4].strip("*×").replace(",", "")) for row in rows["ratios"]]
    assert shown == pytest.approx([one["ratio"] for one in kept["bench"]["ratios"]], rel=0.05)
    assert [row[0] for row in rows["scale"]] == [f"{one['areas']:,}" for one in scale["short"]]


def cells(place: str) -> list[list[str]]:
    """Return the cells of a table in Markdown, without its heads."""
    lines = [line for line in place.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[1:]]


def test_stages_come_from_the_run_or_else_from_the_summary(tmp_path: Path) -> None:
    assert stages(tmp_path) == {}
    (tmp_path / "summary.json").write_text(json.dumps({"seconds": {"reading": 1.234}}), encoding="utf-8")
    assert stages(tmp_path) == {"reading": 1.23}
    (tmp_path / "run.json").write_text(json.dumps({"seconds": {"reading": 2.0, "auditing": 3.0}}), encoding="utf-8")
    assert stages(tmp_path) == {"reading": 2.0, "auditing": 3.0}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_and_time_of_workers_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that starts another one: both are looked at, and what both did is added up."""
    seen, large, held = tmp_path / "seen", set[int](), scale._held

    def looked_at(process: int) -> int:
        memory = held(process)
        if memory > 60e6:
            large.add(process)
        if len(large) > 1:
            seen.touch()
        return memory

    monkeypatch.setattr(scale, "_held", looked_at)
    waiting = f"while not os.path.exists({str(seen)!r}): time.sleep(0.01)"  # however long it is before anybody looks
    child = f"x = bytearray(60_000_000); import os, time; time.sleep(0.8)\n{waiting}\nsum(range(3_000_000))"
    code = (
        f"import subprocess, sys; y = bytearray(60_000_000); subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    )
    wall, cpu, peak = watched([sys.executable, "-c", code], tmp_path / "output.txt")
    assert wall > 0.8
    assert 0 < cpu < wall + 1
    assert peak > 120e6
    assert family(1)[0] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_run_that_fails_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"ended with 3:\nno such thing"):
        watched([sys.executable, "-c", "print('no such thing'); raise SystemExit(3)"], tmp_path / "output.txt")
