"""How were the counts published? Inferred from what divides them, where neither the format nor the user says so.

Counts that were all rounded to multiples of 5 are multiples of 5; five times fewer of others are. What divisibility cannot
tell is *how* they were rounded (at random or to the nearest), and whether counts of every size were left as they are or had
noise added: then the usual mechanism is assumed, and the result says so.

Of counts that were perturbed every remainder occurs, as if they were exact: `noise` tells them apart by their sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Exact, Mechanism, Rounding, Sample
from unround.regions import of_sample
from unround.release import ABSENT, Column, Counts
from unround.structure.evidence import FORMAT, INFERRED, NOTE, OPTION, MechanismEvidence

_BASES = (10, 5, 3)  # bases that agencies use; a multiple of the first is looked for first
_DIVISORS = (*_BASES, 2)
_CHANCE = 1e-6  # A base is believed when unrounded counts would be multiples of it so often with at most this probability
_ODD = 0.005
"""Rounded counts may be no multiples of the base in this share of cells: typing errors, reported as inconsistencies."""
_SLIPS, _MANY = 2, 50  # so many slips may stand among at least so many counts, whatever their share
_OTHERS, _ALONE = 3, 6
"""So many times as many exact counts beside fewer than so many counts, which happen to be multiples, make these exact."""
_FEW = 20  # counts of twice the base, or of 20 and more, from which one can tell how usual a count of the base itself is
_STRAY = 0.01  # where counts under 10 become 0 or 10, there may be so many 5s for every 10
_SMALL = 20
_LOW = 11  # counts below this are counted one by one
_UNTOLD, _UNROUNDED, _MIXED = 0, 1, -1


@dataclass(frozen=True, slots=True, eq=False)
class Divisibility:
    """How many counts of each column are there, and multiples of what; every array has one entry per column.

    `multiples[i]` are those above zero that `_DIVISORS[i]` divides, `large` and `large_multiples` the same for counts of 20
    and more; `small[v]` are the counts of exactly v (where no base is in sight; 5 and 10 everywhere), `divisor` is the
    largest number that divides all counts above zero, and `below_zero` are those below.
    """

    published: NDArray[np.int64]
    above_zero: NDArray[np.int64]
    multiples: NDArray[np.int64]
    large: NDArray[np.int64]
    large_multiples: NDArray[np.int64]
    small: NDArray[np.int64]
    divisor: NDArray[np.int64]
    below_zero: NDArray[np.int64]

    @classmethod
    def none(cls, columns: int) -> Divisibility:
        """Return what is known before any area was seen."""
        single, many = (columns,), (len(_DIVISORS), columns)
        shapes = (single, single, many, single, many, (_LOW, columns), single, single)
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
        self.divisor[:] = np.gcd(self.divisor, np.gcd.reduce(np.where(above, counts, 0).astype(np.int64), axis=0))
        unrounded = np.flatnonzero(self.divisor == 1)
        some = counts[:, unrounded]
        for value in range(len(self.small)):
            if value in (5, 10):
                self.small[value] += (counts == value).sum(0)
            elif unrounded.size:
                self.small[value, unrounded] += (some == value).sum(0)

    def over(self, columns: Sequence[int]) -> Divisibility:
        """Return all columns of a list as one."""
        at = list(columns)
        pooled = {name: getattr(self, name)[..., at].sum(-1, keepdims=True) for name in self.__slots__}
        return Divisibility(**(pooled | {"divisor": np.gcd.reduce(self.divisor[at], keepdims=True)}))


def _slips(odd: int, above: int) -> bool:
    """Return whether counts that do not fit are so few that they may be mistakes."""
    return odd <= _ODD * above or (odd <= _SLIPS and above >= _MANY)


def _base(counted: Divisibility, at: int) -> int:
    """Return the base of one column: 1 if not rounded, 0 if there are too few counts to tell, -1 if nothing fits."""
    above = int(counted.above_zero[at])
    for place, base in enumerate(_BASES):
        odd = above - int(counted.multiples[place, at])
        if _slips(odd, above):
            # Multiples of 10 are to be told from those of 5 by large counts: small ones may be 0 or 10 for another reason.
            by_chance, telling = (2, int(counted.large_multiples[place, at])) if base == 10 else (base, above - odd)
            if telling and by_chance ** -float(telling) <= _CHANCE:
                return base
            if base != 10:
                return _UNTOLD
    if not above:
        return _UNTOLD
    # Something is not a multiple of any base. If unrounded, multiples come as often as they do by chance.
    large = int(counted.large[at])
    for place, divisor in enumerate(_DIVISORS):
        share = counted.large_multiples[place, at] / large if large else 0.0
        error = (1 / divisor / large) ** 0.5 if large else 0.0
        if large >= _FEW and share > 1.6 / divisor + 4 * error:
            return _MIXED
    return _UNROUNDED


def _without_fives(counted: Divisibility, at: int) -> bool | None:
    """Return whether counts under 10 became 0 or 10; None where there are too few counts of 10 to tell."""
    fives, tens = int(counted.small[5, at]), int(counted.small[10, at])
    if fives + tens < _FEW:
        return False if fives > 1 else None
    if fives <= _STRAY * tens:
        return True
    return False if fives >= 0.2 * tens else None


def detect(
    counted: Divisibility, columns: Sequence[Column], declared_by: Sequence[str]
) -> tuple[list[Mechanism | None], list[MechanismEvidence]]:
    """Return how every column was published, None where it cannot be told, and what that rests on, table by table."""
    bases = [_base(counted, at) for at in range(len(columns))]
    blocks: dict[str, list[int]] = {}
    for at, column in enumerate(columns):
        blocks.setdefault(column.block, []).append(at)
    mechanisms: list[Mechanism | None] = [column.mechanism for column in columns]
    evidence = []
    common = _common(counted, bases, blocks.values(), columns)
    for block, members in blocks.items():
        said: dict[tuple[Mechanism, str], list[int]] = {}
        for at in members:
            declared = columns[at].mechanism
            if declared is not None:
                said.setdefault((declared, declared_by[at]), []).append(at)
        for (declared, by), those in said.items():
            word = {FORMAT: "documented", INFERRED: INFERRED}.get(by, "declared")
            evidence.append(MechanismEvidence(block, tuple(those), declared, f"{word}: {declared.sentence}", by))
        open_ = [at for at in members if columns[at].mechanism is None]
        said_of = _as_said(counted, columns, open_, bases)
        for (how, by), those in said_of.items():
            for at in those:
                mechanisms[at] = how
            why = f"{by}: {how.sentence}" if by != INFERRED else _why(counted.over(those), _UNROUNDED)
            evidence.append(MechanismEvidence(block, tuple(those), how, why, by))
        open_ = [at for at in open_ if not any(at in those for those in said_of.values())]
        if open_:
            evidence += _detect_block(counted, block, open_, bases, common, mechanisms, columns)
    base = _usual_base(mechanisms)
    return mechanisms, [part for entry in evidence for part in _grounded(entry, counted, columns, base)]


def _usual_base(mechanisms: Iterable[Mechanism | None]) -> int:
    """Return the base that most columns are rounded to; 0 where none are."""
    bases = Counter(how.base for how in mechanisms if isinstance(how, Rounding | Sample))
    return max(bases, key=lambda base: bases[base]) if bases else 0


def _grounded(
    evidence: MechanismEvidence, counted: Divisibility, columns: Sequence[Column], base: int
) -> Iterable[MechanismEvidence]:
    """Part what was inferred into what the agency documents as well, and what only the counts say, on a condition."""
    if evidence.basis != INFERRED or evidence.mechanism is None:
        return [evidence]
    documented = tuple(at for at in evidence.columns if evidence.mechanism in columns[at].documented)
    rest = tuple(at for at in evidence.columns if evidence.mechanism not in columns[at].documented)
    parts = [replace(evidence, columns=documented, basis="format")] if documented else []
    if rest:
        names = [columns[at].key for at in rest]
        parts.append(
            replace(evidence, columns=rest, condition=_condition(evidence.mechanism, counted.over(rest), names, base))
        )
    return parts


_LISTED = 3  # columns that a condition names; of more it tells how many there are


def _condition(how: Mechanism, pool: Divisibility, names: Sequence[str], base: int) -> str:
    """Return what has to hold for an inferred mechanism, and how sure that is, as the end of a sentence: "if …"."""
    above = int(pool.above_zero[0])
    if isinstance(how, Rounding | Sample):
        fit = int(pool.multiples[_DIVISORS.index(how.base), 0]) if how.base in _DIVISORS else above
        rivals = [f"base {rival}" for rival in _rivals(how.base, int(pool.divisor[0]), above)]
        listed = f"{', '.join(rivals[:-1])} and {rivals[-1]}" if len(rivals) > 1 else "".join(rivals)
        more = f"; {listed} would fit as well" if rivals else ""
        return f"if counts were rounded to base {how.base}, which {fit:,} of {above:,} counts support{more}"
    listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else "")
    verb = "is" if len(names) == 1 else "are"
    if base and base in _DIVISORS:
        odd = above - int(pool.multiples[_DIVISORS.index(base), 0])
        seen = f"{odd:,} of {above:,} are not multiples of {base}, so those were not rounded to it"
    else:
        seen = f"{above:,} counts above 0 show no rounding"
    return f"if {listed} {verb} exact in every area ({seen}; nobody says so of the others)"


def _rivals(base: int, divisor: int, above: int) -> list[int]:
    """Return the other bases that counts of a greatest common divisor fit: multiples, and divisors unless that is chance."""
    larger = [rival for rival in range(2 * base, min(divisor, 100) + 1, base) if divisor % rival == 0]
    smaller = [rival for rival in _BASES if rival < base and base % rival == 0 and (rival / base) ** above > _CHANCE]
    return [*smaller, *larger]


def _as_said(
    counted: Divisibility, columns: Sequence[Column], members: Sequence[int], bases: Sequence[int]
) -> dict[tuple[Mechanism, str], list[int]]:
    """Return how columns were published of which a note or an option says how rounded counts were: each with who says so.

    That says nothing of exact counts among them. A column whose counts are not multiples of the base, nor of another one, is
    exact, as the counts suggest: unless none fits, for then the two contradict each other, and the check will say so.
    """
    ways: dict[tuple[Mechanism, str], list[int]] = {}
    for at in members:
        if columns[at].basis not in (NOTE, OPTION) or not columns[at].documented:
            continue
        how = columns[at].documented[0]
        step = getattr(how, "base", 0)  # noise, and rounding to digits, leave counts of every kind
        alike = [other for other, column in enumerate(columns) if column.documented == columns[at].documented]
        exact = step > 1 and bases[at] <= 1 and not _fits(counted, at, step)
        if exact and any(counted.above_zero[other] and _fits(counted, other, step) for other in alike):
            ways.setdefault((Exact(), INFERRED), []).append(at)
        else:
            ways.setdefault((how, columns[at].basis), []).append(at)
    return ways


def _common(counted: Divisibility, bases: Sequence[int], blocks: Iterable[Sequence[int]], columns: Sequence[Column]) -> int:
    """Return the base that all rounded columns, or tables of too few counts each, of the release share; 0 if none."""
    rounded = {base for base, column in zip(bases, columns, strict=True) if base > 1 and column.mechanism is None}
    for block in blocks:
        rounded.add(_base(counted.over([at for at in block if bases[at] == _UNTOLD and columns[at].mechanism is None]), 0))
    rounded -= {_UNTOLD, _UNROUNDED, _MIXED}
    return rounded.pop() if len(rounded) == 1 else 0


def _detect_block(
    counted: Divisibility,
    block: str,
    members: list[int],
    bases: list[int],
    common: int,
    mechanisms: list[Mechanism | None],
    columns: Sequence[Column],
) -> list[MechanismEvidence]:
    """Find out how the columns of one table were published; fill in `mechanisms`."""
    usual_bases = {bases[at] for at in members if bases[at] > 1}
    if usual_bases == {5, 10} and all(_fits(counted, at, 10) for at in members if bases[at] == 5):
        usual_bases = {10}  # those of 5 only had too few counts to be told from it
    pooled = _base(counted.over([at for at in members if bases[at] == _UNTOLD]), 0)
    usual = usual_bases.pop() if len(usual_bases) == 1 else pooled if pooled > 1 else common
    untold = counted.over([at for at in members if bases[at] == _UNTOLD])
    exact = sum(int(counted.above_zero[at]) for at in members if bases[at] == _UNROUNDED)
    # A few counts that happen to be multiples of something, among others that are not, are not rounded ones.
    by_chance = not usual and exact and (pooled == _UNROUNDED or exact >= _OTHERS * untold.above_zero[0] < _OTHERS * _ALONE)
    groups: dict[int, list[int]] = {}
    for at in members:
        base = _UNROUNDED if bases[at] == _UNTOLD and by_chance else bases[at]
        if (base == _UNTOLD or (base == 5 and usual == 10)) and usual and _fits(counted, at, usual):
            base = usual
        groups.setdefault(base, []).append(at)
    evidence = []
    for base, those in groups.items():
        larger = _larger_base(counted.over(those), base)
        if larger is not None:
            for at in those:
                mechanisms[at] = Rounding(larger)
            evidence.append(MechanismEvidence(block, tuple(those), Rounding(larger), _why(counted.over(those), larger)))
            continue
        if base == 5:
            evidence += _fives(counted, block, those, mechanisms, columns)
            continue
        kinds: dict[int, Mechanism] = {_UNROUNDED: Exact(), 10: Rounding(10), 3: Rounding(3)}
        kind = kinds.get(base)
        for at in those:
            mechanisms[at] = kind
        evidence.append(MechanismEvidence(block, tuple(those), kind, _why(counted.over(those), base)))
    return evidence


def _larger_base(pool: Divisibility, base: int) -> int | None:
    """Return a multiple of the base that divides every count, if that is no chance: 15 looks like 5."""
    divisor, above = int(pool.divisor[0]), int(pool.above_zero[0])
    if base < 2 or divisor <= base or divisor % base:
        return None
    return divisor if (base / divisor) ** above <= _CHANCE else None


def _fits(counted: Divisibility, at: int, base: int) -> bool:
    """Return whether the counts of a column are multiples of a base, but for slips."""
    if base not in _DIVISORS:
        return int(counted.divisor[at]) % base == 0
    above = int(counted.above_zero[at])
    return _slips(above - int(counted.multiples[_DIVISORS.index(base), at]), above)


def _fives(
    counted: Divisibility, block: str, those: list[int], mechanisms: list[Mechanism | None], columns: Sequence[Column]
) -> list[MechanismEvidence]:
    """Tell base 5 from base 5 with 0 or 10 below 10, for a table as a whole: a column may have few small counts.

    Columns outside tables have nothing in common; of these each is judged by itself, and by the rest only if it has too
    few small counts. So are the columns of a table whose small counts, taken together, fit neither.
    """
    pooled = _without_fives(counted.over(those), 0)
    groups: dict[tuple[bool | None, bool], list[int]] = {}
    if block and pooled is not None:
        groups[pooled, False] = those
    else:
        verdicts = {at: _without_fives(counted, at) for at in those}
        agreed = {verdict for verdict in verdicts.values() if verdict is not None}
        usual = agreed.pop() if len(agreed) == 1 else pooled if pooled is not None or agreed else of_sample(block)
        for at in those:
            known = usual if verdicts[at] is None else verdicts[at]
            # Where nothing tells, the wider windows are safe for a proof if the agency documents them: they hold all that
            # the narrower ones do, unless there is a 5. Elsewhere claims are conditional, and a decision needs the
            # narrower reading, by which readers learn more.
            narrow = known is None and (bool(counted.small[5, at]) or Sample(5) not in columns[at].documented)
            groups.setdefault((known, narrow), []).append(at)
    evidence = []
    for (known, some), members in groups.items():
        kind: Mechanism = Rounding(5) if known is False or some else Sample(5)
        for at in members:
            mechanisms[at] = kind
        why = _why(counted.over(members), 5) + _why_small(counted.over(members), known, some, block)
        evidence.append(MechanismEvidence(block, tuple(members), kind, why))
    return evidence


def _why_small(pool: Divisibility, known: bool | None, some: bool, block: str) -> str:
    """Return what is known of the small counts of a table, in words."""
    fives, tens = int(pool.small[5, 0]), int(pool.small[10, 0])
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
