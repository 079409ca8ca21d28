"""Two audits compared: on tables so small that every number is known by reasoning, and on whatever should be refused.

In most of them 23 people, a number that is published as it is, are young or old, rounded to multiples of 5. Published as
10 and 5 they must be 14 and 9: both at the ends of what is possible (proved). Published as 15 and 10 they are most likely
14 and 9, with a probability of 0.64 / 2.72 = 0.235 (likely at a threshold of 0.232). Published as 10 and 10 the likeliest is
12 and 11, or 11 and 12, with 0.48 / 2.08 = 0.231 (open).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from unround import simulate
from unround.differences import diff
from unround.errors import InputError
from unround.job import AuditFolder, audit
from unround.options import AuditOptions
from unround.tables import read
from unround.tables.frames import from_frame
from unround.tables.hierarchy import with_areas

from .conftest import Run

PROVED, LIKELY, OPEN = (23, 10, 5), (23, 15, 10), (23, 10, 10)
ONES = (2, 5, 5)
"""Two people of whom one is young and one old: proved."""

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that audits a table of areas with all, young and old, and returns the folder."""

    def call(name: str, areas: dict[str, tuple[int, ...]], *, threshold: float = 0.232, **keys: Any) -> Path:
        columns = keys.pop("columns", ("all", "young", "old"))
        rows = [{"town": town, **dict(zip(columns, counts, strict=True))} for town, counts in areas.items()]
        given = {"sums": {"all": ["young", "old"]}, "exact": ["all"], "mechanism": "rounding:5"} | keys
        release = from_frame(pl.DataFrame(rows), area="town", **given)
        audit(release, tmp_path / name, AuditOptions(threshold=threshold, prior="flat"))
        return tmp_path / name

    return call


def told(before: Path, after: Path) -> dict[str, Any]:
    return diff(before, after).to_json()


def kinds(proved: int = 0, conditional: int = 0, likely: int = 0) -> dict[str, int]:
    return {"proved": proved, "conditional": conditional, "likely": likely}


BEFORE = {
    "same": PROVED,
    "raised": LIKELY,
    "found": OPEN,
    "guessed": OPEN,
    "weaker": PROVED,
    "lost": PROVED,
    "left": PROVED,
    "still": LIKELY,
}
AFTER = {
    "same": PROVED,
    "raised": PROVED,
    "found": PROVED,
    "guessed": LIKELY,
    "weaker": LIKELY,
    "lost": OPEN,
    "still": LIKELY,
    "came": PROVED,
    "small": ONES,
}


def test_every_number_of_a_small_comparison(make: Make) -> None:
    report = told(make("before", BEFORE), make("after", AFTER))
    # raised, found and came: 14 and 9 each; small: 1 and 1.
    assert report["newly"] == kinds(proved=8, likely=2)
    assert report["newly_of_known_cells"] == kinds(proved=4, likely=2)
    assert report["newly_of_new_cells"] == kinds(proved=4)
    assert report["lost"] == kinds(proved=4)
    assert report["lost_because"] == {
        "published_exactly": kinds(),
        "not_in_after": kinds(proved=2),
        "no_longer_follows": kinds(proved=2),
    }
    assert report["weaker"] == kinds(likely=2)
    assert report["unchanged"] == kinds(proved=2, likely=2)
    assert report["other_value"] == report["proved_otherwise"] == report["now_published_exactly"] == 0
    assert report["transitions"] == {
        "none": {"likely": 2, "conditional": 0, "proved": 6},
        "likely": {"none": 0, "likely": 2, "conditional": 0, "proved": 2},
        "conditional": {"none": 0, "likely": 0, "conditional": 0, "proved": 0},
        "proved": {"none": 4, "likely": 2, "conditional": 0, "proved": 2},
    }
    sizes = {name: (row["newly"], row["lost"]) for name, row in report["by_value"].items()}
    assert list(sizes) == ["1-2", "3-9", "10+", "0"]
    assert sizes["1-2"] == (kinds(proved=2), kinds())
    assert sizes["3-9"] == (kinds(proved=3, likely=1), kinds(proved=2))
    assert sizes["0"] == (kinds(), kinds())
    assert sizes["10+"] == (kinds(proved=3, likely=1), kinds(proved=2))
    assert report["by_area_size"]["0-99"]["newly"] == kinds(proved=8, likely=2)
    assert sum(row["small"]["proved"] for row in report["by_block"].values()) == 2
    assert sum(row["newly"]["proved"] for row in report["by_block"].values()) == 8
    assert report["matched"] == {
        "areas_in_both": 7,
        "areas_only_before": 1,
        "areas_only_after": 2,
        "counts_in_both": 3,
        "counts_only_before": [],
        "counts_only_after": [],
        "counts_published_again": [],
    }
    assert report["differences"] == []


