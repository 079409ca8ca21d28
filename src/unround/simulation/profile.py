"""The blocks of the simulated census profile, as data: 2,631 rows with the shape of the Canadian one.

The core rows (population, age, dwellings, households, marital status, families, official languages) carry
their common labels. Every other block has a title in our own words and numbered entries; only its shape is
that of the real profile: how deep each row is indented, what kind of number it holds, and which people or
households it counts.

A shape is a string of rows, one digit each for the depth, followed by a letter where the row is no ordinary
count: `m` a median and `a` an average of money, `n` an average of something else, `p` a percentage, `s` a
count of some of its parent's people that is no part of a partition. `(12m)7` repeats what is in brackets
seven times; spaces only help the eye.

The characteristic tree of the simulated profile: rows, their kinds, and the sums between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError

ROUNDED, SAMPLE, EXACT = "rounding:5", "sample:5", "exact"
FULL_DATA, SAMPLE_DATA = "100% data", "25% sample data"


@dataclass(frozen=True, slots=True)
class ProfileBlock:
    """Rows that count the same universe, from one "Total" to the next.

    - `first`: The characteristic ID of its first row.
    - `universe`: Whom it counts: a name that `people` defines, or `=12+13`, the people counted in rows 12 and 13.
    - `rule`: `split`: every group is a partition of its parent. `any`: multiple responses, so parts add up to more than
      their parent. `stats`: counts of people with this or that, no partition. `within`: some of another block's people,
      row by row (`universe` gives that block). `core`: counted by `people` itself. `figures`: no counts.
    - `mechanism`: How its counts are published.
    - `sex`: Whether men and women are shown.
    - `shape`: Depth and kind of each row; see the module.
    - `title`, `noun`: What the total and the numbered entries are called.
    - `labels`: All names, separated by `|`, where they are not numbered.
    - `weights`: The shares of the leaves; by default they fall off with `skew`, like the frequencies of words.
    - `skew`: The exponent of that fall.
    - `clump`: How alike areas are: with a large `clump` they all resemble the country, with a small one only themselves.
    """

    first: int
    universe: str
    rule: str
    mechanism: str
    sex: bool
    shape: str
    title: str = ""
    noun: str = ""
    labels: str = ""
    weights: tuple[float, ...] = ()
    skew: float = 0.6
    clump: float = 60.0


# A tree of languages: two official ones, then families of others. The same tree serves four blocks.
LANGUAGES = (
    "12212344556666666554554555666643455555666566555556665443345544344443334444444434444344434444433234"
    "55545544555545556665555534443444444444455444444344444443444444333444566566666666777766664555545566"
    "66566666656666544566666666667766666656666677765455555543333444444444444444444444444344443444345555"
    "55554555665543444344444434443"
)
WORK_LANGUAGES = (
    "12212344556666666554554555666643455555666555555666544334554434443334444444434444344434444433234555"
    "44455554555666555344434444444444444344444344444334445665666666777766664554556666566666656666544566"
    "666666666566677765455555543333444444444444443443444345555555545566554344434444434443"
)


def _deeper(shape: str) -> str:
    """Indent a shape of plain digits by one level."""
    return "".join(str(int(depth) + 1) for depth in shape)


def _responses(tree: str) -> str:
    """Put a tree of languages under "single responses" and add the five kinds of multiple ones."""
    return "01" + _deeper(tree) + "122222"


SHAPES = {
    "LANGUAGE_ANSWERS": _responses(LANGUAGES),
    "WORK_LANGUAGE_ANSWERS": _responses(WORK_LANGUAGES),
    "ALL_LANGUAGES": "0" + LANGUAGES,
    "FIELDS_OF_STUDY": "011212212222222212222222122212222212222122222221221222221222221",
    "BIRTHPLACES": "01 (2)11 1 (2)16 1 (2)10 1 (2)17 1",
    "RECENT_BIRTHPLACES": "01 (2)8 1 (2)8 1 (2)15 1 (2)22 122",
    "STUDY_PLACES": "0112332 3(4)10 3(4)17 3(4)7 3(4)18 3444",
    "DEGREES": "0111234433233333",
    "ANCESTRY": "0123332333312333233331",
}


def _block(head: str, shape: str, title: str = "", noun: str = "", **more: Any) -> ProfileBlock:
    """Make a block from a line like "8 people core full sexes".

    Its words are the ID, the universe, the rule, the source of the data and whether the sexes are shown.
    """
    first, universe, rule, source, sexes = head.split()
    mechanism = {"full": ROUNDED, "sample": SAMPLE, "exact": EXACT}[source]
    return ProfileBlock(int(first), universe, rule, mechanism, sexes == "sexes", shape, title, noun, **more)


LABELLED = (
    _block(
        "1 people core exact -",
        "000p000a0a",
        labels="Population, 2021|Population, 2016|Population percentage change, 2016 to 2021|"
        "Total private dwellings|Private dwellings occupied by usual residents|"
        "Population density per square kilometre|Land area in square kilometres",
    ),
    _block(
        "8 people core full sexes",
        "01222 1(2)10 1(2)5 (3)4",
        labels="Total - Age groups of the population - 100% data|0 to 14 years|0 to 4 years|5 to 9 years|"
        "10 to 14 years|15 to 64 years|15 to 19 years|20 to 24 years|25 to 29 years|30 to 34 years|"
        "35 to 39 years|40 to 44 years|45 to 49 years|50 to 54 years|55 to 59 years|60 to 64 years|"
        "65 years and over|65 to 69 years|70 to 74 years|75 to 79 years|80 to 84 years|"
        "85 years and over|85 to 89 years|90 to 94 years|95 to 99 years|100 years and over",
    ),
    _block(
        "34 people figures full sexes",
        "0p1p1p1p2p",
        labels="Total - Distribution (%) of the population by broad age groups - 100% data|0 to 14 years|"
        "15 to 64 years|65 years and over|85 years and over",
    ),
    _block(
        "39 people figures full sexes",
        "0a0m",
        labels="Average age of the population|Median age of the population",
    ),
    _block(
        "41 households split full -",
        "0(1)8",
        labels="Total - Occupied private dwellings by structural type of dwelling - 100% data|"
        "Single-detached house|Semi-detached house|Row house|Apartment or flat in a duplex|"
        "Apartment in a building that has fewer than five storeys|"
        "Apartment in a building that has five or more storeys|Other single-attached house|"
        "Movable dwelling",
        weights=(0.5, 0.05, 0.07, 0.06, 0.19, 0.11, 0.003, 0.017),
        clump=1.6,
    ),
    _block(
        "50 households core full -",
        "0(1)5",
        labels="Total - Private households by household size - 100% data|1 person|2 persons|3 persons|"
        "4 persons|5 or more persons",
    ),
    _block(
        "56 private core full sexes",
        "0",
        labels="Number of persons in private households",
    ),
    _block(
        "57 households figures full -",
        "0a",
        labels="Average household size",
    ),
    _block(
        "58 adults split full sexes",
        "0122 3333 1 2222",
        labels="Total - Marital status for the total population aged 15 years and over - 100% data|"
        "Married or living common-law|Married|Living common-law|Living common-law - Never married|"
        "Living common-law - Separated|Living common-law - Divorced|Living common-law - Widowed|"
        "Not married and not living common-law|Not living common-law - Never married|"
        "Not living common-law - Separated|Not living common-law - Divorced|"
        "Not living common-law - Widowed",
        weights=(0.44, 0.1, 0.007, 0.022, 0.004, 0.29, 0.024, 0.061, 0.052),
        clump=110,
    ),
    _block(
        "71 families core full -",
        "0(1)4",
        labels="Total - Census families in private households by family size - 100% data|2 persons|"
        "3 persons|4 persons|5 or more persons",
    ),
    _block(
        "76 families figures full -",
        "0a0a",
        labels="Average size of census families|Average number of children in census families with children",
    ),
    _block(
        "78 families core full -",
        "01233233122",
        labels="Total number of census families in private households - 100% data|Total couple families|"
        "Married couples|With children|Without children|Common-law couples|With children|"
        "Without children|Total one-parent families|in which the parent is a woman+|"
        "in which the parent is a man+",
    ),
    _block(
        "89 private core full sexes",
        "01222331222",
        labels="Total - Persons in private households - 100% data|Total - Persons in census families|"
        "Married spouses or common-law partners|Parents in one-parent families|Children|"
        "In a two-parent family|In a one-parent family|"
        "Total - Persons not in census families in private households - 100% data|Living alone|"
        "Living with other relatives|Living with non-relatives only",
    ),
    _block(
        "100 households core full -",
        "0123321 1111",
        labels="Total - Household type - 100% data|One-census-family households without additional persons|"
        "Couple-family households|With children|Without children|One-parent-family households|"
        "Multigenerational households|Multiple-census-family households|"
        "One-census-family households with additional persons|"
        "Two-or-more-person non-census-family households|One-person households",
    ),
    _block(
        "335 private core full sexes",
        "012s11",
        labels="Total - LIM low-income status in 2020 - 100% data|0 to 17 years|0 to 5 years|18 to 64 years|"
        "65 years and over",
    ),
    _block(
        "340 335 within full sexes",
        "012s11",
        labels="In low income (LIM-AT)|0 to 17 years|0 to 5 years|18 to 64 years|65 years and over",
    ),
    _block(
        "345 335 figures full sexes",
        "0p1p2p1p1p",
        labels="Prevalence of low income (LIM-AT) (%)|0 to 17 years (%)|0 to 5 years (%)|18 to 64 years (%)|"
        "65 years and over (%)",
    ),
    _block(
        "350 private core full sexes",
        "012s11",
        labels="Total - LICO low-income status in 2020 - 100% data|0 to 17 years|0 to 5 years|"
        "18 to 64 years|65 years and over",
    ),
    _block(
        "355 350 within full sexes",
        "012s11",
        labels="In low income (LICO-AT)|0 to 17 years|0 to 5 years|18 to 64 years|65 years and over",
    ),
    _block(
        "360 350 figures full sexes",
        "0p1p2p1p1p",
        labels="Prevalence of low income (LICO-AT) (%)|0 to 17 years (%)|0 to 5 years (%)|18 to 64 years (%)|"
        "65 years and over (%)",
    ),
    _block(
        "383 noninst split full sexes",
        "01111",
        labels="Total - Knowledge of official languages for the total population excluding institutional"
        " residents - 100% data|English only|French only|English and French|"
        "Neither English nor French",
        weights=(0.69, 0.11, 0.18, 0.02),
        clump=8,
    ),
    _block(
        "388 noninst split full sexes",
        "01111",
        labels="Total - First official language spoken for the total population excluding institutional"
        " residents - 100% data|English|French|English and French|Neither English nor French",
        weights=(0.755, 0.214, 0.012, 0.019),
        clump=8,
    ),
    _block(
        "1433 households figures sample -",
        "0a",
        labels="Average number of rooms per dwelling",
    ),
    _block(
        "2223 private15 split sample sexes",
        "01221",
        labels="Total - Population aged 15 years and over by labour force status - 25% sample data|"
        "In the labour force|Employed|Unemployed|Not in the labour force",
        weights=(0.57, 0.066, 0.364),
    ),
    _block(
        "2228 private15 figures sample sexes",
        "0p",
        labels="Participation rate",
    ),
    _block(
        "2229 private15 figures sample sexes",
        "0p",
        labels="Employment rate",
    ),
    _block(
        "2230 private15 figures sample sexes",
        "0p",
        labels="Unemployment rate",
    ),
)

# Head (see `_block`) | shape | title | noun | shares of the leaves, skew, clump, where they are special.
NUMBERED = """\
111 private15 stats full sexes | 0(12m)7 | Income in 2020, people aged 15 and over | recipients, source
126 private15 stats sample sexes | 0(12a)7 | Income in 2020, people aged 15 and over | recipients, source
141 private15 stats sample sexes | 0(12m2a)2 | Earnings in 2020, people 15 and over | earners, time worked
148 private15 figures sample sexes | 0p1p2p1p2p2p3p | Make-up of income in 2020 (%) | Source
155 private15 split full sexes | 011 (2)11 33 | Total income in 2020, people 15 and over | Bracket
171 private15 split full sexes | 011 (2)11 33 | Income after tax in 2020, people 15 and over | Bracket
187 private15 split full sexes | 011 (2)12 33 | Earnings in 2020, people 15 and over | Bracket
204 private15 stats full sexes | 0(12m)6 | Income in 2019, people aged 15 and over | recipients, source
217 private15 stats sample sexes | 0(12a)6 | Income in 2019, people aged 15 and over | recipients, source
230 private15 stats sample sexes | 0(12m2a)2 | Earnings in 2019, people 15 and over | earners, time worked
237 private15 figures sample sexes | 0p1p2p1p2p | Make-up of income in 2019 (%) | Source
242 households stats full - | 01m1m | Income of households in 2020 | household income
245 =51 stats full - | 23m3m | Income of households of one person | household income
248 =52+53+54+55 stats full - | 23m3m | Income of larger households | household income
251 households stats sample - | 01a1a | Income of households in 2020 | household income
254 =51 stats sample - | 23a3a | Income of households of one person | household income
257 =52+53+54+55 stats sample - | 23a3a | Income of larger households | household income
260 households split full - | 0(1)16 2222 | Household income in 2020 | Bracket
281 households split full - | 0(1)16 222 | Household income after tax in 2020 | Bracket
301 families stats full - | 01m1m1n | Income of families | family income
305 =82+85 stats full - | 01m1m1n | Income of couples without children | family income
309 =81+84 stats full - | 01m1m1n | Income of couples with children | family income
313 =86 stats full - | 01m1m1n | Income of one-parent families | family income
317 =96 stats full sexes | 01m1m | Income of people outside families | income
320 families stats sample - | 01a1a | Income of families | family income
323 =82+85 stats sample - | 01a1a | Income of couples without children | family income
326 =81+84 stats sample - | 01a1a | Income of couples with children | family income
329 =86 stats sample - | 01a1a | Income of one-parent families | family income
332 =96 stats sample sexes | 01a1a | Income of people outside families | income
365 private split full sexes | 01(2)5 1(2)5 | Income rank of people's families | Rank | skew=0
378 private stats full sexes | 01n1n1n1n | Inequality of incomes | inequality, index
393 noninst split full sexes | LANGUAGE_ANSWERS | First language learned | Language | skew=1.9 clump=6
724 noninst split full sexes | 01112211111 | Languages spoken at home | Combination | skew=1.8 clump=8
735 noninst split full sexes | LANGUAGE_ANSWERS | Main language at home | Language | skew=2.1 clump=5
1066 noninst split full sexes | 011112211111 | Other languages at home | Combination | skew=1.8 clump=9
1078 private any sample sexes | ALL_LANGUAGES | Languages known | Language | skew=1.7 clump=6
1402 private split sample sexes | 012333221 | Indigenous identity | Answer | skew=-2.5 clump=7
1411 private split sample sexes | 011 | Registered status | Answer | shares=0.025,0.975 clump=7
1414 households split sample - | 0111 | Tenure of households | Tenure | skew=2 clump=5
1418 households split sample - | 011 | Condominiums | Answer | shares=0.15,0.85 clump=3
1421 households split sample - | 0(1)5 | Dwellings by bedrooms | Bedrooms | skew=0 clump=12
1427 households split sample - | 0(1)5 | Dwellings by rooms | Rooms | skew=0 clump=12
1434 households split sample - | 011 | Persons per room | Crowding | shares=0.97,0.03
1437 households split sample - | 011 | Room enough | Answer | shares=0.94,0.06
1440 households split sample - | 0(1)8 | Dwellings by age of building | Period | skew=0.8 clump=3
1449 households split sample - | 011 | Dwellings by condition | Condition | shares=0.94,0.06
1452 households split sample - | 0111 | Who pays, number of persons | Number | skew=1
1456 households split sample - | 0(1)8 | Who pays, by age | Age group | skew=0.3
1465 households split sample - | 0112s | Housing costs against income | Share | shares=0.79,0.21
1469 households split sample - | 01(2)7 1 | Housing problems | Kind | skew=-1
1479 households split sample - | 011 | Core housing need | Answer | shares=0.1,0.9
1482 =1415 stats sample - | 01p1p1p1m1a1m1a | Owners | owners
1490 =1416 stats sample - | 01p1p1p1m1a | Tenants | tenants
1496 =1417 stats sample - | 01p1m1a | Households in dwellings provided | households
1500 private split sample sexes | ANCESTRY | Indigenous ancestry | Answer | skew=-2.5 clump=7
1522 private split sample sexes | 01221 | Citizenship | Answer | shares=0.18,0.73,0.09 clump=20
1527 private split sample sexes | 011222223 31 | Landing | Year | shares=.7,.04,.04,.04,.05,.05,.05,.03
1538 =1529 split sample sexes | 0(1)5 | Immigrants by age at landing | Age group | skew=0.2
1544 =1529 split sample sexes | BIRTHPLACES | Immigrants by birthplace | Place | skew=0.9 clump=6
1604 =1536 split sample sexes | RECENT_BIRTHPLACES | Recent immigrants by birthplace | Place | clump=5
1665 private split sample sexes | 0111 | Generations in the country | Generation | skew=-1 clump=14
1669 =1531+1532+1533+1534 split sample sexes | 0122111 | Immigrants by category | Category | clump=20
1676 =1531+1532+1533+1534 split sample sexes | 0(1)6 | Experience before landing | Experience | clump=20
1683 private split sample sexes | 01(2)12 1 | Visible minorities | Group | skew=-1.7 clump=6
1698 private any sample sexes | 0(1)250 | Origins, all that were named | Origin | skew=0.9 clump=14
1949 private split sample sexes | 011(2)15 (1)7 | Religion | Religion | skew=0.8 clump=12
1974 private split sample sexes | 011223443 | Home a year before | Move | skew=2 clump=40
1983 private split sample sexes | 011223443 | Home five years before | Move | skew=1.2 clump=30
1992 private15 split sample sexes | 011 | School diploma, aged 15 and over | Answer | shares=0.16,0.84
1995 private25 split sample sexes | 011 | School diploma, aged 25 to 64 | Answer | shares=0.09,0.91
1998 private15 split sample sexes | DEGREES | Highest degree, aged 15 and over | Degree | skew=0.7
2014 private25 split sample sexes | DEGREES | Highest degree, aged 25 to 64 | Degree | skew=0.7
2030 private15 split sample sexes | FIELDS_OF_STUDY | Field studied, aged 15 and over | Field | skew=1.1
2093 private25 split sample sexes | FIELDS_OF_STUDY | Field studied, aged 25 to 64 | Field | skew=1.1
2156 private25 split sample sexes | STUDY_PLACES | Place of study, aged 25 to 64 | Place | skew=1.4 clump=20
2231 private15 split sample sexes | 011222n | Work in the year before | Weeks | skew=0.2
2237 =2224 split sample sexes | 011233442 | Kind of job | Kind | shares=0.03,0.67,0.06,0.09,0.15
2246 =2224 split sample sexes | 011(2)10 | Occupation | Occupation | skew=0.3 clump=40
2259 =2224 split sample sexes | 011(2)20 | Industry | Industry | skew=0.3 clump=50
2282 =2233 split sample sexes | 01112211111 | Languages used at work | Combination | skew=1.9 clump=8
2293 =2233 split sample sexes | WORK_LANGUAGE_ANSWERS | Main language at work | Language | skew=2.2 clump=5
2581 =2233 split sample sexes | 011112211111 | Other languages at work | Combination | skew=2 clump=8
2593 =2225 split sample sexes | 01111 | Place of work | Place | skew=-1.2
2598 =2597 split sample sexes | 01111 | Way to work, how far | Distance | skew=1 clump=10
2603 =2596+2597 split sample sexes | 01221111 | Way to work, by what | Means | skew=1.5 clump=20
2611 =2596+2597 split sample sexes | 0(1)5 | Way to work, how long | Duration | skew=0.5 clump=20
2617 =2596+2597 split sample sexes | 0(1)6 | Way to work, when | Hour | skew=0.2
2624 minors split full sexes | 011 | Children with a right to minority schools | Answer | clump=4
2627 school split full sexes | 01221 | Children in minority schools | Answer | clump=4
"""


def _numbered(line: str) -> ProfileBlock:
    """Make a block from a line of the table."""
    head, shape, title, noun, *settings = (field.strip() for field in line.split("|"))
    more = dict(setting.split("=") for setting in " ".join(settings).split())
    shares = tuple(float(share) for share in more.pop("shares", "").split(",") if share)
    numbers = {name: float(value) for name, value in more.items()}
    return _block(head, SHAPES.get(shape, shape), title, noun, weights=shares, **numbers)


BLOCKS: tuple[ProfileBlock, ...] = tuple(
    sorted((*LABELLED, *map(_numbered, NUMBERED.splitlines())), key=lambda block: block.first)
)
INCOME_FIRST, INCOME_LAST = 111, 382
"""The rows hidden where fewer than 250 people or 40 households live."""

ROWS = {
    "age": ((1, 33),),
    "short": ((1, 110), (383, 734)),
    "income": ((1, 110), (335, 364)),
    "sample": ((1, 33), (1949, 2029), (2223, 2258)),
    "all": ((1, 2631),),
}
"""What `--rows` can ask for, as ranges of characteristic IDs that end where blocks end."""


KINDS = {"": "count", "s": "count", "m": "median", "a": "average", "n": "average", "p": "percent"}
SEXES = ("total", "men", "women")
SAME = {97: 51, 110: 51, 92: 86}
"""Rows inside blocks that count the same: persons alone are households, single parents are families."""


@dataclass(frozen=True, slots=True)
class Row:
    """One characteristic of the profile.

    `kind` is count, percent, average or median; `block` the ID of the first row of its block and `rule` how
    that block counts; `mechanism` says how a count is published; `subset` marks a count that is no part of
    a partition.
    """

    id: int
    name: str
    depth: int
    kind: str
    block: int
    rule: str
    mechanism: str
    has_sex: bool
    subset: bool = False

    @property
    def is_count(self) -> bool:
        """Whether it counts people, families or households."""
        return self.kind == "count"

    @property
    def is_income(self) -> bool:
        """Whether it is hidden where fewer than 250 people or 40 households live."""
        return INCOME_FIRST <= self.id <= INCOME_LAST


@dataclass(frozen=True, slots=True)
class RowSum:
    """A total and the rows that partition it; `why` is "layout" (indentation) or "universe" (same people).

    It holds for each sex that all of its rows show.
    """

    total: int
    parts: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class BlockPlan:
    """A block compiled for one choice of rows: where its rows and leaves are.

    - `block`: Its definition.
    - `number`: Its place among all blocks; random streams are keyed by it, so they do not depend on the rows chosen.
    - `start`, `stop`: Its rows in the schema.
    - `nodes`: The rows, counted from `start`, of the ordinary counts.
    - `low`, `high`: The leaves under each node are `low` to `high` (exclusive), in the order of the rows.
    - `leaves`: How many leaves there are.
    - `subsets`: Counts outside partitions, counted from `start`.
    """

    block: ProfileBlock
    number: int
    start: int
    stop: int
    nodes: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    leaves: int
    subsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The rows of a simulated profile and what is true of them.

    - `rows`: In the order of the file.
    - `sums`: Every partition that holds in truth, by characteristic ID.
    - `plans`: The blocks, for those who count people.
    """

    rows: tuple[Row, ...]
    sums: tuple[RowSum, ...]
    plans: tuple[BlockPlan, ...]

    @property
    def ids(self) -> NDArray[np.int32]:
        """The characteristic IDs."""
        return np.array([row.id for row in self.rows], dtype=np.int32)

    @property
    def index(self) -> dict[int, int]:
        """Where each characteristic ID is among the rows."""
        return {row.id: at for at, row in enumerate(self.rows)}

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Which cells (rows × sexes) hold a count: no men and women for households, no count for a median."""
        sex = np.array([[True, row.has_sex, row.has_sex] for row in self.rows])
        return np.asarray(sex & np.array([row.is_count for row in self.rows])[:, None])

    def groups(self, parts: int) -> list[RowSum]:
        """Return the partitions by layout with so many parts, as the paper's groups of 3+1 and 4+1."""
        return [s for s in self.sums if s.why == "layout" and len(s.parts) == parts]


