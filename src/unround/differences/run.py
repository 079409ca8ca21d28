"""START HERE: two audit folders become one Diff."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround._version import __version__
from unround.audits import AuditFolder
from unround.audits.folder import FINDINGS
from unround.audits.ranking import SIZES, SMALL_FIRST
from unround.audits.summary import AREA_SIZES, CLAIMS
from unround.differences.match import MatchedAudits, differences, other_people
from unround.output import scratch_folder
from unround.shown import Shown
from unround.tables.spool import Stage

if TYPE_CHECKING:
    import polars as pl

AT_A_TIME = 2_000_000
"""Claims of both audits together that are held in memory."""

STRENGTH = {"likely": 1, "conditional": 2, "proved": 3}
"""Kinds of claims, the strongest last; 0 is no claim."""

MOST = 12
"""Cells that are listed; the others are counted."""

KEY = ("before", "after", "class", "block", "size", "known", "there", "laid_open", "other_value")
"""What cells are counted by: the strengths of both claims, the class of the count, the table, the size of the area, whether
the audit before published the cell and the one after does, whether it is published as it is now, and whether the two
claims name different counts."""

NEW = ("cell", "after", "class")
"""What new claims are counted by."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Cells that either audit claims something about.

    - `cube`: How many there are, by `KEY`.
    - `by_cell`: How many claims are new, by `cell`, the strength of the claim `after`, and the `class` of the count.
    - `strongest`: The `MOST` new claims that matter most: proved before conditional before likely, small counts first.
    """

    cube: pl.DataFrame
    by_cell: pl.DataFrame
    strongest: pl.DataFrame


def tally(match: MatchedAudits, progress: Stage = lambda *_: None, at_a_time: int = AT_A_TIME) -> Counted:
    """Join the claims of both audits."""
    import polars as pl

    claims = sum(folder.summary[kind] for folder in (match.before, match.after) for kind in CLAIMS)
    parts = max(1, ceil(claims / at_a_time))
    cubes, by_cell, strongest = [], [], []
    for done, (before, after) in enumerate(_parts(match, parts)):
        progress("Comparing", done, parts)
        joined = _joined(match, before, after)
        cubes.append(joined.group_by(KEY).len())
        by_cell.append(joined.filter(pl.col("after") > pl.col("before")).group_by(NEW).len())
        strongest.append(_best(joined))
    progress("Comparing", parts, parts)
    blocks = dict(enumerate(dict.fromkeys(cell.block for cell in match.cells)))
    cube = _added(cubes, KEY).with_columns(pl.col("block").replace_strict(blocks, return_dtype=pl.String)).sort(KEY)
    return Counted(cube, _added(by_cell, NEW), _best(pl.concat(strongest)))


def _added(frames: list[pl.DataFrame], key: tuple[str, ...]) -> pl.DataFrame:
    import polars as pl

    return pl.concat(frames).group_by(key).agg(pl.col("len").sum()).sort(key)


def _parts(match: MatchedAudits, number: int) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the claims of both audits, those about the same areas together."""
    import polars as pl

    if number == 1:
        yield _scan(match, match.before).collect(), _scan(match, match.after).collect()
        return
    # Findings are sorted by what matters, not by area: one pass deals them out into a file a part.
    with scratch_folder("diff") as work:
        areas = ceil(match.areas.height / number)
        for side, folder in (("before", match.before), ("after", match.after)):
            dealt = _scan(match, folder).with_columns((pl.col("area") // areas).alias("part"))
            dealt.sink_parquet(pl.PartitionBy(work / side, key="part", include_key=False), mkdir=True)
        for part in range(number):
            yield _part(work / "before", part), _part(work / "after", part)


def _part(folder: Path, part: int) -> pl.DataFrame:
    import polars as pl

    files = sorted((folder / f"part={part}").glob("*.parquet"))
    return pl.concat([pl.read_parquet(file, glob=False) for file in files]) if files else pl.DataFrame(schema=_schema())


def _schema() -> dict[str, Any]:
    import polars as pl

    return {"area": pl.UInt32, "cell": pl.UInt32, "kind": pl.Int8, "value": pl.Int32, "probability": pl.Float64}


def _scan(match: MatchedAudits, folder: AuditFolder) -> pl.LazyFrame:
    """Return the claims of an audit, with numbers in place of names."""
    import polars as pl

    axes, codes = match.axes, folder.told["axes"]
    claims = pl.scan_parquet(folder.file(FINDINGS), glob=False).with_columns(pl.col(*axes, *codes).cast(pl.String))
    numbered = claims.join(match.areas.lazy().select("area", *axes), on=axes).join(match.codes(folder).lazy(), on=codes)
    kind = pl.col("kind").replace_strict(STRENGTH, return_dtype=pl.Int8)
    return numbered.select("area", "cell", kind, pl.col("value").cast(pl.Int32), pl.col("probability").cast(pl.Float64))


def _joined(match: MatchedAudits, before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Return a row for every cell of which either audit claims something."""
    import polars as pl

    many = len(match.cells)
    one, other = (_once(side, many) for side in (before, after))
    keys = np.sort(np.concatenate([one.keys, other.keys]))
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
    places_of = [np.searchsorted(keys, side.keys) for side in (one, other)]

    def spread(values: tuple[NDArray[Any], NDArray[Any]], nothing: Any) -> list[NDArray[Any]]:
        found = [np.full(len(keys), nothing, dtype=one.dtype) for one in values]
        for into, at, own in zip(found, places_of, values, strict=True):
            into[at] = own
        return found

    strength = spread((one.kind, other.kind), 0)
    was, value = spread((one.value, other.value), NOTHING)
    was_probability, probability = spread((one.probability, other.probability), np.nan)
    area, cell = keys // many, keys % many
    places, cells = match.areas, match.cells
    starts = [start for start, _ in SIZES]
    had, has, laid_open = (
        np.array([bool(getattr(one, name)) for one in cells], dtype=np.bool_)[cell]
        for name in ("before", "after", "laid_open")
    )
    there = {name: places[name].to_numpy()[area] for name in ("in_before", "in_after", "size")}
    blocks = list(dict.fromkeys(one.block for one in cells))
    at_block = np.array([blocks.index(one.block) for one in cells], dtype=np.uint32)
    said = np.where(strength[1] > 0, value, was)
    return pl.DataFrame(
        {
            "area": area.astype(np.uint32),
            "cell": cell.astype(np.uint32),
            "before": strength[0],
            "after": strength[1],
            "class": (np.searchsorted(starts, said, side="right") - 1).astype(np.int8),
            "block": at_block[cell],
            "size": there["size"].astype(np.int8),
            "known": had & there["in_before"],
            "there": has & there["in_after"],
            "laid_open": laid_open,
            "other_value": (strength[0] > 0) & (strength[1] > 0) & (was != value),
            "was": was,
            "was_probability": was_probability,
            "value": value,
            "probability": probability,
        }
    )


NOTHING = -1
"""The count of no claim."""


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """The claims of an audit, one a cell, in the order of their cells."""

    keys: NDArray[np.int64]
    kind: NDArray[np.int8]
    value: NDArray[np.int32]
    probability: NDArray[np.float64]


def _once(claims: pl.DataFrame, many: int) -> _Side:
    """Keep one claim a cell: of a count that is shown twice, the stronger one tells all."""
    keys = claims["area"].to_numpy().astype(np.int64) * many + claims["cell"].to_numpy()
    kind, probability = claims["kind"].to_numpy(), claims["probability"].to_numpy()
    # One number to sort by: the cell, then the stronger claim, then the likelier one.
    fine = (1 << 20) - 1
    order = np.argsort((keys * 4 + (3 - kind)) * (fine + 1) + (fine - np.rint(fine * probability).astype(np.int64)))
    ordered = keys[order]
    first = order[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(keys) else order
    return _Side(keys[first], kind[first], claims["value"].to_numpy()[first], probability[first])


def _best(joined: pl.DataFrame) -> pl.DataFrame:
    """Return the new claims that matter most."""
    import polars as pl

    urgent = pl.Series([SMALL_FIRST.index(name) for _, name in SIZES])
    new = joined.filter(pl.col("after") > pl.col("before"))
    rank = pl.col("class").replace_strict(list(range(len(SIZES))), urgent, return_dtype=pl.Int8)
    keys = (-pl.col("after"), rank, "before", -pl.col("probability"), "value", "area", "cell")
    return new.sort(*keys).head(MOST)


KINDS = {0: "none"} | {strength: kind for kind, strength in STRENGTH.items()}
LOST = ("published_exactly", "not_in_after", "no_longer_follows")
"""Why a claim is no more. The first is no relief: everybody can read the count now."""


@dataclass(frozen=True, eq=False)
class Diff(Shown):
    """What changed between two audits of the same people.

    - `match`: The two, side by side.
    - `counted`: How many cells there are with claims of either audit.
    - `strongest`: The new claims that matter most.
    - `laid_open`: Counts that were published under protection, and now are published as they are, by their size.
    """

    match: MatchedAudits
    counted: Counted
    strongest: list[dict[str, Any]]
    laid_open: dict[str, int]

    def number(self, *conditions: Any) -> int:
        """Return how many cells fulfil all conditions, which are expressions of polars."""
        return int(self.counted.cube.filter(*conditions)["len"].sum())

    def newly(self, *conditions: Any) -> dict[str, int]:
        """Return how many claims of each kind are new: there was none about the cell, or a weaker one."""
        import polars as pl

        new = pl.col("before") < pl.col("after")
        return {kind: self.number(new, pl.col("after") == STRENGTH[kind], *conditions) for kind in CLAIMS}

    def gone(self, *conditions: Any) -> dict[str, int]:
        """Return how many claims of each kind are no more: there is none about the cell now."""
        import polars as pl

        return {kind: self.number(pl.col("after") == 0, pl.col("before") == STRENGTH[kind], *conditions) for kind in CLAIMS}

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; docs/whatif.md tells what each field means."""
        import polars as pl

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
                KINDS[one]: {
                    KINDS[two]: self.number(pl.col("before") == one, pl.col("after") == two) for two in KINDS if one or two
                }
                for one in KINDS
            },
            "by_value": self._by("class", {name: _place(name) for name in SMALL_FIRST}),
            "by_block": self._by_block(),
            "by_area_size": self._by("size", {name: k for k, (_, name) in enumerate(AREA_SIZES)}),
            "strongest": self.strongest,
        }

    def _claimed(self, side: str) -> dict[str, int]:
        """Return how many counts an audit claims something about: one that is published twice counts once."""
        import polars as pl

        return {kind: self.number(pl.col(side) == STRENGTH[kind]) for kind in CLAIMS}

    def _by(self, column: str, names: dict[str, Any]) -> dict[str, dict[str, dict[str, int]]]:
        import polars as pl

        found = {}
        for name, value in names.items():
            here = pl.col(column) == value
            found[name] = {"newly": self.newly(here), "lost": self.gone(here), "small": self.newly(here, _small())}
        return found

    def _by_block(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return the same by table: the tables with most new claims first, small counts among them before all."""
        blocks = self.counted.cube["block"].unique().sort().to_list()
        found = self._by("block", {name: name for name in blocks})

        def urgency(item: tuple[str, dict[str, dict[str, int]]]) -> tuple[int, ...]:
            small, newly = item[1]["small"], item[1]["newly"]
            return (-small["proved"], -newly["proved"], -sum(small.values()), -sum(newly.values()))

        return dict(sorted(found.items(), key=urgency))

    def _matched(self) -> dict[str, Any]:
        import polars as pl

        areas, cells = self.match.areas, self.match.cells
        one, other = pl.col("in_before"), pl.col("in_after")
        return {
            "areas_in_both": areas.filter(one & other).height,
            "areas_only_before": areas.filter(one & ~other).height,
            "areas_only_after": areas.filter(other & ~one).height,
            "counts_in_both": sum(bool(cell.before and cell.after) for cell in cells),
            "counts_only_before": [cell.key for cell in cells if not cell.after],
            "counts_only_after": [cell.key for cell in cells if not cell.before],
            "counts_published_again": [cell.key for cell in cells if len(cell.after) > len(cell.before) > 0],
        }


def diff(before: Path | str, after: Path | str, progress: Stage = lambda *_: None) -> Diff:
    """Compare two audits of the same people: what the later one exposes that the earlier did not."""
    match = MatchedAudits.of(AuditFolder.open(before), AuditFolder.open(after))
    counted = tally(match, progress)
    return Diff(match, counted, _listed(match, counted.strongest), match.laid_open())


def _small() -> Any:
    import polars as pl

    return pl.col("class") == _place("1-2")


def _place(name: str) -> int:
    return [size for _, size in SIZES].index(name)


def _side(folder: AuditFolder) -> dict[str, Any]:
    told = folder.summary
    fields = ("source", "product", "areas", "cells_published", *CLAIMS, "threshold", "prior", "population", "unround")
    return {"path": str(folder.path)} | {name: told[name] for name in fields} | {"sums": told["structure"]["sums_kept"]}


def _listed(match: MatchedAudits, best: pl.DataFrame) -> list[dict[str, Any]]:
    """Return new claims as rows for people: where, what, which count, on which way."""
    import polars as pl

    if not best.height:
        return []
    axes, codes, folder = match.axes, list(match.after.told["axes"]), match.after
    wanted = best.with_row_index("rank").join(match.areas.select("area", *axes), on="area")
    named = match.codes(folder).with_row_index("at").lazy()
    rows = (
        pl.scan_parquet(folder.file(FINDINGS), glob=False)
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
    found = []
    for row in rows.iter_rows(named=True):
        cell = match.cells[row["cell"]]
        was = {"kind": KINDS[row["before"]], "value": None, "probability": None}
        if row["before"]:
            was |= {"value": row["was"], "probability": row["was_probability"]}
        found.append(
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
    return found
