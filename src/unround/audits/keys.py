"""Keys in an audit: which tables and repeated counts have them, by the check or by the user's word.

Bounds and proofs do not rest on any of this, and weighted estimates, which are not whole numbers, are not claimed at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.model import Model
from unround.checks import Check
from unround.checks.families import KEYED, UNKNOWN
from unround.checks.keys import RandomNumbers
from unround.checks.run import NOT_INDEPENDENT
from unround.errors import InputError
from unround.evidence.keys import ANY_CONSTANT, Keyed, KeyedRepeat
from unround.mechanisms.bands import Cutoff
from unround.mechanisms.rounding import Rounding, Sample, Weighted
from unround.regions import of_sample
from unround.release import Decisions, axis_of
from unround.shown import Plain
from unround.small_files import plain_json
from unround.structure import Structure
from unround.sums.compiled import compile_sums

FILE = "keys.json"
"""Where an audit keeps it, in its folder `model/`; there is none where nothing was found."""

Split = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """A table whose random numbers add up as its counts do: its constant, the standard error, and who says so."""

    table: str
    constant: float
    error: float
    why: str

    @property
    def sentence(self) -> str:
        """What is assumed, for people."""
        return (
            "Random numbers add up in this table: that of a total is the sum of its parts' and a constant "
            f"({self.constant:.3f}), around a circle of length 1."
        )


@dataclass(frozen=True, slots=True)
class SameCount:
    """A count that several columns show, by key; the constants of their tables, where these are known."""

    columns: tuple[str, ...]
    constants: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Keys(Plain):
    """What is known about the random numbers of a release; nothing, unless told.

    - `rounding`: What the user asked for: "auto" or "independent".
    - `tables`: Those with keys.
    - `repeats`: Counts in several tables whose random numbers are not independent.
    - `alone`: Tables without keys, by the user's word.
    """

    rounding: str = "independent"
    tables: tuple[KeyedTable, ...] = ()
    repeats: tuple[SameCount, ...] = ()
    alone: tuple[str, ...] = ()

    @classmethod
    def of(cls, rounding: str, numbers: RandomNumbers, structure: Structure, decisions: Decisions | None = None) -> Keys:
        """Return what an audit uses."""
        given = _given(structure, decisions or Decisions())
        if rounding == "independent":
            return cls(rounding, tuple(known for known in given.values() if known is not None))
        tables = {
            table: KeyedTable(table, known.constant, known.error, known.why)
            for table, known in numbers.tables.items()
            if known.model == KEYED and known.constant is not None and known.error is not None and known.whole is not False
        }
        chosen = {table: known for table, known in (tables | given).items() if known is not None}
        # Where nobody knows how repeats depend on each other, their constants may be anything.
        repeats = tuple(
            SameCount(known.columns, known.constants, known.errors)
            for known in numbers.repeats
            if known.whole and (known.model == KEYED or (known.model == UNKNOWN and known.p_value is not None))
        )
        return cls(
            rounding, tuple(chosen.values()), repeats, tuple(table for table, known in given.items() if known is None)
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; tables without keys only where the user named some."""
        plain = Plain.to_json(self)
        return plain if self.alone else {name: plain[name] for name in plain if name != "alone"}

    def of_table(self, table: str) -> KeyedTable | None:
        """Return what is known of a table."""
        return next((known for known in self.tables if known.table == table), None)

    def has_keys(self, table: str) -> bool:
        """Return whether a table has keys, its constant known or not: where one of a release has, all are taken to have.

        Residuals cannot show it at some constants; and that a total rounds as its only part does is so at every constant.
        """
        of_release = self.rounding == "auto" and bool(self.tables) and bool(table) and table not in self.alone
        return of_release or self.of_table(table) is not None

    def paired(self, model: Model) -> Model:
        """Return a model in which every total with keys and its two parts are one node, as far as sums allow."""
        splits = tuple(split for split in splits_of(model) if self.has_keys(model.columns[split[0]].block))
        if not splits:
            return model
        return replace(model, compiled=compile_sums(len(model.columns), model.equations, model.fixed, splits))

    def keyed(self, model: Model) -> Keyed | None:
        """Return it as the engine takes it, for a model with such nodes; None where every count has its own number."""
        plan = model.compiled.plan
        repeats = tuple(self._repeats(model))
        copies = {cell for repeat in repeats for cell in repeat.cells[1:]}
        constant: NDArray[np.float64] = np.full(len(plan.nodes), np.nan)
        base = np.zeros(len(plan.nodes), dtype=np.int64)
        for split in splits_of(model):
            table, n = model.columns[split[0]].block, plan.home[split[0]][0]
            # Where the same count is in another table, that one's sum of random numbers says it all.
            if self.has_keys(table) and set(plan.nodes[n].cells) == set(split) and not copies & set(split):
                known = self.of_table(table)
                constant[n] = ANY_CONSTANT if known is None else known.constant
                hows = {model.mechanisms[cell] for cell in split}
                base[n] = next((how.base for how in hows if type(how) is Rounding and len(hows) == 1), 0)
        chained = np.array([self._chained(model, link) for link in range(len(plan.links))], dtype=np.bool_)
        if not repeats and np.isnan(constant).all() and not chained.any():
            return None
        return Keyed(constant, model.mechanisms, repeats, base, chained)

    def _chained(self, model: Model, link: int) -> bool:
        """Return whether a link of the plan is a total and its parts in a table with keys: one part rounds as it does."""
        if any(end.sign < 0 for end in model.compiled.plan.links[link].children):
            return False
        sums = [model.equations[e] for e in model.compiled.links_of[link]]
        cells = {cell for total, parts in sums for cell in (total, *parts)}
        tables, hows = {model.columns[cell].block for cell in cells}, {model.mechanisms[cell] for cell in cells}
        rounded = len(hows) == 1 and isinstance(hows.pop(), Rounding | Sample)
        return rounded and len(tables) == 1 and self.has_keys(tables.pop())

    def _repeats(self, model: Model) -> Iterable[KeyedRepeat]:
        """Find the cells of repeated counts that sums tie to the first of them, directly."""
        used = set(range(len(model.equations))).difference(model.compiled.unused)
        pairs = {
            frozenset((total, *parts)): e
            for e, (total, parts) in enumerate(model.equations)
            if len(parts) == 1 and e in used
        }
        for repeat in self.repeats:
            cells = [model.index[key] for key in repeat.columns if key in model.index]
            if not cells or not isinstance(model.mechanisms[cells[0]], Rounding | Sample):
                continue
            hubs = {cell: [c for c in cells if frozenset((cell, c)) in pairs] for cell in cells}
            hub = max(cells, key=lambda cell: (len(hubs[cell]), -cell))
            mine = [hub, *(cell for cell in hubs[hub] if cell != hub)]
            at = [repeat.columns.index(model.columns[cell].key) for cell in mine]
            if len(mine) > 1:
                constants = tuple(repeat.constants[k] for k in at) if repeat.constants else ()
                errors = tuple(repeat.errors[k] for k in at) if repeat.errors else ()
                sums = tuple(pairs[frozenset((hub, cell))] for cell in mine[1:])
                yield KeyedRepeat(tuple(mine), constants, errors, sums)

    def untied(self, model: Model) -> NDArray[np.bool_]:
        """Mark the cells of which nothing can be called likely, for a model with such nodes.

        A count that several tables show is one count to the engine only where sums tie its cells, and not all of these sums
        fit into a forest. What is published of the others counts as if they had random numbers of their own, and so for more
        than it says, in all that sums connect with them.
        """
        tied = {cell for repeat in self._repeats(model) for cell in repeat.cells}
        shown = {model.index[key] for repeat in self.repeats for key in repeat.columns if key in model.index}
        shown -= set(model.exact_twin)  # known exactly: nothing is inferred from its roundings
        return np.isin(model.piece, [model.piece[cell] for cell in shown - tied])

    def cells(self, model: Model) -> frozenset[int]:
        """Return the cells whose probabilities account for keys."""
        split_cells = {c for split in splits_of(model) if self.has_keys(model.columns[split[0]].block) for c in split}
        return frozenset(split_cells.union(*(repeat.cells for repeat in self._repeats(model))))

    def save(self, folder: Path) -> None:
        """Write it into the folder of an audit's model, for `load`."""
        if self.tables or self.repeats:
            (folder / FILE).write_text(json.dumps(self.to_json(), ensure_ascii=False, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Keys:
        """Read what `save` wrote; there are no keys where it wrote nothing."""
        try:
            written = plain_json(folder / FILE)
            repeats = tuple(
                SameCount(*(tuple(entry[name]) for name in ("columns", "constants", "errors")))
                for entry in written["repeats"]
            )
            return cls(
                written["rounding"],
                tuple(KeyedTable(**entry) for entry in written["tables"]),
                repeats,
                tuple(written.get("alone", ())),
            )
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"{folder / FILE} cannot be read ({error}). Run the audit again to replace it.") from error


def splits_of(model: Model) -> list[Split]:
    """Return the totals and their two parts, such as men and women, of one table and all rounded at random to one base.

    A total with two parts that differ from it in their characteristic is one of a kind: its parts are not men and women.
    """
    splits = []
    for total, parts in model.equations:
        cells = (total, *parts)
        alike = len({model.mechanisms[c] for c in cells}) == 1 and len({model.columns[c].block for c in cells}) == 1
        rounded = isinstance(model.mechanisms[total], Rounding | Sample)
        if len(cells) == 3 and alike and rounded and axis_of([model.columns[c] for c in cells]):  # but along the first one
            splits.append((cells[0], cells[1], cells[2]))
    return splits


def only_estimates(model: Model) -> frozenset[int]:
    """Return the cells that sums connect with weighted estimates alone: nothing will be claimed of them."""
    estimates = np.array([isinstance(how, Weighted) for how in model.mechanisms])
    counted = np.isin(model.piece, np.unique(model.piece[~estimates]))
    return frozenset(np.flatnonzero(~counted).tolist())


def weighted_estimates(structure: Structure, numbers: RandomNumbers) -> Structure:
    """Return a structure in which the counts of weighted tables are estimates: any number, whole or not.

    A table whose title says that it is from a sample is weighted, and so are the parts of its totals, whatever the counts
    that are there seem to be: few counts cannot tell. Another table that cannot be told is like those of its rule, if these
    are all weighted.
    """
    titled = _of_sample(structure)
    kinds: dict[object, set[bool | None]] = {}  # by rule, what its tables are found to be
    columns = list(zip(structure.columns, structure.mechanisms, strict=True))
    whole = [numbers.tables[column.block].whole if column.block in numbers.tables else None for column, _ in columns]
    for (_, how), is_whole in zip(columns, whole, strict=True):
        kinds.setdefault(how, set()).add(is_whole)
    mechanisms = tuple(
        Weighted(how)
        if isinstance(how, Rounding | Sample)
        and (at in titled or is_whole is False or (is_whole is None and kinds[how] - {None} == {False}))
        and of_sample(f"{structure.columns[at].label} {structure.columns[at].block}") is not False  # of everybody, it says
        else how
        for at, ((_, how), is_whole) in enumerate(zip(columns, whole, strict=True))
    )
    return replace(structure, mechanisms=mechanisms)


ESCAPING = Fraction(1, 100)
"""The share of counts that may escape a limit which was only inferred: what is possible stays as documented."""


def with_cutoffs(structure: Structure, numbers: RandomNumbers) -> Structure:
    """Return a structure in which parts of tables become 0 under the limit that the check found, before they are rounded."""
    limits = {table: known.cutoff for table, known in numbers.tables.items() if known.cutoff is not None}
    parts = {part for _, parts in structure.equations if len(parts) > 1 for part in parts}
    mechanisms = tuple(
        Cutoff(limits[column.block], how, ESCAPING)
        if column.block in limits and at in parts and isinstance(how, Rounding)
        else how
        for at, (column, how) in enumerate(zip(structure.columns, structure.mechanisms, strict=True))
    )
    return replace(structure, mechanisms=mechanisms)


def _of_sample(structure: Structure) -> set[int]:
    """Return the columns that are from a sample by the title of their table, their own label, or that of their total."""
    known = [of_sample(f"{column.label} {column.block}") for column in structure.columns]
    sampled = {at for at, said in enumerate(known) if said}
    waiting = list(sampled)
    while waiting:
        total = waiting.pop()
        parts = {part for head, parts in structure.equations if head == total and len(parts) > 1 for part in parts}
        more = {part for part in parts - sampled if known[part] is None}
        sampled |= more
        waiting += more
    return sampled


BY_KEYS = "rounding by keys, which the probability accounts for"
"""What a claim rests on in place of independent rounding."""


BY_CUTOFF = "small counts that become 0, which estimates account for"
"""The same of a table with a limit."""


def doubts_left(checked: Check, keys: Keys, model: Model) -> dict[int, str]:
    """Return the doubts about columns of the release; where probabilities account for keys, that is said instead."""
    heeded = {int(model.positions[cell]): BY_KEYS for cell in keys.cells(model)}
    heeded |= {int(model.positions[cell]): BY_CUTOFF for cell, how in enumerate(model.mechanisms) if isinstance(how, Cutoff)}
    return {
        column: said.replace(NOT_INDEPENDENT, heeded.get(column, NOT_INDEPENDENT)) for column, said in checked.doubts.items()
    }


def roles_of(model: Model) -> dict[str, NDArray[np.int64]]:
    """Return the cells of counts that are split in two, by what they are there: all totals, all men, all women."""
    roles: dict[str, set[int]] = {}
    for split in splits_of(model):
        axis = axis_of([model.columns[c] for c in split]) or 0
        for cell in split:
            roles.setdefault(model.columns[cell].codes[axis], set()).add(cell)
    return {name: np.array(sorted(cells)) for name, cells in roles.items()}


def _given(structure: Structure, decisions: Decisions) -> dict[str, KeyedTable | None]:
    """Return the tables whose constants the user gave; None where there are none."""
    given: dict[str, KeyedTable | None] = {}
    known = dict.fromkeys(column.block for column in structure.columns if column.block)
    for table, constant in decisions.keys.items():
        if table not in known:
            raise InputError(f"{decisions.where}: there is no table {table!r}; tables: {_listed(list(known))}.")
        given[table] = None if constant is None else KeyedTable(table, constant, 0.0, "given in the description")
    return given


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return f"{shown} …" if len(names) > 8 else shown or "none"