def expand(shape: str) -> list[tuple[int, str]]:
    """Return the depth and the letter of each row of a shape.

    Examples
    --------
    >>> expand("0(12m)2")
    [(0, ''), (1, ''), (2, 'm'), (1, ''), (2, 'm')]
    """
    flat = re.sub(r"\(([^)]*)\)(\d+)", lambda found: found[1] * int(found[2]), shape)
    return [(int(depth), letter) for depth, letter in re.findall(r"(\d)([a-z]?)", flat)]


def _parents(depths: list[int]) -> list[int]:
    """Return for each row the last row before it that is one level up, or -1."""
    parents, path = [], list[int]()
    for at, depth in enumerate(depths):
        del path[depth:]
        parents.append(path[-1] if path else -1)
        path += [at] * (depth + 1 - len(path))  # a block may start below level 0
    return parents


def _names(block: ProfileBlock, shape: list[tuple[int, str]]) -> list[str]:
    """Return the names of a block's rows: its labels, or its title and numbered entries."""
    if block.labels:
        return block.labels.split("|")
    source = FULL_DATA if block.mechanism == ROUNDED else SAMPLE_DATA
    names, number = [f"Total - {block.title} - {source}"], list[int]()
    for depth, letter in shape[1:]:
        level = depth - shape[0][0]
        number = number[: level - 1] + [0] * (level - len(number)) if len(number) < level else number[:level]
        number[-1] += 1
        path = ".".join(map(str, number))
        name = f"{block.noun[:1].upper()}{block.noun[1:]} {path}"
        amount = f"{block.noun.split(', ')[-1]} {path}"
        dressed = {"m": f"Median {amount} ($)", "a": f"Average {amount} ($)"}
        dressed |= {"n": f"Average {amount}", "p": f"{name} (%)"}
        names.append(dressed.get(letter, name))
    return names


