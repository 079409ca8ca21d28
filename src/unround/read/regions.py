"""Regions: what the codes of Canadian areas tell. DGUID = year + type + level + code of the area."""

from __future__ import annotations

import numpy as np
import polars as pl

from unround.read.exact import adjustable
from unround.release import AREA, Counts

COUNTRY = "11124"
"""The code of Canada in a DGUID."""

_DGUID = r"^([0-9]{4})([AS][0-9]{4})(.+)$"
_ABOVE = {
    # The type and level of an area; those of the area that it lies in, and how much of the code names that one.
    "A0002": ("A0000", 0),  # province or territory: country
    "A0003": ("A0002", 2),  # census division: province
    "A0004": ("A0002", 2),  # federal electoral district: province
    "S0500": ("A0002", 2),  # economic region: province
    "A0005": ("A0003", 4),  # census subdivision: census division
    "S0502": ("A0003", 4),  # census consolidated subdivision: census division
    "S0512": ("A0003", 4),  # dissemination area: census division, for its code does not tell its subdivision
    "S0516": ("A0003", 4),  # aggregate dissemination area: census division
}


def parents(regions: pl.Series) -> pl.Series:
    """Return the DGUID of the area that each lies in, as far as its own tells; null where it does not.

    Examples
    --------
    >>> parents(pl.Series(["2021S051235990001", "2021A00053599001", "2021A000235", "2021S05075990001.00"])).to_list()
    ['2021A00033599', '2021A00033599', '2021A000011124', None]
    """
    parts = regions.to_frame("region").select(
        pl.col("region").str.extract(_DGUID, 1).alias("year"),
        pl.col("region").str.extract(_DGUID, 2).alias("kind"),
        pl.col("region").str.extract(_DGUID, 3).alias("code"),
    )
    kind = pl.col("kind")
    above = kind.replace_strict({own: up for own, (up, _) in _ABOVE.items()}, default=None, return_dtype=pl.String)
    length = kind.replace_strict({own: n for own, (_, n) in _ABOVE.items()}, default=0, return_dtype=pl.UInt32)
    code = pl.when(length == 0).then(pl.lit(COUNTRY)).otherwise(pl.col("code").str.slice(0, length))
    return parts.select((pl.col("year") + above + code).alias("parent"))["parent"]


def describe(areas: pl.DataFrame, population: Counts | None) -> pl.DataFrame:
    """Return the frame of a block from what the file says of its areas.

    Parameters
    ----------
    areas : DataFrame
        With `region`, `name`, `level`, and `code` where the file has it.
    population : array, optional
        Of each area, as published; without it every subdivision counts as small.
    """
    if population is None:
        population = np.full(len(areas), -1, dtype=np.int32)
    levels = areas["level"].fill_null("")
    changed = [adjustable(level, people) for level, people in zip(levels, population.tolist(), strict=True)]
    return pl.DataFrame(
        {
            AREA: areas["region"],
            "region_name": areas["name"].fill_null("").str.strip_chars(),
            "level": levels,
            "parent": parents(areas["region"]),
            "adjustable": pl.Series(changed, dtype=pl.Boolean),
            "code": areas["code"] if "code" in areas.columns else areas["region"].str.slice(9),
        }
    )
