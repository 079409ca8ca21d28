"""The structure of a release: true sums are kept, false ones are not, and every verdict says why."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest

from unround import simulation as sim
from unround.errors import InputError
from unround.mechanisms import Exact, Rounding, Sample, mechanism
from unround.release import SUPPRESSED, Block, Column, Ground, Proposal, Release
from unround.small_files import parsed_toml
from unround.structure import find_structure, survey
from unround.structure.mechanism import Divisibility, detect
from unround.structure.propose import groups, related
from unround.tables import read
from unround.tables.description import decided, make_description
from unround.tables.draft import drafted

SEXES = sim.SEXES


def release_of(counts, columns, proposals=(), frame=None, size=300, axes=("characteristic_id", "sex")):
    """A release made of an array, in blocks of so many areas."""
    counts = np.asarray(counts, dtype=np.int32)
    if frame is None:
        frame = pl.DataFrame({"region": [f"a{at}" for at in range(len(counts))]})

    def blocks(_progress):
        for start in range(0, len(counts), size):
            yield Block(frame[start : start + size], counts[start : start + size])

    return Release("made.csv", "made", tuple(columns), axes, ("region",), blocks, tuple(proposals))


def columns_of(*keys, block="Total - table", how=None):
    return [Column(key, (key, "total"), key, block, mechanism=how) for key in keys]


def rounded(true, rng, how="rounding:5"):
    return mechanism(how).publish(np.asarray(true, dtype=np.int64), rng)


@cache
def census(rows, areas, seed=1):
    """A simulated census as a release with proposals from indentation and sex; its true counts; and its true sums."""
    table = sim.schema(rows)
    cells = [(at, s) for at, row in enumerate(table.rows) if row.is_count for s in range(3) if s == 0 or row.has_sex]
    place = {cell: at for at, cell in enumerate(cells)}
    columns, block = [], ""
    for at, s in cells:
        row = table.rows[at]
        if row.depth == 0 and s == 0:
            block = row.name if row.name.startswith("Total") else ""
        key = str(row.id) if s == 0 else f"{row.id}/{SEXES[s]}"
        how = Exact() if row.mechanism == "exact" else None
        columns.append(Column(key, (str(row.id), SEXES[s]), row.name, block, row.depth, how))
    below: dict[int, list[int]] = {}
    path: list[int] = []
    for at, row in enumerate(table.rows):
        del path[row.depth :]
        if path and row.is_count and table.rows[path[-1]].is_count:
            below.setdefault(path[-1], []).append(at)
        path += [at] * (row.depth + 1 - len(path))
    proposals = [
        Proposal(place[head, s], tuple(place[part, s] for part in parts), "indentation")
        for head, parts in below.items()
        for s in range(3)
        if all((at, s) in place for at in (head, *parts))
    ]
    proposals += [Proposal(place[at, 0], (place[at, 1], place[at, 2]), "sex") for at, s in cells if s == 1]
    blocks = list(sim.Rounds(seed).counts(areas, rows))
    at, s = np.array(cells).T
    counts = np.concatenate([block.published[:, at, s] for block in blocks])
    true = np.concatenate([block.true[:, at, s] for block in blocks]).astype(np.int64)
    regions = pl.concat([block.regions for block in blocks]).select("region", "parent")
    release = release_of(np.where(counts == sim.MISSING, SUPPRESSED, counts), columns, proposals, regions, size=128)
    index = table.index
    sums = {
        (place[index[sum_.total], s], frozenset(place[index[part], s] for part in sum_.parts))
        for sum_ in table.sums
        for s in range(3)
        if all((index[row], s) in place for row in (sum_.total, *sum_.parts))
    }
    return release, true, sums


@cache
def structure_of(rows, areas):
    return find_structure(census(rows, areas)[0])


def wrong_areas(checked, true):
    return int((true[:, checked.total] != true[:, list(checked.parts)].sum(1)).sum())


def verdict(structure, total, *parts):
    index = {column.key: at for at, column in enumerate(structure.columns)}
    wanted = index[total], frozenset(index[part] for part in parts)
    (found,) = [c for c in (*structure.sums, *structure.rejected) if (c.total, frozenset(c.parts)) == wanted]
    return found


# --- a census with known truth ---------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "areas"), [("age", 500), ("short", 400), ("all", 150)])
def test_nothing_false_is_kept(rows, areas):
    _, true, _ = census(rows, areas)
    structure = structure_of(rows, areas)
    assert structure.sums
    assert [checked for checked in structure.sums if wrong_areas(checked, true)] == []


@pytest.mark.parametrize(("rows", "areas"), [("age", 500), ("short", 400), ("all", 150)])
def test_all_true_sums_with_evidence_are_kept(rows, areas):
    _, _, sums = census(rows, areas)
    structure = structure_of(rows, areas)
    lost = [c for c in structure.rejected if (c.total, frozenset(c.parts)) in sums and not c.unjudged]
    assert [c.why for c in lost] == []
    by_sex = [c for c in (*structure.sums, *structure.rejected) if c.origin == "sex"]
    assert all(c.kept for c in by_sex)


def test_indentation_that_is_no_partition_is_rejected_with_its_reason():
    structure = structure_of("all", 150)
    release, true, _ = census("all", 150)
    false = [p for p in release.proposals if wrong_areas(p, true) > 10]
    assert len(false) > 20
    rejected = {(c.total, c.parts): c for c in structure.rejected}
    for proposal in false:
        why = rejected[proposal.total, proposal.parts].why
        assert any(
            reason in why
            for reason in ("impossible in", "do not cover the total", "to test", "cannot be tested", "is below")
        ), why


def test_repeated_totals_are_found_and_are_new_evidence():
    structure = structure_of("short", 400)
    keys = [column.key for column in structure.columns]
    found = {tuple(keys[at] for at in repeat.columns) for repeat in structure.repeats if not repeat.alike}
    assert {("1", "8"), ("5", "41", "50", "100"), ("51", "97", "110"), ("56", "89")} <= found
    assert structure.alias == {}
    # about as many husbands as couples: close enough to pass every test, and still not the same
    assert not any({"79", "91/men"} <= set(group) for group in found)


def test_mechanisms_are_told_or_wider_than_they_are():
    structure = structure_of("all", 150)
    table = sim.schema("all")
    wider = 0
    for column, found in zip(structure.columns, structure.mechanisms, strict=True):
        declared = mechanism(table.rows[table.index[int(column.codes[0])]].mechanism)
        if found != declared:
            assert (declared, found) == (Rounding(5), Sample(5))
            wider += 1
    assert wider < 0.03 * len(structure.columns)


def test_the_size_of_blocks_changes_nothing(monkeypatch):
    release, _, _ = census("age", 500)
    counts = np.concatenate([block.counts for block in release.blocks()])
    frame = pl.concat([block.areas for block in release.blocks()])
    monkeypatch.setattr(survey, "LOOK", 200)
    whole, pieces = (
        find_structure(release_of(counts, release.columns, release.proposals, frame, size)) for size in (500, 7)
    )
    assert whole.areas == pieces.areas == 500
    assert whole.equations == pieces.equations
    assert [c.residuals for c in whole.sums] == [c.residuals for c in pieces.sums]
    assert sum(whole.sums[0].residuals.values()) == whole.sums[0].areas > 400


def test_what_later_turns_out_otherwise_is_judged_anew(monkeypatch):
    rng = np.random.default_rng(1)
    parts = rng.integers(50, 200, (400, 2))
    counts = np.column_stack([parts.sum(1), parts])
    counts[:150] = counts[:150] // 5 * 5  # as if rounded, and then not
    counts[:150, 0] = counts[:150, 1:].sum(1)
    monkeypatch.setattr(survey, "LOOK", 100)
    structure = find_structure(release_of(counts, columns_of("t", "a", "b"), [Proposal(0, (1, 2), "names")], size=100))
    assert structure.mechanisms == (None, None, None)
    assert "more than by chance, but not all" in structure.notes[0]
    assert verdict(structure, "t", "a", "b").why == "it is not known how some of its counts were published"


# --- sums that do not hold -------------------------------------------------------------------------------


def made(rng, areas=600, sizes=(200, 120, 40, 3)):
    """True counts of parts, around so many each."""
    return rng.poisson(np.array(sizes) * rng.uniform(0.5, 2.0, (areas, 1)))


def total_and(parts, rng, how="rounding:5"):
    return np.column_stack([rounded(parts.sum(1), rng, how), rounded(parts, rng, how)])


@pytest.mark.parametrize("how", ["rounding:3", "rounding:5", "rounding:10", "sample:5", "nearest:5", "exact"])
def test_a_sum_is_kept_under_every_rounding(how):
    rng = np.random.default_rng(2)
    counts = total_and(made(rng), rng, how)
    columns = columns_of("t", "a", "b", "c", "d", how=mechanism(how))
    checked = verdict(find_structure(release_of(counts, columns, [Proposal(0, (1, 2, 3, 4), "names")])), *"tabcd")
    assert checked.kept
    assert checked.impossible == 0
    assert abs(checked.mean) < 1
    assert checked.spread == pytest.approx(checked.expected, rel=0.25)


def test_a_part_too_few_or_too_many_is_noticed():
    rng = np.random.default_rng(3)
    parts = made(rng)
    counts = np.column_stack([total_and(parts, rng), rounded(rng.binomial(parts[:, 2], 0.5), rng)])
    proposals = [Proposal(0, (1, 2, 3), "indentation"), Proposal(0, (1, 2, 3, 4, 5), "indentation")]
    structure = find_structure(release_of(counts, columns_of("t", "a", "b", "c", "d", "e"), proposals))
    assert "do not cover the total" in verdict(structure, *"tabc").why
    assert "too large" in verdict(structure, *"tabcde").why
    # what is left when one part is dropped is found, although nobody proposed it
    assert verdict(structure, *"tabcd").kept
    assert verdict(structure, *"tabcd").origin == "data"


def test_what_a_missing_rare_category_takes_to_be_noticed():
    """A sum may hold by a hair: what is missing is noticed from about half a person an area on, and stated here."""
    rng = np.random.default_rng(4)
    kept = {}
    for share in (0.0, 0.02, 0.1, 0.3):
        rare = rng.poisson(5, 2000) * (rng.random(2000) < share)
        parts = np.column_stack([made(rng, 2000, (200, 120)), rare])
        counts = total_and(parts, rng)[:, :3]
        checked = verdict(
            find_structure(release_of(counts, columns_of("t", "a", "b"), [Proposal(0, (1, 2), "names")])), *"tab"
        )
        kept[share] = checked.kept
    assert kept == {0.0: True, 0.02: True, 0.1: False, 0.3: False}


def test_totals_added_up_after_rounding_tell_nothing():
    rng = np.random.default_rng(5)
    parts = rounded(made(rng), rng)
    counts = np.column_stack([parts.sum(1), parts])
    checked = verdict(
        find_structure(release_of(counts, columns_of("t", "a", "b", "c", "d"), [Proposal(0, (1, 2, 3, 4), "names")])),
        *"tabcd",
    )
    assert checked.exactly
    assert not checked.kept
    assert "adds up exactly in all 600 areas" in checked.why
    exact = find_structure(release_of(counts, columns_of(*"tabcd", how=Exact()), [Proposal(0, (1, 2, 3, 4), "names")]))
    assert verdict(exact, *"tabcd").kept  # unrounded counts do add up exactly


def test_rounding_that_is_not_independent_is_noticed():
    rng = np.random.default_rng(6)
    parts = rounded(made(rng, sizes=(200, 120)), rng)
    total = parts.sum(1) + np.where(rng.random(len(parts)) < 0.03, 5, 0)
    structure = find_structure(
        release_of(np.column_stack([total, parts]), columns_of("t", "a", "b"), [Proposal(0, (1, 2), "names")])
    )
    assert "not rounded independently" in verdict(structure, *"tab").why


def test_counts_that_scatter_too_much_are_no_parts():
    rng = np.random.default_rng(7)
    parts = made(rng, sizes=(80,) * 12)
    counts = total_and(parts, rng)
    counts[:, 0] += 5 * rng.integers(-5, 6, len(counts))  # within reach of 13 roundings, but not like them
    keys = [f"p{at}" for at in range(12)]
    structure = find_structure(release_of(counts, columns_of("t", *keys), [Proposal(0, tuple(range(1, 13)), "names")]))
    assert "differ by more than rounding" in verdict(structure, "t", *keys).why


def test_a_few_contradictory_areas_are_suspects_not_reasons():
    rng = np.random.default_rng(8)
    counts = total_and(made(rng), rng)
    counts[[17, 400], 1] = 0
    structure = find_structure(release_of(counts, columns_of(*"tabcd"), [Proposal(0, (1, 2, 3, 4), "names")]))
    assert structure.suspects == {0: 2}
    assert "impossible in 2 areas" in structure.sums[0].why


def test_suppressed_counts_are_not_judged():
    rng = np.random.default_rng(9)
    counts = total_and(made(rng), rng)
    counts[:100, 2] = SUPPRESSED
    counts[:100, 1] = 5
    structure = find_structure(release_of(counts, columns_of(*"tabcd"), [Proposal(0, (1, 2, 3, 4), "names")]))
    assert structure.sums[0].areas == 500
    counts[:, 2] = SUPPRESSED
    structure = find_structure(
        release_of(counts, columns_of(*"tabcd", how=Rounding(5)), [Proposal(0, (1, 2, 3, 4), "names")])
    )
    assert "never all published" in verdict(structure, *"tabcd").why


def test_groups_that_overlap_are_not_believed_further_down():
    rng = np.random.default_rng(10)
    people = made(rng, sizes=(300,))[:, 0]
    one = rng.binomial(people, 0.8)
    two = rng.binomial(people, 0.6)  # people may be in both
    inner = rng.binomial(one, 0.5)
    true = np.column_stack([people, one, inner, one - inner, two])
    proposals = [Proposal(0, (1, 4), "indentation"), Proposal(1, (2, 3), "indentation")]
    structure = find_structure(release_of(rounded(true, rng), columns_of(*"tabcd"), proposals))
    assert not verdict(structure, *"tad").kept
    assert "is below t, whose parts add to more than it" in verdict(structure, *"abc").why


def test_small_counts_are_judged_by_their_likes():
    rng = np.random.default_rng(11)
    columns = [Column(f"{row}/{sex}", (str(row), sex), str(row), "x") for row in range(6) for sex in SEXES]
    halves = np.stack([made(rng, sizes=(90,) * 5 + (0.02,)), made(rng, sizes=(110,) * 5 + (0.02,))], axis=2)
    true = np.concatenate([halves.sum(2, keepdims=True), halves], axis=2).reshape(len(halves), -1)
    proposals = [Proposal(3 * row, (3 * row + 1, 3 * row + 2), "sex") for row in range(6)]
    counts = rounded(true, rng)
    checked = verdict(find_structure(release_of(counts, columns, proposals)), "5/total", "5/men", "5/women")
    assert checked.kept
    assert checked.unjudged
    assert "the same holds in 5 of 5 cases" in checked.why
    alone = find_structure(release_of(counts[:, 15:], columns[15:], [Proposal(0, (1, 2), "sex")]))
    assert not verdict(alone, "5/total", "5/men", "5/women").kept


@pytest.mark.parametrize(("size", "kept"), [(100_000, True), (20, False)])
def test_one_area_is_weak_evidence(size, kept):
    rng = np.random.default_rng(12)
    true = rng.poisson(size, 12)
    counts = rounded(np.concatenate([[true.sum()], true]), rng)[None, :]
    keys = [f"p{at}" for at in range(12)]
    structure = find_structure(release_of(counts, columns_of("t", *keys), [Proposal(0, tuple(range(1, 13)), "indentation")]))
    checked = verdict(structure, "t", *keys)
    assert checked.kept == kept
    assert ("one area, weak evidence" if kept else "too little to test") in checked.why


# --- sums and repeats that nobody proposed ---------------------------------------------------------------


def test_runs_are_found_before_and_after_their_total():
    rng = np.random.default_rng(13)
    first, second = made(rng, sizes=(100, 60)), made(rng, sizes=(70, 90, 30))
    true = np.column_stack([first.sum(1) + second.sum(1), first.sum(1), first, second, second.sum(1)])
    columns = columns_of("all", "t1", "a", "b", "c", "d", "e", "t2")
    structure = find_structure(release_of(rounded(true, rng), columns))
    keys = [column.key for column in columns]
    found = {(keys[c.total], *(keys[part] for part in c.parts)) for c in structure.sums}
    assert {("t1", "a", "b"), ("t2", "c", "d", "e")} <= found
    assert ("all", "t1", "c", "d", "e") in found  # t1 stands for what is inside it


def test_repeats_that_are_alike_stand_for_one_another():
    rng = np.random.default_rng(14)
    parts = made(rng, sizes=(100, 60))
    counts = total_and(parts, rng)
    again = total_and(parts, rng)
    table = np.column_stack([counts, counts[:, 0], counts[:, 2], again[:, 0]])
    columns = [
        *columns_of("t", "a", "b", block="one"),
        *columns_of("t2", "b2", block="two"),
        *columns_of("t3", block="three"),
    ]
    proposals = [Proposal(0, (1, 2), "names"), Proposal(3, (1, 4), "names")]
    structure = find_structure(release_of(table, columns, proposals))
    assert structure.alias == {3: 0, 4: 2}
    assert {(repeat.columns, repeat.alike) for repeat in structure.repeats} == {
        ((0, 3), True),
        ((2, 4), True),
        ((0, 5), False),
    }
    # the second sum says the same as the first, and only the count that was rounded anew says more
    assert set(structure.equations) == {(0, (1, 2)), (5, (0,))}
    assert [structure.sums[at].total for at in structure.equation_sums] == [eq[0] for eq in structure.equations]


def test_repeats_that_are_alike_among_themselves_count_once():
    rng = np.random.default_rng(15)
    true = made(rng, sizes=(150,))
    seen = rounded(true, rng)
    columns = [Column(key, (key, "total"), key, key) for key in ("exact", "once", "twice")]
    structure = find_structure(release_of(np.column_stack([true, seen, seen]), columns))
    assert structure.mechanisms[0] == Exact()
    assert structure.alias == {2: 1}
    assert structure.equations == ((1, (0,)),)


def test_a_total_and_what_is_inside_it_are_never_repeats():
    assert related([(0, (1, 2)), (1, (3, 4)), (9, (8,))]) == {(0, 1), (0, 2), (0, 3), (0, 4), (1, 3), (1, 4)}
    pairs = [Proposal(5, (3,), "data"), Proposal(7, (5,), "universe"), Proposal(2, (1,), "data")]
    assert groups(pairs) == [([1, 2], "data"), ([3, 5, 7], "universe")]


# --- mechanisms ------------------------------------------------------------------------------------------


def detected(counts, columns):
    divisibility = Divisibility.none(len(columns))
    divisibility.add(np.asarray(counts, dtype=np.int32))
    return detect(divisibility, columns, ["format"] * len(columns))


@pytest.mark.parametrize("how", ["rounding:3", "rounding:5", "rounding:10", "sample:5", "exact"])
def test_mechanisms_are_told_by_what_divides_the_counts(how):
    rng = np.random.default_rng(16)
    counts = rounded(rng.poisson(rng.gamma(1.0, 20.0, (400, 3))), rng, how)
    mechanisms, (evidence,) = detected(counts, columns_of(*"abc"))
    assert mechanisms == [mechanism(how)] * 3
    assert evidence.columns == (0, 1, 2)
    if how == "sample:5":
        assert "5 itself occurs 0 times" in evidence.why
    elif how != "exact":
        assert "all " in evidence.why


def test_columns_with_few_counts_go_with_their_table():
    rng = np.random.default_rng(17)
    counts = rounded(rng.poisson(9, (400, 3)), rng)
    counts[:, 2] = 0
    counts[3, 2] = 10
    mechanisms, _ = detected(counts, columns_of(*"abc"))
    assert mechanisms == [Rounding(5)] * 3
    counts[3, 2] = 11
    mechanisms, _ = detected(counts, columns_of(*"abc"))
    assert mechanisms == [Rounding(5), Rounding(5), Exact()]


def test_what_cannot_be_told_is_said():
    mechanisms, (evidence,) = detected([[5, 10, 15]], columns_of(*"abc"))
    assert mechanisms == [None] * 3
    assert "only 3 counts are above 0, too few to infer" in evidence.why
    graduated = rounded(np.random.default_rng(18).integers(0, 400, (500, 2)), np.random.default_rng(1), "graduated")
    mechanisms, _ = detected(graduated, columns_of("a", "b"))
    assert mechanisms == [None, None]


def test_where_nothing_tells_the_wider_windows_are_taken_if_they_are_documented():
    """A proof needs the wider windows; without documentation there is no proof, and readers may take the narrower ones."""
    rng = np.random.default_rng(19)
    counts = rounded(rng.integers(100, 900, (60, 2)), rng)
    columns = columns_of("a", "b")
    known = [replace(column, documented=(Rounding(5), Sample(5)), basis="format") for column in columns]
    mechanisms, (evidence,) = detected(counts, known)
    assert mechanisms == [Sample(5)] * 2
    assert (evidence.ground, "assumed, to be safe" in evidence.why) == (Ground.DOCUMENTED, True)
    mechanisms, (evidence,) = detected(counts, columns)
    assert mechanisms == [Rounding(5)] * 2
    assert evidence.ground == Ground.INFERRED


def test_a_declared_mechanism_is_kept_and_what_does_not_fit_is_said():
    rng = np.random.default_rng(20)
    counts = total_and(made(rng), rng)
    counts[5, 1] = 7
    columns = columns_of(*"tabcd", how=Rounding(5))
    structure = find_structure(release_of(counts, columns, [Proposal(0, (1, 2, 3, 4), "names")]))
    assert structure.mechanisms == (Rounding(5),) * 5
    assert structure.notes == (
        "1 of 3,000 counts in 'Total - table' cannot come from rounding:5, as declared; they are treated as not published.",
    )
    assert structure.sums[0].areas == 599


# --- the plan file ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "areas"), [("age", 500), ("short", 400)])
def test_a_plan_gives_back_what_it_was_written_from(rows, areas):
    release, _, _ = census(rows, areas)
    structure = structure_of(rows, areas)
    text = drafted(release, structure)
    assert find_structure(said(release, text)).how == structure.how  # a draft decides nothing
    again = find_structure(said(release, uncommented(text)))
    assert again.equations == structure.equations
    assert again.mechanisms == structure.mechanisms
    assert again.alias == structure.alias
    assert {c.equation for c in again.rejected} == {c.equation for c in structure.rejected}
    assert 'where = { sex = ["total", "men", "women"] }' in text
    assert text.count("[[sums]]") < len(structure.sums) / 2


def small_release(alike=False):
    rng = np.random.default_rng(21)
    counts = total_and(made(rng, 200), rng)
    other = counts[:, 0] if alike else total_and(made(np.random.default_rng(21), 200), rng)[:, 0]
    columns = [*columns_of(*"tabcd"), *columns_of("u", block="other")]
    proposals = [Proposal(0, (1, 2, 3, 4), "names"), Proposal(0, (1, 2), "indentation")]
    return release_of(np.column_stack([counts, other]), columns, proposals)


def uncommented(text):
    """Return a draft in which everything that was found is declared."""
    entries = [paragraph[paragraph.index("# [[") :] for paragraph in text.split("\n\n") if "# [[" in paragraph]
    return "\n".join(line.removeprefix("# ") for entry in entries for line in entry.splitlines())


def said(release, *lines, where="plan.toml"):
    """Return a release with what a TOML says of it."""
    text = "\n".join(lines)
    return decided(release, make_description(parsed_toml(text, where), text=text, where=where))


SUM = ("[[sums]]", 'total = "t"', 'parts = ["a", "b", "c", "d"]')


def test_the_user_overrules_the_counts():
    release = small_release()
    assert find_structure(release).equations == ((0, (1, 2, 3, 4)), (5, (0,)))
    left_out = find_structure(said(release, *SUM, "use = false"))
    assert left_out.equations == ((5, (0,)),)
    assert verdict(left_out, *"tabcd").why.startswith("left out by plan.toml; the counts suggest: in 200 areas")
    other = find_structure(said(release, "[[mechanisms]]", 'mechanism = "nearest:5"', 'columns = ["a"]'))
    assert other.mechanisms[1] == mechanism("nearest:5")
    alike = find_structure(said(release, "[[repeats]]", "alike = true", 'columns = ["t", "u"]'))
    assert alike.alias == {5: 0}
    apart = find_structure(said(release, "[[repeats]]", "use = false", 'columns = ["t", "u"]'))
    assert apart.repeats == ()
    assert apart.equations == ((0, (1, 2, 3, 4)),)
    anew = find_structure(said(small_release(alike=True), "[[repeats]]", "alike = false", 'columns = ["t", "u"]'))
    assert anew.alias == {}
    assert (5, (0,)) in anew.equations


def test_a_sum_that_cannot_be_is_not_taken_from_anyone():
    wrong = ("# a comment", "[[sums]]", 'total = "t"', 'parts = ["a", "d"]')
    with pytest.raises(InputError, match=r"plan.toml: t = a \+ d cannot be a sum: no true counts fit 200 of"):
        find_structure(said(small_release(), *wrong))
    release = small_release()
    declared = release_of(
        np.concatenate([block.counts for block in release.blocks()]), release.columns, [Proposal(0, (1, 4), "file")]
    )
    with pytest.raises(InputError, match="cannot be a sum"):
        find_structure(declared)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("[structure",), r"plan.toml, line 1, .*this is not TOML"),
        (("[other]",), "there is no key 'other' in this file"),
        (("x = 1",), "there is no key 'x' in this file"),
        (("[axes]",), r"name the axes"),
        (("", "sum = 1"), r"line 2, .*there is no key 'sum' in this file. Did you mean 'sums'"),
        (("sums = 1",), "sums must be a list of tables"),
        ((*SUM, "", *SUM, "totals = 3"), r"line 8, .*there is no key 'totals' in \[\[sums\]\]"),
        (("[[sums]]", 'parts = ["a"]'), "has no total"),
        (("[[sums]]", 'total = "t"'), "has no parts"),
        (("[[sums]]", 'total = "t"', 'parts = ["a", "a"]'), "names a code twice"),
        (("[[sums]]", 'total = "t"', 'parts = ["a", "t"]'), "names a code twice"),
        ((*SUM, 'use = "no"'), "use must be true or false"),
        ((*SUM, 'where = ["men"]'), "where must be a table of axes and codes"),
        (("[[mechanisms]]", 'mechanism = "roundin:5"', 'columns = ["a"]'), r"line 2.*Did you mean rounding"),
        (("[[repeats]]", "alike = true", 'columns = ["a"]'), "at least two columns"),
        (("[[repeats]]", 'columns = ["a", "b"]'), "say whether the numbers are the same everywhere"),
    ],
)
def test_a_plan_that_cannot_be_read_says_where(lines, words):
    with pytest.raises(InputError, match=words):
        said(small_release(), *lines)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("[[sums]]", 'total = "t"', 'parts = ["a", "x"]'), r"line 3, column 15: there is no column 'x'"),
        (
            (*SUM, 'axis = "characteristic_id"', 'where = { race = ["all"] }'),
            "'race' is not an axis of the columns of this release",
        ),
        (("[[mechanisms]]", 'mechanism = "exact"', 'columns = ["tt"]'), r"line 3, .*Did you mean 't'"),
        (("[[repeats]]", "alike = true", 'columns = ["t", "y"]'), "there is no column 'y'"),
    ],
)
def test_columns_that_are_not_there_are_named_before_anything_is_read(lines, words):
    with pytest.raises(InputError, match=words):
        said(small_release(), *lines)


def test_a_sum_of_unknown_mechanism_cannot_be_insisted_on():
    release = release_of([[10, 5, 5]], columns_of(*"tab"))
    with pytest.raises(InputError, match="Declare their mechanism, or leave the sum out"):
        find_structure(said(release, "[[sums]]", 'total = "t"', 'parts = ["a", "b"]'))


def test_an_empty_release_has_no_structure():
    structure = find_structure(release_of(np.zeros((0, 2)), columns_of("a", "b")))
    assert structure.areas == 0
    assert structure.equations == ()
    assert structure.mechanisms == (None, None)


# --- real releases ---------------------------------------------------------------------------------------


def test_new_zealand_rounds_alike(census_data):
    structure = find_structure(read(census_data / "nz-2013-individual-sa2.csv.gz"))
    assert all(repeat.alike for repeat in structure.repeats)
    assert len(structure.alias) > 20
    assert {str(kind.name) for kind in structure.mechanisms if kind} == {"rounding:3"}
    assert sum(c.origin == "sex" for c in structure.sums) >= 20


def test_canada_has_five_and_ten_and_few_slips(census_data):
    structure = find_structure(read(census_data / "canada-2021-da-censusmapper.csv.gz"))
    assert structure.areas == 27_013
    assert {kind.name for kind in structure.mechanisms if kind} == {"exact", "rounding:5", "sample:5", "unpublished"}
    by_sex = [c for c in (*structure.sums, *structure.rejected) if c.origin == "sex"]
    assert len(by_sex) > 50
    assert all(c.kept for c in by_sex)
    assert 0 < max(c.impossible for c in structure.sums if c.origin in ("sex", "names")) < 20
    assert not any(repeat.alike for repeat in structure.repeats)
