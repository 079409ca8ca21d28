"""Release: what was published. Counts over areas × columns, which of them are missing and why, and what is known of each.

A file of any format becomes one integer table: one row per area (or whatever the counts are of), and one column per count
that an area can have, such as "0 to 4 years, men". Files may be larger than memory, so the table comes in blocks of areas,
and can be read more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.figures import Figure
from unround.mechanisms import Exact, Mechanism, Unpublished

if TYPE_CHECKING:
    import polars as pl

Counts = NDArray[np.int32]
Progress = Callable[[int], None]
"""Called with the number of bytes of the file read so far."""

LARGEST = 1_000_000_000
"""The largest count that a release can hold."""

_FIRST = int(np.iinfo(np.int32).min)
SUPPRESSED = _FIRST
"""The agency hid this count: it exists, and sums may reveal it."""
NOT_APPLICABLE = _FIRST + 1
"""There is no such count: sums that would need it do not hold for this area."""
NOT_AVAILABLE = _FIRST + 2
"""The count is missing, and the file does not say why."""
UNRELIABLE = _FIRST + 3
"""The agency held it back as too unreliable."""
UNREADABLE = _FIRST + 4
"""Something other than a count in a column of counts: text, or a number with decimals."""
FIRST_TOLD = _BETWEEN = _FIRST + 16
"""From this code on, cells tell something of their counts by themselves."""
WIDEST_BETWEEN = 9_999
"""The largest end of a range that a cell can tell in place of its count."""
_EXACTLY = _BETWEEN + (WIDEST_BETWEEN + 1) ** 2
ABSENT = _EXACTLY + LARGEST
"""A number up to this one in a table of counts is one of the codes above and below, not a count."""


def gaps(counts: NDArray[Any], total: int, parts: Sequence[int]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return in which areas all counts of a sum are there, and by how much the total is more than its parts: else 0.

    >>> there, more = gaps(np.array([[5, 2, 3], [6, 2, 3], [SUPPRESSED, 2, 3]]), 0, (1, 2))
    >>> there.tolist(), more.tolist()
    ([True, True, False], [0, 1, 0])
    """
    members = counts[:, [total, *parts]].astype(np.int64)
    there = np.asarray((members > ABSENT).all(axis=1))
    return there, np.where(there, 2 * members[:, 0] - members.sum(axis=1), 0)


_WHY_ABSENT: Mapping[int, str] = {
    SUPPRESSED: "suppressed",
    NOT_APPLICABLE: "not applicable",
    NOT_AVAILABLE: "not available",
    UNRELIABLE: "too unreliable to be published",
    UNREADABLE: "not a count",
}


def between(low: int, high: int) -> int:
    """Return the code of a cell that tells a range in place of its count, as `<5` or `1-4` do.

    >>> told_range(between(1, 4)), why_absent(between(1, 4)), told_range(SUPPRESSED)
    ((1, 4), 'suppressed, from 1 to 4', None)
    """
    if not 0 <= low <= high <= WIDEST_BETWEEN:
        raise InputError(f"a hidden count is from 0 to {WIDEST_BETWEEN:,}, such as 1 to 4; not {low} to {high}.")
    return _BETWEEN + low * (WIDEST_BETWEEN + 1) + high


def exactly(count: int) -> int:
    """Return the code of a count that is printed as it is, in a column whose other counts are not.

    >>> told_range(exactly(1)), why_absent(exactly(1))
    ((1, 1), 'printed unrounded, 1')
    """
    return _EXACTLY + count


def told_range(code: int) -> tuple[int, int] | None:
    """Return what a cell tells of its count by itself, whatever the mechanism; None where that is nothing."""
    if _EXACTLY <= code <= ABSENT:
        return code - _EXACTLY, code - _EXACTLY
    return divmod(code - _BETWEEN, WIDEST_BETWEEN + 1) if _BETWEEN <= code < _EXACTLY else None


