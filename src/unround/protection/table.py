"""START HERE: a table of true counts becomes a published one, by any mechanism of the library or controlled rounding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import HIDDEN, Gaussian, Laplace, Mechanism, Rounding, Transition, Within, mechanism
from unround.mechanisms.base import IntArray, keyable
from unround.release import LARGEST, gaps
from unround.sums.forest import Equations

CONTROLLED, KEYED, ALIKE = "controlled", "keyed", "alike"
ROUNDING = "rounding:"
STEPS = ("negative as 0", "made to add up")  # what can be done to counts after they were protected


@dataclass(frozen=True, slots=True)
class Protection:
    """How a table is protected: each count on its own, or all at once.

    - `keys`: "keyed" where counts are rounded by the keys of their records and a constant of every table, "alike" where
      there is no such constant; "" where every count has a random number of its own.
    """

    name: str  # how the command line calls it: "laplace:1.45", "controlled:5"
    sentence: str  # what is done to counts, and what is guaranteed, for people
    mechanism: Mechanism  # What someone should assume who only sees one count
    base: int | None = None  # for controlled rounding, its base; None where every count is published on its own
    keys: str = ""

    @property
    def controlled(self) -> bool:
        """Whether counts are rounded together, so that published sums add up."""
        return self.base is not None

    @property
    def noisy(self) -> bool:
        """Whether noise is added, so that counts can become negative."""
        return isinstance(self.mechanism, Laplace | Gaussian) and not self.mechanism.clamped

    def declared(self, *, clamp: bool, additive: bool, farthest: int) -> Mechanism:
        """Return the mechanism that a reader of the table should be told, also where counts were changed afterwards."""
        if additive and not self.controlled and not self.noisy:
            return Within(farthest)  # what rounding made of counts is no longer there to be seen
        if clamp and isinstance(self.mechanism, Laplace | Gaussian):
            return replace(self.mechanism, clamped=True)
        return self.mechanism


def parse_protection(spec: str) -> Protection:
    """Return the protection that a text names: any mechanism of the library, or `controlled:5`.

    Examples
    --------
    >>> parse_protection("laplace:1.45").mechanism
    Laplace(t=1.45, clamped=False)
    >>> parse_protection("controlled:5").mechanism
    Rounding(base=5)
    >>> parse_protection("alike:5").keys, parse_protection("alike:cellkey:2,1").mechanism
    ('alike', CellKey(2, 1, js=0, stay=0))
    """
    name, colon, base = (part.strip() for part in spec.partition(":"))
    if name.lower() in (KEYED, ALIKE):
        plain = f"rounding:{base}" if base.isdecimal() else base or "rounding"
        if colon and not (base.isdecimal() or ":" in base):
            raise InputError(f"{name} needs a base or a mechanism, such as {name}:5 or {ALIKE}:cellkey:2,1; not {base!r}.")
        return by_keys(parse_protection(plain), constants=name.lower() == KEYED)
    if name.lower() != CONTROLLED:
        try:
            how = mechanism(spec)
        except InputError as error:
            if str(error).startswith("there is no mechanism"):
                raise InputError(f"{str(error).rstrip('.')}, {CONTROLLED}, {KEYED}, {ALIKE}.") from None
            raise
        return Protection(how.name, how.sentence, how)
    if colon and not base.isdecimal():
        raise InputError(f"{CONTROLLED} needs a base, such as {CONTROLLED}:5; not {base!r}.")
    how = Rounding(int(base)) if base else Rounding()
    return Protection(
        f"{CONTROLLED}:{how.base}",
        f"Controlled random rounding to base {how.base}, all counts of an area together: unbiased, and every published "
        "total is the sum of its published parts, so it adds no information to them.",
        how,
        how.base,
    )


_SAME_CELL = "The same records show the same change in every table."


def by_keys(how: Protection, *, constants: bool = True) -> Protection:
    """Return the same protection with random numbers that come from the keys of records."""
    if how.keys:
        return how
    if how.controlled:
        raise InputError(f"keys decide how each count is rounded on its own, and {how.name} does not do that.")
    keyable(how.mechanism)
    if isinstance(how.mechanism, Transition):
        said = how.sentence.replace("each count independently", "by the sum of the records' keys and the count")
        return replace(how, name=f"{ALIKE}:{how.name}", sentence=f"{said} {_SAME_CELL}", keys=ALIKE)
    name = KEYED if constants else ALIKE
    said = how.sentence.removesuffix(", each count independently.")
    more = (
        "and a constant of the table: the same records round alike wherever that constant is the same."
        if constants
        else "alone: the same records round alike in every table."
    )
    return replace(
        how,
        name=f"{name}:{how.name.removeprefix(ROUNDING)}",
        sentence=f"{said}, by the sum of the records' keys {more}",
        keys=name,
    )


def publish_counts(
    true: IntArray,
    how: Protection,
    sums: Equations,
    rng: np.random.Generator,
    *,
    exact: frozenset[int] = frozenset(),
    clamp: bool = False,
    additive: bool = False,
    numbers: NDArray[np.uint64] | None = None,
) -> IntArray:
    """Publish a table of true counts.

    Parameters
    ----------
    true : array of int64
        Areas × columns; a negative number stands for a count that does not exist.
    how : Protection
        What is done to counts.
    sums : tuple
        Totals and parts that add up, as positions of columns. Only controlled rounding and `additive` look at them; in
        areas where a sum lacks a count or does not add up, it is not kept up.
    rng : Generator
        Where chance comes from.
    exact : frozenset of int
        Columns that are published as they are. Sums with such a column cannot add up after controlled rounding: its
        parts come to a neighbouring multiple of an exact total.
    clamp : bool
        Publish negative counts, which only noise makes, as 0.
    additive : bool
        Afterwards move counts to the nearest whole numbers that add up.
    numbers : array of uint64, optional
        Where counts are rounded by keys: of every count the sum of its records' keys and the constant of its table, in units
        of 2⁻⁶⁴, areas × columns. Who has the records adds them up; without this, sums of keys are drawn that could be
        theirs, for one table, whose areas are taken by their places.

    Returns
    -------
    array of int64
        `HIDDEN` where nothing is published, because there is no count or the mechanism hides it.

    Raises
    ------
    InputError
        Where sums form loops that neither controlled rounding nor `additive` can keep up.
    """
    *_, (_, published) = publish_in_steps(true, how, sums, rng, exact=exact, clamp=clamp, additive=additive, numbers=numbers)
    return published


def publish_in_steps(
    true: IntArray,
    how: Protection,
    sums: Equations,
    rng: np.random.Generator,
    *,
    exact: frozenset[int] = frozenset(),
    clamp: bool = False,
    additive: bool = False,
    numbers: NDArray[np.uint64] | None = None,
) -> Iterator[tuple[str, IntArray]]:
    """Do the same as `publish_counts`, and yield the table after each step, to see what the step costs.

    Steps are called by what was done: the protection's name, "negative as 0", "made to add up".
    """
    true = np.asarray(true, dtype=np.int64)
    absent = true < 0
    safe = np.where(absent, 0, true)
    if how.keys:
        published = _by_numbers(safe, how, sums, rng, numbers)
    elif how.base:
        published = _controlled(true, safe, how.base, sums, rng)
    else:
        published = how.mechanism.publish(safe, rng)
    as_is = sorted(exact)
    published[:, as_is] = safe[:, as_is]
    published[absent] = HIDDEN
    yield how.name, published
    if clamp and how.noisy:
        published = np.where((published < 0) & (published != HIDDEN), 0, published)
        yield STEPS[0], published
    if additive and not how.controlled:
        # What rounding made of a count is never negative, and must not become so.
        least = 0 if clamp or not how.noisy else -LARGEST
        yield STEPS[1], _made_additive(published, keepable(true, sums), sums, as_is, least)


def _made_additive(
    published: IntArray, usable: NDArray[np.bool_], sums: Equations, fixed: list[int], least: int
) -> IntArray:
    """Return the nearest whole numbers that add up; hidden counts stay hidden, and fixed ones what they are."""
    from unround.additive import nearest_whole

    hidden = published == HIDDEN
    counts = np.where(hidden, 0, published)
    low, high = np.where(hidden, 0, least), np.where(hidden, 0, LARGEST)
    low[:, fixed] = high[:, fixed] = counts[:, fixed]
    active = usable.copy()
    for at, (total, parts) in enumerate(sums):
        active[:, at] &= ~hidden[:, [total, *parts]].any(axis=1)
    try:
        return np.where(hidden, HIDDEN, nearest_whole(counts, low, high, sums, active))
    except InputError as problem:
        raise InputError(f"{problem}: leave out --additive, or some of the sums.") from None


def _by_numbers(
    safe: IntArray, how: Protection, sums: Equations, rng: np.random.Generator, numbers: NDArray[np.uint64] | None
) -> IntArray:
    """Round or change every count by the sum of its records' keys."""
    if numbers is None:
        from unround.protection.keys import CellKeys, constants_of, secret_from, shifted

        names = tuple(map(str, range(safe.shape[1])))
        keys = CellKeys(names, sums, secret := secret_from(rng)).of([str(area) for area in range(len(safe))], safe)
        given = 0.0 if how.keys == ALIKE else None
        numbers = shifted(keys, [""] * len(names), constants_of([""], secret, given))
    return keyable(how.mechanism).publish_keyed(safe, numbers)


