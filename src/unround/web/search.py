"""Searching areas: an index in memory, and the few best of all that fit."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

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
