"""Explain one cell of an audit: what was published, which sums it belongs to, the argument, and its distribution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unround.audits import Finding, InferredBlock, Model
from unround.audits.bounds import Contradiction
from unround.audits.certificates import Certificate
from unround.audits.claims import ClaimKind, HeldBecause
from unround.audits.findings import GIVEN, finding
from unround.audits.selfcheck import FAILED, table_named
from unround.bounds.tighten import tighten
from unround.engines.forest import posteriors
from unround.evidence.block import MOST_VALUES
from unround.evidence.cells import EvidenceBlock
from unround.explanation.family import FamilyEvidence, cell_names, family_evidence
from unround.job import AuditFolder
from unround.job.folder import find_area, find_cell
from unround.mechanisms.base import FloatArray
from unround.proofs import proof_in_words
from unround.release import ABSENT, Counts
from unround.shown import Plain, Tabular

if TYPE_CHECKING:
    import polars as pl

Distribution = tuple[tuple[int, float], ...]
"""The possible counts of a cell, and how likely each is."""

FARTHEST = 6
"""How many sums away from the cell the growth of its probability is followed."""


@dataclass(frozen=True, slots=True)
class SumShown(Plain):
    """A sum that the cell belongs to: its names, what was published, and by how much that fails to add up."""

    sum: str
    total: int | None
    parts: tuple[int | None, ...]
    residual: int | None
    used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Finding, Plain, Tabular):
    """Everything that an audit knows about one cell: the finding, and the argument for it.

    - `area`, `cell`: Where it is: its area, and its place on the other axes, with labels.
    - `again`: What other files show of the same count.
    - `same_as`: The key of the column that shows the same count first, where this one shows it again: claims are made there.
    - `priors`, `threshold`: The priors that were tried, and the probability that all of them must give to a likely count.
    - `known_alone`: Whether it is likely, or certain, from its published value alone, so that nothing is claimed.
    - `held_back`: The kind of claim that is held back: "likely" where the prior failed its self-check, "conditional" where
      the data contradict the mechanism; `withheld` says why.
    - `distribution`: The possible counts and how likely each is; empty where that is not known.
    - `sums`: The sums it belongs to.
    - `growth`: The probability of the likeliest count under a flat prior: from the cell alone, then with the sums next to
      it, and so on; None where nothing says. A fitted prior describes the whole area; parts of it mean nothing.
    - `alone`: Its probability from the published value and what the column is like elsewhere, without any sum; None under a
      flat prior, or where nothing says.
    - `without_sums`: Whether the fitted prior was applied without any sum, because the cell is cut off from one of its own.
    - `others`: The other areas of the family that contribute; `own`: the probability if nothing were known of these.
    - `proof`, `argument`: The certificate, and the proof in words, with the names that people know.
    - `because`: What a conditional claim is conditional on.
    - `contradictions`: Published numbers of the same area that cannot all be right.
    - `assumptions`: What the claim rests on.
    """

    ASIDE = ("area", "cell", "again", "others", "own")

    area: dict[str, Any]
    cell: dict[str, Any]
    key: str
    mechanism: str
    again: tuple[int, ...]
    same_as: str | None
    priors: tuple[str, ...]
    threshold: float
    known_alone: bool
    held_back: str | None
    withheld: str | None
    distribution: Distribution
    sums: tuple[SumShown, ...]
    growth: tuple[float | None, ...]
    alone: float | None
    without_sums: bool
    others: FamilyEvidence | None
    own: float | None
    proof: dict[str, Any] | None
    argument: str | None
    because: tuple[str, ...]
    contradictions: tuple[str, ...]
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Explanation of {self.key}: {self.kind}{'' if self.value is None else f', {self.value}'}>"

    def to_polars(self) -> pl.DataFrame:
        """Return the possible counts, and how likely each is; empty where that is not known."""
        import polars as pl

        return pl.DataFrame(list(self.distribution), schema={"count": pl.Int64, "probability": pl.Float64}, orient="row")

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        others = None if self.others is None else self.others.to_json() | {"without_them": self.own}
        again = {"published_again": list(self.again), "other_areas": others}
        return {**self.area, **self.cell, **Plain.to_json(self), **again}


def explain(folder: AuditFolder | Path | str, area: str, characteristic: str, sex: str | None = None) -> Explanation:
    """Explain one cell of an audit."""
    if not isinstance(folder, AuditFolder):
        folder = AuditFolder.open(Path(folder))
    return explain_at(folder, find_area(folder, area), find_cell(folder, characteristic, sex))


def explain_at(folder: AuditFolder, row: int, cell: int) -> Explanation:
    """Explain one cell of an audit by the row of its area, and its own place among the cells."""
    return explain_in(infer_area(folder, row), cell)


# -- one area ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InferredArea:
    """One area, inferred anew from what the audit kept, as the audit did.

    - `folder`: The audit.
    - `rows`: The row of the area in it; then those of the areas that it is linked with, which were inferred together.
    - `inferred`: What was inferred about them; certificates are there for the first, and distributions when asked for.
    """

    folder: AuditFolder
    rows: tuple[int, ...]
    inferred: InferredBlock

    @cached_property
    def by_itself(self) -> InferredArea:
        """The same if nothing were known of any other area."""
        return self if self.inferred.nested is None else _infer(self.folder, np.array(self.rows[:1]), linked=False)

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The certificates of everything in it that is proved, or would be under an assumption."""
        return self.inferred.claims.certified

    def finding(self, cell: int) -> Finding:
        """Return what is known of one cell; its mean is that under the best prior alone."""
        return finding(self.inferred, 0, cell)

    def weighed(self, cell: int, distribution: Distribution) -> Finding:
        """Return the same with the mean of its distribution, over the whole set of priors."""
        known = self.finding(cell)
        if known.mean is None or not distribution or known.low == known.high:
            return known
        return replace(known, mean=sum(value * chance for value, chance in distribution))  # that of the distribution shown

    def distributions(self) -> dict[int, Distribution]:
        """Return how likely each count of every cell is, by the engine that its finding is from; nothing where nothing says.

        They are worked out anew every time, which takes longer than all the rest: ask once.
        """
        return {cell: _listed(*likely) for cell, likely in self.inferred.probabilities.distributions([0])[0].items()}

    def distribution(self, cell: int) -> Distribution:
        """Return that of one cell; empty where nothing says."""
        kept = self.inferred.probabilities.distributions([0])[0].get(cell)
        return () if kept is None else _listed(*kept)

    def probability_of(self, cell: int, value: int) -> float | None:
        """Return how likely one count of a cell is; None where nothing says."""
        distribution = self.distribution(cell)
        return dict(distribution).get(value, 0.0) if distribution else None


