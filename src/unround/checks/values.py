"""The published counts themselves: multiples of the base, and of nothing larger."""

from __future__ import annotations

from unround.checks.estimate import PublishedTally
from unround.checks.families import CONTRADICTS, DEPARTS, FITS, LEAST_SUMS, UNTESTED, Family
from unround.checks.sums import ALL_TABLES, LEAST_STEPS, NO_TABLE
from unround.errors import InputError
from unround.mechanisms import Mechanism
from unround.release import Release
from unround.structure import Structure

COUNTS = "published counts"
UNEVEN = 0.15
"""Half of all counts are multiples of twice the base; the share may differ by this much, as sizes of counts are not even."""


def value_families(release: Release, structure: Structure, published: PublishedTally) -> list[Family]:
    """Return one family per mechanism, and one for each table in which something is wrong."""
    groups: dict[tuple[Mechanism, str], list[int]] = {}
    for column, how in enumerate(structure.mechanisms):
        if how is not None and published.steps[column] > 1:
            groups.setdefault((how, release.columns[column].block), []).append(column)
    found = []
    for how in dict.fromkeys(how for how, _ in groups):
        tables = {block: those for (other, block), those in groups.items() if other == how}
        every = [column for those in tables.values() for column in those]
        found.append(
            _family(f"{COUNTS} ({how.name}): {ALL_TABLES}", how, every, release, published, structure.basis_of(every))
        )
        if len(tables) > 1:
            alone = [
                _family(
                    f"{COUNTS} ({how.name}): {block or NO_TABLE}", how, those, release, published, structure.basis_of(those)
                )
                for block, those in tables.items()
            ]
            found += [one for one in alone if one.verdict in (CONTRADICTS, DEPARTS)]
    return found


def _family(
    name: str, how: Mechanism, columns: list[int], release: Release, published: PublishedTally, basis: tuple[str, ...]
) -> Family:
    step = int(published.steps[columns[0]])
    above, odd, large, twice = (
        int(of[columns].sum()) for of in (published.above, published.odd, published.large, published.twice)
    )
    share = twice / large if large else 0.5
    coarse = large >= LEAST_SUMS and abs(share - 0.5) > UNEVEN
    otherwise = UNTESTED if large < LEAST_SUMS else DEPARTS if coarse else FITS
    said = []
    if odd:
        said.append(f"{odd:,} of {above:,} counts above 0 are not multiples of {step}.")
    if coarse:
        seems = f": the base appears to be {2 * step}" if share > 0.99 else ""
        said.append(
            f"{share:.1%} of the counts of {LEAST_STEPS * step} or more are multiples of {2 * step}, not half{seems}."
        )
    elif otherwise == UNTESTED:
        said.append(f"Only {large:,} counts are {LEAST_STEPS * step} or more.")
    elif not odd:
        said.append(f"All {above:,} counts above 0 are multiples of {step}, and about half of them of {2 * step}.")
    return Family(
        family=name,
        sums=large,
        observed={0: twice, step: large - twice},
        expected={0: 0.5, step: 0.5},
        p_value=None,
        tail_ratio=None,
        distance=abs(share - 0.5) if large else None,
        impossible=odd,
        otherwise=otherwise,
        verdict=CONTRADICTS if odd else otherwise,
        note=" ".join(said),
        clash=_clash(how, columns, release, published) if odd else "",
        columns=frozenset(columns) if coarse else frozenset(),
        basis=basis,
    )


def _clash(how: Mechanism, columns: list[int], release: Release, published: PublishedTally) -> str:
    """Return one count that its mechanism cannot publish."""
    column = next(c for c in columns if published.example[c, 0] >= 0)
    area, value = published.example[column].tolist()
    where = f"row {area + 1}, {release.columns[column].key}"
    try:
        how.window(value)
    except InputError as problem:
        return f"{where}: {str(problem).split('.')[0]}."
    return f"{where}: {value} is not a multiple of {int(published.steps[column])}."
