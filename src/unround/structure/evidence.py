"""What was found about the structure of a release: sums, repeats, mechanisms, and the evidence for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from unround.figures import Figure, FigureGrid
from unround.mechanisms import CellKey, Exact, Mechanism
from unround.release import Column, Ground

Equation = tuple[int, tuple[int, ...]]  # A total and its parts, as positions of columns
FILES = "files"  # who proposes that a count of one file is that of another
FOUND = "data"  # the origin of a sum that nobody proposed: it was found in the counts
LABELS = "labels"  # the origin of a sum that the labels of a table suggest which nobody described


@dataclass(frozen=True, slots=True)
class JudgedSum:
    """A proposed sum, and the verdict of the counts on it.

    - `cause`: Of a rejection: "unknown" or "absent" counts, "impossible" residuals, "mean", "spread", "exactly",
      "everybody" (it does not hold for men and women together), or "decided" (by the user); else "".
    """

    total: int  # as in `Proposal`
    parts: tuple[int, ...]
    origin: str
    areas: int  # how many areas publish all of its counts; only these can be judged
    impossible: int  # in how many of them no true counts could give the published ones
    mean: float  # of the residuals, total − parts, where they are possible (everywhere, if many are not)
    spread: float
    expected: float  # the spread that the mechanisms imply
    kept: bool  # whether it is used
    why: str  # the verdict in one sentence, with its numbers, for people
    exactly: bool = False  # whether it adds up everywhere although its counts were rounded
    unjudged: bool = False  # Whether its counts are too small or too few to say anything for or against it
    cause: str = ""
    residuals: Mapping[int, int] = field(default_factory=dict, repr=False)  # how many areas have each residual
    against: tuple[int, ...] = ()  # for a total that was not published, the other parts that make it up
    ground: Ground = Ground.INFERRED  # whether somebody says that it holds
    condition: str = ""  # of a sum that nobody says holds: the sentence that a claim by it has to name, "if …"; else ""

    @property
    def is_documented(self) -> bool:
        """Whether somebody says that it holds: the agency, by the documentation of its tables, or the user."""
        return self.ground != Ground.INFERRED

    @property
    def equation(self) -> Equation:
        """The sum itself."""
        return self.total, self.parts


@dataclass(frozen=True, slots=True)
class Repeat:
    """Columns that show the same count.

    `alike` says that their published numbers are the same, so that all but the first add no information; if not, the
    count was rounded anew for each of them, and every one is evidence.
    """

    columns: tuple[int, ...]
    alike: bool
    why: str


FORMAT, NOTE, OPTION, INFERRED = "format", "note", "option", "inferred"
"""What a mechanism is known by: the documentation of a known format, a note in the file, an option; or only the counts."""


@dataclass(frozen=True, slots=True)
class MechanismEvidence:
    """How the counts of some columns of one table were published.

    `mechanism` is None where that is not known. `basis` says who declared it ("format": the documentation of the file's
    format; "note": one in the file; "description"; "option"), or that it was "inferred"; `why` gives the
    reasons. `suggested` is a mechanism that fits, where that is no more than a guess which the user should confirm by
    declaring it: noise, mostly. `condition`, of what was inferred, is the sentence that a claim by it has to name: "if …".
    """

    block: str
    columns: tuple[int, ...]
    mechanism: Mechanism | None
    why: str
    basis: str = INFERRED
    suggested: Mechanism | None = None
    condition: str = ""

    @property
    def ground(self) -> Ground:
        """Whether the agency documents it, the user declares it, or it was inferred."""
        if self.basis == INFERRED:
            return Ground.INFERRED
        return Ground.DOCUMENTED if self.basis in (FORMAT, NOTE) else Ground.DECLARED


BOUNDED, UNBOUNDED, UNTOLD, NO_LAW = (
    "bounded noise",
    "unbounded noise",
    "bounded or unbounded noise",
    "noise of no usual law",
)


@dataclass(frozen=True, slots=True)
class FoundNoise:
    """Noise that was found, and how well it can be told.

    - `keyed`: Whether the noise of a total follows from its parts' (keys that add up, and a table in the order of changes).
    - `stay`: The share of counts that are not changed, where that is more than the law of largest entropy has.
    - `silent`: Columns of other tables that look exact, where no sum tells whether they have it, too.
    """

    columns: frozenset[int]  # the columns of the tables in which it was found, of those that looked exact
    model: str  # whether changes have an end, as far as that can be told
    max_change: int | None  # the largest change; None where it cannot be told
    variance: float  # the variance of a change, and between which numbers it lies (95 %)
    interval: tuple[float, float]
    blocked: tuple[int, ...]  # counts that are never published, though larger ones are
    also_possible: tuple[int, ...]  # other largest changes that fit as well
    least_change: int  # no smaller largest change can explain the residuals
    sums: int  # how many sums of large counts this rests on
    keyed: bool
    p_value: float | None  # how likely residuals as far from the best law's are, if it is right
    mechanism: Mechanism  # the mechanism that fits: the widest one, where the largest change cannot be told
    stay: float | None = None
    silent: frozenset[int] = frozenset()
    why: str = ""  # the evidence, in words

    @property
    def assumed(self) -> bool:
        """Whether an audit may go by it, on the condition that it names: changes have an end."""
        return self.model in (BOUNDED, UNTOLD) and isinstance(self.mechanism, CellKey)

    @property
    def condition(self) -> str:
        """What has to hold for a claim by it, as the end of a sentence: "if …"."""
        assert isinstance(self.mechanism, CellKey)
        largest = self.mechanism.max_change
        said = f"if no count was changed by more than {largest}, which {self.sums:,} sums of large counts support"
        if self.max_change is None:
            said += f"; any largest change from {self.least_change} on would fit as well"
        return said

    def to_json(self, keys: Sequence[str]) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "columns": [keys[at] for at in sorted(self.columns)],
            "model": self.model,
            "max_change": self.max_change,
            "variance": round(self.variance, 3),
            "variance_interval": [round(end, 3) for end in self.interval],
            "blocked": list(self.blocked),
            "also_possible": list(self.also_possible),
            "least_change": self.least_change,
            "sums": self.sums,
            "keyed": self.keyed,
            "stay": self.stay,
            "p_value": self.p_value,
            "mechanism": self.mechanism.name,
            "why": self.why,
        }


FigureVerdict = Literal["recomputable", "evidence", "unclear"]
"""What a figure tells: nothing, for it follows from the published counts; something; or nobody knows."""


@dataclass(frozen=True, slots=True)
class JudgedFigure:
    """A published rate, mean or median, and what the data say of how it was computed.

    - `reveals`: Of a recomputable one, the rounded counts that are published nowhere else but follow from it, in words.
    - `excludes`: Of evidence: in how large a part of the areas it excludes some of the counts that were possible without
      it.
    """

    figure: Figure  # what it is of, with the grid that was found in its values
    verdict: FigureVerdict  # "recomputable" from published counts; "evidence" of true ones; "unclear": not used
    why: str  # the verdict in one sentence, for people
    areas: int = 0  # how many areas publish it
    compared: int = 0  # in how many of them the published counts give a figure to hold it against
    hits: int = 0  # in how many of these it is the one that the published counts give
    hits_by_chance: float = 0.0  # of placebos: the same figures, held against the counts of other areas of like size
    contradictions: int = 0  # in how many areas no true counts could give it
    contradictions_by_chance: float = 0.0  # in how many areas no true counts could give a placebo
    step: Fraction | None = None  # the step of its grid where it is the same everywhere; else the one that most areas have
    reveals: tuple[str, ...] = ()
    left: tuple[float, float] | None = (
        None  # of a rate that is evidence: values of its numerator, on average, without it and with it
    )
    excludes: float | None = None
    left_out: bool = False  # whether the user decided not to use it

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; steps as numbers, for the exact ones are in the grid."""
        figure = self.figure
        return {
            "column": figure.name,
            "label": figure.label,
            "kind": str(figure.kind),
            "numerator": figure.numerator or None,
            "universe": figure.universe or None,
            "groups": [group.count for group in figure.groups],
            "sampled": figure.sampled,
            "verdict": self.verdict,
            "used": self.is_evidence,
            "why": self.why,
            "areas": self.areas,
            "compared": self.compared,
            "hits": self.hits,
            "hits_by_chance": round(self.hits_by_chance, 1),
            "contradictions": self.contradictions,
            "contradictions_by_chance": round(self.contradictions_by_chance, 1),
            "step": None if self.step is None else float(self.step),
            "grid": _steps_json(self.figure.grid) if self.areas else [],
            "reveals": list(self.reveals),
            "possible_values": None if self.left is None else [round(number, 2) for number in self.left],
            "excludes": None if self.excludes is None else round(self.excludes, 4),
        }

    @property
    def is_evidence(self) -> bool:
        """Whether inference may use it: it was computed from true counts, and these were published."""
        return self.verdict == "evidence" and self.figure.is_complete


