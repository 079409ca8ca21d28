"""The claims of an audit: kept as arrays, sorted into classes by facets, and found by any part of a name."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from starlette.datastructures import QueryParams

from unround.audits.findings import ADD_UP, SMALL_FIRST, WEIGHED, size_class
from unround.errors import InputError
from unround.job.folder import FINDINGS
from unround.show.words import CLAIMS
from unround.web.page import whole

if TYPE_CHECKING:
    import polars as pl

    from unround.job import AuditFolder

Codes = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]

STEPS = (0.9, 0.95, 0.99)
"""Probabilities that are offered; any other can stand in an address."""
SORTS = {
    "strongest": "most sensitive first",
    "probability": "most probable first",
    "count": "smallest count first",
    "published": "smallest published value first",
    "area": "by area, as in the file",
}
"""The orders of a list of findings."""
LISTED = 12
"""Classes that an error message names."""


@dataclass(frozen=True, slots=True, eq=False)
class Facet:
    """One way of sorting findings into classes.

    - `name`, `title`: The parameter of an address, and what people read.
    - `keys`, `labels`: For each class what stands in an address, and what people read.
    - `codes`: For every finding the position of its class.
    - `by_number`: Whether the classes with the most findings come first, and not those that come first in the release.
    """

    name: str
    title: str
    keys: Sequence[str]
    labels: Sequence[str]
    codes: Codes
    by_number: bool = False

    def position(self, key: str) -> int:
        """Return the position of a class."""
        if key not in self.keys:
            some = ", ".join(self.keys[:LISTED]) + (" …" if len(self.keys) > LISTED else "")
            raise InputError(f"there is no {self.name} {key!r} in this audit: choose among {some}.")
        return self.keys.index(key)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which findings are wanted.

    - `chosen`: For each facet the classes that are wanted; all, where it is not there.
    - `probability`: The least probability, under the most cautious prior.
    - `line`: Only this characteristic, by its place in the outline.
    - `words`, `area`: Words that must all occur in the names of area and count; or of the area alone.
    - `sort`: One of `SORTS`.
    """

    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    probability: float = 0.0
    line: int | None = None
    words: str = ""
    area: str = ""
    sort: str = "strongest"

    @classmethod
    def read(cls, query: QueryParams, facets: Mapping[str, Facet], lines: int) -> Filter:
        """Read a filter from the parameters of an address."""
        chosen = {}
        for name, facet in facets.items():
            keys = tuple(dict.fromkeys(key for key in query.getlist(name) if key))
            for key in keys:
                facet.position(key)
            if keys:
                chosen[name] = keys
        line = whole(query["line"]) if query.get("line") else None
        if query.get("line") and (line is None or line >= lines):
            raise InputError(f"there is no line {query['line'][:20]} in this release: it has {lines:,}.")
        sort = query.get("sort") or "strongest"
        if sort not in SORTS:
            raise InputError(f"there is no sort {sort!r}: choose among {', '.join(SORTS)}.")
        words, area = query.get("q", "").strip(), query.get("area", "").strip()
        return cls(chosen, _percent(query.get("probability", "")), line, words, area, sort)

    def query(self) -> dict[str, Any]:
        """Return the parameters that `read` takes."""
        return {
            "q": self.words,
            **self.chosen,
            "probability": f"{self.probability * 100:g}" if self.probability else "",
            "line": self.line,
            "area": self.area,
            "sort": self.sort if self.sort != "strongest" else "",
        }

    @property
    def is_open(self) -> bool:
        """Whether every finding passes."""
        return not (self.chosen or self.probability or self.words or self.area) and self.line is None


def _percent(text: str) -> float:
    try:
        number = float(text or 0)
    except ValueError:
        number = -1
    if not 0 <= number <= 100:
        raise InputError(f"a probability is a number of percent from 0 to 100, such as 90; not {text!r}.")
    return number / 100