def patterns(usable: NDArray[np.bool_]) -> Iterator[tuple[IntArray, tuple[int, ...]]]:
    """Group areas by which of their sums can be kept up: yield the areas, and the positions of those sums."""
    kinds, kind_of = np.unique(usable, axis=0, return_inverse=True)
    for kind in range(len(kinds)):
        yield np.flatnonzero(kind_of.ravel() == kind), tuple(np.flatnonzero(kinds[kind]).tolist())


def keepable(true: IntArray, sums: Equations) -> NDArray[np.bool_]:
    """Return for every area and sum whether all of its counts are there and add up."""
    usable, known = np.empty((len(true), len(sums)), dtype=np.bool_), np.where(true < 0, HIDDEN, true)
    for at, (total, parts) in enumerate(sums):
        there, more = gaps(known, total, parts)
        usable[:, at] = there & (more == 0)
    return usable


def _controlled(true: IntArray, safe: IntArray, base: int, sums: Equations, rng: np.random.Generator) -> IntArray:
    """Round every count to a neighbouring multiple of the base so that the sums still hold."""
    from unround.protection.walk import Loops, tableaux, walk

    rest = safe % base
    down = safe - rest
    for areas, held in patterns(keepable(true, sums)):
        few = rest[areas]
        try:
            walk(few, base, tableaux(true.shape[1], tuple(sums[at] for at in held)), rng)
        except Loops:
            raise InputError(
                "controlled rounding cannot preserve these sums: they form loops other than those of a hierarchy "
                "crossed with one more classification, such as sex. Leave some of them out, or choose another mechanism."
            ) from None
        rest[areas] = few
    return down + rest


