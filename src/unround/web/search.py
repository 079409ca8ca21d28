"""Finding areas and characteristics by any part of their names."""

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
    if text.isascii():
        return text.lower()
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign)).casefold()


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
        """Say which hold a word, as `words_of` returns it."""
        found: NDArray[np.bool_] = self.all.str.contains(word, literal=True).to_numpy()
        return found

    def mask(self, query: str) -> NDArray[np.bool_]:
        """Say which hold every word of a query."""
        found = np.ones(len(self.all), dtype=bool)
        for word in words_of(query):
            found &= self.has(word)
        return found

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
