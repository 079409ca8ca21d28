"""START HERE: check_release() compares a release with the mechanisms declared for it, or inferred; verdicts in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unround.bounds.certificates import contradiction
from unround.bounds.clash import smallest_clash
from unround.checks.estimate import COUNTS, EstimatedMechanism, PublishedTally, estimated, value_families
from unround.checks.families import (
    ALL_TABLES,
    CONTRADICTS,
    DEPARTS,
    EXACT_TWICE,
    FITS,
    KEYED,
    LEAST_SUMS,
    PARTLY,
    UNDER_EXACT,
    UNKNOWN,
    UNTESTED,
    Family,
    FamilyHistogram,
    SizedHistogram,
    TableRounding,
    TestedSum,
    families_of,
    more_than_slips,
    sums_to_test,
    worst,
)
from unround.checks.keys import FamilyRounding, RandomNumbers, RepeatTally, random_numbers
from unround.checks.parents import ParentSums, nested_families
from unround.checks.residuals import SIZES, ExpectedShares, Laws, ResidualCounter, compared, expected_shares
from unround.mechanisms import Exact, Mechanism, Unpublished
from unround.output import scratch_folder
from unround.proofs import contradiction_in_words
from unround.release import Column, Release
from unround.shown import Tabular
from unround.structure import JudgedFigure, Structure
from unround.structure.evidence import INFERRED
from unround.system import Cell, Sum, System
from unround.tables.spool import Spool, Stage, survey

if TYPE_CHECKING:
    import polars as pl


def consequence(
    comparison: FamilyHistogram,
    sums: Sequence[TestedSum],
    mechanisms: Sequence[Mechanism | None],
    basis: Sequence[str],
    impossible: tuple[int, int],
    otherwise: str,
    rounding: TableRounding | None,
) -> str:
    """Return the note of a family of sums; `impossible` is in how many sums no true counts fit, and of how many."""
    said = []
    if impossible[0]:
        said.append(f"No true counts fit {impossible[0]:,} of {impossible[1]:,} sums; these are left out of the comparison.")
    least = min(tested.least for tested in sums)
    if otherwise == FITS:
        said.append(_fitting(comparison, basis))
    elif otherwise == DEPARTS:
        said += [_departing(comparison), _meaning(comparison, sums, mechanisms, rounding)]
    else:
        said.append(f"Only {comparison.sums:,} sums have a total of {least} or more; a comparison needs {LEAST_SUMS}.")
    return " ".join(said)


def _fitting(comparison: FamilyHistogram, basis: Sequence[str]) -> str:
    close = f"The shares differ by {comparison.distance:.1%} in total (p = {comparison.p_value:.2g})"
    if comparison.p_value < 1e-3:
        return f"{close}: more than chance, but so little that the expectation itself may be as inaccurate."
    # What nobody declared was inferred from the same counts: they can fit it, but do not confirm a declaration.
    return f"{close}, as expected under the {'inferred' if INFERRED in basis else 'declared'} mechanism."


def _departing(comparison: FamilyHistogram) -> str:
    said = f"The shares differ by {comparison.distance:.1%} in total (p = {comparison.p_value:.1g})"
    ratio = comparison.tail_ratio
    if ratio is None:
        wide, should = (_spread(of) for of in (comparison.observed, comparison.expected))
        return f"{said}; the standard deviation of the residuals is {wide:.2f} and should be {should:.2f}."
    return f"{said}; the largest residuals occur {ratio:.2f} times as often as expected ({comparison.tail:,} sums)."


def _spread(folded: np.ndarray) -> float:
    return float((folded @ np.arange(len(folded)) ** 2 / max(folded.sum(), 1e-300)) ** 0.5)


def _meaning(
    comparison: FamilyHistogram,
    sums: Sequence[TestedSum],
    mechanisms: Sequence[Mechanism | None],
    rounding: TableRounding | None,
) -> str:
    """Say how a departure affects the probabilities of an audit."""
    if not any(tested.used for tested in sums):
        return "An audit does not use these sums."
    ratio = comparison.tail_ratio
    if all(isinstance(mechanisms[tested.total], Exact) for tested in sums) and ratio is not None and ratio > 1:
        wrong = 1 - 1 / ratio
        return f"If the total is not always exact, up to {wrong:.0%} of the claims based on the largest residuals are wrong."
    if rounding is not None and rounding.cutoff is not None:
        return cutoff_in_words(rounding)
    if rounding is not None and rounding.model == KEYED:
        return f"{keys_in_words(rounding)} Proofs are not affected, and the probabilities of an audit account for it."
    if rounding is None:
        return "Proofs are not affected; what it means for probabilities is said table by table."
    doubt = "Proofs are not affected; probabilities would assume independent rounding: an audit claims nothing likely here."
    if rounding.model == PARTLY:
        return f"{rounding.why[0].upper()}{rounding.why[1:]}. {doubt}"
    if rounding.model == UNKNOWN:
        return f"What the random numbers do is not known: {rounding.why}. {doubt}"
    return doubt


def keys_in_words(rounding: TableRounding) -> str:
    """Say what keys do in a table."""
    said = "Keys explain it: the random number of a total is the sum of its parts'"
    if rounding.constant is not None and rounding.error is not None:
        said += f" and a constant of {rounding.constant:.3f} ± {rounding.error:.3f}, around a circle of length 1"
    fit = "" if rounding.p_value is None else f" (p = {rounding.p_value:.2g})"
    kind = {True: " What was rounded were whole numbers.", False: " What was rounded were weighted estimates."}
    return f"{said}{fit}.{kind.get(rounding.whole, '') if rounding.whole is not None else ''}"


def cutoff_in_words(rounding: TableRounding) -> str:
    """Say what becomes of small counts in a table."""
    return (
        f"Parts fall short of totals as if counts under {rounding.cutoff} became 0 (± {rounding.cutoff_error:.1f}), and "
        "the others were then rounded. Proofs are not affected, and estimates account for it; an audit claims nothing "
        "likely here."
    )


NOT_INDEPENDENT = "rounding departs from independence"
"""What is said of columns whose residuals do not fit independent rounding."""

CLASH_EFFORT = 20_000
"""How long to search for a smaller set of cells that clash, in cells and sums examined."""

AT_ONCE = 4096
"""Areas that are read from the spool at a time."""


@dataclass(frozen=True)
class Check(Tabular):
    """What was found about a release.

    Parameters
    ----------
    source, product
        The file, and what to cite.
    areas : int
        How many there are.
    families : tuple of Family
        Every family that could be tested.
    untested : tuple of Family
        Those with too few sums of large enough counts to be judged.
    estimates : EstimatedMechanism
        What the mechanism appears to be.
    numbers : RandomNumbers
        What the random numbers do, table by table.
    basis : tuple of str
        Who declared the mechanisms of the rounded counts: "format", "description"; or "inferred".
    figures : tuple of JudgedFigure
        What the rates, means and medians beside the counts tell.
    """

    source: str
    product: str | None
    areas: int
    families: tuple[Family, ...]
    untested: tuple[Family, ...]
    estimates: EstimatedMechanism
    numbers: RandomNumbers
    basis: tuple[str, ...] = ()
    figures: tuple[JudgedFigure, ...] = ()

    @property
    def verdict(self) -> str:
        """The worst verdict; "untested" if no sum could be tested: multiples of the base alone prove nothing."""
        worst_of = worst([family.verdict for family in self.families])
        sums = any(not family.family.startswith(COUNTS) for family in self.families)
        return worst_of if sums or worst_of != FITS else UNTESTED

    @property
    def doubts(self) -> dict[int, str]:
        """For columns whose probabilities rest on an assumption that does not hold, which one that is."""
        doubts_of: dict[int, list[str]] = {}
        for family in self.families:
            if family.otherwise == DEPARTS or family.inexact:
                what = "an exact count is not exact" if family.inexact else NOT_INDEPENDENT
                for column in family.columns:
                    if what not in doubts_of.setdefault(column, []):
                        doubts_of[column].append(what)
        return {column: "; ".join(said) for column, said in doubts_of.items()}

    @property
    def refuted(self) -> frozenset[int]:
        """The columns of tables whose mechanism the data refute, or depart from in a way that nothing explains.

        Where single tables are named, all together say nothing.
        """
        refuted = [family for family in self.families if family.refuted or family.unexplained]
        single = [family for family in refuted if ALL_TABLES not in family.family]
        if not any(family.family.startswith(COUNTS) for family in single):
            single += [family for family in refuted if family.family.startswith(COUNTS)]
        return frozenset(column for family in single for column in family.columns)

    @property
    def ordered(self) -> list[Family]:
        """The families: the worst first, then those of all tables, then the largest."""
        rank = {CONTRADICTS: 0, DEPARTS: 1, FITS: 2}
        return sorted(self.families, key=lambda of: (rank[of.verdict], ALL_TABLES not in of.family, -of.sums))

    def to_polars(self) -> pl.DataFrame:
        """Return the families of sums that were tested, the worst first."""
        import polars as pl

        kinds = {"family": pl.String, "sums": pl.Int64, "verdict": pl.String, "p_value": pl.Float64, "note": pl.String}
        rows = [{name: getattr(family, name) for name in kinds} for family in self.ordered]
        return pl.DataFrame(rows, schema=kinds)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "families": [part.to_json() for part in self.families],
            "verdict": self.verdict,
            "basis": list(self.basis),
            "untested": [{"family": part.family, "sums": part.sums, "note": part.note} for part in self.untested],
            "mechanism": self.estimates.to_json(),
            "tables": {table: part.to_json() for table, part in self.numbers.tables.items()},
            "repeated": [part.to_json() for part in self.numbers.repeats],
            "figures": [part.to_json() for part in self.figures],
            "areas": self.areas,
            "source": self.source,
            "product": self.product,
        }


def check_release(release: Release, progress: Stage = lambda *_: None) -> Check:
    """Test on the data themselves whether a release was published as declared, or as inferred.

    Examples
    --------
    >>> check_release(unround.read("census.csv")).verdict  # doctest: +SKIP
    'fits'
    """
    with scratch_folder("check") as work:
        spool, structure = survey(release, work, progress, insist=False)
        return check_spool(release, spool, structure, progress)


def check_spool(
    release: Release,
    spool: Spool,
    structure: Structure,
    progress: Stage = lambda *_: None,
) -> Check:
    """Do the same with a release that was read before."""
    sums = sums_to_test(release, structure)
    members = families_of(sums)
    adjusted = [column.adjusted for column in release.columns]
    gathered = ResidualCounter(sums, structure.mechanisms, adjusted, members, spool.rows)
    nested = ParentSums.of(release, spool, structure)
    published = PublishedTally(release, structure)
    repeated = RepeatTally.of(release, structure, spool.rows)
    for start in range(0, spool.rows, AT_ONCE):
        progress("Checking", start, spool.rows)
        counts = spool.counts(start, min(start + AT_ONCE, spool.rows))
        gathered.add(counts)
        published.add(counts)
        repeated.add(start, counts)
        nested.add(start, counts)
    progress("Checking", spool.rows, spool.rows)
    laws = Laws(gathered.row_mechanisms, gathered.tallies)
    expected = expected_shares(gathered, structure.mechanisms, laws)
    numbers = random_numbers(release, structure, gathered, laws, expected, members, repeated)
    families = [
        *value_families(release, structure, published),
        *_sum_families(release, spool, structure, gathered, members, expected, numbers),
        *nested_families(nested, release, spool),
    ]
    families = [replace(family, basis=family.basis or structure.basis_of(family.columns)) for family in families]
    return Check(
        release.source,
        release.product,
        spool.rows,
        tuple(family for family in families if family.verdict != UNTESTED),
        tuple(family for family in families if family.verdict == UNTESTED),
        estimated(structure, published),
        numbers,
        structure.basis_of(c for c, how in enumerate(structure.mechanisms) if how is not None),
        structure.figures,
    )


def _sum_families(
    release: Release,
    spool: Spool,
    structure: Structure,
    gathered: ResidualCounter,
    members: dict[str, list[int]],
    expected: Sequence[ExpectedShares],
    numbers: RandomNumbers,
) -> list[Family]:
    """Compare every family of sums with what its mechanisms imply."""
    folded = gathered.folded
    families = []
    for place, (name, those) in enumerate(members.items()):
        comparison = compared(folded, expected, those, gathered.alike(place))
        sized = [compared(gathered.sized[:, k], expected, those, 1.0) for k in range(len(SIZES))]
        rounding = numbers.of_family(release, gathered, those)
        judged = _judged(name, comparison, release, spool, structure, gathered, those, rounding)
        least = min(gathered.sums[s].least for s in those)
        by_size = tuple(_sized(k, least, histogram) for k, histogram in enumerate(sized) if histogram.sums)
        families.append(replace(judged, by_size=by_size))
    return families


def _sized(k: int, least: int, histogram: FamilyHistogram) -> SizedHistogram:
    shares = {int(far): float(histogram.observed[far] / histogram.sums) for far in np.flatnonzero(histogram.observed)}
    return SizedHistogram(SIZES[k] * least, histogram.sums, shares, histogram.tail_ratio)


def _judged(
    name: str,
    comparison: FamilyHistogram,
    release: Release,
    spool: Spool,
    structure: Structure,
    gathered: ResidualCounter,
    those: Sequence[int],
    rounding: FamilyRounding,
) -> Family:
    sums = [gathered.sums[s] for s in those]
    impossible = int(gathered.impossible[list(those)].sum())
    enough = comparison.sums >= LEAST_SUMS
    leans = rounding.rounding is not None and rounding.rounding.cutoff is not None and len(sums[0].parts) > 1
    otherwise = (DEPARTS if comparison.departs or leans else FITS) if enough else UNTESTED
    complete = int(gathered.complete[list(those)].sum())
    exact = sums[0].kind in (UNDER_EXACT, EXACT_TWICE)
    many = more_than_slips(impossible, complete)
    # A few impossible sums are counted beside the verdict on all others; an exact count that is not exact is one.
    verdict = CONTRADICTS if many or (impossible and (exact or not enough)) else otherwise
    clash = _clash(release, spool, structure, gathered, those) if impossible else ""
    basis = structure.basis_of({c for tested in sums for c in tested.members})
    words = consequence(comparison, sums, structure.mechanisms, basis, (impossible, complete), otherwise, rounding.rounding)
    if exact and impossible:
        declared = frozenset(c for c, how in enumerate(structure.mechanisms) if isinstance(how, Exact))
        words = f"{_not_exact(release, declared, gathered, those)} {words}"
    observed = {int(far): int(comparison.observed[far]) for far in np.flatnonzero(comparison.observed)}
    shares = comparison.expected / max(comparison.expected.sum(), 1e-300)
    likely = {int(far): float(shares[far]) for far in np.flatnonzero((shares > 1e-9) | (comparison.observed > 0))}
    return Family(
        family=name,
        sums=comparison.sums,
        observed=observed,
        expected=likely,
        p_value=comparison.p_value if enough else None,
        tail_ratio=comparison.tail_ratio,
        distance=comparison.distance if enough else None,
        impossible=impossible,
        otherwise=otherwise,
        verdict=verdict,
        note=words,
        clash=clash,
        columns=frozenset(c for tested in sums if tested.used for c in tested.members),
        basis=basis,
        inexact=exact and (otherwise == DEPARTS or many),
        refuted=many,
        **rounding._asdict(),
    )


def _not_exact(release: Release, exact: frozenset[int], gathered: ResidualCounter, those: Sequence[int]) -> str:
    """Say how many exact counts cannot be exact, and how many of these may have been adjusted by the agency."""
    totals = sorted({c for s in those for c in gathered.sums[s].members if c in exact})
    names = ", ".join(release.columns[c].label or release.columns[c].key for c in totals[:3])
    number, beyond = (int(of[list(those)].sum()) for of in (gathered.impossible, gathered.beyond))
    most = max(release.columns[c].adjusted for c in totals)
    said = f"{names} cannot be exact in {number:,} sums"
    if most and beyond < number:
        said += f"; in {number - beyond:,} of them it may have been adjusted by up to {most}, according to the agency"
    return f"{said}."


def _clash(release: Release, spool: Spool, structure: Structure, gathered: ResidualCounter, those: Sequence[int]) -> str:
    """Return an example of an impossible sum, the one with the fewest cells."""
    of: list[tuple[int, TestedSum]] = sorted(((s, gathered.sums[s]) for s in those), key=lambda pair: len(pair[1].parts))
    s, tested = next((s, tested) for s, tested in of if gathered.examples.get(s))
    example = gathered.examples[s][0]
    columns = [release.columns[c] for c in tested.members]
    mechanisms = [structure.mechanisms[c] or Exact() for c in tested.members]
    area = ", ".join(str(spool.areas[axis][example.area]) for axis in release.areas)
    return f"{area}: {_clash_in_words(columns, mechanisms, example.published)}"


def _clash_in_words(columns: Sequence[Column], mechanisms: Sequence[Mechanism], published: Sequence[int]) -> str:
    """Say why a sum cannot hold, with no more cells than it takes; the total is first, then the parts."""
    names = [column.key for column in columns]
    cells = [Cell(name, value, how) for name, value, how in zip(names, published, mechanisms, strict=True)]
    system = System(cells, [Sum(names[0], tuple(names[1:]))])
    clash = smallest_clash(system, CLASH_EFFORT)
    kept = set(clash.cells)
    small = System([cell if cell.name in kept else Cell(cell.name, None, Unpublished()) for cell in cells], clash.sums)
    steps = contradiction(small)
    return contradiction_in_words(small, steps) if steps else f"{'; '.join(map(str, clash.sums))} cannot hold."
