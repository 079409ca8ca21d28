"""The model: everything that all areas of a release share, made once from its structure; and how many make a block."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from unround.engines.rates import RatePairs, rate_pairs
from unround.errors import InputError
from unround.figures import Figure, FigureGrid, FigureKind
from unround.mechanisms import Exact, Mechanism, Suppressed, Unpublished, Within
from unround.options import AuditOptions as AuditOptions
from unround.release import ABSENT, FIGURE_ABSENT, FIGURE_UNIT, SUPPRESSED, Column, Counts, told_range
from unround.structure import JudgedSum, Structure
from unround.sums.compiled import CompiledSums, compile_sums
from unround.sums.forest import Equations, neighbours
from unround.system import Cell, PublishedFigure, Sum, System, connected

FEWEST, MOST = 16, 4096
"""Areas in a block: fewer would not pay, and more gain nothing."""

CELLS_AT_A_TIME = 500_000
"""Cells in a block: enough for arrays to pay, few enough to fit a kilobyte each into memory, of two blocks at a time."""


def block_size(cells: int) -> int:
    """Return how many areas of this many cells to process at a time."""
    return max(FEWEST, min(MOST, CELLS_AT_A_TIME // cells))


HIDDEN_AREA = 1_000
"""Counts are hidden in small areas: what is missing in an area of more people than this is missing for another reason."""
Twins = tuple[tuple[int, int], ...]
"""Cells, and columns of the release that show the same count number by number."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What was inferred, nobody having documented or declared it, and what a claim by it has to name: "if …".

    - `cells`: By cell, of its mechanism; "" where that is documented or declared.
    - `sums`: By sum; "" likewise.
    - `areas`: Of sums over areas; "" likewise.
    """

    cells: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    areas: str = ""

    def of_cells(self, cells: Iterable[int]) -> tuple[str, ...]:
        """Return the conditions of some cells, each once."""
        return tuple(dict.fromkeys(self.cells[c] for c in cells if self.cells[c])) if self.cells else ()

    def of_sums(self, sums: Iterable[int]) -> tuple[str, ...]:
        """Return the conditions of some sums, each once."""
        return tuple(dict.fromkeys(self.sums[e] for e in sums if self.sums[e])) if self.sums else ()


class NothingToInfer(InputError):  # noqa: N818 - it says what a table is like
    """No sum of a table tells anything, so that no audit can be made: all add up exactly, or there is none."""


class NoSums(NothingToInfer):
    """No sum of a table is known."""


@dataclass(frozen=True, slots=True)
class ModelFigure:
    """A figure that tells something: its counts are cells of the model, by their keys; its place in `Block.figures`."""

    figure: Figure
    place: int

    def published(self, value: int, units: int | None) -> PublishedFigure | None:
        """Return what was published of one area, with the step that it was rounded to there; None where nothing was."""
        if value == FIGURE_ABSENT:
            return None
        shown = value * FIGURE_UNIT
        return PublishedFigure(_on_step(self.figure, self.figure.grid.step(shown, units)), shown)


@lru_cache(maxsize=1 << 12)
def _on_step(figure: Figure, step: Fraction) -> Figure:
    """Return a figure on one step; the same object for all areas, so that comparing it takes no time."""
    return replace(figure, grid=FigureGrid.of(step))


@dataclass(frozen=True, eq=False)
class Model:
    """The cells of an area, how they were published, and how they add up.

    - `columns`: The cells that are audited. Columns that only repeat another, or of which nobody knows how they were
      published, are not among them.
    - `positions`: Where each of them is among the release's columns.
    - `twins`: Cells, and the release's columns that show the same count number by number.
    - `mechanisms`: How each was published.
    - `equations`, `origins`: The sums, as positions of cells, and who proposed them.
    - `doubtful`: Which sums cannot hold in some area or other, so that it is not certain that they hold anywhere.
    - `fixed`: The cells that are taken as exact everywhere.
    - `compiled`: The same, compiled.
    - `figures`: Rates, means and medians that were computed from true counts, and so tell something about them.
    - `conditions`: What of all this was inferred, so that claims by it are conditional.
    """

    columns: tuple[Column, ...]
    positions: NDArray[np.int64]
    twins: Twins
    mechanisms: tuple[Mechanism, ...]
    equations: Equations
    origins: tuple[str, ...]
    doubtful: tuple[bool, ...]
    fixed: frozenset[int]
    compiled: CompiledSums
    figures: tuple[ModelFigure, ...] = ()
    conditions: Conditions = Conditions()

    @classmethod
    def of(
        cls,
        structure: Structure,
        exact_population: bool = True,
        everywhere: NDArray[np.bool_] | None = None,
        *,
        figures: bool = False,
        linked: bool = False,
    ) -> Model:
        """Compile a structure.

        Raises `InputError` if no sum holds, so that there is nothing to infer from; not so if areas add up (`linked`).
        """
        used = [c for c, how in enumerate(structure.mechanisms) if how is not None and c not in structure.alias]
        at = {c: i for i, c in enumerate(used)}
        known = [
            (equation, structure.sums[at_sum])
            for equation, at_sum in zip(structure.equations, structure.equation_sums, strict=True)
            if all(c in at for c in (equation[0], *equation[1]))
        ]
        noisy = next((judged for judged in structure.how if judged.suggested is not None), None)
        if not known and noisy is not None:
            raise InputError(f"nothing can be inferred before it is known how these counts were published: {noisy.why}.")
        if not known and not linked and any(judged.exactly for judged in structure.rejected):
            raise NothingToInfer(
                "nothing can be inferred from this table: all its sums add up exactly in all areas, so totals were "
                "added up after rounding, or all counts were rounded together (controlled rounding). Such totals add "
                "no information to their parts. `unround check FILE --all` shows what was tried."
            )
        if not known and not linked:
            raise NoSums(
                "there is no usable sum in this table: no total is published together with its parts, so nothing can be "
                "inferred. `unround check FILE` shows what was tried; add sums of your own in a description "
                "(`unround check FILE --write FILE.toml`, then `unround audit FILE.toml`)."
            )
        inferred = structure.conditions
        conditions = Conditions(
            tuple(inferred.get(c, "") for c in used),
            tuple(_condition(checked, structure) for _, checked in known),
            structure.areas_condition,
        )
        columns = tuple(structure.columns[c] for c in used)
        always = np.ones(len(used), dtype=np.bool_) if everywhere is None else everywhere[used]
        firm = np.array([exact_population or not column.adjusted for column in columns], dtype=np.bool_)
        built = cls.build(
            columns,
            tuple(how for how in (structure.mechanisms[c] for c in used) if how is not None),
            tuple((at[total], tuple(at[part] for part in parts)) for (total, parts), _ in known),
            tuple("data" if _rests_on(checked, structure.guessed) else checked.origin for _, checked in known),
            tuple(checked.impossible > 0 for _, checked in known),
            always & firm,
            _figures(structure, used) if figures else (),
        )
        positions, twins = np.array(used, dtype=np.int64), _twins(used, structure.alias)
        return replace(built, positions=positions, twins=twins, conditions=conditions)

    @classmethod
    def build(
        cls,
        columns: tuple[Column, ...],
        mechanisms: tuple[Mechanism, ...],
        equations: Equations,
        origins: tuple[str, ...],
        doubtful: tuple[bool, ...] = (),
        everywhere: NDArray[np.bool_] | None = None,
        figures: tuple[ModelFigure, ...] = (),
    ) -> Model:
        """Compile cells and sums that are already known to hold; by default every column is a cell, published everywhere."""
        exact = (i for i, how in enumerate(mechanisms) if isinstance(how, Exact))
        fixed = frozenset(i for i in exact if everywhere is None or everywhere[i])
        places, doubtful = np.arange(len(columns)), doubtful or (False,) * len(equations)
        compiled = compile_sums(len(columns), equations, fixed)
        return cls(columns, places, (), mechanisms, equations, origins, doubtful, fixed, compiled, figures)

    def counts_of(self, counts: Counts) -> Counts:
        """Return the cells of a block of the release: where one is absent, another column that shows the same count."""
        shown = np.ascontiguousarray(counts[:, self.positions])
        for cell, twin in self.twins:
            absent = shown[:, cell] <= ABSENT
            shown[absent, cell] = np.where(counts[absent, twin] > ABSENT, counts[absent, twin], shown[absent, cell])
        return shown

    @cached_property
    def no_sums(self) -> CompiledSums:
        """The same cells as if they belonged to no sum."""
        return compile_sums(len(self.columns), (), frozenset())

    @cached_property
    def index(self) -> dict[str, int]:
        """Where each cell is, by its key."""
        return {column.key: at for at, column in enumerate(self.columns)}

    @cached_property
    def adjusted(self) -> NDArray[np.int32]:
        """By how much the agency may have changed each cell in areas that are marked for it."""
        return np.array([column.adjusted for column in self.columns], dtype=np.int32)

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """Which cells were published as they are: there is nothing to find out about them."""
        return np.array([isinstance(how, Exact) for how in self.mechanisms])

    @cached_property
    def hides(self) -> NDArray[np.bool_]:
        """Which cells have a mechanism that hides counts, and so says something about those that are hidden."""
        hiding = {how: _hides(how) for how in set(self.mechanisms)}
        return np.array([hiding[how] for how in self.mechanisms])

    @cached_property
    def limits(self) -> Mapping[int, int]:
        """Cells, and the cells published exactly that these are a part of: one that is hidden is no more than the other."""
        places = {cell: self.index.get(column.at_most) for cell, column in enumerate(self.columns) if column.at_most}
        return {cell: other for cell, other in places.items() if other is not None and self.exact[other]}

    def limit(self, counts: Counts, cell: int, may_differ_by: Callable[[int], int]) -> int | None:
        """Return the most that a hidden cell of one area can be, by the people or households there; None if not hidden.

        `may_differ_by` says by how much a cell that was published exactly may have been changed.
        """
        other = self.limits.get(cell)
        if other is None or counts[cell] > ABSENT or not ABSENT < counts[other] <= HIDDEN_AREA:
            return None
        return int(counts[other]) + may_differ_by(other)

    @cached_property
    def exact_twin(self) -> dict[int, tuple[int, int]]:
        """Rounded cells that show a count which another cell shows exactly: that cell, and the sum that says so."""
        twins = {}
        for e, (total, parts) in enumerate(self.equations):
            if len(parts) == 1:
                for cell, other in ((total, parts[0]), (parts[0], total)):
                    if self.exact[other] and not self.exact[cell]:
                        twins[cell] = (other, e)
        return twins

    @cached_property
    def repeated(self) -> dict[int, tuple[int, int]]:
        """Cells that show a count once more, in a second file: the cell that shows it first, and the sum that says so."""
        return {
            total: (parts[0], e)
            for e, (total, parts) in enumerate(self.equations)
            if self.origins[e] == "files" and len(parts) == 1
        }

    @cached_property
    def touching(self) -> tuple[tuple[int, ...], ...]:
        """For every cell the sums that it stands in."""
        _, touching = neighbours(self.equations)
        return tuple([tuple(touching.get(cell, ())) for cell in range(len(self.columns))])

    @cached_property
    def piece(self) -> NDArray[np.int64]:
        """For every cell the first of the cells that it is connected with by sums."""
        return np.array(connected(len(self.columns), ((total, *parts) for total, parts in self.equations)))

    @cached_property
    def by_piece(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The cells by their pieces, where each piece starts among them, and for each cell the number of its piece."""
        order = np.argsort(self.piece, kind="stable")
        _, starts, number = np.unique(self.piece[order], return_index=True, return_inverse=True)
        return order, starts, number

    @cached_property
    def on_adjusted(self) -> NDArray[np.bool_]:
        """Which cells are connected, by sums, with a count that may have been adjusted."""
        return np.isin(self.piece, self.piece[self.adjusted > 0])

    @cached_property
    def rate_pairs(self) -> tuple[RatePairs, ...]:
        """The universes and parts of rates, made into nodes of forests: what probabilities use of figures."""
        rates = [
            (f, self.index[stated.figure.universe], self.index[stated.figure.numerator])
            for f, stated in enumerate(self.figures)
            if stated.figure.kind is FigureKind.RATE
        ]
        return rate_pairs(self.equations, rates)

    def weighs_figure(self, figure: int) -> bool:
        """Whether probabilities use a figure; if not, only bounds and certificates do."""
        return any(figure in forest.figures for forest in self.rate_pairs)

    def members(self, equation: int) -> tuple[int, ...]:
        """Return the cells of a sum, the total first."""
        total, parts = self.equations[equation]
        return total, *parts

    def sum_named(self, equation: int) -> Sum:
        """Return a sum by the names of its cells."""
        total, parts = self.equations[equation]
        return Sum(self.columns[total].key, tuple(self.columns[part].key for part in parts))

    def sum_in_short(self, equation: int) -> str:
        """Return a sum as it appears in routes: "8 = 9 + 13 + 24", long ones shortened."""
        total, parts = self.equations[equation]
        keys = [self.columns[part].key for part in parts]
        shown = " + ".join(keys) if len(keys) <= 5 else f"{keys[0]} + {keys[1]} + … + {keys[-1]} ({len(keys)} parts)"
        return f"{self.columns[total].key} = {shown}"

    def figure_in_short(self, figure: int) -> str:
        """Return a figure as it appears in routes: "rate 345 of 340", "median of 8"."""
        stated = self.figures[figure].figure
        is_rate = stated.kind is FigureKind.RATE
        return f"rate {stated.numerator} of {stated.universe}" if is_rate else f"{stated.kind} of {stated.universe}"

    def sum_in_words(self, equation: int) -> str:
        """Return a sum by the names that people know, long ones shortened."""
        total, parts = self.equations[equation]
        names = [self.display[self.columns[cell].key] for cell in (total, *parts)]
        listed = names[1:] if len(parts) <= 6 else [names[1], names[2], "…", f"{names[-1]} ({len(parts)} parts)"]
        return f"{names[0]} = {' + '.join(listed)}"

    def system(
        self,
        counts: Counts,
        equations: Iterable[int],
        within: Mapping[int, int] | None = None,
        silent: Iterable[int] = (),
        also: Iterable[int] = (),
        figures: Sequence[PublishedFigure] = (),
    ) -> System:
        """Return one area's cells and some of its sums, as the engines for single systems take them."""
        chosen = sorted(set(equations))
        of_figures = {self.index[key] for member in figures for key in member.figure.counts}
        cells = sorted({cell for e in chosen for cell in self.members(e)}.union(also, of_figures))
        changed = within or {}
        return System(
            [self.cell(cell, counts, lambda member: changed.get(member, 0), cell in silent) for cell in cells],
            [self.sum_named(e) for e in chosen],
            figures,
        )

    def cell(self, cell: int, counts: Counts, may_differ_by: Callable[[int], int], silent: bool = False) -> Cell:
        """Return one cell of an area as the engines for single systems take it."""
        key, how = self.columns[cell].key, self.mechanisms[cell]
        published, within = int(counts[cell]), may_differ_by(cell)
        if (ends := told_range(published)) is not None and not silent:
            return Cell(key, None, Suppressed(*ends))
        most = self.limit(counts, cell, may_differ_by)
        if most is not None and not self.hides[cell]:
            return Cell(key, None, Suppressed(0, most))
        if published <= ABSENT or silent:
            # A rule that hides small counts says something about those that it hid; nothing else does.
            return Cell(key, None, how if published == SUPPRESSED and not silent and self.hides[cell] else Unpublished())
        return Cell(key, published, Within(within) if within else how)

    @cached_property
    def display(self) -> dict[str, str]:
        """What to call each cell in an argument for people, by its key: its label with its ID, and its sex.

        Cells that would be called alike keep their keys.
        """
        names = [display_name(column) for column in self.columns]
        times = Counter(names)
        return {
            column.key: name if times[name] == 1 else column.key for column, name in zip(self.columns, names, strict=True)
        }


