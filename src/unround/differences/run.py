"""START HERE: two audit folders become one Diff.

Which areas and counts of two audits are the same, and in what the audits themselves differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround._version import __version__
from unround.audits.findings import SIZES, SMALL_FIRST
from unround.errors import InputError
from unround.job import AuditFolder
from unround.job.folder import FINDINGS, PUBLISHED, ZEROS_NOT_LISTED
from unround.output import scratch_folder
from unround.score.summary import AREA_SIZES, CLAIMS
from unround.shown import Shown
from unround.tables.spool import Stage

if TYPE_CHECKING:
    import polars as pl

EXACT = "exact"
MOST_NAMED = 5
"""Columns or areas that are named where more are meant."""


@dataclass(frozen=True)
class MatchedCell:
    """One count that an area can have, under however many names it was published.

    - `key`, `label`, `block`: Its name, what it counts, and the table that it stands in.
    - `before`, `after`: The keys of its columns in either audit; none where that does not publish it.
    - `exact_before`, `exact_after`: Those of them that were published as they are.
    """

    key: str
    label: str
    block: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    exact_before: tuple[str, ...]
    exact_after: tuple[str, ...]

    @property
    def laid_open(self) -> bool:
        """Whether it was published under protection before, and as it is after."""
        return bool(self.before and self.exact_after and not self.exact_before)


@dataclass(frozen=True, eq=False)
class MatchedAudits:
    """Two audits side by side.

    - `before`, `after`: The audits.
    - `cells`: Every count of either audit; one that both have, or that one shows twice, is one cell.
    - `areas`: Every area of either audit: its number, its axes, `in_before`, `in_after`, and its `size`, a place in
      `AREA_SIZES`.
    """

    before: AuditFolder
    after: AuditFolder
    cells: tuple[MatchedCell, ...]
    areas: pl.DataFrame

    @classmethod
    def of(cls, before: AuditFolder, after: AuditFolder) -> MatchedAudits:
        """Put two audits side by side."""
        for what, name in (("rows", "areas"), ("columns", "axes")):
            one, other = before.told[name], after.told[name]
            if one != other:
                raise InputError(
                    f"{before.path} has {what} by {', '.join(one)}, {after.path} by {', '.join(other)}: two audits can be "
                    "compared only if their areas and counts have the same names. Audit files of the same format."
                )
        cells = tuple(_cells(before.told, after.told))
        if not any(cell.before and cell.after for cell in cells):
            raise InputError(
                f"{before.path} and {after.path} have no count in common: one has {_few(before.told)}, the other "
                f"{_few(after.told)}. `diff` compares audits of the same people, such as one with a table and one without."
            )
        areas = _areas(before, after)
        if not (areas["in_before"] & areas["in_after"]).any():
            named = tuple(before.told["areas"])
            one, other = (next(folder.areas.select(named).iter_rows()) for folder in (before, after))
            raise InputError(
                f"{before.path} and {after.path} have no area in common: one has {', '.join(map(str, one))} …, the other "
                f"{', '.join(map(str, other))} … Areas are matched by code; check that both files use the same codes."
            )
        return cls(before, after, cells, areas)

    @property
    def axes(self) -> list[str]:
        """The axes of the areas."""
        return list(self.before.told["areas"])

    @property
    def without_zeros(self) -> bool:
        """Whether likely zeros that were published as 0 are left out on both sides, because one does not list them."""
        return any(folder.summary[ZEROS_NOT_LISTED] for folder in (self.before, self.after))

    def codes(self, folder: AuditFolder) -> pl.DataFrame:
        """Return which cell the codes of a folder's columns mean."""
        import polars as pl

        known = {key: at for at, cell in enumerate(self.cells) for key in (*cell.before, *cell.after)}
        columns = folder.told["columns"]
        codes = {
            axis: pl.Series([column["codes"][i] for column in columns], dtype=pl.String)
            for i, axis in enumerate(folder.told["axes"])
        }
        return pl.DataFrame(codes | {"cell": pl.Series([known[column["key"]] for column in columns], dtype=pl.UInt32)})

    def laid_open(self) -> dict[str, int]:
        """Return how many counts were published under protection before, and as they are after, by their size."""
        import polars as pl

        places = {column["key"]: at for at, column in enumerate(self.after.told["columns"])}
        columns = [[places[key] for key in cell.exact_after if key in places] for cell in self.cells if cell.laid_open]
        found = {name: 0 for _, name in SIZES}
        both = self.areas.lazy().filter(pl.col("in_before") & pl.col("in_after")).select(self.axes)
        scan = pl.scan_parquet(self.after.file(PUBLISHED), glob=False).with_columns(pl.col(self.axes).cast(pl.String))
        scan = scan.join(both, on=self.axes, how="semi")
        ends = [*(start for start, _ in SIZES[1:]), None]
        for some in filter(None, columns):
            count = pl.max_horizontal([pl.col("counts").arr.get(at) for at in some])
            inside = [
                ((count >= start) & (True if end is None else count < end)).sum().alias(name)
                for (start, name), end in zip(SIZES, ends, strict=True)
            ]
            for name, many in scan.select(inside).collect(engine="streaming").row(0, named=True).items():
                found[name] += many
        return found