@dataclass(frozen=True, slots=True)
class FacetChoice:
    """One class of a facet, as it is offered: how many findings it would show, given everything else that is chosen."""

    key: str
    label: str
    number: int
    chosen: bool


def choices(facet: Facet, others: Mask, keys: tuple[str, ...]) -> list[FacetChoice]:
    """Return the classes of a facet with findings that pass all other filters, and those that are chosen."""
    numbers = np.bincount(facet.codes[others], minlength=len(facet.keys))
    chosen = {facet.position(key) for key in keys}
    places = sorted({*np.flatnonzero(numbers).tolist(), *chosen})
    if facet.by_number:
        places.sort(key=lambda at: (at not in chosen, -int(numbers[at]), at))
    return [FacetChoice(facet.keys[at], facet.labels[at], int(numbers[at]), at in chosen) for at in places]


LONGEST = 100
"""Characters of a query that are looked at."""


def plain(text: str) -> str:
    """Return text as it is compared: small letters, without accents.

    >>> plain("Montréal (V)")
    'montreal (v)'
    """
    if text.isascii():
        return text.lower()
    return "".join(
        character for character in unicodedata.normalize("NFKD", text) if not unicodedata.combining(character)
    ).casefold()


def words_of(query: str) -> list[str]:
    """Return the words of a query, as they are compared."""
    return plain(query[:LONGEST]).split()