def _listed(low: int, chances: FloatArray) -> Distribution:
    return tuple((low + k, p) for k, p in enumerate(chances.tolist()) if p > 0)


def named_area(folder: AuditFolder, row: int) -> dict[str, Any]:
    """Return what is known of where an area is: its code, its name and its level."""
    here = folder.areas.row(row, named=True)
    names = (*folder.area_axes, "region_name", "level")
    return {name: here[name] for name in names if here.get(name) not in (None, "")}


def infer_area(folder: AuditFolder, row: int) -> InferredArea:
    """Infer everything about one area again, as the audit did: some milliseconds for some hundred counts."""
    # What areas say about each other depends on all of them.
    return _infer(folder, np.array([row]) if folder.nested is None else folder.nested.family(row))


def _infer(folder: AuditFolder, rows: np.ndarray[Any, np.dtype[np.int64]], *, linked: bool = True) -> InferredArea:
    nested = folder.nested.reordered(rows) if folder.nested is not None and linked else None
    nested = nested if nested is not None and nested.any else None
    inferred = folder.auditor.audit(
        folder.counts_of(rows),
        folder.adjustable[rows],
        nested,
        folder.areas[folder.area_axes[0]].gather(rows).to_list() if nested is not None else (),
        only=0,
        figures=folder.figures_of(rows),
    )
    return InferredArea(folder, tuple(rows.tolist()), inferred)


# -- one cell ---------------------------------------------------------------------------------------------------------


