"""Ages as people write them: "0-14", "65+", "Y15T64", "5 bis unter 10", "moins de 5 ans"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from unround.tables.ages import ALL, EVER, AgeRun, Range, tile

_YEARS = r"(?:\s*(?:years?|yrs?\.?|jahren?|ans|años|anni|jaar|år|lat|vuotta))?(?:\s*(?:old|of age|alt))?"
_BEFORE = r"(?:(?:aged?|ages|alter|âge|edad|de|von)\s*:?\s*)?"
_LAST = 130
"""Nobody is older: a higher number is no age."""

_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"y_?lt_?(\d+)"), "under"),
    (re.compile(r"y_?ge_?(\d+)"), "over"),
    (re.compile(r"y_?gt_?(\d+)"), "above"),
    (re.compile(r"y_?(\d+)(?:t|-|_|to)y?(\d+)"), "from"),
    (re.compile(r"y_?(\d+)\+"), "over"),
    (re.compile(r"y_?(\d+)"), "single"),
    (re.compile(_BEFORE + r"(\d+)" + _YEARS + r"\s*(?:bis unter|to under|- ?<)\s*(\d+)" + _YEARS), "until"),
    (re.compile(_BEFORE + r"(\d+)" + _YEARS + r"\s*(?:-|–|—|_|to|bis|à|a|tot|til|till|through)\s*(\d+)" + _YEARS), "from"),
    (
        re.compile(
            _BEFORE + r"(\d+)" + _YEARS + r"\s*(?:\+|plus|(?:and|or|&|und|u\.|et|ou|y|e|en|og|och) ?"
            r"(?:over|older|more|above|up|mehr|älter|aelter|darüber|plus|más|mas|più|ouder|over|eldre|äldre|meer))" + _YEARS
        ),
        "over",
    ),
    (re.compile(r"(?:over|über|plus de|>)\s*(\d+)" + _YEARS), "above"),
    (re.compile(r"(?:≥|>=|at least|ab|from)\s*(\d+)" + _YEARS), "over"),
    (re.compile(r"(?:under|unter|<|less than|below|moins de|menos de|meno di|younger than)\s*(\d+)" + _YEARS), "under"),
    (re.compile(r"(?:≤|<=|up to|bis)\s*(\d+)" + _YEARS), "most"),
    (re.compile(_BEFORE + r"(\d+)" + _YEARS), "single"),
)  # fmt: skip


def written_age(text: str) -> Range | None:
    """Return the ages that a code or name stands for, both ends included; None where it stands for none.

    Examples
    --------
    >>> written_age("0-14"), written_age("Y15T64"), written_age("5 bis unter 10 Jahre"), written_age("Under 5")
    ((0, 14), (15, 64), (5, 9), (0, 4))
    >>> written_age("65 and over") == written_age("65+") == written_age("Y_GE65") == (65, EVER)
    True
    >>> written_age("age_0_14"), written_age("2021"), written_age("North")
    ((0, 14), None, None)
    """
    bare = " ".join(text.lower().split()).rstrip("*†‡¹²³ ")
    spaced = re.sub(r"(?<=[a-z])_+(?=\d)|(?<=\d)_+(?=[a-z])", " ", bare)  # age_65_plus
    for form, kind in _FORMS:
        found = form.fullmatch(bare) or form.fullmatch(spaced)
        if found is None:
            continue
        ages = [int(number) for number in found.groups()]
        if max(ages) > _LAST:
            return None
        first, last = ages[0], ages[-1]
        made = {
            "under": (0, first - 1), "most": (0, first), "over": (first, EVER), "above": (first + 1, EVER),
            "from": (first, last), "until": (first, last - 1), "single": (first, first),
        }[kind]  # fmt: skip
        return made if made[0] <= made[1] else None
    return None


def age_sums(ages: Mapping[str, Range], total: str | None) -> list[tuple[str, tuple[str, ...]]]:
    """Return the ages that others tile, each with the fewest that do.

    Examples
    --------
    >>> age_sums({"0-14": (0, 14), "0-4": (0, 4), "5-14": (5, 14), "15+": (15, EVER)}, "T")
    [('0-14', ('0-4', '5-14')), ('T', ('0-14', '15+'))]
    """
    ranges: dict[Range, str] = {}
    for code, span in ages.items():
        ranges.setdefault(span, code)
    found = list(_tilings(ranges, total))
    if total is None or not ranges or any(head == total for head, _ in found):
        return found
    # A table of adults tiles the ages from its youngest on: its total is not of all ages, but of all that are there.
    whole = min(span[0] for span in ranges), max(span[1] for span in ranges)
    return found if whole in ranges else list(_tilings({**ranges, whole: total}, None))


def _tilings(ranges: Mapping[Range, str], total: str | None) -> Sequence[tuple[str, tuple[str, ...]]]:
    found = []
    for head, parts in tile(AgeRun(dict(ranges))):
        whole = total if head is None else head
        if whole is not None and (head is None or ranges.get(ALL) != head or total in (None, head)):
            found.append((whole, parts))
    return found
