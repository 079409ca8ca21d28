"""One audit, opened to be looked through: everything that views share, made once and kept as far as there is room."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from unround.boundaries import Boundaries, boundaries_of, kept_boundaries
from unround.errors import InputError
from unround.explanation.cell import Explanation, InferredArea, explain_in, infer_area
from unround.job import AuditFolder
from unround.job.folder import CONTRADICTIONS, PUBLISHED, SUMMARY, SUSPECTS, ZEROS_NOT_LISTED, find_area, find_cell
from unround.release import ABSENT
from unround.show.audit import decision_of, footing
from unround.show.parts import Fact
from unround.show.words import CLAIMS
from unround.web.claims import AREA_SIZES, ROUTES, SIZES, Claims, Facet, TextIndex, area_size_of, area_texts
from unround.web.outline import Grouping, Outline, OutlineLine, Places, level_named, outline_of

if TYPE_CHECKING:
    import polars as pl

Key = TypeVar("Key")
Kept = TypeVar("Kept")


class Remembered(Generic[Key, Kept]):
    """Values by their keys; those that nobody asked for in a long time are forgotten first. Threads may share it.

    - `most`: How large all values together may be. The last one is kept, however large it is.

    Examples
    --------
    >>> kept = Remembered[str, str](10)
    >>> for text in ("four", "five", "seven"):
    ...     _ = kept.put(text, text.upper(), len(text))
    >>> kept.get("four"), kept.get("five"), kept.get("seven")
    (None, 'FIVE', 'SEVEN')
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._lock = threading.Lock()
        self._values: OrderedDict[Key, tuple[Kept, int]] = OrderedDict()

    def get(self, key: Key) -> Kept | None:
        """Return a value that is remembered, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Key, value: Kept, size: int) -> Kept:
        """Remember a value, in place of an older one of its key, and return it."""
        with self._lock:
            _, before = self._values.pop(key, (None, 0))
            self.held += size - before
            self._values[key] = value, size
            while self.held > self.most and len(self._values) > 1:
                _, (_, dropped) = self._values.popitem(last=False)
                self.held -= dropped
        return value

    def __len__(self) -> int:
        return len(self._values)


Made = TypeVar("Made")


class once(Generic[Made]):  # noqa: N801 - it reads as a word before a method, like `property`
    """A property that is made once, under the one lock of its object.

    `functools.cached_property` has a lock for every property, or none, as Python pleases. Where making one property takes
    another, and some take a lock of the object besides, two threads could wait for each other for ever.
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_once_{name}"

    def __get__(self, owner: Any, kind: type) -> Made:
        kept = vars(owner)
        if self._name not in kept:
            with owner._lock:  # the same thread may be making another of them
                if self._name not in kept:
                    kept[self._name] = self._make(owner)
        made: Made = kept[self._name]
        return made


KEPT_COUNTS, KEPT_EXPLAINED = 250_000, 2_000
"""Counts of areas, and explained ones, that are remembered, so that going back and forth costs nothing. An area counts with
all that it was inferred together with: a third of a kilobyte or so each."""

KEPT_SHAPES = 4
"""Parts of the map, by level and place, whose shapes are kept."""

_SERIALS = count()


