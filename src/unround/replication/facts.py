"""What the paper states and nobody can recompute without the published tables: its counts of areas and findings.

Everything else in this package is worked out. These numbers are inputs (how many areas there were) or what is to be
explained (how many cases were found).
"""

from __future__ import annotations

from dataclasses import dataclass

AREAS = 61_029
"""All areas that the authors could query."""

STRONG = 0.66
"""From which probability on the paper calls a result strong."""

OVER = 10
"""Only groups in which every published value is above this were looked at."""

LAPLACE = 1.45
"""The scale of the noise that the paper proposes."""


@dataclass(frozen=True, slots=True)
class Search:
    """One of the paper's searches through the census.

    Parameters
    ----------
    key, title : str
        A short name, and one for people.
    parts : int
        How many parts the sums have.
    exact_total : bool
        Whether the total is the population, which is not rounded.
    residual : int
        |total − Σ parts| that counts as a find.
    section : str
        Where the paper reports it.
    groups : int
        In how many groups of cells the authors could look.
    found : int
        How many cases they found.
    values : int
        How many values one case gives away.
    """

    key: str
    title: str
    parts: int
    exact_total: bool
    residual: int
    section: str
    groups: int
    found: int
    values: int


SEX = Search("sex exact", "men and women under the exact population", 2, True, 8, "4.1.1", 61_010, 285, 2)
AGE = Search("age exact", "three ages under the exact population", 3, True, 12, "4.1.1", 59_625, 18, 3)
AGE_STRONG = Search("age strong", "three ages, one short of the bound", 3, True, 11, "4.2.1", 59_625, 83, 3)
FREE = Search("free exact", "four parts and their rounded total", 4, False, 20, "4.1.2", 83_898, 0, 5)
FREE_STRONG = Search("free strong", "three parts and their rounded total", 3, False, 15, "4.2.2", 918_192, 216, 4)
SEARCHES = (SEX, AGE, AGE_STRONG, FREE, FREE_STRONG)
"""The paper's four attacks; the one on ages comes in an exact and a strong form."""
