"""START HERE: two audit folders become one Diff."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround._version import __version__
from unround.audits import AuditFolder
from unround.audits.folder import FINDINGS
from unround.audits.summary import AREA_SIZES, CLAIMS, SIZES
from unround.differences.match import MatchedAudits, differences, other_people
from unround.differences.tally import SMALL_FIRST, STRENGTH, Counted, tally
from unround.spool import Stage

if TYPE_CHECKING:
    import polars as pl

KINDS = {0: "none"} | {strength: kind for kind, strength in STRENGTH.items()}
LOST = ("published_exactly", "not_in_after", "no_longer_follows")
"""Why a claim is no more. The first is no relief: everybody can read the count now."""


@dataclass(frozen=True, eq=False)
class Diff:
    """What changed between two audits of the same people.

    Parameters
    ----------
    match : MatchedAudits
        The two, side by side.
    counted : Counted
        How many cells there are with claims of either audit.
    strongest : list of dict
        The new claims that matter most.
    laid_open : dict
        Counts that were published under protection, and now are published as they are, by their size.
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
    """Compare two audits of the same people: what the later one exposes that the earlier did not.

    Parameters
    ----------
    before, after : path
        Folders that `audit` wrote: without and with a table, for instance.
    progress : function
        Is told how far it is.

    Raises
    ------
    InputError
        If one of them is no audit, or they have nothing in common.
    """
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
        pl.scan_parquet(folder.path / FINDINGS)
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
                "probability": row["probability"],
                "before": was,
                "published_before": bool(row["known"]),
                "route": row["route"],
                "assumptions": row["assumptions"],
            }
        )
    return found