class Explorer:
    """An audit folder and what is derived from it.

    Notes
    -----
    Requests run in threads. Whatever is made once is made under a lock. Inferences have one of their own, as their kernels
    use all processors anyway; lists and searches need none, and do not wait for them. Whoever holds it takes no other lock.
    """

    def __init__(self, folder: AuditFolder, boundaries: Path | None = None) -> None:
        self.folder = folder
        self._boundaries_file = boundaries
        self.serial = next(_SERIALS)
        self.summary = folder.summary
        self._lock = threading.RLock()
        self._inferring, self._explaining = threading.RLock(), threading.RLock()
        self._seen = Remembered[int, InferredArea](KEPT_COUNTS)
        self._explained = Remembered[tuple[int, int], Explanation](KEPT_EXPLAINED)
        self.mapped = Remembered[tuple[str, str], Boundaries](KEPT_SHAPES)

    # -- what the release holds ---------------------------------------------------------------------------------------

    @once
    def outline(self) -> Outline:
        """The counts as lines and tables."""
        return outline_of(self.folder.model, self.folder.axes)

    @once
    def _texts(self) -> tuple[list[str], list[str]]:
        return area_texts(self.folder.areas, self.folder.area_axes)

    @property
    def codes(self) -> list[str]:
        """Every area's code."""
        return self._texts[0]

    @property
    def names(self) -> list[str]:
        """Every area's name; "" where it is the code."""
        return self._texts[1]

    @once
    def places(self) -> Places:
        """What areas are called, and where they are."""
        return Places(self.folder.areas, *self._texts)

    @once
    def index(self) -> TextIndex:
        """Finds areas, by the places around them too."""
        return TextIndex(*self._texts, [self.places.around(row) for row in range(len(self.codes))])

    @once
    def lines(self) -> tuple[OutlineLine, ...]:
        """Every characteristic."""
        return self.outline.lines

    @once
    def line_index(self) -> TextIndex:
        """Finds characteristics, by the names of their tables too."""
        about = [table.name for table in self.outline.tables for _ in table.lines]
        return TextIndex([line.code for line in self.lines], [line.label for line in self.lines], about)

    @once
    def line_of(self) -> NDArray[np.int64]:
        """For every cell, its characteristic."""
        lines = np.zeros(len(self.folder.model.columns), dtype=np.int64)
        for line in self.lines:
            lines[[cell for cell in line.cells if cell is not None]] = line.at
        return lines

    @once
    def cell_index(self) -> TextIndex:
        """Finds cells: by characteristic, table and sex."""
        columns = self.folder.model.columns
        about = [self.outline.tables[table].name for table in self.outline.table_of]
        return TextIndex([" ".join(column.codes) for column in columns], [column.label for column in columns], about)

    @once
    def _rows(self) -> dict[str, int]:
        return {code: row for row, code in reversed(list(enumerate(self.codes)))}

    @once
    def levels(self) -> NDArray[np.object_]:
        """Every area's level, as the file calls it; "" where it does not say."""
        areas = self.folder.areas
        if "level" not in areas.columns:
            return np.full(areas.height, "", dtype=object)
        return np.array(areas["level"].fill_null("").to_list(), dtype=object)

    @once
    def level_names(self) -> list[str]:
        """The levels there are; "" among them, where the file does not say for some areas."""
        return [str(name) for name in dict.fromkeys(self.levels.tolist())]

    @once
    def claims(self) -> Claims:
        """The findings."""
        return Claims(self.folder, self.outline.table_of, self.line_of)

    @once
    def by_area_and_size(self) -> NDArray[np.int64]:
        """How many findings every area has, by the size of the count: a column each for `SIZES`."""
        places = self.claims.row * len(SIZES) + self.claims.size
        numbers = np.bincount(places, minlength=len(self.codes) * len(SIZES)).reshape(-1, len(SIZES))
        numbers[:, -1] += self._published[2]  # likely zeros that are counted, and not listed
        return numbers

    @property
    def by_area(self) -> NDArray[np.int64]:
        """How many findings every area has."""
        return np.asarray(self.by_area_and_size.sum(axis=1))

    @once
    def area_weights(self) -> NDArray[np.int64]:
        """What areas are sorted by: first their findings about counts of one or two, then others, then zeros."""
        numbers = self.by_area_and_size
        most = int(numbers.max(initial=0)) + 1
        return (numbers[:, 0] * 2 * most + numbers[:, 1] + numbers[:, 2]) * most + numbers[:, 3]

    @once
    def by_line(self) -> NDArray[np.int64]:
        """How many findings there are about every characteristic."""
        return np.bincount(self.claims.line, minlength=len(self.lines))

    @once
    def grouping(self) -> Grouping | None:
        """The places that findings and maps can be narrowed down to."""
        return self.places.grouping()

    @once
    def facets(self) -> dict[str, Facet]:
        """The ways of sorting findings into classes, in the order in which they are shown."""
        claims, tables = self.claims, self.outline.tables
        of_table, route = claims.frame["table"].to_numpy(), claims.frame["route"].to_numpy()
        made = [
            Facet("kind", "Certainty", CLAIMS, CLAIMS, claims.kind),
            Facet("size", "Inferred count", tuple(SIZES), tuple(SIZES.values()), claims.size),
        ]
        numbers, named = [str(table.at) for table in tables], [table.name for table in tables]
        made.append(Facet("table", "Table", numbers, named, of_table, by_number=True))
        if (places := self.grouping) is not None:
            title = places.word[:1].upper() + places.word[1:]
            made.append(Facet("place", title, places.keys, places.names, places.of[claims.row], by_number=True))
        if len(self.level_names) > 1:
            codes = np.array([self.level_names.index(level) for level in self.levels.tolist()])[claims.row]
            keys = [level or "unstated" for level in self.level_names]
            named = [level_named(level) or "not stated" for level in self.level_names]
            made.append(Facet("level", "Level", keys, named, codes))
        made.append(Facet("route", "How it follows", tuple(ROUTES), tuple(ROUTES.values()), route))
        sizes = area_size_of(self.sizes)[claims.row]
        made.append(Facet("area_size", "Size of area", tuple(AREA_SIZES), tuple(AREA_SIZES.values()), sizes))
        return {facet.name: facet for facet in made}

    @once
    def _published(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        import polars as pl

        counts = pl.col("counts")
        counted = self.folder.table(PUBLISHED).select(
            ZEROS_NOT_LISTED,
            largest=counts.arr.max(),
            there=counts.arr.eval(pl.element() > ABSENT, as_list=True).list.sum(),
        )
        collected = counted.collect(engine="streaming")
        largest, there = collected["largest"].to_numpy(), collected["there"].to_numpy()
        zeros = collected[ZEROS_NOT_LISTED].to_numpy().astype(np.int64)
        return np.where(largest > ABSENT, largest, -1).astype(np.int64), there.astype(np.int64), zeros

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The largest published count of every area, -1 where nothing was published."""
        return self._published[0]

    @property
    def published(self) -> NDArray[np.int64]:
        """How many counts of every area were published."""
        return self._published[1]

    @once
    def boundaries(self) -> Boundaries | None:
        """The shapes of the areas, where some were given."""
        if self._boundaries_file is not None:
            return boundaries_of(self.folder, self._boundaries_file)
        return kept_boundaries(self.folder)

    @once
    def contradictions(self) -> pl.DataFrame:
        """What cannot be, as text."""
        return self._listed(CONTRADICTIONS)

    @once
    def suspects(self) -> pl.DataFrame:
        """What is possible but absurd, as text; the least likely first."""
        import polars as pl

        return self._listed(SUSPECTS).sort(pl.col("chance_at_most").cast(pl.Float64), maintain_order=True)

    def _listed(self, name: str) -> pl.DataFrame:
        """Return the rows of a CSV file, as text."""
        import polars as pl

        text = pl.col(pl.String)
        # The file is safe for spreadsheets: before what looks like a formula it has an apostrophe, which is not ours.
        plain = pl.when(text.str.contains(r"^'[=+\-@\t\r]")).then(text.str.slice(1)).otherwise(text).name.keep()
        return self.folder.table(name).collect().fill_null("").select(plain)

    @once
    def footing(self) -> list[Fact]:
        """What the claims rest on."""
        return footing(self.summary, decision_of(self.folder))

    # -- single areas and cells ---------------------------------------------------------------------------------------

    def row(self, area: str) -> int:
        """Return the row of an area by its code, the end of it, or its name."""
        exact = self._rows.get(area)
        return exact if exact is not None else find_area(self.folder, area)

    def cell(self, key: str) -> int:
        """Return the cell of a key, of a key that repeats another, or of a characteristic's code."""
        at = self.folder.model.index.get(self.folder.schema["alias"].get(key, key))
        if at is not None:
            return at
        name, slash, sex = key.rpartition("/")
        by_sex = slash and "sex" in self.folder.axes and sex in self.outline.variants
        return find_cell(self.folder, name if by_sex else key, sex if by_sex else None)

    def look(self, row: int) -> InferredArea:
        """Infer an area, or remember it."""
        seen = self._seen.get(row)
        if seen is None:
            with self._inferring:  # perhaps another thread was just doing it
                seen = self._seen.get(row)
                if seen is None:
                    seen = infer_area(self.folder, row)
                    self._seen.put(row, seen, seen.inferred.counts.size)
        return seen

    def explain(self, row: int, cell: int) -> Explanation:
        """Explain one cell."""
        # Not under the lock of areas: a count of a whole country can take seconds, and areas are looked at meanwhile.
        with self._explaining:
            explained = self._explained.get((row, cell))
            return explained or self._explained.put((row, cell), explain_in(self.look(row), cell), 1)

    def title(self, row: int) -> str:
        """Return what an area is called in headings: its name, or its level and code."""
        return self.places.title(row)

    def place(self, row: int) -> dict[str, Any]:
        """Return where an area is, as plain data."""
        codes = {axis: self.folder.areas[axis][row] for axis in self.folder.area_axes}
        return codes | {
            "name": self.title(row),
            "level": level_named(str(self.levels[row])),
            "within": self.places.around(row),
        }

    def warm(self) -> None:
        """Make everything ready, so that the first visitor does not wait for it: what the first page shows first."""
        _ = self.footing, self.boundaries, self.claims, self.area_weights, self.places
        _ = self.facets, self.index, self.line_index, self.by_line, self.cell_index, self._rows, self.contradictions
        if self.codes:
            self.look(0)  # last: loading the kernels takes seconds, and nothing else is made meanwhile


class Shelf:
    """The explorer of a folder, opened anew when another audit has taken the place of the old one."""

    def __init__(self, path: Path, boundaries: Path | None = None) -> None:
        self.path, self.boundaries = path, boundaries
        self._lock = threading.Lock()
        self._stamp = self._now()
        self._explorer = Explorer(AuditFolder.open(path), boundaries)

    def _now(self) -> tuple[int, int] | None:
        try:
            state = os.stat(self.path / SUMMARY)
        except OSError:
            return None
        return state.st_mtime_ns, state.st_ino

    def explorer(self) -> Explorer:
        """Return the explorer of what lies in the folder now."""
        with self._lock:
            now = self._now()
            if now is None:
                raise InputError(f"the audit in {self.path} is gone, or is being written anew. Reload when it is complete.")
            if now != self._stamp:
                self._explorer = Explorer(AuditFolder.open(self.path), self.boundaries)
                self._stamp = now
            return self._explorer