def other_people(match: MatchedAudits) -> list[dict[str, Any]]:
    """Return whether numbers that both published as they are differ: then the audits are of different people.

    No area is named, because public reports show this too.
    """
    import polars as pl

    cells = [cell for cell in match.cells if cell.exact_before and cell.exact_after]
    scans = []
    for folder, side, keys in (
        (match.before, "before", [cell.exact_before[0] for cell in cells]),
        (match.after, "after", [cell.exact_after[0] for cell in cells]),
    ):
        places = {column["key"]: at for at, column in enumerate(folder.told["columns"])}
        counts = [pl.col("counts").arr.get(places[key]).alias(f"{side}{at}") for at, key in enumerate(keys)]
        scan = pl.scan_parquet(folder.file(PUBLISHED), glob=False)
        scans.append(scan.select(*(pl.col(axis).cast(pl.String) for axis in match.axes), *counts))
    pairs = [(pl.col(f"before{at}"), pl.col(f"after{at}")) for at in range(len(cells))]
    if not pairs:
        return []
    differ = [(one >= 0) & (other >= 0) & (one != other) for one, other in pairs]  # what is absent is below 0
    told = (
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
    if not told["others"]:
        return []
    means = (
        f"they differ in {told['others']:,} of {told['areas']:,} areas, so these are not the same people, or a file was "
        "corrected. New claims about these areas do not come from the additional tables"
    )
    return [{"what": "unrounded counts", "before": told["before"], "after": told["after"], "means": means}]


def _cells(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[MatchedCell]:
    """Join the columns of both audits that show the same count, and yield what comes of it, in the order of the files."""
    columns = {side: {one["key"]: one for one in told["columns"]} for side, told in (("b", before), ("a", after))}
    same = _Same()
    for told in (before, after):
        for one in told["columns"]:
            same.add(one["key"])
        for total, parts in told["equations"]:
            if len(parts) == 1:  # a sum of one part: the same count, published twice
                same.join(told["columns"][total]["key"], told["columns"][parts[0]]["key"])
        for key, first in told["alias"].items():
            same.join(key, first)
    for keys in same.groups():
        there = {side: tuple(key for key in keys if key in columns[side]) for side in columns}
        # A copy that an audit left out, being the same number everywhere, still is a count that was published.
        had = {
            side: tuple(k for k in keys if k in columns[side] or k in told["alias"]) for side, told in _sides(before, after)
        }
        first = next((columns[side][key] for side in ("b", "a") for key in there[side]), None)
        if first is None:
            continue
        exact = {side: tuple(k for k in there[side] if columns[side][k]["mechanism"] == EXACT) for side in columns}
        yield MatchedCell(first["key"], first["label"], first["block"], had["b"], had["a"], exact["b"], exact["a"])


def _sides(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    return (("b", before), ("a", after))


class _Same:
    """Names that mean the same, joined pair by pair; groups come in the order in which names were first met."""

    def __init__(self) -> None:
        self._leader: dict[str, str] = {}
        self._place: dict[str, int] = {}

    def add(self, name: str) -> None:
        """Take in a name."""
        self._leader.setdefault(name, name)
        self._place.setdefault(name, len(self._place))

    def _find(self, name: str) -> str:
        while self._leader[name] != name:
            self._leader[name] = self._leader[self._leader[name]]
            name = self._leader[name]
        return name

    def join(self, one: str, other: str) -> None:
        """Say that two names mean the same."""
        self.add(one)
        self.add(other)
        first, second = sorted((self._find(one), self._find(other)), key=self._place.__getitem__)
        self._leader[second] = first

    def groups(self) -> list[list[str]]:
        """Return the names that mean the same, together."""
        found: dict[str, list[str]] = {}
        for name in self._place:
            found.setdefault(self._find(name), []).append(name)
        return list(found.values())


def _areas(before: AuditFolder, after: AuditFolder) -> pl.DataFrame:
    import polars as pl

    axes = list(before.told["areas"])
    sizes = []
    for folder, side in ((before, "before"), (after, "after")):
        largest = pl.col("counts").arr.max().alias(side)
        scan = pl.scan_parquet(folder.file(PUBLISHED), glob=False)
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
    found = []
    for what, means in (
        ("threshold", "this alone makes counts between the two likely, or no longer likely"),
        ("prior", "this alone makes some counts likely, or no longer likely"),
        ("population", "claims that depend on counts that may have been adjusted are classified differently"),
        ("unround", "they were made by different versions of unround"),
    ):
        one, other = before.summary[what], after.summary[what]
        if one != other:
            found.append({"what": what, "before": one, "after": other, "means": means})
    found += _assumed(before.summary, after.summary)
    found += _mechanisms(before.told, after.told, cells)
    return found


def _assumed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return whether areas were linked, or keys used, in one audit and not in the other."""
    found = []
    one, other = (told.get("keys", {}).get("rounding") for told in (before, after))
    if one and other and one != other:
        means = "one audit uses the keys that the data show, and the other does not, so probabilities differ"
        found.append({"what": "rounding", "before": one, "after": other, "means": means})
    one, other = (sum(level["linked"] for level in told.get("linked", {}).get("levels", ())) for told in (before, after))
    if one != other and before["areas"] == after["areas"]:  # else it comes from areas that were published besides
        means = "other areas were linked with each other (--link, --areas)"
        found.append({"what": "the number of linked families of areas", "before": one, "after": other, "means": means})
    return found


def _mechanisms(before: Mapping[str, Any], after: Mapping[str, Any], cells: Iterable[MatchedCell]) -> list[dict[str, Any]]:
    """Return for which columns, published under the same name, another mechanism was assumed."""
    one, other = ({c["key"]: c["mechanism"] for c in told["columns"]} for told in (before, after))
    changed: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        for key in cell.before:
            if key in one and key in other and one[key] != other[key]:
                changed.setdefault((one[key], other[key]), []).append(key)
    return [
        {
            "what": "mechanism",
            "before": old,
            "after": new,
            "means": f"{len(keys):,} {'column was' if len(keys) == 1 else 'columns were'} assumed to be published "
            f"differently: {named(keys)}",
        }
        for (old, new), keys in changed.items()
    ]


def named(names: Sequence[str]) -> str:
    """Return the first of some names, and say that there are more.

    >>> named(["a", "b"]), named(list("abcdefg"))
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    few = ", ".join(names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{few} and {more:,} more" if more > 0 else few


def _few(told: Mapping[str, Any]) -> str:
    return named([column["key"] for column in told["columns"]])


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
    if match.without_zeros:
        claims = claims.filter(~((pl.col("kind") == "likely") & (pl.col("value") == 0) & pl.col("published").eq_missing(0)))
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
    more = {ZEROS_NOT_LISTED: told[ZEROS_NOT_LISTED], "sums": told["structure"]["sums_kept"]}
    return {"path": str(folder.path)} | {name: told[name] for name in fields} | more


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
