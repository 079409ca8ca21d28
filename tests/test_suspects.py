"""Data that are possible but absurd: how likely they are at most, and that nothing likely is claimed from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unround.audits import Model
from unround.audits.claims import HeldBecause
from unround.audits.suspects import LEVEL, _bound, chance_below, find_suspects
from unround.explanation.cell import explain
from unround.job import AuditFolder, audit
from unround.mechanisms import Exact, Mechanism, Rounding, Sample
from unround.options import AuditOptions
from unround.release import Column, Release
from unround.show.words import conclusion
from unround.tables.frames import from_frame

PARTS = [f"p{k:02}" for k in range(18)]


def published(areas: int = 300, seed: int = 4) -> pl.DataFrame:
    """Mostly empty categories, rounded to base 5 under an exact total."""
    rng = np.random.default_rng(seed)
    true = rng.poisson(rng.gamma(0.6, 8.0, (areas, len(PARTS))))
    down = true // 5 * 5
    shown = down + 5 * (rng.random(true.shape) < (true - down) / 5)
    return pl.DataFrame({"area": [f"A{k}" for k in range(areas)], "t": true.sum(1)} | dict(zip(PARTS, shown.T, strict=True)))


def as_release(frame: pl.DataFrame) -> Release:
    return from_frame(frame, area="area", sums={"t": PARTS}, mechanism="rounding:5", exact=["t"])


def absurd(frame: pl.DataFrame, area: str = "A7") -> pl.DataFrame:
    """Raise a total until its parts can only just add up to it."""
    most = pl.sum_horizontal(PARTS) + 4 * len(PARTS) - 1
    return frame.with_columns(t=pl.when(pl.col("area") == area).then(most).otherwise("t"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditFolder, AuditFolder]:
    place, frame = tmp_path_factory.mktemp("suspects"), published()
    listed = AuditOptions(zeros=True)
    return audit(as_release(frame), place / "sound", listed), audit(as_release(absurd(frame)), place / "absurd", listed)


@pytest.mark.parametrize("how", [Rounding(5), Rounding(3), Sample(5)])
@pytest.mark.parametrize("remainder", [None, 0, 1, 2, 3, 7])
@pytest.mark.parametrize("too_low", [False, True])
def test_the_bound_is_one_whatever_the_true_counts_are(how: Mechanism, remainder: int | None, too_low: bool) -> None:
    """Compared with the exact chance: of large counts with even remainders, and of small ones that are all alike."""
    parts, errors = 12, np.arange(-9, 10)
    true = 100 * how.base + np.arange(how.base) if remainder is None else np.array([remainder])  # type: ignore[attr-defined]
    one = how.likelihood(true[:, None] + errors, true[:, None]).mean(0)
    assert one.sum() == pytest.approx(1)
    law = np.array([1.0])
    for _ in range(parts):
        law = np.convolve(law, one)
    sums = np.arange(-9 * parts, 9 * parts + 1) * (-1 if too_low else 1)
    for far in range(1, 9 * parts, 7):
        exact = float(law[sums >= far].sum())
        bound = _bound([how] * parts, np.full(parts, remainder is None), far, too_low)
        assert exact <= bound * (1 + 1e-6) + 1e-12
    assert _bound([how] * parts, np.full(parts, remainder is None), 9 * parts, too_low) < 1e-6


def test_the_chance_allows_for_how_many_were_looked_at() -> None:
    assert chance_below(27_013, 36) == pytest.approx(LEVEL / 27_013 / 36)
    assert chance_below(0, 36) == chance_below(10, 0) == 0


def test_an_absurd_area_is_set_apart(folders: tuple[AuditFolder, AuditFolder]) -> None:
    sound, spoiled = folders
    assert sound.summary["suspect"] == {"areas": 0, "sums": 0, "level": LEVEL, "chance_below": LEVEL / 300}
    assert pl.read_csv(sound.path / "suspects.csv").is_empty()
    listed = pl.read_csv(spoiled.path / "suspects.csv").to_dicts()
    assert [suspect["area"] for suspect in listed] == ["A7"]
    assert listed[0]["published"] - listed[0]["parts_add_up_to"] == 4 * len(PARTS) - 1
    assert listed[0]["chance_at_most"] < LEVEL / 300
    assert spoiled.summary["suspect"]["areas"] == 1
    assert spoiled.summary["contradictions"] == 0, "it is possible"


def test_it_makes_no_likely_claims_and_says_so(folders: tuple[AuditFolder, AuditFolder]) -> None:
    spoiled = folders[1]
    assert spoiled.findings.filter(pl.col("kind") != "proved", area="A7").is_empty()
    held = spoiled.summary["held_back_because"][HeldBecause.SUSPECT.label]
    assert held["likely"] == spoiled.summary["held_back"]["likely"] >= 10
    explanation = explain(spoiled, "A7", PARTS[0])
    assert (explanation.kind, explanation.held_back) == ("open", "likely")
    assert "suspect" in conclusion(explanation)
    others = [folder.findings.filter(pl.col("area") != "A7")["value"].to_list() for folder in folders]
    assert others[0], "there must be something to compare"
    assert spoiled.summary["likely"] == spoiled.findings.filter(kind="likely").height


def test_suspects_do_not_depend_on_blocks(folders: tuple[AuditFolder, AuditFolder], tmp_path: Path) -> None:
    again = audit(as_release(absurd(published())), tmp_path / "again", AuditOptions(block=16, zeros=True))
    assert (again.path / "suspects.csv").read_bytes() == (folders[1].path / "suspects.csv").read_bytes()
    assert again.findings.equals(folders[1].findings)


def test_a_population_that_may_have_been_adjusted_is_let_off_by_as_much() -> None:
    columns = tuple(Column(key, (key,), key, "") for key in ("t", *PARTS))
    hows = (Exact(), *(Rounding(5) for _ in PARTS))
    model = Model.build(columns, hows, ((0, tuple(range(1, 19))),), ("layout",))
    counts = np.array([[45, *[0] * 18]], dtype=np.int32)
    active = np.ones((1, 1), dtype=bool)
    chances = [
        find_suspects(model, counts, np.full((1, 19), adjusted, dtype=np.int32), active, 0.9)[0].chance
        for adjusted in (0, 5)
    ]
    assert chances[0] < chances[1] < 1e-2
    assert find_suspects(model, counts, np.zeros((1, 19), dtype=np.int32), active, chances[0]) == ()


# -- claims under a mechanism that the data refute ---------------------------------------------------------------------


def refuted(frame: pl.DataFrame, areas: int) -> pl.DataFrame:
    """Make the total of some areas impossible."""
    wrong = pl.col("area").is_in([f"A{k}" for k in range(areas)])
    return frame.with_columns(t=pl.when(wrong).then(pl.col("t") + 500).otherwise("t"))


@pytest.mark.parametrize("wrong", [1, 12])
def test_likely_claims_are_held_back_where_the_mechanism_is_refuted(wrong: int, tmp_path: Path) -> None:
    """One impossible sum may be a typing error; a dozen are not."""
    release = as_release(refuted(published(), wrong))
    folder = audit(release, tmp_path / "held")
    held = folder.summary["held_back_because"][HeldBecause.MECHANISM.label]["likely"]
    if wrong == 1:
        assert (held, folder.summary["holding"]["refuted"]) == (0, [])
        assert folder.summary["likely"] > 0
        return
    assert folder.summary["check"]["verdict"] == "contradicts"
    assert folder.summary["likely"] == 0
    assert len(folder.summary["holding"]["refuted"]) == 1 + len(PARTS)
    asked = audit(release, tmp_path / "asked", AuditOptions(doubtful=True, zeros=True))
    assert asked.summary["likely"] == held > 0
    row = asked.findings.row(0, named=True)
    explanation = explain(folder, row["area"], row["column"])
    assert (explanation.kind, explanation.held_back) == ("open", "likely")
    assert "contradict the mechanism" in conclusion(explanation)
