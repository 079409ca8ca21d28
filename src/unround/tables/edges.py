"""Edges: labels such as "5 to 9 years", "$10,000 to $19,999" or "5 or more persons" name ranges of what units have.

Means and medians say something about groups whose edges are known. Edges are kept a little wide where labels leave it open
whether a range ends with its last whole number or with the next one: somebody of "5 to 9 years" may be nearly ten.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from unround.figures import Group
from unround.tables.ages import ALL, EVER, age_range


class Edges(NamedTuple):
    """From and to of a group, both included; None where it is open. `of` tells what is measured."""

    of: str
    low: Fraction | None
    high: Fraction | None


_AMOUNT = r"\$?\s*(\d[\d,]*)"
_MONEY_SIGN = re.compile(r"\$\s*\d")
_PLAIN_MONEY = re.compile(r"\d{4,6} (?:to \d{4,6}|or (?:less|more))")
_FROM_TO = re.compile(rf"{_AMOUNT}\s*(?:to|-|–)\s*{_AMOUNT}")
_LESS = re.compile(rf"(?:under|less than) {_AMOUNT}(?: \(including loss\))?|{_AMOUNT} or less")
_MORE = re.compile(rf"{_AMOUNT} (?:and|or) (?:over|more)")
_THINGS = r"(persons?|rooms?|children|child|bedrooms?)"
_ONE = re.compile(rf"(\d+) {_THINGS}")
_SOME = re.compile(rf"(\d+) to (\d+) {_THINGS}")
_MANY = re.compile(rf"(\d+) or more {_THINGS}")
_NOTE = re.compile(r"\s*\(\d+\)\s*$")


def edges_of(label: str) -> Edges | None:
    """Return the edges that a label names, or None.

    Examples
    --------
    >>> [str(edge) for edge in edges_of("$10,000 to $19,999")]
    ['money', '10000', '20000']
    >>> edges_of("Under $10,000 (including loss)").low, edges_of("5 or more persons").high, edges_of("Widowed")
    (None, None, None)
    >>> [str(edge) for edge in edges_of("80 to 84 years")], [str(edge) for edge in edges_of("2 persons")]
    (['years', '80', '85'], ['persons', '2', '2'])
    """
    name = _NOTE.sub("", label.replace("_", " ")).strip().lower()
    if _MONEY_SIGN.search(name) or _PLAIN_MONEY.fullmatch(name):
        return _money(name)
    if found := _ONE.fullmatch(name):
        return Edges(_plural(found[2]), Fraction(found[1]), Fraction(found[1]))
    if found := _SOME.fullmatch(name):
        return Edges(_plural(found[3]), Fraction(found[1]), Fraction(found[2]))
    if found := _MANY.fullmatch(name):
        return Edges(_plural(found[2]), Fraction(found[1]), None)
    ages = age_range(name)
    if ages is None or ages == ALL:
        return None
    return Edges("years", Fraction(ages[0]), None if ages[1] == EVER else Fraction(ages[1] + 1))


def _money(name: str) -> Edges | None:
    if found := _FROM_TO.fullmatch(name):
        return Edges("money", _down(_number(found[1])), _up(_number(found[2])))
    if found := _LESS.fullmatch(name):
        return Edges("money", None, _up(_number(found[1] or found[2])))
    if found := _MORE.fullmatch(name):
        return Edges("money", _down(_number(found[1])), None)
    return None


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _up(number: int) -> Fraction:
    """19,999 and some cents are below 20,000."""
    return Fraction(number + 1 if number % 10 == 9 else number)


def _down(number: int) -> Fraction:
    """10,001 stands for more than 10,000."""
    return Fraction(number - 1 if number % 10 == 1 else number)


def _plural(word: str) -> str:
    return {"person": "persons", "room": "rooms", "child": "children", "bedroom": "bedrooms"}.get(word, word)


def finest(lines: Sequence[tuple[str, str]], of: str) -> tuple[Group, ...]:
    """Return the smallest groups that follow one upon the other without a gap, from the lowest to the highest, or none.

    Examples
    --------
    >>> labels = ["Total", "0 to 14 years", "0 to 4 years", "5 to 14 years", "15 years and over"]
    >>> [group.count for group in finest([(label, label) for label in labels], "years")]
    ['0 to 4 years', '5 to 14 years', '15 years and over']
    """
    found = [(key, edges) for key, label in lines if (edges := edges_of(label)) is not None and edges.of == of]
    whole_numbers = of not in ("years", "money")  # where a group ends with 4, the next begins with 5

    def start(edges: Edges) -> Fraction:
        return Fraction(-1) if edges.low is None else edges.low

    lowest = min((start(edges) for _, edges in found), default=None)
    best: dict[Fraction | None, tuple[Group, ...]] = {None: ()}
    # From the top down; of several that begin alike the narrowest comes last, and stays.
    order = sorted(found, key=lambda one: (start(one[1]), one[1].high is None, one[1].high or 0), reverse=True)
    for key, edges in order:
        after = None if edges.high is None else edges.high + whole_numbers
        if after in best:
            best[start(edges)] = (Group(key, edges.low, edges.high), *best[after])
    groups = best.get(lowest, ()) if lowest is not None else ()
    return groups if len(groups) > 1 else ()
