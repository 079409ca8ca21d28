"""How were the counts published? Inferred from what divides them, where neither the format nor the user says so.

Counts that were all rounded to multiples of 5 are multiples of 5; five times fewer of others are. What divisibility cannot
tell is *how* they were rounded (at random or to the nearest), and whether counts of every size were left as they are or had
noise added: then the usual mechanism is assumed, and the result says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Exact, Mechanism, Rounding, Sample
from unround.regions import of_sample
from unround.release import ABSENT, Column, Counts
from unround.structure.evidence import MechanismEvidence

_BASES = (10, 5, 3)
"""Bases that agencies use; a multiple of the first is looked for first."""
_DIVISORS = (*_BASES, 2)
_CHANCE = 1e-6
"""A base is believed when unrounded counts would be multiples of it so often with at most this probability."""
_ODD = 0.005
"""Rounded counts may be no multiples of the base in this share of cells: typing errors, reported as inconsistencies."""
_SLIPS, _MANY = 2, 50
"""So many slips may stand among at least so many counts, whatever their share."""
_FEW = 20
"""Counts of twice the base, or of 20 and more, from which one can tell how usual a count of the base itself is."""
_STRAY = 0.01
"""Where counts under 10 become 0 or 10, there may be so many 5s for every 10."""
_SMALL = 20
_UNTOLD, _UNROUNDED, _MIXED = 0, 1, -1


@dataclass(frozen=True, slots=True, eq=False)
class Divisibility:
    """How many counts of each column are there, and multiples of what; every array has one entry per column.

    `multiples[i]` are those above zero that `_DIVISORS[i]` divides, `large` and `large_multiples` the same for counts of 20
    and more; `fives` and `tens` are the counts of exactly 5 and 10, `divisor` is the largest number that divides all counts
    above zero, and `below_zero` are those below.
    """

    published: NDArray[np.int64]
    above_zero: NDArray[np.int64]
    multiples: NDArray[np.int64]
    large: NDArray[np.int64]
    large_multiples: NDArray[np.int64]
    fives: NDArray[np.int64]
    tens: NDArray[np.int64]
    divisor: NDArray[np.int64]
    below_zero: NDArray[np.int64]

    @property
    def negative(self) -> bool:
        """Whether any count is below zero, which only noise makes."""
        return bool(self.below_zero.any())

    @classmethod
    def none(cls, columns: int) -> Divisibility:
        """Return what is known before any area was seen."""
        one, many = (columns,), (len(_DIVISORS), columns)
        shapes = (one, one, many, one, many, one, one, one, one)
        return cls(*(np.zeros(shape, dtype=np.int64) for shape in shapes))

    def add(self, counts: Counts) -> None:
        """Count some more areas."""
        shown = counts > ABSENT
        above, large = counts > 0, counts >= _SMALL
        self.published[:] += shown.sum(0)
        self.above_zero[:] += above.sum(0)
        self.large[:] += large.sum(0)
        for at, divisor in enumerate(_DIVISORS):
            divided = above & (counts % divisor == 0)
            self.multiples[at] += divided.sum(0)
            self.large_multiples[at] += (divided & large).sum(0)
        self.below_zero[:] += (shown & (counts < 0)).sum(0)
        self.fives[:] += (counts == 5).sum(0)
        self.tens[:] += (counts == 10).sum(0)
        self.divisor[:] = np.gcd(self.divisor, np.gcd.reduce(np.where(above, counts, 0).astype(np.int64), axis=0))

    def over(self, columns: Sequence[int]) -> Divisibility:
        """Return all columns of a list as one."""
        at = list(columns)
        return Divisibility(
            self.published[at].sum(keepdims=True),
            self.above_zero[at].sum(keepdims=True),
            self.multiples[:, at].sum(1, keepdims=True),
            self.large[at].sum(keepdims=True),
            self.large_multiples[:, at].sum(1, keepdims=True),
            self.fives[at].sum(keepdims=True),
            self.tens[at].sum(keepdims=True),
            np.gcd.reduce(self.divisor[at], keepdims=True),
            self.below_zero[at].sum(keepdims=True),
        )


def _slips(odd: int, above: int) -> bool:
    """Say whether counts that do not fit are so few that they may be mistakes."""
    return odd <= _ODD * above or (odd <= _SLIPS and above >= _MANY)


def _base(found: Divisibility, at: int) -> int:
    """Return the base of one column: 1 if not rounded, 0 if there are too few counts to tell, -1 if nothing fits."""
    above = int(found.above_zero[at])
    for place, base in enumerate(_BASES):
        odd = above - int(found.multiples[place, at])
        if _slips(odd, above):
            # Multiples of 10 are to be told from those of 5 by large counts: small ones may be 0 or 10 for another reason.
            by_chance, telling = (2, int(found.large_multiples[place, at])) if base == 10 else (base, above - odd)
            if telling and by_chance ** -float(telling) <= _CHANCE:
                return base
            if base != 10:
                return _UNTOLD
    if not above:
        return _UNTOLD
    # Something is not a multiple of any base. If unrounded, multiples come as often as they do by chance.
    large = int(found.large[at])
    for place, divisor in enumerate(_DIVISORS):
        share = found.large_multiples[place, at] / large if large else 0.0
        error = (1 / divisor / large) ** 0.5 if large else 0.0
        if large >= _FEW and share > 1.6 / divisor + 4 * error:
            return _MIXED
    return _UNROUNDED


def _without_fives(found: Divisibility, at: int) -> bool | None:
    """Say whether counts under 10 became 0 or 10; None where there are too few counts of 10 to tell."""
    fives, tens = int(found.fives[at]), int(found.tens[at])
    if fives + tens < _FEW:
        return False if fives > 1 else None
    if fives <= _STRAY * tens:
        return True
    return False if fives >= 0.2 * tens else None


def detect(
    found: Divisibility, columns: Sequence[Column], declared_by: Sequence[str]
) -> tuple[list[Mechanism | None], list[MechanismEvidence]]:
    """Find out how every column was published.

    The mechanisms (None where it cannot be told), and what they rest on, table by table.
    """
    bases = [_base(found, at) for at in range(len(columns))]
    blocks: dict[str, list[int]] = {}
    for at, column in enumerate(columns):
        blocks.setdefault(column.block, []).append(at)
    mechanisms: list[Mechanism | None] = [column.mechanism for column in columns]
    evidence = []
    common = _common(found, bases, blocks.values(), columns)
    for block, members in blocks.items():
        said: dict[tuple[Mechanism, str], list[int]] = {}
        for at in members:
            declared = columns[at].mechanism
            if declared is not None:
                said.setdefault((declared, declared_by[at]), []).append(at)
        for (declared, by), those in said.items():
            evidence.append(MechanismEvidence(block, tuple(those), declared, f"declared: {declared.sentence}", by))
        open_ = [at for at in members if columns[at].mechanism is None]
        if open_:
            evidence += _detect_block(found, block, open_, bases, common, mechanisms)
    return mechanisms, evidence


def _common(found: Divisibility, bases: Sequence[int], blocks: Iterable[Sequence[int]], columns: Sequence[Column]) -> int:
    """Return the base that all rounded columns, or tables of too few counts each, of the release share; 0 if none."""
    told = {base for base, column in zip(bases, columns, strict=True) if base > 1 and column.mechanism is None}
    for block in blocks:
        told.add(_base(found.over([at for at in block if bases[at] == _UNTOLD and columns[at].mechanism is None]), 0))
    told -= {_UNTOLD, _UNROUNDED, _MIXED}
    return told.pop() if len(told) == 1 else 0


def _detect_block(
    found: Divisibility, block: str, members: list[int], bases: list[int], common: int, mechanisms: list[Mechanism | None]
) -> list[MechanismEvidence]:
    """Find out how the columns of one table were published; fill in `mechanisms`."""
    told = {bases[at] for at in members if bases[at] > 1}
    if told == {5, 10} and all(_fits(found, at, 10) for at in members if bases[at] == 5):
        told = {10}  # those of 5 only had too few counts to be told from it
    pooled = _base(found.over([at for at in members if bases[at] == _UNTOLD]), 0)
    usual = told.pop() if len(told) == 1 else pooled if pooled > 1 else common
    groups: dict[int, list[int]] = {}
    for at in members:
        base = bases[at]
        if (base == _UNTOLD or (base == 5 and usual == 10)) and usual and _fits(found, at, usual):
            base = usual
        groups.setdefault(base, []).append(at)
    evidence = []
    for base, those in groups.items():
        larger = _larger_base(found.over(those), base)
        if larger is not None:
            for at in those:
                mechanisms[at] = Rounding(larger)
            evidence.append(MechanismEvidence(block, tuple(those), Rounding(larger), _why(found.over(those), larger)))
            continue
        if base == 5:
            evidence += _fives(found, block, those, mechanisms)
            continue
        kinds: dict[int, Mechanism] = {_UNROUNDED: Exact(), 10: Rounding(10), 3: Rounding(3)}
        kind = kinds.get(base)
        for at in those:
            mechanisms[at] = kind
        evidence.append(MechanismEvidence(block, tuple(those), kind, _why(found.over(those), base)))
    return evidence


def _larger_base(pool: Divisibility, base: int) -> int | None:
    """Return a multiple of the base that divides every count, if that is no chance: 15 looks like 5."""
    divisor, above = int(pool.divisor[0]), int(pool.above_zero[0])
    if base < 2 or divisor <= base or divisor % base:
        return None
    return divisor if (base / divisor) ** above <= _CHANCE else None


def _fits(found: Divisibility, at: int, base: int) -> bool:
    above = int(found.above_zero[at])
    return _slips(above - int(found.multiples[_DIVISORS.index(base), at]), above)


def _fives(found: Divisibility, block: str, those: list[int], mechanisms: list[Mechanism | None]) -> list[MechanismEvidence]:
    """Tell base 5 from base 5 with 0 or 10 below 10, for a table as a whole: a column may have few small counts.

    Columns outside tables have nothing in common; of these each is judged by itself, and by the rest only if it has too
    few small counts. So are the columns of a table whose small counts, taken together, fit neither.
    """
    pooled = _without_fives(found.over(those), 0)
    groups: dict[tuple[bool | None, bool], list[int]] = {}
    if block and pooled is not None:
        groups[pooled, False] = those
    else:
        verdicts = {at: _without_fives(found, at) for at in those}
        told = {verdict for verdict in verdicts.values() if verdict is not None}
        usual = told.pop() if len(told) == 1 else pooled if pooled is not None or told else of_sample(block)
        for at in those:
            known = usual if verdicts[at] is None else verdicts[at]
            # Where nothing tells, the wider windows are safe: they hold all that the narrower ones do. Unless there is a 5.
            groups.setdefault((known, known is None and bool(found.fives[at])), []).append(at)
    evidence = []
    for (known, some), members in groups.items():
        kind: Mechanism = Rounding(5) if known is False or some else Sample(5)
        for at in members:
            mechanisms[at] = kind
        why = _why(found.over(members), 5) + _why_small(found.over(members), known, some, block)
        evidence.append(MechanismEvidence(block, tuple(members), kind, why))
    return evidence


def _why_small(pool: Divisibility, known: bool | None, some: bool, block: str) -> str:
    """Return what is known of the small counts of a table, in words."""
    fives, tens = int(pool.fives[0]), int(pool.tens[0])
    if known is not None and _without_fives(pool, 0) is None and of_sample(block) is not None:
        source = "a sample, in which counts under 10 become 0 or 10" if known else "everybody, not of a sample"
        return f"; too few small counts to see what became of those under 10, but the title says that these are of {source}"
    if known:
        return f"; 5 itself occurs {fives:,} {_times(fives)}, 10 {tens:,}: counts under 10 became 0 or 10"
    if known is None and not some:
        return "; too few small counts to see whether those under 10 became 0 or 10: assumed, to be safe"
    return ""


def _times(number: int) -> str:
    return "time" if number == 1 else "times"


def _why(pool: Divisibility, base: int) -> str:
    """Return the evidence in words."""
    above = int(pool.above_zero[0])
    if base == _UNTOLD:
        if not above:
            return "no count above 0 was published"
        return f"only {above:,} counts are above 0, too few to infer how they were rounded; declare it"
    if base == _UNROUNDED:
        shares = ", ".join(
            f"{pool.multiples[at, 0] / above:.0%} are multiples of {divisor}"
            for at, divisor in enumerate(_DIVISORS)
            if divisor in (3, 5)
        )
        return f"of {above:,} counts above 0, {shares}: treated as exact"
    if base == _MIXED:
        shares = ", ".join(
            f"{pool.multiples[at, 0] / above:.0%} are multiples of {divisor}" for at, divisor in enumerate(_DIVISORS)
        )
        return (
            f"of {above:,} counts above 0, {shares}: more than by chance, but not all, so no rounding "
            "fits; declare how they were published"
        )
    multiples = int(pool.multiples[_DIVISORS.index(base), 0]) if base in _DIVISORS else above
    odd = above - multiples
    words = f"all {above:,} counts above 0 are multiples of {base}"
    if odd:
        words = f"{multiples:,} of {above:,} counts above 0 are multiples of {base}, {odd:,} are not"
    return f"{words}: treated as random rounding to base {base}"