def _steps_json(grid: FigureGrid) -> list[dict[str, Any]]:
    """Return the steps of a grid: from how many units on, and from which value on which step, or the largest possible."""
    return [
        {"units": units, "steps": [[float(start), float(step)] for start, step in steps]}
        for units, steps in ((0, grid.steps), *grid.by_units)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """What is known of a release before anything is inferred from it."""

    columns: tuple[Column, ...]  # the release's
    areas: int  # how many areas were seen
    mechanisms: tuple[Mechanism | None, ...]  # How each column was published; None where that is not known
    how: tuple[MechanismEvidence, ...]  # what the mechanisms are based on
    sums: tuple[JudgedSum, ...]  # the sums that hold, one-part sums for counts that were rounded anew among them
    rejected: tuple[JudgedSum, ...]
    repeats: tuple[Repeat, ...]  # columns that show the same count
    alias: Mapping[int, int]  # columns that repeat another one number by number, with that column
    equations: tuple[Equation, ...]  # what to infer from: the kept sums with aliases replaced, each once
    equation_sums: tuple[int, ...]  # for each equation the kept sum that it comes from, as a position in `sums`
    guessed: frozenset[int] = frozenset()  # aliases that only the numbers suggest
    figures: tuple[JudgedFigure, ...] = ()  # the release's figures, in its order, and what they tell
    notes: tuple[str, ...] = ()  # what a user should know: declared mechanisms that do not fit, mostly
    areas_condition: str = ""  # what a claim has to name that areas adding up to another leads to: "if …"
    noise: tuple[FoundNoise, ...] = ()  # noise that was found in counts of which nobody says how they were published

    @property
    def by_codes(self) -> dict[tuple[str, ...], Mechanism | None]:
        """How each column was published, by its codes."""
        return {column.codes: how for column, how in zip(self.columns, self.mechanisms, strict=True)}

    @property
    def suspects(self) -> Mapping[int, int]:
        """The areas that contradict a kept sum: how many, by position in `sums`; only where there are any."""
        return {at: checked.impossible for at, checked in enumerate(self.sums) if checked.impossible}

    @property
    def conditions(self) -> dict[int, str]:
        """Columns whose mechanism was inferred, and what a claim by them has to say of that."""
        return {
            at: evidence.condition for evidence in self.how if evidence.ground == Ground.INFERRED for at in evidence.columns
        }

    def basis_of(self, columns: Iterable[int]) -> tuple[str, ...]:
        """Return what the mechanisms of some columns rest on, as in `MechanismEvidence`; of the rounded ones, if any are."""
        wanted = set(columns)
        rounded = {at for at in wanted if not isinstance(self.mechanisms[at], Exact)}
        return tuple(sorted({evidence.basis for evidence in self.how if (rounded or wanted) & set(evidence.columns)}))
