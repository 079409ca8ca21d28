"""Hierarchies of codes in files of their own: parent,child pairs, or the `@`-indented text that τ-ARGUS users have."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping
from pathlib import Path

from unround.errors import InputError
from unround.small_files import small_text
from unround.tables.description import near

Children = dict[str, list[str]]
"""The codes under each code, in the order of the file. Codes on top stand under ""."""

LARGEST = 1 << 27
"""Bytes of a hierarchy: codes for every area of the world would fit."""

_HEADERS = {("parent", "child"): False, ("child", "parent"): True}


def read_hierarchy(path: Path, codes: Collection[str], total: str | None = None) -> Children:
    """Read a hierarchy.

    Raises `InputError` where the file is no hierarchy: levels are skipped, a code has two parents or is above itself.
    """
    text = small_text(path, "a hierarchy", LARGEST, fallback="cp1252")
    pairs = _indented(text, path) if path.suffix.lower() == ".hrc" else _pairs(text, path, codes)
    if not pairs:
        raise InputError(
            f"{path} holds no codes. Write one parent,child pair per line, or one code per line with @ for depth."
        )
    return _tree(pairs, path, total)


def _indented(text: str, path: Path) -> list[tuple[str, str, int]]:
    above: list[str] = []
    pairs = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare:
            continue
        code = bare.lstrip("@").strip()
        depth = len(bare) - len(bare.lstrip("@"))
        if depth > len(above) or not code:
            wrong = (
                f"{code!r} is at depth {depth}, but nothing above it is at depth {depth - 1}."
                if code
                else "no code follows the @."
            )
            raise InputError(wrong, source=text, line=number, column=1, where=str(path))
        del above[depth:]
        pairs.append((above[-1] if above else "", code, number))
        above.append(code)
    return pairs


def _pairs(text: str, path: Path, codes: Collection[str]) -> list[tuple[str, str, int]]:
    lines = text.splitlines()
    first = lines[0] if lines else ""
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InputError(
            f"{path}, line {reader.line_num}: {error}. Look for a quote before that line that is not closed."
        ) from None
    for number, row in rows:
        if len(row) != 2 or not row[1]:
            raise InputError("a line needs a parent and a child.", source=text, line=number, column=1, where=str(path))
    if not rows:
        return []
    header = (rows[0][1][0].lower(), rows[0][1][1].lower())
    turned = _HEADERS.get(header, False)
    if header in _HEADERS or not set(rows[0][1]) & set(codes):
        rows = rows[1:]
    return [(row[1], row[0], number) if turned else (row[0], row[1], number) for number, row in rows]


def _tree(pairs: list[tuple[str, str, int]], path: Path, total: str | None) -> Children:
    parent: dict[str, str] = {}
    for above, code, number in pairs:
        if code in parent and parent[code] != above:
            raise InputError(
                f"{path}, line {number}: {code!r} is listed under both {parent[code]!r} and {above!r}. In a hierarchy "
                f"a code "
                "has one parent; write other sums as sums = [{ total = …, parts = […] }]."
            )
        if code in parent:
            raise InputError(f"{path}, line {number}: {code!r} is listed under {above!r} twice. Delete one of the lines.")
        parent[code] = above
    top = [above for above, _, _ in pairs if above and above not in parent]
    for code in dict.fromkeys(top):
        parent[code] = ""
    if total is not None and total not in parent:
        parent = {total: ""} | {code: above or total for code, above in parent.items()}
    reaches_top: set[str] = set()
    for code in parent:
        way, at = dict.fromkeys([code]), parent[code]
        while at and at not in reaches_top:
            if at in way:
                raise InputError(f"{path}: {at!r} is above itself. Delete one of the lines that say so.")
            way[at] = None
            at = parent[at]
        reaches_top.update(way)  # each code is gone through once, however deep the tree
    children: Children = {}
    for code, above in parent.items():
        children.setdefault(above, []).append(code)
    return children


def fit(children: Children, codes: Collection[str], where: str) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the sums of a hierarchy among the codes that a table has, and what to tell about it.

    A subtotal that was not published makes room for its own parts. A code without parts that was not published breaks
    the sum above it, which the file is to say rather than the reader to guess.

    Raises `InputError` where codes without parts are not in the table.
    """
    have = set(codes)
    listed = {code for under in children.values() for code in under}
    gone = sorted(code for code in listed if code not in have and code not in children)
    if gone:
        shown = ", ".join(map(repr, gone[:5])) + (f" and {len(gone) - 5} more" if len(gone) > 5 else "")
        raise InputError(
            f"{where} has codes that do not occur in the data: {shown}.{near(gone[0], have)} Correct or delete them."
        )
    notes = []
    skipped = sorted(listed - have)
    if skipped:
        notes.append(f"{where}: not in the data and therefore skipped: {', '.join(skipped)}.")
    outside = sorted(have - listed)
    if outside and "" in children and len(children[""]) > 1:
        shown = ", ".join(map(repr, outside[:5]))
        notes.append(f'{where} does not mention {shown}. If one of them is the overall total, say so: total = "…".')

    def below(code: str) -> list[str]:
        found, waiting = list[str](), list(reversed(children.get(code, [])))
        while waiting:
            child = waiting.pop()
            if child in have:
                found.append(child)
            else:
                waiting += reversed(children.get(child, []))
        return found

    return {code: tuple(below(code)) for code in children if code in have}, notes


def parents(sums: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return what each part is a part of; where a code is part of several totals, the first."""
    found: dict[str, str] = {}
    for total, parts in sums.items():
        for part in parts:
            found.setdefault(part, total)
    return found
