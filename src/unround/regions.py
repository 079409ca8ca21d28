"""What the codes of Canadian areas tell (DGUID = year + type + level + code), and what is published exactly.

Populations and dwellings are not rounded. But populations of small areas may be adjusted, "always within 5 of the actual
values"; those of census divisions and of large census subdivisions are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import polars as pl

from unround.mechanisms import Exact, Mechanism
from unround.release import AREA, Column, Counts

ADJUSTED = 5
LARGE = 5_000  # populations of census subdivisions from here on are not adjusted

_POPULATION = re.compile(r"population(?:, (?:18|19|20)\d\d)?")
_DWELLINGS = re.compile(r"dwellings|households|total private dwellings|private dwellings occupied by usual residents")
_OCCUPIED = ("households", "private dwellings occupied by usual residents")
_WHOLE = ("c", "country", "pr", "province", "territory", "province or territory", "cd", "census division")
_SUBDIVISION = ("csd", "census subdivision")


def published_exactly(label: str) -> tuple[Mechanism | None, int]:
    """Return the mechanism of a line, where it was not rounded, and by how much small areas may have been adjusted.

    >>> published_exactly("Population, 2021")
    (Exact(), 5)
    >>> published_exactly("Total private dwellings"), published_exactly("0 to 4 years")
    ((Exact(), 0), (None, 0))
    """
    name = label.strip().lower()
    if _POPULATION.fullmatch(name):
        return Exact(), ADJUSTED
    return (Exact(), 0) if _DWELLINGS.fullmatch(name) else (None, 0)


_SOURCE = re.compile(r"\b(?:(?P<full>100)|(?P<sample>25))% (?:sample )?data\b", re.IGNORECASE)


def of_sample(title: str) -> bool | None:
    """Return whether the title of a table announces estimates from a sample; None where it does not say.

    What was rounded in such a table is a sum of weights, not a whole number, however much of the table is there to see.

    >>> of_sample("Total - Religion - 25% sample data (126)"), of_sample("Total - Age - 100% data"), of_sample("Age")
    (True, False, None)
    """
    said = _SOURCE.search(title)
    return None if said is None else said["sample"] is not None


_HOUSEHOLDS = re.compile(r"\b(?:private )?(?:households?|dwellings)\b(?! in)(?!.*\bpopulation\b)", re.IGNORECASE)
_PERSONS = re.compile(r"\b(?:persons|population|recipients|aged)\b", re.IGNORECASE)


def with_limits(columns: Sequence[Column]) -> list[Column]:
    """Return columns that know which exact count they are a part of.

    Statistics Canada hides the counts of areas with fewer than 40 people, and incomes where there are few. Populations and
    households are still published there, and nothing that was counted among them is more.

    >>> names = [("Population, 2021", ""), ("0 to 4 years", "Total - Age - 100% data"), ("Hindu", "Faith - 25% sample data")]
    >>> columns = [Column(str(at), (str(at), "total"), name, table) for at, (name, table) in enumerate(names)]
    >>> columns[0] = replace(columns[0], mechanism=Exact())
    >>> [column.at_most for column in with_limits(columns)]
    ['', '0', '']
    """
    exact = [column for column in columns if column.mechanism == Exact()]
    # The first population of a profile is that of its own year.
    people = next((column.key for column in exact if _POPULATION.fullmatch(column.label.lower())), "")
    households = next((column.key for column in exact if column.label.lower() in _OCCUPIED), "")
    limited = []
    for column in columns:
        if column.key == households:  # known, too: it shows whether populations are as exact as that
            column = replace(column, at_most=people)
        # Estimates may exceed the number of people that there are.
        elif column.mechanism != Exact() and of_sample(column.block) is False:
            of_households = _HOUSEHOLDS.search(column.block) and not _PERSONS.search(column.block)
            column = replace(column, at_most=households if of_households else people)
        limited.append(column)
    return limited


def adjustable(level: str, population: int) -> bool:
    """Return whether the population of an area may have been adjusted.

    >>> adjustable("DA", 12_000), adjustable("CSD", 12_000), adjustable("Census subdivision", 400), adjustable("PR", 400)
    (True, False, True, False)
    """
    name = level.strip().lower()
    return not (name in _WHOLE or (name in _SUBDIVISION and population >= LARGE))


COUNTRY = "11124"  # the code of Canada in a DGUID

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

    >>> parents(pl.Series(["2021S051235990001", "2021A00053599001", "2021A000235", "2021S05075990001.00"])).to_list()
    ['2021A00033599', '2021A00033599', '2021A000011124', None]
    """
    named = zip(regions, identities(regions), strict=True)
    above = ((region, around(identity) if identity != region else []) for region, identity in named)
    return pl.Series([region[:4] + areas[0].replace(":", "") if areas else None for region, areas in above], dtype=pl.String)