def why_absent(code: int) -> str | None:
    """Return why a cell is not a plain count; None for one that is."""
    ends = told_range(code)
    if ends is None:
        return _WHY_ABSENT.get(code)
    return f"printed unrounded, {ends[0]}" if code >= _EXACTLY else f"suppressed, from {ends[0]} to {ends[1]}"


FigureValues = NDArray[np.int64]
"""Published figures, areas × figures, as whole multiples of `FIGURE_UNIT`: decimals stay what they are in print."""
FIGURE_UNIT = Fraction(1, 10_000)
"""What figures are counted in."""
FIGURE_ABSENT = int(np.iinfo(np.int64).min)
"""In place of a figure that is not there, or has more decimals than are kept."""


class Ground(StrEnum):
    """What a mechanism, an exact count or a sum rests on. Proofs rest on what is documented or declared alone."""

    DOCUMENTED = "documented"
    """The agency says so: by a format that is known, or by a note in the file."""
    DECLARED = "declared"
    """The user says so: by a description, an option or an argument."""
    INFERRED = "inferred"
    """Nobody says so: the counts, labels or positions suggest it."""


AREA = "region"
"""What the axis of areas is called in all census formats, and in findings."""


@dataclass(frozen=True, slots=True)
class Column:
    """One count that every area can have.

    - `key`: Its name in systems, proofs and files, unique within the release: "10", "10/men".
    - `codes`: Its place on all axes except the areas', as in `Release.axes`: ("10", "men").
    - `label`: What it counts, without its sex: "0 to 4 years".
    - `block`: The table it belongs to: the counts that the agency laid out and rounded together. For a profile, the
      nearest "Total - …" line above; for formats without such lines what is documented of them, or what names and order
      tell; "" only where nothing tells.
    - `depth`: How far its label is indented, in levels.
    - `mechanism`: How it was published, where the format or the user says so; None where it has to be inferred from the
      data.
    - `adjusted`: Published exactly, except that the agency says it may have changed it by up to this much in `adjustable`
      areas.
    - `at_most`: The key of a column, published exactly, that this one is a part of: the people or households of the area.
      Where this one is hidden, as agencies do in small areas, it is still no more than that. "" where there is none.
    - `documented`: The mechanisms that somebody says rounded counts of this file have: which of them this one has, or
      whether it is exact, is left to the counts. Empty for a table of one's own of which nobody says anything.
    - `basis`: Who says `mechanism` or `documented`: "format", "note" (in the file) or "option"; "" for a description.
    - `known_format`: Whether it comes from a known format, whose layout and labels document which counts add up.
    """

    key: str
    codes: tuple[str, ...]
    label: str
    block: str = ""
    depth: int = 0
    mechanism: Mechanism | None = None
    adjusted: int = 0
    at_most: str = ""
    documented: tuple[Mechanism, ...] = ()
    basis: str = ""
    known_format: bool = False

    @property
    def is_in_file(self) -> bool:
        """Whether the file has such a column; not so for a total that was added because two tables share it."""
        return not isinstance(self.mechanism, Unpublished)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A sum that may hold: a total and its parts, as positions of columns, and who says so.

    `origin` is "indentation", "sex", "names", "universe" (the same people counted twice), "data" (found in the counts),
    "file" (the user says so, which is accepted unless the counts make it impossible), "labels" (labels of a table that
    nobody described suggest it: accepted in the same way, and not documented) or "files" (a count that is in several files).

    A total that is not in the file can still have two sets of parts, from two tables of the same people. Then it is a column
    of counts that are nowhere published, and `against` are the parts of the other table: the two must add to the same.

    `declared` is whether the user says so of a count in several files: by its match in a description, not by its name alone.
    `use` is the user's decision, which overrules the counts; None where it is left to them. `alike`, of one part: whether
    the user says that both columns show the same numbers, or were rounded anew.
    """

    total: int
    parts: tuple[int, ...]
    origin: str
    against: tuple[int, ...] = field(default=(), repr=False)
    declared: bool = field(default=False, repr=False)
    use: bool | None = field(default=None, repr=False)
    alike: bool | None = field(default=None, repr=False)


def axis_of(cells: Sequence[Column]) -> int | None:
    """Return the axis along which a sum of some columns adds up; None where several codes change at once, or none."""
    changing = [axis for axis in range(len(cells[0].codes)) if len({column.codes[axis] for column in cells}) > 1]
    return changing[0] if len(changing) == 1 else None


def table_of(columns: Sequence[Column], total: int, parts: Sequence[int]) -> str:
    """Return the table that a sum belongs to: its parts', if all are in one; else its total's.

    What is published exactly stands apart from the tables that it heads, or that repeat it.

    >>> columns = [Column("all", ("all",), "all"), *(Column(key, (key,), key, "Age") for key in ("young", "old"))]
    >>> table_of(columns, 0, (1, 2))
    'Age'
    """
    tables = {columns[part].block for part in parts if not isinstance(columns[part].mechanism, Exact)} - {""}
    return tables.pop() if len(tables) == 1 else columns[total].block


@dataclass(frozen=True, slots=True)
class Block:
    """Some areas, complete: a frame with one row per area, and their counts.

    The frame's first columns are the axes of `Release.areas`; for a census `region`, `region_name`, `level` (as the file
    calls it, or ""), `parent` (or null) and `adjustable` (whether exact counts may have been changed a little; null where
    the format does not say) follow. `figures` are the values of `Release.figures`, None where a release has none.
    """

    areas: pl.DataFrame
    counts: Counts
    figures: FigureValues | None = None


def adjustable(areas: pl.DataFrame) -> NDArray[np.bool_]:
    """Return in which areas counts that are called exact may have been adjusted, by up to `Column.adjusted`.

    The agency says of a column that it may be adjusted, and of some areas that they never are. So an area of which nothing
    is known may have been adjusted: to take its counts as exact could prove what is not so.
    """
    if "adjustable" not in areas.columns:
        return np.ones(areas.height, dtype=np.bool_)
    return np.asarray(areas["adjustable"].fill_null(True).to_numpy(), dtype=np.bool_)


class What(StrEnum):
    """What something in the input turned out to be."""

    COUNT = "count"
    EXACT = "exact count"
    FIGURE = "figure used"
    SILENT = "figure that tells nothing"
    SUPPRESSED = "suppressed"
    LABEL = "label"
    CODE = "code"
    NOTE = "note"
    UNKNOWN = "not understood"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the account of a reading: what stands in a row, column, cell or sheet of the input.

    - `place`: Where: "column C: Men", "row 25", "cell D7", "sheet Notes".
    - `what`, `why`: What it was taken for, and the reason.
    - `used`: Whether it takes part in what is inferred, or tells something about what does.
    - `settle`: Where something was not understood or not used: the line of TOML, or the option, that settles it.
    - `keys`: The columns of the release, or its figures, that it holds.
    """

    place: str
    what: What
    why: str
    used: bool = True
    settle: str = ""
    keys: tuple[str, ...] = field(default=(), repr=False)

    def to_json(self) -> dict[str, str | bool]:
        """Return it as plain data."""
        given: dict[str, str | bool] = {"place": self.place, "what": self.what.value, "why": self.why, "used": self.used}
        return given | ({"settle": self.settle} if self.settle else {})


