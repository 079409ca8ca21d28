"""Ways of publishing a table: by one mechanism throughout, or as today with one thing changed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

import numpy as np

from unround.audits.keys import Keys, SameCount
from unround.comparison.material import Material
from unround.errors import InputError
from unround.mechanisms import HIDDEN, CellKey, Exact, Mechanism, Rounding, Unpublished, Within
from unround.mechanisms.base import IntArray, fraction
from unround.mechanisms.cellkey import largest_variance
from unround.protection.keys import CellKeys, constants_of, secret_from, shifted
from unround.protection.table import ALIKE, KEYED, Protection, parse_protection, publish_counts
from unround.sums.forest import Equations
from unround.system import grouped


def repeated(columns: int, equations: Equations, exact: frozenset[int]) -> list[tuple[int, ...]]:
    """Return the columns that show the same count as another one, in groups; those of exact counts are left out."""
    groups = grouped(columns, ((total, parts[0]) for total, parts in equations if len(parts) == 1))
    return [tuple(group) for group in groups if len(group) > 1 and not exact.intersection(group)]


TODAY = "rounding:5"  # what the Canadian census does: every count rounded on its own, populations exact

DEFAULT = (TODAY, "controlled:5", "rounding:10", "nearest:5", "laplace:1.45", "gaussian:2")
"""What an office would want to see side by side: today's rounding, the same adding up, a larger base, rounding without
chance, and noise of the same variance in two shapes."""

WHAT_IFS = ("drop-invariants", "same-seed", "base=10", "no-totals", "controlled", "keyed", "alike")
"""Small changes to today's practice; `base` takes any number."""


@dataclass(frozen=True, eq=False)
class Practice:
    """One way of publishing."""

    name: str  # how the command line calls it
    sentence: str  # what is done, for people
    how: Mechanism  # what protects the counts that are not exact
    mechanisms: tuple[Mechanism, ...]  # how every column is published, looked at by itself
    assumed: tuple[Mechanism, ...]  # What somebody who infers from all columns together takes them to be published by
    publish: Callable[[IntArray, np.random.Generator], IntArray]  # draws published counts for true ones
    keys: Keys = field(default_factory=Keys)  # what they know of the keys of records

    def seen(self, published: IntArray) -> IntArray:
        """Return what they look at: copies of which nothing is to be learnt are left out."""
        left_out = [isinstance(how, Unpublished) for how in self.assumed]
        return np.where(left_out, HIDDEN, published)


LARGEST_CHANGES, VARIANCES, BLOCKED = "1-10", "0.5,1,2,3,4,6,8", "0-2"
"""The designs of cell keys to compare, unless somebody says: D, V and js."""

FAR = 4  # changes of more standard deviations hardly occur: a larger D makes no other table


def cell_key_designs(text: str) -> list[str]:
    """Return the cell key tables of a range of parameters, by name; combinations that cannot be had are left out.

    >>> cell_key_designs("D=2-3 V=1,2 js=0,2")
    ['cellkey:2,1', 'uniform:2', 'uniform:2,js=2', 'cellkey:3,1', 'cellkey:3,2', 'cellkey:3,2,js=2']
    """
    asked = {"D": LARGEST_CHANGES, "V": VARIANCES, "js": BLOCKED}
    known = {name.lower(): name for name in asked}
    for part in [] if text.strip().lower() == "all" else text.split():
        name, equals, values = part.partition("=")
        if name.lower() not in known or not equals:
            raise InputError(f"designs are all, or ranges such as D=1-4 V=1,2 js=0,2; not {part!r}.")
        asked[known[name.lower()]] = values
    changes, variances, blocked = (_numbers(name, values) for name, values in asked.items())
    names = []
    for largest, variance, js in product(changes, variances, blocked):
        if int(largest) ** 2 <= FAR**2 * variance and variance <= largest_variance(int(largest)):
            with suppress(InputError):  # counts from 1 to js cannot be changed without bias
                names.append(CellKey(int(largest), variance, int(js)).name)
    if not names:
        raise InputError("there is no cell key table with such parameters: V is at most D(D + 1)/3, and js = 2 needs 2.")
    return names


def _numbers(name: str, text: str) -> list[Fraction]:
    """Return the numbers of a list such as 1-4 or 0.5,1."""
    first, dash, last = text.partition("-")
    try:
        numbers = [Fraction(n) for n in range(int(first), int(last) + 1)] if dash else [fraction(n) for n in text.split(",")]
    except (ValueError, InputError):
        numbers = []
    if not numbers or len(numbers) > 100 or (name != "V" and any(n.denominator > 1 for n in numbers)):
        raise InputError(f"{name} is a list or a range, such as {name}=1-4 or {name}=1,2; not {text!r}.")
    return numbers


def practice(spec: str, material: Material) -> Practice:
    """Return the practice of publishing all but the exact columns by one mechanism, or by controlled rounding."""
    chosen = parse_protection(spec)
    if chosen.keys:
        return _by_keys(chosen, material)
    return _plain(chosen.name, chosen, material, material.exact)


