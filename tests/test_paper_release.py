"""The paper's searches on a release: the same as on the simulated census that it was written from, and by hand."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from research.commands import paper
from research.paper_document import release_searches
from research.searches import Finds, ReleaseSearches, experiment
from rich.console import Console

import unround
from unround.errors import InputError
from unround.show import show

AREAS, SEED = 700, 4


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unround.simulate(tmp_path_factory.mktemp("census"), areas=AREAS, seed=SEED, rows="short").files[0]


@pytest.fixture(scope="module")
def searched(census: Path) -> ReleaseSearches:
    return paper(release=census)


def shown(found: ReleaseSearches, width: int = 160) -> str:
    text = io.StringIO()
    show(release_searches(found), Console(file=text, width=width))
    return text.getvalue()


def test_it_finds_what_the_experiment_finds_in_the_same_census(searched: ReleaseSearches) -> None:
    run = experiment(AREAS, SEED, "short")
    for key in ("sex exact", "age exact", "age strong"):
        mine, theirs = searched[key], run[key]
        assert (mine.groups, mine.below, mine.above) == (theirs.groups, theirs.below, theirs.above)
        assert mine.uniform == theirs.uniform
    assert searched["sex exact"].groups > 600
    assert searched["sex exact"].found > 0
    # A few sums are too sparse to be believed from the data alone; the rest are the experiment's.
    for key in ("free exact", "free strong"):
        assert 0 < searched[key].groups <= run[key].groups
    assert searched["free strong"].groups > 0.8 * run["free strong"].groups
    assert all(one.impossible == 0 for one in searched.finds)


def test_the_sums_are_named(searched: ReleaseSearches) -> None:
    report = searched.to_json()
    assert report["exact"] == ["1"]
    by_key = {one["search"]: one for one in report["searches"]}
    assert by_key["sex exact"]["sums"] == [{"total": "1", "parts": ["8/men", "8/women"]}]
    assert by_key["age strong"]["sums"] == [{"total": "1", "parts": ["9", "13", "24"]}]
    assert by_key["free strong"]["predicted"]["low"] <= by_key["free strong"]["found"]
    assert by_key["sex exact"]["paper"] == {"groups": 61_010, "found": 285}
    assert json.loads(json.dumps(report)) == report


def table(rows: list[tuple[int, int, int]], folder: Path) -> Path:
    """Write populations, exact, with men and women, rounded."""
    lines = [
        (f"a{at}", sex, count)
        for at, counts in enumerate(rows)
        for sex, count in zip(("total", "men", "women"), counts, strict=True)
    ]
    pl.DataFrame(lines, schema=["region", "sex", "published"], orient="row").write_csv(folder / "table.csv")
    about = folder / "table.toml"
    about.write_text(
        'format = "tidy"\ndata = "table.csv"\nvalue = "published"\ndefault = "rounding:5"\n[[exact]]\nsex = ["total"]\n'
        '[axes.region]\n[axes.sex]\nsums = [{ total = "total", parts = ["men", "women"] }]\n'
    )
    return about


def test_by_hand(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    men, women = rng.integers(100, 400, (2, 400))
    plain = [(int(m + w), int(5 * round(m / 5)), int(5 * round(w / 5))) for m, w in zip(men, women, strict=True)]
    special = [
        (58, 25, 25),  # 8 short: found
        (42, 25, 25),  # 8 over: found
        (57, 25, 25),  # 7
        (18, 5, 5),  # 8, but values of 10 or less
        (18, 10, 15),  # −7
        (26, 10, 10),  # 10 is not over 10
    ]
    found = paper(release=table([*plain, *special], tmp_path))["sex exact"]
    assert (found.groups, found.below, found.above, found.impossible) == (403, 1, 1, 0)
    assert found.uniform.mean == pytest.approx(403 / 312.5)
    assert found.within is True


def test_what_rounding_cannot_produce_is_counted() -> None:
    one = Finds(unround_search("sex exact"), ((0, (1, 2)),))
    one.add(np.array([[60, 25, 25], [59, 25, 25], [58, 25, 25], [41, 25, 25], [-1, 25, 25]], dtype=np.int32))
    assert (one.groups, one.below, one.above, one.impossible) == (4, 1, 0, 3)
    four = Finds(unround_search("free exact"), ((0, (1, 2, 3, 4)),))
    assert four.farthest == 20
    four.add(np.array([[60, 20, 20, 20, 20], [55, 20, 20, 20, 20], [80, 20, 20, 20, 20]], dtype=np.int32))
    assert (four.groups, four.found, four.impossible) == (3, 1, 1)
    assert Finds(unround_search("free strong"), ()).within is None


def unround_search(key: str):
    from research.paper import SEARCHES

    return next(one for one in SEARCHES if one.key == key)


def test_it_says_what_was_found_and_what_could_not_be_looked_at(searched: ReleaseSearches, tmp_path: Path) -> None:
    said = shown(searched)
    assert "285 in 61,010" in said
    assert "Exact population: 1." in said
    assert "5 of 5 numbers are within the range." in said
    assert "from none to 2.4 times as many" in said
    rng = np.random.default_rng(2)
    men, women = rng.integers(30, 400, (2, 300))
    thirds = [(int(m + w) // 3 * 3, int(m) // 3 * 3, int(w) // 3 * 3) for m, w in zip(men, women, strict=True)]
    about = table(thirds, tmp_path)
    about.write_text(
        about.read_text().replace('default = "rounding:5"\n[[exact]]\nsex = ["total"]', 'default = "rounding:3"')
    )
    other = shown(paper(release=about))
    assert "No column of this release is rounded at random to base 5" in other
    assert "No population is published exactly" in other
    assert "within the range" not in other


def test_too_many_finds_are_out_of_range(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    men, women = 5 * rng.integers(20, 80, (2, 300))
    rows = [
        (int(m + w) + (8 if at % 10 == 0 else 0), int(m), int(w)) for at, (m, w) in enumerate(zip(men, women, strict=True))
    ]
    numbers_of_paper = paper(release=table(rows, tmp_path))
    assert numbers_of_paper["sex exact"].found == 30
    assert numbers_of_paper["sex exact"].within is False
    assert "Out of range: men and women under the exact population." in shown(numbers_of_paper)


def test_what_goes_with_what(census: Path) -> None:
    with pytest.raises(InputError, match="areas goes with simulate"):
        paper(release=census, areas=5)
    with pytest.raises(InputError, match="goes with release"):
        paper(describe="plan.toml")
