"""One audit, opened to be looked through: everything that views share, made once and kept in memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from unround.audits import AuditFolder
from unround.audits.folder import CONTRADICTIONS, PUBLISHED, SUMMARY, find_area, find_cell
from unround.errors import InputError
from unround.explanation.cell import Explanation, InferredArea, explain_in, infer_area
from unround.release import ABSENT
from unround.web.claims import AreaIndex, Claims, area_texts
from unround.web.outline import Outline, outline_of
from unround.web.remembered import Remembered

if TYPE_CHECKING:
    import polars as pl

Made = TypeVar("Made")


class Locked(Protocol):
    """An object with a lock of its own, which a thread may take again."""

    _lock: threading.RLock


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

    @overload
    def __get__(self, owner: None, kind: type) -> once[Made]: ...
    @overload
    def __get__(self, owner: Locked, kind: type) -> Made: ...
    def __get__(self, owner: Locked | None, kind: type) -> Made | once[Made]:
        if owner is None:
            return self
        kept = vars(owner)
        if self._name not in kept:
            with owner._lock:  # the same thread may be making another of them
                if self._name not in kept:
                    kept[self._name] = self._make(owner)
        made: Made = kept[self._name]
        return made


KEPT_COUNTS, KEPT_EXPLAINED = 500_000, 2_000
"""Counts of areas, and explained ones, that are remembered, so that going back and forth costs nothing. An area counts with
all that it was inferred together with: half a kilobyte or so each."""

_SERIALS = count()


class Explorer:
    """An audit folder and what is derived from it.

    Notes
    -----
    Requests run in threads. Whatever is made once is made under a lock, and so is every inference: its kernels use all
    processors anyway.
    """

    def __init__(self, folder: AuditFolder) -> None:
        self.folder = folder
        self.serial = next(_SERIALS)
        self.summary = folder.summary
        self._lock = threading.RLock()
        self._explaining = threading.RLock()
        self._seen = Remembered[int, InferredArea](KEPT_COUNTS)
        self._explained = Remembered[tuple[int, int], Explanation](KEPT_EXPLAINED)

    # -- what the release holds ---------------------------------------------------------------------------------------

    @once
    def outline(self) -> Outline:
        """The counts as lines and tables."""
        return outline_of(self.folder.model, self.folder.told["axes"])

    @once
    def _texts(self) -> tuple[list[str], list[str]]:
        return area_texts(self.folder.areas, self.folder.told["areas"])

    @property
    def codes(self) -> list[str]:
        """Every area's code."""
        return self._texts[0]

    @property
    def names(self) -> list[str]:
        """Every area's name; "" where it is the code."""
        return self._texts[1]

    @once
    def index(self) -> AreaIndex:
        """Finds areas."""
        return AreaIndex(*self._texts)

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
        """The levels there are."""
        return [str(name) for name in dict.fromkeys(self.levels.tolist()) if name]

    @once
    def claims(self) -> Claims:
        """The findings."""
        return Claims(self.folder, self.outline.table_of)

    @once
    def sizes(self) -> NDArray[np.int64]:
        """The largest published count of every area, -1 where nothing was published."""
        import polars as pl

        published = pl.scan_parquet(self.folder.file(PUBLISHED), glob=False)
        largest = published.select(pl.col("counts").arr.max()).collect(engine="streaming")["counts"].to_numpy()
        return np.where(largest > ABSENT, largest, -1).astype(np.int64)

    @once
    def contradictions(self) -> pl.DataFrame:
        """What cannot be, as text."""
        import polars as pl

        text = pl.col(pl.String)
        # The file is safe for spreadsheets: before what looks like a formula it has an apostrophe, which is not ours.
        plain = pl.when(text.str.contains(r"^'[=+\-@\t\r]")).then(text.str.slice(1)).otherwise(text).name.keep()
        return pl.read_csv(self.folder.file(CONTRADICTIONS), infer_schema=False, glob=False).fill_null("").select(plain)

    # -- single areas and cells ---------------------------------------------------------------------------------------

    def row(self, area: str) -> int:
        """Return the row of an area by its code, the end of it, or its name."""
        exact = self._rows.get(area)
        return exact if exact is not None else find_area(self.folder, area)

    def cell(self, key: str) -> int:
        """Return the cell of a key, of a key that repeats another, or of a characteristic's code."""
        at = self.folder.model.index.get(self.folder.told["alias"].get(key, key))
        if at is not None:
            return at
        name, slash, sex = key.rpartition("/")
        by_sex = slash and "sex" in self.folder.told["axes"] and sex in self.outline.variants
        return find_cell(self.folder, name if by_sex else key, sex if by_sex else None)

    def look(self, row: int) -> InferredArea:
        """Infer an area, or remember it."""
        with self._lock:
            seen = self._seen.get(row)
            if seen is None:
                seen = infer_area(self.folder, row)
                self._seen.put(row, seen, seen.inferred.counts.size)
            return seen

    def explain(self, row: int, cell: int) -> Explanation:
        """Explain one cell."""
        # Not under the lock of all: a count of a whole country can take seconds, and areas are looked at meanwhile.
        with self._explaining:
            found = self._explained.get((row, cell))
            return found or self._explained.put((row, cell), explain_in(self.look(row), cell), 1)

    def title(self, row: int) -> str:
        """Return what an area is called in headings: its name, or its code."""
        return self.names[row] or self.short(row)

    def short(self, row: int) -> str:
        """Return an area's code without what all codes of its level start with, where the file has such a code."""
        areas = self.folder.areas
        return str(areas["code"][row]) if "code" in areas.columns and areas["code"][row] else self.codes[row]

    def place(self, row: int) -> dict[str, Any]:
        """Return where an area is, as plain data."""
        told = {axis: self.folder.areas[axis][row] for axis in self.folder.told["areas"]}
        return told | {"name": self.title(row), "level": str(self.levels[row])}

    def warm(self) -> None:
        """Make everything ready, so that the first visitor does not wait for it."""
        _ = self.claims, self.index, self._rows, self.level_names, self.contradictions
        if self.codes:
            self.look(0)
        _ = self.sizes


class Shelf:
    """The explorer of a folder, opened anew when another audit has taken the place of the old one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._stamp = self._now()
        self._explorer = Explorer(AuditFolder.open(path))

    def _now(self) -> tuple[int, int] | None:
        try:
            state = os.stat(self.path / SUMMARY)
        except OSError:
            return None
        return state.st_mtime_ns, state.st_ino

    def explorer(self) -> Explorer:
        """Return the explorer of what lies in the folder now.

        Raises
        ------
        InputError
            If the audit is gone, or is being written anew: what is in memory no longer fits the files.
        """
        with self._lock:
            now = self._now()
            if now is None:
                raise InputError(f"the audit in {self.path} is gone, or is being written anew. Reload when it is complete.")
            if now != self._stamp:
                self._explorer = Explorer(AuditFolder.open(self.path))
                self._stamp = now
            return self._explorer
