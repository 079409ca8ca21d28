"""What the public functions are given: paths, frames and texts turned into what they stand for."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from unround.errors import ArgumentError, InputError, UnknownFormat
from unround.options import AnyPath, Table
from unround.output import output_folder, write_json, write_whole

if TYPE_CHECKING:
    from unround.job import AuditFolder
    from unround.mechanisms import Mechanism
    from unround.release import Release
    from unround.tables.description import Description

_Result = TypeVar("_Result")


def open_table(
    table: Table, file_format: str = "auto", description: Any = None, sheet: str | None = None, exact: Sequence[str] = ()
) -> Release:
    """Return one table as a release. A table that nobody described is described on the way; `exact` columns hold counts."""
    release = _opened(table, file_format, description, sheet, exact)
    if not release.columns:
        figures = "; ".join(f"{len(those):,} columns of {why}" for why, those in release.left_out.items())
        raise InputError(
            f"{release.source} has no counts{f': it has {figures}' if figures else ''}. There is nothing to audit in a "
            "table without counts; give the table of counts that its figures come from."
        )
    return release


def _opened(table: Table, file_format: str, description: Any, sheet: str | None, exact: Sequence[str]) -> Release:
    from unround.release import Release
    from unround.tables import describe, read_frame
    from unround.tables import read as read_file
    from unround.tables.description import decided
    from unround.tables.frames import from_frame

    if isinstance(table, str | os.PathLike):
        if not os.fspath(table):
            raise InputError("the name of the file is empty.")
        if isinstance(description, Mapping):
            raise InputError("a file is described by a TOML file; only a frame is described by keys and values.")
        said = said_of_columns(table if description is None else description)
        if said is not None:
            return decided(_opened(_data_of(said) if description is None else table, file_format, None, sheet, exact), said)
        try:
            if sheet is None:
                return read_file(Path(table), file_format, None if description is None else Path(description))
        except UnknownFormat:
            pass
        return describe(Path(table), sheet=sheet, exact=exact).release
    if sheet is not None:
        raise ArgumentError("{sheet} is for spreadsheets, and this is not a file: leave it out.")
    if file_format != "auto":
        raise ArgumentError("{format} is for files, and this is not a file: leave it out.")
    if isinstance(table, Release):
        said = None if description is None else said_of_columns(description)
        if description is not None and said is None:
            raise InputError("axes are those of a table that is yet to be read, not of a Release.")
        return table if said is None else decided(table, said)
    if description is not None and not isinstance(description, Mapping):
        raise InputError("a frame is described by keys and values, not by a file.")
    if description is None:
        return read_frame(table) or describe(table, exact=exact).release
    return from_frame(table, description)


def _data_of(said: Description) -> Path:
    """Return the file that a TOML is about."""
    if said.data is None:
        raise InputError(f'{said.where} does not say which file it is about: add data = "…", or give the table too.')
    return said.data


def mechanism_name(base: int | None, mechanism: Mechanism | str | None) -> str | None:
    """Return the name of the mechanism that a base or a mechanism stands for; None where neither is given."""
    from unround.mechanisms import Mechanism, Rounding

    if base is not None:
        return Rounding(base).name
    return mechanism.name if isinstance(mechanism, Mechanism) else mechanism


def said_of_columns(description: object) -> Description | None:
    """Return what a TOML, or keys and values, say of the columns of a table that needs no axes to be read; else None."""
    from unround.small_files import is_file, parsed_toml, small_text
    from unround.tables.description import make_description, read_description, says_axes

    if isinstance(description, Mapping):
        return None if says_axes(description) else make_description(description)
    if not isinstance(description, str | os.PathLike) or Path(description).suffix.lower() != ".toml":
        return None
    path = Path(description)
    if not is_file(path) or says_axes(parsed_toml(small_text(path, "TOML"), str(path))):
        return None
    return read_description(path)


def audit_folder(folder: AuditFolder | AnyPath) -> AuditFolder:
    """Return an audit by its folder."""
    from unround.job import AuditFolder

    return folder if isinstance(folder, AuditFolder) else AuditFolder.open(Path(folder))


def folder_to_show(folder: Any) -> Path:
    """Return the folder of an audit, or of a table that was made to add up."""
    from unround.reconciliation import Reconciled
    from unround.web.reconciled import is_reconciled

    given = folder.folder if isinstance(folder, Reconciled) else folder
    return Path(given) if isinstance(given, str | os.PathLike) and is_reconciled(Path(given)) else audit_folder(given).path


def finished_audit(table: Table) -> AuditFolder | None:
    """Return the finished audit that stands in the place of a table; None if it is a table."""
    from unround.job import AuditFolder

    single = table[0] if isinstance(table, list | tuple) and len(table) == 1 else table
    is_folder = isinstance(single, str | os.PathLike) and Path(single).is_dir()
    return audit_folder(single) if is_folder or isinstance(single, AuditFolder) else None


def equations_of(source: AnyPath) -> tuple[str, str]:
    """Return the text of a system, and what to call it in errors."""
    from unround.small_files import SMALL, decoded, plain_text

    if isinstance(source, str) and ("=" in source or not source.strip()):
        return source, "<text>"
    if source == "-":
        content = sys.stdin.buffer.read(SMALL + 1)
        if len(content) > SMALL:
            raise InputError(f"standard input has more than {SMALL:,} bytes, more than a system can have.")
        return decoded(content, "standard input"), "standard input"
    return plain_text(source, 'To type equations, use =, as in "48! = 20 + 20 + 20".'), os.fspath(source)


def prior_of(source: AnyPath) -> dict[str, dict[int, float]] | None:
    """Return the weights in a JSON file; None for a flat prior."""
    from unround.small_files import plain_text

    if source == "flat":
        return None
    example = 'It should look like {"men": {"12": 0.5, "13": 0.5}}: for each cell, weights of its true counts.'
    text = plain_text(source, 'The prior is "flat" or a JSON file.')
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{source} is not JSON. {example}") from None
    try:
        return {str(name): {int(v): float(p) for v, p in weights.items()} for name, weights in loaded.items()}
    except (ValueError, AttributeError, TypeError, OverflowError):
        raise InputError(f"{source} cannot be used as a prior. {example}") from None


def header_rows(given: Sequence[int] | str | None) -> list[int] | None:
    """Return the rows of a header: numbers, or text such as 4, 4-5 or 4,5."""
    if given is None or not isinstance(given, str):
        return None if given is None else list(given)
    first, dash, last = (part.strip() for part in given.partition("-"))
    pieces = [part.strip() for part in given.split(",")] if not dash else [first, last]
    if not all(piece.isdigit() and 0 < int(piece) < 10_000 for piece in pieces) or (dash and int(first) > int(last)):
        raise ArgumentError(f"{{header}} must be rows, counted from 1, such as 4 or 4-5; not {given!r}.")
    return list(range(int(first), int(last) + 1)) if dash else sorted({int(piece) for piece in pieces})


def reasons_of(cells: Sequence[str], because: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Return everything that is accepted or left aside with its reason."""
    if cells and len(because) not in (1, len(cells)):
        raise ArgumentError(
            f"{{accept}} and {{ignore}} name {len(cells)}, with {len(because)} reasons: give {{because}} once for all, or "
            "once for each."
        )
    return zip(cells, tuple(because) * len(cells) if len(because) == 1 else because, strict=True)


