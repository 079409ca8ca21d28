"""What is documented of the Canadian profile of 2021, by CHARACTERISTIC_ID: its tables, how they add up, what they count.

The profile's own list has 2,631 characteristics; here is what their titles and indentation say, in short. A line in `_PARTS`
is a total and the parts that make it up; a line in `_SAME` lists characteristics that count the same people, households or
families, each in a table of its own. CensusMapper numbers the same characteristics in the same order, one vector each or
three by sex: `_VECTORS` has the runs.

This is for formats without indentation, or without labels at all. A file that someone put together rarely has everything:
where it has the parts of two tables that count the same people, and the total of neither, both must still add to the same
number, and that total becomes a column without a published count.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from unround.figures import Figure, FigureKind
from unround.mechanisms import Unpublished
from unround.release import SUPPRESSED, Column, Counts, Proposal
from unround.tables.figure_labels import KINDS, FigureMeaning, figures_for, is_sampled
from unround.tables.labels import finest
from unround.tables.lines import COUNT, TableLine, key_of

LAST = 2631
"""The last CHARACTERISTIC_ID."""

FULL, SAMPLE = " - 100% data", " - 25% sample data"
"""What the titles of tables end in: whether everybody was asked, or every fourth household."""
_SAMPLED = "126-154 217-241 251-259 320-334 1078-2623"
"""The characteristics that were only asked of a sample."""

_TABLES = """
1 Population and dwellings
8 Age
34 Age, in per cent
39 Average and median age
41 Dwellings by structural type
50 Households by size
56 Persons in private households
58 Marital status
71 Census families by size
78 Census families by structure
89 Persons by family status
100 Households by type
111 Income recipients in 2020
126 Income recipients in 2020
141 Employment income recipients in 2020
148 Composition of income in 2020
155 Total income groups
171 After-tax income groups
187 Employment income groups
204 Income recipients in 2019
217 Income recipients in 2019
230 Employment income recipients in 2019
237 Composition of income in 2019
242 Households by income
251 Households by income
260 Household total income groups
281 Household after-tax income groups
301 Income of economic families
305 Income of couple-only families
309 Income of couples with children
313 Income of one-parent families
317 Income of persons not in families
320 Income of economic families
323 Income of couple-only families
326 Income of couples with children
329 Income of one-parent families
332 Income of persons not in families
335 Population for the low-income measure
340 In low income by the low-income measure
350 Population for the low-income cut-offs
355 In low income by the low-income cut-offs
365 Income deciles
378 Inequality
383 Knowledge of official languages
388 First official language spoken
393 Mother tongue
724 All languages spoken at home
735 Language spoken most often at home
1066 Other languages spoken regularly at home
1078 Knowledge of languages
1402 Indigenous identity
1411 Registered or Treaty Indian status
1414 Tenure
1418 Condominium status
1421 Bedrooms
1427 Rooms
1433 Average number of rooms
1434 Persons per room
1437 Housing suitability
1440 Period of construction
1449 Dwelling condition
1452 Household maintainers
1456 Age of primary household maintainers
1465 Shelter cost to income
1469 Housing indicators
1479 Core housing need
1482 Owner households
1490 Tenant households
1496 Households in dwellings provided by a government or band
1500 Indigenous ancestry
1522 Citizenship
1527 Immigrant status and period of immigration
1538 Age at immigration
1544 Place of birth of immigrants
1604 Place of birth of recent immigrants
1665 Generation status
1669 Admission category of immigrants
1676 Pre-admission experience of immigrants
1683 Visible minority
1698 Ethnic or cultural origin
1949 Religion
1974 Mobility status 1 year ago
1983 Mobility status 5 years ago
1992 High school diploma, 15 years and over
1995 High school diploma, 25 to 64 years
1998 Highest certificate, 15 years and over
2014 Highest certificate, 25 to 64 years
2030 Major field of study, 15 years and over
2093 Major field of study, 25 to 64 years
2156 Location of study
2223 Labour force status
2228 Labour force rates
2231 Work activity
2237 Class of worker
2246 Occupation
2259 Industry
2282 All languages used at work
2293 Language used most often at work
2581 Other languages used regularly at work
2593 Place of work
2598 Commuting destination
2603 Main mode of commuting
2611 Commuting duration
2617 Time leaving for work
2624 Eligibility for minority-language instruction
2627 Minority-language instruction
"""
"""The first ID of every table, and what the table is called here."""

AGED_15 = -15
"""Stands for everybody aged 15 and over, who are no line of the table of ages."""

_PARTS = f"""
8: 9 13 24; 9: 10-12; 13: 14-23; 24: 25-29; 29: 30-33; {AGED_15}: 13 24
41: 42-49
50: 51-55
58: 59 66; 59: 60 61; 61: 62-65; 66: 67-70
71: 72-75
78: 79 86; 79: 80 83; 80: 81 82; 83: 84 85; 86: 87 88
89: 90 96; 90: 91-93; 93: 94 95; 96: 97-99
100: 101 106-110; 101: 102 105; 102: 103 104
155: 156 157; 157: 158-168; 168: 169 170
171: 172 173; 173: 174-184; 184: 185 186
187: 188 189; 189: 190-201; 201: 202 203
260: 261-276; 276: 277-280
281: 282-297; 297: 298-300
335: 336 338 339; 340: 341 343 344; 350: 351 353 354; 355: 356 358 359
365: 366 372; 366: 367-371; 372: 373-377
383: 384-387; 388: 389-392
1402: 1403 1410; 1403: 1404 1408 1409; 1404: 1405-1407
1411: 1412 1413
1414: 1415-1417; 1418: 1419 1420; 1421: 1422-1426; 1427: 1428-1432; 1434: 1435 1436; 1437: 1438 1439
1440: 1441-1448; 1449: 1450 1451; 1452: 1453-1455; 1456: 1457-1464; 1465: 1466 1467
1522: 1523 1526; 1523: 1524 1525
1527: 1528 1529 1537; 1529: 1530-1534; 1534: 1535 1536
1538: 1539-1543
1665: 1666-1668
1669: 1670 1673-1675; 1670: 1671 1672
1676: 1677-1682
1683: 1684 1697; 1684: 1685-1696
1949: 1950 1951 1967-1973; 1951: 1952-1966
1974: 1975 1976; 1976: 1977 1978; 1978: 1979 1982; 1979: 1980 1981
1983: 1984 1985; 1985: 1986 1987; 1987: 1988 1991; 1988: 1989 1990
1992: 1993 1994; 1995: 1996 1997
1998: 1999-2001; 2001: 2002 2008; 2002: 2003 2006 2007; 2003: 2004 2005; 2008: 2009-2013
2014: 2015-2017; 2017: 2018 2024; 2018: 2019 2022 2023; 2019: 2020 2021; 2024: 2025-2029
2223: 2224 2227; 2224: 2225 2226
2231: 2232 2233; 2233: 2234 2235
2237: 2238 2239; 2239: 2240 2245; 2240: 2241 2242; 2242: 2243 2244
2246: 2247 2248; 2248: 2249-2258
2259: 2260 2261; 2261: 2262-2281
2593: 2594-2597; 2598: 2599-2602
2603: 2604 2607-2610; 2604: 2605 2606
2611: 2612-2616; 2617: 2618-2623
2624: 2625 2626; 2627: 2628 2631; 2628: 2629 2630
"""

EXACT: Mapping[int, str] = {
    1: "Population, 2021",
    2: "Population, 2016",
    4: "Total private dwellings",
    5: "Private dwellings occupied by usual residents",
}
"""What is not rounded."""

FIVE_YEARS: Mapping[int, int] = dict(zip((10, 11, 12, *range(14, 24), *range(25, 29)), range(0, 85, 5), strict=True))
"""The lines of five years of age, and the youngest of each."""

_SAME = f"""
1 8
5 41 50 100 260 281
58 {AGED_15}
71 78
56 89
111 155 171 187 204
112 157
114 173
118 189
383 388 393 735
1402 1411 1522 1527 1665 1683 1698 1949
1414 1418 1421 1427 1434 1437 1440 1449 1452 1456
1529 1538 1544
1669 1676
1998 1992 2030 2223 2231
2014 1995 2093 2156
2224 2237 2246 2259
2225 2593
2603 2611 2617
"""
"""What counts the same, one published exactly first. All persons in private households, for one, head eight tables."""

_VECTORS = (
    (1, 7, 1, 1), (8, 8, 8, 3), (9, 9, 11, 3), (10, 12, 14, 18), (13, 13, 68, 3), (14, 23, 71, 18), (24, 24, 251, 3),
    (25, 29, 254, 18), (30, 33, 329, 18), (39, 40, 386, 3), (41, 55, 434, 1), (56, 56, 449, 3), (57, 57, 452, 1),
    (58, 70, 453, 3), (71, 88, 492, 1), (89, 99, 510, 3), (100, 110, 543, 1), (111, 147, 554, 3), (155, 229, 665, 3),
    (242, 316, 905, 1), (317, 319, 980, 3), (320, 331, 989, 1), (332, 334, 1001, 3), (335, 377, 1010, 3),
    (378, 382, 1139, 1), (383, 1413, 1144, 3), (1414, 1499, 4237, 1), (1500, LAST, 4323, 3),
)  # fmt: skip
"""Runs of characteristics as CensusMapper numbers them: first and last ID, the first one's vector, and the step between
vectors. Single years of age stand between those of five years."""

DATASET = "CA21"
"""What CensusMapper calls this census."""


def _ids(text: str) -> tuple[int, ...]:
    """Return the numbers of a list such as "3 6-8"; a minus in front is part of a number."""
    found = list[int]()
    for part in text.split():
        first, dash, last = part.partition("-") if not part.startswith("-") else (part, "", "")
        found += range(int(first), int(last) + 1) if dash else [int(first)]
    return tuple(found)


_OF_SAMPLE = frozenset(_ids(_SAMPLED))
TABLES: Mapping[int, str] = {
    int(number): name if number == "1" else name + (SAMPLE if int(number) in _OF_SAMPLE else FULL)
    for number, _, name in (line.partition(" ") for line in _TABLES.strip().splitlines())
}
"""The tables' names, by the ID of their first line; like the titles of the profile they tell the source of the counts."""
PARTS: Mapping[int, tuple[int, ...]] = {
    int(total): _ids(parts)
    for total, _, parts in (one.partition(":") for line in _PARTS.strip().splitlines() for one in line.split(";"))
}
"""The parts of every total that has any."""
SAME: tuple[tuple[int, ...], ...] = tuple(_ids(line) for line in _SAME.strip().splitlines())
"""IDs that count the same, one published exactly first."""

