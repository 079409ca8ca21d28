"""START HERE: two audit folders become one Diff.

Which areas and counts of two audits are the same, and in what the audits themselves differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from unround._version import __version__
from unround.audits.findings import SIZES, SMALL_FIRST
from unround.errors import InputError
from unround.job import AuditFolder
from unround.job.folder import FINDINGS, PUBLISHED, ZEROS_NOT_LISTED
from unround.score.summary import AREA_SIZES, CLAIMS
from unround.shown import Shown
from unround.small_files import shortened
from unround.system import grouped
from unround.tables.spool import Stage

EXACT = "exact"
MOST_NAMED = 5  # columns or areas that are named where more are meant


@dataclass(frozen=True)
class MatchedCell:
    """One count that an area can have, under however many names it was published."""

    key: str  # its name, what it counts, and the table that it stands in
    label: str
    block: str
    before: tuple[str, ...]  # the keys of its columns in either audit; none where that does not publish it
    after: tuple[str, ...]
    exact_before: tuple[str, ...]  # those of them that were published as they are
    exact_after: tuple[str, ...]

    @property
    def laid_open(self) -> bool:
        """Whether it was published under protection before, and as it is after."""
        return bool(self.before and self.exact_after and not self.exact_before)


@dataclass(frozen=True, eq=False)
class MatchedAudits:
    """Two audits side by side."""

    before: AuditFolder  # the audits
    after: AuditFolder
    cells: tuple[MatchedCell, ...]  # every count of either audit; one that both have, or that one shows twice, is one cell
    areas: pl.DataFrame  # number, axes, `in_before`, `in_after`, and `size`, a place in `AREA_SIZES`

    @classmethod
    def of(cls, before: AuditFolder, after: AuditFolder) -> MatchedAudits:
        """Put two audits side by side."""
        for what, name in (("rows", "areas"), ("columns", "axes")):
            mine, other = before.schema[name], after.schema[name]
            if mine != other:
                raise InputError(
                    f"{before.path} has {what} by {', '.join(mine)}, {after.path} by {', '.join(other)}: two audits can be "
                    "compared only if their areas and counts have the same names. Audit files of the same format."
                )
        cells = tuple(_cells(before.schema, after.schema))
        if not any(cell.before and cell.after for cell in cells):
            raise InputError(
                f"{before.path} and {after.path} have no count in common: one has {_few(before.schema)}, the other "
                f"{_few(after.schema)}. `diff` compares audits of the same people, such as one with a table and one without."
            )
        areas = _areas(before, after)
        if not (areas["in_before"] & areas["in_after"]).any():
            named = tuple(before.area_axes)
            mine, other = (next(folder.areas.select(named).iter_rows()) for folder in (before, after))
            raise InputError(
                f"{before.path} and {after.path} have no area in common: one has {', '.join(map(str, mine))} …, the other "
                f"{', '.join(map(str, other))} … Areas are matched by code; check that both files use the same codes."
            )
        return cls(before, after, cells, areas)

    @property
    def axes(self) -> list[str]:
        """The axes of the areas."""
        return self.before.area_axes

    @property
    def without_zeros(self) -> bool:
        """Whether likely zeros that were published as 0 are left out on both sides, because one does not list them."""
        return any(folder.summary[ZEROS_NOT_LISTED] for folder in (self.before, self.after))

    def codes(self, folder: AuditFolder) -> pl.DataFrame:
        """Return which cell the codes of a folder's columns mean."""
        known = {key: at for at, cell in enumerate(self.cells) for key in (*cell.before, *cell.after)}
        columns = folder.schema["columns"]
        codes = {
            axis: pl.Series([column["codes"][i] for column in columns], dtype=pl.String)
            for i, axis in enumerate(folder.axes)
        }
        return pl.DataFrame(codes | {"cell": pl.Series([known[column["key"]] for column in columns], dtype=pl.UInt32)})

    def laid_open(self) -> dict[str, int]:
        """Return how many counts were published under protection before, and as they are after, by their size."""
        places = {column["key"]: at for at, column in enumerate(self.after.schema["columns"])}
        columns = [[places[key] for key in cell.exact_after if key in places] for cell in self.cells if cell.laid_open]
        numbers = {name: 0 for _, name in SIZES}
        both = self.areas.lazy().filter(pl.col("in_before") & pl.col("in_after")).select(self.axes)
        scan = self.after.table(PUBLISHED).with_columns(pl.col(self.axes).cast(pl.String))
        scan = scan.join(both, on=self.axes, how="semi")
        ends = [*(start for start, _ in SIZES[1:]), None]
        for some in filter(None, columns):
            count = pl.max_horizontal([pl.col("counts").arr.get(at) for at in some])
            inside = [
                ((count >= start) & (True if end is None else count < end)).sum().alias(name)
                for (start, name), end in zip(SIZES, ends, strict=True)
            ]
            for name, many in scan.select(inside).collect(engine="streaming").row(0, named=True).items():
                numbers[name] += many
        return numbers