def test_what_matters_most_comes_first(make: Make) -> None:
    first = told(make("before", BEFORE), make("after", AFTER))["strongest"]
    assert [(row["area"]["town"], row["key"], row["value"], row["kind"]) for row in first[:4]] == [
        ("small", "young", 1, "proved"),
        ("small", "old", 1, "proved"),
        ("came", "old", 9, "proved"),
        ("found", "old", 9, "proved"),
    ]
    raised = next(row for row in first if row["area"]["town"] == "raised" and row["key"] == "young")
    assert raised["before"]["kind"] == "likely"
    assert raised["before"]["probability"] == pytest.approx(0.64 / 2.72)
    assert (raised["value"], raised["published"], raised["published_before"]) == (14, 10, True)
    assert first[-1]["kind"] == "likely"


def test_an_audit_compared_with_itself_changes_nothing(make: Make) -> None:
    folder = make("one", BEFORE)
    report = told(folder, folder)
    assert report["newly"] == report["lost"] == report["weaker"] == kinds()
    assert report["unchanged"] == {kind: AuditFolder.open(folder).summary[kind] for kind in kinds()}
    assert report["strongest"] == []


def test_a_count_that_is_published_twice_counts_once(make: Make) -> None:
    towns = [f"town {k}" for k in range(40)]
    before = make("before", dict.fromkeys(towns, OPEN))
    twice = {town: (*OPEN, 15 if k % 3 else 10) for k, town in enumerate(towns)}
    after = make(
        "after",
        twice,
        columns=("all", "young", "old", "again"),
        sums=[{"total": "all", "parts": ["young", "old"]}, {"total": "again", "parts": ["young"]}],
    )
    report = told(before, after)
    assert report["matched"]["counts_in_both"] == 3
    assert report["matched"]["counts_only_after"] == []
    assert report["matched"]["counts_published_again"] == ["young"]
    # Two numbers for the young make them, and so the old, likely: two claims an area, not three.
    summary = AuditFolder.open(after).summary
    claimed = sum(summary[kind] for kind in kinds())
    assert claimed > sum(report["newly"].values()) > 0
    assert sum(report["newly"].values()) == sum(report["after"]["counts"].values()) <= 80


def test_a_count_that_is_laid_open_is_no_relief(make: Make, run: Run) -> None:
    before = make("before", {"a": PROVED, "b": OPEN})
    after = make("after", {"a": (23, 14, 5), "b": (23, 11, 10)}, exact=["all", "young"])
    report = told(before, after)
    assert report["now_published_exactly"] == 2
    assert report["lost_because"]["published_exactly"] == kinds(proved=1)
    assert report["newly"]["proved"] == 1  # the old of b: one part under an exact total
    assert [difference["what"] for difference in report["differences"]] == ["mechanism"]
    shown = run("review", str(after), "--against", str(before)).out
    assert "2 counts that were protected before are now published unrounded" in shown


def test_two_proofs_that_cannot_both_be_are_told(make: Make, run: Run) -> None:
    before, after = make("before", {"a": PROVED}), make("after", {"a": (12, 15, 5)})
    report = told(before, after)
    assert report["proved_otherwise"] == 2  # 14 and 9; now 11 and 1
    assert report["other_value"] == 2
    assert "proved to be one number before and another after" in run("review", str(after), "--against", str(before)).out


def test_columns_of_one_side_are_named(make: Make) -> None:
    before = make("before", {"a": OPEN, "b": PROVED})
    after = make(
        "after",
        {"a": (*OPEN, 5, 5), "b": (*PROVED, 5, 5)},
        columns=("all", "young", "old", "infants", "pupils"),
        sums={"all": ["young", "old"], "young": ["infants", "pupils"]},
    )
    matched = told(before, after)["matched"]
    assert matched["counts_only_after"] == ["infants", "pupils"]
    assert told(after, before)["matched"]["counts_only_before"] == ["infants", "pupils"]