NEAR = 4  # the paper's yardstick: rounding to base 5 never moves a count by more
SMALL = 5  # true counts below this are small: bias shows in them first


def _mean(total: str, number: str) -> Any:
    """Return a property that divides one sum by another; None where there is nothing to divide by."""
    return property(lambda score: getattr(score, total) / getattr(score, number) if getattr(score, number) else None)


@dataclass
class ProtectionScore:
    """How a published table compares with the true one. Columns that were published as they are do not count.

    - `sums`, `broken`, `gap`: How many sums have all of their counts published, in how many of them total and parts
      differ, and by how much in all.
    """

    counts: int = 0  # how many counts were published; the sums of published − true, of its size and of its square
    off: int = 0
    distance: int = 0
    squares: int = 0
    near: int = 0
    farthest: int = 0
    small: int = 0  # true counts below `SMALL`: how many, and the sum of published − true
    small_off: int = 0
    negative: int = 0  # counts published below 0; and counts that exist but were not published
    hidden: int = 0
    sums: int = 0
    broken: int = 0
    gap: int = 0

    def add(self, published: IntArray, true: IntArray, sums: Equations, exact: frozenset[int] = frozenset()) -> None:
        """Count in some areas: tables of areas × columns, with `HIDDEN`, and negative numbers for no count."""
        counted = true >= 0
        counted[:, sorted(exact)] = False
        shown = counted & (published != HIDDEN)
        off = (published - true)[shown]
        self.counts += off.size
        self.off += int(off.sum())
        self.distance += int(np.abs(off).sum())
        self.squares += int((off * off).sum())
        self.near += int((np.abs(off) <= NEAR).sum())
        self.farthest = max(self.farthest, int(np.abs(off).max(initial=0)))
        small = true[shown] < SMALL
        self.small += int(small.sum())
        self.small_off += int(off[small].sum())
        self.negative += int((published[shown] < 0).sum())
        self.hidden += int((counted & (published == HIDDEN)).sum())
        for total, parts in sums:
            there, more = gaps(published, total, parts)
            self.sums += int(there.sum())
            self.broken += int((more != 0).sum())
            self.gap += int(np.abs(more).sum())

    mean_error = _mean("distance", "counts")  # how far published counts are from true ones on average, either way
    within_4 = _mean("near", "counts")  # the share of counts that are at most 4 away
    bias = _mean("off", "counts")  # the mean of published − true
    small_bias = _mean("small_off", "small")  # the same for true counts below 5
    broken_share = _mean("broken", "sums")  # the share of sums whose published total is not the sum of its published parts
    mean_gap = _mean("gap", "sums")  # how far totals are from the sum of their parts on average

    @property
    def rmse(self) -> float | None:
        """The root of the mean square of published − true."""
        return (self.squares / self.counts) ** 0.5 if self.counts else None

    def to_json(self) -> dict[str, int | float | None]:
        """Return it as plain data."""
        return {
            "counts": self.counts,
            "mean_error": self.mean_error,
            "rmse": self.rmse,
            "within_4": self.within_4,
            "largest_error": self.farthest,
            "bias": self.bias,
            "small_bias": self.small_bias,
            "negative": self.negative,
            "hidden": self.hidden,
            "sums": self.sums,
            "sums_off": self.broken_share,
            "mean_gap": self.mean_gap,
        }
