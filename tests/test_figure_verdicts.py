"""Rates, means and medians: read, judged by the data, simulated from true or published counts."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unround
from tests.test_structure import said
from unround import simulate
from unround.errors import InputError
from unround.figures import Figure, FigureGrid, FigureKind
from unround.release import AREA, FIGURE_ABSENT, FIGURE_UNIT, Block, Column, Release, What
from unround.show.check import figures_in_words
from unround.structure import JudgedFigure, Structure, find_structure
from unround.structure.figure_verdicts import find_grid, steps_of
from unround.tables import read
from unround.tables.draft import drafted
from unround.tables.labels import edges_of, finest
from unround.tables.profile import TableLine, as_figures, profile_lines, propose

AREAS, SEED = 420, 7
BULK = "98-401-X2021006_English_CSV_data.csv"


@pytest.fixture(scope="module")
def censuses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One census, with figures from true counts and from published ones."""
    folder = tmp_path_factory.mktemp("figures")
    for source in ("true", "published"):
        simulate(folder / source, areas=AREAS, seed=SEED, rows="income", figures=source)
    return {source: folder / source / BULK for source in ("true", "published")}


@pytest.fixture(scope="module")
def judged(censuses: dict[str, Path]) -> dict[str, tuple[Release, Structure]]:
    verdicts = {}
    for source, path in censuses.items():
        release = read(path)
        verdicts[source] = release, find_structure(release)
    return verdicts


def by_name(structure: Structure) -> dict[str, JudgedFigure]:
    return {figure.figure.name: figure for figure in structure.figures}


# Reading


def profile(*texts: str) -> list[TableLine]:
    return profile_lines((str(at), text) for at, text in enumerate(texts))


def test_rates_find_their_counts_by_labels_and_positions() -> None:
    lines = profile(
        "Total - LIM status for the population - 100% data", "  0 to 17 years", "    0 to 5 years", "  65 years and over",
        "In low income (LIM-AT)", "  0 to 17 years", "    0 to 5 years", "  65 years and over",
        "Prevalence of low income (LIM-AT) (%)", "  0 to 17 years (%)", "    0 to 5 years (%)", "  65 years and over (%)",
        "Total - Tenant households - 25% sample data", "  % of tenant households in subsidized housing",
        "Population percentage change",
    )  # fmt: skip
    proposals = {figure.name: figure for figure in propose(lines)}
    assert [(figure.name, figure.numerator, figure.universe) for figure in proposals.values()] == [
        ("8", "4", "0"), ("9", "5", "1"), ("10", "6", "2"), ("11", "7", "3"), ("13", "", "12"),
    ]  # fmt: skip
    assert proposals["13"].sampled
    assert not proposals["8"].sampled


def test_means_and_medians_find_groups_with_edges() -> None:
    lines = profile(
        "Total - Age groups of the population - 100% data", "  0 to 14 years", "    0 to 4 years", "    5 to 14 years",
        "  15 years and over", "Average age of the population", "Median age of the population",
        "Total - Income statistics in 2020 for the population - 100% data", "  Number of after-tax income recipients",
        "    Median after-tax income in 2020 among recipients ($)", "    Median market income in 2020 among recipients ($)",
        "Total - After-tax income groups in 2020 for the population - 100% data", "  With after-tax income",
        "    Under $10,000 (including loss)", "    $10,000 to $19,999", "    $20,000 and over",
        "Total - Income statistics for persons not in economic families", "  Median after-tax income in 2020 ($)",
    )  # fmt: skip
    proposals = {figure.name: figure for figure in propose(lines)}
    assert [group.count for group in proposals["5"].groups] == ["2", "3", "4"]
    assert (proposals["6"].kind, proposals["6"].universe) == (FigureKind.MEDIAN, "0")
    assert proposals["5"].groups[-1].high is None
    income = proposals["9"]
    assert (income.universe, [(g.low, g.high) for g in income.groups]) == (
        "12", [(None, 10_000), (10_000, 20_000), (20_000, None)],
    )  # fmt: skip
    assert (proposals["10"].universe, proposals["10"].groups) == ("8", ())
    assert (proposals["17"].universe, proposals["17"].groups) == ("16", ())  # of other people than the groups


