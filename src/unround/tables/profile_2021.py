"""What is documented of the Canadian profile of 2021, by CHARACTERISTIC_ID: its tables, how they add up, what they count.

The profile's own list has 2,631 characteristics; here is what their titles and indentation say, in short. A line in `_PARTS`
is a total and the parts that make it up; a line in `_SAME` lists characteristics that count the same people, households or
families, each in a table of its own. CensusMapper numbers the same characteristics in the same order, one vector each or
three by sex: `_VECTORS` has the runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping

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