class TextIndex:
    """Things with a code and a name, to be found by any part of either, or of what is said about them.

    - `codes`, `names`: A code and a name each; where a name is the code again, or ends it, it is "".
    - `about`: More text to be found by: where an area lies, the table of a characteristic.
    """

    def __init__(self, codes: list[str], names: list[str], about: list[str] | None = None) -> None:
        import polars as pl

        self.codes = pl.Series("code", [plain(code) for code in codes], dtype=pl.String)
        self.names = pl.Series("name", [plain(name) for name in names], dtype=pl.String)
        self.all = self.codes + " " + self.names
        if about is not None:
            self.all = self.all + " " + pl.Series("about", [plain(text) for text in about], dtype=pl.String)

    def has(self, word: str) -> NDArray[np.bool_]:
        """Return which hold a word, as `words_of` returns it."""
        holds: NDArray[np.bool_] = self.all.str.contains(word, literal=True).to_numpy()
        return holds

    def mask(self, query: str) -> NDArray[np.bool_]:
        """Return which hold every word of a query."""
        holds = np.ones(len(self.all), dtype=bool)
        for word in words_of(query):
            holds &= self.has(word)
        return holds

    def find(self, query: str, weights: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the positions of all that fit, the best first.

        A code, or the end of one, comes first; then names that start with the query; then the rest. Among equals those of
        the greatest weight come first, and then as published.
        """
        rows = np.flatnonzero(self.mask(query))
        text = plain(query[:LONGEST]).strip()
        rank = np.zeros(len(rows), dtype=np.int64)
        if text:
            codes, names = self.codes.gather(rows), self.names.gather(rows)
            ways: list[pl.Series] = [
                codes == text,
                names == text,
                codes.str.ends_with(text),
                names.str.starts_with(text),
                names.str.contains(f" {text}", literal=True),
            ]
            rank[:] = len(ways)
            for place, way in reversed(list(enumerate(ways))):
                rank[way.to_numpy()] = place
        weight = np.zeros(len(rows), dtype=np.int64) if weights is None else -weights[rows]
        best: NDArray[np.int64] = rows[np.lexsort((rows, weight, rank))]
        return best


def area_texts(areas: pl.DataFrame, axes: list[str]) -> tuple[list[str], list[str]]:
    """Return the code and the name of every area; the name is "" where there is none but the code."""
    import polars as pl

    codes: list[str] = areas.select(pl.concat_str([pl.col(axis).cast(pl.String) for axis in axes], separator="/"))[
        :, 0
    ].to_list()
    if "region_name" not in areas.columns:
        return codes, [""] * len(codes)
    named: list[Any] = areas["region_name"].to_list()
    return codes, ["" if not name or code.endswith(name) else str(name) for code, name in zip(codes, named, strict=True)]


SIZES = dict(zip(SMALL_FIRST, ("1–2", "3–9", "10 or more", "zeros"), strict=True))
"""Classes of the claimed count, the most sensitive first; as in summary.json."""
ROUTES = {
    "one": "one sum",
    "several": "several sums combined",
    "areas": ADD_UP,
    "weighed": WEIGHED,
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
    choices: Mapping[str, list[FacetChoice]]
    steps: tuple[FacetChoice, ...]


class Claims:
    """Every finding: the area and the cell by their places, and the numbers. Texts are looked up when shown."""

    def __init__(self, folder: AuditFolder, table_of: tuple[int, ...], line_of: NDArray[np.int64]) -> None:
        import polars as pl

        axes, places = folder.axes, folder.area_axes
        columns = folder.model.columns
        cells = pl.LazyFrame(
            {axis: [column.codes[i] for column in columns] for i, axis in enumerate(axes)}
            | {"cell": np.arange(len(columns), dtype=np.int32), "table": np.array(table_of, dtype=np.int32)},
            schema_overrides=dict.fromkeys(axes, pl.String),
        )
        areas = folder.areas.lazy().select(places).with_row_index("row")
        kind = pl.col("kind").replace_strict({name: i for i, name in enumerate(CLAIMS)}, return_dtype=pl.Int8)
        by_areas = pl.col("route").str.starts_with("areas ")
        route = pl.when(by_areas).then(2).when(pl.col("depth") == 1).then(0).when(pl.col("depth") > 1).then(1).otherwise(3)
        findings = (
            folder.table(FINDINGS)
            .join(areas, on=places, how="left", maintain_order="left")
            .join(cells, on=axes, how="left", maintain_order="left")
            .select("row", "cell", "table", *NUMBERS, kind.alias("kind"), route.cast(pl.Int8).alias("route"))
        )
        self.frame: pl.DataFrame = findings.collect()  # in the order of the file, which is that of their rank
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

    def rows(self, places: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return some findings as plain data."""
        if len(places) > ROW_BY_ROW:
            return self.frame[places].to_dicts()
        return [self.frame.row(place, named=True) for place in places.tolist()]


def size_of(value: int) -> str:
    """Return the class of a claimed count, as it stands in addresses.

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
    masks: dict[str, Mask] = {
        name: np.isin(facets[name].codes, [facets[name].position(key) for key in keys])
        for name, keys in wanted.chosen.items()
    }
    if wanted.probability:
        masks["probability"] = claims.least >= wanted.probability
    if wanted.line is not None:
        masks["line"] = claims.line == wanted.line
    if wanted.area:
        masks["area"] = areas.mask(wanted.area)[claims.row]
    for word in words_of(wanted.words):
        masks[f"word {word}"] = areas.has(word)[claims.row] | cells.has(word)[claims.cell]

    def passing(but: str = "") -> Mask:
        kept = np.ones(len(claims), dtype=bool)
        for name, mask in masks.items():
            kept &= mask | (name == but)
        return kept

    kept, order = passing(), claims.order(wanted.sort)
    places = np.flatnonzero(kept) if order is None else order[kept[order]]
    offered = {
        name: choices(facet, passing(name) if name in masks else kept, wanted.chosen.get(name, ()))
        for name, facet in facets.items()
    }
    return Found(places, offered, _steps(claims, wanted.probability, passing("probability")))


def _steps(claims: Claims, chosen: float, others: Mask) -> tuple[FacetChoice, ...]:
    """Offer the least probabilities, and the one that is chosen."""
    least = claims.least[others]
    offered = []
    for step in sorted({0.0, *STEPS, chosen}):
        label = "any" if not step else f"{100 * step:g}% or more"
        number = int((least >= step).sum()) if step else len(least)
        offered.append(FacetChoice(f"{100 * step:g}" if step else "", label, number, step == chosen))
    return tuple(offered)