def test_edges_and_gaps() -> None:
    assert edges_of("Widowed") is None
    assert edges_of("5 or more persons") == ("persons", 5, None)
    assert edges_of("5001 to 10000") == ("money", 5000, 10000)
    assert finest([("a", "0 to 4 years"), ("b", "10 years and over")], "years") == ()
    sizes = finest([(str(n), f"{n} persons") for n in (2, 3)] + [("4", "4 or more persons")], "persons")
    assert [(group.low, group.high) for group in sizes] == [(2, 2), (3, 3), (4, None)]


def test_values_are_exact_decimals_or_absent() -> None:
    text = pl.Series(["12.4", "0.1", "-3.25", "1e+05", "2.00001", "x", "", None, "99999999999999"])
    absent = FIGURE_ABSENT
    assert as_figures(text).tolist() == [124_000, 1_000, -32_500, 10**9, absent, absent, absent, absent, absent]
    signs = pl.Series(["", "x", "E"])
    assert as_figures(pl.Series(["0", "0", "5"]), signs).tolist() == [0, absent, 50_000]


def test_the_bulk_file_and_the_other_layouts_give_the_same_figures(censuses: dict[str, Path], tmp_path: Path) -> None:
    bulk = read(censuses["true"])
    rows = {row["CHARACTERISTIC_ID"] + row["DGUID"]: row for row in _lines(censuses["true"])}
    block = next(bulk.blocks())
    assert block.figures is not None
    for at, figure in enumerate(bulk.figures):
        number, _, sex = figure.name.partition("/")
        column = {"": "C1_COUNT_TOTAL", "men": "C2_COUNT_MEN+", "women": "C3_COUNT_WOMEN+"}[sex]
        for area in (0, 5, len(block.areas) - 1):
            text = rows[number + block.areas[AREA][area]][column]
            wanted = FIGURE_ABSENT if text == "" else int(Fraction(text) / FIGURE_UNIT)
            assert block.figures[area, at] == wanted
    simulate(tmp_path / "t", areas=AREAS, seed=SEED, format="tidy", rows="income")
    tidy = read(tmp_path / "t" / "release.toml")
    same = [figure.name for figure in bulk.figures if figure.universe]
    assert [figure.name for figure in tidy.figures] == same
    assert [(f.numerator, f.universe, f.groups) for f in tidy.figures] == [
        (f.numerator, f.universe, f.groups) for f in bulk.figures if f.universe
    ]
    places = [at for at, figure in enumerate(bulk.figures) if figure.universe]
    assert np.array_equal(_values(tidy), _values(bulk)[:, places])
    simulate(tmp_path / "w", areas=AREAS, seed=SEED, format="censusmapper", rows="income")
    wide = read(tmp_path / "w" / "censusmapper.csv")
    rate = next(at for at, figure in enumerate(wide.figures) if figure.name == "v_CA21_1040")
    assert wide.figures[rate].numerator == "v_CA21_1025"
    assert np.array_equal(_values(wide)[:, rate], _values(bulk)[:, [f.name for f in bulk.figures].index("345")])


def _lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="latin-1", newline="") as file:
        return [dict(zip(row, row.values(), strict=True)) for row in csv.DictReader(file)]


def _values(release: Release) -> np.ndarray:
    figures = [block.figures for block in release.blocks()]
    return np.concatenate([figure for figure in figures if figure is not None])


# Verdicts


def test_figures_from_published_counts_are_recomputable(judged: dict[str, tuple[Release, Structure]]) -> None:
    _, structure = judged["published"]
    found = Counter(figure.verdict for figure in structure.figures)
    assert found["evidence"] == 0
    assert {figure.figure.name for figure in structure.figures if figure.verdict == "unclear"} == {
        "77"
    }  # there are no groups for it
    rate = by_name(structure)["345"]
    assert rate.hits == rate.compared > 300
    assert rate.hits_by_chance < 0.2 * rate.compared
    assert not rate.is_evidence


