"""Which areas and counts of two audits are the same, and in what the audits themselves differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unround.audits import AuditFolder
from unround.audits.folder import PUBLISHED
from unround.audits.summary import AREA_SIZES, SIZES
from unround.errors import InputError

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
        """Put two audits side by side.

        Raises `InputError` if they have no area, or no count, in common.
        """
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

    Examples
    --------
    >>> named(["a", "b"]), named(list("abcdefg"))
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    few = ", ".join(names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{few} and {more:,} more" if more > 0 else few


def _few(told: Mapping[str, Any]) -> str:
    return named([column["key"] for column in told["columns"]])