_FIRST = tuple(TABLES)
_VECTOR_OF = {first + at: vector + at * step for first, last, vector, step in _VECTORS for at in range(last - first + 1)}
_ID_OF = {vector: number for number, vector in _VECTOR_OF.items()}
_HEADS = {_VECTOR_OF[first]: first for first in _FIRST if first in _VECTOR_OF}
_HEAD_VECTORS = tuple(sorted(_HEADS))


def table_of(number: int) -> str:
    """Return the name of the table in which a characteristic stands.

    Examples
    --------
    >>> table_of(10), table_of(2615), table_of(AGED_15)
    ('Age - 100% data', 'Commuting duration - 25% sample data', 'Age - 100% data')
    """
    return TABLES[_FIRST[bisect_right(_FIRST, number) - 1]] if number > 0 else table_of(PARTS[number][0])


def table_of_vector(vector: int) -> str:
    """Return the name of the table in which a vector of CensusMapper stands, single years of age among them.

    Examples
    --------
    >>> table_of_vector(14), table_of_vector(17), table_of_vector(1949)
    ('Age - 100% data', 'Age - 100% data', 'Mother tongue - 100% data')
    """
    return TABLES[_HEADS[_HEAD_VECTORS[bisect_right(_HEAD_VECTORS, vector) - 1]]]