def toml_of(description: object) -> Path | None:
    """Return the file that describes a table, if there is one."""
    return Path(description) if isinstance(description, str | os.PathLike) else None


def path_or_none(given: AnyPath | None) -> Path | None:
    """Return a path, if there is one."""
    return None if given is None else Path(given)


def paths_of(*given: Any) -> list[Path] | None:
    """Return all files that take part in an audit; None if something is not a file, so that its state cannot be told."""
    flat = [path for item in given if item is not None for path in (item if isinstance(item, list | tuple) else [item])]
    return [Path(item) for item in flat] if all(isinstance(item, str | os.PathLike) for item in flat) else None


def files_read(table: Table, release: Release) -> list[Path]:
    """Return the files that a table was read from: those that were given, and what a description of it names."""
    given = paths_of(table) or []
    return list(dict.fromkeys(path for path in (*given, *map(Path, release.source.split(" + "))) if path.is_file()))


def refuse_file(out: AnyPath | None) -> None:
    """Raise if a file is where a folder is to be: before a long run, not after it."""
    if out is not None and Path(out).exists() and not Path(out).is_dir():
        raise InputError(f"{out} is a file: choose a folder to write into.")


def temporary_folder() -> Path:
    """Return a folder to write into that nobody named; it goes away with the process at the latest."""
    parent = tempfile.mkdtemp(prefix="unround-")
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    return Path(parent) / "audit"


def lent_to(result: _Result, folder: Path) -> _Result:
    """Let a temporary folder last as long as a result that lies in it."""
    weakref.finalize(result, shutil.rmtree, folder.parent, ignore_errors=True)
    return result


def refuse_hopeless(release: Release) -> None:
    """Raise if nothing can be inferred from a table."""
    if release.obstacle:
        raise InputError(release.obstacle)


def refuse_overwriting(file: Path | None) -> None:
    """Raise if a file is there: somebody may have worked on it."""
    if file is not None and file.exists():
        raise InputError(f"{file} exists, and may hold work of yours: delete it, or choose another name.")


def write_text(file: Path, text: str) -> None:
    """Write a file of text: complete, or not at all."""
    try:
        write_whole(file, text)
    except OSError as problem:
        raise InputError(f"{file} cannot be written: {problem.strerror}.") from None


def write_result(out: AnyPath, name: str, data: Mapping[str, Any], page: str) -> None:
    """Write a result as JSON and as a page: both, in place of older ones, or neither."""
    names = f"{name}.json", f"{name}.html"
    with output_folder(Path(out), name, lambda _: names) as output:
        write_json(output.done / names[0], data)
        write_whole(output.done / names[1], page)
        output.publish(names)
