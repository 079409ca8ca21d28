"""Which table a column belongs to, what is documented of tables, and totals that only two tables together tell."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unround
from tests.test_structure import columns_of, release_of, rounded, said, verdict
from unround.errors import ArgumentError
from unround.mechanisms import Exact, Rounding, Sample, Unpublished, mechanism
from unround.release import SUPPRESSED, Proposal, Release
from unround.show import show
from unround.structure import declaring, find_structure
from unround.tables import read
from unround.tables.canada_2021 import AGED_15, PARTS, SAME, TABLES, documented, id_of, table_of, vector_of
from unround.tables.censusmapper import tables_by_title

RNG = np.random.default_rng


def censusmapper(path: Path, headers: list[str], counts: np.ndarray, exact: dict[str, np.ndarray] | None = None) -> Path:
    """Write a table as CensusMapper would."""
    frame = pl.DataFrame(
        {"GeoUID": [f"{59_000_000 + at}" for at in range(len(counts))], "Type": ["DA"] * len(counts)}
        | (exact or {})
        | {header: counts[:, at] for at, header in enumerate(headers)}
    )
    frame.write_csv(path)
    return path


def vectors(*ids: int, labels: dict[int, str] | None = None) -> list[str]:
    """Return the headers of characteristics of 2021."""
    return [f"v_CA21_{vector_of(number)}: {(labels or {}).get(number, f'line {number}')}, - Total" for number in ids]


def sums(release: Release) -> dict[tuple[str, tuple[str, ...]], Proposal]:
    key = [column.key for column in release.columns]
    return {(key[p.total], tuple(key[part] for part in p.parts)): p for p in release.proposals}


# --- what is documented ----------------------------------------------------------------------------------


def test_the_documentation_of_2021_agrees_with_itself() -> None:
    assert all(id_of(vector) == number for number in range(1, 2632) if (vector := vector_of(number)) is not None)
    found = [vector for number in range(1, 2632) if (vector := vector_of(number)) is not None]
    assert found == sorted(found)
    for total, parts in PARTS.items():
        assert len(set(parts)) == len(parts) > 1
        assert total == AGED_15 or {table_of(total)} == {table_of(part) for part in parts}
    inside = [part for total, parts in PARTS.items() if total != AGED_15 for part in parts]
    assert len(inside) == len(set(inside))
    listed = [one for group in SAME for one in group]
    assert len(listed) == len(set(listed))
    assert len(set(TABLES.values())) == len(TABLES)


def test_the_documented_vectors_have_the_labels_of_the_real_file(census_data: Path) -> None:
    import gzip

    def plain(text: str) -> str:
        return re.sub(r"\W|data", "", re.sub(r"\(\d+\)\s*$", "", text).lower())

    text = (census_data / "canada-2021-characteristics.txt").read_text(encoding="latin-1")
    names = {int(line.split("\t")[0]): plain(line.split("\t")[1]) for line in text.splitlines() if "\t" in line}
    with gzip.open(census_data / "canada-2021-da-censusmapper.csv.gz", "rt", encoding="utf-8") as file:
        header = next(csv.reader(file))
    checked = 0
    for name in header:
        if vector := re.fullmatch(r"v_CA21_(\d+): (.*), - Total", name):
            known, label = names[id_of(int(vector[1])) or 0], plain(vector[2])
            assert label in known or known in label
            checked += 1
    assert checked > 150


def test_every_real_canadian_column_stands_in_a_table(census_data: Path) -> None:
    for name, tables in (
        ("canada-2021-da-censusmapper.csv.gz", 23),
        ("canada-2021-fsa-selected.csv", 6),
        ("canada-2021-first-names.csv.gz", 1),
        ("canada-2021-vancouver-profile-page.csv", 90),
    ):
        blocks = {column.block for column in read(census_data / name).columns}
        assert "" not in blocks
        assert len(blocks) >= tables


def test_the_real_sums_are_documented_and_a_table_has_one_mechanism(census_data: Path) -> None:
    structure = find_structure(read(census_data / "canada-2021-da-censusmapper.csv.gz"))
    by_table: dict[str, set[str]] = {}
    for column, how in zip(structure.columns, structure.mechanisms, strict=True):
        if column.is_in_file and how is not None:
            by_table.setdefault(column.block, set()).add(how.name)
    assert all(len(kinds) == 1 for kinds in by_table.values())
    assert by_table["Religion - 25% sample data"] == {"sample:5"}
    assert by_table["Income recipients in 2020 - 100% data"] == {"rounding:5"}
    incomes = [f"v_CA21_{vector_of(number)}" for number in range(282, 298)]
    assert verdict(structure, "Households", *incomes).kept
    single = verdict(structure, "v_CA21_477", *(f"v_CA21_{vector_of(number)}" for number in range(67, 71)))
    assert single.kept
    assert single.origin == "names"
    hidden = verdict(structure, "v_CA21_453", "v_CA21_456", "v_CA21_477")
    assert hidden.kept
    assert hidden.areas > 26_000
    assert all(sum_.is_documented for sum_ in structure.sums)


# --- readers ---------------------------------------------------------------------------------------------


def test_ages_in_broad_groups_add_to_the_exact_population(tmp_path: Path) -> None:
    ages = {9: "0 to 14 years", 13: "15 to 64 years", 24: "65 years and over"}
    counts = np.array([[20, 85, 20], [30, 60, 10]])
    path = censusmapper(tmp_path / "t.csv", vectors(*ages, labels=ages), counts, {"Population": np.array([123, 101])})
    release = read(path)
    assert ("Population", ("v_CA21_11", "v_CA21_68", "v_CA21_251")) in sums(release)
    assert {column.block for column in release.columns} == {"Population and dwellings", "Age - 100% data"}


def test_income_groups_add_to_the_exact_households_and_men_to_men(tmp_path: Path) -> None:
    headers = vectors(*range(282, 298))
    path = censusmapper(tmp_path / "t.csv", headers, np.full((2, 16), 5), {"Households": np.array([80, 81])})
    assert ("Households", tuple(f"v_CA21_{945 + at}" for at in range(16))) in sums(read(path))
    sexes = [
        f"v_CA21_{(vector_of(number) or 0) + step}: {name}, - {sex}"
        for number, name in ((66, "Not married"), (67, "Never"), (68, "Separated"), (69, "Divorced"), (70, "Widowed"))
        for step, sex in enumerate(("Total", "Male", "Female"))
    ]
    sums_of_release = sums(read(censusmapper(tmp_path / "s.csv", sexes, np.full((2, 15), 5))))
    for ending in ("", "/men", "/women"):
        parts = tuple(f"v_CA21_{number}{ending}" for number in (480, 483, 486, 489))
        assert sums_of_release[f"v_CA21_477{ending}", parts].origin == "names"


def test_numbers_that_are_not_those_of_2021_are_read_by_their_names(tmp_path: Path) -> None:
    headers = ["v_CA21_14: 20 to 24 years", "v_CA21_480: Total - Religion", "v_CA21_481: None", "v_CA21_482: Some"]
    release = read(censusmapper(tmp_path / "t.csv", headers, np.full((2, 4), 5)))
    assert [column.block for column in release.columns] == ["Age", "Religion", "Religion", "Religion"]


def test_tables_of_other_censuses_are_told_by_titles_figures_and_gaps() -> None:
    lines = [
        (4, "0 to 14 years", True), (7, "15 years and over", True), (20, "Average age", False),
        (30, "Occupied private dwellings by structural type of dwelling data", True), (31, "Single-detached house", True),
        (300, "Household total income groups in 2015 for private households", True), (301, "Under $5,000", True),
        (302, "$5,000 and over", True), (330, "Total - Age", True), (331, "0 to 14 years", True),
        (401, "Median market income in 2015", False), (402, "Under $5,000", True), (403, "0 to 14 years", True),
        (490, "Total - Age", True), (900, "Under $5,000", True),
    ]  # fmt: skip
    dwellings = "Occupied private dwellings by structural type of dwelling data"
    incomes = "Household total income groups in 2015 for private households"
    assert tables_by_title(lines) == [
        "Age", "Age", "", dwellings, dwellings, incomes, incomes, incomes, "Age (2)", "Age (2)", "", "Under $5,000",
        "Age (3)", "Age (4)", "Under $5,000 (2)",
    ]  # fmt: skip


# --- totals that are not in the file ---------------------------------------------------------------------


def shared_total(areas: int, missing: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return true counts of two partitions of the same people, and their numbers; some are missing from the second."""
    rng = RNG(3)
    people = rng.poisson(400, areas)
    one = rng.multinomial(people, [0.5, 0.3, 0.2])
    two = rng.multinomial(rng.binomial(people, 1 - missing), [0.6, 0.4])
    return np.column_stack([one, two]), people