def _rests_on(checked: JudgedSum, guessed: frozenset[int]) -> bool:
    """Whether a sum was changed by taking one column for another on the word of the numbers alone."""
    return not guessed.isdisjoint((checked.total, *checked.parts))


def _condition(checked: JudgedSum, structure: Structure) -> str:
    """Return what a claim by a sum has to name: that it holds, or that columns it was read in place of are the same."""
    guessed = sorted(structure.guessed.intersection((checked.total, *checked.parts)))
    if not guessed:
        return checked.condition
    keys = [f"{structure.columns[c].key} and {structure.columns[structure.alias[c]].key}" for c in guessed[:3]]
    return f"if {'; '.join(keys)} are one count each, which nobody says: their numbers are the same everywhere"


def _figures(structure: Structure, used: list[int]) -> tuple[ModelFigure, ...]:
    """Return the figures that tell something about cells of the model; a column that repeats another stands for it."""
    there = set(used)
    place = {column.key: structure.alias.get(c, c) for c, column in enumerate(structure.columns)}
    keys = {key: structure.columns[c].key for key, c in place.items() if c in there}
    telling = []
    for at, judged in enumerate(structure.figures):
        figure = judged.figure
        if judged.is_evidence and all(key in keys for key in figure.counts):
            groups = tuple(replace(group, count=keys[group.count]) for group in figure.groups)
            named = replace(figure, universe=keys[figure.universe], numerator=keys.get(figure.numerator, ""), groups=groups)
            if len(set(named.counts)) == len(figure.counts):
                telling.append(ModelFigure(named, at))
    return tuple(telling)