def vector_of(number: int) -> int | None:
    """Return the vector of a characteristic's total; None where CensusMapper has none, or it is not known.

    Examples
    --------
    >>> vector_of(8), vector_of(58), vector_of(1949)
    (8, 453, 5670)
    """
    return _VECTOR_OF.get(number)


def id_of(vector: int) -> int | None:
    """Return the characteristic of a vector that holds a total; None for single years of age and what is not known."""
    return _ID_OF.get(vector)


def partition(total: int, there: Mapping[int, int]) -> tuple[int, ...] | None:
    """Return the parts of a total that a release has.

    In place of parts that it has not come theirs; None where some of these lack too.

    Examples
    --------
    >>> there = dict.fromkeys((9, *range(14, 29), 30, 31, 32, 33, 1), 0)
    >>> partition(24, there)
    (25, 26, 27, 28, 30, 31, 32, 33)
    >>> partition(8, there)[:3], partition(41, there)
    ((9, 14, 15), None)
    """
    found: list[int] = []
    for part in PARTS.get(total, ()):
        finer = (part,) if part in there else partition(part, there)
        if finer is None:
            return None
        found += finer
    return tuple(found) or None


def documented(there: Mapping[int, int]) -> Iterator[tuple[int, tuple[int, ...], str, tuple[int, ...]]]:
    """Go through the sums that are documented among the characteristics that a release has.

    The ID of a total; one that is not in `there` was not published. What it is made of: one ID for the same count in
    another table. As in `Proposal`: "names" or "universe". Where the total was not published, the parts of another
    table that make up the same total; else none.

    Examples
    --------
    >>> for total, parts, origin, against in documented(dict.fromkeys((59, 66, *range(67, 71), 13, 24), 0)):
    ...     print(total, parts, origin, against)
    66 (67, 68, 69, 70) names ()
    58 (59, 66) universe (13, 24)
    58 (13, 24) universe (59, 66)
    """
    for total in PARTS:
        parts = partition(total, there) if total in there else None
        if parts:
            yield total, parts, "names", ()
    for group in SAME:
        shown = [one for one in group if one in there]
        made_up = [parts for one in group if one not in there and (parts := partition(one, there))]
        if shown:
            yield from ((shown[0], (again,), "universe", ()) for again in shown[1:])
            yield from ((shown[0], parts, "universe", ()) for parts in made_up)
        elif len(made_up) > 1:
            yield group[0], made_up[0], "universe", made_up[1]
            yield from ((group[0], parts, "universe", made_up[0]) for parts in made_up[1:])


