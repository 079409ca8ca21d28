"""One block of areas: bounds, probabilities, and what can be claimed from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unround.audits.across import bounds_across, likely_across, needs_others
from unround.audits.contradictions import (
    ASSUMPTION,
    CELL,
    UNRESOLVED,
    Active,
    Contradiction,
    put,
    rows_of,
    settle,
)
from unround.audits.dependence import Dependence
from unround.audits.inferred import (
    CONDITIONAL,
    LIKELY,
    OPEN,
    OTHERS_NEEDED,
    PRIOR_NEEDED,
    PROVED,
    Concluded,
    Inferred,
    Kinds,
    Rules,
)
from unround.audits.model import Model
from unround.audits.nested import NestedAreas
from unround.batch.compiled_sums import compile_sums
from unround.batch.evidence import Drawn
from unround.batch.posterior import flood, posteriors
from unround.batch.tighten import tighten
from unround.batch.types import Posterior, Tight, Windows
from unround.batch.windows import WindowTable
from unround.prior import Prior
from unround.release import ABSENT, NOT_APPLICABLE, Counts

WIDE = 45
"""Cells with more possible counts may be too wide for their sums, in areas where some sum is: pairs are from 50 on."""


class Auditor:
    """Audits block after block under one model.

    Parameters
    ----------
    model : Model
        What all areas share.
    prior : Prior
        What true counts are like.
    rules : Rules
        What the user decided.
    dependence : Dependence, optional
        In which tables total and parts share random numbers; in none unless given. Probabilities heed it, bounds need not.
    instead : Prior, optional
        The prior to work out as well what would follow if none were shared.
    """

    def __init__(
        self,
        model: Model,
        prior: Prior,
        rules: Rules,
        dependence: Dependence | None = None,
        instead: Prior | None = None,
    ) -> None:
        self.model = model = dependence.paired(model) if dependence is not None else model
        self.sharing = dependence.sharing(model) if dependence is not None else None
        self._instead = instead if self.sharing is not None else None
        self.prior = prior
        self.rules = rules
        self._windows = WindowTable(model.mechanisms)
        self._no_sums = compile_sums(len(model.columns), (), frozenset())

    def infer(
        self, counts: Counts, adjustable: NDArray[np.bool_], nested: NestedAreas | None = None, keep: int | None = None
    ) -> Inferred:
        """Infer what can be inferred about some areas.

        Parameters
        ----------
        counts : array
            Areas × cells, as published.
        adjustable : array
            In which areas the agency may have adjusted exact counts.
        nested : NestedAreas, optional
            How the areas lie within each other, where they do.
        keep : int, optional
            The area whose whole distributions are wanted, where it is linked: see `Linked.kept`.
        """
        model = self.model
        windows, documented_slack, active, found = self.documented(counts, adjustable)
        documented_windows = windows
        documented, clashes = settle(model, counts, windows, documented_slack, active)
        found += clashes
        slack, assumed = documented_slack, documented
        if self.rules.exact_population and documented_slack.any():
            slack = np.zeros_like(documented_slack)
            windows, _ = self._windows.of(counts, slack)
            assumed = tighten(model.compiled, windows, active, proofs_only=True)
            refuted = np.flatnonzero(~assumed.feasible)
            if refuted.size:
                found += self._refutations(counts, refuted, documented_slack, documented)
                slack[refuted] = documented_slack[refuted]
                windows, _ = self._windows.of(counts, slack)
                put(assumed, documented, refuted, refuted)
        reach = assumed if windows.certain.all() else tighten(model.compiled, windows, active)
        across = None
        if nested is not None:
            found += nested.contradictions()
        if nested is not None and nested.linked:
            across = bounds_across(model, nested, (documented_windows, documented), (windows, assumed), active)
            documented, assumed = across.documented.tight, across.assumed.tight
            found += across.contradictions
        clashing = np.zeros(counts.shape, dtype=bool)
        for one in found:
            if one.kind != ASSUMPTION:
                clashing[one.area, list(one.cells)] = True

        # Linked areas know nothing of shared random numbers: where there are any, other areas give bounds alone.
        bounds_alone = across is not None and self.sharing is not None
        if bounds_alone and windows.certain.all():
            reach = assumed

        def conclude(prior: Prior, drawn: Drawn | None) -> Concluded:
            own = posterior = posteriors(model.compiled, windows, reach, prior.table, active, drawn=drawn)
            linked = None
            if across is not None and not bounds_alone:
                linked = likely_across(model, across, windows, reach, prior.table, active, keep)
                posterior = linked.posterior
            noisy = np.asarray(posterior.cut > 0) & (not windows.certain.all())
            loose = self._loose(counts, reach, posterior, active) | noisy[:, None]
            loose[slack.any(axis=1) & self.rules.exact_population] = True  # links took these counts for exact
            self._judge_singly(loose, windows, reach, posterior)
            kinds, value = self._claims(counts, documented, assumed, posterior, clashing, slack, documented_slack, active)
            fitted = self.prior.own is not None
            if fitted:
                kinds[loose & (kinds == LIKELY)] = OPEN  # no sum had its say
            others = (kinds == LIKELY) & (needs_others(own, posterior, self.rules.threshold) & (linked is not None))
            depth = self._depths(windows, documented, assumed, reach, np.where(others, OPEN, kinds), value, active, drawn)
            depth[others] = OTHERS_NEEDED
            if across is not None:
                for moved, kind in ((across.assumed.moved, CONDITIONAL), (across.documented.moved, PROVED)):
                    depth[moved & (kinds == kind)] = OTHERS_NEEDED
            alone = (depth == 0) & (kinds != OPEN)
            kinds[alone] = OPEN
            return Concluded(posterior, kinds, value, depth, alone, loose & fitted, noisy & fitted, linked)

        end = conclude(self.prior, self.drawn(counts))
        found += [
            Contradiction(int(area), UNRESOLVED, (), (), "No combination of possible counts adds up in all sums together.")
            for area in np.flatnonzero(~end.posterior.possible)
        ]
        return Inferred(
            counts=counts,
            documented_windows=documented_windows,
            documented=documented,
            documented_slack=documented_slack,
            windows=windows,
            assumed=assumed,
            slack=slack,
            reach=reach if end.linked is None else end.linked.tight,
            posterior=end.posterior,
            kinds=end.kinds,
            value=end.value,
            depth=end.depth,
            alone=end.alone,
            active=active,
            contradictions=found,
            clashing=clashing,
            singly=end.singly,
            unweighed=end.unweighed,
            without=conclude(self._instead, None) if self._instead else None,
            across=across,
            linked=end.linked,
        )

    def drawn(self, counts: Counts) -> Drawn | None:
        """Return how random numbers are shared in some areas, as the engine takes it; None where none are."""
        return None if self.sharing is None else Drawn(self.sharing, counts)

    def _loose(self, counts: Counts, reach: Tight, posterior: Posterior, active: Active) -> NDArray[np.bool_]:
        """Find the cells that are cut off from a sum that they stand in, as others of their area are not.

        The fitted prior tells how totals split into parts: of a cell that is cut off from its total, or from its parts, it
        says nothing that is true. A sum is cut off where it does not apply or contradicts, or where too much is possible.
        """
        loose = np.zeros(counts.shape, dtype=bool)
        unused = frozenset(self.model.compiled.unused)
        wide = reach.high.astype(np.int64) - reach.low > WIDE
        concerned = (posterior.cut > 0) | ~np.asarray(active.all(axis=1))
        rows = np.flatnonzero(concerned)
        if not rows.size:
            return loose
        for e in range(len(self.model.equations)):
            if e not in unused:
                members = np.array(self.model.members(e))
                off = ~active[rows, e] | ((posterior.cut[rows] > 0) & wide[np.ix_(rows, members)].any(axis=1))
                loose[np.ix_(rows[off], members)] = True
        return loose

    def _judge_singly(self, loose: NDArray[np.bool_], windows: Windows, reach: Tight, posterior: Posterior) -> None:
        """Give cells that are cut off their own distribution, within their bounds; the posterior is changed in place."""
        rows = np.flatnonzero(loose.any(axis=1))
        if self.prior.own is None or not rows.size:
            return  # under a flat prior, fewer sums are right too
        bounds = tighten(self._no_sums, rows_of(windows, rows))
        for name in ("low", "high", "feasible"):
            getattr(bounds, name)[...] = getattr(reach, name)[rows]
        alone = posteriors(self._no_sums, rows_of(windows, rows), bounds, self.prior.own)
        here = loose[rows]
        for name in ("mode", "probability", "mean", "deviation"):
            whole, single = getattr(posterior, name)[rows], getattr(alone, name)
            whole[here] = single[here]
            getattr(posterior, name)[rows] = whole
        posterior.possible[rows[here.all(axis=1)]] = True

    def documented(
        self, counts: Counts, adjustable: NDArray[np.bool_]
    ) -> tuple[Windows, NDArray[np.int32], Active, list[Contradiction]]:
        """Return what the agency's own words leave possible: windows, slack of exact counts, applicable sums, misfits."""
        slack = np.where(adjustable[:, None], self.model.adjusted[None, :], 0).astype(np.int32)
        windows, misfit = self._windows.of(counts, slack)
        return windows, slack, self._applicable(counts), self._misfits(counts, misfit)

    def _applicable(self, counts: Counts) -> Active:
        """Switch off the sums of counts that do not exist in an area."""
        active = np.ones((len(counts), len(self.model.equations)), dtype=bool)
        missing = counts == NOT_APPLICABLE
        for cell in np.flatnonzero(missing.any(axis=0)).tolist():
            for e in self.model.touching[cell]:
                active[:, e] &= ~missing[:, cell]
        return active

    def _misfits(self, counts: Counts, misfit: NDArray[np.bool_]) -> list[Contradiction]:
        model = self.model
        return [
            Contradiction(
                int(area),
                CELL,
                (),
                (int(cell),),
                f"{model.columns[cell].key} was published as {counts[area, cell]}, which cannot come from "
                f"{model.mechanisms[cell].name}. It is treated as not published.",
            )
            for area, cell in np.argwhere(misfit)
        ]

    def _refutations(
        self, counts: Counts, refuted: NDArray[np.int64], slack: NDArray[np.int32], documented: Tight
    ) -> list[Contradiction]:
        """Say for areas that only fit if an exact count was adjusted what that count must have been."""
        model, found = self.model, []
        for area in refuted.tolist():
            cells = np.flatnonzero(slack[area])
            said = [
                f"{model.columns[c].key} was published as {counts[area, c]}, but with its sums must be from "
                f"{documented.low[area, c]} to {documented.high[area, c]}"
                for c in cells
                if counts[area, c] > ABSENT and not documented.low[area, c] <= counts[area, c] <= documented.high[area, c]
            ]
            why = "; ".join(said) or "taken as exact, the counts that may have been adjusted leave no solution"
            sums = tuple(sorted({e for c in cells for e in model.touching[c]}))
            text = f"{why[:1].upper()}{why[1:]}: it was adjusted, and is taken as within {slack[area].max()} here."
            found.append(Contradiction(area, ASSUMPTION, sums, tuple(cells.tolist()), text))
        return found

    def _claims(
        self,
        counts: Counts,
        documented: Tight,
        assumed: Tight,
        posterior: Posterior,
        clashing: NDArray[np.bool_],
        slack: NDArray[np.int32],
        documented_slack: NDArray[np.int32],
        active: Active,
    ) -> tuple[Kinds, NDArray[np.int32]]:
        """Decide for every cell what can be claimed, and which count."""
        kinds = np.zeros(counts.shape, dtype=np.int8)
        value = posterior.mode.copy()
        kinds[posterior.probability >= self.rules.threshold] = LIKELY
        given = self.model.exact[None, :] & (counts > ABSENT)
        for tight, kind, loose in ((assumed, CONDITIONAL, slack), (documented, PROVED, documented_slack)):
            pinned = (tight.low == tight.high) & ~(given & (loose == 0))
            kinds[pinned] = kind
            value[pinned] = tight.low[pinned]
        kinds[given & (slack == 0) & (kinds != PROVED)] = OPEN
        kinds[clashing] = OPEN
        for cell, (twin, e) in self.model.exact_twin.items():
            # The table itself shows this count as it is, only under another name.
            kinds[active[:, e] & (counts[:, twin] > ABSENT), cell] = OPEN
        for cell, (_, e) in self.model.repeated.items():
            kinds[active[:, e], cell] = OPEN  # the same count is claimed where it is shown first
        kinds[~self._inhabited(np.maximum(counts, documented.low))] = OPEN
        return kinds, value

    def _inhabited(self, counts: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Say which cells are connected with a count that is above 0; that all others are 0 as well is no news."""
        order = np.argsort(self.model.piece, kind="stable")
        _, starts, which = np.unique(self.model.piece[order], return_index=True, return_inverse=True)
        largest = np.maximum.reduceat(counts[:, order], starts, axis=1)
        inhabited = np.empty(counts.shape, dtype=np.bool_)
        inhabited[:, order] = (largest > 0)[:, which]
        return inhabited

    def _depths(
        self,
        windows: Windows,
        documented: Tight,
        assumed: Tight,
        reach: Tight,
        kinds: Kinds,
        value: NDArray[np.int32],
        active: Active,
        drawn: Drawn | None = None,
    ) -> NDArray[np.int32]:
        """Return for every claim how many sums follow one upon the other in its argument.

        0 says that none is needed: the published value, and the column's own distribution, make the count likely. And
        `PRIOR_NEEDED` says that under a flat prior the sums would not: then no number of them explains the claim.
        """
        depth = np.zeros(kinds.shape, dtype=np.int32)
        for tight, kind in ((documented, PROVED), (assumed, CONDITIONAL)):
            here = kinds == kind
            depth[here] = np.maximum(tight.depth_low, tight.depth_high)[here]
        wanted = kinds == LIKELY
        if self.prior.own is not None:
            wanted &= ~self._likely_alone(windows, value, wanted)
            depth[wanted] = PRIOR_NEEDED
            here = replace(reach, feasible=reach.feasible & wanted.any(axis=1))
            flat = posteriors(self.model.compiled, windows, here, None, active, drawn=drawn, wanted=wanted)
            wanted &= (flat.mode == value) & (flat.probability >= self.rules.threshold)
        if wanted.any():
            threshold = self.rules.threshold
            found = flood(self.model.compiled, windows, reach, None, active, wanted, value, threshold, drawn)
            depth[wanted] = found[wanted]
        return depth

    def _likely_alone(self, windows: Windows, value: NDArray[np.int32], wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Say where the published value alone, with what the column is like elsewhere, makes the claimed count likely."""
        bounds = tighten(self._no_sums, windows)
        own = posteriors(self._no_sums, windows, bounds, self.prior.own, wanted=wanted)
        return np.asarray((own.mode == value) & (own.probability >= self.rules.threshold))