def _rows(block: ProfileBlock) -> list[Row]:
    shape = expand(block.shape)
    return [
        Row(
            id=block.first + at,
            name=name,
            depth=depth,
            kind=KINDS[letter],
            block=block.first,
            rule=block.rule,
            mechanism=block.mechanism,
            has_sex=block.sex,
            subset=letter == "s",
        )
        for at, ((depth, letter), name) in enumerate(zip(shape, _names(block, shape), strict=True))
    ]


def _plan(block: ProfileBlock, number: int, start: int) -> BlockPlan:
    """Find the leaves under each count of a block."""
    shape = expand(block.shape)
    parents = _parents([depth for depth, _ in shape])
    nodes = [at for at, (_, letter) in enumerate(shape) if not letter]
    inner = {parents[at] for at in nodes if parents[at] >= 0}
    low, high, leaves = {}, dict[int, int](), 0
    for at in nodes:
        low[at] = leaves
        leaves += at not in inner
    for place, at in enumerate(nodes):
        below = next((later for later in nodes[place + 1 :] if shape[later][0] <= shape[at][0]), None)
        high[at] = leaves if below is None else low[below]
    return BlockPlan(
        block=block,
        number=number,
        start=start,
        stop=start + len(shape),
        nodes=np.array(nodes, dtype=np.int64),
        low=np.array([low[at] for at in nodes], dtype=np.int64),
        high=np.array([high[at] for at in nodes], dtype=np.int64),
        leaves=leaves,
        subsets=tuple((at, parents[at]) for at, (_, letter) in enumerate(shape) if letter == "s"),
    )