def with_documented(
    columns: Sequence[Column],
    counts: Counts,
    places: Mapping[tuple[int, str], int],
    column: Callable[[int, str], Column],
) -> tuple[list[Column], Counts, list[Proposal]]:
    """Propose what is documented, and add a column for every total that two tables share and the file has not.

    The columns and counts, with the new ones at the end, and the proposals.
    """
    columns, hidden, proposals = list(columns), dict[tuple[int, str], int](), list[Proposal]()
    for sex in dict.fromkeys(sex for _, sex in places):
        at = {number: place for (number, own), place in places.items() if own == sex}
        for total, parts, origin, against in documented(at):
            if total not in at:
                whole = hidden.setdefault((total, sex), len(columns))
                if whole == len(columns):
                    columns.append(_unpublished(column(total, sex), table_of(total)))
            head = at[total] if total in at else hidden[total, sex]
            others = tuple(at[part] for part in against)
            proposals.append(Proposal(head, tuple(at[part] for part in parts), origin, others))
    nothing = np.full((len(counts), len(hidden)), SUPPRESSED, dtype=np.int32)
    return columns, np.hstack([counts, nothing]) if hidden else counts, proposals


def _unpublished(column: Column, table: str) -> Column:
    """Return a column for a total that is not in the file."""
    title = table.removesuffix(FULL).removesuffix(SAMPLE)
    return replace(column, label=f"Total of {title} (not in the file)", block=table, mechanism=Unpublished(), adjusted=0)


_FIGURES = """
rate: 35=9/8 36=13/8 37=24/8 38=29/8 345=340/335 346=341/336 347=342/337 348=343/338 349=344/339 360=355/350 361=356/351
  362=357/352 363=358/353 364=359/354 1483=0/1482 1484=0/1482 1485=0/1482 1491=0/1490 1492=0/1490 1493=0/1490
  1497=0/1496 2228=2224/2223 2229=2225/2223 2230=2226/2224
median: 40 113/112 115/114 117/116 119/118 121/120 123/122 125/124 143/142 146/145 206/205 208/207 210/209 212/211
  214/213 216/215 232/231 235/234 243 244 246/245 247/245 249/248 250/248 302/301 303/301 306/305 307/305 310/309
  311/309 314/313 315/313 318/317 319/317 1486/1482 1488/1482 1494/1490 1498/1496
average: 39 57 76 77 128/127 130/129 132/131 134/133 136/135 138/137 140/139 144/142 147/145 219/218 221/220 223/222
  225/224 227/226 229/228 233/231 236/234 252/251 253/251 255/254 256/254 258/257 259/257 304/301 308/305 312/309
  316/313 321/320 322/320 324/323 325/323 327/326 328/326 330/329 331/329 333/332 334/332 1433 1487/1482 1489/1482
  1495/1490 1499/1496 2236/2233
figure: 3 6 7 34 148 149 150 151 152 153 154 237 238 239 240 241 379 380 381 382
"""
"""What is not a count, by kind: `ID=NUMERATOR/UNIVERSE`, 0 for no line of the profile. Many look like counts."""