@dataclass(frozen=True, slots=True)
class Match:
    """The user's decision on which columns of a file are columns of earlier files.

    - `file`: The file's name, with or without its folder.
    - `columns`: Keys of its columns, with the keys of what they are the same count as; "" for nothing.
    - `characteristics`: The same for all sexes at once: codes on the first axis.
    """

    file: str
    columns: Mapping[str, str] = field(default_factory=dict)
    characteristics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decisions:
    """What the user says of a release besides how its counts were published and what they add up to.

    - `figures`: Rates, means and medians, by the keys of their columns, and whether to use them.
    - `certain`: Those that unround itself computed from true counts: they are used whatever the data suggest.
    - `keys`: Tables whose random numbers add up, and the constant of their sums; None where every count has its own.
    - `matches`: Of several files, which columns of one are columns of those before it.
    - `where`: What says so, for messages.
    """

    figures: Mapping[str, bool] = field(default_factory=dict)
    certain: frozenset[str] = frozenset()
    keys: Mapping[str, float | None] = field(default_factory=dict)
    matches: tuple[Match, ...] = ()
    where: str = "the description"


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What was published.

    Parameters
    ----------
    source, file_format : str
        The file, and the name of its format.
    columns : tuple of Column
        All columns of counts; other columns are in `left_out`.
    axes : tuple of str
        What the codes of a column stand for: ("characteristic_id", "sex") in all census formats.
    areas : tuple of str
        The axes of the rows: ("region",), or others in a tidy table.
    proposals : tuple of Proposal
        Sums that the format or the user's file suggests; none is used before it is verified.
    read : function
        Reads the file and yields blocks; may be called repeatedly.
    size : int
        Of the file, in bytes, for progress bars.
    product : str or None
        What to cite, where the format says: "Statistics Canada, 2021 Census of Population".
    figures : tuple of Figure
        Rates, means and medians beside the counts, with the counts that labels or the user's file say they are of.
    left_out : mapping
        Labels of what is neither a count nor such a figure, by reason (densities, amounts …).
    notes : list of str
        What a user should know about how the file was read. Reading may add notes.
    account : tuple of Entry
        What became of every row, column and cell of the input: an entry for a column is about all its cells, except for
        those that have entries of their own.
    obstacle : str
        Why nothing can be inferred from it, and what to do about that, where it is known from the start; else "".
    sumless : str
        Why none of its counts adds up with others, where that is known and not merely not found; else "".
    decisions : Decisions
        What else the user says of it.
    described : mapping
        The keys and values of the description that it was read by; none for a known format.
    """

    source: str
    file_format: str
    columns: tuple[Column, ...] = field(repr=False)
    axes: tuple[str, ...]
    areas: tuple[str, ...]
    read: Callable[[Progress], Iterable[Block]] = field(repr=False)
    proposals: tuple[Proposal, ...] = field(default=(), repr=False)
    size: int = 0
    product: str | None = None
    figures: tuple[Figure, ...] = field(default=(), repr=False)
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    notes: list[str] = field(default_factory=list, repr=False)
    account: tuple[Entry, ...] = field(default=(), repr=False)
    obstacle: str = field(default="", repr=False)
    sumless: str = field(default="", repr=False)
    decisions: Decisions = field(default=Decisions(), repr=False)
    described: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def blocks(self, progress: Progress = lambda _: None) -> Iterator[Block]:
        """Go through the areas, block by block."""
        return iter(self.read(progress))

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled with all counts: another process may not have the file."""
        held = {field.name: getattr(self, field.name) for field in fields(self)} | {"read": HeldBlocks(tuple(self.blocks()))}
        return _unpickled, (held,)

    @property
    def sums(self) -> list[Proposal]:
        """The sums that may hold: all that are proposed, but for those that the user leaves out."""
        dropped = {(proposal.total, proposal.parts) for proposal in self.proposals if proposal.use is False}
        return [proposal for proposal in self.proposals if (proposal.total, proposal.parts) not in dropped]

    @property
    def index(self) -> dict[str, int]:
        """Where each column is, by its key."""
        return {column.key: at for at, column in enumerate(self.columns)}


@dataclass(frozen=True, slots=True, eq=False)
class HeldBlocks:
    """The blocks of a release that was pickled."""

    blocks: tuple[Block, ...]

    def __call__(self, _progress: Progress) -> Iterator[Block]:
        """Go through them."""
        return iter(self.blocks)


def _unpickled(held: dict[str, Any]) -> Release:
    return Release(**held)