def test_other_options_are_told(make: Make, run: Run) -> None:
    before, after = make("before", {"a": LIKELY}), make("after", {"a": LIKELY}, threshold=0.5)
    report = told(before, after)
    assert report["lost"] == kinds(likely=2)
    (difference,) = report["differences"]
    assert (difference["what"], difference["before"], difference["after"]) == ("threshold", 0.232, 0.5)
    assert (
        "The audits differ in threshold (23.2% before, 50% after)" in run("review", str(after), "--against", str(before)).out
    )


def test_other_people_are_told(make: Make, run: Run) -> None:
    before, after = make("before", {"a": PROVED, "b": LIKELY}), make("after", {"a": PROVED, "b": (1024, 1015, 10)})
    (difference,) = told(before, after)["differences"]
    assert (difference["what"], difference["before"], difference["after"]) == ("unrounded counts", 23, 1024)
    assert "(23 before, 1,024 after): they differ in 1 of 2 areas" in " ".join(
        run("review", str(after), "--against", str(before)).out.split()
    )


def test_what_is_linked_in_one_audit_alone_is_told(tmp_path: Path) -> None:
    simulate(tmp_path / "census", areas=40, seed=3, levels="da,csd")
    release = with_areas(read(next((tmp_path / "census").glob("*_data.csv"))), tmp_path / "census" / "areas.csv")
    for name, link, rounding in (
        ("alone", False, "independent"),
        ("linked", True, "independent"),
        ("keyed", False, "auto"),
    ):
        audit(release, tmp_path / name, AuditOptions(prior="flat", link=link, rounding=rounding))
    (difference,) = told(tmp_path / "alone", tmp_path / "linked")["differences"]
    assert (difference["what"], difference["before"]) == ("the number of linked families of areas", 0)
    assert difference["after"] > 0
    assert told(tmp_path / "linked", tmp_path / "linked")["differences"] == []
    (difference,) = told(tmp_path / "alone", tmp_path / "keyed")["differences"]
    assert (difference["what"], difference["before"], difference["after"]) == ("rounding", "independent", "auto")


def test_the_terminal_and_json_say_the_same(make: Make, run: Run) -> None:
    before, after = make("before", BEFORE), make("after", AFTER)
    shown = run("review", str(after), "--against", str(before))
    assert shown.code == 0
    said = " ".join(shown.out.split())
    assert "10 counts are newly exposed, or exposed with more certainty than before: 8 proved and 2 likely," in said
    assert "among them counts of one or two: 2 proved. 4 claims are no longer made." in said
    assert "Claims that became stronger: 2 from likely to proved." in said
    assert "Only in the later audit: 2 areas." in said
    assert json.loads(run("review", str(after), "--against", str(before), "--json").out) == told(before, after)
    nothing = run("review", str(before), "--against", str(before)).out
    assert "Nothing is proved or likely that was not so before." in nothing


def test_the_report_gets_a_section(make: Make, run: Run) -> None:
    before, after = make("before", BEFORE), make("after", AFTER)
    assert not (after / "report.html").exists()
    assert "report.html" in run("review", str(after), "--against", str(before), "--report").out
    page, public = ((after / name).read_text("utf-8") for name in ("report.html", "report-public.html"))
    for text in (page, public):
        assert "What changed since before" in text
        assert "newly proved" in text
    assert "<bdi>raised</bdi>" in page
    assert "raised" not in public.replace("became", "")
    run("audit", str(after))
    assert "What changed since" not in (after / "report.html").read_text("utf-8")


def test_what_cannot_be_compared(make: Make, run: Run, tmp_path: Path) -> None:
    one = make("one", {"a": PROVED})
    others = make("others", {"x": PROVED})
    refused = run("review", str(others), "--against", str(one))
    assert refused.code == 2
    assert "no area in common: one has a …, the other x" in refused.err
    renamed = make("renamed", {"a": PROVED}, columns=("sum", "m", "f"), sums={"sum": ["m", "f"]}, exact=["sum"])
    with pytest.raises(InputError, match="no count in common: one has all, young, old, the other sum, m, f"):
        diff(one, renamed)
    with pytest.raises(InputError, match="there is no folder"):
        diff(one, tmp_path / "nowhere")
    release = from_frame(
        pl.DataFrame({"place": ["a"], "all": [23], "young": [10], "old": [5]}),
        area="place",
        sums={"all": ["young", "old"]},
        exact=["all"],
        mechanism="rounding:5",
    )
    audit(release, tmp_path / "placed", AuditOptions(prior="flat"))
    with pytest.raises(InputError, match=r"has rows by town, .* by place: .*same names"):
        diff(one, tmp_path / "placed")
