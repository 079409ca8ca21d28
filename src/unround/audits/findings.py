"""Findings: one claim about one cell, or all claims of a block as the rows of a table.

Which findings matter most: the one order of findings, in files, on pages and in the terminal.

What is certain comes first: proved, conditional, likely. Among claims of a kind those come first that could harm somebody:
counts of one or two people, then of three to nine, then larger ones; zeros, which are many and name nobody, come last. Then
the surer claim comes first, by the lowest probability that any prior gives, in hundredths of a percent; then the one with
fewer people behind it, who are easier to recognise. What is equal in all of this stays in the order of the release.

`findings.parquet` and `findings.csv` are written in this order, so that a finding's place in them is its rank: nobody who
reads them has to sort.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unround.audits.certificates import InferredBlock
from unround.audits.claims import KINDS, REASONS, ClaimKind, Needs, RestsOn, due_to_sums, due_to_sums_of
from unround.audits.keys import BY_KEYS
from unround.audits.model import Model
from unround.checks.run import NOT_INDEPENDENT
from unround.engines.linked_weights import ALONE, METHODS
from unround.evidence.block import NO_UPPER_BOUND, Ints
from unround.mechanisms.base import BoolArray
from unround.release import ABSENT, why_absent

if TYPE_CHECKING:
    import polars as pl

INDEPENDENCE = REASONS[RestsOn.INDEPENDENT_ROUNDING]

ADD_UP = "areas that add up"
"""The route of a claim that other areas make likely."""

WEIGHED = "all sums around the count, weighed together"
"""The route of any other likely claim: `explain` shows what nearer and farther sums contribute to one of them."""

MOST_ROUTE = 4
"""Sums that a route names; of longer ones it gives the number."""

GIVEN = "given"
"""What a count is called that was published exactly; it is open as far as claims go."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one cell.

    - `kind`: "proved", "conditional" or "likely" where something is claimed; else "given" or "open".
    - `published`: What was published; `why_absent` says why nothing was.
    - `low`, `high`: The possible range; `high` is None where nothing bounds it.
    - `value`, `probability`: The only possible or likeliest count, and how likely it is, on average over the set of
      priors; None where nothing says.
    - `probability_low`, `probability_high`: The least and the greatest probability that any prior of the set gives to it.
      The greatest is not a bound: it is the highest found. None for counts that were weighed under the best prior alone.
    - `due_to_sums`: The share of the doubt, given the published value alone, that everything else known of the area
      removes; None for counts far from the threshold.
    - `mean`: The expected count.
    - `depth`: How many sums a proof takes, one after the other; None for likely claims, which rest on all of them.
    """

    kind: str
    published: int | None
    why_absent: str | None
    low: int
    high: int | None
    value: int | None
    probability_low: float | None
    probability: float | None
    probability_high: float | None
    due_to_sums: float | None
    mean: float | None
    depth: int | None


def finding(inferred: InferredBlock, area: int, cell: int) -> Finding:
    """Return what is known of one cell of a block.

    A page of an area asks for hundreds: single numbers are taken out of the arrays as Python's own, which is ten times as
    fast as reckoning with numpy's.
    """
    at, claims, weighed = (area, cell), inferred.claims, inferred.probabilities
    posterior = weighed.posterior
    published, code = inferred.counts.item(at), ClaimKind(claims.kinds.item(at))
    given = code == ClaimKind.OPEN and inferred.assumed.given.item(at)
    certain = given or code in (ClaimKind.PROVED, ClaimKind.CONDITIONAL)
    probability = 1.0 if certain else posterior.probability.item(at)
    value = published if given else claims.values.item(at)
    low, high = weighed.within.low.item(at), weighed.within.high.item(at)
    least, greatest = weighed.lowest.item(at), weighed.highest.item(at)
    if certain:
        low = high = value
        least = greatest = 1.0
    elif weighed.cut_off.item(at):  # judged without sums, under one prior
        least = greatest = math.nan
    known = probability > 0
    due = 1.0 if certain else due_to_sums_of(probability, claims.alone.item(at))
    depth = claims.depth.item(at)
    return Finding(
        GIVEN if given else code.label,
        published if published > ABSENT else None,
        why_absent(published) if published <= ABSENT else None,
        low,
        None if high >= NO_UPPER_BOUND else high,
        value if known else None,
        least if known and not math.isnan(least) else None,
        probability if known else None,
        greatest if known and not math.isnan(greatest) else None,
        due if known and not math.isnan(due) else None,
        float(value) if certain else posterior.mean.item(at) if known else None,
        depth if depth > 0 else None,
    )


# -- all of a block ---------------------------------------------------------------------------------------------------


def plain_zeros(inferred: InferredBlock) -> BoolArray:
    """Mark likely zeros that were published as 0: nine claims in ten, about nobody. They are listed on request only."""
    claims = inferred.claims
    return np.asarray(claims.of_kind(ClaimKind.LIKELY) & (claims.values == 0) & (inferred.counts == 0))


def findings_frame(
    model: Model,
    inferred: InferredBlock,
    areas: pl.DataFrame,
    axes: tuple[str, ...],
    names: Labels,
    *,
    fitted: bool,
    unlisted: BoolArray,
) -> pl.DataFrame:
    """Return the claims of a block, one row each; `fitted` says that probabilities rest on a fitted prior."""
    import polars as pl

    claims, weighed = inferred.claims, inferred.probabilities
    rows, cells = np.nonzero((claims.kinds != ClaimKind.OPEN) & ~unlisted)
    kinds, value, depth = claims.kinds[rows, cells], claims.values[rows, cells], claims.depth[rows, cells]
    published, probability = inferred.counts[rows, cells], weighed.posterior.probability[rows, cells]
    certain = kinds != ClaimKind.LIKELY
    low = np.where(certain, value, weighed.within.low[rows, cells])
    high = np.where(certain, value, weighed.within.high[rows, cells])
    where = {name: areas[name][rows] for name in axes if name in areas.columns}
    if "region_name" in areas.columns:
        where["region_name"] = areas["region_name"][rows]
    methods = pl.Series([method.name for method in METHODS], dtype=pl.String)
    return pl.DataFrame(
        {
            **where,
            **{name: column.gather(cells) for name, column in names.columns.items()},
            "published": pl.Series(published).set(pl.Series(published <= ABSENT), None),
            "low": low,
            "high": pl.Series(high).set(pl.Series(high >= NO_UPPER_BOUND), None),
            "value": value,
            "probability_low": np.where(certain, 1.0, weighed.lowest[rows, cells]),
            "probability": np.where(certain, 1.0, probability),
            "probability_high": np.where(certain, 1.0, weighed.highest[rows, cells]),
            "due_to_sums": np.where(certain, 1.0, due_to_sums(probability, claims.alone[rows, cells])),
            "kind": pl.Series(KINDS).gather(kinds),
            "route": _routes(model, inferred, rows, cells),
            "depth": pl.Series(depth).set(pl.Series(depth == 0), None),
            "assumptions": names.doubted(
                _assumptions(model, inferred, rows, cells, fitted),
                cells,
                kinds == ClaimKind.PROVED,
                ~np.isin(weighed.methods[rows], list(ALONE)),
            ),
            "method": methods.gather(weighed.methods[rows].astype(np.int64)),
            **({"observations": observations(model, inferred)[rows, cells]} if model.repeated else {}),
        }
    )


def observations(model: Model, inferred: InferredBlock) -> Ints:
    """Return how often each count was published: once, or again in other files."""
    there = inferred.counts > ABSENT
    number = there.astype(np.int32)
    for cell, (first, e) in model.repeated.items():
        number[:, first] += there[:, cell] & inferred.active[:, e]
    return number


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """What findings call a cell: one column per axis, and its label; and the doubts that the check of the release raised."""

    columns: dict[str, Any]
    doubts: Any
    unheeded: Any
    """The doubts where probabilities do not account for keys: in linked areas."""
    keyed: Any

    @classmethod
    def of(cls, model: Model, axes: tuple[str, ...], doubts: Mapping[int, str]) -> Labels:
        """Take the names from the model's columns, and the doubts by position among the release's."""
        import polars as pl

        named: dict[str, Any] = {}
        for i, axis in enumerate(axes):
            named[axis] = pl.Series(axis, [column.codes[i] for column in model.columns], dtype=pl.String)
            if axis == "characteristic_id":
                label = [column.label for column in model.columns]
                named["characteristic"] = pl.Series("characteristic", label, dtype=pl.String)
        assumptions = [doubts.get(c, "") for c in model.positions.tolist()]
        # What probabilities account for is no doubt: it is what they rest on.
        left = [said.replace(BY_KEYS, "").strip("; ") for said in assumptions]
        unheeded = [said.replace(BY_KEYS, NOT_INDEPENDENT) for said in assumptions]
        wanting, more = (
            pl.Series([f" (the check: {said})" if said else "" for said in those], dtype=pl.String)
            for those in (left, unheeded)
        )
        return cls(named, wanting, more, pl.Series([BY_KEYS in said for said in assumptions], dtype=pl.Boolean))

    def doubted(self, assumptions: pl.Series, cells: Any, proved: Any, linked: Any) -> pl.Series:
        """Mark assumptions that the check found wanting; proofs rest on none, and linked areas do not account for keys."""
        import polars as pl

        table = pl.DataFrame(
            {
                "said": assumptions,
                "heeded": self.keyed.gather(cells) & ~pl.Series(linked),
                "linked": pl.Series(linked),
                "proved": pl.Series(proved),
                "doubt": self.doubts.gather(cells),
                "unheeded": self.unheeded.gather(cells),
            }
        )
        said = pl.col("said")
        by_keys = pl.when("heeded").then(said.str.replace(INDEPENDENCE, BY_KEYS, literal=True)).otherwise(said)
        doubt = pl.when((said == "") | pl.col("proved")).then(pl.lit("")).when("linked").then("unheeded").otherwise("doubt")
        return table.select((by_keys + doubt).alias("assumptions"))["assumptions"]


def _routes(model: Model, inferred: InferredBlock, rows: Any, cells: Any) -> pl.Series:
    """Name the sums that led to each claim: those of the proof, or all that the cell belongs to."""
    import polars as pl

    claims = inferred.claims
    usual, listed = _usual_routes(model)
    routes = pl.Series(listed, dtype=pl.String).gather(cells)
    proved = {(proof.area, proof.cell): proof for proof in claims.certified}
    # Only proofs, and areas in which some sum is not used, need a look of their own.
    likely = claims.kinds[rows, cells] == ClaimKind.LIKELY
    places, texts = np.flatnonzero(~likely | ~np.asarray(inferred.active.all(axis=1))[rows]), []
    for area, cell in zip(rows[places].tolist(), cells[places].tolist(), strict=True):
        certificate = proved.get((area, cell))
        sums = certificate.sums if certificate else [e for e in usual[cell] if inferred.active[area, e]]
        texts.append(
            _listed(model, sums, certificate.areas if certificate else (), certificate.figures if certificate else ())
        )
    routes = routes.scatter(places, texts) if texts else routes
    if inferred.probabilities.linked is None:
        return routes
    by_family = likely & (claims.needs[rows, cells] == Needs.FAMILY)
    return (pl.Series(["", ADD_UP + "; "]).gather(by_family.astype(np.int64)) + routes).str.strip_chars_end("; ")


@lru_cache(maxsize=4)
def _usual_routes(model: Model) -> tuple[list[list[int]], list[str]]:
    """Return for every cell the sums that carry probabilities of it, and how a route names them: once for all blocks."""
    unused = frozenset(model.compiled.left_out)
    usual = [[e for e in sums if e not in unused] for sums in model.touching]
    return usual, [_listed(model, sums) for sums in usual]


def _listed(model: Model, sums: Sequence[int], areas: Sequence[str] = (), figures: Sequence[int] = ()) -> str:
    """Name the areas and the figures that an argument needs, if any, and its sums."""
    named = [model.sum_in_short(e) for e in sums[:MOST_ROUTE]]
    if len(sums) > MOST_ROUTE:
        named.append(f"and {len(sums) - MOST_ROUTE} more")
    if areas:
        more = " + …" if len(areas) > MOST_ROUTE + 1 else ""
        named.insert(0, f"areas {areas[0]} = {' + '.join(areas[1 : MOST_ROUTE + 1])}{more}")
    named = [*(model.figure_in_short(f) for f in figures[:MOST_ROUTE]), *named]
    return "; ".join(named)


@cache
def _assumed() -> list[str]:
    """Return what claims rest on, in words, by the code of a `RestsOn`."""
    return ["; ".join(RestsOn(code).texts) for code in range(1 << len(RestsOn))]


def _assumptions(model: Model, inferred: InferredBlock, rows: Any, cells: Any, fitted: bool) -> pl.Series:
    """Say what each claim rests on beyond what the agency documents."""
    import polars as pl

    likely = inferred.claims.kinds[rows, cells] == ClaimKind.LIKELY
    assumed = np.asarray(inferred.documented.may_differ_by.any(axis=1) & ~inferred.assumed.may_differ_by.any(axis=1))
    population = likely & model.on_adjusted[cells] & assumed[rows]
    disturbed = likely & np.asarray(inferred.clashing.any(axis=1))[rows]
    always = RestsOn.INDEPENDENT_ROUNDING | (RestsOn.FITTED_PRIOR if fitted else RestsOn(0))
    codes = likely * int(always)
    codes += population * int(RestsOn.EXACT_POPULATION) + disturbed * int(RestsOn.CORRECT_COUNTS)
    codes += (likely & inferred.by_figures[rows, cells]) * int(RestsOn.FIGURES)
    proved = {(certificate.area, certificate.cell): certificate.because for certificate in inferred.claims.certified}
    certain = np.flatnonzero(~likely)
    said = ["; ".join(proved[int(rows[place]), int(cells[place])]) for place in certain.tolist()]
    listed = pl.Series(_assumed(), dtype=pl.String).gather(codes)
    return listed.scatter(certain, said) if said else listed


SIZES = ((0, "0"), (1, "1-2"), (3, "3-9"), (10, "10+"))
"""Classes of counts by what their disclosure would mean: nobody, one or two people, a few, many."""

SMALL_FIRST = ("1-2", "3-9", "10+", "0")
"""The same, by how much it matters."""

ZEROS = SMALL_FIRST.index("0")
"""The place of zeros among them."""

_FINE = 10_000
"""Probabilities that differ by less than one in so many count as equal."""

_MOST_PEOPLE = (1 << 20) - 1
"""Counts above this are equally large."""


def size_class(values: ArrayLike) -> NDArray[np.int64]:
    """Return the place of each count's class in `SMALL_FIRST`.

    Examples
    --------
    >>> size_class([0, 1, 2, 3, 9, 10, 5000]).tolist()
    [3, 0, 0, 1, 1, 2, 2]
    """
    least = [start for start, _ in SIZES]
    places = np.array([SMALL_FIRST.index(name) for _, name in SIZES], dtype=np.int64)
    return np.asarray(places[np.searchsorted(least, np.asarray(values), side="right") - 1])


RANK = "rank"
"""The column of sort keys, in files on the way to the sorted one."""


def ranked(findings: pl.DataFrame) -> pl.DataFrame:
    """Sort findings by how much they matter, and keep their sort keys as `RANK`: whole numbers below 2⁴⁰."""
    import polars as pl

    value = pl.col("value").cast(pl.Int64)
    kind = pl.col("kind").replace_strict(KINDS, range(len(KINDS)), return_dtype=pl.Int64)
    size = pl.when(value == 0).then(ZEROS).when(value <= 2).then(0).when(value <= 9).then(1).otherwise(2).cast(pl.Int64)
    doubt = (_FINE * (1 - pl.col("probability_low"))).round(mode="half_to_even").cast(pl.Int64)
    people = pl.min_horizontal(value, pl.lit(_MOST_PEOPLE, dtype=pl.Int64))
    key = ((kind * len(SMALL_FIRST) + size) * (_FINE + 1) + doubt) * (_MOST_PEOPLE + 1) + people
    return findings.with_columns(key.alias(RANK)).sort(RANK, maintain_order=True)