def with_hidden(counts: np.ndarray) -> Release:
    """Return a release of two partitions of three and two parts; their total is not published."""
    whole = columns_of("all", how=Unpublished())
    shown = np.column_stack([np.full(len(counts), SUPPRESSED), counts])
    proposals = [Proposal(0, (1, 2, 3), "universe", (4, 5)), Proposal(0, (4, 5), "universe", (1, 2, 3))]
    return release_of(shown, [*whole, *columns_of("a", "b", "c"), *columns_of("d", "e", block="Total - other")], proposals)


def test_two_partitions_of_a_hidden_total_are_verified_against_each_other() -> None:
    true, _ = shared_total(600)
    structure = find_structure(with_hidden(rounded(true, RNG(1))))
    assert set(structure.equations) == {(0, (1, 2, 3)), (0, (4, 5))}
    kept = verdict(structure, "all", "a", "b", "c")
    assert kept.areas == 600
    assert kept.against == (4, 5)
    assert kept.expected == pytest.approx(20**0.5, rel=0.05)  # five counts, each with a variance of 4
    rejected = find_structure(with_hidden(rounded(shared_total(600, missing=0.02)[0], RNG(1)))).rejected
    proposed = [one for one in rejected if one.origin == "universe"]
    assert len(proposed) == 2
    assert all("do not cover the total" in one.why or "include too much" in one.why for one in proposed)
    assert not any(one.is_documented for one in rejected)  # labels suggest these, and the others were only tried
    assert all(one.condition for one in rejected)