def areas_frame(
    codes: Iterable[str],
    names: Iterable[str],
    levels: Sequence[str],
    people: Sequence[int],
    above: Iterable[str | None] | None = None,
) -> pl.DataFrame:
    """Return the frame of some areas; with so many people each, -1 where that is not known, and so counts as small."""
    changed = [adjustable(level, number) for level, number in zip(levels, people, strict=True)]
    text = {AREA: codes, "region_name": names, "level": levels, "parent": [None] * len(levels) if above is None else above}
    columns = {name: pl.Series(name, values, dtype=pl.String) for name, values in text.items()}
    return pl.DataFrame({**columns, "adjustable": pl.Series(changed, dtype=pl.Boolean)})


def describe(areas: pl.DataFrame, population: Counts | None) -> pl.DataFrame:
    """Return the frame of a block from what the file says of its areas: `region`, `name`, `level`, perhaps `code`."""
    people = [-1] * len(areas) if population is None else population.tolist()
    names, levels = areas["name"].fill_null("").str.strip_chars(), areas["level"].fill_null("").to_list()
    code = areas["code"] if "code" in areas.columns else areas["region"].str.slice(9)
    return areas_frame(areas["region"], names, levels, people, parents(areas["region"])).with_columns(code.alias("code"))


KINDS = {
    # What the levels of other formats are in a DGUID, in lower case.
    "c": "A0000", "country": "A0000", "pr": "A0002", "province": "A0002", "province or territory": "A0002",
    "territory": "A0002", "cd": "A0003", "census division": "A0003", "csd": "A0005", "census subdivision": "A0005",
    "ccs": "S0502", "er": "S0500", "fed": "A0004", "fsa": "A0011", "cma": "S0503", "ca": "S0504", "ct": "S0507",
    "census tract": "S0507", "da": "S0512", "dissemination area": "S0512", "db": "S0513", "ada": "S0516",
    "aggregate dissemination area": "S0516",
}  # fmt: skip


def identities(regions: pl.Series, levels: pl.Series | None = None) -> list[str]:
    """Return what an area goes by in every format: type, level and code, where these are known; else its code as it is.

    >>> identities(pl.Series(["2021S051210010001", "10010001", "001"]), pl.Series(["", "DA", "ta"]))
    ['S0512:10010001', 'S0512:10010001', '001']
    """
    known = [""] * len(regions) if levels is None else levels.fill_null("").to_list()
    parts = regions.to_frame("region").select(
        pl.col("region").str.extract(_DGUID, 2).alias("kind"), pl.col("region").str.extract(_DGUID, 3).alias("code")
    )
    names = []
    for region, level, kind, code in zip(regions.to_list(), known, parts["kind"], parts["code"], strict=True):
        if kind is None:
            kind, code = KINDS.get(level.strip().lower()), region
        code = COUNTRY if kind == "A0000" else code
        names.append(f"{kind}:{code}" if kind else str(region))
    return names


def around(identity: str) -> list[str]:
    """Return the areas that one lies in, as far as its code tells, the smallest first.

    >>> around("S0512:10010001"), around("001")
    (['A0003:1001', 'A0002:10', 'A0000:11124'], [])
    """
    kind, _, code = identity.partition(":")
    areas = []
    while code and kind in _ABOVE:
        kind, length = _ABOVE[kind]
        code = code[:length] if length else COUNTRY
        areas.append(f"{kind}:{code}")
    return areas