def other_people(match: MatchedAudits) -> list[dict[str, Any]]:
    """Return whether numbers that both published as they are differ: then the audits are of different people.

    No area is named, because public reports show this too.
    """
    cells = [cell for cell in match.cells if cell.exact_before and cell.exact_after]
    scans = []
    for folder, side, keys in (
        (match.before, "before", [cell.exact_before[0] for cell in cells]),
        (match.after, "after", [cell.exact_after[0] for cell in cells]),
    ):
        places = {column["key"]: at for at, column in enumerate(folder.schema["columns"])}
        counts = [pl.col("counts").arr.get(places[key]).alias(f"{side}{at}") for at, key in enumerate(keys)]
        scan = folder.table(PUBLISHED)
        scans.append(scan.select(*(pl.col(axis).cast(pl.String) for axis in match.axes), *counts))
    pairs = [(pl.col(f"before{at}"), pl.col(f"after{at}")) for at in range(len(cells))]
    if not pairs:
        return []
    differ = [(first >= 0) & (other >= 0) & (first != other) for first, other in pairs]  # what is absent is below 0
    compared = (
        scans[0]
        .join(scans[1], on=match.axes)
        .select(
            pl.len().alias("areas"),
            pl.any_horizontal(differ).sum().alias("others"),
            *(
                pl.sum_horizontal(
                    pl.when(odd).then(pair[side]).otherwise(0) for odd, pair in zip(differ, pairs, strict=True)
                )
                .sum()
                .alias(name)
                for side, name in enumerate(("before", "after"))
            ),
        )
        .collect(engine="streaming")
        .row(0, named=True)
    )
    if not compared["others"]:
        return []
    means = (
        f"they differ in {compared['others']:,} of {compared['areas']:,} areas, so these are not the same people, or a file "
        "was corrected. New claims about these areas do not come from the additional tables"
    )
    return [{"what": "unrounded counts", "before": compared["before"], "after": compared["after"], "means": means}]