def test_figures_from_true_counts_are_evidence(judged: dict[str, tuple[Release, Structure]]) -> None:
    _, structure = judged["true"]
    found = Counter(figure.verdict for figure in structure.figures)
    assert found["recomputable"] == 0
    assert found["evidence"] >= len(structure.figures) - 3
    for figure in structure.figures:
        if figure.is_evidence:
            assert figure.contradictions == 0
            assert figure.contradictions_by_chance > 0.02 * figure.areas
            assert figure.hits < 0.95 * figure.compared
    rate = by_name(structure)["345"]
    assert rate.left is not None
    assert rate.left[0] > 8.5
    assert rate.left[1] < 5


def test_no_step_is_taken_for_finer_than_it_is(
    censuses: dict[str, Path], judged: dict[str, tuple[Release, Structure]]
) -> None:
    """The true rate is never outside of what is left of it: whatever is inferred from a figure rests on this."""
    release, structure = judged["true"]
    truth = pl.read_parquet(censuses["true"].with_name("truth.parquet"))
    blocks = list(release.blocks())
    values, counts = _values(release), np.concatenate([block.counts for block in blocks])
    regions = pl.concat([block.areas for block in blocks])[AREA]
    tested = 0
    for at, one in enumerate(structure.figures):
        figure = one.figure
        if figure.kind is not FigureKind.RATE or not one.is_evidence:
            continue
        part, whole = (_true(truth, key, regions) for key in (figure.numerator, figure.universe))
        units = counts[:, release.index[figure.universe]].astype(np.int64)
        there = (values[:, at] != FIGURE_ABSENT) & (whole > 0)
        steps = steps_of(figure.grid, values[:, at], units)
        apart = np.abs(int(figure.per) * 10_000 * part - values[:, at] * whole)
        assert (2 * apart <= steps * whole)[there].all(), figure.name
        tested += int(there.sum())
    assert tested > 5_000


def _true(truth: pl.DataFrame, key: str, regions: pl.Series) -> np.ndarray:
    number, _, sex = key.partition("/")
    rows = truth.filter((pl.col("characteristic_id") == int(number)) & (pl.col("sex") == (sex or "total")))
    return regions.replace_strict(rows["region"], rows["true"], return_dtype=pl.Int64).to_numpy()


def test_verdicts_do_not_depend_on_the_order_of_areas(judged: dict[str, tuple[Release, Structure]]) -> None:
    release, structure = judged["true"]
    blocks = list(release.blocks())
    areas = pl.concat([block.areas for block in blocks])
    values, counts = _values(release), np.concatenate([block.counts for block in blocks])
    order = np.random.default_rng(1).permutation(len(areas))
    turned = [Block(areas[order], counts[order], values[order])]
    again = find_structure(release, turned)
    assert [figure.to_json() for figure in again.figures] == [figure.to_json() for figure in structure.figures]


def made(values: np.ndarray, counts: np.ndarray, *figures: Figure, keys: str = "xn") -> Release:
    areas = pl.DataFrame({AREA: [str(at) for at in range(len(counts))]})
    columns = tuple(Column(key, (key,), key) for key in keys)
    block = Block(areas, counts.astype(np.int32), values)
    return Release("made", "tidy", columns, ("what",), (AREA,), lambda _: [block], figures=figures)


