"""PC-Axis: the PX files of many statistical offices: keywords, then all numbers of a table in one long list."""

from __future__ import annotations

import re
from itertools import product
from math import prod
from pathlib import Path

import polars as pl

from unround.errors import InputError
from unround.small_files import is_file, require_file
from unround.tables.grid import HeadedTable

LARGEST = 1 << 29
"""Bytes of a PX file that are read at once."""
MOST_CELLS = 50_000_000
VALUE = "VALUE"
"""What the column of counts is called."""

_KEYWORD = re.compile(r'([A-Z][A-Z0-9-]*)(?:\[([a-z-]+)\])?(?:\(((?:"[^"]*"|[^)"])*)\))?\s*=', re.ASCII)
_STRING = re.compile(r'"([^"]*)"')
_CHARSET = re.compile(rb'CODEPAGE\s*=\s*"([^"]*)"')


def is_pcaxis(path: Path) -> bool:
    """Return whether a file is a PX file, by its name."""
    return path.suffix.lower() == ".px" and is_file(path)


def read_px(path: Path) -> HeadedTable:
    """Read a PX file as a table with one row per cell: a column for every variable, and one of counts."""
    size = require_file(path)
    if size > LARGEST:
        raise InputError(f"{path} has {size:,} bytes, too many for a PX file that is read at once; save it as CSV.")
    keywords = _keywords(_decoded(path))
    stub, heading = _strings(keywords.get("STUB", "")), _strings(keywords.get("HEADING", ""))
    variables = [*stub, *heading]
    if not variables or "DATA" not in keywords:
        raise InputError(f"{path} is not a PX file: it has no STUB or HEADING, or no DATA. Save the table as CSV.")
    if twice := next((name for name in variables if variables.count(name) > 1), None):
        raise InputError(f"{path} names the variable {twice!r} twice in STUB and HEADING; download it again.")
    values = {name: _strings(keywords.get(f"VALUES({name})", "")) for name in variables}
    if empty := next((name for name, those in values.items() if not those), None):
        raise InputError(f"{path}: there are no VALUES for the variable {empty!r}; download it again.")
    cells = prod(len(those) for those in values.values())
    if cells > MOST_CELLS:
        raise InputError(f"{path} has {cells:,} cells, more than can be read at once; save a part of it.")
    numbers = _numbers(keywords["DATA"])
    if len(numbers) != cells:
        raise InputError(f"{path} has {len(numbers):,} numbers where its variables make {cells:,}; download it again.")
    rows = product(*values.values())
    columns = dict(zip(map(str, range(len(variables))), map(list, zip(*rows, strict=True)), strict=True))
    frame = pl.DataFrame({**columns, str(len(variables)): numbers}, schema_overrides={str(len(variables)): pl.String})
    said = [text for name, text in keywords.items() if re.match(r"(?:CELL|VALUE|DATA)?NOTE|INFO|DATASYMBOL", name)]
    texts = tuple(" ".join(_strings(text)) for text in said)
    return HeadedTable(((*variables, VALUE),), frame, str(path), size, texts=texts)


def _decoded(path: Path) -> str:
    content = path.read_bytes()
    named = _CHARSET.search(content[:10_000])
    for charset in ("utf-8-sig", named[1].decode("ascii", "replace") if named else "cp1252", "cp1252", "latin-1"):
        try:
            return content.decode(charset)
        except (UnicodeDecodeError, LookupError):
            continue
    raise InputError(f"{path} is not text; save the table as CSV.")


def _keywords(text: str) -> dict[str, str]:
    """Return the keywords of the main language, each with what stands behind it up to the semicolon."""
    found: dict[str, str] = {}
    at = 0
    while (match := _KEYWORD.search(text, at)) is not None:
        end, quoted = match.end(), False
        if match[1] == "DATA":
            found["DATA"] = text[end:].rpartition(";")[0] or text[end:]
            break
        while end < len(text) and (quoted or text[end] != ";"):
            quoted ^= text[end] == '"'
            end += 1
        name = match[1] if match[3] is None else f"{match[1]}({', '.join(_strings(match[3]))})"
        if match[2] is None:  # in brackets stand other languages
            found.setdefault(name, text[match.end() : end])
        at = end + 1
    return found


def _strings(text: str) -> list[str]:
    return [" ".join(one.split()) for one in _STRING.findall(text)]


def _numbers(text: str) -> list[str]:
    """Return the cells of the table: numbers, and dots in quotes for what is missing."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^\s",;]+)', text)]