def explain_in(area: InferredArea, cell: int) -> Explanation:
    """Explain one cell of an area; `find_cell` finds its place."""
    folder, inferred, distribution = area.folder, area.inferred, area.distribution(cell)
    known = area.weighed(cell, distribution)
    model, counts, column = folder.model, inferred.counts[0], folder.model.columns[cell]
    certificate = next((certificate for certificate in area.certificates if certificate.cell == cell), None)
    others = family_evidence(folder, inferred, area.rows, cell)
    uncertain = known.value is not None and known.kind != GIVEN and certificate is None
    claimed = known.value if known.value is not None and known.kind != GIVEN else None
    return Explanation(
        **asdict(known),
        area=named_area(folder, area.rows[0]),
        cell=dict(zip(folder.axes, column.codes, strict=True)) | {"label": column.label, "block": column.block},
        key=column.key,
        mechanism=folder.summary["mechanisms"][model.mechanisms[cell].name],
        again=tuple(
            int(counts[c])
            for c, (first, e) in model.repeated.items()
            if first == cell and inferred.active[0, e] and counts[c] > ABSENT
        ),
        same_as=_same_as(model, inferred, cell),
        priors=folder.prior.variants,
        threshold=folder.summary["threshold"],
        known_alone=bool(inferred.claims.without_sums[0, cell]),
        held_back=_held_back(inferred, cell),
        withheld=_withheld(folder, inferred, cell),
        distribution=distribution,
        sums=tuple(_shown(model, counts, e, bool(inferred.active[0, e])) for e in model.touching[cell]),
        growth=_growth(area.by_itself, cell, claimed) if uncertain and claimed is not None else (),
        alone=None if claimed is None else _alone(area, cell, claimed),
        without_sums=bool(inferred.probabilities.cut_off[0, cell]),
        others=others,
        own=None if others is None or claimed is None else area.by_itself.probability_of(cell, claimed),
        proof=certificate.proof.to_json() if certificate else None,
        argument=(
            proof_in_words(certificate.system, certificate.proof, cell_names(folder, certificate, area.rows))
            if certificate
            else None
        ),
        because=certificate.because if certificate else (),
        contradictions=tuple(
            clash.text for clash in inferred.contradictions if clash.area == 0 and _concerns(model, clash, cell)
        ),
        assumptions=tuple(_assumptions(area, cell, known.kind, others)),
    )


def _held_back(inferred: InferredBlock, cell: int) -> str | None:
    """Return the kind of claim that is held back."""
    kind = ClaimKind(int(inferred.claims.held_back[0, cell]))
    return None if kind == ClaimKind.OPEN else kind.label


SUSPECT = "the data of this area are suspect: its counts add up so badly that rounding does not explain it"
REFUTED = "the published figures of this table contradict the mechanism"
ODD = "the share of men in this area is far from the usual one: what is likely elsewhere need not be so here"
TIED = "the same count appears in several tables whose sums cannot all be used at once"
"""Why a claim is held back, where the prior is not to blame."""


def _withheld(folder: AuditFolder, inferred: InferredBlock, cell: int) -> str | None:
    """Return why a claim about a cell is held back, or why likely ones of its table are; None where they are not."""
    because = HeldBecause(int(inferred.claims.held_because[0, cell]))
    other = {HeldBecause.SUSPECT: SUSPECT, HeldBecause.MECHANISM: REFUTED, HeldBecause.TIED: TIED, HeldBecause.ODD: ODD}
    if because in other:
        return other[because]
    if cell not in folder.prior.withheld:
        return None
    model, tables = folder.model, folder.summary["selfcheck"]["tables"]
    name = table_named(model, np.flatnonzero(model.piece == model.piece[cell]).tolist())
    return next((str(table["why"]) for table in tables if table["table"] == name and table["verdict"] == FAILED), "")


def _same_as(model: Model, inferred: InferredBlock, cell: int) -> str | None:
    """Return the key of the column that shows the same count first, in another file."""
    first, e = model.repeated.get(cell, (cell, 0))
    return model.columns[first].key if first != cell and inferred.active[0, e] else None


def _concerns(model: Model, clash: Contradiction, cell: int) -> bool:
    """Whether a contradiction is about counts that this cell is connected with."""
    members = {*clash.cells, *(c for e in clash.sums for c in model.members(e))}
    return not members or any(model.piece[c] == model.piece[cell] for c in members)


def _shown(model: Model, counts: Counts, e: int, used: bool) -> SumShown:
    total, parts = model.equations[e]
    numbers = [int(counts[c]) if counts[c] > ABSENT else None for c in (total, *parts)]
    there = [number for number in numbers if number is not None]
    residual = there[0] - sum(there[1:]) if len(there) == len(numbers) else None
    return SumShown(model.sum_in_words(e), numbers[0], tuple(numbers[1:]), residual, used)