def test_a_plan_keeps_what_a_hidden_total_was_compared_with() -> None:
    true, _ = shared_total(600)
    release = with_hidden(rounded(true, RNG(1)))
    first = find_structure(release)
    again = find_structure(said(release, '[[sums]]\ntotal = "all"\nparts = ["d", "e"]\nuse = true\n'))
    assert set(again.equations) == set(first.equations)
    assert verdict(again, "all", "d", "e").against == (1, 2, 3)


def test_claims_through_a_hidden_total_are_proved(tmp_path: Path) -> None:
    """Three parts rounded up by 4 and two rounded down by 4 are as far apart as they can be: only one world fits."""
    rng = RNG(5)
    labels = {60: "Married", 61: "Common law", 66: "Single", 13: "15 to 64 years", 24: "65 years and over"}
    people = rng.poisson(500, 300)
    true = np.column_stack([rng.multinomial(people, [0.5, 0.1, 0.4]), rng.multinomial(people, [0.8, 0.2])])
    counts = rounded(true, rng)
    true[0], counts[0] = (301, 101, 191, 499, 94), (305, 105, 195, 495, 90)
    path = censusmapper(tmp_path / "t.csv", vectors(*labels, labels=labels), counts)
    assert [column.key for column in read(path).columns if not column.is_in_file] == ["v_CA21_453"]
    assert unround.check(path).to_json()["added_totals"] == ["v_CA21_453"]
    folder = unround.audit(path, tmp_path / "audit", prior="flat")
    rows = pl.read_csv(folder.path / "findings.csv").filter(pl.col("region") == 59_000_000)
    assert set(rows["kind"]) == {"proved"}
    values = dict(zip(rows["characteristic_id"], rows["value"], strict=True))
    expected = {f"v_CA21_{vector_of(number)}": value for number, value in zip(labels, true[0].tolist(), strict=True)}
    assert values == expected | {"v_CA21_453": 593}