KIND_OF: dict[int, str] = {}
_RATES: dict[int, tuple[int, int]] = {}
_UNIVERSE: dict[int, int] = {}
for _kind, _entries in re.findall(r"(\w+): ([^:]+)(?=\n\w|\n$)", _FIGURES):
    for _number, _, _part, _whole in re.findall(r"(\d+)(=(\d+))?(?:/(\d+))?", _entries):
        KIND_OF[int(_number)] = _kind
        if _part:
            _RATES[int(_number)] = int(_part), int(_whole)
        elif _whole:
            _UNIVERSE[int(_number)] = int(_whole)

_PEOPLE = (335, 350)
"""Universes that are nearly everybody in the area, who are line 1."""

_GROUPED: Mapping[int, tuple[FigureKind, int, tuple[int, ...]]] = {
    39: (FigureKind.MEAN, 8, (8, 1)),
    40: (FigureKind.MEDIAN, 8, (8, 1)),
    57: (FigureKind.MEAN, 50, (50, 5)),
    76: (FigureKind.MEAN, 71, (71, 78)),
    113: (FigureKind.MEDIAN, 157, (157, 112)),
    115: (FigureKind.MEDIAN, 173, (173, 114)),
    119: (FigureKind.MEDIAN, 189, (189, 118)),
    243: (FigureKind.MEDIAN, 260, (260, 5)),
    244: (FigureKind.MEDIAN, 281, (281, 5)),
}
"""Means and medians: the line whose parts are their groups, and the lines that count all units, the best first."""

_TOTALS = {57: 56, 76: 90}
"""The persons whose average number is given."""

_MEASURES = {39: "years", 40: "years", 57: "persons", 76: "persons"}
"""What the groups measure; money where nothing is said."""


def documented_figures(lines: Mapping[int, TableLine]) -> list[Figure]:
    """Return the figures among the characteristics that a release has."""
    counts = {key_of(line.id, sex) for line in lines.values() if line.kind == COUNT for sex in line.sexes}
    found: list[Figure] = []
    for number, line in lines.items():
        meaning = _meaning(number, line, lines)
        if meaning is not None:
            found += figures_for(line, meaning, counts, is_sampled(line))
    return found


def _meaning(number: int, line: TableLine, lines: Mapping[int, TableLine]) -> FigureMeaning | None:
    def there(*ids: int) -> str:
        return next((lines[one].id for one in ids if one in lines and lines[one].kind == COUNT), "")

    if number in _RATES:
        numerator, universe = _RATES[number]
        within = there(1) if universe in _PEOPLE else ""
        return FigureMeaning(FigureKind.RATE, there(universe), there(numerator), within=within)
    if number in _GROUPED:
        grouped, total, universes = _GROUPED[number]
        own = [(lines[one].id, label_of(one) or lines[one].label) for one in _below(total) if there(one)]
        return FigureMeaning(
            grouped, there(*universes), there(_TOTALS.get(number, 0)), finest(own, _MEASURES.get(number, "money"))
        )
    kind = KINDS.get(line.kind)
    if kind is None or kind is FigureKind.RATE:
        return None
    return FigureMeaning(kind, there(_UNIVERSE.get(number, 0)))


def _below(total: int) -> Sequence[int]:
    """Return everything that a total consists of, in all levels."""
    return [one for part in PARTS.get(total, ()) for one in (part, *_below(part))]


def label_of(number: int) -> str:
    """Return the label of a line of ages, or of one that is not rounded, where the file has none; "" for all others.

    Examples
    --------
    >>> label_of(10), label_of(33), label_of(29), label_of(41)
    ('0 to 4 years', '100 years and over', '85 years and over', '')
    """
    ages = {**FIVE_YEARS, 30: 85, 31: 90, 32: 95}
    if number in ages:
        return f"{ages[number]} to {ages[number] + 4} years"
    return {29: "85 years and over", 33: "100 years and over", **EXACT}.get(number, "")
