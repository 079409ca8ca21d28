"""The findings of an audit in memory: as numbers in the order of their weight, so that any filter answers at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.findings import ADD_UP, SMALL_FIRST, size_class
from unround.errors import InputError
from unround.job.folder import FINDINGS
from unround.web.facets import STEPS, Choice, Facet, Filter, Mask, choices, facet_mask, passing
from unround.web.search import TextIndex, words_of

if TYPE_CHECKING:
    import polars as pl

    from unround.job import AuditFolder

KINDS = ("proved", "conditional", "likely")
SIZES = dict(zip(SMALL_FIRST, ("1–2", "3–9", "10 or more", "zeros"), strict=True))
"""Classes of the claimed count, the most sensitive first; as in summary.json."""
ROUTES = {
    "one": "one sum",
    "several": "several sums combined",
    "areas": ADD_UP,
    "prior": "sums and the fitted prior",
}
"""How claims were made, by what stands in an address."""
AREA_SIZES = {"0-99": "under 100", "100-499": "100–499", "500-1999": "500–1,999", "2000+": "2,000 or more"}
"""Bands of an area's largest published count, which for most releases is its population."""
AREA_STARTS = np.array([100, 500, 2000])
PROBABILITIES = ("probability_low", "probability", "probability_high")
"""Under the most cautious prior, on average over all of them, and the highest found; a filter goes by the first."""
ROW_BY_ROW = 20
"""Findings that are taken out one by one: polars needs its threads for any number of rows together."""
NUMBERS = ("published", "low", "high", "value", *PROBABILITIES, "due_to_sums")


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The findings that pass a filter.

    - `places`: Their positions among all, in the order that was asked for.
    - `choices`: For each facet the classes that are offered, and how many findings each would show.
    - `steps`: Likewise for the least probability.
    """

    places: NDArray[np.int64]
    choices: Mapping[str, list[Choice]]
    steps: tuple[Choice, ...]


class Claims:
    """Every finding: the area and the cell by their places, and the numbers. Texts are looked up when shown."""

    def __init__(self, folder: AuditFolder, table_of: tuple[int, ...], line_of: NDArray[np.int64]) -> None:
        import polars as pl

        axes, places = folder.told["axes"], folder.told["areas"]
        columns = folder.model.columns
        cells = pl.LazyFrame(
            {axis: [column.codes[i] for column in columns] for i, axis in enumerate(axes)}
            | {"cell": np.arange(len(columns), dtype=np.int32), "table": np.array(table_of, dtype=np.int32)},
            schema_overrides=dict.fromkeys(axes, pl.String),
        )
        areas = folder.areas.lazy().select(places).with_row_index("row")
        kind = pl.col("kind").replace_strict({name: i for i, name in enumerate(KINDS)}, return_dtype=pl.Int8)
        by_areas = pl.col("route").str.starts_with("areas ")
        route = pl.when(by_areas).then(2).when(pl.col("depth") == 1).then(0).when(pl.col("depth") > 1).then(1).otherwise(3)
        found = (
            pl.scan_parquet(folder.file(FINDINGS), glob=False)
            .join(areas, on=places, how="left", maintain_order="left")
            .join(cells, on=axes, how="left", maintain_order="left")
            .select("row", "cell", "table", *NUMBERS, kind.alias("kind"), route.cast(pl.Int8).alias("route"))
        )
        self.frame: pl.DataFrame = found.collect()  # in the order of the file, which is that of their rank
        if self.frame["row"].null_count() or self.frame["cell"].null_count():
            raise InputError(f"the findings in {folder.path} do not belong to its model/. Run the audit again.")
        self.row: NDArray[np.int64] = self.frame["row"].to_numpy().astype(np.int64)
        self.cell: NDArray[np.int64] = self.frame["cell"].to_numpy().astype(np.int64)
        self.line: NDArray[np.int64] = line_of[self.cell]
        self.least: NDArray[np.float64] = self.frame["probability_low"].fill_null(0.0).to_numpy()
        self.size: NDArray[np.int64] = size_class(self.frame["value"].to_numpy())
        self.kind: NDArray[np.int64] = self.frame["kind"].to_numpy().astype(np.int64)
        self.by_area: NDArray[np.int64] = np.bincount(self.row, minlength=folder.areas.height)
        self.by_table: NDArray[np.int64] = np.bincount(self.frame["table"].to_numpy(), minlength=max(table_of) + 1)
        self._orders: dict[str, NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return self.frame.height

    def of_area(self, row: int) -> NDArray[np.int64]:
        """Return the positions of an area's findings, the most sensitive first."""
        order, starts = self._by_area
        return order[starts[row] : starts[row + 1]]

    @property
    def _by_area(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if "by area" not in self._orders:
            self._orders["starts"] = np.concatenate([[0], np.cumsum(self.by_area)])
            self._orders["by area"] = np.argsort(self.row, kind="stable")
        return self._orders["by area"], self._orders["starts"]

    def order(self, sort: str) -> NDArray[np.int64] | None:
        """Return the findings in one of the orders of `SORTS`; None for the one that they are in."""
        if sort == "strongest":
            return None
        if sort not in self._orders:
            by: dict[str, Callable[[], NDArray[Any]]] = {
                "probability": lambda: -self.least,
                "count": lambda: self.frame["value"].to_numpy(),
                "published": lambda: self.frame["published"].fill_null(-1).to_numpy(),
                "area": lambda: self.row,
            }
            self._orders[sort] = np.argsort(by[sort](), kind="stable")
        return self._orders[sort]

    def told(self, places: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return some findings as plain data."""
        if len(places) > ROW_BY_ROW:
            return self.frame[places].to_dicts()
        return [self.frame.row(place, named=True) for place in places.tolist()]


def size_of(value: int) -> str:
    """Return the class of a claimed count, as it stands in addresses.

    Examples
    --------
    >>> size_of(0), size_of(2), size_of(12)
    ('0', '1-2', '10+')
    """
    return SMALL_FIRST[int(size_class(value))]


def area_size_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for every area the position of its band in `AREA_SIZES`."""
    band: NDArray[np.int64] = np.searchsorted(AREA_STARTS, sizes, side="right")
    return band


def find(claims: Claims, wanted: Filter, facets: Mapping[str, Facet], areas: TextIndex, cells: TextIndex) -> Found:
    """Return the findings that pass a filter, and what every facet offers."""
    chosen = {name: facet_mask(facets[name], keys) for name, keys in wanted.chosen.items()}
    masks = list(chosen.values())
    if wanted.probability:
        masks.append(claims.least >= wanted.probability)
    if wanted.line is not None:
        masks.append(claims.line == wanted.line)
    if wanted.area:
        masks.append(areas.mask(wanted.area)[claims.row])
    masks += [areas.has(word)[claims.row] | cells.has(word)[claims.cell] for word in words_of(wanted.words)]
    kept, others = passing(masks, len(claims))
    order = claims.order(wanted.sort)
    places = np.flatnonzero(kept) if order is None else order[kept[order]]
    without = dict(zip(chosen, others, strict=False))
    offered = {name: choices(facet, without.get(name, kept), wanted.chosen.get(name, ())) for name, facet in facets.items()}
    any_probability = others[len(chosen)] if wanted.probability else kept
    return Found(places, offered, _steps(claims, wanted.probability, any_probability))


def _steps(claims: Claims, chosen: float, others: Mask) -> tuple[Choice, ...]:
    """Offer the least probabilities, and the one that is chosen."""
    least = claims.least[others]
    offered = []
    for step in sorted({0.0, *STEPS, chosen}):
        label = "any" if not step else f"{100 * step:g}% or more"
        number = int((least >= step).sum()) if step else len(least)
        offered.append(Choice(f"{100 * step:g}" if step else "", label, number, step == chosen))
    return tuple(offered)
