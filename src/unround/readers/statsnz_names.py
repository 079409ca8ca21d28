"""The names of Stats NZ's groups, taken apart: who is counted, which answer, which sex.

A name is `[counts_][level_N_]CODE_what_is_counted_UNIVERSE`, or `total…`; the universe (`curp` is the census usually
resident population) says who is counted. Men and women of a group are groups of their own: `by_sex_GROUP_1_male_UNIVERSE`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unround.readers.proposals import MEN, TOTAL, WOMEN

EVERYONE = "curp"

_SEXES = {"1_male": MEN, "2_female": WOMEN}
_GROUP = re.compile(
    r"(?P<split>by_sex_)?(?P<counts>counts_)?(?:level_(?P<level>\d+)_)?(?P<what>.*?)(?P<universe>curp(?:_.*)?)$"
)
_SEX = re.compile(r"(?:(?P<rest>.*?)_)?(?P<sex>1_male|2_female)$")
_CODE = re.compile(r"(?P<code>\d+|[a-z])_(?P<text>.+)$")
_POPULATION = "usually_resident_population_count"
_UNKNOWN = re.compile(r"not_elsewhere_included|not_stated|unidentifiable|residual_categories")
"""People who are in a total but not in its total of stated answers."""


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """One (variable, variable_group) of the file, understood as far as its name goes.

    `what` is the name without prefixes and universe ("01_0_to_4_years", "total"); `id` is that of the characteristic, the
    same for its men and women.
    """

    variable: str
    group: str
    what: str
    universe: str
    level: int
    sex: str
    repeat: bool
    id: str

    @property
    def code(self) -> str:
        """The number or letter that the group starts with, or ""."""
        found = _CODE.match(self.what)
        return found["code"] if found else ""

    @property
    def text(self) -> str:
        """What is counted, for people."""
        found = _CODE.match(self.what)
        return _readable(found["text"] if found else self.what or self.variable)

    @property
    def block(self) -> str:
        """The table it stands in, for people."""
        who = self.universe.removeprefix(EVERYONE).strip("_")
        return _readable(self.variable) + (f", {who.replace('_', ' ')}" if who else "")

    @property
    def label(self) -> str:
        """What the column is called; totals bear the name of their table, for there are many."""
        if not self.group:
            return _readable(self.variable)
        again = " by sex" if self.repeat else ""
        return f"{self.text} - {self.block}{again}" if self.is_total or self.is_stated else self.text

    @property
    def is_total(self) -> bool:
        """Whether it counts everybody in its universe."""
        return self.what in ("total", "totals")

    @property
    def is_stated(self) -> bool:
        """Whether it counts everybody who answered."""
        return self.what == "total_stated"

    @property
    def overlaps(self) -> bool:
        """Whether a person may be counted in several groups of the variable."""
        return re.search(r"_total_responses?$", self.variable) is not None

    @property
    def is_unknown(self) -> bool:
        """Whether it counts those who did not."""
        return _UNKNOWN.search(self.what) is not None


def _readable(name: str) -> str:
    text = name.replace("_", " ").strip()
    return text[:1].upper() + text[1:]


def understand(variable: str, group: str) -> NamedGroup:
    """Take the name of a group apart.

    Examples
    --------
    >>> group = understand("age_5_year_groups", "by_sex_01_0_to_4_years_1_male_curp")
    >>> group.id, group.sex, group.text
    ('age_5_year_groups:01_0_to_4_years_curp', 'men', '0 to 4 years')
    >>> understand("smoking_status", "total_curp_15years_and_over").label
    'Total - Smoking status, 15years and over'
    """
    if not group:
        universe = EVERYONE if variable == _POPULATION else ""
        what = TOTAL if variable == _POPULATION else ""
        return NamedGroup(variable, group, what, universe, 0, TOTAL, False, variable)
    found = _GROUP.match(group)
    if found is None:
        return NamedGroup(variable, group, group, "", 0, TOTAL, False, f"{variable}:{group}")
    what, universe = found["what"].rstrip("_"), found["universe"]
    level = int(found["level"] or 0)
    split = _SEX.match(what)
    if split is not None and (found["split"] or (variable == "sex" and not split["rest"])):
        what = split["rest"] or TOTAL
        return NamedGroup(
            variable, group, what, universe, level, _SEXES[split["sex"]], False, f"{variable}:{what}_{universe}"
        )
    return NamedGroup(variable, group, what, universe, level, TOTAL, bool(found["split"]), f"{variable}:{group}")