def _twins(used: list[int], alias: Mapping[int, int]) -> Twins:
    """Return the cells that other columns repeat, with these columns."""
    at = {c: i for i, c in enumerate(used)}
    return tuple((at[first], c) for c, first in sorted(alias.items()) if first in at)


def display_name(column: Column) -> str:
    """Return what to call a column: 0 to 4 years [10], men; tidy tables go by their own codes.

    Examples
    --------
    >>> display_name(Column("10/men", ("10", "men"), "0 to 4 years"))
    '0 to 4 years [10], men'
    >>> display_name(Column("30-44/men", ("30-44", "men"), "30-44"))
    '30-44/men'
    >>> display_name(Column("Yukon/30-44/men", ("Yukon", "30-44", "men"), "Yukon, 30-44"))
    'Yukon/30-44/men'
    """
    if column.label in ("", column.key) or not column.codes[0] or ", ".join(column.codes).startswith(column.label):
        return column.key
    if len(column.codes) > 2:
        return f"{short_label(column.label)} [{column.key}]"
    sex = "" if len(column.codes) < 2 or column.codes[1] == "total" else f", {column.codes[1]}"
    return f"{short_label(column.label)}{_short(column.codes[0])}{sex}"


def short_label(label: str) -> str:
    """Return a label without the source of the data.

    Examples
    --------
    >>> short_label("Total - Marital status - 100% data")
    'Total - Marital status'
    """
    return _SOURCE.sub("", label)


_SOURCE = re.compile(r" - (100|25)% (sample )?data$")
"""What Statistics Canada puts behind every title: too long to be said with every count."""


def _short(code: str) -> str:
    """Return an ID in brackets, unless it only repeats what the label says at greater length."""
    return f" [{code}]" if len(code) <= 16 else ""


def _hides(how: Mechanism) -> bool:
    """Whether a mechanism says what a hidden count can be."""
    try:
        how.window(None)
    except InputError:
        return False
    return True
