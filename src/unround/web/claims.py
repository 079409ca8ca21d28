"""The findings of an audit in memory: as numbers, ordered by strength, so that any filter answers at once."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.folder import FINDINGS
from unround.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from unround.audits import AuditFolder

LONGEST = 100
"""Signs of a query that are looked at."""


def plain(text: str) -> str:
    """Return text as it is compared: small letters, without accents.

    Examples
    --------
    >>> plain("Montréal (V)")
    'montreal (v)'
    """
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign)).casefold()


class AreaIndex:
    """All areas of an audit, to be found by any part of their code or name.

    Parameters
    ----------
    codes, names : list of str
        A code and a name an area; where a name is the code again, or ends it, it is not repeated.
    """

    def __init__(self, codes: list[str], names: list[str]) -> None:
        import polars as pl

        self.codes = pl.Series("code", [plain(code) for code in codes], dtype=pl.String)
        self.names = pl.Series("name", [plain(name) for name in names], dtype=pl.String)
        self.both = self.codes + " " + self.names

    def mask(self, query: str) -> NDArray[np.bool_]:
        """Say which areas hold every word of a query somewhere in their code or name."""
        found = np.ones(len(self.both), dtype=bool)
        for word in plain(query[:LONGEST]).split():
            found &= self.both.str.contains(word, literal=True).to_numpy()
        return found

    def find(self, query: str, most: int, skip: int = 0) -> tuple[list[int], int]:
        """Return the rows of the best areas, and how many fit.

        A code, or the end of one, comes first; then names that start with the query; then the rest, as published.
        """
        rows = np.flatnonzero(self.mask(query))
        text = plain(query[:LONGEST]).strip()
        if not text:
            return rows[skip : skip + most].tolist(), len(rows)
        codes, names = self.codes.gather(rows), self.names.gather(rows)
        ways: list[pl.Series] = [
            codes == text,
            names == text,
            codes.str.ends_with(text),
            names.str.starts_with(text),
            names.str.contains(f" {text}", literal=True),
        ]
        rank = np.full(len(rows), len(ways))
        for place, way in reversed(list(enumerate(ways))):
            rank[way.to_numpy()] = place
        best = np.argsort(rank, kind="stable")[skip : skip + most]
        return rows[best].tolist(), len(rows)


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


KINDS = ("proved", "conditional", "likely")
SIZES = {"0": (0, 0), "1-2": (1, 2), "3-9": (3, 9), "10+": (10, None)}
"""Bands of the claimed count, as in summary.json."""
AREA_SIZES = {"0-99": (0, 99), "100-499": (100, 499), "500-1999": (500, 1999), "2000+": (2000, None)}
"""Bands of an area's largest published count, which for most releases is its population."""
PROBABILITIES = ("probability_low", "probability", "probability_high")
"""Under the most cautious prior, on average over all of them, and the highest found; a filter goes by the first."""
SORTS = ("strongest", "area")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which findings are wanted; None and "" want all."""

    kinds: tuple[str, ...] = ()
    probability: float = 0.0
    table: int | None = None
    level: str = ""
    area: str = ""
    size: str = ""
    area_size: str = ""
    sort: str = "strongest"

    @classmethod
    def read(cls, query: Mapping[str, str], kinds: list[str]) -> Filter:
        """Read a filter from the parameters of an address.

        Raises
        ------
        InputError
            For one that means nothing: a filter that is ignored would show the wrong findings under its name.
        """
        chosen = tuple(one for one in KINDS if one in kinds)
        unknown = [one for one in kinds if one and one not in KINDS]
        if unknown:
            raise InputError(f"there is no kind {unknown[0]!r}: choose among {', '.join(KINDS)}.")
        return cls(
            chosen,
            _percent(query.get("probability", "")),
            _whole(query["table"], "table") if query.get("table") else None,
            query.get("level", ""),
            query.get("area", "").strip(),
            _one_of(query.get("size", ""), SIZES, "size"),
            _one_of(query.get("area_size", ""), AREA_SIZES, "area_size"),
            _one_of(query.get("sort") or "strongest", dict.fromkeys(SORTS), "sort"),
        )

    def query(self) -> dict[str, Any]:
        """Return the parameters that `read` takes."""
        return {
            "kind": self.kinds,
            "probability": f"{self.probability * 100:g}" if self.probability else "",
            "table": self.table,
            "level": self.level,
            "area": self.area,
            "size": self.size,
            "area_size": self.area_size,
            "sort": self.sort if self.sort != SORTS[0] else "",
        }


def _percent(text: str) -> float:
    try:
        number = float(text or 0)
    except ValueError:
        number = -1
    if not 0 <= number <= 100:
        raise InputError(f"a probability is a number of percent from 0 to 100, such as 90; not {text!r}.")
    return number / 100


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InputError(f"{name} is a whole number, not {text!r}.")
    return int(text)


def _one_of(text: str, known: Mapping[str, object], name: str) -> str:
    if text and text not in known:
        raise InputError(f"there is no {name} {text!r}: choose among {', '.join(known)}.")
    return text


class Claims:
    """Every finding: the area and the cell by their places, and the numbers. Texts are looked up when shown."""

    def __init__(self, folder: AuditFolder, table_of: tuple[int, ...]) -> None:
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
        numbers = ["published", "low", "high", "value", *PROBABILITIES, "due_to_sums"]
        found = (
            pl.scan_parquet(folder.file(FINDINGS))
            .join(areas, on=places, how="left", maintain_order="left")
            .join(cells, on=axes, how="left", maintain_order="left")
            .select("row", "cell", "table", *numbers, kind.alias("kind"))
        )
        self.frame: pl.DataFrame = (
            found.with_row_index("place").sort("kind", "probability", "place", descending=[False, True, False]).collect()
        )
        if self.frame["row"].null_count() or self.frame["cell"].null_count():
            raise InputError(f"the findings in {folder.path} do not belong to its model/. Run the audit again.")
        self.by_area: NDArray[np.int64] = np.bincount(self.frame["row"].to_numpy(), minlength=folder.areas.height)
        self.by_table: NDArray[np.int64] = np.bincount(self.frame["table"].to_numpy(), minlength=max(table_of) + 1)

    def find(
        self, wanted: Filter, index: AreaIndex, levels: NDArray[np.object_] | None, sizes: NDArray[np.int64] | None
    ) -> pl.DataFrame:
        """Return the findings that pass a filter.

        Parameters
        ----------
        wanted : Filter
            What to keep.
        index : AreaIndex
            Finds areas by their names.
        levels, sizes : array
            For every area its level and its size; only needed if the filter asks for them.
        """
        import polars as pl

        frame = self.frame
        keep: list[pl.Expr] = []
        if wanted.kinds:
            keep.append(pl.col("kind").is_in([KINDS.index(name) for name in wanted.kinds]))
        if wanted.probability:
            keep.append(pl.col("probability_low") >= wanted.probability)
        if wanted.table is not None:
            keep.append(pl.col("table") == wanted.table)
        if wanted.size:
            low, high = SIZES[wanted.size]
            keep.append(pl.col("value") >= low)
            keep += [pl.col("value") <= high] if high is not None else []
        if keep:
            frame = frame.filter(*keep)
        areas = np.ones(len(self.by_area), dtype=bool)
        if wanted.level and levels is not None:
            areas &= levels == wanted.level
        if wanted.area:
            areas &= index.mask(wanted.area)
        if wanted.area_size and sizes is not None:
            low, high = AREA_SIZES[wanted.area_size]
            areas &= (sizes >= low) & (sizes <= high if high is not None else True)
        if not areas.all():
            frame = frame.filter(pl.Series(areas).gather(frame["row"]))
        return frame.sort("place") if wanted.sort == "area" else frame