# --- sums whose small counts lean ------------------------------------------------------------------------


def leaning(true: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Round to base 5, but publish most counts of 1 to 4 as 0."""
    shown = rounded(true, rng)
    return np.where((true < 5) & (rng.random(true.shape) < 0.7), 0, shown)


@pytest.mark.parametrize("missing", [False, True])
def test_small_counts_that_lean_are_told_from_a_part_that_is_missing(missing: bool) -> None:
    rng = RNG(7)
    size = rng.gamma(1.5, 1, (2_500, 1)) * 60
    true = rng.poisson(size * np.array([0.05, 0.04, 0.03, 0.06, 0.5, 1.0, 2.0, 0.04]))
    total = true.sum(1)
    parts = leaning(true, rng)[:, : 7 if missing else 8]
    columns = [*columns_of("all", how=Exact()), *columns_of(*(f"p{at}" for at in range(parts.shape[1])))]
    names = tuple(range(1, parts.shape[1] + 1))
    structure = find_structure(release_of(np.column_stack([total, parts]), columns, [Proposal(0, names, "names")]))
    (judged,) = [sum_ for sum_ in (*structure.sums, *structure.rejected) if sum_.parts == names]
    assert judged.mean > 1
    assert judged.kept is not missing
    assert ("small parts are published" in judged.why) is not missing
    verified = find_structure(release_of(np.column_stack([total, parts]), columns, [Proposal(0, names, "data")]))
    assert not any(sum_.parts == names and sum_.kept for sum_ in verified.sums)  # nobody vouches for it


def test_what_does_not_hold_for_everybody_does_not_hold_for_men() -> None:
    from unround.release import Column

    rng = RNG(2)
    columns = [Column(f"{key}/{sex}", (key, sex), key, "t") for sex in ("total", "men") for key in ("all", "a", "b")]
    true = rng.poisson(200, (800, 2))
    men = rng.binomial(true, 0.5)
    counts = np.column_stack([true.sum(1) + 3, true, men.sum(1), men])
    release = release_of(rounded(counts, rng), columns, [Proposal(0, (1, 2), "names"), Proposal(3, (4, 5), "names")])
    structure = find_structure(release)
    assert not structure.sums
    assert "the same does not hold for all/total" in verdict(structure, "all/men", "a/men", "b/men").why


# --- mechanisms by table ---------------------------------------------------------------------------------


def test_a_sample_column_with_few_small_counts_goes_with_its_table() -> None:
    rng = RNG(4)
    true = np.column_stack([rng.poisson(300, 900), rng.poisson(6, 900), rng.poisson(9, 900)])
    counts = rounded(true, rng, "sample:5")
    counts[:3, 0] = 5  # a few slips in the large column
    for block, wanted in (("Total - Faith", {Sample(5)}), ("", {Sample(5), Rounding(5)})):
        structure = find_structure(release_of(counts, columns_of("all", "few", "some", block=block)))
        assert set(structure.mechanisms) == wanted


@pytest.mark.parametrize(
    ("title", "wanted", "words"),
    [
        ("Total - Income - 100% data", Rounding(5), "of everybody"),
        ("Total - Income - 25% sample data", Sample(5), "of a sample"),
        ("Total - Income", Rounding(5), "treated as random rounding to base 5"),  # the narrower reading that fits
    ],
)
def test_a_title_tells_what_large_counts_cannot(title: str, wanted: object, words: str) -> None:
    counts = rounded(RNG(1).poisson(300, (200, 3)), RNG(1))
    structure = find_structure(release_of(counts, columns_of("a", "b", "c", block=title)))
    assert set(structure.mechanisms) == {wanted}
    assert words in structure.how[0].why


# --- counts that were perturbed --------------------------------------------------------------------------


def perturbed(spec: str, areas: int = 1_000, how: str | None = None) -> Release:
    rng = RNG(1)
    leaves = rng.poisson(rng.gamma(2, 1, (areas, 1)) * np.array([30, 12, 60, 25, 8, 14]))
    true = np.column_stack([leaves.sum(1), leaves[:, :3].sum(1), leaves[:, 3:].sum(1), leaves])
    proposals = [Proposal(0, (1, 2), "file"), Proposal(1, (3, 4, 5), "names"), Proposal(2, (6, 7, 8), "names")]
    declared = None if how is None else mechanism(how)
    return release_of(mechanism(spec).publish(true, rng), columns_of(*"tabcdefgh", how=declared), proposals)


@pytest.mark.parametrize("spec", ["laplace:1.45", "gaussian:2", "within:3", "gaussian:5", "laplace:3"])
def test_noise_is_recognised_and_its_scale_told(spec: str) -> None:
    structure = find_structure(perturbed(spec))
    (evidence,) = structure.how
    assert evidence.mechanism is None
    assert evidence.suggested is not None
    kind, scale = evidence.suggested.name.removesuffix(",clamped").split(":")
    wanted, true_scale = spec.split(":")
    assert kind == wanted
    assert float(scale) == pytest.approx(float(true_scale), rel=0.06)
    assert f"give --mechanism {evidence.suggested.name}" in evidence.why
    assert not structure.sums
    assert all("not known how" in one.why for one in structure.rejected)


@pytest.mark.parametrize("spec", ["exact", "rounding:5", "rounding:3"])
def test_what_is_not_noise_is_not_taken_for_it(spec: str) -> None:
    structure = find_structure(perturbed(spec))
    assert all(evidence.suggested is None for evidence in structure.how)
    assert len(structure.sums) == 3


def test_sums_that_do_not_hold_are_no_noise() -> None:
    rng = RNG(3)
    counts = np.column_stack([rng.poisson(300, 500), *rng.poisson(140, (2, 500))])
    structure = find_structure(release_of(counts, columns_of("t", "a", "b"), [Proposal(0, (1, 2), "names")]))
    assert all(evidence.suggested is None for evidence in structure.how)
    assert "impossible in" in verdict(structure, "t", "a", "b").why


def test_a_mechanism_that_is_declared_on_the_command_line_is_the_users_word() -> None:
    release = perturbed("laplace:1.45")
    structure = find_structure(declaring(release, "laplace:1.45"))
    assert len(structure.sums) == 3
    assert {(evidence.basis, evidence.ground) for evidence in structure.how} == {("option", "declared")}
    with pytest.raises(ArgumentError, match="nothing is declared, and here everything is"):
        declaring(perturbed("exact", how="exact"), "laplace:1.45")


# --- what inspect says -----------------------------------------------------------------------------------


def test_inspect_tells_documented_found_and_rejected_sums_apart(tmp_path: Path) -> None:
    from rich.console import Console

    rng = RNG(11)
    leaves = rng.poisson(rng.gamma(2, 1, (500, 1)) * np.array([40, 30, 20, 50, 35]))
    whole = np.column_stack([leaves[:, :3].sum(1), leaves[:, :3], leaves[:, 3:].sum(1), leaves[:, 3:]])
    labels = ["Total - Colours", "Red", "Green", "Blue", "Total - Shapes of things", "Round", "Square"]
    headers = [f"v_CA06_{at + 1}: {label}" for at, label in enumerate(labels)]
    path = censusmapper(tmp_path / "t.csv", headers, rounded(whole, rng))
    seen = unround.check(path)
    report = seen.to_json()
    assert sorted((one["table"], one["origin"], one["ground"]) for one in report["sums"]) == [
        ("Colours", "data", "inferred"),
        ("Shapes of things", "data", "inferred"),
    ]
    assert [(one["table"], one["columns"], one["sums"]["found"]) for one in report["tables"]] == [
        ("Colours", 4, 1),
        ("Shapes of things", 3, 1),
    ]
    page = io.StringIO()
    show(seen, Console(file=page, width=160))
    assert "tables   2" in page.getvalue()
    assert "2 sums used: 2 found in the counts. 2 confirmed" in page.getvalue()
    assert "(found)" in page.getvalue()


def test_documented_sums_that_share_a_total_name_it() -> None:
    assert list(documented(dict.fromkeys((2612, 2613, 2614, 2615, 2616, 2604, 2607, 2608, 2609, 2610), 0))) == [
        (2603, (2604, 2607, 2608, 2609, 2610), "universe", (2612, 2613, 2614, 2615, 2616)),
        (2603, (2612, 2613, 2614, 2615, 2616), "universe", (2604, 2607, 2608, 2609, 2610)),
    ]
    assert list(documented(dict.fromkeys((2612, 2613, 2614, 2615, 2604, 2607, 2608, 2609, 2610), 0))) == []


# --- what is hidden --------------------------------------------------------------------------------------


def test_what_is_hidden_is_no_more_than_the_people_or_households_of_its_area(tmp_path: Path) -> None:
    from unround.audits import Auditor, Model
    from unround.prior import Prior

    rng = RNG(8)
    people = rng.poisson(60, 300)
    ages = rng.multinomial(people, [0.2, 0.6, 0.2])
    incomes = rng.multinomial(rng.binomial(people, 0.7), [0.5, 0.5])
    recipients = incomes.sum(1, keepdims=True)
    faith = rng.binomial(people, 0.3)[:, None]
    counts = np.hstack([rounded(np.hstack([ages, recipients, incomes]), rng), rounded(faith, rng, "sample:5")])
    labels = {9: "0 to 14 years", 13: "15 to 64 years", 24: "65 years and over", 173: "With", 174: "Low", 175: "High"}
    headers = vectors(9, 13, 24, 173, 174, 175, 1970, labels=labels)
    path = censusmapper(tmp_path / "t.csv", headers, counts, {"Population": people})
    text = path.read_text().splitlines()
    fields = text[1].split(",")
    text[1] = ",".join([*fields[:6], "NA", "NA", "NA", "NA"])  # incomes and faith are hidden in the first area
    path.write_text("\n".join(text) + "\n")
    release = read(path)
    index = release.index
    assert {release.columns[index[key]].at_most for key in ("v_CA21_11", "v_CA21_719")} == {"Population"}
    assert release.columns[index[f"v_CA21_{vector_of(1970)}"]].at_most == ""  # an estimate may exceed it
    model = Model.of(find_structure(release))
    (block,) = release.blocks()
    auditor = Auditor(model, Prior.flat())
    bounds = auditor.documented(model.counts_of(block.counts), np.zeros(300, dtype=np.bool_)).bounds
    assert bounds.tight.high[0, model.index["v_CA21_719"]] == people[0]
    system = model.system(model.counts_of(block.counts)[0], (), also=[model.index["v_CA21_719"]])
    assert system.windows[0].high == people[0]


def test_a_proof_may_rest_on_the_people_that_there_are(tmp_path: Path) -> None:
    """The least that four published parts can be is all the people of the area: so each is that, and so is their total."""
    rng = RNG(9)
    people = rng.poisson(150, 200)
    parts = rng.multinomial(rng.binomial(people, 0.8), [0.4, 0.3, 0.2, 0.1])
    counts = rounded(np.column_stack([parts.sum(1), parts]), rng)
    people[0], counts[0] = 9, (0, 10, 5, 5, 5)
    path = censusmapper(tmp_path / "t.csv", vectors(66, 67, 68, 69, 70), counts, {"Population": people})
    lines = path.read_text().replace(",DA,", ",CD,").splitlines()  # where populations are never adjusted
    lines[1] = lines[1].replace("CD,9,0,", "CD,9,NA,")
    path.write_text("\n".join(lines) + "\n")
    folder = unround.audit(path, tmp_path / "audit", prior="flat")
    rows = pl.read_csv(folder.path / "findings.csv").filter(pl.col("region") == 59_000_000)
    assert set(rows["kind"]) == {"proved"}
    assert sorted(rows["value"]) == [1, 1, 1, 6, 9]
    assert unround.verify(folder).to_json()["problems"] == []