def a_rate(areas: int = 400, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return true counts and their rates to one decimal."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(200, 900, areas)
    true = np.column_stack([rng.binomial(whole, rng.beta(4, 20, areas)), whole])
    return true, np.rint(1000 * true[:, 0] / true[:, 1]).astype(np.int64)[:, None] * 1_000


def published(true: np.ndarray, seed: int = 5) -> np.ndarray:
    return np.asarray(unround.mechanism("rounding:5").publish(true, np.random.default_rng(seed)))


RATE = Figure("r", FigureKind.RATE, "n", "x")


def test_placebos_samples_and_copies_are_not_evidence() -> None:
    true, values = a_rate()
    shown = published(true)
    (evidence,) = find_structure(made(values, shown, RATE)).figures
    assert (evidence.verdict, evidence.step) == ("evidence", Fraction(1, 10))
    (other,) = find_structure(made(np.roll(values, 7, axis=0), shown, RATE)).figures
    assert other.verdict == "unclear"
    assert "nor could true ones" in other.why
    (sampled,) = find_structure(made(values, shown, replace(RATE, sampled=True))).figures
    assert (sampled.verdict, sampled.is_evidence) == ("unclear", False)
    assert "sample" in sampled.why
    first, again = find_structure(made(np.hstack([values, values]), shown, RATE, replace(RATE, name="again"))).figures
    assert (first.verdict, again.verdict) == ("evidence", "unclear")
    assert "a figure counts once" in again.why
    (few,) = find_structure(made(values[:10], shown[:10], RATE)).figures
    assert (few.verdict, few.compared) == ("evidence", 10)
    (two,) = find_structure(made(values[:2], shown[:2], RATE)).figures
    assert two.why == "published for 2 areas only: too few to tell how it was computed."


def test_numbers_that_are_too_large_are_not_compared() -> None:
    true, values = a_rate(40)
    values[3] = 10**15
    (figure,) = find_structure(made(values, published(true) * 100_000, RATE)).figures
    assert "too large to be compared" in figure.why


def test_an_unlisted_numerator_is_revealed_or_not() -> None:
    true, values = a_rate()
    shown = published(true)
    rounded = np.rint(1000 * shown[:, 0] / np.maximum(shown[:, 1], 1)).astype(np.int64)[:, None] * 1_000
    bare = replace(RATE, numerator="", label="the share")
    (figure,) = find_structure(made(rounded, shown[:, 1:], bare, keys="n")).figures
    assert figure.verdict == "recomputable"
    assert figure.reveals == (f"the rounded count of 'the share', which is not listed, in {figure.hits} areas",)
    (figure,) = find_structure(made(values, shown[:, 1:], bare, keys="n")).figures
    assert (figure.verdict, figure.is_evidence, figure.reveals) == ("evidence", False, ())
    assert abs(figure.hits - figure.hits_by_chance) < 0.1 * figure.compared


def test_a_universe_may_be_the_difference_of_two_counts() -> None:
    true, _ = a_rate()
    rng = np.random.default_rng(8)
    outside = rng.binomial(true[:, 1], 0.2) + 20
    shown = published(np.column_stack([true[:, 0], true[:, 1] + outside, outside]))  # x, all, those who are not meant
    within = Figure("r", FigureKind.RATE, "", "x", within="a")

    def verdict(numbers: np.ndarray, figure: Figure) -> JudgedFigure:
        rate = np.rint(1000 * numbers[:, 0] / (numbers[:, 1] - numbers[:, 2])).astype(np.int64)[:, None] * 1_000
        (judged_figure,) = find_structure(made(rate, shown, figure, keys="xao")).figures
        return judged_figure

    rounded = verdict(shown, replace(within, outside="o"))
    assert (rounded.verdict, rounded.hits) == ("recomputable", rounded.compared)
    assert rounded.compared > 350
    assert verdict(shown, within).verdict == "unclear"  # nobody says who is not meant
    # From true counts it is evidence, but of a count that was not published: nothing is inferred.
    truth = np.column_stack([true[:, 0], true[:, 1] + outside, outside])
    true_rate = verdict(truth, replace(within, outside="o"))
    assert (true_rate.verdict, true_rate.contradictions, true_rate.is_evidence) == ("evidence", 0, False)
    assert true_rate.why.endswith("Its universe is not in the file, so nothing is inferred from it.")
    said = figures_in_words([rounded, true_rate])
    assert "1 computed from true counts (1 of them not used: the file lacks counts that they are of)" in said


# Grids


def test_grids_are_found_in_values() -> None:
    rng = np.random.default_rng(2)
    plain = np.rint(rng.uniform(1, 60, 3_000) * 10).astype(np.int64) * 1_000
    assert find_grid(plain) == FigureGrid.of(Fraction(1, 10))
    income = rng.lognormal(10.6, 0.3, 20_000)
    step = np.select([income < 16_000, income < 32_000, income < 64_000, income < 80_000], [100, 200, 400, 500], 1_000)
    values = (np.rint(income / step) * step).astype(np.int64) * 10_000
    grid = find_grid(values, rng.integers(100, 900, len(values)))
    steps = steps_of(grid, values, np.full(len(values), 900))
    assert (steps >= step * 10_000).all()
    assert np.mean(steps == step * 10_000) > 0.9
    one_by_one = [grid.step(Fraction(int(value), 10_000), 900) for value in values[:300]]
    assert one_by_one == [Fraction(int(step), 10_000) for step in steps[:300]]


def test_a_value_tells_which_steps_it_cannot_have() -> None:
    grid = FigureGrid(((Fraction(0), Fraction(1)),), nested=True)
    finer = FigureGrid(grid.steps, ((100, ((Fraction(0), Fraction(1, 10)),)),), nested=True)
    assert [str(finer.step(Fraction(text), 500)) for text in ("0", "12.5")] == ["1", "1/10"]
    assert steps_of(finer, np.array([0, 125_000]), np.array([500, 500])).tolist() == [10_000, 1_000]
    assert [str(grid.step(Fraction(text))) for text in ("12.4", "12.5", "13", "12.43")] == ["2/5", "1/2", "1", "1/100"]
    assert str(grid.step(Fraction(1, 3))) == "1/10000"  # a multiple of nothing


# What the user says


def test_a_description_says_what_figures_are_of(tmp_path: Path) -> None:
    true, values = a_rate(60)
    shown = published(true)
    rows = [
        (str(area), code, str(number))
        for area in range(60)
        for code, number in (("poor", shown[area, 0]), ("all", shown[area, 1]), ("share", values[area, 0] / 10_000))
    ]
    table = pl.DataFrame(rows, schema=["area", "what", "n"], orient="row")
    table.write_csv(tmp_path / "t.csv")
    text = 'value = "n"\ndata = "t.csv"\n[axes.area]\n[axes.what]\n[[figures]]\ncolumn = "share"\nkind = "rate"\n'
    toml = tmp_path / "t.toml"
    toml.write_text(f'{text}numerator = "poor"\nuniverse = "all"\nstep = 0.1\n', encoding="utf-8")
    release = read(toml)
    assert [column.key for column in release.columns] == ["poor", "all"]
    (figure,) = release.figures
    assert (figure.counts, figure.declared, figure.grid) == (("poor", "all"), True, FigureGrid.of(Fraction(1, 10)))
    assert np.array_equal(_values(release), values)
    for wrong, words in (
        (
            'numerator = "pour"\nuniverse = "all"\n',
            "which is not a column of counts of this table. Did you mean 'poor'",
        ),
        ('universe = "all"\nsteps = 1\n', "there is no key 'steps' in \\[\\[figures\\]\\]"),
        ('universe = "all"\nstep = 0.00001\n', "step must be above 0, with at most four decimals"),
        ('universe = "all"\ngroups = [{ count = "poor", low = 5, high = 1 }]\n', "ends below its beginning"),
    ):
        toml.write_text(text + wrong, encoding="utf-8")
        with pytest.raises(InputError, match=words):
            read(toml)
    toml.write_text(text.replace('"rate"', '"ratio"'), encoding="utf-8")
    with pytest.raises(InputError, match="must be rate, mean or median, not 'ratio'"):
        read(toml)


def test_a_plan_overrules(judged: dict[str, tuple[Release, Structure]]) -> None:
    release, structure = judged["true"]
    same = find_structure(said(release, drafted(release, structure)))
    assert [figure.verdict for figure in same.figures] == [figure.verdict for figure in structure.figures]
    plan = said(release, '[[figures]]\nuse = false\ncolumns = ["345", "346"]\n', where="p.toml")
    assert [(figure.place, figure.what) for figure in plan.account[-2:]] == [
        (f"figure {key}", What.UNKNOWN) for key in ("345", "346")
    ]
    named = by_name(find_structure(plan))
    assert named["345"].verdict == "unclear"
    assert named["345"].why.startswith("left out by p.toml; the data suggest: not from published counts")
    assert named["347"].verdict == "evidence"
    of_others = '[[figures]]\ncolumn = "345"\nkind = "rate"\nnumerator = "355"\nuniverse = "350"\n'
    named = by_name(find_structure(said(release, of_others)))
    assert named["345"].figure.numerator == "355"
    for text, words in (
        ('columns = ["9999"]\nuse = true', "there is no rate, mean or median '9999'"),
        ('column = "345"\nkind = "rate"\nnumerator = "0"', "there is no count '0'"),
        ('columns = ["345"]\nkind = "rate"', "to say what a figure is of, write column"),
        ('columns = ["345"]', "say whether to use it"),
        ("columns = []", "columns is empty"),
        ('columns = ["345"]\nuse = 1', "use must be true or false"),
        ('column = "345"\nkind = "rate"\nhalf = 1', "there is no key 'half'"),
    ):
        with pytest.raises(InputError, match=words):
            said(release, f"[[figures]]\n{text}\n")


def test_recomputable_figures_stay_so_whatever_the_plan_says(judged: dict[str, tuple[Release, Structure]]) -> None:
    release, _ = judged["published"]
    plan = said(release, '[[figures]]\nuse = true\ncolumns = ["345"]\n')
    assert by_name(find_structure(plan))["345"].verdict == "recomputable"


# What is shown


def test_check_shows_verdicts(censuses: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from unround.show import show

    check = unround.check(censuses["true"]).fit
    figures = {figure["column"]: figure for figure in check.to_json()["figures"]}
    wanted = {"column", "kind", "numerator", "universe", "verdict", "step", "hits", "hits_by_chance", "contradictions"}
    assert wanted <= figures["345"].keys()
    assert (figures["345"]["numerator"], figures["345"]["universe"], figures["345"]["verdict"]) == ("340", "335", "evidence")
    show(check, Console(width=150))
    text = capsys.readouterr().out
    assert "What rates, means and medians tell" in text
    assert "computed from true counts" in text


def test_a_census_without_figures(tmp_path: Path) -> None:
    simulate(tmp_path, areas=60, seed=1, rows="short", figures="none")
    release = read(tmp_path / BULK)
    assert (_values(release) == FIGURE_ABSENT).all()
    assert "--figures none" in (tmp_path / "SIMULATED.txt").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="figures must be true, published or none, not 'some'"):
        simulate(tmp_path / "x", areas=60, seed=1, figures="some")


# What real releases show


def test_canada(census_data: Path) -> None:
    named = by_name(find_structure(read(census_data / "canada-2021-da-censusmapper.csv.gz")))
    subsidized = named["v_CA21_4314"]
    assert (subsidized.verdict, subsidized.hits, subsidized.compared) == ("recomputable", 4_576, 4_576)
    assert subsidized.reveals
    for rate in ("v_CA21_1040", "v_CA21_1085"):
        one = named[rate]
        assert (one.verdict, one.is_evidence) == ("evidence", False)
        assert abs(one.hits - one.hits_by_chance) < 0.02 * one.compared
        assert one.step == Fraction(2, 5)
    income = named["v_CA21_566"]
    assert (income.verdict, income.contradictions) == ("evidence", 0)
    assert income.excludes == pytest.approx(0.57, abs=0.02)
    steps = dict(income.figure.grid.by_units[-1][1])
    assert [steps[Fraction(start)] for start in (32_000, 64_000)] == [400, 500]
    assert named["v_CA21_4315"].verdict == "unclear"


def test_new_zealand(census_data: Path) -> None:
    structure = find_structure(read(census_data / "nz-2013-individual-sa2.csv.gz"))
    shares = [one for one in structure.figures if one.figure.kind is FigureKind.RATE]
    assert len(shares) == 38
    assert sum(bool(one.figure.outside) for one in shares) == 18  # out of those who worked today
    assert {one.verdict for one in shares} == {"recomputable"}
    assert sum(one.hits for one in shares) == sum(one.compared for one in shares) == 69_645
    for name in ("median_age_curp", "age_5_year_groups:by_sex_median_age_1_male_curp"):
        one = by_name(structure)[name]
        assert (one.verdict, one.step, one.contradictions) == ("evidence", Fraction(1, 10), 0)