def _plain(name: str, chosen: Protection, material: Material, exact: frozenset[int], said: str = "") -> Practice:
    def publish(true: IntArray, rng: np.random.Generator) -> IntArray:
        return publish_counts(true, chosen, material.equations, rng, exact=exact)

    mechanisms = tuple(Exact() if c in exact else chosen.mechanism for c in range(len(material.columns)))
    assumed = mechanisms
    if chosen.base is not None:
        heads = {total for total, parts in material.equations if len(parts) > 1} - exact
        assumed = tuple(Within(chosen.base - 1) if c in heads else how for c, how in enumerate(mechanisms))
    return Practice(name, said or chosen.sentence, chosen.mechanism, mechanisms, assumed, publish)


def what_if(change: str, material: Material) -> Practice:
    """Return today's practice with one change."""
    today, (name, equals, value) = parse_protection(TODAY), change.strip().partition("=")
    if change == "drop-invariants":
        said = "As today, but populations are randomly rounded too, so nothing is exact."
        return _plain(change, today, material, frozenset(), said)
    if change == "same-seed":
        return _same_seed(material)
    if change == "no-totals":
        return _no_totals(material, today)
    if change == "controlled":
        return practice(f"controlled:{_base(today.mechanism)}", material)
    if name == "base" and equals:
        if not value.isdecimal() or not int(value):
            raise InputError(f"base= takes a whole number of 1 or more, such as base=10; not {value!r}.")
        return _plain(change, parse_protection(f"rounding:{value}"), material, material.exact)
    try:
        return practice(change, material)
    except InputError as problem:
        raise InputError(
            f"there is no change {change!r} to today's practice: choose from {', '.join(WHAT_IFS)}, or name a mechanism, "
            f"such as laplace:1.45. ({problem})"
        ) from None


def _base(how: Mechanism) -> int:
    assert isinstance(how, Rounding)
    return how.base


def _same_seed(material: Material) -> Practice:
    """Let a total and its two parts go up or down by one draw, as where a generator is set up anew for every table."""
    how = Rounding(_base(parse_protection(TODAY).mechanism))
    stream = np.arange(len(material.columns))
    for total, first, second in material.pairs:
        stream[[first, second]] = total
    exact = sorted(material.exact)

    def publish(true: IntArray, rng: np.random.Generator) -> IntArray:
        published = how.publish_with(true, how.draws(true.shape, rng)[:, stream])
        published[:, exact] = true[:, exact]
        return published

    said = (
        "As today, but a total, its men and its women are rounded with the same random number. Probabilities do not take "
        "this into account."
    )
    mechanisms = material.mechanisms(how)
    return Practice("same-seed", said, how, mechanisms, mechanisms, publish)


_CONSTANTS = 2021
"""Constants follow from this and the names of the tables: the same in every release, as those of an agency would be."""


def _by_keys(chosen: Protection, material: Material) -> Practice:
    """Round or change counts by the keys of records, with a constant for every table or with none.

    Without constants a count is the same in all tables, and one of them says as much as all. Whoever infers knows the
    constants, since any large table gives its own away, and takes all roundings of one count together, as an audit does.
    Between counts that only add up, keys are left out of account: they change little where counts are large.
    """
    constants = constants_of(material.tables, _CONSTANTS, 0.0 if chosen.keys == ALIKE else None)
    groups = repeated(len(material.columns), material.equations, material.exact)
    names = tuple(column.key for column in material.columns)

    def publish(true: IntArray, rng: np.random.Generator) -> IntArray:
        drawn = CellKeys(names, material.equations, secret_from(rng)).of([str(area) for area in range(len(true))], true)
        numbers = shifted(drawn, material.tables, constants)
        return publish_counts(true, chosen, material.equations, rng, exact=material.exact, numbers=numbers)

    mechanisms = material.mechanisms(chosen.mechanism)
    copies = {copy for group in groups for copy in group[1:]} if chosen.keys == ALIKE else set[int]()
    assumed = tuple(Unpublished() if c in copies else how for c, how in enumerate(mechanisms))
    keys = Keys()
    if chosen.keys == KEYED:
        shifts = [tuple(constants[material.tables[c]] for c in group) for group in groups]
        known = zip(groups, shifts, strict=True)
        keys = Keys(repeats=tuple(SameCount(tuple(names[c] for c in group), at, (0.0,) * len(at)) for group, at in known))
    said = (
        f"{chosen.sentence} Probabilities take all roundings of a count that stands in several tables together, "
        f"{'and the constants as known' if chosen.keys == KEYED else 'as one'}; counts that only add up are treated as "
        "rounded independently."
    )
    return Practice(chosen.name, said, chosen.mechanism, mechanisms, assumed, publish, keys)


def _no_totals(material: Material, today: Protection) -> Practice:
    """Publish men and women, but not both together."""
    hidden = sorted({total for total, *_ in material.pairs} - material.exact)
    if not hidden:
        raise InputError("no-totals leaves out totals of men and women (or similar pairs), but this table has none.")
    mechanisms = tuple(Unpublished() if c in hidden else how for c, how in enumerate(material.mechanisms(today.mechanism)))

    def publish(true: IntArray, rng: np.random.Generator) -> IntArray:
        published = publish_counts(true, today, material.equations, rng, exact=material.exact)
        published[:, hidden] = HIDDEN
        return published

    said = "As today, but totals of men and women are not published: users add them up, with the error of both parts."
    return Practice("no-totals", said, today.mechanism, mechanisms, mechanisms, publish)