def _layout_sums(block: ProfileBlock) -> list[RowSum]:
    """Return the partitions inside a block; statistics and multiple responses have none."""
    if block.rule not in ("split", "core", "within") or block.mechanism == EXACT:
        return []
    shape = expand(block.shape)
    parts: dict[int, list[int]] = {}
    for at, parent in enumerate(_parents([depth for depth, _ in shape])):
        if parent >= 0 and not shape[at][1]:
            parts.setdefault(parent, []).append(block.first + at)
    return [RowSum(block.first + head, tuple(below), "layout") for head, below in parts.items()]


def _universe_sums(blocks: list[ProfileBlock], sample: bool = False) -> list[RowSum]:
    """Return the totals that show the same people twice: row 8 is row 1, row 50 is row 5, and so on.

    Of a weighted sample (`sample`), estimates are the same as other estimates only, never as counts.
    """
    reference = {} if sample else {"people": 1, "households": 5}
    same = []
    for block in blocks:
        if block.rule in ("figures", "within") or block.mechanism == EXACT:
            continue
        if block.universe.startswith("="):
            same.append(RowSum(block.first, tuple(int(part) for part in block.universe[1:].split("+")), "universe"))
        elif block.universe in reference:
            same.append(RowSum(block.first, (reference[block.universe],), "universe"))
        else:
            reference[block.universe] = block.first
    chosen = {row.id for block in blocks for row in _rows(block)}
    same = [one for one in same if chosen.issuperset(one.parts)] if sample else same
    return same + [RowSum(row, (other,), "universe") for row, other in SAME.items() if {row, other} <= chosen]


@cache
def schema(rows: str = "age", weighted: bool = False) -> Schema:
    """Return the profile's rows for one of the choices `age`, `short`, `sample` and `all`.

    Where sample tables are `weighted`, no sum has both counts and estimates.
    """
    if rows not in ROWS:
        raise InputError(f"there are no rows called {rows!r}: choose {', '.join(ROWS)}.")
    chosen = [
        (number, block)
        for number, block in enumerate(BLOCKS)
        if any(first <= block.first <= last for first, last in ROWS[rows])
    ]
    table, sums, plans = list[Row](), list[RowSum](), list[BlockPlan]()
    for number, block in chosen:
        plans.append(_plan(block, number, len(table)))
        table += _rows(block)
        sums += _layout_sums(block)
    blocks = [block for _, block in chosen]
    if weighted:
        sampled = [block.mechanism == SAMPLE for block in blocks]
        sums += _universe_sums([block for block, own in zip(blocks, sampled, strict=True) if not own])
        sums += _universe_sums([block for block, own in zip(blocks, sampled, strict=True) if own], sample=True)
    else:
        sums += _universe_sums(blocks)
    return Schema(tuple(table), tuple(sums), tuple(plans))