def _alone(area: InferredArea, cell: int, value: int) -> float | None:
    """Return how likely a count is from its published value and the column's own distribution, without sums."""
    model, prior = area.folder.model, area.folder.prior
    windows = area.inferred.assumed.windows.rows(np.array([0]))
    if prior.is_flat or windows.start[0, cell] < 0:
        return None
    asked = np.full((1, len(model.columns)), value, dtype=np.int32)
    tight = tighten(model.no_sums, windows)
    posterior = posteriors(EvidenceBlock(model.no_sums, windows, tight, prior.weights_alone(tight.low, tight.high)), asked)
    assert posterior.asked is not None  # it was asked for
    return float(posterior.asked[0, cell]) if posterior.probability[0, cell] > 0 else None


def _growth(area: InferredArea, cell: int, value: int) -> tuple[float | None, ...]:
    """Work out the probability of a count with sums from nearer and farther, under a flat prior: one ring per area."""
    inferred, auditor = area.inferred, area.folder.auditor
    model = auditor.model
    rings = list(_rings(model, inferred, cell))
    rows = np.zeros(len(rings), dtype=np.int64)
    active = np.zeros((len(rings), len(model.equations)), dtype=np.bool_)
    for k, ring in enumerate(rings):
        active[k, list(ring)] = True
    windows = inferred.assumed.windows.rows(rows)
    bounds = tighten(model.compiled, windows, active)
    # With all sums it is what the audit does.
    active[-1] = inferred.active[0]
    for name in ("low", "high", "feasible"):
        getattr(bounds, name)[-1] = getattr(inferred.probabilities.within, name)[0]
    asked = np.full((len(rings), len(model.columns)), value, dtype=np.int32)
    wanted = np.zeros(asked.shape, dtype=np.bool_)
    wanted[:, cell] = True
    keyed = auditor.keyed_evidence(windows, np.repeat(inferred.counts[:1], len(rings), axis=0), active)
    posterior = posteriors(EvidenceBlock(model.compiled, windows, bounds, None, active, keyed), asked, wanted)
    assert posterior.asked is not None  # it was asked for
    known = (posterior.probability[:, cell] > 0).tolist()
    return tuple(p if there else None for p, there in zip(posterior.asked[:, cell].tolist(), known, strict=True))


def _rings(model: Model, inferred: InferredBlock, cell: int) -> Iterator[frozenset[int]]:
    """Yield the sums that carry probabilities up to 0, 1, 2 … sums away from a cell, and all that are connected with it."""
    width = inferred.probabilities.within.high[0].astype(np.int64) - inferred.probabilities.within.low[0]
    usable = {
        e
        for e in set(range(len(model.equations))).difference(model.compiled.left_out)
        if inferred.active[0, e] and max(width[list(model.members(e))]) < MOST_VALUES
    }
    sums, cells, edge, distance = set[int](), {cell}, {cell}, 0
    yield frozenset()
    while near := {e for c in edge if c == cell or not model.exact[c] for e in model.touching[c]} & usable - sums:
        sums |= near
        edge = {c for e in near for c in model.members(e)} - cells
        cells |= edge
        distance += 1
        if distance <= FARTHEST:
            yield frozenset(sums)
    if distance > FARTHEST:
        yield frozenset(sums)


def _assumptions(area: InferredArea, cell: int, kind: str, others: FamilyEvidence | None) -> Iterator[str]:
    """Say what the claim rests on, one sentence each."""
    folder, inferred = area.folder, area.inferred
    model = folder.model
    yield "The sums hold: the parts of each total are complete and do not overlap."
    if others is not None:
        yield "So do sums of areas: the areas within a parent are complete and do not overlap."
    assumed = inferred.documented.may_differ_by[0].any() and not inferred.assumed.may_differ_by[0].any()
    if kind != "proved" and model.on_adjusted[cell] and assumed:
        yield "The population is exact, although the agency may have adjusted it by up to 5 here."
    if kind in ("conditional", "likely") and inferred.by_figures[0, cell]:
        yield "Figures (rates, means, medians) were computed from unrounded counts and rounded to the nearest step."
    if kind not in ("proved", "conditional"):
        yield folder.summary["mechanisms"][model.mechanisms[cell].name]
        error = inferred.probabilities.posterior.error
        if error is not None and error[0, cell] > 0:
            yield (
                "Probabilities in this multi-way table are estimates by Markov chains over whole tables, with a "
                f"standard error of {100 * error[0, cell]:.1f} points."
            )
        yield f"The prior is {folder.summary['prior_in_words']}."
        keyed = folder.keys.of_table(model.columns[cell].block)
        if keyed is not None and others is None:  # linked areas do not account for keys
            yield keyed.sentence