def _cells(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[MatchedCell]:
    """Join the columns of both audits that show the same count, and yield what comes of it, in the order of the files."""
    sides = (before, after)
    columns = [{column["key"]: column for column in side["columns"]} for side in sides]
    names, pairs = list[str](), list[tuple[str, str]]()
    for side in sides:
        names += [column["key"] for column in side["columns"]]
        # A sum of one part: the same count, published twice.
        same = [(total, parts[0]) for total, parts in side["equations"] if len(parts) == 1]
        pairs += [(side["columns"][total]["key"], side["columns"][part]["key"]) for total, part in same]
        pairs += side["alias"].items()
    for keys in _groups(names, pairs):
        first = next((columns[at][key] for at in (0, 1) for key in keys if key in columns[at]), None)
        if first is None:
            continue
        # A copy that an audit left out, being the same number everywhere, still is a count that was published.
        had = [tuple(key for key in keys if key in columns[at] or key in sides[at]["alias"]) for at in (0, 1)]
        exact = [tuple(key for key in keys if columns[at].get(key, {}).get("mechanism") == EXACT) for at in (0, 1)]
        yield MatchedCell(first["key"], first["label"], first["block"], *had, *exact)


def _groups(names: Iterable[str], pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return names that mean the same together, in the order in which they were first met."""
    known = list(dict.fromkeys([*names, *(name for pair in pairs for name in pair)]))
    place = {name: at for at, name in enumerate(known)}
    return [[known[at] for at in same] for same in grouped(len(known), ([place[a], place[b]] for a, b in pairs))]


def _areas(before: AuditFolder, after: AuditFolder) -> pl.DataFrame:
    axes = before.area_axes
    sizes = []
    for folder, side in ((before, "before"), (after, "after")):
        largest = pl.col("counts").arr.max().alias(side)
        scan = folder.table(PUBLISHED)
        sizes.append(scan.select(*(pl.col(axis).cast(pl.String) for axis in axes), largest).collect(engine="streaming"))
    both = sizes[0].join(sizes[1], on=axes, how="full", coalesce=True).sort(axes)
    starts = [start for start, _ in AREA_SIZES]
    largest = pl.coalesce("after", "before")
    return both.with_row_index("area").select(
        "area",
        *axes,
        pl.col("before").is_not_null().alias("in_before"),
        pl.col("after").is_not_null().alias("in_after"),
        pl.sum_horizontal((largest >= start).cast(pl.Int8) for start in starts[1:]).alias("size"),
    )


def differences(before: AuditFolder, after: AuditFolder, cells: Iterable[MatchedCell]) -> list[dict[str, Any]]:
    """Return in what two audits differ apart from what was published: then not all changes come from that."""
    differing = []
    for what, means in (
        ("threshold", "this alone makes counts between the two likely, or no longer likely"),
        ("prior", "this alone makes some counts likely, or no longer likely"),
        ("population", "claims that depend on counts that may have been adjusted are classified differently"),
        ("unround", "they were made by different versions of unround"),
    ):
        old, other = before.summary[what], after.summary[what]
        if old != other:
            differing.append({"what": what, "before": old, "after": other, "means": means})
    differing += _assumed(before.summary, after.summary)
    differing += _mechanisms(before.schema, after.schema, cells)
    return differing


def _assumed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return whether areas were linked, or keys used, in one audit and not in the other."""
    differing = []
    old, other = (summary["keys"]["rounding"] for summary in (before, after))
    if old and other and old != other:
        means = "one audit uses the keys that the data show, and the other does not, so probabilities differ"
        differing.append({"what": "rounding", "before": old, "after": other, "means": means})
    old, other = (sum(level["linked"] for level in summary["linked"]["levels"]) for summary in (before, after))
    if old != other and before["areas"] == after["areas"]:  # else it comes from areas that were published besides
        means = "other areas were linked with each other (--link, --areas)"
        differing.append({"what": "the number of linked families of areas", "before": old, "after": other, "means": means})
    return differing


def _mechanisms(before: Mapping[str, Any], after: Mapping[str, Any], cells: Iterable[MatchedCell]) -> list[dict[str, Any]]:
    """Return for which columns, published under the same name, another mechanism was assumed."""
    old, other = ({c["key"]: c["mechanism"] for c in audit["columns"]} for audit in (before, after))
    changed: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        for key in cell.before:
            if key in old and key in other and old[key] != other[key]:
                changed.setdefault((old[key], other[key]), []).append(key)
    return [
        {
            "what": "mechanism",
            "before": old,
            "after": new,
            "means": f"{len(keys):,} {'column was' if len(keys) == 1 else 'columns were'} assumed to be published "
            f"differently: {shortened(keys, MOST_NAMED)}",
        }
        for (old, new), keys in changed.items()
    ]


def _few(audit: Mapping[str, Any]) -> str:
    return shortened([column["key"] for column in audit["columns"]], MOST_NAMED)


STRENGTH = {"likely": 1, "conditional": 2, "proved": 3}  # kinds of claims, the strongest last; 0 is not a claim
MOST = 12  # cells that are listed; the others are counted

KEY = ("before", "after", "class", "block", "size", "known", "there", "laid_open", "other_value")
"""What cells are counted by: the strengths of both claims, the class of the count, the table, the size of the area, whether
the audit before published the cell and the one after does, whether it is published as it is now, and whether the two
claims name different counts."""


def _claims(match: MatchedAudits, folder: AuditFolder) -> pl.LazyFrame:
    """Return the claims of an audit, with numbers in place of names; of a count that is shown twice, the stronger one."""
    axes, codes = match.axes, folder.axes
    claims = folder.table(FINDINGS).with_columns(pl.col(*axes, *codes).cast(pl.String))
    if match.without_zeros:
        claims = claims.filter(~((pl.col("kind") == "likely") & (pl.col("value") == 0) & pl.col("published").eq_missing(0)))
    numbered = claims.join(match.areas.lazy().select("area", *axes), on=axes).join(match.codes(folder).lazy(), on=codes)
    kind = pl.col("kind").replace_strict(STRENGTH, return_dtype=pl.Int8)
    known = numbered.select("area", "cell", kind, pl.col("value").cast(pl.Int32), pl.col("probability").cast(pl.Float64))
    strongest = known.sort("area", "cell", "kind", "probability", descending=[False, False, True, True])
    return strongest.unique(["area", "cell"], keep="first", maintain_order=True)


def joined(match: MatchedAudits) -> pl.LazyFrame:
    """Return a row for every cell about which either audit claims something."""
    names = {"kind": "before", "value": "was", "probability": "was_probability"}
    before, after = _claims(match, match.before).rename(names), _claims(match, match.after).rename({"kind": "after"})
    cells = pl.LazyFrame(
        {
            "cell": pl.Series(range(len(match.cells)), dtype=pl.UInt32),
            "block": [cell.block for cell in match.cells],
            "had": [bool(cell.before) for cell in match.cells],
            "has": [bool(cell.after) for cell in match.cells],
            "laid_open": [cell.laid_open for cell in match.cells],
        }
    )
    count = pl.coalesce("value", "was")
    claimed = pl.col("before", "after")
    return (
        before.join(after, on=["area", "cell"], how="full", coalesce=True)
        .join(match.areas.lazy().select("area", "in_before", "in_after", "size"), on="area")
        .join(cells, on="cell")
        .with_columns(
            claimed.fill_null(0),
            pl.sum_horizontal((count >= start).cast(pl.Int8) for start, _ in SIZES[1:]).alias("class"),
            (pl.col("had") & pl.col("in_before")).alias("known"),
            (pl.col("has") & pl.col("in_after")).alias("there"),
            (pl.col("was") != pl.col("value")).fill_null(False).alias("other_value"),
        )
    )


def _best(cells: pl.LazyFrame) -> pl.LazyFrame:
    """Return the new claims that matter most: proved before conditional before likely, small counts first."""
    urgent = [SMALL_FIRST.index(name) for _, name in SIZES]
    rank = pl.col("class").replace_strict(list(range(len(SIZES))), urgent, return_dtype=pl.Int8)
    keys = (-pl.col("after"), rank, "before", -pl.col("probability"), "value", "area", "cell")
    return cells.filter(pl.col("after") > pl.col("before")).sort(*keys).head(MOST)


KINDS = {0: "none"} | {strength: kind for kind, strength in STRENGTH.items()}
LOST = ("published_exactly", "not_in_after", "no_longer_follows")
"""Why a claim is gone. The first is not a relief: everybody can read the count now."""


@dataclass(frozen=True, eq=False)
class Diff(Shown):
    """What changed between two audits of the same people.

    - `laid_open`: Counts that were published under protection, and now are published as they are, by their size.
    """

    match: MatchedAudits  # the two, side by side
    cube: pl.DataFrame  # how many cells there are with claims of either audit, by `KEY`
    strongest: list[dict[str, Any]]  # the new claims that matter most
    laid_open: dict[str, int]

    def number(self, *conditions: Any) -> int:
        """Return how many cells fulfil all conditions, which are expressions of polars."""
        return int(self.cube.filter(*conditions)["len"].sum())

    def newly(self, *conditions: Any) -> dict[str, int]:
        """Return how many claims of each kind are new: there was none about the cell, or a weaker one."""
        new = pl.col("before") < pl.col("after")
        return {kind: self.number(new, pl.col("after") == STRENGTH[kind], *conditions) for kind in CLAIMS}

    def gone(self, *conditions: Any) -> dict[str, int]:
        """Return how many claims of each kind are no more: there is none about the cell now."""
        return {kind: self.number(pl.col("after") == 0, pl.col("before") == STRENGTH[kind], *conditions) for kind in CLAIMS}

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; docs/whatif.md tells what each field means."""
        match = self.match
        known, other, alike = pl.col("known"), pl.col("other_value"), pl.col("before") == pl.col("after")
        there, exact = pl.col("there"), pl.col("laid_open")
        why = (self.gone(there, exact), self.gone(~there), self.gone(there, ~exact))
        return {
            "unround": __version__,
            "before": _side(match.before) | {"counts": self._claimed("before")},
            "after": _side(match.after) | {"counts": self._claimed("after")},
            "differences": other_people(match) + differences(match.before, match.after, match.cells),
            "matched": self._matched(),
            "newly": self.newly(),
            "newly_of_known_cells": self.newly(known),
            "newly_of_new_cells": self.newly(~known),
            "lost": self.gone(),
            "lost_because": dict(zip(LOST, why, strict=True)),
            "weaker": {
                kind: self.number(pl.col("after") < pl.col("before"), pl.col("after") == STRENGTH[kind]) for kind in CLAIMS
            },
            "unchanged": {kind: self.number(alike, ~other, pl.col("after") == STRENGTH[kind]) for kind in CLAIMS},
            "other_value": self.number(other),
            "proved_otherwise": self.number(other, pl.col("before") == 3, pl.col("after") == 3),
            "now_published_exactly": sum(self.laid_open.values()),
            "transitions": {
                KINDS[old]: {
                    KINDS[two]: self.number(pl.col("before") == old, pl.col("after") == two) for two in KINDS if old or two
                }
                for old in KINDS
            },
            "by_value": self._by("class", {name: _place(name) for name in SMALL_FIRST}),
            "by_block": self._by_block(),
            "by_area_size": self._by("size", {name: k for k, (_, name) in enumerate(AREA_SIZES)}),
            "strongest": self.strongest,
        }

    def _claimed(self, side: str) -> dict[str, int]:
        """Return how many counts an audit claims something about: one that is published twice counts once."""
        return {kind: self.number(pl.col(side) == STRENGTH[kind]) for kind in CLAIMS}

    def _by(self, column: str, names: dict[str, Any]) -> dict[str, dict[str, dict[str, int]]]:
        numbers = {}
        for name, value in names.items():
            here = pl.col(column) == value
            numbers[name] = {"newly": self.newly(here), "lost": self.gone(here), "small": self.newly(here, _small())}
        return numbers

    def _by_block(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return the same by table: the tables with most new claims first, small counts among them before all."""
        blocks = self.cube["block"].unique().sort().to_list()
        numbers = self._by("block", {name: name for name in blocks})

        def urgency(item: tuple[str, dict[str, dict[str, int]]]) -> tuple[int, ...]:
            small, newly = item[1]["small"], item[1]["newly"]
            return (-small["proved"], -newly["proved"], -sum(small.values()), -sum(newly.values()))

        return dict(sorted(numbers.items(), key=urgency))

    def _matched(self) -> dict[str, Any]:
        areas, cells = self.match.areas, self.match.cells
        before, other = pl.col("in_before"), pl.col("in_after")
        return {
            "areas_in_both": areas.filter(before & other).height,
            "areas_only_before": areas.filter(before & ~other).height,
            "areas_only_after": areas.filter(other & ~before).height,
            "counts_in_both": sum(bool(cell.before and cell.after) for cell in cells),
            "counts_only_before": [cell.key for cell in cells if not cell.after],
            "counts_only_after": [cell.key for cell in cells if not cell.before],
            "counts_published_again": [cell.key for cell in cells if len(cell.after) > len(cell.before) > 0],
        }


def diff(before: Path | str, after: Path | str, progress: Stage = lambda *_: None) -> Diff:
    """Compare two audits of the same people: what the later one exposes that the earlier did not."""
    match = MatchedAudits.of(AuditFolder.open(before), AuditFolder.open(after))
    progress("Comparing", 0, 1)
    cells = joined(match)
    cube, best = pl.collect_all([cells.group_by(KEY).len().sort(KEY), _best(cells)], engine="streaming")
    progress("Comparing", 1, 1)
    return Diff(match, cube, _listed(match, best), match.laid_open())


def _small() -> Any:
    return pl.col("class") == _place("1-2")


def _place(name: str) -> int:
    return [size for _, size in SIZES].index(name)


def _side(folder: AuditFolder) -> dict[str, Any]:
    summary = folder.summary
    fields = ("source", "product", "areas", "cells_published", *CLAIMS, "threshold", "prior", "population", "unround")
    more = {ZEROS_NOT_LISTED: summary[ZEROS_NOT_LISTED], "sums": summary["structure"]["sums_kept"]}
    return {"path": str(folder.path)} | {name: summary[name] for name in fields} | more


def _listed(match: MatchedAudits, best: pl.DataFrame) -> list[dict[str, Any]]:
    """Return new claims as rows for people: where, what, which count, on which way."""
    if not best.height:
        return []
    axes, codes, folder = match.axes, match.after.axes, match.after
    wanted = best.with_row_index("rank").join(match.areas.select("area", *axes), on="area")
    named = match.codes(folder).with_row_index("at").lazy()
    rows = (
        folder.table(FINDINGS)
        .with_columns(pl.col(*axes, *codes).cast(pl.String))
        .filter(pl.col(axes[0]).is_in(wanted[axes[0]].to_list()))  # a few areas only: the rest is not kept
        .join(named, on=codes)
        .drop("value", "probability")
        .with_columns(pl.col("kind").replace_strict(STRENGTH, return_dtype=pl.Int8).alias("strength"))
        .join(wanted.lazy(), left_on=[*axes, "cell", "strength"], right_on=[*axes, "cell", "after"])
        .sort("rank", "at")  # of a count that is shown twice, the first number
        .unique("rank", keep="first", maintain_order=True)
        .collect()
    )
    listed = []
    for row in rows.iter_rows(named=True):
        cell = match.cells[row["cell"]]
        was = {"kind": KINDS[row["before"]], "value": None, "probability": None}
        if row["before"]:
            was |= {"value": row["was"], "probability": row["was_probability"]}
        listed.append(
            {
                "area": {axis: row[axis] for axis in axes},
                "area_name": row.get("region_name"),
                "codes": {axis: row[axis] for axis in codes},
                "key": cell.key,
                "label": cell.label,
                "table": cell.block,
                "published": row["published"],
                "value": row["value"],
                "kind": row["kind"],
                "probability_low": row["probability_low"],
                "probability": row["probability"],
                "probability_high": row["probability_high"],
                "before": was,
                "published_before": bool(row["known"]),
                "route": row["route"],
                "assumptions": row["assumptions"],
            }
        )
    return listed
